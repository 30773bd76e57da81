"""Elements chosen or set by several index tensors, by slices and by lengths; sums that undo a broadcast; grids.

Negative indices count from the end; one out of range stops the kernel with a BoundsError: there is no result then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, ceildiv, maximum, prove_equal, prove_le, symbol
from weft.ir.graph import Tuple, TupleGetItem
from weft.ir.kernel.prim import binary
from weft.ir.op.common import (
    Dims,
    Kernel,
    Operand,
    axis_of,
    broadcast,
    broadcast_load,
    broadcast_shape,
    example,
    f32,
    i64,
    kernel_lowering,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    shape_of_arg,
    tensor,
    tensors,
    typed,
    wrapped_index,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import Loops, index, joined, load, loops, loops_lowering, store, wrapped
from weft.ir.op.manipulate import extent, inside, negative_boundary
from weft.ir.op.precision import Reads, follow
from weft.ir.op.reductions.reduction import accumulator
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType, TupleType

__all__: list[str] = []


# ---------------------------------------------------------------------------------------------------------------------
# Index tensors
# ---------------------------------------------------------------------------------------------------------------------


def _index_types(args: Arguments, data: TensorType, context: TypeContext) -> tuple[list[TensorType], TensorType]:
    """The types of the index tensors, and their broadcast."""
    indices = tensors(args, "indices", context)
    if not indices:
        raise shape_error(args, "there are no indices", "W205")
    for position, ty in enumerate(indices):
        if ty.dtype is not None:
            require_dtype(args, "indices", ty, "integer")
        if data.ndim >= 0 and position >= data.ndim:
            raise shape_error(args, f"{len(indices)} indices of {data.ndim} dimensions")
    return indices, broadcast(args, context, *indices)


@kernel_lowering
def _lower_index_tensor(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    types, common = _index_types(args, tensor(args, "data", context), TypeContext(context.functions, context.facts))
    shape = dims_of(common) or ()
    data = kernel.input("data")
    operands = kernel.inputs("indices", [broadcast_shape(ty, shape) for ty in types])
    for axis, operand in enumerate(operands):
        kernel.check_indices(operand, data.shape[axis])

    def element(*i: PrimExpr) -> PrimExpr:
        at = i[: len(shape)]
        chosen = [wrapped_index(broadcast_load(x, at), data.shape[axis]) for axis, x in enumerate(operands)]
        return data(*chosen, *i[len(shape) :])

    return kernel.compute(element)


def _check_numpy(name: str, data: np.ndarray, indices: Sequence[np.ndarray]) -> None:
    for axis, part in enumerate(indices):
        size = data.shape[axis]
        if np.size(part) and (np.min(part) < -size or np.max(part) >= size):
            raise BoundsError(f"R.{name}: index out of range")


def _numpy_index_tensor(data: np.ndarray, indices: Sequence[np.ndarray]) -> np.ndarray:
    _check_numpy("index_tensor", data, indices)
    return np.asarray(data[tuple(indices)])


@register_op(
    "index_tensor",
    [Param("data"), Param("indices", "exprs", of="int")],
    lowering=_lower_index_tensor,
    numpy=_numpy_index_tensor,
    pure=True,
    examples=(
        example(f32(4, 3), (i64(5),), ranges={"indices": (-4, 3)}),
        example(f32("n", 5, 2), (i64("m", 1), typed("int32", 3)), ranges={"indices": (-1, 0)}, least=1),
        example(f32(4, 5, "n"), (i64("m"), i64("m")), ranges={"indices": (0, 3)}),
        example(f32(3, 4), (i64(), i64(2, 2)), ranges={"indices": (0, 2)}),
    ),
    precision=follow("data", reads=Reads.PART),
)
def index_tensor(args: Arguments, context: TypeContext) -> TensorType:
    """data[indices[0], indices[1], ...]: the elements at index tensors, which broadcast, along the leading axes.

    Shape: that of the broadcast indices, then the other axes of data. Errors: ShapeError W201, W202, W205 no indices;
    DTypeError W321; BoundsError.
    """
    data = tensor(args, "data", context)
    indices, common = _index_types(args, data, context)
    dims, shape = dims_of(data), dims_of(common)
    if dims is None or shape is None:
        ndim = data.ndim - len(indices) + common.ndim if min(data.ndim, common.ndim) >= 0 else -1
        return TensorType(None, data.dtype, ndim, data.vdevice)
    return TensorType((*shape, *dims[len(indices) :]), data.dtype, vdevice=data.vdevice)


def _put_shape(dims: Dims, shape: Dims, count: int) -> Dims:
    """The shape of what is put: the broadcast indices, then the other axes of data."""
    return (*shape, *dims[count:])


def _parts(args: Arguments, context: TypeContext) -> list[Any]:
    value = args.indices
    count = len(tensors(args, "indices", context))
    return list(value.fields) if isinstance(value, Tuple) else [TupleGetItem(value, n) for n in range(count)]


@loops_lowering
def _lower_index_put(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    types, common = _index_types(args, tensor(args, "data", context), TypeContext(context.functions, context.facts))
    shape = dims_of(common) or ()
    dims = dims_of(tensor(args, "data", context)) or ()
    given = dims_of(tensor(args, "values", context)) or ()
    wanted = _put_shape(dims, shape, len(types))
    data = frame.input("data")
    indices = frame.inputs("indices", _parts(args, context))
    values = frame.input("values")
    out = frame.output()
    for own, full in [(dims_of(ty) or (), shape) for ty in types] + [(given, wanted)]:
        for a, b in zip(own, full[len(full) - len(own) :], strict=True):
            if a != 1:
                frame.require_equal(a, b)

    def spread(own: Dims, i: Sequence[PrimExpr]) -> list[Any]:
        return [0 if size == 1 else at for size, at in zip(own, i[len(i) - len(own) :], strict=True)]

    sizes = [index(extent) for extent in out.shape[: len(types)]]

    def chosen(i: Sequence[PrimExpr]) -> list[PrimExpr]:
        return [load(part, spread(dims_of(ty) or (), i)) for part, ty in zip(indices, types, strict=True)]

    def check(i: Sequence[PrimExpr]) -> Stmt:
        return joined(*(frame.check_index(value, size) for value, size in zip(chosen(i), sizes, strict=True)))

    def put(i: Sequence[PrimExpr]) -> Stmt:
        at = [wrapped(value, size) for value, size in zip(chosen(i[: len(shape)]), sizes, strict=True)]
        target, value = [*at, *i[len(shape) :]], load(values, spread(given, i))
        return store(out, binary("add", load(out, target), value) if args.accumulate else value, target)

    def put_all(i: Sequence[PrimExpr]) -> Stmt:
        return joined(check(i), loops(extents[len(shape) :], lambda rest: put([*i, *rest])))

    extents = [frame.extent(dim) for dim in wanted]
    copy = loops(out.shape, lambda i: store(out, load(data, i), i))
    return frame.finish(copy, loops(extents[: len(shape)], put_all))


def _numpy_index_put(data: np.ndarray, indices: Sequence[np.ndarray], values: Any, accumulate: bool) -> np.ndarray:
    _check_numpy("index_put", data, indices)
    out = data.copy()
    shape = np.broadcast_shapes(*(part.shape for part in indices))
    chosen = [np.broadcast_to(part, shape) for part in indices]
    given = np.broadcast_to(values, (*shape, *data.shape[len(indices) :]))
    for at in np.ndindex(shape):
        target = tuple(int(part[at]) for part in chosen)
        out[target] = out[target] + given[at] if accumulate else given[at]
    return out


@register_op(
    "index_put",
    [Param("data"), Param("indices", "exprs", of="int"), Param("values"), Param("accumulate", "attr", False, "bool")],
    lowering=_lower_index_put,
    numpy=_numpy_index_put,
    pure=True,
    examples=(
        example(f32(4, 3), (i64(5),), f32(5, 3), ranges={"indices": (-4, 3)}),
        example(
            f32("n", 5, 2),
            (i64("m", 1), typed("int32", 3)),
            f32("m", 3, 1),
            accumulate=True,
            ranges={"indices": (-1, 0)},
            least=1,
        ),
        example(i64(6), (i64("m"),), i64("m"), accumulate=True, ranges={"indices": (0, 5)}),
        example(f32(3, 4), (i64(2), i64(2)), f32(), ranges={"indices": (0, 2)}),
    ),
)
def index_put(args: Arguments, context: TypeContext) -> TensorType:
    """A copy of data with data[indices[0], indices[1], ...] set to the values, or with the values added (accumulate).

    The index tensors broadcast; values broadcast to their shape followed by the other axes of data. Where an index
    occurs twice the last value in row-major order stays. Errors: ShapeError W201, W202, W205 no indices; DTypeError
    W320, W321; BoundsError.
    """
    data, values = tensor(args, "data", context), tensor(args, "values", context)
    same_dtype(args, data, values)
    if args.accumulate:
        require_dtype(args, "data", data, "number")
    indices, common = _index_types(args, data, context)
    dims, shape, given = dims_of(data), dims_of(common), dims_of(values)
    if dims is None or shape is None or given is None:
        return data
    wanted = _put_shape(dims, shape, len(indices))
    if len(given) > len(wanted):
        raise shape_error(args, f"values of {len(given)} dimensions for {len(wanted)}")
    for size, full in zip(given, wanted[len(wanted) - len(given) :], strict=True):
        if size != 1:
            context.require_equal(size, full, f"{args.name}: sizes of values", args.span)
    return data


# ---------------------------------------------------------------------------------------------------------------------
# Slices and sequences
# ---------------------------------------------------------------------------------------------------------------------


def _scattered_slice(args: Arguments, size: Dim) -> tuple[Dim, Dim, Dim]:
    """(start, stop, length) of the slice that is set."""
    start, stop = inside(args.start, size), inside(args.end, size)
    length = ceildiv(extent(start, stop), args.step)
    if prove_le(start, stop) is not True:
        stop = maximum(start, stop)
    return start, stop, length


def _open_boundaries(args: Arguments, size: Dim) -> list[tuple[str, Dim]]:
    """The boundaries that are assumed not to be negative."""
    named = {"start": args.start, "end": args.end}
    return [(label, boundary) for label, boundary in named.items() if negative_boundary(boundary, size)]


@kernel_lowering
def _lower_slice_scatter(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    data = kernel.input("input_tensor")
    axis = axis_of(args, args.axis, data.ndim)
    start, stop, length = _scattered_slice(args, data.shape[axis])
    for label, boundary in _open_boundaries(args, data.shape[axis]):
        kernel.require_le(0, boundary, f"{label} {boundary} must not be negative")
    given = dims_of(tensor(args, "src", context)) or ()
    src = kernel.input("src", (*data.shape[:axis], given[axis], *data.shape[axis + 1 :]))
    kernel.require_equal(given[axis], length, f"size {given[axis]} of src is not {length}")

    def element(*i: PrimExpr) -> PrimExpr:
        away = i[axis] - te.size(start)
        chosen = te.all(away >= 0, i[axis] < te.size(stop))
        if args.step != 1:
            chosen = te.all(chosen, te.equal(away % args.step, 0))
        value = src(*i[:axis], away // args.step, *i[axis + 1 :])
        return te.if_then_else(chosen, value, data(*i))

    return kernel.compute(element)


def _numpy_slice_scatter(data: np.ndarray, src: np.ndarray, start: int, end: int, step: int, axis: int) -> np.ndarray:
    out = data.copy()
    out[tuple(slice(start, end, step) if d == axis % data.ndim else slice(None) for d in range(data.ndim))] = src
    return out


@register_op(
    "slice_scatter",
    [
        Param("input_tensor"),
        Param("src"),
        Param("start", "attr", of="dim"),
        Param("end", "attr", of="dim"),
        Param("step", "attr", of="int"),
        Param("axis", "attr", 0, "int"),
    ],
    lowering=_lower_slice_scatter,
    numpy=_numpy_slice_scatter,
    pure=True,
    examples=(
        example(f32(6, 3), f32(2, 3), 1, 5, 2),
        example(f32("n", 5), f32("n", 2), -2, 1 << 62, 1, axis=1),
        example(f32("n"), f32("m"), 1, symbol("n"), 1, least=2),
        example(f32(4, 4), f32(4, 0), 3, 2, 1, axis=-1),
    ),
    precision=follow("input_tensor", "src", reads=Reads.WHOLE),
)
def slice_scatter(args: Arguments, context: TypeContext) -> TensorType:
    """A copy of the input with input[start:end:step] along an axis set to src; boundaries are those of Python slices.

    Errors: ShapeError W201 src of other sizes, W202 ranks, W203 the axis, W205 a step below 1; DTypeError W320.
    """
    data, src = tensor(args, "input_tensor", context), tensor(args, "src", context)
    same_dtype(args, data, src)
    if args.step < 1:
        raise shape_error(args, f"the step must be at least 1, got {args.step}", "W205")
    if data.ndim < 0:
        return data
    axis = axis_of(args, args.axis, data.ndim)
    require_rank(args, "src", src, data.ndim)
    dims, given = dims_of(data), dims_of(src)
    if dims is not None:
        for label, boundary in _open_boundaries(args, dims[axis]):
            context.require_le(0, boundary, f"{args.name}: {label} {boundary} must not be negative", args.span)
    if dims is None or given is None:
        return data
    for d, (size, own) in enumerate(zip(dims, given, strict=True)):
        wanted = _scattered_slice(args, size)[2] if d == axis else size
        context.require_equal(wanted, own, f"{args.name}: size of axis {d} of src", args.span)
    return data


@kernel_lowering
def _lower_reverse_sequence(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    along, batch = axis_of(args, args.seq_axis, data.ndim), axis_of(args, args.batch_axis, data.ndim)
    lengths = kernel.input("seq_lengths", (data.shape[batch],))

    def length(b: PrimExpr) -> PrimExpr:
        return te.cast(te.INDEX, lengths(b))

    def valid_length(b: PrimExpr) -> PrimExpr:
        return te.all(length(b) >= 0, length(b) <= size)

    size = te.size(data.shape[along])
    valid = te.check(
        lengths.shape,
        valid_length,
        f"{args.name}: a length is out of range",
        "BoundsError",
    )
    kernel.checks.append(valid)

    def element(*i: PrimExpr) -> PrimExpr:
        count = length(i[batch])
        place = te.select(i[along] < count, count - 1 - i[along], i[along])
        return data(*(place if d == along else at for d, at in enumerate(i)))

    return kernel.compute(element)


def _numpy_reverse_sequence(data: np.ndarray, lengths: np.ndarray, seq_axis: int, batch_axis: int) -> np.ndarray:
    if lengths.size and (lengths.min() < 0 or lengths.max() > data.shape[seq_axis]):
        raise BoundsError("R.reverse_sequence: a length is out of range")
    out = data.copy()
    source, target = (np.moveaxis(x, (batch_axis, seq_axis), (0, 1)) for x in (data, out))
    for row, count in enumerate(lengths):
        target[row, :count] = source[row, :count][::-1]
    return out


@register_op(
    "reverse_sequence",
    [
        Param("data"),
        Param("seq_lengths", of="int"),
        Param("seq_axis", "attr", 1, "int"),
        Param("batch_axis", "attr", 0, "int"),
    ],
    lowering=_lower_reverse_sequence,
    numpy=_numpy_reverse_sequence,
    pure=True,
    examples=(
        example(f32(3, 5), i64(3), ranges={"seq_lengths": (0, 5)}),
        example(f32("s", "n", 2), typed("int32", "n"), 0, 1, ranges={"seq_lengths": (0, symbol("s"))}),
        example(f32(2, 3, 4), i64(2), seq_axis=-1, ranges={"seq_lengths": (0, 4)}),
    ),
    precision=follow("data", reads=Reads.WHOLE),
)
def reverse_sequence(args: Arguments, context: TypeContext) -> TensorType:
    """The first seq_lengths[b] elements along the sequence axis of each batch b reversed, the others as they are.

    Errors: ShapeError W201, W202, W203 the axes, W204 one axis given twice; DTypeError W321; BoundsError for a length
    that exceeds the axis.
    """
    data, lengths = tensor(args, "data", context), tensor(args, "seq_lengths", context)
    require_dtype(args, "seq_lengths", lengths, "integer")
    require_rank(args, "seq_lengths", lengths, 1)
    if data.ndim < 0:
        return data
    along, batch = axis_of(args, args.seq_axis, data.ndim), axis_of(args, args.batch_axis, data.ndim)
    if along == batch:
        raise shape_error(args, f"axis {along} is the sequence and the batch", "W204")
    dims, own = dims_of(data), dims_of(lengths)
    if dims is not None and own is not None:
        context.require_equal(dims[batch], own[0], f"{args.name}: batches and lengths", args.span)
    return data


# ---------------------------------------------------------------------------------------------------------------------
# Sums that undo a broadcast
# ---------------------------------------------------------------------------------------------------------------------


def _collapsed(args: Arguments, data: TensorType, target: Dims | None, ndim: int, context: TypeContext) -> TensorType:
    require_dtype(args, "data", data, "number")
    if ndim > data.ndim >= 0:
        raise shape_error(args, f"cannot sum {data.ndim} dimensions to {ndim}")
    dims = dims_of(data)
    if target is None or dims is None:
        return TensorType(target, data.dtype, ndim, data.vdevice)
    for size, wanted in zip(dims[len(dims) - len(target) :], target, strict=True):
        if wanted != 1:
            context.require_equal(size, wanted, f"{args.name}: sizes", args.span)
    return TensorType(target, data.dtype, vdevice=data.vdevice)


def _collapsed_kernel(kernel: Kernel, target: str | None) -> PrimFunc:
    data = kernel.input("data")
    if target is not None:
        kernel.input(target)
    lead = data.ndim - len(kernel.dims)
    kept: list[int | None] = [None] * lead
    for position, wanted in enumerate(kernel.dims):
        size = data.shape[lead + position]
        summed = wanted == 1 and prove_equal(size, 1, kernel.context.facts) is not True
        kept.append(None if summed else position)
        if not summed:
            kernel.require_equal(size, wanted, f"size {size} is not {wanted}")
    loops_of = {
        d: te.reduce_axis((0, data.shape[d]), name=f"k{d}") for d, position in enumerate(kept) if position is None
    }
    if not loops_of:
        return kernel.compute(lambda *i: data(*i))
    wide = accumulator(kernel.dtype)

    def total(*i: PrimExpr) -> Any:
        at = (loops_of[d] if position is None else i[position] for d, position in enumerate(kept))
        return te.sum(te.cast(wide, data(*at)), axis=list(loops_of.values()))

    summed = te.compute(kernel.dims, total, "total")
    return kernel.finish(summed) if wide == kernel.dtype else kernel.compute(lambda *i: summed(*i))


def _numpy_collapse(data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    lead = data.ndim - len(shape)
    wide = data.astype(np.float64) if data.dtype.kind == "f" else data
    axes = tuple(range(lead)) + tuple(lead + d for d, size in enumerate(shape) if size == 1)
    return wide.sum(axes, keepdims=True, dtype=wide.dtype).reshape(shape).astype(data.dtype)


@register_op(
    "collapse_sum_like",
    [Param("data"), Param("collapse_target")],
    lowering=kernel_lowering(lambda kernel: _collapsed_kernel(kernel, "collapse_target")),
    numpy=lambda data, target: _numpy_collapse(data, target.shape),
    pure=True,
    examples=(
        example(f32(2, 3, 4), f32(3, 1)),
        example(f32("n", 4), f32(4)),
        example(f32("n", "m"), f32("n", 1)),
        example(typed("int32", 2, "n"), typed("int32", "n")),
        example(f32(2, 3), f32()),
    ),
)
def collapse_sum_like(args: Arguments, context: TypeContext) -> TensorType:
    """Data summed to the shape of another tensor, which would broadcast to that of data.

    Errors: ShapeError W201 sizes, W202 ranks; DTypeError W321.
    """
    target = tensor(args, "collapse_target", context)
    return _collapsed(args, tensor(args, "data", context), dims_of(target), target.ndim, context)


@register_op(
    "collapse_sum_to",
    [Param("data"), Param("shape", "shape")],
    lowering=kernel_lowering(lambda kernel: _collapsed_kernel(kernel, None)),
    numpy=_numpy_collapse,
    pure=True,
    examples=(
        example(f32(2, 3, 4), (3, 1)),
        example(f32("n", 4), (4,)),
        example(f32("n", "m", 2), (symbol("m"), 1)),
        example(typed("float16", 30, 2), (1, 2)),
    ),
)
def collapse_sum_to(args: Arguments, context: TypeContext) -> TensorType:
    """Data summed to a shape, which would broadcast to that of data.

    Errors: ShapeError W201 sizes, W202 ranks; DTypeError W321.
    """
    target, ndim = shape_of_arg(args, "shape", context)
    return _collapsed(args, tensor(args, "data", context), target, ndim, context)


# ---------------------------------------------------------------------------------------------------------------------
# Grids
# ---------------------------------------------------------------------------------------------------------------------


def _grid_axes(args: Arguments, count: int) -> list[int]:
    """The axis of the grid along which each vector lies."""
    axes = list(range(count))
    return [1, 0, *axes[2:]] if args.indexing == "xy" and count > 1 else axes


@kernel_lowering
def _lower_meshgrid(kernel: Kernel) -> PrimFunc | None:
    if not isinstance(kernel.result, TupleType) or not kernel.result.fields:
        return None
    shape = dims_of(kernel.result.fields[0]) or ()
    operands = kernel.inputs("tensors")
    axes = _grid_axes(kernel.args, len(operands))
    parts = zip(operands, axes, strict=True)

    def element(x: Operand, axis: int, *i: PrimExpr) -> PrimExpr:
        return x(*(i[axis],) if x.ndim else ())

    grids = [te.compute(shape, partial(element, x, axis), "out") for x, axis in parts]
    return kernel.finish(*grids)


@register_op(
    "meshgrid",
    [Param("tensors", "exprs", of="several"), Param("indexing", "attr", "ij", "str?")],
    lowering=_lower_meshgrid,
    numpy=lambda tensors, indexing: tuple(
        np.array(grid) for grid in np.meshgrid(*tensors, indexing="xy" if indexing == "xy" else "ij")
    ),
    pure=True,
    examples=(
        example((f32(2), f32(3))),
        example((f32("n"), f32("m"), f32(4))),
        example((f32("n"), f32(3), f32(2)), indexing="xy"),
    ),
    precision=follow("tensors", reads=Reads.WHOLE),
)
def meshgrid(args: Arguments, context: TypeContext) -> TupleType:
    """Grids of coordinates: one tensor for each vector, constant along all axes but its own.

    With indexing "xy" the first two axes are exchanged. Errors: ShapeError W202 a tensor that is no vector or scalar,
    W205 no tensors or another indexing; DTypeError W320.
    """
    types = tensors(args, "tensors", context)
    if not types:
        raise shape_error(args, "there are no tensors", "W205")
    if args.indexing not in (None, "ij", "xy"):
        raise shape_error(args, f"indexing must be ij or xy, got {args.indexing!r}", "W205")
    dtype = same_dtype(args, *types)
    sizes: list[Dim | None] = []
    for position, ty in enumerate(types):
        require_rank(args, f"tensors[{position}]", ty, 0, 1)
        dims = dims_of(ty)
        sizes.append(None if dims is None else dims[0] if dims else 1)
    shape = [sizes[axis] for axis in _grid_axes(args, len(types))]
    known = tuple(size for size in shape if size is not None)
    result = TensorType(known if len(known) == len(shape) else None, dtype, len(shape))
    return TupleType((result,) * len(types))
