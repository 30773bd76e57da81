"""Other shapes, parts and places: views, slices, concatenation, gathering and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.numbers import scalar
from weft.frontend.torch.table import row
from weft.ir.dim import Dim, DimExpr, ceildiv, product
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R

_END = 2**63 - 1


def reshape(n: FxNode, x: Expr, *rest: Any, **options: Any) -> Expr:
    """The elements under the shape that PyTorch gives the result."""
    return R.reshape(x, n.dims_out)


def transpose(n: FxNode, x: Expr, a: int, b: int) -> Expr:
    """Two axes exchanged."""
    if n.rank(x) == 0:
        return x
    order = list(range(n.rank(x)))
    a, b = n.axis(x, a), n.axis(x, b)
    order[a], order[b] = order[b], order[a]
    return R.permute_dims(x, order)


def expand(n: FxNode, x: Expr, size: Any, **options: Any) -> Expr:
    """Axes of size 1, and new ones in front, repeated."""
    return x if n.shape(x) == n.dims_out else R.broadcast_to(x, n.dims_out)


def slices(n: FxNode, x: Expr, axis: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Expr:
    """A range of an axis."""
    axis = n.axis(x, axis)
    size = n.shape(x)[axis]
    if isinstance(start, Expr) or isinstance(end, Expr):
        return _slices_at_run(n, x, axis, 0 if start is None else start, _END if end is None else end, step)
    first, last = _place(0 if start is None else start, size), _place(_END if end is None else end, size)
    if isinstance(first, int) and first == 0 and step == 1 and (last is size or last == size):
        return x
    made = R.strided_slice(x, [axis], [first], [last], [step], assume_inbound=_is_inside(first, last, size))
    return made


def _slices_at_run(n: FxNode, x: Expr, axis: int, start: Any, end: Any, step: int) -> Expr:
    """A range of an axis whose boundaries the run tells; of the other axes all."""
    rank = n.rank(x)
    bounds: list[Expr] = []
    for place, others in ((start, 0), (end, _END), (step, 1)):
        values = [R.const(np.full(count, others), "int64") for count in (axis, rank - axis - 1)]
        middle = R.reshape(scalar(n.importer, place, "int64"), (1,))
        bounds.append(n.emit(R.concat([values[0], middle, values[1]], 0), "bounds"))
    return R.dynamic_strided_slice(x, *bounds)


def differences(n: FxNode, x: Expr, order: int = 1, axis: int = -1, before: Any = None, after: Any = None) -> Expr:
    """What each element is more than the one before it, along an axis that may be lengthened first."""
    axis = n.axis(x, axis)
    parts = [part for part in (before, x, after) if part is not None]
    x = n.emit(R.concat(parts, axis), "whole") if len(parts) > 1 else x
    minus = R.not_equal if n.dtype(x) == "bool" else R.subtract
    for _ in range(order):
        x = n.emit(minus(slices(n, x, axis, 1), slices(n, x, axis, 0, -1)), "differences")
    return x


def _place(at: Any, size: Dim) -> Dim:
    if isinstance(at, int) and at >= 2**62:
        return size
    if isinstance(at, int) and at < 0:
        return size + at if isinstance(size, DimExpr) else max(size + at, 0)
    return min(at, size) if isinstance(at, int) and isinstance(size, int) else at


def _is_inside(first: Dim, last: Dim, size: Dim) -> bool:
    return last is size and isinstance(first, int) and isinstance(size, DimExpr) and first == 0


def select(n: FxNode, x: Expr, axis: int, index: Any) -> Expr:
    """One element of an axis, which goes away."""
    axis = n.axis(x, axis)
    if isinstance(index, Expr):
        from_end = R.add(index, scalar(n.importer, n.shape(x)[axis], "int64"))
        return R.take(x, R.where(R.less(index, 0), from_end, index), axis)
    if isinstance(index, DimExpr):
        return R.take(x, R.full((), PrimValue(index), "int64"), axis)
    if index < 0 and isinstance(n.shape(x)[axis], DimExpr):
        return R.take(x, R.full((), PrimValue(n.shape(x)[axis] + index), "int64"), axis)
    return R.take(x, R.const(index, "int64"), axis)


def split_sizes(n: FxNode, x: Expr, sizes: Any, axis: int = 0) -> list[Expr]:
    """Parts of an axis of given sizes, or of one size each."""
    axis = n.axis(x, axis)
    total = n.shape(x)[axis]
    if not isinstance(sizes, (list, tuple)):
        if not isinstance(total, int) or not isinstance(sizes, int):
            raise Unsupported("how many parts an axis has is not known")
        sizes = [min(sizes, total - at) for at in range(0, total, sizes)] or [0]
    parts: list[Expr] = []
    at: Dim = 0
    for size in sizes:
        parts.append(R.strided_slice(x, [axis], [at], [at + size], assume_inbound=True))
        at = at + size
    return parts


def chunk(n: FxNode, x: Expr, count: int, axis: int = 0) -> list[Expr]:
    """Parts of an axis, as equal as can be."""
    total = n.shape(x)[n.axis(x, axis)]
    return split_sizes(n, x, ceildiv(total, count), axis)


def concat(n: FxNode, tensors: list[Expr], axis: int = 0) -> Expr:
    """Tensors one after another, without those that PyTorch ignores."""
    parts = [n.cast(x, n.dtype_out) for x in tensors if not (n.rank(x) == 1 and n.shape(x) == (0,) and n.out.ndim > 1)]
    return R.concat(parts, axis % n.out.ndim) if len(parts) > 1 else parts[0]


def embedding(n: FxNode, weight: Expr, indices: Expr, *rest: Any) -> Expr:
    """Rows of a table."""
    return R.take(weight, indices, 0)


def bags(
    n: FxNode,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scaled: bool = False,
    mode: int = 0,
    sparse: bool = False,
    weights: Any = None,
    last: bool = False,
    padding: int = -1,
) -> Any:
    """The sums, means or greatest of rows of a table, for each bag of indices."""
    if n.wanted(1) or n.wanted(2) or n.wanted(3):
        raise Unsupported("what a bag holds")
    kind = ("sum", "mean", "max")[mode]
    places, starts = (n.emit(n.cast(x, "int64")) for x in (indices, offsets))
    skipped = None if padding < 0 else padding
    return [R.nn.embedding_bag(weight, places, starts, weights, kind, skipped, last), None, None, None]


def repeat(n: FxNode, x: Expr, repeats: list[Any]) -> Expr:
    """Copies along each axis."""
    if all(isinstance(item, int) for item in repeats):
        return R.tile(x, repeats)
    dims = (*(1,) * (len(repeats) - n.rank(x)), *n.shape(x))
    between = [size for dim in dims for size in (1, dim)]
    wide = [size for pair in zip(repeats, dims, strict=True) for size in pair]
    return R.reshape(R.broadcast_to(R.reshape(x, tuple(between)), tuple(wide)), n.dims_out)


def pad(n: FxNode, x: Expr, widths: list[int], value: Any = 0) -> Expr:
    """Elements of one value around; less than none are cut off."""
    rank, dims = n.rank(x), n.shape(x)
    before, after = [0] * rank, [0] * rank
    for position in range(len(n.ints(widths)) // 2):
        before[rank - 1 - position], after[rank - 1 - position] = widths[2 * position], widths[2 * position + 1]
    cut = [axis for axis in range(rank) if before[axis] < 0 or after[axis] < 0]
    if cut:
        x = R.strided_slice(x, cut, [max(-before[a], 0) for a in cut], [dims[a] - max(-after[a], 0) for a in cut])
    pairs = [max(item, 0) for pair in zip(before, after, strict=True) for item in pair]
    return R.nn.pad(x, pairs, "constant", n.number(value or 0)) if any(pairs) else x


def bordered(n: FxNode, x: Expr, widths: list[int], mode: str) -> Expr:
    """Elements of the border, or of the tensor mirrored or repeated, around the last axes."""
    rank = n.rank(x)
    for position in range(len(n.ints(widths)) // 2):
        before, after = widths[2 * position], widths[2 * position + 1]
        if before or after:
            axis = rank - 1 - position
            x = n.emit(R.take(x, _border_places(n, n.shape(x)[axis], before, after, mode), axis))
    return x


def _border_places(n: FxNode, size: Dim, before: int, after: int, mode: str) -> Expr:
    if mode == "circular":  # what negative widths cut off is not repeated
        inner = size + min(before, 0) + min(after, 0)
        offsets = R.arange(-max(before, 0), inner + max(after, 0), 1, "int64")
        place = R.floor_mod(offsets, R.full((), PrimValue(inner), "int64"))
        return R.add(place, R.const(-min(before, 0), "int64"))
    place = R.arange(-before, size + after, 1, "int64")
    last = n.emit(R.full((), PrimValue(size - 1), "int64"), "last")
    if mode == "replicate":
        return R.minimum(R.maximum(place, R.const(0, "int64")), last)
    inner = n.emit(R.abs(place), "place")
    return R.where(R.greater(inner, last), R.subtract(R.multiply(last, R.const(2, "int64")), inner), inner)


def stack(n: FxNode, tensors: list[Expr], axis: int = 0) -> Expr:
    """Tensors along a new axis."""
    return R.stack([n.cast(x, n.dtype_out) for x in tensors], axis % n.out.ndim)


def broadcast_sizes(a: Any, b: Any) -> tuple[Dim, ...]:
    """The sizes that two shapes broadcast to."""
    rank = max(len(a), len(b))
    left, right = (*(1,) * (rank - len(a)), *a), (*(1,) * (rank - len(b)), *b)
    return tuple(y if isinstance(x, int) and x == 1 else x for x, y in zip(left, right, strict=True))


def windows(n: FxNode, x: Expr, axis: int, size: int, step: int) -> Expr:
    """The windows of an axis, along a new last axis."""
    if not n.rank(x):
        return R.reshape(x, (size,))
    axis = n.axis(x, axis)
    count = n.dims_out[axis]
    starts = R.multiply(R.arange(0, count, 1, "int64"), R.const(step, "int64"))
    places = R.add(R.expand_dims(starts, [1]), R.arange(0, size, 1, "int64"))
    found = n.emit(R.take(x, n.emit(places, "places"), axis))
    rank = n.rank(found)
    return R.permute_dims(found, [a for a in range(rank) if a != axis + 1] + [axis + 1])


def unshuffle(n: FxNode, x: Expr, factor: int) -> Expr:
    """Blocks of space as channels."""
    *front, c, h, w = n.shape(x)
    k = len(front)
    apart = R.reshape(x, (*front, c, h // factor, factor, w // factor, factor))
    moved = R.permute_dims(apart, [*range(k), k, k + 2, k + 4, k + 1, k + 3])
    return R.reshape(moved, (*front, c * factor * factor, h // factor, w // factor))


def diag_embed(n: FxNode, x: Expr, offset: int = 0, first: int = -2, second: int = -1) -> Expr:
    """The last axis on a diagonal of two new axes, 0 elsewhere."""
    rank = n.rank(x) + 1
    first, second = first % rank, second % rank
    size = n.shape(x)[-1] + abs(offset)
    before, after = (offset, 0) if offset > 0 else (0, -offset)
    wide = R.nn.pad(x, [0] * (2 * (rank - 2)) + [before, after], "constant", 0.0) if offset else x
    places = R.arange(0, size, 1, "int64")
    keeps = R.equal(R.add(R.expand_dims(places, [1]), R.const(offset, "int64")), R.expand_dims(places, [0]))
    made = n.emit(R.where(keeps, R.expand_dims(n.emit(wide), [rank - 2]), R.zeros((), n.dtype(x))))
    order = [a for a in range(rank) if a not in (first, second)]
    place = {axis: index for index, axis in enumerate([*order, first, second])}
    return R.permute_dims(made, [place[axis] for axis in range(rank)])


def _triangle_places(places: Any) -> Expr:
    return R.const(np.stack(places), "int64")


def _rolled(n: FxNode, x: Expr, shifts: Any, axes: Any) -> Expr:
    """The elements moved along axes; of the flattened tensor where no axes are given."""
    shifts = n.ints(shifts)
    if axes or isinstance(axes, int):
        return R.roll(x, shifts, list(n.axes(x, axes)))
    count = product(n.shape(x))
    return R.reshape(R.roll(R.reshape(x, (count,)), shifts, [0]), n.shape(x))


def triangle(operator: Any) -> Any:
    """The upper or lower triangle, else 0."""
    return lambda n, x, k=0: operator(n.cast(x, n.dtype_out), k)


row("view reshape _unsafe_view unsqueeze squeeze flatten unflatten view_copy squeeze_ unsqueeze_", reshape)
row("permute permute_copy", lambda n, x, order: R.permute_dims(x, n.axes(x, order)))
row("transpose transpose_copy swapaxes", transpose)
row("t", lambda n, x: transpose(n, x, 0, 1) if n.rank(x) == 2 else x)
row("mT", lambda n, x: transpose(n, x, -1, -2))
row("expand expand_as broadcast_to expand_copy", expand)
row("slice slice_copy", slices)
row("narrow", lambda n, x, axis, start, length: slices(n, x, axis, start, start + length))
row("diff", differences)
row("select select_copy", select)
row("split split_with_sizes split_with_sizes_copy", split_sizes)
row("chunk", chunk)
row(
    "unbind unbind_copy",
    lambda n, x, axis=0: [select(n, x, axis, i) for i in range(n.ints(n.shape(x)[n.axis(x, axis)])[0])],
)
row("cat", concat)
row("stack", stack)
row("flip", lambda n, x, axes: _flipped(n, x, axes))
row("index_select", lambda n, x, axis, place: R.take(x, place, n.axis(x, axis)))
row("embedding", embedding)
row("_embedding_bag_forward_only _embedding_bag", bags)
row("repeat", repeat)
row("constant_pad_nd", pad)
row(
    "pad",
    lambda n, x, widths, mode="constant", value=None: (
        pad(n, x, widths, value) if mode == "constant" else bordered(n, x, widths, mode)
    ),
)
for _mode in ("reflect", "replicate"):
    row(
        " ".join(f"{'reflection' if _mode == 'reflect' else 'replication'}_pad{rank}d" for rank in (1, 2, 3)),
        lambda n, x, widths, mode=_mode: bordered(n, x, widths, mode),
    )
row("tril", triangle(R.tril))
row("triu", triangle(R.triu))
row("pixel_shuffle", lambda n, x, factor: R.nn.pixel_shuffle(x, factor))
row("roll", lambda n, x, shifts, axes=(): _rolled(n, x, shifts, axes))
row("rot90", lambda n, x, times=1, axes=(0, 1): R.rot90(x, times, [n.axis(x, a) for a in axes]))
row("pixel_unshuffle", lambda n, x, factor: unshuffle(n, x, factor))
row("unfold", windows)
row("diag_embed", diag_embed)
row("tril_indices", lambda n, rows, columns, offset=0, **o: _triangle_places(np.tril_indices(rows, offset, columns)))
row("triu_indices", lambda n, rows, columns, offset=0, **o: _triangle_places(np.triu_indices(rows, offset, columns)))
row("eye", lambda n, *a, **o: R.eye(n.dims_out[0], n.dims_out[1], 0, n.dtype_out))
row("copy", lambda n, x, source, *rest: R.broadcast_to(n.cast(source, n.dtype_out), n.dims_out))
row("alias_copy view_of", lambda n, x: x)
row(
    "repeat_interleave",
    lambda n, x, times, axis=None, **o: (
        R.repeat(x, times, axis) if isinstance(times, int) else _none("counts of the run")
    ),
)


def _flipped(n: FxNode, x: Expr, axes: Any) -> Expr:
    for axis in n.axes(x, axes):
        x = R.flip(x, axis)
    return x


def _none(why: str) -> Any:
    raise Unsupported(why)
