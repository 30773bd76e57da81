"""Elementwise operators of two tensors, broadcast as in NumPy.

Operands have one dtype; Python numbers adopt it. Sizes must be equal or 1: an equality that is not proved becomes a check of
the kernel (its buffers share the symbol), so nothing is read out of bounds.
Errors: DTypeError W320 for two dtypes, W321 outside the domain; ShapeError W201 for sizes that never broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.infer import TypeContext
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    broadcast,
    broadcast_load,
    broadcast_shape,
    example,
    require_dtype,
    same_dtype,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Example, OpDef, Param
from weft.ir.op.registry import add_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__ = ["broadcasting"]


def broadcasting(
    name: str,
    doc: str,
    params: tuple[str, ...],
    domain: str,
    *,
    scalar: Callable[..., PrimExpr],
    numpy: Callable[..., Any],
    result: str | None = None,
    examples: tuple[Example, ...],
    family: str,
) -> OpDef:
    """Declare an operator that applies a function to the elements of tensors of one dtype, broadcast to one shape."""

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        operands = [tensor(args, param, context) for param in params]
        for param, operand in zip(params, operands, strict=True):
            require_dtype(args, param, operand, domain)
        dtype = same_dtype(args, *operands)
        device = next((operand.vdevice for operand in operands if operand.vdevice is not None), None)
        return replace(broadcast(args, context, *operands), dtype=result or dtype, vdevice=device)

    def lowering(args: Arguments, context: TypeContext, kernel_name: str) -> PrimFunc | None:
        kernel = Kernel(args, context, kernel_name)
        if not kernel.known:
            return None
        shapes = [broadcast_shape(tensor(args, param, context), kernel.dims) for param in params]
        operands = [kernel.input(param, shape) for param, shape in zip(params, shapes, strict=True)]
        return kernel.compute(lambda *i: scalar(*(broadcast_load(operand, i) for operand in operands)))

    declared = tuple(Param(param) for param in params)
    return add_op(OpDef(name, declared, rule, doc, lowering, numpy=numpy, pure=True, examples=examples, family=family))


def binary_op(name: str, doc: str, domain: str = "number", **facts: Any) -> OpDef:
    """Declare a broadcasting operator of two operands x1 and x2."""
    facts.setdefault("examples", _default_examples(domain, facts.pop("ranges", None) or {}))
    return broadcasting(name, doc, ("x1", "x2"), domain, family="binary", **facts)


def _default_examples(domain: str, ranges: dict[str, tuple[float, float]]) -> tuple[Example, ...]:
    options: dict[str, Any] = {"ranges": ranges}
    dtype = {"bool": "bool", "bits": "int32", "integer": "int32"}.get(domain, "float32")
    examples = [
        example(typed(dtype, 2, 3), typed(dtype, 2, 3), **options),
        example(typed(dtype, "n", 4), typed(dtype, 4), **options),
        example(typed(dtype, "n", 1, 4), typed(dtype, 3, 1), **options),
        example(typed(dtype, "n"), typed(dtype, "m"), **options),
    ]
    if domain == "number":
        examples.append(example(typed("int64", 5), typed("int64", 5), **options))
    return tuple(examples)


binary_op("add", "The sum, elementwise.", scalar=lambda a, b: a + b, numpy=np.add)
