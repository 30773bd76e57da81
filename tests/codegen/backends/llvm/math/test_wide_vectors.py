"""Vectors wider than code generators take are refused; LLVM would abort the process."""

from __future__ import annotations

import pytest

import weft
from weft.errors import WeftError

TEXT = """
@T.prim_func
def k(y: T.Buffer(({n},), "float32")):
    y[T.ramp(0, 1, {n})] = T.broadcast(T.float32(1), {n})
"""


@pytest.mark.parametrize("lanes", [4097, 65_536, 2**31, 2**64])
def test_vectors_of_too_many_lanes_are_refused(lanes: int) -> None:
    with pytest.raises(WeftError, match="lanes"):
        weft.parse(TEXT.format(n=lanes))


@pytest.mark.parametrize("dtype", ["float32x4097", "int8x65536", "int8x" + "9" * 5_000])
def test_dtypes_of_too_many_lanes_are_refused(dtype: str) -> None:
    with pytest.raises(WeftError, match="more than 4096 lanes") as caught:
        weft.dtypes.check_dtype(dtype)
    assert caught.value.code == "W301"
