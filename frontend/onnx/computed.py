"""Axes and sizes that only the run can tell, as arithmetic on small vectors.

An operator along axes that are an input becomes one along fixed axes of a reshaped tensor, whose sizes are symbols that
the run binds: an axis that may be reduced is split into (what stays, what is summed), one of which is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported, require_sizes
from weft.frontend.onnx.node import OnnxNode
from weft.ir.dim import Dim
from weft.ir.graph import BindingBlock, Constant, Expr, If, SeqExpr, ShapeExpr, Var
from weft.script import relax as R

__all__ = [
    "along_run_axis",
    "axes_mask",
    "chosen_at_run",
    "count_of",
    "element",
    "int64",
    "kept_sizes",
    "reduced_at_run",
    "size_vector",
    "without_axes",
]


def int64(values: Any) -> Constant:
    """A constant of int64."""
    return Constant(np.asarray(values, "int64"))


def size_vector(dims: Any) -> Expr:
    """Sizes as a vector."""
    return R.shape_to_tensor(ShapeExpr(tuple(dims))) if len(dims) else int64([])


def count_of(n: OnnxNode, vector: Expr) -> int:
    """The number of elements of a vector of sizes or axes, which must be known."""
    count = n.dims(vector, [0])[0] if n.rank(vector) else 1
    require_sizes(count)
    return count


def element(vector: Expr, index: int) -> Expr:
    """One element of a vector, as a scalar."""
    return R.reshape(R.strided_slice(vector, [0], [index], [index + 1]), ())


def axes_mask(n: OnnxNode, axes: Expr, rank: int) -> Expr:
    """For each axis 1 where it is among the given ones, else 0."""
    axes = R.reshape(R.astype(axes, "int64"), (-1, 1))
    axes = n.emit(axes, "axes")
    counted = R.where(R.less(axes, 0), R.add(axes, rank), axes)
    hits = R.astype(R.equal(counted, int64(np.arange(rank))), "int64")
    return n.emit(R.minimum(R.sum(hits, 0), 1), "mask")


def kept_sizes(n: OnnxNode, sizes: Expr, mask: Expr, count: int, name: str) -> tuple[Dim, ...]:
    """The sizes whose mask is 0, which are `count`, in order."""
    if count == 0:
        return ()
    order = R.strided_slice(n.emit(R.argsort(mask, 0, False, "int64"), "order"), [0], [0], [count])
    return n.sizes_of(n.emit(R.take(sizes, order, 0), "kept"), name)


def without_axes(n: OnnxNode, x: Expr, axes: Expr) -> Expr:
    """A tensor without axes of size 1 that an input names."""
    rank, mask = n.rank(x), axes_mask(n, axes, n.rank(x))
    dims = kept_sizes(n, size_vector(n.shape(x)), mask, rank - count_of(n, axes), "squeezed")
    return R.reshape(x, dims)


def reduced_at_run(n: OnnxNode, x: Expr, axes: Expr, keeps: bool, reduce: Any) -> Expr:
    """A reduction along axes that an input names: `reduce(x, axes)` removes fixed ones."""
    rank = n.rank(x)
    if rank == 0:
        return reduce(x, ())
    if not keeps and not isinstance(n.shape(axes)[0] if n.rank(axes) else 1, int):
        raise Unsupported("how many axes are reduced is not known")
    mask, own = axes_mask(n, axes, rank), size_vector(n.shape(x))
    if n.attr("noop_with_empty_axes", 0) == 0:  # none of the axes means all of them
        mask = n.emit(R.maximum(mask, R.astype(R.equal(R.sum(mask, 0, True), 0), "int64")), "mask")
    own = n.emit(own, "sizes")
    stays = n.sizes_of(n.emit(R.where(R.equal(mask, 1), int64(1), own), "stays"), "stays")
    goes = n.sizes_of(n.emit(R.where(R.equal(mask, 1), own, int64(1)), "goes"), "goes")
    apart = R.reshape(x, tuple(size for pair in zip(stays, goes, strict=True) for size in pair))
    result = reduce(n.emit(apart, "apart"), tuple(range(1, 2 * rank, 2)))
    if keeps:
        return result
    count = rank - count_of(n, axes) if count_of(n, axes) else 0
    return R.reshape(result, kept_sizes(n, size_vector(stays), mask, count, "reduced"))


def along_run_axis(n: OnnxNode, x: Expr, axis: Expr, operator: Any) -> Expr:
    """An operator along an axis that an input names: `operator(x, 1)` of three axes, the others being joined."""
    rank, dims = n.rank(x), n.shape(x)
    if 0 in dims:  # no elements whichever it is, and a size that is written as 0 would mean one that stays
        return operator(x, 0)
    axis = n.emit(R.reshape(R.astype(axis, "int64"), ()), "axis")
    axis = n.emit(R.where(R.less(axis, 0), R.add(axis, rank), axis), "axis")
    own, place = n.emit(size_vector(dims), "sizes"), int64(np.arange(rank))
    parts = [R.prod(R.where(test(place, axis), own, int64(1)), 0, True) for test in (R.less, R.equal, R.greater)]
    sizes = n.sizes_of(n.emit(R.concat(parts, 0), "parts"), "part")
    return R.reshape(operator(n.emit(R.reshape(x, sizes), "joined"), 1), dims)


def chosen_at_run(n: OnnxNode, number: Expr, results: Sequence[Callable[[], Expr]]) -> Var:
    """One of several results, by a number of the run; the last one where it is none of the others."""
    if len(results) == 1:
        return n.emit(results[0]())
    builder, chosen = n.emitter.builder, []
    test = n.emit(R.equal(number, 0), "test")
    for made in (results[0], lambda: chosen_at_run(n, R.subtract(number, 1), results[1:])):
        with builder.collect() as bindings:
            result = n.emit(made())
        chosen.append(SeqExpr((BindingBlock(tuple(bindings)),) if bindings else (), result))
    return builder.emit(If(test, *chosen), n.proto.output[0])
