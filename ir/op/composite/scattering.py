"""Sums and other reductions into places that indices choose: scatters, segments, counts, bags of embeddings.

All but counts are scatters of elements or of slices (`scatter_elements`, `scatter_slices`), so that the order of the
sums is that of the updates. Indices out of range are BoundsErrors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from weft.dtypes import is_float, max_value, min_value
from weft.ir.dim import Dim, product, prove_equal, prove_lt
from weft.ir.graph import Expr, ShapeExpr
from weft.ir.op.common import example, f32, i64, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Param
from weft.ir.op.precision import Reads, follow, never
from weft.ir.op.reductions.reduction import accumulator
from weft.support.records import dataclass

__all__: list[str] = []

_FAMILY = "indexing_scatter"
_COMBINED = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}
_REDUCTION, _SELF = Param("reduction", "attr", "sum", "str"), Param("include_self", "attr", True, "bool")


def _identity(reduction: str, dtype: str) -> float | int:
    """What a reduction begins with."""
    if reduction in ("sum", "mean"):
        return 0
    if reduction == "prod":
        return 1
    least = reduction == "amax"
    if is_float(dtype):
        return float("-inf") if least else float("inf")
    return min_value(dtype) if least else max_value(dtype)


def _checked(args: Parts, name: str) -> str:
    """The dtype of a tensor argument; ShapeError W205 for an unknown reduction."""
    if args.reduction not in _COMBINED:
        raise args.error(f"unknown reduction {args.reduction!r}: one of {', '.join(_COMBINED)}")
    dtype = args.require(name, "number").dtype
    if dtype is None:
        raise args.error(f"the dtype of {name} has to be known")
    return dtype


@dataclass(frozen=True)
class _Places:
    """Where updates go: each element to the index in its place, or slices along an axis to those of a vector."""

    indices: Expr
    axis: int
    of_elements: bool = False

    def write(self, data: Expr, updates: Expr, reduction: str) -> Expr:
        """The data with the updates."""
        operator = "scatter_elements" if self.of_elements else "scatter_slices"
        return call(operator, data, self.indices, updates, self.axis, reduction)

    def counts(self, data: Expr, updates: Expr, sizes: tuple[Dim, ...], dtype: str, include_self: bool) -> Expr:
        """How many elements are joined in each place; of whole slices of data of these sizes they are counted once."""
        places, of, ones = self, updates, call("ones_like", data)
        if sizes:
            places, of = _Places(self.indices, 0), call("astype", call("ones_like", self.indices), dtype)
            ones = call("full", (sizes[self.axis],), _number(1, dtype), dtype)
        like: Callable[[int], Expr] = lambda value: call("full_like", of, _number(value, dtype))  # noqa: E731
        if not include_self:
            ones = places.write(ones, like(0), "update")
        counts = places.write(ones, like(1), "add")
        shape = [size if d == self.axis else 1 for d, size in enumerate(sizes)]
        return call("reshape", counts, shape) if sizes else counts


def _number(value: float, dtype: str) -> Expr:
    return call("full", (), value, dtype)


def _reduced(
    args: Parts, data: Expr, places: _Places, updates: Expr, sizes: tuple[Dim, ...], include_self: bool
) -> Expr:
    """The updates joined into the data; without `include_self`, not with what stood in their places.

    Where the updates are whole slices, `sizes` are those of the data.
    """
    reduction, dtype = args.reduction, str(args.type("data").dtype)
    start = data
    if not include_self:
        like = call("full_like", updates, _number(_identity(reduction, dtype), dtype))
        start = places.write(data, like, "update")
    total = places.write(start, updates, _COMBINED[reduction])
    if reduction != "mean":
        return total
    counts = places.counts(data, updates, sizes, dtype, include_self)
    return call("divide" if is_float(dtype) else "floor_divide", total, counts)


_UFUNCS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _scatter_reference(data: Any, indices: Any, updates: Any, *, axis: int, reduction: str, include_self: bool) -> Any:
    out, counts = data.copy(), np.full(data.shape, int(include_self), data.dtype)
    touched = np.zeros(data.shape, bool)
    for at in np.ndindex(indices.shape):
        place = list(at)
        place[axis] = int(indices[at])
        where = tuple(place)
        first = not include_self and not touched[where]
        out[where] = updates[at] if first else _UFUNCS[reduction](out[where], updates[at])
        touched[where] = True
        counts[where] += 1
    if reduction == "mean":
        counts = np.where(touched, counts, 1)
        out = out / counts if out.dtype.kind == "f" else out // counts
    return out.astype(data.dtype)


@composite(
    "scatter_reduce",
    [Param("data"), Param("indices", of="int"), Param("updates"), Param("axis", "attr", 0, "int"), _REDUCTION, _SELF],
    numpy=_scatter_reference,
    family=_FAMILY,
    examples=(
        example(f32(4, 3), i64(2, 3), f32(2, 3), reduction="mean", ranges={"indices": (-4, 3)}),
        example(
            f32("n", 5),
            i64("n", 4),
            f32("n", 4),
            axis=1,
            reduction="amax",
            include_self=False,
            ranges={"indices": (0, 4)},
        ),
        example(
            typed("int32", 4),
            i64(6),
            typed("int32", 6),
            reduction="prod",
            include_self=False,
            ranges={"indices": (0, 3)},
        ),
        example(f32(4), i64(6), f32(6), reduction="mean", include_self=False, ranges={"indices": (0, 3)}),
    ),
)
def scatter_reduce(args: Parts) -> Expr:
    """A copy of data with updates joined to out[indices[i, j], j] (for axis 0): sum, prod, mean, amax or amin.

    Without include_self what stands in a place that is updated does not count. Integer means are rounded down.
    """
    _checked(args, "data")
    places = _Places(args.indices, args.axis_of("axis", args.type("data").ndim), of_elements=True)
    return _reduced(args, args.data, places, args.updates, (), args.include_self)


def _index_reference(data: Any, index: Any, source: Any, *, axis: int, **how: Any) -> Any:
    shape = [1] * data.ndim
    shape[axis] = -1
    indices = np.broadcast_to(index.reshape(shape), source.shape)
    return _scatter_reference(data, indices, source, axis=axis % data.ndim, **how)


@composite(
    "index_reduce",
    [Param("data"), Param("index", of="int"), Param("source"), Param("axis", "attr", 0, "int"), _REDUCTION, _SELF],
    numpy=_index_reference,
    family=_FAMILY,
    examples=(
        example(f32(4, 3), i64(5), f32(5, 3), ranges={"index": (0, 3)}),
        example(f32("n", 4), i64("m"), f32("n", "m"), axis=1, reduction="amin", ranges={"index": (-4, 3)}),
        example(f32(4, "n"), i64(5), f32(5, "n"), reduction="mean", include_self=False, ranges={"index": (0, 3)}),
        example(typed("int32", 4, 5), i64(3), typed("int32", 3, 2), reduction="mean", ranges={"index": (0, 3)}),
    ),
)
def index_reduce(args: Parts) -> Expr:
    """A copy of data with slice i of the source joined to slice index[i] along an axis; see scatter_reduce."""
    _checked(args, "data")
    sizes, given = args.dims("data"), args.dims("source")
    axis = args.axis_of("axis", len(given))
    whole = all(d == axis or prove_equal(*both) is True for d, both in enumerate(zip(sizes, given, strict=False)))
    return _reduced(args, args.data, _Places(args.index, axis), args.source, sizes if whole else (), args.include_self)


def _segments(data: Any, ids: Any, count: Any, *, reduction: str) -> Any:
    start = np.full((count[0], *data.shape[1:]), _identity(reduction, str(data.dtype)), data.dtype)
    with np.errstate(all="ignore"):
        if reduction != "mean":
            return _index_reference(start, ids, data, axis=0, reduction=reduction, include_self=True)
        total = _index_reference(start, ids, data, axis=0, reduction="sum", include_self=True)
        return (total.T / np.bincount(ids, minlength=count[0]).astype(data.dtype)).T


@composite(
    "segment_reduce",
    [Param("data"), Param("segment_ids", of="int"), Param("num_segments", "shape"), _REDUCTION],
    numpy=_segments,
    family=_FAMILY,
    examples=(
        example(f32(6, 2), i64(6), 4, ranges={"segment_ids": (0, 3)}),
        example(f32("n"), i64("n"), 3, reduction="mean", ranges={"segment_ids": (0, 2)}),
        example(typed("int32", "n", 2), i64("n"), 3, reduction="amax", ranges={"segment_ids": (0, 2)}),
    ),
)
def segment_reduce(args: Parts) -> Expr:
    """The slices of data with one segment id joined: sum, prod, mean, amax or amin; a row for each of num_segments.

    The ids may be in any order. A segment without slices gives 0, 1, nan, and the least and the greatest value.
    """
    dtype, sizes, count = _checked(args, "data"), args.dims("data"), _one_size(args, "num_segments")
    places = _Places(args.segment_ids, 0)
    start = call("full", (count, *sizes[1:]), _number(_identity(args.reduction, dtype), dtype), dtype)
    total = places.write(start, args.data, _COMBINED[args.reduction])
    if args.reduction != "mean":
        return total
    args.require("data", "float")
    none = call("full", (count,), _number(0, dtype), dtype)
    ones = call("astype", call("ones_like", args.segment_ids), dtype)
    counts = call("scatter_slices", none, args.segment_ids, ones, 0, "add")
    return call("divide", total, call("reshape", counts, [count, *[1] * (len(sizes) - 1)]))


def _one_size(args: Parts, name: str) -> Dim:
    shape = getattr(args, name)
    if not isinstance(shape, ShapeExpr) or len(shape.dims) != 1:
        raise args.error(f"{name} is one size, written out")
    return shape.dims[0]


def _counts(x: Any, length: Any, weights: Any = None) -> Any:
    return np.bincount(x, weights, length[0]).astype("int64" if weights is None else weights.dtype)


@composite(
    "bincount",
    [Param("x", of="int"), Param("length", "shape"), Param("weights", default=None)],
    numpy=_counts,
    family=_FAMILY,
    examples=(
        example(i64(6), 5, ranges={"x": (0, 4)}),
        example(typed("int32", "n"), 4, f32("n"), ranges={"x": (0, 3)}),
    ),
)
def bincount(args: Parts) -> Expr:
    """How often each number from 0 up to length occurs in a vector (int64), or the sum of the weights where it does.

    Another number is a BoundsError.
    """
    args.require("x", "integer")
    length = _one_size(args, "length")
    if args.weights is None:
        return call("count_indices", args.x, (length,))
    args.dims("x")
    dtype, x = args.type("weights").dtype, call("astype", args.x, "int64")
    beyond = call("full_like", x, call("full", (), length, "int64"))
    index = call("where", call("less", x, call("full", (), 0, "int64")), beyond, x)  # negative ones count from no end
    return call("scatter_elements", call("zeros", (length,), dtype), index, args.weights, 0, "add")


def _histogram(x: Any, *, bins: int, min: float, max: float) -> Any:
    if min == max == 0 and x.size:
        min, max = x.min(), x.max()
    if min == max:
        min, max = min - 1, max + 1
    low, high = x.dtype.type(min), x.dtype.type(max)
    inside = x[(x >= low) & (x <= high)]
    places = np.clip(((inside - low) / (high - low) * x.dtype.type(bins)).astype("int64"), 0, bins - 1)
    return np.bincount(places, minlength=bins).astype(x.dtype)


@composite(
    "histc",
    [
        Param("x"),
        Param("bins", "attr", 100, "int"),
        Param("min", "attr", 0.0, "float"),
        Param("max", "attr", 0.0, "float"),
    ],
    numpy=_histogram,
    family=_FAMILY,
    examples=(example(f32(3, 4), 5, -1.0, 1.0), example(f32("n"), 4, least=1), example(typed("float64", 7), 3, 0, 2)),
)
def histc(args: Parts) -> Expr:
    """How many elements lie in each of `bins` equal parts of [min, max], in the dtype of x; others do not count.

    Where both ends are 0, they are the least and the greatest element; where both are one number, it lies in the middle
    of a range of 2.
    """
    dtype = args.require("x", "float").dtype
    if args.bins < 1 or args.max < args.min:
        raise args.error(f"at least one bin, and min <= max, got {args.bins} from {args.min} to {args.max}")
    x = call("flatten", args.x)
    number: Callable[[Any], Expr] = lambda value: call("full", (), value, dtype)  # noqa: E731
    low, high = number(args.min), number(args.max)
    if args.min == args.max == 0:
        low, high = call("min", x), call("max", x)
    if args.min == args.max:
        same = call("equal", low, high)
        low = call("where", same, call("subtract", low, number(1.0)), low)
        high = call("where", same, call("add", high, number(1.0)), high)
    inside = call("logical_and", call("greater_equal", x, low), call("less_equal", x, high))
    share = call("divide", call("subtract", x, low), call("subtract", high, low))
    place = call("clip", call("astype", call("multiply", share, number(float(args.bins))), "int64"), 0, args.bins - 1)
    place = call("where", inside, place, call("full", (), 0, "int64"))
    return call("scatter_elements", call("zeros", (args.bins,), dtype), place, call("astype", inside, dtype), 0, "add")


# Embeddings


@composite(
    "nn.embedding",
    [Param("weight"), Param("indices", of="int")],
    family="indexing_index",
    numpy=lambda weight, indices: weight[indices],
    examples=(
        example(f32(5, 3), i64(2, 4), ranges={"indices": (0, 4)}),
        example(f32("v", 3), typed("int32", "n"), ranges={"indices": (-1, 0)}, least=1),
    ),
    precision=follow("weight", reads=Reads.PART),
)
def embedding(args: Parts) -> Expr:
    """The rows of weight that indices choose: (v, h), (...) -> (..., h)."""
    if args.type("weight").ndim not in (2, -1):
        raise args.error("weight is a matrix")
    return call("take", args.weight, args.indices, axis=0)


_BAGS = ("sum", "mean", "max")


def _bags(
    weight: Any,
    indices: Any,
    offsets: Any = None,
    per_sample_weights: Any = None,
    *,
    mode: str,
    padding_idx: int | None,
    include_last_offset: bool,
) -> Any:
    if indices.ndim == 2:
        bags = [range(i * indices.shape[1], (i + 1) * indices.shape[1]) for i in range(indices.shape[0])]
        indices = indices.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    else:
        ends = [*map(int, offsets), *([] if include_last_offset else [len(indices)])]
        bags = [range(begin, end) for begin, end in pairwise(ends)]
    out = np.zeros((len(bags), weight.shape[1]), weight.dtype)
    for row, bag in enumerate(bags):
        chosen = [i for i in bag if indices[i] != padding_idx]
        rows = weight[indices[chosen]].astype("float64")
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[chosen][:, None]
        if len(chosen):
            out[row] = {"sum": rows.sum, "mean": rows.mean, "max": rows.max}[mode](0)
    return out


@composite(
    "nn.embedding_bag",
    [
        Param("weight"),
        Param("indices", of="int"),
        Param("offsets", default=None, of="int"),
        Param("per_sample_weights", default=None),
        Param("mode", "attr", "mean", "str"),
        Param("padding_idx", "attr", None, "int?"),
        Param("include_last_offset", "attr", False, "bool"),
    ],
    numpy=_bags,
    family="indexing_index",
    examples=(
        example(f32(5, 3), i64(2, 4), ranges={"indices": (0, 4)}),
        example(f32(5, 3), i64(6), np.array([0, 2, 2, 5]), mode="sum", ranges={"indices": (0, 4)}),
        example(f32(5, 3), i64("n"), np.array([0, 0]), f32("n"), mode="sum", ranges={"indices": (0, 4)}),
        example(f32(5, 3), i64("n", 2), mode="max", padding_idx=1, ranges={"indices": (0, 4)}),
        example(
            f32(5, 3), i64(6), np.array([0, 4, 6]), padding_idx=2, include_last_offset=True, ranges={"indices": (0, 4)}
        ),
    ),
    precision=never("it sums many elements"),
)
def embedding_bag(args: Parts) -> Expr:
    """The sum, mean or maximum of the rows of weight in each bag; zeros for an empty one.

    Bags are the rows of indices (b, k), or the parts of indices (n,) that begin at the offsets, which ascend from 0;
    with include_last_offset the last offset is where the last bag ends. Rows with the index padding_idx do not count.
    Weights, of each index, go with the mode sum.
    """
    if args.mode not in _BAGS:
        raise args.error(f"unknown mode {args.mode!r}: one of {', '.join(_BAGS)}")
    if args.per_sample_weights is not None and args.mode != "sum":
        raise args.error("per_sample_weights go with the mode sum")
    own = str(args.require("weight", "float").dtype)
    dtype = own if args.mode == "max" else accumulator(own)
    bags = _bags_of(args)
    rows = _in(dtype, own, call("take", args.weight, bags.indices, axis=0))
    if args.per_sample_weights is not None:
        rows = call("multiply", rows, _in(dtype, own, bags.each(args.per_sample_weights)))
    number: Callable[[Any], Expr] = lambda value: call("full", (), value, dtype)  # noqa: E731
    kept = None
    if args.padding_idx is not None:
        at = call("astype", bags.indices, "int64")
        kept = bags.each(call("not_equal", at, call("full", (), args.padding_idx, "int64")))
        rows = call("where", kept, rows, number(float("-inf") if args.mode == "max" else 0.0))
    if args.mode == "max":
        most = bags.join(rows, "amax")
        return call("where", call("equal", most, number(float("-inf"))), number(0.0), most)
    total = bags.join(rows, "sum")
    if args.mode == "sum":
        return _in(own, dtype, total)
    return _in(own, dtype, call("divide", total, call("maximum", bags.counts(kept, dtype), number(1.0))))


def _in(dtype: str, given: str, value: Expr) -> Expr:
    """A value of one dtype in another one."""
    return value if dtype == given else call("astype", value, dtype)


@dataclass(frozen=True)
class _Bags:
    """Indices (b, size), whose rows are bags; or (n,), with the bag of each as `ids`, of which there are `count`."""

    indices: Expr
    size: Dim = 0
    ids: Expr | None = None
    count: Dim = 0

    def each(self, values: Expr) -> Expr:
        """Values of the indices with an axis for the columns of the rows that they choose."""
        return call("expand_dims", values if self.ids is None else call("flatten", values), -1)

    def counts(self, kept: Expr | None, dtype: str) -> Expr:
        """How many rows of each bag are kept, one beside another; all where that is not said."""
        if kept is not None:
            return self.join(_in(dtype, "bool", kept), "sum")
        if self.ids is None:
            return call("astype", call("full", (), self.size, "int64"), dtype)
        return self.join(self.each(call("ones_like", call("astype", self.indices, dtype))), "sum")

    def join(self, rows: Expr, reduction: str) -> Expr:
        """What is chosen by the indices of each bag, joined: the amax or the sum."""
        if self.ids is None:
            return call("max" if reduction == "amax" else "sum", rows, axis=1)
        return call("segment_reduce", rows, self.ids, self.count, reduction)


def _bags_of(args: Parts) -> _Bags:
    """The bags; those of one size are the rows of the indices, unless they may be empty and have no maximum."""
    sizes = args.dims("indices")
    if len(sizes) == 2 and args.offsets is None:
        if args.mode != "max" or prove_lt(0, sizes[1]) is True:
            return _Bags(args.indices, sizes[1])
        places = call("arange", 0, product(sizes), 1, "int64")
        each = call("maximum", call("full", (), sizes[1], "int64"), call("full", (), 1, "int64"))
        return _Bags(call("flatten", args.indices), sizes[1], call("floor_divide", places, each), sizes[0])
    if len(sizes) != 1 or args.offsets is None or len(args.dims("offsets")) != 1:
        raise args.error("indices have two dimensions, or one, and a vector of offsets")
    ends = call("astype", args.offsets, "int64")
    before = call("searchsorted", ends, call("arange", 0, sizes[0], 1, "int64"), right=True)
    ids = call("subtract", before, call("full", (), 1, "int64"))
    count = args.dims("offsets")[0]
    return _Bags(args.indices, 0, ids, count - 1 if args.include_last_offset else count)


# Unpooling


def _unpooled(data: Any, indices: Any, output_size: Any) -> Any:
    n, c = data.shape[:2]
    out = np.zeros((n, c, math.prod(output_size)), data.dtype)
    for i, j in np.ndindex(n, c):
        out[i, j][indices[i, j].reshape(-1)] = data[i, j].reshape(-1)
    return out.reshape(n, c, *output_size)


@composite(
    "nn.max_unpool",
    [Param("data"), Param("indices", of="int"), Param("output_size", "shape")],
    numpy=_unpooled,
    family="nn_pool",
    examples=(
        example(f32(1, 2, 2, 2), np.array([[[[0, 3], [8, 11]], [[5, 2], [9, 14]]]]), (4, 4)),
        example(f32("n", 1, 3), i64("n", 1, 3), (6,), ranges={"indices": (0, 0)}),
    ),
)
def max_unpool(args: Parts) -> Expr:
    """Zeros of another size with each element of data in the place that its index says: the inverse of a pool.

    data and indices (n, c, ...), output_size the sizes of the axes after the channels, in whose planes the indices
    count in row-major order. Of several elements with one index the last counts.
    """
    shape = args.output_size
    if not isinstance(shape, ShapeExpr):
        raise args.error("output_size is written out")
    if len(args.dims("data")) < 2:
        raise args.error("data has a batch, channels and axes after them")
    batch, channels, *spatial = args.dims("data")
    flat = (batch, channels, product(tuple(spatial)))
    data, indices = (call("reshape", part, flat) for part in (args.data, args.indices))
    zeros = call("zeros", (batch, channels, product(shape.dims)), args.type("data").dtype)
    return call("reshape", call("scatter_elements", zeros, indices, data, 2), (batch, channels, *shape.dims))
