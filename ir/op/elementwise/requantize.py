"""Requantization: integers under one scale become integers under another, by a product and a shift.

    requantize:    clip(round(data * multiplier / 2**shift) + zero_point)

What a quotient of two scales does to a sum of products is a multiplier of at most 31 bits and a shift, so that every
processor gives the same bits, those without floating-point units too. The product has 64 bits and is rounded once,
halves to even. The multiplier is a scalar, or a vector along an axis of data: one for each channel.
Errors: ShapeError W201, W202 shapes that do not fit, W203 the axis; DTypeError W321; ScriptError W134 the shift.
Source: Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only inference,
2018, section 2.2; there halves are rounded away from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import bits, is_integer, max_value, min_value
from weft.errors import ScriptError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    converted,
    dtype_error,
    example,
    kernel_lowering,
    require_dtype,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.elementwise.quantize import along_axis, axis_in_use, require_along_axis, spread
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__ = ["LARGEST_SHIFT"]

LARGEST_SHIFT = 62
"""A product of two numbers of 32 bits plus half of the divisor has to fit 64 bits."""


def _requantized(value: PrimExpr, multiplier: PrimExpr, zero: PrimExpr, shift: int, dtype: str) -> PrimExpr:
    wide = te.cast("int64", value) * te.cast("int64", multiplier)
    if shift:
        odd = (wide >> shift) & te.const(1, "int64")
        wide = (wide + te.const((1 << (shift - 1)) - 1, "int64") + odd) >> shift
    moved = wide + te.cast("int64", zero)
    low, high = (te.const(int(limit(dtype)), "int64") for limit in (min_value, max_value))
    return te.cast(dtype, te.minimum(te.maximum(moved, low), high))


@kernel_lowering
def _lower(kernel: Kernel) -> PrimFunc:
    args, data = kernel.args, kernel.input("data")
    names = ("multiplier", "zero_point")
    axis = axis_in_use(args, data.shape, *(tensor(args, name, kernel.context) for name in names))
    size = data.shape[axis] if data.ndim else 1
    multiplier, zero = (along_axis(kernel, name, axis, size) for name in names)
    return kernel.compute(
        lambda *i: _requantized(data(*i), multiplier(*i), zero(*i), args.shift, args.out_dtype), "requantized"
    )


def _reference(data: Any, multiplier: Any, zero_point: Any, *, shift: int, axis: int, out_dtype: str) -> np.ndarray:
    factor, zero = (spread(data, operand, axis, 0).astype("int64") for operand in (multiplier, zero_point))
    wide = np.asarray(data).astype("int64") * factor
    if shift:
        wide = (wide + ((1 << (shift - 1)) - 1) + ((wide >> shift) & 1)) >> shift
    return converted(np.clip(wide + zero, int(min_value(out_dtype)), int(max_value(out_dtype))), out_dtype)


_FACTORS = {"multiplier": (1 << 28, 1 << 30), "zero_point": (-3, 3), "data": (-5000, 5000)}


@register_op(
    "requantize",
    [
        Param("data"),
        Param("multiplier", "prim"),
        Param("zero_point", "prim", 0),
        Param("shift", "attr", 0, "int"),
        Param("axis", "attr", -1, "int"),
        Param("out_dtype", "dtype", "int8"),
    ],
    lowering=_lower,
    numpy=_reference,
    pure=True,
    examples=(
        example(typed("int32", 2, 3), typed("int32", 3), 3, shift=36, ranges=_FACTORS),
        example(typed("int32", "n", 4, "m"), typed("int32", 4), shift=38, axis=1, ranges=_FACTORS),
        example(typed("int32", "n", 4), typed("int32"), typed("int8"), shift=35, out_dtype="uint8", ranges=_FACTORS),
        example(typed("int8", "n"), 3, out_dtype="int32"),
        example(typed("int8", "n", 2), 3, -1, shift=1, out_dtype="int16"),
    ),
)
def requantize(args: Arguments, context: TypeContext) -> TensorType:
    """Integers under another scale: clip(round(data * multiplier / 2**shift) + zero_point), within out_dtype.

    data is of at most 32 bits. multiplier (int32) and zero_point are scalars, or vectors along the axis of data. The
    product is exact in 64 bits and rounded once, halves to even, so that every target gives the same bits. The shift
    is from 0 to 62.
    """
    data, multiplier, zero = (tensor(args, name, context) for name in ("data", "multiplier", "zero_point"))
    for name, operand in (("data", data), ("multiplier", multiplier), ("zero_point", zero)):
        require_dtype(args, name, operand, "integer")
    if data.dtype is not None and (bits(data.dtype) > 32 or data.dtype == "uint32"):
        raise dtype_error(args, f"data must be of integers that int32 holds, got {data.dtype}", "W321")
    if multiplier.ndim != 0 and multiplier.dtype not in (None, "int32"):
        raise dtype_error(args, f"multiplier must be of int32, got {multiplier.dtype}", "W321")
    if not is_integer(args.out_dtype) or bits(args.out_dtype) > 32:
        raise dtype_error(args, f"out_dtype must be an integer dtype of at most 32 bits, got {args.out_dtype}", "W321")
    if not 0 <= args.shift <= LARGEST_SHIFT:
        message = f"{args.name}: shift is from 0 to {LARGEST_SHIFT}, got {args.shift}"
        raise ScriptError(message, code="W134", span=args.span)
    require_along_axis(args, context, dims_of(data), {"multiplier": multiplier, "zero_point": zero})
    return replace(data, dtype=args.out_dtype)
