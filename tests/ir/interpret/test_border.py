"""What callers pass and buffers state means in the interpreter what it means in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import VerifyError
from weft.ir import IRModule


def both(text: str) -> list[Any]:
    """A function in the interpreter and as compiled code."""
    module = IRModule({"main": weft.parse(text)})  # pyright: ignore[reportArgumentType]
    return [weft.interpret(module)["main"], weft.compile(module)["main"]]


IN_KERNEL = """@T.prim_func
def main(x: T.Buffer((4,), "{dtype}"), y: T.Buffer((4,), "int32")):
    for i in range(4):
        y[i] = T.cast(x[i], "int32")
"""
IN_LANES = """@T.prim_func
def main(x: T.Buffer((4,), "{dtype}"), y: T.Buffer((4,), "int32")):
    y[0:4] = T.Cast("int32x4", x[0:4])
"""
IN_GRAPH = '@R.function\ndef main(x: R.Tensor((4,), "{dtype}")):\n    return R.astype(x, "int32")\n'
WANTED = {
    "int4": [6, 1, -1, 0],
    "uint4": [6, 1, 15, 0],
    "int2": [-2, 1, -1, 0],
    "uint2": [2, 1, 3, 0],
    "int1": [0, -1, -1, 0],
    "uint1": [0, 1, 1, 0],
}


@pytest.mark.parametrize("dtype", WANTED)
def test_bits_above_short_integers_mean_nothing(dtype: str) -> None:
    raw = np.array([70, 1, 255, 128], "uint8").view("uint8" if dtype.startswith("u") else "int8")
    for run in both(IN_GRAPH.format(dtype=dtype)):
        assert run(raw.copy()).tolist() == WANTED[dtype]
    for text in (IN_KERNEL, IN_LANES):
        for run in both(text.format(dtype=dtype)):
            y = np.zeros(4, "int32")
            run(raw.copy(), y)
            assert y.tolist() == WANTED[dtype]


STATED = """@T.prim_func
def main(A: T.Buffer(({size},), "float32", {stated}), y: T.Buffer((1,), "float32")):
    y[0] = A[0]
"""


@pytest.mark.parametrize("stated", ["elem_offset=-3", "align=3", "align=-2", "align=2**70"])
def test_layouts_that_no_memory_has_are_refused(stated: str) -> None:
    with pytest.raises(VerifyError) as caught:
        weft.verify(IRModule({"main": weft.parse(STATED.format(size=4, stated=stated))}))  # pyright: ignore
    assert caught.value.code == "W462"


@pytest.mark.parametrize("stated", ["elem_offset=3", "align=0", "align=-1", "align=64", "strides=(2**62,)"])
def test_layouts_that_memory_has_are_taken(stated: str) -> None:
    for run in both(STATED.format(size=1, stated=stated)):
        y = np.zeros(1, "float32")
        run(np.full(1, 5, "float32"), y)
        assert y[0] == 5
