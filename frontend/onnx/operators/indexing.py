"""Operators that choose or place elements by position or order."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.ir.dim import product
from weft.ir.graph import Constant, Expr, PrimValue, TupleGetItem
from weft.script import relax as R

_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def gather(n: OnnxNode, x: Expr) -> Expr:
    """The elements of an axis at positions."""
    return R.take(x, n.need(1), n.axis(x))


def scatter_elements(n: OnnxNode, x: Expr, indices: Expr, updates: Expr) -> Expr:
    """Elements replaced, or combined, at positions along an axis."""
    return R.scatter_elements(x, indices, updates, n.axis(x), _REDUCTIONS[n.attr("reduction", "none")])


def scatter_nd(n: OnnxNode, x: Expr, indices: Expr, updates: Expr) -> Expr:
    """Slices replaced, or combined, at tuples of positions."""
    return R.scatter_nd(x, indices, updates, _REDUCTIONS[n.attr("reduction", "none")])


def one_hot(n: OnnxNode, indices: Expr) -> Expr:
    """A new axis with one value at the index and another elsewhere; negative indices count from the end."""
    (depth,) = (
        n.sizes(1)
        if n.known(1) is not None
        else n.sizes_of(R.reshape(R.astype(n.need(1), "int64"), (1,)), n.input_name(1))
    )
    values = n.need(2)
    axis = int(n.attr("axis", -1))
    if not n.dtype(indices).startswith("int"):
        indices = R.astype(indices, "int64")
    count = R.full((), PrimValue(depth), n.dtype(indices))
    indices = R.where(R.less(indices, 0), R.add(indices, count), indices)
    off, on = (R.reshape(R.strided_slice(values, [0], [i], [i + 1]), ()) for i in (0, 1))
    return R.one_hot(indices, on, off, depth, axis)


def top_k(n: OnnxNode, x: Expr) -> Any:
    """The greatest or least elements along an axis, in order, and their positions."""
    k = n.attr("k") if n.given("k") else None
    if k is None:
        known = n.known(1)
        if known is None or known.dtype == object:
            return _top_k_at_run(n, x)
        k = int(known.reshape(-1)[0])
    if k == 0:
        raise Unsupported("none of the elements")
    return R.topk(x, int(k), n.axis(x, "axis", -1), "both", bool(n.attr("largest", 1)), "int64")


def _top_k_at_run(n: OnnxNode, x: Expr) -> Any:
    (k,) = n.sizes_of(R.reshape(n.need(1), (1,)), n.input_name(1))
    axis, descending = n.axis(x, "axis", -1), bool(n.attr("largest", 1))
    order = n.emit(R.argsort(x, axis, descending, "int64"), "order")
    return (
        R.gather_elements(x, R.strided_slice(order, [axis], [0], [k], assume_inbound=True), axis),
        R.strided_slice(order, [axis], [0], [k], assume_inbound=True),
    )


def nonzero(n: OnnxNode, x: Expr) -> Expr:
    """The positions of what is not zero, one column each; of a scalar no rows, and one column where it is not zero."""
    if n.rank(x) == 0:
        count = n.sizes_of(
            n.emit(R.reshape(R.astype(R.not_equal(x, R.zeros_like(x)), "int64"), (1,)), "count"), "count"
        )
        return R.zeros((0, *count), "int64")
    return n.named_result(R.nonzero(x), n.proto.output[0], {0: n.rank(x)})


def compress(n: OnnxNode, x: Expr, condition: Expr) -> Expr:
    """The slices of an axis whose condition holds."""
    axis = n.axis(x, "axis") if n.given("axis") else None
    data = x if axis is not None else R.reshape(x, (product(n.shape(x)),))
    found = n.emit(R.nonzero(condition), "positions")
    named = n.named_result(R.reshape(found, (-1,)), "positions")
    return R.take(data, named, axis if axis is not None else 0)


def unique(n: OnnxNode, x: Expr) -> Any:
    """The distinct elements or slices, sorted or as they occur, with positions and counts."""
    if n.dtype(x) == "bool":
        values, *places = unique(n, n.emit(R.astype(x, "uint8")))
        return [R.astype(values, "bool"), *places]
    axis = n.axis(x) if n.given("axis") else None
    occurring = not n.attr("sorted", 1)
    wanted = [n.output_wanted(index) or (occurring and index == 1) for index in range(1, 4)]
    found = n.emit(R.unique(x, True, *wanted, axis=axis), "unique")
    if not any(wanted):
        return [n.named_result(found, n.proto.output[0])]
    parts: list[Any] = []
    position = 0
    for index in range(4):
        if index == 0 or wanted[index - 1]:
            parts.append(n.named_result(TupleGetItem(found, position), f"unique_{index}"))
            position += 1
        else:
            parts.append(None)
    if wanted[1] and n.rank(x) != 1:
        parts[2] = R.reshape(parts[2], (-1,))
    return (_as_they_occur(n, parts, axis or 0) if occurring else parts)[: len(n.proto.output)]


def _as_they_occur(n: OnnxNode, parts: list[Any], axis: int) -> list[Any]:
    """Distinct elements or slices and what belongs to them, by the position of the first of each."""
    order = n.emit(R.argsort(parts[1], dtype="int64"), "order")
    values, first, inverse, counts = parts
    if inverse is not None:
        inverse = R.take(n.emit(R.argsort(order, dtype="int64"), "places"), inverse, 0)
    return [
        R.take(values, order, axis),
        R.take(first, order, 0),
        inverse,
        None if counts is None else R.take(counts, order, 0),
    ]


def reverse_sequence(n: OnnxNode, x: Expr, lengths: Expr) -> Expr:
    """The first elements of each batch backwards."""
    return R.reverse_sequence(x, lengths, n.attr("time_axis", 0), n.attr("batch_axis", 1))


def arg_extreme(operator: Any) -> Any:
    """The position of the greatest or least element, the first or the last of equal ones."""

    def position(n: OnnxNode, x: Expr) -> Expr:
        axis, keeps = n.axis(x), bool(n.attr("keepdims", 1))
        if not n.attr("select_last_index", 0):
            return operator(x, axis, keeps)
        size = n.shape(x)[axis]
        return R.subtract(R.full((), PrimValue(size - 1), "int64"), operator(R.flip(x, axis), axis, keeps))

    return position


def suppressed(n: OnnxNode, boxes: Expr, scores: Expr) -> Any:
    """Boxes without those that overlap better ones, for each class."""
    most = n.need(2) if n.has(2) else None
    if most is None:
        return np.zeros((0, 3), "int64")
    overlap = n.need(3) if n.has(3) else Constant(np.zeros(1, "float32"))
    # Ours suppresses from the threshold on, theirs above it.
    above = Constant(np.asarray(1 + 2.0**-23, "float32"))
    overlap = R.maximum(R.multiply(overlap, above), Constant(np.asarray(1e-38, "float32")))
    raise_to = n.need(4) if n.has(4) else Constant(np.asarray([-np.inf], "float32"))
    if n.attr("center_point_box", 0):
        x, y, w, h = (R.strided_slice(boxes, [2], [i], [i + 1]) for i in range(4))
        half_w, half_h = R.divide(w, 2.0), R.divide(h, 2.0)
        boxes = R.concat([R.subtract(y, half_h), R.subtract(x, half_w), R.add(y, half_h), R.add(x, half_w)], 2)
    scalars = [R.reshape(item, (1,)) for item in (most, overlap, raise_to)]
    both = n.emit(R.vision.all_class_non_max_suppression(boxes, scores, *scalars), "boxes")
    rows, count = TupleGetItem(both, 0), TupleGetItem(both, 1)
    (size,) = n.sizes_of(count, "selected")
    return R.take(rows, R.arange(size), 0)


def tensor_scatter(n: OnnxNode, cache: Expr, update: Expr, indices: Expr | None) -> Expr:
    """New rows of a cache, behind those that are there."""
    axis = n.axis(cache, "axis", -2)
    shape, new = n.shape(cache), n.shape(update)
    steps = R.reshape(R.arange(new[axis]), tuple(size if i == axis else 1 for i, size in enumerate(new)))
    place = n.emit(R.broadcast_to(steps, new), "place")
    if indices is not None:
        start = R.reshape(R.astype(indices, "int64"), tuple([new[0]] + [1] * (len(new) - 1)))
        place = R.add(place, start)
    if n.attr("mode", "linear") == "circular":
        place = R.floor_mod(place, R.full((), PrimValue(shape[axis]), "int64"))
    return R.scatter_elements(cache, place, update, axis)


row("Gather", gather)
row("GatherElements", lambda n, x, indices: R.gather_elements(x, indices, n.axis(x)))
row("GatherND", lambda n, x, indices: R.gather_nd(x, indices, n.attr("batch_dims", 0)))
row("Scatter", scatter_elements)
row("ScatterElements", scatter_elements)
row("ScatterND", scatter_nd)
row("TensorScatter", tensor_scatter)
row("OneHot", one_hot)
row("TopK", top_k)
row("NonZero", nonzero)
row("Compress", compress)
row("Unique", unique)
row("ReverseSequence", reverse_sequence)
row("ArgMax", arg_extreme(R.argmax))
row("ArgMin", arg_extreme(R.argmin))
row("NonMaxSuppression", suppressed)
