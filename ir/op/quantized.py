"""Products with weights in few bits, and activations that are quantized when they are known.

    matmul_dequantized(x1, x2, scale, zero_point)        x1 @ ((x2 - zero_point) * scale)
    quantize_dynamic(data)                               (round(data / scale), scale), scale = max|data| / max of int8

Scales stand for groups of neighbours along the contracted axis, which is the last one of activations and the first one
of weights. The products of a group are those of integers where both factors are quantized, so that a group costs one
multiplication by both scales.
Errors: ShapeError W201, W202 shapes that do not fit; DTypeError W321; ScriptError W134 the group size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer, max_value
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.kernel.prim import intrinsic
from weft.ir.node import replace
from weft.ir.op.common import (
    Dims,
    Kernel,
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
from weft.ir.op.elementwise.quantize import grouped_dims
from weft.ir.op.linalg.products import contraction
from weft.ir.op.reductions.reduction import sizes_of
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType

__all__: list[str] = []


def _groups(args: Arguments, dims: Dims, axis: int) -> Dims:
    """The sizes of scales of groups along an axis; without a group size one stands for all."""
    if not args.group_size:
        return (*dims[:axis], 1, *dims[axis + 1 :])
    return grouped_dims(args, dims, axis, args.group_size)


def _group_of(args: Arguments, k: PrimExpr) -> PrimExpr | int:
    return k // args.group_size if args.group_size else 0


# ---------------------------------------------------------------------------------------------------------------------
# quantize_dynamic
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_dynamic(kernel: Kernel) -> PrimFunc | None:
    args, data = kernel.args, kernel.input("data")
    dims = sizes_of(args, "data", kernel.context)
    size: Dim = dims[-1]
    group: Dim = args.group_size or size
    counts, most = _groups(args, dims, len(dims) - 1), max_value(args.out_dtype)
    t = te.reduce_axis((0, group), name="t")

    def magnitude(*i: PrimExpr) -> PrimExpr:
        place = i[-1] * te.size(group) + t
        value = te.abs(te.cast("float32", data(*i[:-1], place)))
        if not args.group_size or (isinstance(size, int) and size % args.group_size == 0):
            return value
        return te.if_then_else(place < te.size(size), value, te.const(0, "float32"))

    greatest = te.compute(counts, lambda *i: te.max(magnitude(*i), axis=t), "greatest")
    scale = te.compute(counts, lambda *i: greatest(*i) / te.const(float(most), "float32"), "scale")

    zero, one = te.const(0, "float32"), te.const(1, "float32")
    inverse = te.compute(counts, lambda *i: te.select(te.equal(scale(*i), 0), zero, one / scale(*i)), "inverse")

    def number(*i: PrimExpr) -> PrimExpr:
        value = te.cast("float32", data(*i)) * inverse(*i[:-1], _group_of(args, i[-1]))
        return te.cast(args.out_dtype, intrinsic("round", value))

    return kernel.finish(te.compute(dims, number, "quantized"), scale)


def _dynamic_reference(data: np.ndarray, *, group_size: int, out_dtype: str) -> tuple[np.ndarray, np.ndarray]:
    wide, size = np.asarray(data, np.float32), data.shape[-1]
    group = group_size or max(size, 1)
    count = -(-size // group) if group_size else 1
    padded = np.zeros((*data.shape[:-1], count * group), np.float32)
    padded[..., :size] = np.abs(wide)
    most = np.float32(max_value(out_dtype))
    scale = padded.reshape(*data.shape[:-1], count, group).max(axis=-1, initial=0) / most
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(scale == 0, np.float32(0), np.float32(1) / scale)
        return converted(np.rint(wide * np.repeat(inverse, group, axis=-1)[..., :size]), out_dtype), scale


@register_op(
    "quantize_dynamic",
    [Param("data"), Param("group_size", "attr", 0, "int"), Param("out_dtype", "dtype", "int8")],
    lowering=_lower_dynamic,
    numpy=_dynamic_reference,
    pure=True,
    examples=(
        example(f32(2, 8), least=1),
        example(f32("n", 8), group_size=4),
        example(f32("n", 3, 10), group_size=4),
        example(typed("float16", 2, 8), group_size=2, out_dtype="int16"),
    ),
)
def quantize_dynamic(args: Arguments, context: TypeContext) -> TupleType:
    """Floats as integers with a scale for each group of neighbours along the last axis: (quantized, scale).

    The scale is max|data| / max of out_dtype of the group (group_size 0: of the row), in float32; quantized is
    round(data * (1 / scale)), so that zero stays zero and quantized * scale is data up to half of the scale:
    (..., k) -> (..., k), (..., ceil(k / group_size)). Halves are rounded to even, and nan is 0.
    """
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    if not is_integer(args.out_dtype):
        raise dtype_error(args, f"out_dtype must be an integer dtype, got {args.out_dtype}", "W321")
    require_rank(args, "data", data, *range(1, 17))
    dims = dims_of(data)
    scale = replace(data, dtype="float32")
    if dims is not None:
        scale = replace(scale, shape=_groups(args, dims, len(dims) - 1))
    return TupleType((replace(data, dtype=args.out_dtype), scale))


# ---------------------------------------------------------------------------------------------------------------------
# matmul_dequantized
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_product(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    rows, weight = sizes_of(args, "x1", context)[:-1], sizes_of(args, "x2", context)
    inner = weight[0]
    groups = _groups(args, weight, 0)
    x1, x2 = kernel.input("x1", (*rows, inner)), kernel.input("x2", weight)
    scale = kernel.input("scale", groups)
    zero_is_scalar = dims_of(tensor(args, "zero_point", context)) == ()
    zero = kernel.input("zero_point", () if zero_is_scalar else groups)
    x1_scale = kernel.input("x1_scale", (*rows, groups[0])) if args.x1_scale is not None else None
    k = te.reduce_axis((0, inner), name="k")
    group = _group_of(args, k)

    def formula(dtype: str) -> Any:
        def body(*i: PrimExpr) -> PrimExpr:
            left = te.cast(dtype, x1(*i[:-1], k))
            if x1_scale is not None:
                left = left * te.cast(dtype, x1_scale(*i[:-1], group))
            shift = scalar_of(zero) if zero_is_scalar else zero(group, i[-1])
            number = te.cast("int32", x2(k, i[-1])) - te.cast("int32", shift)
            return left * (te.cast(dtype, number) * te.cast(dtype, scale(group, i[-1])))

        return body

    return kernel.finish(contraction(kernel, kernel.dims, formula, k, "matmul_dequantized"))


def _product_reference(
    x1: Any, x2: Any, scale: Any, zero_point: Any, x1_scale: Any, *, group_size: int, out_dtype: str | None
) -> Any:
    wide = "float64" if "float64" in (x1.dtype, scale.dtype) else "float32"
    group, size = group_size or max(1, x2.shape[0]), x2.shape[0]

    def each(operand: Any, axis: int) -> Any:
        operand = np.asarray(operand)
        return np.take(np.repeat(operand, group, axis), range(size), axis) if operand.ndim else operand

    weight = (x2.astype(np.int32) - each(zero_point, 0).astype(np.int32)).astype(wide) * each(scale, 0).astype(wide)
    left = x1.astype(wide) if x1_scale is None else x1.astype(wide) * each(x1_scale, -1).astype(wide)
    return converted(np.matmul(left, weight), out_dtype or (x1.dtype if x1_scale is None else wide))


_SCALES = {"scale": (0.02, 0.1), "zero_point": (-3, 3), "x1_scale": (0.02, 0.1)}


@register_op(
    "matmul_dequantized",
    [
        Param("x1"),
        Param("x2"),
        Param("scale"),
        Param("zero_point", "prim", 0),
        Param("x1_scale", default=None),
        Param("group_size", "attr", 0, "int"),
        Param("out_dtype", "dtype", None),
    ],
    lowering=_lower_product,
    numpy=_product_reference,
    pure=True,
    examples=(
        example(f32("n", 8), typed("int8", 8, 5), f32(2, 5), group_size=4, ranges=_SCALES),
        example(
            f32("n", 8),
            typed("uint8", 8, 5),
            f32(2, 5),
            typed("uint8", 2, 5),
            group_size=4,
            ranges={**_SCALES, "zero_point": (0, 8)},
        ),
        example(f32(2, 3, 6), typed("int8", 6, "m"), f32(1, "m"), ranges=_SCALES),
        example(typed("float16", 2, 10), typed("int8", 10, 4), typed("float16", 3, 4), group_size=4, ranges=_SCALES),
        example(typed("int8", "n", 8), typed("uint8", 8, 4), f32(2, 4), 8, f32("n", 2), group_size=4, ranges=_SCALES),
    ),
)
def matmul_dequantized(args: Arguments, context: TypeContext) -> TensorType:
    """x1 times a matrix of few bits: (..., k), (k, n) -> (..., n), as x1 @ ((x2 - zero_point) * scale).

    scale has the shape (ceil(k / group_size), n), (1, n) for group_size 0; zero_point is a scalar or of the same shape.
    Where x1 holds integers, x1_scale has the shape (..., ceil(k / group_size)) and x1 stands for x1 * x1_scale
    (`quantize_dynamic`). Sums are float32 at least; the result has out_dtype, else x1's dtype, else float32. The
    matrix is never there in floats: a tile converts what it reads.
    """
    x1, x2, scale = (tensor(args, name, context) for name in ("x1", "x2", "scale"))
    zero = tensor(args, "zero_point", context)
    require_dtype(args, "x1", x1, "float" if args.x1_scale is None else "number")
    for name, operand, domain in (("x2", x2, "integer"), ("scale", scale, "float"), ("zero_point", zero, "integer")):
        require_dtype(args, name, operand, domain)
    require_rank(args, "x2", x2, 2)
    require_rank(args, "x1", x1, *range(1, 17))
    a, b = dims_of(x1), dims_of(x2)
    dtype = args.out_dtype or (x1.dtype if args.x1_scale is None else "float32")
    if dtype is not None and not is_float(dtype):
        raise dtype_error(args, f"out_dtype must be a floating dtype, got {dtype}", "W321")
    if a is None or b is None:
        return TensorType(dtype=dtype, ndim=x1.ndim)
    context.require_equal(a[-1], b[0], f"{args.name}: contracted sizes", args.span)
    groups = _groups(args, b, 0)
    _require_shape(args, context, "scale", scale, groups)
    if zero.ndim != 0:
        _require_shape(args, context, "zero_point", zero, groups)
    if args.x1_scale is not None:
        x1_scale = tensor(args, "x1_scale", context)
        require_dtype(args, "x1_scale", x1_scale, "float")
        _require_shape(args, context, "x1_scale", x1_scale, (*a[:-1], groups[0]))
    return TensorType((*a[:-1], b[1]), dtype, vdevice=x1.vdevice)


def _require_shape(args: Arguments, context: TypeContext, name: str, operand: TensorType, wanted: Dims) -> None:
    require_rank(args, name, operand, len(wanted))
    for axis, (given, size) in enumerate(zip(dims_of(operand) or wanted, wanted, strict=True)):
        context.require_equal(given, size, f"{args.name}: size of {name} along axis {axis}", args.span)
