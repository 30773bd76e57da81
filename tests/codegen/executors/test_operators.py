"""Every operator as the only one of a function, at another level than in `test_every_operator`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ir.op.test_every_op import EXAMPLES

import weft
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import symbol
from weft.ir.graph import DataflowBlock, Function, SeqExpr, Var, VarBinding
from weft.ir.op import Example, OpDef
from weft.ir.types import PrimType, ShapeType
from weft.testing.operators import TOLERANCE, Run


def function_of(run: Run) -> tuple[Function, list[str]]:
    """A function that is one call of the operator, with a shape parameter for symbols that no array carries."""
    params = tuple(run.arrays)
    carried = {name for param in params for name in type_symbols(param.ty)}
    extra = sorted(set(run.symbols) - carried)
    sizes = (Var("sizes", ShapeType(tuple(symbol(name) for name in extra))),) if extra else ()
    out = Var("out", run.type)
    body = SeqExpr((DataflowBlock((VarBinding(out, run.call),)),), out)
    return Function((*params, *sizes), body, run.type), extra


def arguments(run: Run, extra: list[str]) -> list[Any]:
    """The arguments of one run."""
    values: list[Any] = [array.item() if isinstance(v.ty, PrimType) else array for v, array in run.arrays.items()]
    return [*values, tuple(run.symbols[name] for name in extra)] if extra else values


FIRST = [row for row in EXAMPLES if row.values[1] is row.values[0].examples[0]]
"""One example of each: all of them are compiled in `test_every_operator`."""


@pytest.mark.parametrize(("definition", "example"), FIRST)
def test_compiled_operators_agree_with_numpy(definition: OpDef, example: Example) -> None:
    function, extra = function_of(Run(definition, example, 0))
    compiled = weft.compile(function, opt=1)["main"]
    for seed in range(3):
        run = Run(definition, example, seed)
        got = compiled(*arguments(run, extra))
        for value, want in zip(got if isinstance(got, tuple) else (got,), run.reference(), strict=True):
            assert (value.dtype, value.shape) == (want.dtype, want.shape)
            relative, absolute = TOLERANCE.get(str(want.dtype), (0, 0))
            np.testing.assert_allclose(value, want, rtol=2 * relative, atol=2 * absolute)
