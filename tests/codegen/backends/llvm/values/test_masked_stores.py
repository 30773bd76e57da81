"""Stores under masks: what LLVM knows of them, and what it makes of them with the conversions before."""

import ml_dtypes
import numpy as np
import pytest

import weft

LANES = 16


def stored(source: str, target: str, lane: int) -> np.ndarray:
    """Threes that are converted and stored into ones, in one lane of a vector."""
    text = f"""
from weft.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer(({LANES},), "{source}"), y: T.Buffer(({LANES},), "{target}")):
        for lane in T.vectorized({LANES}):
            if lane == {lane}:
                y[lane] = T.cast(x[lane], "{target}")
"""
    result = np.ones(LANES, ml_dtypes.bfloat16 if target == "bfloat16" else target)
    weft.compile(weft.parse(text), target="llvm")["main"](np.full(LANES, 3, source), result)
    return result.astype("float32")


@pytest.mark.parametrize("lane", [0, 5, LANES - 1])
@pytest.mark.parametrize(
    ("source", "target"),
    [("int32", "int8"), ("int32", "int16"), ("int64", "int32"), ("int16", "uint8"), ("float32", "bfloat16")],
)
def test_a_store_of_one_lane_writes_no_more_than_the_narrow_element(source: str, target: str, lane: int) -> None:
    """LLVM stored the wide element, beside the narrow one and beyond the end of the buffer."""
    np.testing.assert_array_equal(stored(source, target, lane), np.where(np.arange(LANES) == lane, 3, 1))


def test_a_convolution_with_one_column_more_than_vectors_is_right_in_bfloat16() -> None:
    """7 * 7 columns are three vectors and one lane: what was stored there reached into the next channel."""
    text = """
from weft.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 16, 7, 7), "bfloat16"), w: R.Tensor((8, 16, 1, 1), "bfloat16")):
        return R.nn.relu(R.nn.conv2d(x, w))
"""
    x, w = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((1, 16, 7, 7), (8, 16, 1, 1)))
    result = weft.compile(weft.parse(text), target="llvm")["main"](x, w)
    np.testing.assert_array_equal(result.astype("float32"), np.full((1, 8, 7, 7), 16.0))
