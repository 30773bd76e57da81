"""Floats as integers: what does not fit becomes the nearest value that does, in the reference and in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import Function, IRModule
from weft.ir.op.common import converted
from weft.transform import FoldConstant

VALUES = np.array([-np.inf, -1e30, -300.7, -128.5, -1.5, -0.0, 0.3, 127.5, 255.5, 3e9, 9.3e18, 1.9e19, np.inf, np.nan])
SCRIPT = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((14,), "{source}"), one: R.Tensor((), "{source}")):
        a = R.astype(x, "{target}")
        b = R.cumsum(x, axis=0, dtype="{target}")
        c = R.cumprod(x, axis=0, dtype="{target}", exclusive=True)
        d = R.full((2,), one, dtype="{target}")
        e = R.matmul(R.expand_dims(x, axis=1), R.expand_dims(x, axis=0), out_dtype="{target}")
        f = R.nn.conv1d(R.reshape(x, (1, 1, 14)), R.reshape(x, (1, 1, 14)), padding=3, out_dtype="{target}")
        g = R.quantize(x, R.const(0.5, "float32"), R.const(3, "int32"), out_dtype="{target}")
        h = R.image.resize2d(R.reshape(x, (1, 1, 2, 7)), (3, 3), out_dtype="{target}")
        return (a, b, c, d, e, f, g, h)
"""


@pytest.mark.parametrize(("source", "target"), [("float32", "int8"), ("float32", "int32"), ("float16", "uint8")])
def test_every_operator_that_converts_does_it_as_compiled_code_does(source: str, target: str) -> None:
    """A conversion is not left to what the processor does with it."""
    module = weft.parse(SCRIPT.format(source=source, target=target))
    assert isinstance(module, IRModule)
    with np.errstate(all="ignore"):
        values = VALUES.astype(source)
    for one in (values[-1], values[3]):
        want = weft.interpret(module)["main"](values, np.asarray(one))
        got = weft.compile(module)["main"](values, np.asarray(one))
        for a, b in zip(want, got, strict=True):
            assert a.dtype == b.dtype == target
            np.testing.assert_array_equal(a, b)


def test_a_folded_constant_is_what_compiled_code_computes() -> None:
    value = 'R.astype(R.const([-1.5, 300.0, float("nan")], "float32"), "uint8")'
    function = weft.parse(f"@R.function\ndef main():\n    y = {value}\n    return y")
    assert isinstance(function, Function)
    module = IRModule({"main": function})
    assert weft.interpret(FoldConstant()(module))["main"]().tolist() == [0, 255, 0]


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_the_ends_of_a_dtype_are_exact(target: str) -> None:
    ends = np.iinfo(target)
    low, high = np.nextafter(float(ends.min), -np.inf), np.nextafter(float(ends.max), np.inf)
    assert converted(np.array([low, float(ends.min), high]), target).tolist() == [ends.min, ends.min, ends.max]
    inside = np.nextafter(float(ends.max), 0)
    assert converted(inside, target) == int(inside)
    assert converted(np.array(-0.9), target) == 0
