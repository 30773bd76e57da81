"""Elements chosen, placed or combined at positions, by masks, or as another view of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_float, max_value, min_value
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.operators.shapes import broadcast_sizes
from weft.frontend.torch.table import row
from weft.ir.dim import product
from weft.ir.graph import Constant, Expr, PrimValue, TupleGetItem
from weft.script import relax as R

_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
    "mean": "add",
}


def _int64(n: FxNode, x: Expr) -> Expr:
    return x if n.dtype(x) == "int64" else R.astype(x, "int64")


def _from_front(n: FxNode, place: Expr, size: Any) -> Expr:
    """Positions counted from the front: negative ones are those from the end."""
    place = n.emit(_int64(n, place), "place")
    return R.where(R.less(place, R.const(0, "int64")), R.add(place, R.full((), PrimValue(size), "int64")), place)


def flat(n: FxNode, x: Expr) -> Expr:
    """The elements in one row."""
    return x if n.rank(x) == 1 else R.reshape(x, (product(n.shape(x)),))


# Positions along an axis ----------------------------------------------------------------------------------------------


def _raised(n: FxNode, x: Expr) -> Expr:
    """A scalar as a vector of one: what operators along an axis take."""
    return x if n.rank(x) else R.reshape(x, (1,))


def _along(n: FxNode, x: Expr, axis: int, place: Expr, values: Any, reduction: str = "update") -> Expr:
    """Elements placed along an axis; scalars are vectors of one."""
    values = values if isinstance(values, Expr) else R.full(n.shape(place), n.cast(values, n.dtype_out), n.dtype_out)
    axis = n.axis(x, axis)
    place, values = n.emit(_raised(n, place), "place"), n.emit(_raised(n, values), "values")
    fitting = n.shape(place)
    if n.shape(values) != fitting:  # those beyond the positions are not used
        cut = [a for a in range(n.rank(values)) if n.shape(values)[a] != fitting[a]]
        values = R.strided_slice(values, cut, [0] * len(cut), [fitting[a] for a in cut])
    made = R.scatter_elements(n.emit(_raised(n, x)), place, values, axis, reduction)
    return made if n.rank(x) else R.reshape(made, ())


def _identity(n: FxNode, reduction: str, dtype: str) -> Any:
    """The value that a reduction leaves everything as it is with."""
    if reduction in ("sum", "mean", "add"):
        return 0
    if reduction in ("prod", "multiply"):
        return 1
    least = -float("inf") if is_float(dtype) else int(min_value(dtype))
    most = float("inf") if is_float(dtype) else int(max_value(dtype))
    return least if reduction == "amax" else most


def scatter(n: FxNode, x: Expr, axis: int, place: Expr, values: Any, reduce: str | None = None) -> Expr:
    """Elements replaced, added or multiplied at positions along an axis."""
    return _along(n, x, axis, place, values, "update" if reduce is None else _REDUCTIONS[reduce])


def scatter_reduce(
    n: FxNode, x: Expr, axis: int, place: Expr, values: Expr, reduce: str, include_self: bool = True
) -> Expr:
    """Elements combined at positions along an axis, with the old ones or without."""
    dtype = n.dtype(x)
    if reduce == "mean" and not is_float(dtype):
        raise Unsupported("the mean of integers")
    base = n.emit(x if include_self else _along(n, x, axis, place, _identity(n, reduce, dtype)), "base")
    total = _along(n, base, axis, place, values, _REDUCTIONS[reduce])
    if reduce != "mean":
        return total
    ones = R.full(n.shape(x), n.cast(1 if include_self else 0, dtype), dtype)
    count = _along(n, n.emit(ones, "ones"), axis, place, 1, "add")
    return R.divide(total, R.maximum(count, R.const(1.0, dtype)))


def _spread(n: FxNode, x: Expr, axis: int, place: Expr, like: Expr) -> Expr:
    """A vector of positions along an axis, for each element of a tensor."""
    rank = n.rank(like)
    place = _raised(n, place)
    wide = R.reshape(_from_front(n, place, n.shape(x)[axis]), tuple(-1 if a == axis else 1 for a in range(rank)))
    return n.emit(R.broadcast_to(wide, n.shape(like)), "places")


def index_add(n: FxNode, x: Expr, axis: int, place: Expr, source: Expr, *, alpha: Any = 1) -> Expr:
    """Slices added at positions of an axis."""
    values = source if alpha == 1 else R.multiply(source, n.cast(alpha, n.dtype(x)))
    return _slices(n, x, axis, place, values, "add")


def _slices(n: FxNode, x: Expr, axis: int, place: Expr, source: Expr, reduction: str) -> Expr:
    wide = n.emit(_raised(n, x))
    axis = n.axis(wide, axis)
    source = n.emit(_raised(n, source), "source")
    made = R.scatter_elements(wide, _spread(n, wide, axis, place, source), source, axis, reduction)
    return made if n.rank(x) else R.reshape(made, ())


def index_fill(n: FxNode, x: Expr, axis: int, place: Expr, value: Any) -> Expr:
    """One value at positions of an axis."""
    wide = n.emit(_raised(n, x))
    axis = n.axis(wide, axis)
    place = n.emit(_raised(n, place), "place")
    dims = list(n.shape(wide))
    dims[axis] = n.shape(place)[0]
    source = R.full(tuple(dims), n.cast(value, n.dtype(x)), n.dtype(x))
    return _slices(n, x, axis, place, source, "update")


def index_reduce(
    n: FxNode, x: Expr, axis: int, place: Expr, source: Expr, reduce: str, *, include_self: bool = True
) -> Expr:
    """Slices combined at positions of an axis."""
    wide, source = n.emit(_raised(n, x)), n.emit(_raised(n, source), "source")
    axis = n.axis(wide, axis)
    places = _spread(n, wide, axis, place, source)
    made = scatter_reduce(n, wide, axis, places, source, reduce, include_self)
    return made if n.rank(x) else R.reshape(made, ())


row("scatter scatter_", scatter)
row("scatter_add scatter_add_", lambda n, x, axis, place, values: _along(n, x, axis, place, values, "add"))
row("scatter_reduce", scatter_reduce)
row("index_add", index_add)
row("index_copy", lambda n, x, axis, place, source: _slices(n, x, axis, place, source, "update"))
row("index_fill", index_fill)
row("index_reduce", index_reduce)

# Positions along all axes ---------------------------------------------------------------------------------------------


def _masked_places(n: FxNode, mask: Expr) -> list[Expr]:
    """The positions of what is true, one vector for each axis."""
    found = n.importer.out.named_result(n.emit(R.nonzero(mask), "positions"), "positions", {0: n.rank(mask)})
    return [n.emit(R.take(found, R.const(axis, "int64"), 0), "position") for axis in range(n.rank(mask))]


def whole_indices(n: FxNode, x: Expr, indices: list[Any]) -> list[Any]:
    """Indices with positions in place of masks; None for axes that are left as they are."""
    made: list[Any] = []
    for item in indices:
        if item is None:
            made.append(None)
        elif n.dtype(item) in ("bool", "uint8"):
            made.extend(_masked_places(n, n.emit(n.cast(item, "bool"), "mask")))
        else:
            made.append(n.emit(_from_front(n, item, n.shape(x)[len(made)]), "index"))
    return made


def index(n: FxNode, x: Expr, indices: list[Any]) -> Expr:
    """Elements at index tensors, which stand side by side."""
    places = whole_indices(n, x, indices)
    given = [axis for axis, item in enumerate(places) if item is not None]
    together = given == list(range(given[0], given[-1] + 1))
    if len(given) == 1:
        return R.take(x, places[given[0]], given[0])
    if given == list(range(len(given))):
        return R.index_tensor(x, [places[axis] for axis in given])
    others = [axis for axis in range(n.rank(x)) if axis not in given]
    moved = n.emit(R.permute_dims(x, [*given, *others]), "moved")
    found = n.emit(R.index_tensor(moved, [places[axis] for axis in given]), "found")
    if not together:
        return found
    new, front = n.rank(found) - len(others), given[0]
    return R.permute_dims(found, [*range(new, new + front), *range(new), *range(new + front, n.rank(found))])


def index_put(n: FxNode, x: Expr, indices: list[Any], values: Expr, accumulate: bool = False, *rest: Any) -> Expr:
    """Values at index tensors, or at what masks choose."""
    given = [item for item in indices if item is not None]
    if len(given) == 1 and indices[0] is not None and n.dtype(given[0]) == "bool" and not n.rank(values):
        mask = R.reshape(given[0], (*n.shape(given[0]), *(1,) * (n.rank(x) - n.rank(given[0]))))
        return R.where(mask, R.add(x, values) if accumulate else values, x)
    places = whole_indices(n, x, indices)
    axes = [axis for axis, item in enumerate(places) if item is not None]
    if axes == list(range(len(axes))):
        return R.index_put(x, places[: len(axes)], values, accumulate)
    others = [axis for axis in range(n.rank(x)) if axis not in axes]
    order = [*axes, *others]
    if n.rank(values):
        raise Unsupported("values of several axes at index tensors behind others")
    made = R.index_put(n.emit(R.permute_dims(x, order)), [places[axis] for axis in axes], values, accumulate)
    return R.permute_dims(made, [order.index(axis) for axis in range(n.rank(x))])


def take(n: FxNode, x: Expr, place: Expr) -> Expr:
    """Elements of the flattened tensor."""
    return R.take(flat(n, x), _from_front(n, place, product(n.shape(x))), 0)


def put(n: FxNode, x: Expr, place: Expr, source: Expr, accumulate: bool = False) -> Expr:
    """Elements of the flattened tensor replaced, or added to."""
    row_, at = n.emit(flat(n, x)), n.emit(flat(n, n.emit(_from_front(n, place, product(n.shape(x))))))
    made = R.scatter_elements(row_, at, n.emit(flat(n, source)), 0, "add" if accumulate else "update")
    return R.reshape(made, n.shape(x))


def nonzero(n: FxNode, x: Expr) -> Expr:
    """The positions of what is not zero, one row each."""
    truth = n.cast(x, "bool") if n.rank(x) else _raised(n, x)
    found = n.importer.out.named_result(n.emit(R.nonzero(truth)), "positions", {0: n.rank(truth)})
    made = R.permute_dims(found, (1, 0))
    return made if n.rank(x) else R.strided_slice(made, [1], [0], [0])


def nonzero_numpy(n: FxNode, x: Expr) -> list[Expr]:
    """The positions of what is not zero, one vector for each axis: `torch.where` of a mask alone."""
    return _masked_places(n, n.emit(_raised(n, n.cast(x, "bool")), "mask"))


def nonzero_static(n: FxNode, x: Expr, *, size: int, fill_value: int = -1) -> Expr:
    """The positions of the first so many elements that are not zero, filled up."""
    found = nonzero(n, x)
    rank = n.rank(x)
    if not rank:
        raise Unsupported("the positions of a scalar")
    filled = R.concat([found, R.full((size, rank), R.const(fill_value, "int64"), "int64")], 0)
    return R.strided_slice(n.emit(filled, "filled"), [0], [0], [size], assume_inbound=True)


def masked_select(n: FxNode, x: Expr, mask: Expr) -> Expr:
    """The elements whose mask is true, in one row."""
    dims = broadcast_sizes(n.shape(x), n.shape(mask))
    chosen = n.emit(R.reshape(R.broadcast_to(mask, dims), (product(dims),)), "mask")
    (place,) = _masked_places(n, chosen)
    return R.take(R.reshape(R.broadcast_to(x, dims), (product(dims),)), place, 0)


def masked_scatter(n: FxNode, x: Expr, mask: Expr, source: Expr) -> Expr:
    """Elements whose mask is true replaced by those of another tensor, in order."""
    dims = n.dims_out
    chosen = n.emit(R.reshape(R.broadcast_to(mask, dims), (product(dims),)), "mask")
    count = R.subtract(R.cumsum(R.astype(chosen, "int64"), 0), R.const(1, "int64"))
    last = R.full((), PrimValue(product(n.shape(source)) - 1), "int64")
    place = R.minimum(R.maximum(count, R.const(0, "int64")), last)
    values = R.reshape(R.take(flat(n, source), n.emit(place, "place"), 0), dims)
    return R.where(R.reshape(chosen, dims), values, x)


row("index _unsafe_index", index)
row("index_put index_put_ _unsafe_index_put", index_put)
row("take", take)
row("put", put)
row("nonzero", nonzero)
row("nonzero_numpy", nonzero_numpy)
row("nonzero_static", nonzero_static)
row("masked_select", masked_select)
row("masked_scatter", masked_scatter)
row("gather", lambda n, x, axis, place, **o: _gathered(n, x, axis, place))


def _gathered(n: FxNode, x: Expr, axis: int, place: Expr) -> Expr:
    wide, at = n.emit(_raised(n, x)), n.emit(_raised(n, place))
    axis = n.axis(wide, axis)
    cut = [a for a in range(n.rank(wide)) if a != axis and n.shape(at)[a] != n.shape(wide)[a]]
    if cut:  # elements beyond the positions are not used
        wide = n.emit(R.strided_slice(wide, cut, [0] * len(cut), [n.shape(at)[a] for a in cut]))
    made = R.gather_elements(wide, at, axis)
    return made if n.rank(place) else R.reshape(made, ())


# Views of the memory --------------------------------------------------------------------------------------------------


def _strided_places(n: FxNode, size: Any, stride: Any, offset: Any) -> np.ndarray:
    """Where the elements of a strided view lie in the flattened tensor."""
    sizes, strides = n.ints(size), n.ints(stride)
    if np.prod(sizes, dtype="int64") > 1 << 20:
        raise Unsupported("a strided view of more than a million elements")
    places = np.full(sizes, int(offset or 0), "int64")
    for axis, (count, step) in enumerate(zip(sizes, strides, strict=True)):
        places += (np.arange(count) * step).reshape([-1 if a == axis else 1 for a in range(len(sizes))])
    return places


def _dense(n: FxNode) -> None:
    value = n.call.args[0].meta["val"]
    if not value.is_contiguous() or value.storage_offset() != 0:
        raise Unsupported("a strided view of a tensor that does not lie dense")


def as_strided(n: FxNode, x: Expr, size: Any, stride: Any, offset: Any = None) -> Expr:
    """Another view of the memory of a tensor that lies dense."""
    _dense(n)
    return R.take(flat(n, x), Constant(_strided_places(n, size, stride, offset)), 0)


def as_strided_scatter(n: FxNode, x: Expr, source: Expr, size: Any, stride: Any, offset: Any = None) -> Expr:
    """A tensor whose view is replaced."""
    _dense(n)
    places = _strided_places(n, size, stride, offset).reshape(-1)
    made = R.scatter_elements(flat(n, x), Constant(places), n.emit(flat(n, source)), 0)
    return R.reshape(made, n.shape(x))


def _places_of(n: FxNode, x: Expr) -> np.ndarray:
    sizes = n.dims_of(x)
    if np.prod(sizes, dtype="int64") > 1 << 20:
        raise Unsupported("more than a million elements")
    return np.arange(int(np.prod(sizes, dtype="int64"))).reshape(sizes)


def diagonal_scatter(n: FxNode, x: Expr, source: Expr, offset: int = 0, first: int = 0, second: int = 1) -> Expr:
    """A tensor whose diagonal is replaced."""
    places = np.diagonal(_places_of(n, x), offset, first, second).reshape(-1)
    made = R.scatter_elements(flat(n, x), Constant(places.copy()), n.emit(flat(n, source)), 0)
    return R.reshape(made, n.shape(x))


def select_scatter(n: FxNode, x: Expr, source: Expr, axis: int, place: Any) -> Expr:
    """A tensor one of whose slices is replaced."""
    axis = n.axis(x, axis)
    size = n.shape(x)[axis]
    at = place if not isinstance(place, int) or place >= 0 else size + place
    index_ = R.reshape(R.arange(0, size, 1, "int64"), tuple(size if a == axis else 1 for a in range(n.rank(x))))
    return R.where(R.equal(index_, n.cast(at, "int64")), R.expand_dims(n.cast(source, n.dtype(x)), [axis]), x)


def slice_scatter(
    n: FxNode, x: Expr, source: Expr, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Expr:
    """A tensor a range of whose axis is replaced."""
    axis = n.axis(x, axis)
    size = n.shape(x)[axis]
    last = size if end is None or (isinstance(end, int) and end >= 2**62) else end
    return R.slice_scatter(x, n.cast(source, n.dtype(x)), 0 if start is None else start, last, step, axis)


row("as_strided as_strided_copy", as_strided)
row("as_strided_scatter", as_strided_scatter)
row(
    "diagonal diagonal_copy",
    lambda n, x, offset=0, first=0, second=1: R.diagonal(x, offset, n.axis(x, first), n.axis(x, second)),
)
row("diagonal_scatter", diagonal_scatter)
row("select_scatter", select_scatter)
row("slice_scatter", slice_scatter)

# Orders and distinct elements -----------------------------------------------------------------------------------------


def unique(n: FxNode, x: Expr, sorted_: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    """The distinct elements, the place of each element among them, and how often each occurs."""
    values, places, often = _distinct(n, flat(n, x), inverse, counts, None)
    return [values, R.reshape(places, n.shape(x)) if n.wanted(1) and inverse else places, often]


def unique_dim(
    n: FxNode, x: Expr, dim: int, sorted_: bool = True, inverse: bool = False, counts: bool = False
) -> list[Expr]:
    """The distinct slices along an axis, which of them each slice is, and how often each occurs."""
    return _distinct(n, x, inverse, counts, n.axis(x, dim))


def unique_consecutive(n: FxNode, x: Expr, inverse: bool = False, counts: bool = False, dim: int | None = None) -> Any:
    """One element of each run of equal elements, the run of each element, and how long each run is."""
    if dim is not None and n.rank(x) != 1:
        raise Unsupported("runs of equal slices")
    line = n.emit(flat(n, x), "line")
    (size,) = n.shape(line)
    before = R.take(line, R.maximum(R.subtract(R.arange(size), R.const(1, "int64")), R.const(0, "int64")), 0)
    number = n.emit(R.cumsum(R.astype(R.not_equal(line, before), "int64"), 0), "run")
    found = n.emit(R.unique(number, True, True, True, True), "runs")
    _, first, places, often = (n.emit(TupleGetItem(found, index)) for index in range(4))
    values = n.importer.out.named_result(R.take(line, first, 0), "unique")
    return [values, R.reshape(places, n.shape(x)) if inverse else _empty(1)[0], often if counts else _empty(1)[0]]


def _distinct(n: FxNode, x: Expr, inverse: bool, counts: bool, axis: int | None) -> list[Expr]:
    """Distinct elements or slices, places and counts; empty vectors for those that nobody asks for."""
    wants = [n.wanted(1) and inverse, n.wanted(2) and counts]
    found = n.emit(R.unique(x, True, False, *wants, axis=axis), "unique")
    if not any(wants):
        return [n.importer.out.named_result(found, "unique"), *_empty(2)]
    parts = iter(range(1, 3))
    return [
        n.emit(TupleGetItem(found, 0)),
        *(n.emit(TupleGetItem(found, next(parts))) if wanted else _empty(1)[0] for wanted in wants),
    ]


def _empty(count: int) -> list[Expr]:
    return [R.zeros((0,), "int64")] * count


row("_unique2", unique)
row("unique_dim", unique_dim)
row("unique_consecutive", unique_consecutive)


def median(n: FxNode, x: Expr, axis: int | None = None, keepdim: bool = False) -> Any:
    """The middle value, the lower one of two, with its place along an axis."""
    if n.rank(x) == 0:
        return x if axis is None else [x, R.zeros((), "int64")]
    if axis is None:
        return R.reshape(R.median(flat(n, x), [0], False), ()) if n.rank(x) > 1 else _part(n, R.median(x, 0, False), 0)
    both = n.emit(R.median(x, [n.axis(x, axis)], keepdim))
    return [_part(n, both, 0), _part(n, both, 1)]


def _part(n: FxNode, both: Expr, index_: int) -> Expr:
    return TupleGetItem(n.emit(both), index_)


def kth_value(n: FxNode, x: Expr, k: int, axis: int = -1, keepdim: bool = False) -> Any:
    """The k-th least element of an axis, and its place."""
    wide = n.emit(_raised(n, x))
    both = n.emit(R.kthvalue(wide, k, n.axis(wide, axis), keepdim and bool(n.rank(x))))
    return [TupleGetItem(both, 0), TupleGetItem(both, 1)]


def median_without_nan(n: FxNode, x: Expr, axis: int | None = None, keepdim: bool = False) -> Any:
    """The middle value of those that are numbers."""
    if not is_float(n.dtype(x)) or not n.rank(x):
        return median(n, x, axis, keepdim)
    wide = n.emit(flat(n, x) if axis is None else x)
    along = 0 if axis is None else n.axis(x, axis)
    order = n.emit(R.argsort(wide, along, False, "int64"), "order")  # nan last
    count = R.sum(R.astype(R.logical_not(R.isnan(wide)), "int64"), along, True)
    middle = n.emit(
        R.maximum(R.floor_divide(R.subtract(count, R.const(1, "int64")), R.const(2, "int64")), R.const(0, "int64")),
        "middle",
    )
    place = n.emit(R.gather_elements(order, middle, along), "place")
    values = R.gather_elements(wide, place, along)
    if axis is None:
        return R.reshape(values, ())
    return [R.reshape(part, n.dims_out) for part in (values, place)]


row("nanmedian", median_without_nan)
row("median", median)
row("kthvalue", kth_value)


def running_extreme(operator: Any) -> Any:
    """The greatest or least so far, and where it lies last."""

    def made(n: FxNode, x: Expr, axis: int) -> Any:
        if not n.rank(x):
            return [x, R.zeros((), "int64")]
        axis = n.axis(x, axis)
        values = n.emit(operator(x, axis))
        size = n.shape(x)[axis]
        dims = tuple(size if a == axis else 1 for a in range(n.rank(x)))
        index_ = R.broadcast_to(R.reshape(R.arange(0, size, 1, "int64"), dims), n.shape(x))
        here = R.logical_or(R.equal(x, values), R.isnan(x)) if is_float(n.dtype(x)) else R.equal(x, values)
        return [values, R.cummax(R.where(here, index_, R.const(0, "int64")), axis)]

    return made


row(
    "mode",
    lambda n, x, axis=-1, keepdim=False: (
        [_part(n, R.mode(x, n.axis(x, axis), keepdim), 0), _part(n, R.mode(x, n.axis(x, axis), keepdim), 1)]
        if n.rank(x)
        else [x, R.zeros((), "int64")]
    ),
)
row("histc", lambda n, x, bins=100, low=0, high=0: R.histc(n.emit(flat(n, x)), bins, float(low), float(high)))
row("cummax", running_extreme(R.cummax))
row("cummin", running_extreme(R.cummin))
row("searchsorted", lambda n, ordered, values, **o: _search(n, values, ordered, **o))
row("bucketize", lambda n, values, ordered, **o: _search(n, values, ordered, **o))


def _search(
    n: FxNode,
    values: Any,
    ordered: Expr,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Expr:
    """Where values would stand in a sorted vector."""
    if sorter is not None or n.rank(ordered) != 1:
        raise Unsupported("rows that are searched one by one, or an order that is given")
    values = n.cast(values, n.dtype(ordered))
    return R.searchsorted(ordered, values, right or side == "right", out_int32)
