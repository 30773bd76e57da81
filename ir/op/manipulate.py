"""Operators that rearrange elements: shapes change, values do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from weft.ir import te
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of, type_text
from weft.ir.dim import (
    Dim,
    DimExpr,
    Facts,
    bounds,
    ceildiv,
    floordiv,
    floormod,
    free_symbols,
    joined_axes,
    maximum,
    minimum,
    operation,
    product,
    prove_equal,
    prove_le,
    prove_lt,
    prove_nonnegative,
    same,
    symbol,
)
from weft.ir.graph import Expr, Tuple, TupleGetItem
from weft.ir.op.common import (
    Dims,
    Immediate,
    Kernel,
    Operand,
    axes_of,
    axis_of,
    broadcast_load,
    example,
    f32,
    kernel_lowering,
    require_known_rank,
    require_rank,
    same_dtype,
    shape_error,
    shape_of_arg,
    tensor,
    tensor_of_shape,
    tensors,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.layout_rules.families import along, concatenating, expanding, permuting, squeezing
from weft.ir.op.precision import Reads, follow
from weft.ir.op.registry import OPS, register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType

__all__ = [
    "UNLIMITED",
    "extent",
    "from_start",
    "inside",
    "is_one_element",
    "moved",
    "negative_boundary",
    "regroup",
    "split_index",
]

# ---------------------------------------------------------------------------------------------------------------------
# Reshaping
# ---------------------------------------------------------------------------------------------------------------------


def _equal(a: Dim, b: Dim, context: TypeContext) -> bool:
    return prove_equal(a, b, context.facts) is True


def regroup(source: Dims, target: Dims, indices: Sequence[PrimExpr], context: TypeContext) -> list[PrimExpr]:
    """The index into a row-major tensor of shape `source` of what stands at `indices` in shape `target`.

    Axes are joined and split in groups (`joined_axes`); only what does not come apart is flattened as a whole.
    """
    found: list[PrimExpr] = []
    for parts, joined in joined_axes(source, target, lambda a, b: _equal(a, b, context)):
        flat: PrimExpr | None = None
        for axis in joined:
            flat = indices[axis] if flat is None else flat * te.size(target[axis]) + indices[axis]
        found += split_index(te.size(0) if flat is None else flat, tuple(source[axis] for axis in parts))
    return found


def split_index(flat: PrimExpr, dims: Dims, value: Callable[[Dim], PrimExpr] = te.size) -> list[PrimExpr]:
    """The indices of a row-major position; `value` gives dimensions over the symbols of a kernel."""
    found: list[PrimExpr] = []
    for position, size in enumerate(reversed(dims)):
        last = position == len(dims) - 1
        found.append(value(0) if size == 1 else flat if last else flat % value(size))
        if not last and size != 1:
            flat = flat // value(size)
    return found[::-1]


def _without_zeros(args: Arguments, dims: Dims | None, wanted: Dims) -> Dims:
    """A shape in which 0 stands for the size of x on that axis, unless x is empty."""
    if 0 not in wanted or dims is None or 0 in dims:
        return wanted
    if any(size == 0 for size in wanted[len(dims) :]):
        raise shape_error(args, f"a 0 in {wanted} stands for an axis that x, of {len(dims)}, does not have", "W205")
    return tuple(dims[axis] if size == 0 else size for axis, size in enumerate(wanted))


def _reshaped(args: Arguments, x: TensorType, wanted: Dims, context: TypeContext) -> Dims | None:
    """The sizes that a reshape gives, with 0 and -1 resolved; None where that needs a size that is not known."""
    wanted = _without_zeros(args, dims_of(x), wanted)
    if any(isinstance(dim, int) and dim < -1 for dim in wanted) or sum(dim == -1 for dim in wanted) > 1:
        raise shape_error(
            args, f"cannot reshape to {wanted}", "W205", "at most one size may be -1, the others are not negative"
        )
    dims = dims_of(x)
    if -1 not in wanted:
        if dims is not None:
            context.require_equal(product(dims), product(wanted), f"{args.name}: numbers of elements", args.span)
        return wanted
    if dims is None:
        return None
    rest = product(dim for dim in wanted if not (isinstance(dim, int) and dim == -1))
    if rest == 0:
        raise shape_error(args, f"the size -1 in {wanted} is not determined: another size is 0", "W205")
    context.require_equal(
        floormod(product(dims), rest), 0, f"{args.name}: {product(dims)} elements divide by {rest}", args.span
    )
    return tuple(floordiv(product(dims), rest) if isinstance(dim, int) and dim == -1 else dim for dim in wanted)


def _numpy_reshape(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if -1 not in shape and math.prod(shape) == x.size:
        return np.reshape(x, shape)
    kept = [axis for axis, size in enumerate(shape) if size == 0 and axis < x.ndim]
    sizes = [x.shape[axis] if axis in kept else size for axis, size in enumerate(shape)]
    if -1 in shape and kept:  # of an empty tensor, too, what is left is told by the other axes
        left = math.prod(size for axis, size in enumerate(x.shape) if axis not in kept)
        rest = math.prod(size for axis, size in enumerate(shape) if axis not in kept and size != -1)
        sizes[sizes.index(-1)] = left // rest
    return np.reshape(x, sizes if -1 in sizes or math.prod(sizes) == x.size else shape)


@kernel_lowering
def _lower_reshape(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    x = kernel.input("x")
    source = dims_of(tensor(args, "x", context)) or ()
    wanted = ", ".join(map(str, kernel.dims))
    kernel.require_equal(product(source), product(kernel.dims), f"{product(source)} elements do not fill ({wanted})")
    return kernel.compute(lambda *i: x(*regroup(source, kernel.dims, i, context)))


@register_op(
    "reshape",
    [Param("x"), Param("shape", "shape")],
    lowering=_lower_reshape,
    numpy=_numpy_reshape,
    pure=True,
    selects="x",
    examples=(
        example(f32(2, 6), (3, 4)),
        example(f32("n", 4, 3), (0, -1)),
        example(f32(2, 3, 4), (0, 0, 2, 2)),
        example(f32("n", 4), (-1, 2)),
        example(f32("n", 2, 3), (-1, 6)),
        example(f32(2, 3, 4), (2, 12)),
        example(f32(), (1, 1)),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def reshape(args: Arguments, context: TypeContext) -> TensorType:
    """The elements in row-major order under another shape.

    One size may be -1, which is computed; 0 is the size that x has on that axis (or, where x is empty, 0).

    Errors: ShapeError W201 when the numbers of elements differ, W205 for an impossible shape.
    """
    x = tensor(args, "x", context)
    dims, _ = shape_of_arg(args, "shape", context)
    if dims is None:
        return tensor_of_shape(args, "shape", context, x.dtype, vdevice=x.vdevice)
    return TensorType(_reshaped(args, x, dims, context), x.dtype, len(dims), x.vdevice)


def _moved(x: TensorType, dims: Dims | None, ndim: int = -1) -> TensorType:
    """The type of a rearranged x."""
    return TensorType(dims, x.dtype, ndim if dims is None else len(dims), x.vdevice)


@kernel_lowering
def _lower_regrouped(kernel: Kernel) -> PrimFunc | None:
    context = kernel.context
    x = kernel.input("x")
    return kernel.compute(lambda *i: x(*regroup(x.shape, kernel.dims, i, context)))


@register_op(
    "flatten",
    [Param("x")],
    lowering=_lower_regrouped,
    numpy=np.ravel,
    pure=True,
    selects="x",
    examples=(example(f32(2, 3, 4)), example(f32("n", 4)), example(f32(3)), example(f32())),
    precision=follow("x", reads=Reads.WHOLE),
)
def flatten(args: Arguments, context: TypeContext) -> TensorType:
    """All elements in row-major order, in one dimension: (n, 4) becomes (4 * n,)."""
    x = tensor(args, "x", context)
    dims = () if x.ndim == 0 else dims_of(x)
    return _moved(x, None if dims is None else (product(dims),), 1)


@kernel_lowering
def _lower_permute(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    axes = _permutation(args, x.ndim)
    return kernel.compute(lambda *i: x(*(i[axes.index(axis)] for axis in range(x.ndim))))


def _permutation(args: Arguments, ndim: int) -> tuple[int, ...]:
    if args.axes is None:
        return tuple(reversed(range(ndim)))
    axes = axes_of(args, args.axes, ndim)
    if len(axes) != ndim:
        raise shape_error(args, f"{len(axes)} axes for {ndim} dimensions", "W204")
    return axes


@register_op(
    "permute_dims",
    [Param("x"), Param("axes", "attr", None, "ints?")],
    lowering=_lower_permute,
    numpy=lambda x, axes: np.transpose(x, axes),
    pure=True,
    selects="x",
    layout=permuting,
    examples=(example(f32(2, 3)), example(f32("n", 3, "m"), [2, 0, 1]), example(f32("n", 4), axes=[-1, 0])),
    precision=follow("x", reads=Reads.WHOLE),
)
def permute_dims(args: Arguments, context: TypeContext) -> TensorType:
    """The dimensions in another order; reversed when no axes are given.

    Errors: ShapeError W202 axes of an unknown rank, W203 an axis out of range, W204 axes that are no permutation.
    """
    x = tensor(args, "x", context)
    if x.ndim < 0 and args.axes is not None:
        require_known_rank(args, "x", x)
    if x.ndim < 0:
        return _moved(x, None)
    axes = _permutation(args, x.ndim)
    dims = dims_of(x)
    return _moved(x, None if dims is None else tuple(dims[axis] for axis in axes), x.ndim)


@kernel_lowering
def _lower_expand(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    new = axes_of(args, args.axis, len(kernel.dims))
    return kernel.compute(lambda *i: x(*(index for axis, index in enumerate(i) if axis not in new)))


@register_op(
    "expand_dims",
    [Param("x"), Param("axis", "attr", of="ints")],
    lowering=_lower_expand,
    numpy=lambda x, axis: np.expand_dims(x, axis),
    pure=True,
    selects="x",
    layout=expanding,
    examples=(example(f32(2, 3), 1), example(f32("n", 4), [0, -1]), example(f32(), 0)),
    precision=follow("x", reads=Reads.WHOLE),
)
def expand_dims(args: Arguments, context: TypeContext) -> TensorType:
    """New dimensions of size 1 at the given positions of the result.

    Errors: ShapeError W203, W204 for the axes.
    """
    x = tensor(args, "x", context)
    if x.ndim < 0:
        return _moved(x, None)
    count = x.ndim + len(args.axis)
    new = axes_of(args, args.axis, count)
    dims = dims_of(x)
    if dims is None:
        return _moved(x, None, count)
    rest = iter(dims)
    return _moved(x, tuple(1 if axis in new else next(rest) for axis in range(count)))


def _squeezed(args: Arguments, x: TensorType) -> tuple[int, ...]:
    """The axes that a squeeze removes: the same wherever the call stands, whatever is known of symbols there."""
    if args.axis is not None:
        return axes_of(args, args.axis, x.ndim)
    dims = dims_of(x) or ()
    return tuple(axis for axis, dim in enumerate(dims) if prove_equal(dim, 1) is True)


@kernel_lowering
def _lower_squeeze(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    ty = tensor(args, "x", context)
    gone = _squeezed(args, ty)
    x = kernel.input("x", tuple(1 if axis in gone else dim for axis, dim in enumerate(dims_of(ty) or ())))

    def element(*i: PrimExpr) -> PrimExpr:
        kept = iter(i)
        return x(*(0 if axis in gone else next(kept) for axis in range(x.ndim)))

    return kernel.compute(element)


@register_op(
    "squeeze",
    [Param("x"), Param("axis", "attr", None, "ints?")],
    lowering=_lower_squeeze,
    numpy=lambda x, axis: np.squeeze(x, axis),
    pure=True,
    selects="x",
    layout=squeezing,
    examples=(
        example(f32(2, 1, 3, 1)),
        example(f32("n", 1, 4), 1),
        example(f32(1, "n"), [0]),
        example(f32("n", 4), [0]),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def squeeze(args: Arguments, context: TypeContext) -> TensorType:
    """Dimensions of size 1 removed: those named, which must be 1 (a run-time check where that is not known), else all
    that are known to be 1. A symbolic size that is 1 by chance stays.

    Errors: ShapeError W201 a named size that is not 1, W203, W204 for the axes.
    """
    x = tensor(args, "x", context)
    dims = dims_of(x)
    if dims is None:
        return _moved(x, None, -1 if args.axis is None or x.ndim < 0 else x.ndim - len(_squeezed(args, x)))
    gone = _squeezed(args, x)
    for axis in gone:
        context.require_equal(dims[axis], 1, f"{args.name}: size of axis {axis}", args.span)
    return _moved(x, tuple(dim for axis, dim in enumerate(dims) if axis not in gone))


@kernel_lowering
def _lower_broadcast_to(kernel: Kernel) -> PrimFunc | None:
    # The result has the sizes that were asked for, so the kernel asserts what shared symbols would say in its shapes.
    x = kernel.input("x")
    for size, target in zip(x.shape, kernel.dims[len(kernel.dims) - x.ndim :], strict=True):
        if size != 1:
            kernel.require_equal(size, target, f"size {size} is not {target}")
    return kernel.compute(lambda *i: broadcast_load(x, i))


@register_op(
    "broadcast_to",
    [Param("x"), Param("shape", "shape")],
    lowering=_lower_broadcast_to,
    numpy=np.broadcast_to,
    pure=True,
    selects="x",
    examples=(
        example(f32(3), (2, 3)),
        example(f32(1, 4), (symbol("n"), 4)),
        example(f32("n", 4), (2, symbol("m"), 4)),
        example(f32(), (symbol("n"), 2)),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def broadcast_to(args: Arguments, context: TypeContext) -> TensorType:
    """The elements repeated along axes of size 1 and along new leading axes.

    Sizes other than 1 must be those of the result: proved, refuted (ShapeError W201), or checked at run time.
    """
    x = tensor(args, "x", context)
    wanted, ndim = shape_of_arg(args, "shape", context)
    dims = dims_of(x)
    if x.ndim > ndim >= 0:
        raise shape_error(args, f"cannot broadcast {type_text(x)} to {ndim} dimensions")
    if wanted is None or dims is None:
        return tensor_of_shape(args, "shape", context, x.dtype, vdevice=x.vdevice)
    for size, target in zip(dims, wanted[len(wanted) - len(dims) :], strict=True):
        if size != 1:
            context.require_equal(size, target, f"{args.name}: sizes", args.span)
    return _moved(x, wanted)


# ---------------------------------------------------------------------------------------------------------------------
# Joining and splitting
# ---------------------------------------------------------------------------------------------------------------------


_MOST_PARTS = 32
"""The most tensors that one kernel joins: it looks for each element's part, and where a part begins is a sum of sizes,
so that kernel and time grow with the square of their number."""


@kernel_lowering
def _lower_concat(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    types = tensors(args, "tensors", context)
    if len(types) > _MOST_PARTS:
        return None
    if args.axis is None:
        operands = kernel.inputs("tensors")
        sizes = [product(operand.shape) for operand in operands]

        def flat_element(i: PrimExpr) -> PrimExpr:
            return _choose(i, sizes, [partial(_at_flat, x) for x in operands])

        return kernel.compute(flat_element)
    axis = axis_of(args, args.axis, len(kernel.dims))
    sizes = [(dims_of(ty) or ())[axis] for ty in types]
    shapes = [(*kernel.dims[:axis], size, *kernel.dims[axis + 1 :]) for size in sizes]
    operands = kernel.inputs("tensors", shapes)

    def element(*i: PrimExpr) -> PrimExpr:
        def load(x: Operand, p: PrimExpr) -> PrimExpr:
            return x(*i[:axis], p, *i[axis + 1 :])

        return _choose(i[axis], sizes, [partial(load, x) for x in operands])

    return kernel.compute(element)


def _at_flat(x: Operand, p: PrimExpr) -> PrimExpr:
    return x(*split_index(p, x.shape))


def _concat_groups(args: Arguments, builder: BlockBuilder) -> Expr:
    """Many tensors as groups of neighbours, joined one by one and then with each other.

    The size of a group that is a sum of symbols gets a name: every other size would be a sum of all symbols before it.
    """
    count = len(tensors(args, "tensors", builder.types))
    if count <= _MOST_PARTS:
        return args.call
    given = args.tensors
    parts = given.fields if isinstance(given, Tuple) else [TupleGetItem(given, index) for index in range(count)]
    groups = -(-count // _MOST_PARTS)
    cuts = [count * index // groups for index in range(groups + 1)]

    def joined(members: Sequence[Expr]) -> Expr:
        return OPS["concat"].bind([Tuple(tuple(members))], {"axis": args.axis})

    def named(group: Expr) -> Expr:
        ty = builder.type_of(group)
        dims = dims_of(ty)
        if dims is None or not isinstance(ty, TensorType):
            return group
        axis = axis_of(args, args.axis or 0, len(dims))
        if len(free_symbols(dims[axis])) < 2:
            return group
        size = symbol(builder.get_unique_name("joined_size"))
        dims = (*dims[:axis], size, *dims[axis + 1 :])
        return builder.match_cast(group, TensorType(dims, ty.dtype, vdevice=ty.vdevice))

    return joined([named(joined(parts[start:end])) for start, end in itertools.pairwise(cuts)])


def _choose(position: PrimExpr, sizes: Sequence[Dim], loads: Sequence[Callable[[PrimExpr], PrimExpr]]) -> PrimExpr:
    """The element at a position of parts that stand one after the other."""
    starts = [product([1]) * 0]
    for size in sizes:
        starts.append(starts[-1] + size)
    result = loads[-1](position - te.size(starts[-2]) if len(sizes) > 1 else position)
    for index in reversed(range(len(sizes) - 1)):
        inner = loads[index](position - te.size(starts[index]) if index else position)
        result = te.if_then_else(position < te.size(starts[index + 1]), inner, result)
    return result


@register_op(
    "concat",
    [Param("tensors", "exprs", of="several"), Param("axis", "attr", 0, "int?")],
    lowering=_lower_concat,
    decompose=_concat_groups,
    numpy=lambda tensors, axis: np.concatenate(tensors, axis),
    pure=True,
    layout=concatenating,
    examples=(
        example((f32(2, 3), f32(4, 3))),
        example((f32("n", 4), f32("m", 4), f32(2, 4))),
        example((f32("n", 4), f32("n", 2)), axis=-1),
        example((f32("n", 4), f32("m", 4)), axis=1),
        example((f32("n"), f32(3)), axis=None),
    ),
    precision=follow("tensors", reads=Reads.WHOLE),
)
def concat(args: Arguments, context: TypeContext) -> TensorType:
    """Tensors one after the other along an axis, which vectors need not name.

    The other sizes must agree: proved, refuted (ShapeError W201), or checked at run time. Errors: W202 ranks that
    differ, W203 the axis, W205 no tensors; DTypeError W320.
    """
    types = tensors(args, "tensors", context)
    if not types:
        raise shape_error(args, "nothing to concatenate", "W205")
    dtype = same_dtype(args, *types)
    if args.axis is None:
        for position, ty in enumerate(types):
            require_rank(args, f"tensors[{position}]", ty, 1)
        sizes = [None if dims_of(ty) is None else product(dims_of(ty) or ()) for ty in types]
        total = None if None in sizes else (sum((size for size in sizes if size is not None), 0),)
        return TensorType(total, dtype, 1)
    ndim = _common_rank(args, types)
    if ndim < 0:
        return TensorType(None, dtype)
    axis = axis_of(args, args.axis, ndim)
    if any(dims_of(ty) is None for ty in types):
        return TensorType(None, dtype, ndim)
    shapes = [dims_of(ty) or () for ty in types]
    rest = [
        _agreed(args, [shape[d] for shape in shapes], f"size of axis {d}", context) if d != axis else 0
        for d in range(ndim)
    ]
    total = sum((shape[axis] for shape in shapes), 0)
    return TensorType((*rest[:axis], total, *rest[axis + 1 :]), dtype)


def _common_rank(args: Arguments, types: Sequence[TensorType]) -> int:
    ranks = {ty.ndim for ty in types if ty.ndim >= 0}
    if len(ranks) > 1:
        raise shape_error(args, f"the tensors have {' and '.join(map(str, sorted(ranks)))} dimensions")
    return ranks.pop() if ranks else -1


def _agreed(args: Arguments, dims: Sequence[Dim], what: str, context: TypeContext) -> Dim:
    """The one size that all must be: a number where one is."""
    chosen = next((dim for dim in dims if isinstance(dim, int)), dims[0])
    for dim in dims:
        context.require_equal(chosen, dim, f"{args.name}: {what}", args.span)
    return chosen


@kernel_lowering
def _lower_stack(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    axis = axis_of(args, args.axis, len(kernel.dims))
    rest = (*kernel.dims[:axis], *kernel.dims[axis + 1 :])
    operands = kernel.inputs("tensors", [rest] * len(tensors(args, "tensors", context)))

    def element(*i: PrimExpr) -> PrimExpr:
        def load(x: Operand, p: PrimExpr) -> PrimExpr:
            return x(*i[:axis], *i[axis + 1 :])

        return _choose(i[axis], [1] * len(operands), [partial(load, x) for x in operands])

    return kernel.compute(element)


@register_op(
    "stack",
    [Param("tensors", "exprs", of="several"), Param("axis", "attr", 0, "int")],
    lowering=_lower_stack,
    numpy=lambda tensors, axis: np.stack(tensors, axis),
    pure=True,
    examples=(example((f32(2, 3), f32(2, 3))), example((f32("n", 4), f32("m", 4), f32("n", 4)), axis=-1)),
    precision=follow("tensors", reads=Reads.WHOLE),
)
def stack(args: Arguments, context: TypeContext) -> TensorType:
    """Tensors of one shape along a new axis.

    Errors: ShapeError W201 sizes that differ, W202 ranks, W203 the axis, W205 no tensors; DTypeError W320.
    """
    types = tensors(args, "tensors", context)
    if not types:
        raise shape_error(args, "nothing to stack", "W205")
    dtype = same_dtype(args, *types)
    ndim = _common_rank(args, types)
    if ndim < 0 or any(dims_of(ty) is None for ty in types):
        return TensorType(None, dtype, ndim + 1 if ndim >= 0 else -1)
    axis = axis_of(args, args.axis, ndim + 1)
    shapes = [dims_of(ty) or () for ty in types]
    rest = [_agreed(args, [shape[d] for shape in shapes], f"size of axis {d}", context) for d in range(ndim)]
    return TensorType((*rest[:axis], len(types), *rest[axis:]), dtype)


_MOST_SPLIT_PARTS = 1 << 16
"""Of a split: each is a result with a type and a loop of its own."""


def _sections(args: Arguments, size: Dim) -> list[tuple[Dim, Dim]]:
    """(start, size) of every part of a split axis, as `_assumed` has it."""
    parts = _clamped_sections(args, size)
    if not isinstance(args.indices_or_sections, tuple):
        return parts
    return [(start, 1 if is_one_element(length) else length) for start, length in parts]


def _clamped_sections(args: Arguments, size: Dim) -> list[tuple[Dim, Dim]]:
    wanted = args.indices_or_sections
    if not isinstance(wanted, tuple):
        part = ceildiv(size, wanted)
        starts = [_least(part * index, size) for index in range(wanted)] + [size]
    else:
        starts = [0, *(inside(index, size) for index in cast("tuple[Dim, ...]", wanted)), size]
    return [(start, _distance(start, stop)) for start, stop in itertools.pairwise(starts)]


def _least(a: Dim, b: Dim) -> Dim:
    """The smaller dimension, without a `min` where it is known which that is."""
    if prove_le(a, b) is True:
        return a
    return b if prove_le(b, a) is True else minimum(a, b)


def _distance(start: Dim, stop: Dim) -> Dim:
    """stop - start, or 0 where that is negative."""
    return stop - start if prove_le(start, stop) is True else maximum(stop - start, 0)


def moved(dim: Dim, distance: Dim) -> Dim:
    """dim + distance; the arguments of a `min` or `max` are moved, which keeps sizes readable.

    >>> n = symbol("n")
    >>> moved(maximum(n - 1, 0), -1)
    max(n - 2, -1)
    """
    kind, operands = operation(dim)
    if kind not in ("min", "max"):
        return dim + distance
    return (minimum if kind == "min" else maximum)(*(operand + distance for operand in operands))


def extent(start: Dim, stop: Dim) -> Dim:
    """The number of elements from start to stop, boundaries that are not negative; 0 where they are in the other order.

    >>> n = symbol("n")
    >>> extent(1, n), extent(maximum(n - 3, 0), n), extent(2, minimum(n, 8))
    (max(n - 1, 0), min(n, 3), max(min(n - 2, 6), 0))
    """
    stop, clamped = _unclamped(stop)
    start, not_below = _unclamped(start)
    length = moved(stop, -start)
    if not_below:  # stop - max(start, 0)
        length = minimum(length, stop)
    if not clamped and prove_nonnegative(length) is True:
        return length
    return maximum(length, 0)


def _unclamped(boundary: Dim) -> tuple[Dim, bool]:
    """d of a boundary max(d, 0), and whether it is one."""
    kind, operands = operation(boundary)
    if kind == "max" and len(operands) == 2 and 0 in operands:
        return next(operand for operand in operands if isinstance(operand, DimExpr)), True
    return boundary, False


def inside(index: Dim, size: Dim) -> Dim:
    """A slice boundary as Python reads it: negative ones count from the end, all are clamped to [0, size]."""
    if isinstance(index, int) and abs(index) >= UNLIMITED:
        return size if index > 0 else 0
    low = from_start(index, size)
    return low if prove_le(low, size) is True else minimum(low, size)


def from_start(index: Dim, size: Dim) -> Dim:
    """A slice boundary counted from the start, and not below it; it may be beyond the end.

    Of a boundary whose sign depends on the sizes, only `negative_boundary` tells whether it may be taken as it is.
    """
    if isinstance(index, int):
        counted = index if index >= 0 else moved(size, index)
    elif negative_boundary(index, size):
        return index  # assumed not to be negative
    elif prove_nonnegative(index) is True or holds_for_large_sizes(0, index):
        counted = index
    elif prove_lt(index, 0) is True:
        counted = size + index
    else:
        # 1 where the index is negative, else 0.
        negative = 1 - minimum(maximum(index + 1, 0), 1)
        counted = index + size * negative
    return counted if prove_nonnegative(counted) is True else maximum(counted, 0)


def negative_boundary(index: Dim, size: Dim) -> bool:
    """Whether a boundary such as `n - 3` is assumed not to be negative: only a few small sizes make it so, and counting
    from the end, as a negative one would, would give another slice there.
    """
    if not isinstance(index, DimExpr) or prove_nonnegative(index) is True or not holds_for_large_sizes(0, index):
        return False
    return prove_le(size + index, 0, Facts().assume_le(index, -1)) is not True


def is_one_element(length: Dim) -> bool:
    """Whether a part of an axis that has at most one element is assumed to have it: `min(n, 1)` of `x[:1]`."""
    return isinstance(length, DimExpr) and bounds(length)[1] == 1 and holds_for_large_sizes(1, length)


def holds_for_large_sizes(low: Dim, high: Dim) -> bool:
    """Whether low <= high but where a symbol is small: what a program may be meant to assume.

    >>> n, m = symbol("n"), symbol("m")
    >>> holds_for_large_sizes(3, n), holds_for_large_sizes(m, n)
    (True, False)
    """
    facts = Facts()
    for name in {*free_symbols(low), *free_symbols(high)}:
        facts = facts.assume_le(_SMALL, symbol(name))
    return prove_le(low, high, facts) is True


_SMALL = 4096
"""A size that a program may be meant not to have is below this: the 0 of `n - 1`, all below the window of `n - 128`."""

UNLIMITED = 1 << 62
"""Boundaries from here on mean "to the end" (or the start): exporters write the greatest and the least int64."""


@kernel_lowering
def _lower_split(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    assert not isinstance(x, Immediate)
    axis = axis_of(args, args.axis, x.ndim)

    def part(start: Dim, size: Dim) -> te.Tensor:
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return te.compute(shape, lambda *i: x(*i[:axis], i[axis] + te.size(start), *i[axis + 1 :]), "out")

    for low, high, message in _assumed(args, x.shape[axis]):
        kernel.require_le(low, high, message)
    return kernel.finish(*(part(start, size) for start, size in _sections(args, x.shape[axis])))


def _assumed(args: Arguments, size: Dim) -> list[tuple[Dim, Dim, str]]:
    """What a split assumes of symbolic sizes, as slices do: pairs (a, b) with a <= b, each with what it means."""
    wanted = args.indices_or_sections
    if not isinstance(wanted, tuple):
        return []
    open_positions = [index for index in cast("tuple[Dim, ...]", wanted) if negative_boundary(index, size)]
    lengths = [length for _, length in _clamped_sections(args, size)]
    return [
        *((0, index, f"the position {index} must not be negative") for index in open_positions),
        *((1, part, f"part {i} must have its one element") for i, part in enumerate(lengths) if is_one_element(part)),
    ]


def _numpy_split(x: np.ndarray, indices_or_sections: int | tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    if isinstance(indices_or_sections, int):
        part = -(-x.shape[axis] // indices_or_sections)
        indices_or_sections = tuple(part * index for index in range(1, indices_or_sections))
    return tuple(np.split(x, indices_or_sections, axis))


@register_op(
    "split",
    [Param("x"), Param("indices_or_sections", "attr", of="sections"), Param("axis", "attr", 0, "int")],
    lowering=_lower_split,
    numpy=_numpy_split,
    pure=True,
    layout=along("x"),
    examples=(
        example(f32(6, 2), 3),
        example(f32("n", 2), 2),
        example(f32(2, "n"), 3, axis=1),
        example(f32("n", 4), [1, 3], axis=-1),
        example(f32("n"), [2, symbol("n") - 1], least=3),
        example(f32("n"), [2, 5]),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def split(args: Arguments, context: TypeContext) -> TupleType:
    """Parts of a tensor along an axis: so many of ceil(size / sections) each (the last ones may be smaller, or empty),
    or cut at the given positions, which are read as in Python slices.

    Errors: ShapeError W203 the axis, W205 fewer than one section, or more than 65,536.
    """
    x = tensor(args, "x", context)
    wanted = args.indices_or_sections
    if isinstance(wanted, int) and wanted < 1:
        raise shape_error(args, f"cannot split into {wanted} parts", "W205")
    if isinstance(wanted, int) and wanted > _MOST_SPLIT_PARTS:
        raise shape_error(
            args, f"cannot split into {wanted:,} parts, a tuple has at most {_MOST_SPLIT_PARTS:,}", "W205"
        )
    count = wanted if isinstance(wanted, int) else len(wanted) + 1
    axis = axis_of(args, args.axis, x.ndim) if x.ndim >= 0 else 0
    dims = dims_of(x)
    if dims is None:
        return TupleType((_moved(x, None, x.ndim),) * count)
    for low, high, message in _assumed(args, dims[axis]):
        context.require_le(low, high, f"{args.name}: {message}", args.span)
    parts = _sections(args, dims[axis])
    return TupleType(tuple(_moved(x, (*dims[:axis], size, *dims[axis + 1 :])) for _, size in parts))


# ---------------------------------------------------------------------------------------------------------------------
# Repeating and reversing
# ---------------------------------------------------------------------------------------------------------------------


def _tile_factors(args: Arguments, ndim: int) -> tuple[Dim, ...]:
    return (1,) * (ndim - len(args.repeats)) + args.repeats


def _require_counts(args: Arguments, counts: Sequence[Dim]) -> None:
    for count in counts:
        if isinstance(count, int) and count < 0:
            raise shape_error(args, f"cannot repeat {count} times", "W205")


@kernel_lowering
def _lower_tile(kernel: Kernel) -> PrimFunc | None:
    x = kernel.input("data")
    return kernel.compute(
        lambda *i: (
            x(
                *(
                    0 if size == 1 else index if same(size, out) else index % te.size(size)
                    for size, out, index in zip(x.shape, kernel.dims[-x.ndim :], i[len(i) - x.ndim :], strict=True)
                )
            )
            if x.ndim
            else x()
        )
    )


@register_op(
    "tile",
    [Param("data"), Param("repeats", "attr", of="dims")],
    lowering=_lower_tile,
    numpy=lambda data, repeats: np.tile(data, repeats),
    pure=True,
    selects="data",
    examples=(
        example(f32(2, 3), [2, 2]),
        example(f32("n", 4), 3),
        example(f32("n"), [2, symbol("m")]),
        example(f32(2, 1, 3), [2, 1]),
    ),
    precision=follow("data", reads=Reads.WHOLE),
)
def tile(args: Arguments, context: TypeContext) -> TensorType:
    """The tensor repeated as a whole along each axis (the last ones, when fewer counts are given), as in NumPy."""
    x = tensor(args, "data", context)
    _require_counts(args, args.repeats)
    ndim = max(x.ndim, len(args.repeats)) if x.ndim >= 0 else -1
    dims = dims_of(x)
    if dims is None:
        return _moved(x, None, ndim)
    padded = (1,) * (ndim - len(dims)) + dims
    return _moved(x, tuple(dim * factor for dim, factor in zip(padded, _tile_factors(args, ndim), strict=True)))


@kernel_lowering
def _lower_repeat(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("data")
    count = te.size(args.repeats if args.repeats != 0 else 1)
    if args.axis is None:

        def repeated(i: PrimExpr) -> PrimExpr:
            return x(*split_index(i // count, x.shape))

        return kernel.compute(repeated)
    axis = axis_of(args, args.axis, x.ndim)
    return kernel.compute(lambda *i: x(*i[:axis], i[axis] // count, *i[axis + 1 :]))


@register_op(
    "repeat",
    [Param("data"), Param("repeats", "attr", of="dim"), Param("axis", "attr", None, "int?")],
    lowering=_lower_repeat,
    numpy=lambda data, repeats, axis: np.repeat(data, repeats, axis),
    pure=True,
    selects="data",
    examples=(
        example(f32(2, 3), 2),
        example(f32("n", 4), 3, axis=0),
        example(f32("n", 4), symbol("m"), axis=-1),
        example(f32(2), 0),
    ),
    precision=follow("data", reads=Reads.WHOLE),
)
def repeat(args: Arguments, context: TypeContext) -> TensorType:
    """Every element repeated along an axis (of the flattened tensor when the axis is None), as in NumPy."""
    x = tensor(args, "data", context)
    _require_counts(args, (args.repeats,))
    dims = dims_of(x)
    if args.axis is None:
        return _moved(x, None if dims is None else (product(dims) * args.repeats,), 1)
    if x.ndim < 0:
        return _moved(x, None)
    axis = axis_of(args, args.axis, x.ndim)
    if dims is None:
        return _moved(x, None, x.ndim)
    return _moved(x, (*dims[:axis], dims[axis] * args.repeats, *dims[axis + 1 :]))


@kernel_lowering
def _lower_flip(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("data")
    axes = axes_of(args, args.axis, x.ndim)
    return kernel.compute(
        lambda *i: x(*(te.size(x.shape[d]) - 1 - index if d in axes else index for d, index in enumerate(i)))
    )


@register_op(
    "flip",
    [Param("data"), Param("axis", "attr", of="ints")],
    lowering=_lower_flip,
    numpy=lambda data, axis: np.flip(data, axis),
    pure=True,
    selects="data",
    layout=along("data"),
    examples=(example(f32(2, 3), 1), example(f32("n", 4), 0), example(f32("n", 4), [0, -1])),
    precision=follow("data", reads=Reads.WHOLE),
)
def flip(args: Arguments, context: TypeContext) -> TensorType:
    """The elements along the axes in reverse order. Errors: ShapeError W203, W204."""
    x = tensor(args, "data", context)
    if x.ndim >= 0:
        axes_of(args, args.axis, x.ndim)
    return x
