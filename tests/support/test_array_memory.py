"""Memory of arrays: addresses that suit vectors, lines and pages; strided ones are copied to be read, not written."""

from __future__ import annotations

import mmap

import ml_dtypes
import numpy as np
import pytest

from weft.support.array_memory import ALIGNMENT, aligned_zeros, content_bytes, memory_bytes

LARGE_PAGE = 2 << 20


@pytest.mark.parametrize("count", [0, 1, 100, LARGE_PAGE // 8 - 1, LARGE_PAGE // 8, 3 * LARGE_PAGE // 8 + 5])
def test_zeros_begin_a_line_and_can_be_written(count: int) -> None:
    array = aligned_zeros((count,), np.dtype("float64"))
    assert array.shape == (count,)
    assert count == 0 or array.__array_interface__["data"][0] % ALIGNMENT == 0
    assert not array.any()
    array[:] = np.arange(count)
    np.testing.assert_array_equal(array, np.arange(count))


def test_large_arrays_begin_a_large_page_where_the_system_has_them() -> None:
    array = aligned_zeros((LARGE_PAGE + 1,), np.uint8)
    assert array.__array_interface__["data"][0] % (LARGE_PAGE if hasattr(mmap, "MADV_HUGEPAGE") else ALIGNMENT) == 0


def test_views_keep_large_memory_alive() -> None:
    view = aligned_zeros((2, LARGE_PAGE), np.uint8)[1, -3:]
    view[:] = 7
    assert view.tolist() == [7, 7, 7]


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
