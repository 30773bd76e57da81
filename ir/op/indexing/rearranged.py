"""Elements at computed places: roll, diagonals, columns of windows, equally spaced numbers.

Errors: ShapeError W203 axes, W205 other values that do not fit, W202 ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, floordiv, maximum, minimum, symbol
from weft.ir.graph import Expr
from weft.ir.op.common import (
    Kernel,
    axes_of,
    axis_of,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.precision import Reads, follow
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []


# ---------------------------------------------------------------------------------------------------------------------
# roll
# ---------------------------------------------------------------------------------------------------------------------


def _shifts(args: Arguments, ndim: int) -> dict[int, int]:
    """How far the elements of each axis move."""
    axes = axes_of(args, args.axis, ndim)
    shifts = args.shift * len(axes) if len(args.shift) == 1 else args.shift
    if len(shifts) != len(axes):
        raise shape_error(args, f"{len(args.shift)} shifts for {len(axes)} axes", "W205")
    return dict(zip(axes, shifts, strict=True))


@kernel_lowering
def _lower_roll(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    shifts = _shifts(args, x.ndim)

    def source(axis: int, place: PrimExpr) -> PrimExpr:
        if axis not in shifts:
            return place
        size = te.size(x.shape[axis])
        return te.floormod(place - shifts[axis], size)

    return kernel.compute(lambda *i: x(*(source(axis, place) for axis, place in enumerate(i))))


@register_op(
    "roll",
    [Param("x"), Param("shift", "attr", of="ints"), Param("axis", "attr", of="ints")],
    lowering=_lower_roll,
    numpy=lambda x, shift, axis: np.roll(x, tuple(shift) if len(shift) > 1 else shift[0], tuple(axis)),
    pure=True,
    family="manipulate",
    examples=(
        example(f32(5), 2, 0),
        example(f32("n", 4), shift=[-1, 6], axis=[0, 1]),
        example(typed("int32", 2, "m"), -3, -1),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def roll(args: Arguments, context: TypeContext) -> TensorType:
    """The elements moved along axes by a number of places; what leaves at the end comes in at the front."""
    x = tensor(args, "x", context)
    if x.ndim >= 0:
        _shifts(args, x.ndim)
    return x


# ---------------------------------------------------------------------------------------------------------------------
# diagonal, trace
# ---------------------------------------------------------------------------------------------------------------------

_DIAGONAL = (
    Param("x"),
    Param("offset", "attr", 0, "int"),
    Param("axis1", "attr", 0, "int"),
    Param("axis2", "attr", 1, "int"),
)


def _pair(args: Arguments, ndim: int) -> tuple[int, int]:
    first, second = axis_of(args, args.axis1, ndim), axis_of(args, args.axis2, ndim)
    if first == second:
        raise shape_error(args, f"a diagonal lies between two axes, both are {first}", "W205")
    return first, second


@kernel_lowering
def _lower_diagonal(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    first, second = _pair(args, x.ndim)

    def element(*i: PrimExpr) -> PrimExpr:
        rest, place = iter(i[:-1]), i[-1]
        at = {first: place + max(-args.offset, 0), second: place + max(args.offset, 0)}
        return x(*(at[axis] if axis in at else next(rest) for axis in range(x.ndim)))

    return kernel.compute(element)


@register_op(
    "diagonal",
    _DIAGONAL,
    lowering=_lower_diagonal,
    numpy=lambda x, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2).copy(),
    pure=True,
    family="manipulate",
    examples=(
        example(f32(3, 4)),
        example(f32("n", 4), offset=1),
        example(f32(2, "n", 3), offset=-1, axis1=1, axis2=-1),
        example(typed("int32", "n", "m")),
    ),
    precision=follow("x", reads=Reads.PART),
)
def diagonal(args: Arguments, context: TypeContext) -> TensorType:
    """The elements whose indices on two axes differ by offset, along a new last axis."""
    x = tensor(args, "x", context)
    if x.ndim < 0:
        return TensorType(dtype=x.dtype)
    first, second = _pair(args, x.ndim)
    dims = dims_of(x)
    if dims is None:
        return TensorType(dtype=x.dtype, ndim=x.ndim - 1)
    size = minimum(dims[first] - max(-args.offset, 0), dims[second] - max(args.offset, 0))
    rest = [dim for axis, dim in enumerate(dims) if axis not in (first, second)]
    return TensorType((*rest, maximum(size, 0)), x.dtype)


@composite(
    "trace",
    _DIAGONAL,
    numpy=lambda x, offset, axis1, axis2: np.asarray(np.trace(x, offset, axis1, axis2), x.dtype),
    examples=(example(f32(3, 4)), example(f32("n", 4), offset=1), example(f32(2, "n", 3), axis1=1, axis2=2)),
    family="linear_algebra",
)
def trace(args: Parts) -> Expr:
    """The sum of a diagonal."""
    return call("sum", call("diagonal", args.x, args.offset, args.axis1, args.axis2), axis=-1)


# ---------------------------------------------------------------------------------------------------------------------
# Columns of windows (im2col, col2im)
# ---------------------------------------------------------------------------------------------------------------------

_WINDOW = (
    Param("kernel_size", "attr", of="ints"),
    Param("strides", "attr", (1, 1), "ints"),
    Param("padding", "attr", (0, 0), "ints"),
    Param("dilation", "attr", (1, 1), "ints"),
)


def _check_window(args: Arguments) -> None:
    for name in ("kernel_size", "strides", "padding", "dilation"):
        if len(args[name]) != 2 or min(args[name]) < (0 if name == "padding" else 1):
            raise shape_error(args, f"{name} has two values, got {args[name]}", "W205")


def _places(args: Arguments, sizes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """How many windows there are along each of two axes."""
    found: list[Dim] = []
    for axis, size in enumerate(sizes):
        reach = args.dilation[axis] * (args.kernel_size[axis] - 1) + 1
        found.append(maximum(floordiv(size + 2 * args.padding[axis] - reach, args.strides[axis]) + 1, 0))
    return tuple(found)


@kernel_lowering
def _lower_unfold(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("data")
    across = _places(args, x.shape[2:])[1]
    kh, kw = args.kernel_size

    def element(*i: PrimExpr) -> PrimExpr:
        n, column, window = i
        at: list[PrimExpr] = []
        for axis, (inside, place) in enumerate(
            (
                (te.floormod(te.floordiv(column, kw), kh), te.floordiv(window, across)),
                (te.floormod(column, kw), te.floormod(window, across)),
            )
        ):
            at.append(place * args.strides[axis] + inside * args.dilation[axis] - args.padding[axis])
        inside = te.all(*(te.all(at[a] >= 0, at[a] < te.size(x.shape[2 + a])) for a in (0, 1)))
        channel = te.floordiv(column, kh * kw)
        return te.if_then_else(inside, x(n, channel, *at), te.const(0, x.dtype))

    return kernel.compute(element)


def _unfolded(data: Any, *, kernel_size: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = kernel_size, strides, padding, dilation
    n, c, h, w = data.shape
    padded = np.pad(data, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    oh, ow = max((h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, 0), max((w + 2 * pw - dw * (kw - 1) - 1) // sw + 1, 0)
    out = np.zeros((n, c, kh, kw, oh, ow), data.dtype)
    for i in range(kh):
        for j in range(kw):
            part = padded[:, :, i * dh : i * dh + sh * oh : sh, j * dw : j * dw + sw * ow : sw]
            out[:, :, i, j] = part[:, :, :oh, :ow]
    return out.reshape(n, c * kh * kw, oh * ow)


@register_op(
    "nn.unfold",
    [Param("data"), *_WINDOW],
    lowering=_lower_unfold,
    numpy=_unfolded,
    pure=True,
    family="nn_window",
    examples=(
        example(f32(1, 2, 4, 5), kernel_size=[2, 3]),
        example(f32("n", 2, 4, 4), kernel_size=[3, 2], strides=[2, 1], padding=[1, 0], dilation=[1, 2]),
    ),
    precision=follow("data", reads=Reads.WHOLE),
)
def unfold(args: Arguments, context: TypeContext) -> TensorType:
    """The windows of the last two axes of (n, c, h, w) as columns: (n, c * kh * kw, windows); padding is 0 (im2col)."""
    x = tensor(args, "data", context)
    require_rank(args, "data", x, 4)
    require_dtype(args, "data", x, "number")
    _check_window(args)
    dims = dims_of(x)
    if dims is None:
        return TensorType(dtype=x.dtype, ndim=3)
    down, across = _places(args, dims[2:])
    return TensorType((dims[0], dims[1] * args.kernel_size[0] * args.kernel_size[1], down * across), x.dtype)


@kernel_lowering
def _lower_fold(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("data")
    down, across = _places(args, args.output_size)
    kh, kw = args.kernel_size
    i, j = te.reduce_axis((0, kh), name="i"), te.reduce_axis((0, kw), name="j")

    def element(n: PrimExpr, c: PrimExpr, h: PrimExpr, w: PrimExpr) -> te.Reduction:
        place: list[PrimExpr] = []
        conditions: list[PrimExpr] = []
        for axis, (at, inside, count) in enumerate(((h, i, down), (w, j, across))):
            moved = at + args.padding[axis] - inside * args.dilation[axis]  # type: ignore[operator]
            window = te.floordiv(moved, args.strides[axis])
            conditions += [moved >= 0, te.equal(te.floormod(moved, args.strides[axis]), 0), window < te.size(count)]
            place.append(window)
        column = (c * kh + i) * kw + j  # type: ignore[operator]
        value = te.if_then_else(te.all(*conditions), x(n, column, place[0] * across + place[1]), te.const(0, x.dtype))
        return te.sum(value, axis=[i, j])

    return kernel.finish(te.compute(kernel.dims, element, "fold"))


def _folded(data: Any, *, output_size: Any, kernel_size: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = kernel_size, strides, padding, dilation
    h, w = output_size
    oh, ow = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    n, c = data.shape[0], data.shape[1] // (kh * kw)
    parts = data.reshape(n, c, kh, kw, oh, ow)
    out = np.zeros((n, c, h + 2 * ph, w + 2 * pw), data.dtype)
    for i in range(kh):
        for j in range(kw):
            out[:, :, i * dh : i * dh + sh * oh : sh, j * dw : j * dw + sw * ow : sw] += parts[:, :, i, j]
    return out[:, :, ph : ph + h, pw : pw + w].copy()


@register_op(
    "nn.fold",
    [Param("data"), Param("output_size", "attr", of="ints"), *_WINDOW],
    lowering=_lower_fold,
    numpy=_folded,
    pure=True,
    family="nn_window",
    examples=(
        example(f32(1, 12, 9), output_size=[4, 5], kernel_size=[2, 3]),
        example(f32("n", 12, 10), output_size=[4, 4], kernel_size=[3, 2], strides=[2, 1], padding=[1, 1]),
    ),
)
def fold(args: Arguments, context: TypeContext) -> TensorType:
    """The columns of windows added where they came from: (n, c, h, w) of output_size; unfold transposed (col2im)."""
    x = tensor(args, "data", context)
    require_rank(args, "data", x, 3)
    require_dtype(args, "data", x, "number")
    _check_window(args)
    if len(args.output_size) != 2:
        raise shape_error(args, f"output_size has two values, got {args.output_size}", "W205")
    dims = dims_of(x)
    if dims is None:
        return TensorType(dtype=x.dtype, ndim=4)
    down, across = _places(args, args.output_size)
    elements = args.kernel_size[0] * args.kernel_size[1]
    context.require_equal(dims[2], down * across, f"{args.name}: windows of output_size and columns", args.span)
    channels = floordiv(dims[1], elements)
    context.require_equal(dims[1], channels * elements, f"{args.name}: rows and elements of windows", args.span)
    return TensorType((dims[0], channels, *args.output_size), x.dtype)


# ---------------------------------------------------------------------------------------------------------------------
# linspace
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_linspace(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    gaps = te.cast("float64", te.maximum(te.size(args.num) - 1, 1))
    way = te.const(float(args.stop - args.start), "float64")

    def element(i: PrimExpr) -> PrimExpr:
        return te.cast("float64", i) * (way / gaps) + te.const(float(args.start), "float64")

    return kernel.compute(element)


@register_op(
    "linspace",
    [
        Param("start", "attr", of="float"),
        Param("stop", "attr", of="float"),
        Param("num", "attr", of="dim"),
        Param("dtype", "dtype", "float32"),
    ],
    lowering=_lower_linspace,
    numpy=lambda start, stop, num, dtype: untyped_np.linspace(start, stop, num).astype(dtype),
    pure=True,
    family="create",
    examples=(
        example(start=0.0, stop=1.0, num=5),
        example(start=-2.0, stop=3.0, num=1),
        example(start=1.0, stop=0.0, num=7, dtype="float64"),
        example(start=0.0, stop=2.0, num=symbol("n")),
    ),
)
def linspace(args: Arguments, context: TypeContext) -> TensorType:
    """num numbers from start to stop, both included, equally far apart, computed in float64."""
    return TensorType((args.num,), args.dtype)
