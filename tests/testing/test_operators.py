"""check_operator finds what is wrong with a declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.ir.deduction.infer import TypeContext
from weft.ir.graph import Expr
from weft.ir.op import OPS, OpDef, Param
from weft.ir.op.common import example, f32
from weft.ir.op.declare import Arguments
from weft.ir.types import TensorType
from weft.testing import check_operator


def doubled(args: Arguments, builder: Any) -> Expr:
    return OPS["add"].bind([args.x, args.x])


def same(args: Arguments, context: TypeContext) -> Any:
    return context.type_of(args.x)


def wider(args: Arguments, context: TypeContext) -> Any:
    return TensorType(same(args, context).dims, "float64")


@pytest.mark.parametrize(
    ("rule", "reference", "says"),
    [
        (same, lambda x: 2 * x, ""),
        (same, lambda x: 3 * x, "compiled code differs from the reference"),
        (wider, lambda x: 2 * x, "the types say"),
        (same, lambda x: np.stack([x, x]), "the reference gives"),
    ],
)
def test_a_declaration_that_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, rule: Callable[..., Any], reference: Callable[..., Any], says: str
) -> None:
    examples = (example(f32(2)), example(f32("n", 3)))
    made = OpDef(
        "demo.twice", (Param("x"),), rule, "Twice x.", decompose=doubled, numpy=reference, pure=True, examples=examples
    )
    monkeypatch.setitem(OPS, "demo.twice", made)
    if not says:
        check_operator("demo.twice")
        return
    with pytest.raises(AssertionError, match=says) as caught:
        check_operator("demo.twice")
    assert str(caught.value).startswith("R.demo.twice, example 1: ")
