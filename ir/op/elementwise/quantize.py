"""Quantization: integers that stand for floats, by a scale and a zero point.

    quantize:    clip(round(data / scale) + zero_point)      dequantize:    (data - zero_point) * scale

The scale and the zero point are scalars, or vectors along an axis of data; with a group size they have the rank of
data, and each of their elements along the axis stands for so many of data. Halves are rounded to even.
Errors: ShapeError W201, W202 shapes that do not fit, W203 the axis; DTypeError W321; ScriptError W134 the group size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from weft.dtypes import bits, is_float, is_integer, max_value, min_value
from weft.errors import ScriptError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.node import replace
from weft.ir.op.common import (
    Dims,
    Kernel,
    axis_of,
    converted,
    dtype_error,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    scalar_of,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__ = ["along_axis", "axis_in_use", "grouped_dims", "require_along_axis", "spread"]


def _wide(*dtypes: str) -> str:
    """The floating dtype of the arithmetic: float32, or float64 where a dtype needs more."""
    return "float64" if any(bits(dtype) > (16 if is_integer(dtype) else 32) for dtype in dtypes) else "float32"


def require_along_axis(
    args: Arguments, context: TypeContext, dims: Dims | None, operands: Mapping[str, TensorType]
) -> None:
    """Scalars, or vectors with an element for each place along `args.axis`; ShapeError W201, W202."""
    for name, operand in operands.items():
        require_rank(args, name, operand, 0, 1)
        own = dims_of(operand)
        if own and dims is not None:
            size = dims[axis_of(args, args.axis, len(dims))]
            if own[0] != 1:
                context.require_equal(own[0], size, f"{args.name}: size of {name} and of axis {args.axis}", args.span)


def _rule(args: Arguments, context: TypeContext, source: str, target: Callable[[str], bool], what: str) -> TensorType:
    data, scale, zero = (tensor(args, name, context) for name in ("data", "scale", "zero_point"))
    require_dtype(args, "data", data, source)
    require_dtype(args, "scale", scale, "float")
    require_dtype(args, "zero_point", zero, "number")
    if not target(args.out_dtype):
        raise dtype_error(args, f"out_dtype must be {what}, got {args.out_dtype}", "W321")
    dims = dims_of(data)
    if args.group_size:
        _check_groups(args, context, data, {"scale": scale, "zero_point": zero})
        return replace(data, dtype=args.out_dtype)
    require_along_axis(args, context, dims, {"scale": scale, "zero_point": zero})
    return replace(data, dtype=args.out_dtype)


def grouped_dims(args: Arguments, dims: Dims, axis: int, group_size: int) -> Dims:
    """The sizes of the scales of groups along an axis.

    Raises: ScriptError W134 for a group size that is none.
    """
    if group_size < 0:
        message = f"{args.name}: group_size is 0 (none) or more, got {group_size}"
        raise ScriptError(message, code="W134", span=args.span)
    groups = (dims[axis] + (group_size - 1)) // group_size
    return (*dims[:axis], groups, *dims[axis + 1 :])


def _check_groups(args: Arguments, context: TypeContext, data: TensorType, operands: dict[str, TensorType]) -> None:
    dims = dims_of(data)
    for name, operand in operands.items():
        own = dims_of(operand)
        if own == ():
            continue
        require_rank(args, name, operand, data.ndim)
        if own is None or dims is None:
            continue
        wanted = grouped_dims(args, dims, axis_of(args, args.axis, len(dims)), args.group_size)
        for axis, (size, given) in enumerate(zip(wanted, own, strict=True)):
            context.require_equal(given, size, f"{args.name}: size of {name} along axis {axis}", args.span)


def _of_group(kernel: Kernel, name: str, axis: int, data: Dims) -> Callable[..., PrimExpr]:
    """The scale or the zero point of the group of data's indices."""
    group = kernel.args.group_size
    scalar = dims_of(tensor(kernel.args, name, kernel.context)) == ()
    operand = kernel.input(name, () if scalar else grouped_dims(kernel.args, data, axis, group))
    if scalar:
        return lambda *i: scalar_of(operand)
    return lambda *i: operand(*i[:axis], i[axis] // group, *i[axis + 1 :])


def axis_in_use(args: Arguments, data: Dims, *operands: TensorType) -> int:
    """The axis that an operand has an element for each place along; 0 where all are scalars, for which `args.axis` may
    be anything; ShapeError W203."""
    return 0 if all(operand.ndim == 0 for operand in operands) else axis_of(args, args.axis, len(data))


def along_axis(kernel: Kernel, name: str, axis: int, size: Dim) -> Callable[..., PrimExpr]:
    """The scale or the zero point at the indices of data."""
    dims = dims_of(tensor(kernel.args, name, kernel.context)) or ()
    wanted: Dims = () if not dims else (1,) if dims[0] == 1 else (size,)
    operand = kernel.input(name, wanted)
    if not wanted:
        return lambda *i: scalar_of(operand)
    return lambda *i: operand(0 if wanted[0] == 1 else i[axis])


def _kernel(kernel: Kernel, formula: Callable[..., PrimExpr]) -> PrimFunc:
    args, data = kernel.args, kernel.input("data")
    axis = axis_in_use(args, data.shape, *(tensor(args, name, kernel.context) for name in ("scale", "zero_point")))
    size = data.shape[axis] if data.ndim else 1
    if args.group_size:
        scale, zero = (_of_group(kernel, part, axis, data.shape) for part in ("scale", "zero_point"))
    else:
        scale, zero = along_axis(kernel, "scale", axis, size), along_axis(kernel, "zero_point", axis, size)
    return kernel.compute(lambda *i: formula(data(*i), scale(*i), zero(*i), args.out_dtype))


def _quantized(value: PrimExpr, scale: PrimExpr, zero: PrimExpr, dtype: str) -> PrimExpr:
    wide = _wide(value.dtype, dtype)
    moved = te.round(te.cast(wide, value) / te.cast(wide, scale)) + te.cast(wide, zero)
    limited = te.minimum(te.maximum(moved, te.const(min_value(dtype), wide)), te.const(max_value(dtype), wide))
    return te.cast(dtype, te.round(limited))


def _dequantized(value: PrimExpr, scale: PrimExpr, zero: PrimExpr, dtype: str) -> PrimExpr:
    wide = _wide(dtype)
    if is_integer(zero.dtype):
        exact = "int32" if max(bits(value.dtype), bits(zero.dtype)) <= 16 else "int64"
        return te.cast(wide, te.cast(exact, value) - te.cast(exact, zero)) * te.cast(wide, scale)
    return (te.cast(wide, value) - te.cast(wide, zero)) * te.cast(wide, scale)


def spread(data: np.ndarray, operand: Any, axis: int, group_size: int) -> np.ndarray:
    """A scale or a zero point in the rank of data, one element for each of the axis or for each group of it."""
    operand = np.asarray(operand)
    if group_size and operand.ndim:
        return np.take(np.repeat(operand, group_size, axis), range(data.shape[axis]), axis)
    return operand.reshape([-1 if d == axis % data.ndim else 1 for d in range(data.ndim)]) if operand.ndim else operand


def _numpy_quantize(
    data: np.ndarray, scale: Any, zero_point: Any, axis: int, out_dtype: str, group_size: int = 0
) -> np.ndarray:
    wide = _wide(str(data.dtype), out_dtype)
    scale, zero = (spread(data, operand, axis, group_size).astype(wide) for operand in (scale, zero_point))
    moved = np.rint(data.astype(wide) / scale) + zero
    return converted(np.rint(np.clip(moved, min_value(out_dtype), max_value(out_dtype))), out_dtype)


def _numpy_dequantize(
    data: np.ndarray, scale: Any, zero_point: Any, axis: int, out_dtype: str, group_size: int = 0
) -> np.ndarray:
    wide = _wide(out_dtype)
    scale, zero = spread(data, scale, axis, group_size).astype(wide), spread(data, zero_point, axis, group_size)
    if zero.dtype.kind in "iu":
        return ((data.astype("int64") - zero.astype("int64")).astype(wide) * scale).astype(out_dtype)
    return ((data.astype(wide) - zero.astype(wide)) * scale).astype(out_dtype)


def _params(out_dtype: str) -> list[Param]:
    return [
        Param("data"),
        Param("scale", "prim"),
        Param("zero_point", "prim"),
        Param("axis", "attr", -1, "int"),
        Param("out_dtype", "dtype", out_dtype),
        Param("group_size", "attr", 0, "int"),
    ]


_SCALES = {"scale": (0.02, 0.1), "zero_point": (-3, 3)}


@register_op(
    "quantize",
    _params("int8"),
    lowering=kernel_lowering(lambda kernel: _kernel(kernel, _quantized)),
    numpy=_numpy_quantize,
    pure=True,
    examples=(
        example(f32(2, 3), f32(3), typed("int8", 3), ranges=_SCALES),
        example(f32("n", 4, "m"), f32(4), typed("int32", 4), axis=1, ranges=_SCALES),
        example(f32("n", 4), f32(), typed("int8"), out_dtype="uint8", ranges=_SCALES),
        example(typed("float16", "n"), f32("n"), typed("int8"), axis=0, out_dtype="int16", ranges=_SCALES),
        example(f32("n", 2), 0.05, 3),
        example(f32(5), f32(), typed("int32"), out_dtype="int32", ranges={"scale": (1e-9, 1e-9)}),
        example(f32("n", 10), f32("n", 3), typed("int8", "n", 3), group_size=4, ranges=_SCALES),
    ),
)
def quantize(args: Arguments, context: TypeContext) -> TensorType:
    """Floats as integers: clip(round(data / scale) + zero_point), limited to the values of out_dtype.

    scale and zero_point are scalars, or vectors along the axis of data; with a group_size they have data's rank, and
    one element for each group_size of data along the axis. The quotient is taken in float32 (in float64 of float64,
    and for integers of more than 16 bits). A nan gives 0.
    """
    return _rule(args, context, "float", is_integer, "an integer dtype")


@register_op(
    "dequantize",
    _params("float32"),
    lowering=kernel_lowering(lambda kernel: _kernel(kernel, _dequantized)),
    numpy=_numpy_dequantize,
    pure=True,
    examples=(
        example(typed("int8", 2, 3), f32(3), typed("int8", 3), ranges=_SCALES),
        example(typed("uint8", "n", 4, "m"), f32(4), typed("int32", 4), axis=1, ranges=_SCALES),
        example(typed("int8", "n", 4), f32(), typed("int8"), out_dtype="float16", ranges=_SCALES),
        example(typed("int8", "n", 2), 0.05, 3),
        example(typed("int32", "n"), typed("float16", "n"), typed("float16"), axis=0, ranges=_SCALES),
        example(typed("int8", 8, "n"), f32(2, "n"), typed("int8"), axis=0, group_size=4, ranges=_SCALES),
        example(typed("uint8", 3, 10), typed("float16", 3, 3), 7, group_size=4, ranges=_SCALES),
    ),
)
def dequantize(args: Arguments, context: TypeContext) -> TensorType:
    """The floats that quantized integers stand for: (data - zero_point) * scale, in out_dtype.

    scale and zero_point are scalars, or vectors along the axis of data; with a group_size they have data's rank, and
    one element for each group_size of data along the axis.
    """
    return _rule(args, context, "number", is_float, "a floating dtype")
