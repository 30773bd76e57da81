"""Elements chosen by ranks and frequency; diagonals and strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, maximum
from weft.ir.graph import Expr, Tuple
from weft.ir.op.common import (
    Kernel,
    axes_of,
    example,
    f32,
    i64,
    kernel_lowering,
    shape_error,
    shape_of_arg,
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

_SELECTION = "indexing_selection"


def _modes(x: Any, *, axis: int, keepdims: bool) -> Any:
    def one(row: Any) -> tuple[Any, int]:
        values, counts = np.unique(row, return_counts=True)
        value = values[np.argmax(counts)]
        return value, int(np.nonzero(row == value)[0][-1])

    rows = np.moveaxis(x, axis, -1)
    found = [one(row) for row in rows.reshape(-1, rows.shape[-1])]
    shape = rows.shape[:-1]
    value = np.array([item[0] for item in found], x.dtype).reshape(shape)
    index = np.array([item[1] for item in found], "int64").reshape(shape)
    return (np.expand_dims(value, axis), np.expand_dims(index, axis)) if keepdims else (value, index)


@composite(
    "mode",
    [Param("x"), Param("axis", "attr", -1, "int"), Param("keepdims", "attr", False, "bool")],
    family=_SELECTION,
    numpy=_modes,
    examples=(
        example(typed("int32", 2, 6), ranges={"x": (0, 3)}),
        example(i64("n", 5), axis=1, ranges={"x": (0, 2)}),
        example(typed("int32", 4, 3), axis=0, keepdims=True, ranges={"x": (0, 2)}),
        example(f32("m"), least=1),
    ),
)
def mode(args: Parts) -> Expr:
    """The most frequent value along an axis, the least of several, and the index (int64) of its last occurrence.

    Of a sorted row, the longest run of equal values: at each place the run has begun at the last place where the value
    changed. Costs a sort.
    """
    dims = args.dims("x")
    axis = args.axis_of("axis", len(dims))
    order = call("argsort", args.x, axis, False, "int64")
    sorted_ = call("gather_elements", args.x, order, axis)
    size = dims[axis]
    places = call("reshape", call("arange", 0, size, 1, "int64"), [size if d == axis else 1 for d in range(len(dims))])
    places = call("broadcast_to", places, dims)
    before = call("roll", sorted_, 1, axis)
    changes = call("logical_or", call("not_equal", sorted_, before), call("equal", places, _int(0)))
    begins = call("cummax", call("where", changes, places, _int(0)), axis=axis)
    length = call("subtract", places, begins)
    last = call("argmax", length, axis, True)  # the end of the longest run; of equal ones the first, the least value
    value, index = (call("gather_elements", part, last, axis) for part in (sorted_, order))
    return Tuple((value, index) if args.keepdims else tuple(call("squeeze", part, [axis]) for part in (value, index)))


def _int(value: int) -> Expr:
    return call("full", (), value, "int64")


# Diagonals and strides


def _diagonal_matrix(x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    places = untyped_np.arange(x.shape[-1])
    out[..., places + max(-offset, 0), places + max(offset, 0)] = x
    return np.ascontiguousarray(np.moveaxis(out, (-2, -1), (axis1, axis2)))


@kernel_lowering
def _lower_diag_embed(kernel: Kernel) -> PrimFunc | None:
    args, x = kernel.args, kernel.input("x")
    first, second = axes_of(args, (args.axis1, args.axis2), x.ndim + 1)
    down, right = max(-args.offset, 0), max(args.offset, 0)

    def formula(*i: PrimExpr) -> PrimExpr:
        rest = [index for axis, index in enumerate(i) if axis not in (first, second)]
        row, column = i[first] - down, i[second] - right
        inside = te.all(te.equal(row, column), row >= 0, column >= 0)
        return te.if_then_else(inside, x(*rest, row), te.const(0, x.dtype))

    return kernel.compute(formula, "diagonal")


@register_op(
    "diag_embed",
    [
        Param("x"),
        Param("offset", "attr", 0, "int"),
        Param("axis1", "attr", -2, "int"),
        Param("axis2", "attr", -1, "int"),
    ],
    lowering=_lower_diag_embed,
    numpy=_diagonal_matrix,
    pure=True,
    family="manipulate",
    examples=(example(f32(2, 3)), example(f32("n"), offset=1), example(f32(2, "n"), offset=-2, axis1=0, axis2=2)),
    precision=follow("x", reads=Reads.WHOLE),
)
def diag_embed(args: Arguments, context: TypeContext) -> TensorType:
    """Matrices with the last axis of x as a diagonal, which lies `offset` to the right, and zeros elsewhere.

    axis1 and axis2 are the axes of the matrices in the result. Errors: ShapeError W202 a scalar, W203, W204 the axes.
    """
    x = tensor(args, "x", context)
    if x.ndim == 0:
        raise shape_error(args, "x needs at least one dimension")
    if x.ndim < 0:
        return TensorType(dtype=x.dtype)
    first, second = axes_of(args, (args.axis1, args.axis2), x.ndim + 1)
    dims = dims_of(x)
    if dims is None:
        return TensorType(dtype=x.dtype, ndim=x.ndim + 1)
    size, rest = dims[-1] + abs(args.offset), iter(dims[:-1])
    return TensorType(tuple(size if axis in (first, second) else next(rest) for axis in range(x.ndim + 1)), x.dtype)


@kernel_lowering
def _lower_as_strided(kernel: Kernel) -> PrimFunc | None:
    args, x = kernel.args, kernel.input("x")
    kernel.require_le(_span(args, kernel.dims), _elements(x.shape), "the view goes beyond the elements of x")

    def formula(*i: PrimExpr) -> PrimExpr:
        place: PrimExpr = te.index(args.storage_offset)
        for index, stride in zip(i, args.strides, strict=True):
            place = place + index * stride
        at: list[PrimExpr] = []
        for size in reversed(x.shape):
            at.append(place % te.size(size))
            place = place // te.size(size)
        return x(*reversed(at))

    return kernel.compute(formula, "strided")


def _elements(dims: tuple[Dim, ...]) -> Dim:
    count: Dim = 1
    for dim in dims:
        count = count * dim
    return count


def _span(args: Arguments, dims: tuple[Dim, ...]) -> Dim:
    """How many elements of x the view reaches over; 0 where it has none itself."""
    last: Dim = args.storage_offset + 1
    for dim, stride in zip(dims, args.strides, strict=True):
        last = last + maximum(dim - 1, 0) * stride
    return 0 if any(dim == 0 for dim in dims) else last


@register_op(
    "as_strided",
    [
        Param("x"),
        Param("shape", "shape"),
        Param("strides", "attr", of="ints"),
        Param("storage_offset", "attr", 0, "int"),
    ],
    lowering=_lower_as_strided,
    pure=True,
    family="manipulate",
    numpy=lambda x, shape, strides, storage_offset: np.array(
        np.lib.stride_tricks.as_strided(
            x.reshape(-1)[storage_offset:], shape, [stride * x.itemsize for stride in strides]
        )
    ),
    examples=(
        example(f32(3, 4), (2, 3), [1, 4]),
        example(f32("n", 4), (2, 2), [2, 1], 1, least=2),
        example(f32(12), (4, 3), [2, 2]),
    ),
    precision=follow("x", reads=Reads.PART),
)
def as_strided(args: Arguments, context: TypeContext) -> TensorType:
    """Elements of x, seen as one row of memory, at storage_offset + i * strides[0] + j * strides[1] + ...

    Errors: ShapeError W205 negative strides or other numbers of them than of sizes, W201 a view that goes beyond x.
    """
    x = tensor(args, "x", context)
    dims, ndim = shape_of_arg(args, "shape", context)
    if min((*args.strides, args.storage_offset)) < 0 or (ndim >= 0 and len(args.strides) != ndim):
        raise shape_error(args, f"a stride of at least 0 for each of {ndim} sizes, got {list(args.strides)}", "W205")
    own = dims_of(x)
    if dims is not None and own is not None:
        reached = f"{args.name}: the elements that the view reaches"
        context.require_le(_span(args, dims), _elements(own), reached, args.span)
    return TensorType(dims, x.dtype, ndim)
