"""Operators that move elements: reshape, transpose, concat, split, slice, pad, tile, and sizes as values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import axes_mask, count_of, element, int64, size_vector, without_axes
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.table import row
from weft.frontend.onnx.values import is_sizes
from weft.ir.dim import Dim, DimExpr, maximum, minimum, product
from weft.ir.graph import Constant, Expr, PrimValue, ShapeExpr
from weft.script import relax as R

# Sizes as values ------------------------------------------------------------------------------------------------------


def shape(n: OnnxNode, x: Expr) -> Expr:
    """The sizes as a vector."""
    return R.shape_to_tensor(R.shape_of(x))


def full(n: OnnxNode) -> Expr:
    """A tensor of one value."""
    value = np.asarray(n.attr("value", np.zeros(1, "float32")))
    return R.full(n.sizes(0), Constant(value.reshape(())), value.dtype.name)


def arange(n: OnnxNode, start: Expr, limit: Expr, delta: Expr) -> Expr:
    """Numbers from a start up to a limit, which is left out."""
    dtype = n.dtype(start)
    if n.known(2) is None or not dtype.startswith("int"):
        return _range_at_run(n, start, limit, delta)
    step = n.constant(2).item()
    known = [n.known(0), n.known(1)]
    if step == 0:
        raise Unsupported("a range with the step 0")
    if dtype.startswith("int") and all(item is not None for item in known):
        ends = [_dim(item) for item in known if item is not None]
        return R.arange(PrimValue(ends[0]), PrimValue(ends[1]), step, dtype)
    span = R.subtract(limit, start)
    rounding = Constant(np.asarray(step - (1 if step > 0 else -1), dtype))
    count = R.maximum(R.floor_divide(R.add(span, rounding), delta), 0)
    (size,) = n.sizes_of(R.reshape(R.astype(n.emit(count), "int64"), (1,)), n.proto.output[0])
    return R.add(R.multiply(R.arange(size, dtype=dtype), delta), start)


def _range_at_run(n: OnnxNode, start: Expr, limit: Expr, delta: Expr) -> Expr:
    start, limit, delta = (R.reshape(item, ()) for item in (start, limit, delta))
    wide = "float64"
    steps = R.divide(R.astype(R.subtract(limit, start), wide), R.astype(delta, wide))
    count = n.emit(R.astype(R.maximum(R.ceil(steps), 0.0), "int64"), "count")
    (size,) = n.sizes_of(n.emit(R.reshape(count, (1,)), "count"), n.proto.output[0])
    return R.add(R.multiply(R.astype(R.arange(size), n.dtype(start)), delta), start)


def _dim(array: np.ndarray) -> Dim:
    item = array.reshape(-1)[0]
    return item if isinstance(item, DimExpr) else int(item)


row("Shape", shape)
row("Size", lambda n, x: R.size(x))
row("ConstantOfShape", full)
row("Range", arange)
row(
    "EyeLike",
    lambda n, x: R.eye(
        n.shape(x)[0], n.shape(x)[1], n.attr("k", 0), element_dtype(n.attr("dtype")) if n.given("dtype") else n.dtype(x)
    ),
)

# Other shapes ---------------------------------------------------------------------------------------------------------


def reshape(n: OnnxNode, x: Expr) -> Any:
    """The elements under another shape: 0 keeps a size, -1 is computed."""
    known = n.known(1) if n.has(1) else np.asarray(n.attr("shape"))
    if known is None:
        return R.reshape(x, _run_shape(n, x))
    sizes: list[Any] = []
    for axis, size in enumerate(known.reshape(-1)):
        keeps = not isinstance(size, DimExpr) and int(size) == 0 and not n.attr("allowzero", 0)
        sizes.append(n.shape(x)[axis] if keeps else size if isinstance(size, DimExpr) else int(size))
    return R.reshape(x, tuple(sizes))


def _run_shape(n: OnnxNode, x: Expr) -> tuple[Dim, ...]:
    """The sizes that a vector of the run asks for."""
    wanted = n.need(1)
    dtype = n.dtype(wanted)
    one = Constant(np.asarray(1, dtype))
    if not n.attr("allowzero", 0):
        count, rank = count_of(n, wanted), n.rank(x)
        own = [n.shape(x)[axis] if axis < rank else 1 for axis in range(count)]
        wanted = R.where(R.equal(wanted, 0), R.shape_to_tensor(ShapeExpr(tuple(own))), wanted)
    wanted = n.emit(wanted, "shape")
    others = n.emit(R.prod(R.where(R.equal(wanted, -1), one, wanted)), "others")
    total = R.full((), PrimValue(product(n.shape(x))), dtype)
    missing = R.floor_divide(total, R.maximum(others, one))
    return n.sizes_of(n.emit(R.where(R.equal(wanted, -1), missing, wanted), "shape"), n.input_name(1))


def flatten(n: OnnxNode, x: Expr) -> Expr:
    """Two axes: the product of the sizes before an axis, and of the others."""
    axis, dims = int(n.attr("axis")), n.shape(x)
    axis = axis + len(dims) if axis < 0 else axis
    return R.reshape(x, (product(dims[:axis]), product(dims[axis:])))


def squeeze(n: OnnxNode, x: Expr) -> Expr:
    """Without axes of size 1: those that are given, or all."""
    if n.has(1) and n.known(1) is None:
        return without_axes(n, x, n.need(1))
    axes = n.ints(1, "axes")
    if axes is None:
        axes = [axis for axis, size in enumerate(n.shape(x)) if isinstance(size, int) and size == 1]
        if any(not isinstance(size, int) for size in n.shape(x)):
            raise Unsupported("which sizes are 1 is known only at run time")
        if not axes:
            return n.inputs[0]  # type: ignore[return-value]
    return R.squeeze(x, axes) if axes else n.inputs[0]  # type: ignore[return-value]


def unsqueeze(n: OnnxNode, x: Expr) -> Expr:
    """New axes of size 1."""
    if n.has(1) and n.known(1) is None:
        return _unsqueezed_at_run(n, x, n.need(1))
    axes = n.ints(1, "axes")
    if not axes:
        return n.inputs[0]  # type: ignore[return-value]
    rank = n.rank(x) + len(axes)
    dims = list(n.shape(x))
    for axis in sorted(axis % rank for axis in axes):
        dims.insert(axis, 1)
    return R.reshape(x, tuple(dims)) if len(axes) > 1 else R.expand_dims(x, axes)


def _unsqueezed_at_run(n: OnnxNode, x: Expr, axes: Expr) -> Expr:
    rank = n.rank(x) + count_of(n, axes)
    mask = axes_mask(n, axes, rank)
    place = R.cumsum(R.subtract(int64(1), mask), 0, "int64", True)  # how many old axes come before
    old = R.take(n.emit(size_vector((*n.shape(x), 1)), "sizes"), n.emit(place, "place"), 0)
    return R.reshape(x, n.sizes_of(n.emit(R.where(R.equal(mask, 1), int64(1), old), "shape"), "unsqueezed"))


def transpose(n: OnnxNode, x: Expr) -> Expr:
    """The axes in another order, by default backwards."""
    order = n.attr("perm")
    return R.permute_dims(x, tuple(order) if order else tuple(reversed(range(n.rank(x)))))


def expand(n: OnnxNode, x: Expr) -> Any:
    """A shape that broadcasting with the given one gives."""
    own = n.shape(x)
    if n.known(1) is None:
        wanted = _broadcast_at_run(n, x, own)
    else:
        wanted = n.sizes(1)
    rank = max(len(own), len(wanted))
    left = [1] * (rank - len(own)) + list(own)
    right = [1] * (rank - len(wanted)) + list(wanted)
    sizes = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
    return n.inputs[0] if tuple(sizes) == own else R.broadcast_to(x, tuple(sizes))


def _broadcast_at_run(n: OnnxNode, x: Expr, own: tuple[Dim, ...]) -> tuple[Dim, ...]:
    shape = n.need(1)
    count = n.dims(shape, [0])[0]
    padded = [1] * (count - len(own)) + list(own)[-count:] if count else []
    target = R.maximum(R.shape_to_tensor(ShapeExpr(tuple(padded))), shape)
    return n.sizes_of(n.emit(target, "shape"), n.input_name(1))


def tile(n: OnnxNode, x: Expr) -> Expr:
    """Copies along each axis."""
    known = n.known(1)
    if known is not None and not is_sizes(known):
        return R.tile(x, [int(item) for item in known])
    return R.tile(x, n.sizes(1))


def concat(n: OnnxNode, *xs: Expr) -> Any:
    """Tensors one after another along an axis."""
    return R.concat(list(xs), n.axis(xs[0], "axis", 1)) if len(xs) > 1 else n.inputs[0]


def split(n: OnnxNode, x: Expr) -> Any:
    """Parts of an axis: of given sizes, or as equal as can be."""
    axis, count = n.axis(x, "axis", 0), len(n.proto.output)
    if n.has(1) and ((known := n.known(1)) is None or is_sizes(known)):
        return _split_at_run(n, x, axis)
    sizes = n.ints(1, "split")
    if sizes is None:
        total, count = n.shape(x)[axis], int(n.attr("num_outputs", count) or count)
        if not isinstance(total, int):
            part = -(-total // count)
            return _parts(x, axis, [minimum(part * index, total) for index in range(count + 1)])
        part = -(-total // count)
        sizes = [max(min(part, total - index * part), 0) for index in range(count)]
    if len(sizes) == 1:
        return n.inputs[0]
    ends = np.cumsum(sizes)
    return R.split(x, [int(end) for end in ends[:-1]], axis)


def _split_at_run(n: OnnxNode, x: Expr, axis: int) -> Any:
    starts: list[Dim] = [0]
    for size in n.sizes(1):
        starts.append(starts[-1] + size)
    return _parts(x, axis, starts)


def _parts(x: Expr, axis: int, starts: list[Dim]) -> list[Expr]:
    """The parts of an axis between places of it."""
    return [R.strided_slice(x, [axis], [start], [end], assume_inbound=True) for start, end in pairwise(starts)]


def take_slices(n: OnnxNode, x: Expr) -> Any:
    """Ranges of axes with steps."""
    if n.given("starts"):
        starts, ends = list(n.attr("starts")), list(n.attr("ends"))
        return _sliced(n, x, starts, ends, n.attr("axes"), [1] * len(starts))
    if any(n.has(index) and n.known(index) is None for index in (1, 2, 3, 4)):
        return _sliced_at_run(n, x)
    axes = n.ints(3) if n.has(3) else None
    starts, ends = list(n.sizes(1)), list(n.sizes(2))
    steps = n.ints(4) if n.has(4) else [1] * len(starts)
    return _sliced(n, x, starts, ends, axes, steps)


def _sliced(n: OnnxNode, x: Expr, starts: Any, ends: Any, axes: Any, steps: Any) -> Expr:
    axes = list(axes) if axes else list(range(len(starts)))
    return R.strided_slice(x, axes, starts, ends, steps)


def _sliced_at_run(n: OnnxNode, x: Expr) -> Expr:
    """Boundaries of the run: those of the other axes are the whole axis."""
    rank, starts, ends = n.rank(x), n.need(1), n.need(2)
    count = count_of(n, starts)
    steps = n.need(4) if n.has(4) else int64(np.ones(count))
    axes = R.astype(n.need(3), "int64") if n.has(3) else int64(np.arange(count))
    place = n.emit(R.expand_dims(R.where(R.less(axes, 0), R.add(axes, rank), axes), [1]), "axes")
    unchanged = int64(np.zeros(rank)), int64(np.full(rank, 2**62)), int64(np.ones(rank))
    made = [
        n.emit(R.scatter_nd(whole, place, R.astype(value, "int64")))
        for whole, value in zip(unchanged, (starts, ends, steps), strict=True)
    ]
    return n.named_result(R.dynamic_strided_slice(x, *made), n.proto.output[0])


def pad(n: OnnxNode, x: Expr) -> Any:
    """More elements around: a constant, the border, the tensor mirrored, or repeated."""
    mode = n.attr("mode", "constant")
    if any(n.has(index) and n.known(index) is None for index in (1, 2, 3)):
        return _padded_at_run(n, x, mode)
    pads = n.ints(1, "pads") if not n.given("paddings") else list(n.attr("paddings"))
    assert pads is not None
    axes = n.ints(3) if n.has(3) else list(range(n.rank(x)))
    value = n.constant(2, n.attr("value", 0)).item() if n.has(2) else n.attr("value", 0)
    rank, count = n.rank(x), len(axes or [])
    before, after = [0] * rank, [0] * rank
    for position, axis in enumerate(axes or []):
        before[axis % rank], after[axis % rank] = pads[position], pads[count + position]
    inner = x
    if any(item < 0 for item in (*before, *after)):
        along = [axis for axis in range(rank) if before[axis] < 0 or after[axis] < 0]
        dims = n.shape(x)
        inner = R.strided_slice(
            x, along, [max(-before[a], 0) for a in along], [dims[a] - max(-after[a], 0) for a in along]
        )
    widths = [max(item, 0) for pair in zip(before, after, strict=True) for item in pair]
    return padded(n, inner, widths, mode, value)


def padded(n: OnnxNode, x: Expr, widths: list[int], mode: str, value: Any) -> Expr:
    """A tensor with more elements; widths are before and after for each axis."""
    if mode == "constant":
        return R.nn.pad(x, widths, "constant", value)
    names = {"edge": "replicate", "reflect": "reflect", "wrap": "circular"}
    if mode not in names:
        raise Unsupported(f"the mode {mode}")
    result, dims = x, n.shape(x)
    for axis, size in enumerate(dims):
        before, after = widths[2 * axis], widths[2 * axis + 1]
        if before or after:
            index = R.subtract(R.arange(size + before + after), int64(before))
            result = R.take(result, _position(n, n.emit(index, "index"), _last(size), mode), axis)
    return result


def _last(size: Dim) -> Expr:
    """The position of the last element of an axis."""
    return R.full((), PrimValue(size - 1), "int64")


def _position(n: OnnxNode, index: Expr, last: Expr, mode: str) -> Expr:
    """The element that stands at a position outside of an axis."""
    last = n.emit(last, "last")
    if mode in ("edge", "constant"):
        return R.minimum(R.maximum(index, int64(0)), last)
    if mode == "wrap":
        return R.floor_mod(index, R.add(last, int64(1)))
    period = n.emit(R.maximum(R.multiply(last, int64(2)), int64(1)), "period")
    folded = n.emit(R.floor_mod(index, period), "folded")
    return R.where(R.greater(folded, last), R.subtract(period, folded), folded)


def _padded_at_run(n: OnnxNode, x: Expr, mode: str) -> Expr:
    """Widths of the run: every axis is read at positions, and what is outside of it replaced."""
    rank, dims, pads = n.rank(x), n.shape(x), R.astype(n.need(1), "int64")
    count = count_of(n, n.need(1)) // 2
    axes = R.astype(n.need(3), "int64") if n.has(3) else int64(np.arange(count))
    place = n.emit(R.expand_dims(R.where(R.less(axes, 0), R.add(axes, rank), axes), [1]), "axes")
    ends = [R.strided_slice(pads, [0], [start], [start + count]) for start in (0, count)]
    before, after = (n.emit(R.scatter_nd(int64(np.zeros(rank)), place, end), "pads") for end in ends)
    total = R.add(R.add(before, after), n.emit(size_vector(dims), "sizes"))
    sizes = n.sizes_of(n.emit(total, "padded"), n.proto.output[0])
    value = R.reshape(n.need(2), ()) if n.has(2) else Constant(np.zeros((), n.dtype(x)))
    result: Expr = x
    for axis, (size, new) in enumerate(zip(dims, sizes, strict=True)):
        ends = [n.emit(element(end, axis), "end") for end in (before, after)]
        more, (cut, less) = R.maximum(ends[0], int64(0)), (n.emit(R.maximum(R.negative(end), int64(0))) for end in ends)
        last = n.emit(R.subtract(_last(size), R.add(cut, less)), "last")  # of what is left, which is then padded
        index = n.emit(R.subtract(R.arange(new), more), "index")
        result = R.take(result, n.emit(R.add(_position(n, index, last, mode), cut), "place"), axis)
        if mode == "constant":
            inside = R.logical_and(R.greater_equal(index, int64(0)), R.less_equal(index, last))
            inside = R.reshape(inside, tuple(new if a == axis else 1 for a in range(rank)))
            result = R.where(inside, result, value)
    return result


row("Reshape", reshape)
row("Flatten", flatten)
row("Squeeze", squeeze)
row("Unsqueeze", unsqueeze)
row("Transpose", transpose)
row("Expand", expand)
row("Tile", tile, since=6)
row("Concat", concat)
row("Split", split)
row("Slice", take_slices)
row("Pad", pad)

# Blocks and spaces ----------------------------------------------------------------------------------------------------


def depth_to_space(n: OnnxNode, x: Expr) -> Expr:
    """Blocks of channels as blocks of space."""
    b, c, h, w = n.shape(x)
    size = int(n.attr("blocksize"))
    if n.attr("mode", "DCR") == "DCR":
        parts, order = (b, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (b, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    return R.reshape(R.permute_dims(R.reshape(x, parts), order), (b, c // size**2, h * size, w * size))


def space_to_depth(n: OnnxNode, x: Expr) -> Expr:
    """Blocks of space as channels."""
    b, c, h, w = n.shape(x)
    size = int(n.attr("blocksize"))
    parts = R.reshape(x, (b, c, h // size, size, w // size, size))
    order = (0, 3, 5, 1, 2, 4) if n.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return R.reshape(R.permute_dims(parts, order), (b, c * size**2, h // size, w // size))


def trilu(n: OnnxNode, x: Expr) -> Expr:
    """The upper or lower triangle, else 0."""
    if n.has(1) and n.known(1) is None:
        rows, columns = n.shape(x)[-2:]
        distance = R.subtract(R.arange(columns), R.expand_dims(R.arange(rows), [1]))
        k = R.reshape(n.need(1), ())
        keeps = R.greater_equal(distance, k) if n.attr("upper", 1) else R.less_equal(distance, k)
        return R.where(keeps, x, R.zeros_like(x))
    k = int(n.constant(1).item()) if n.has(1) else 0
    return R.triu(x, k) if n.attr("upper", 1) else R.tril(x, k)


def center_crop_pad(n: OnnxNode, x: Expr) -> Expr:
    """Axes at given sizes: cut or padded with 0 at both ends."""
    axes, rank = n.attr("axes") or list(range(n.rank(x))), n.rank(x)
    result, widths = x, [0] * (2 * rank)
    for axis, size in zip((axis % rank for axis in axes), n.sizes(1), strict=True):
        own = n.shape(x)[axis]
        if not (isinstance(own, int) and isinstance(size, int)):
            result = _centred(n, result, axis, own, size)
        elif own > size:
            start = (own - size) // 2
            result = R.strided_slice(result, [axis], [start], [start + size])
        elif own < size:
            widths[2 * axis] = (size - own) // 2
            widths[2 * axis + 1] = size - own - (size - own) // 2
    return R.nn.pad(result, widths, "constant", 0) if any(widths) else result


def _centred(n: OnnxNode, x: Expr, axis: int, own: Dim, size: Dim) -> Expr:
    """An axis cut or padded where only the run tells which: every new element is read at its place, or is 0."""
    first = R.subtract(
        R.full((), PrimValue(maximum(own - size, 0) // 2), "int64"),
        R.full((), PrimValue(maximum(size - own, 0) // 2), "int64"),
    )
    index = n.emit(R.add(R.arange(size), first), "index")
    last = n.emit(_last(own), "last")
    inside = R.logical_and(R.greater_equal(index, int64(0)), R.less_equal(index, last))
    inside = R.reshape(inside, tuple(size if i == axis else 1 for i in range(n.rank(x))))
    read = n.emit(R.take(x, R.minimum(R.maximum(index, int64(0)), last), axis), "read")
    return n.emit(R.where(inside, read, R.zeros_like(read)), "centred")


row("DepthToSpace", depth_to_space)
row("SpaceToDepth", space_to_depth)
row("Trilu", trilu)
row("CenterCropPad", center_crop_pad)
