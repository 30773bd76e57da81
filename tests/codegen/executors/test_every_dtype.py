"""Every operator in every dtype, with sizes of 0 and 1: machine code agrees with the interpreter, or both refuse."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.ir.op.variants import variants

import weft
from weft import WeftError
from weft.ir.builder import BlockBuilder
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.ir.op import OPS, OpDef
from weft.ir.types import ShapeType
from weft.script import relax as R
from weft.testing.operators import TOLERANCE, Run

COMPUTED = [definition for definition in OPS.values() if not definition.builtin]


def outcome(function: Any, run: Run) -> Any:
    try:
        got = function(*(array.copy() for array in run.arrays.values()), tuple(run.symbols.values()))
    except WeftError:
        return None
    return got if isinstance(got, tuple) else (got,)


def check(definition: OpDef, chosen: list[Any]) -> None:
    builder, runs = BlockBuilder(), {}
    for index, (label, example) in enumerate(chosen):
        try:
            run = Run(definition, example, index)
            sizes = Var("sizes", ShapeType(tuple(symbol(name) for name in run.symbols)))
            with builder.function(f"f{index}", [*run.arrays, sizes]):
                builder.emit_func_output(builder.emit(run.call))
        except (WeftError, AssertionError, ValueError):  # no call of the operator, or no values for it
            continue
        runs[f"f{index}"] = label, run
    if not runs:
        return
    interpreted, compiled = weft.interpret(builder.get()), weft.compile(builder.get())
    for name, (label, run) in runs.items():
        want, got = outcome(interpreted[name], run), outcome(compiled[name], run)
        assert (want is None) == (got is None), label
        for a, b in zip(want or (), got or (), strict=True):
            relative, absolute = TOLERANCE.get(str(a.dtype), (0, 0))
            assert (a.shape, a.dtype) == (b.shape, b.dtype), label
            np.testing.assert_allclose(b, a, rtol=5 * relative, atol=10 * absolute, err_msg=label)


@pytest.mark.parametrize("seed", range(4))
def test_operators_agree_in_any_dtype_and_with_sizes_of_0_and_1(seed: int) -> None:
    choose = random.Random(seed)
    for definition in choose.sample(COMPUTED, 2):
        found = list(variants(definition))
        check(definition, choose.sample(found, min(6, len(found))))


@R.function
def rows(x: R.Tensor((2, 3, 1), "float32"), i: R.Tensor((1,), "int64")) -> R.Tensor((1, 3, 1), "float32"):
    return R.take(x, i, axis=0)


@R.function
def greatest(x: R.Tensor((4,), "uint64")) -> R.Tensor((), "int64"):
    return R.argmax(x, axis=0)


@R.function
def whole(x: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
    return R.round(x)


CASES = {
    "a row whose last size is 1": (rows, (np.arange(6, dtype="float32").reshape(2, 3, 1), np.array([1])), [3, 4, 5]),
    "uint64": (greatest, (np.array([1, 2**63 + 5, 2**63, 3], "uint64"),), 1),
    "integers beyond 2**53": (whole, (np.array([2**62 + 1, -5]),), [2**62 + 1, -5]),
}


@pytest.mark.parametrize(("function", "arguments", "want"), CASES.values(), ids=CASES)
def test_what_the_generator_found(function: Any, arguments: Any, want: Any) -> None:
    for run in (weft.interpret(function)[function.name], weft.compile(function)["main"]):
        assert run(*arguments).ravel().tolist() == np.ravel(want).tolist()
