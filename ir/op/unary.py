"""Elementwise operators of one tensor.

One line declares an operator: name, documentation, dtype domain, what it does to a scalar, and its NumPy reference.
Shape: that of x. Errors: DTypeError W321 when the dtype is outside the domain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.infer import TypeContext
from weft.ir.node import replace
from weft.ir.op.common import Kernel, example, f32, require_dtype, tensor, typed
from weft.ir.op.declare import Arguments, Example, OpDef, Param
from weft.ir.op.registry import add_op
from weft.ir.prim import intrinsic
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import Type

__all__ = ["elementwise"]

Scalar = Callable[[PrimExpr], PrimExpr]


def elementwise(
    name: str,
    doc: str,
    domain: str = "float",
    *,
    scalar: Scalar | None = None,
    numpy: Callable[..., Any],
    result: str | None = None,
    ranges: tuple[float, float] | None = None,
    param: str = "x",
    examples: tuple[Example, ...] = (),
) -> OpDef:
    """Declare an operator that applies a function to every element; `scalar` defaults to the intrinsic of the same name."""
    on_scalar = scalar or (lambda value: intrinsic(name, value))
    limits = {} if ranges is None else {param: ranges}
    shown = examples or _default_examples(domain, limits)

    def rule(args: Arguments, context: TypeContext) -> Type:
        ty = tensor(args, param, context)
        require_dtype(args, param, ty, domain)
        return ty if result is None else replace(ty, dtype=result)

    def lowering(args: Arguments, context: TypeContext, kernel_name: str) -> PrimFunc | None:
        kernel = Kernel(args, context, kernel_name)
        if not kernel.known:
            return None
        x = kernel.input(param)
        return kernel.compute(lambda *i: on_scalar(x(*i)))

    return add_op(
        OpDef(name, (Param(param),), rule, doc, lowering, numpy=numpy, pure=True, examples=shown, family="unary")
    )


def _default_examples(domain: str, ranges: dict[str, tuple[float, float]]) -> tuple[Example, ...]:
    if domain in ("integer", "bits"):
        return (example(typed("int32", 2, 3), ranges=ranges), example(typed("int64", "n"), ranges=ranges))
    if domain == "bool":
        return (example(typed("bool", 2, 3)), example(typed("bool", "n", 4)))
    return (
        example(f32(2, 3), ranges=ranges),
        example(f32("n", 4), ranges=ranges),
        example(typed("float64", "n"), ranges=ranges),
    )


elementwise("exp", "e raised to x, elementwise.", numpy=np.exp)
