"""A value that nothing uses and that ends with an error does so in every way to run a program, at every level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import WeftError
from weft.ir import IRModule
from weft.runtime import register_func, unregister_func
from weft.transform import DeadCodeElimination

TEXT = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def gather(a: T.Buffer((4,), "float32"), i: T.Buffer((2,), "int64"), b: T.Buffer((2,), "float32")):
        for j in range(2):
            with T.block("gather"):
                vj = T.axis.spatial(2, j)
                b[vj] = a[i[vj]]

    @R.function(private=True)
    def taken(x: R.Tensor((4,), "float32"), i: R.Tensor((2,), "int64")) -> R.Tensor((2,), "float32"):
        y = R.take(x, i)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32"), i: R.Tensor((2,), "int64")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = {value}
            w = R.exp(y)
            z = R.negative(x)
            R.output(z)
        return z
"""
FAILING = {
    "an index": "R.take(x, i)",
    "an access of a kernel": 'R.call_tir(cls.gather, (x, i), out_ty=R.Tensor((2,), "float32"))',
    "a function of the module": "M.taken(x, i)",
    "the type of what a library gives": 'R.call_pure_packed("unused.some", x, i, ty_args=R.Tensor((2,), "float32"))',
}


@pytest.fixture(autouse=True)
def library() -> Iterator[None]:
    register_func("unused.some", lambda x, i: x[: 2 if i.max() < 4 else 3].copy())
    yield
    unregister_func("unused.some")


def module(value: str) -> IRModule:
    found = weft.parse(TEXT.format(value=value))
    assert isinstance(found, IRModule)
    return found


@pytest.mark.parametrize("value", FAILING.values(), ids=FAILING)
def test_an_unused_value_that_fails_is_an_error_everywhere(value: str) -> None:
    program, x = module(value), np.arange(4, dtype="float32")
    ways = {f"opt {level}": weft.compile(program, opt=level) for level in (0, 1, 2)}
    ways["bytecode"] = weft.compile(program, executor="vm")
    for way, run in {"interpreted": weft.interpret(program), **ways}.items():
        assert run["main"](x, np.array([0, 3])).tolist() == [-0.0, -1, -2, -3], way
        with pytest.raises(WeftError, match=r"out of range|expected float32\[\(2,\)\]"):
            run["main"](x, np.array([0, 9]))


def test_an_unused_value_that_cannot_fail_goes() -> None:
    lean = DeadCodeElimination()(module("R.sin(x)"))
    assert "R.sin" not in lean.script()
    assert "R.exp" not in lean.script()
