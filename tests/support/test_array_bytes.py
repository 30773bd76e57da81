"""Bytes of arrays: strided ones are copied to be read, and refused where they were to be written."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from weft.support.array_bytes import content_bytes, memory_bytes


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128", ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3, 4)])
def test_contents_are_those_of_tobytes(dtype: object, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)  # type: ignore[arg-type]
    for given in (array, array.T, array[..., ::-1] if shape else array):
        assert content_bytes(given).tobytes() == given.tobytes()


def test_contents_of_a_contiguous_array_are_no_copy() -> None:
    array = np.zeros((2, 3), "float32")
    assert np.shares_memory(content_bytes(array), array)
    assert np.shares_memory(memory_bytes(array), array)


def test_the_memory_of_a_strided_array_is_refused() -> None:
    with pytest.raises(ValueError, match="strided"):
        memory_bytes(np.zeros((2, 3)).T)
