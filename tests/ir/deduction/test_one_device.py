"""Programs over a mesh of one device run as those of the device; over more they are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from tests.script.reader.test_spread_tensors import MODULE

import weft
from weft.errors import TargetError
from weft.ir import structural_equal
from weft.ir.deduction.one_device import on_one_device
from weft.ir.interpret import interpret
from weft.ir.verify import verify

MESHES = ("(2,), I.Range(0, 2)", "(2, 2), [3, 5, 7, 9]"), ("(1,), I.Range(0, 1)", "(1, 1), [3]")
TEXT = MODULE.replace("(2, 8)", "(4, 8)")
for old, new in zip(*MESHES, strict=True):
    TEXT = TEXT.replace(old, new)
PLAIN = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def whole(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            y[i, j] = x[i, j] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((4, 8), "float32")):
        cls = Module
        a = R.call_tir(cls.whole, (x,), out_ty=R.Tensor((4, 8), "float32"))
        b = R.call_tir(cls.whole, (a,), out_ty=R.Tensor((4, 8), "float32"))
        c: R.Tensor((4, 8), "float32") = R.add(a, b)
        d = w
        e = c
        return (e, d)
"""


def test_over_one_device_a_program_is_that_of_the_device() -> None:
    made, plain = on_one_device(weft.parse(TEXT.replace("cls.part", "cls.whole"))), weft.parse(PLAIN)
    assert verify(made) == []
    for name in ("main", "whole"):
        assert structural_equal(made[name], plain[name])


def test_it_runs_compiled_and_interpreted() -> None:
    x, w = (np.random.default_rng(seed).standard_normal((4, 8), "float32") for seed in range(2))
    module = weft.parse(TEXT)
    for run in (weft.compile(module)["main"], interpret(module)["main"]):
        total, same = run(x, w)
        np.testing.assert_allclose(total, (x + 1) + (x + 2), rtol=1e-6)
        np.testing.assert_array_equal(same, w)


@pytest.mark.parametrize("old", ["(1,), I.Range(0, 1)", "(1, 1), [3]"])
def test_more_than_one_device_is_refused_by_name(old: str) -> None:
    repeated = TEXT.replace('"mesh[0]", "S[0]"', '"mesh[0]", "R"')
    module = weft.parse(repeated.replace(old, "(2,), [4, 5]" if "Range" in old else "(2, 1), [3, 4]"))
    assert on_one_device(module) is module
    for run in (weft.compile, interpret):
        with pytest.raises(TargetError, match="spread over a mesh") as caught:
            run(module)
        assert caught.value.code == "W741"


def test_modules_without_spread_tensors_are_left_alone() -> None:
    module = weft.parse(PLAIN)
    assert on_one_device(module) is module
