"""Operators that are others for lists of tensors, under other names, or with a result more.

_foreach_add(xs, ys)        add(x, y) for each x of xs and the y beside it
_aminmax(x)                 aminmax(x)
"""

from __future__ import annotations

from typing import Any

from weft.dtypes import is_float
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import TABLE, row
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R

# Lists ----------------------------------------------------------------------------------------------------------------


def same(name: str) -> Any:
    """What another operator is."""
    return lambda n, *args, **options: TABLE[name](n, *args, **options)


def each(function: Any) -> Any:
    """A function for each tensor of a list, with what stands beside it in other lists."""

    def made(n: FxNode, *args: Any, **options: Any) -> list[Any]:
        return [_of_one(n, function, index) for index in range(len(n.call.value))]

    return made


def _of_one(n: FxNode, function: Any, index: int) -> Any:
    def own(value: Any) -> Any:
        return value[index] if isinstance(value, (list, tuple)) else value

    call, argument = n.call, n.importer.argument
    args, options = tuple(map(own, call.args)), {key: own(value) for key, value in call.kwargs.items()}
    one = type(call)(f"{call.name}_{index}", call.target, args, options, call.value[index], [])
    return n.emit(function(FxNode(n.importer, one), *argument(list(args)), **argument(options)), one.name)


for _name in (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone cos cosh div erf erfc exp expm1 floor frac"
    " lerp lgamma log log10 log1p log2 max maximum minimum mm mul neg pow reciprocal round rsqrt sigmoid sign sin sinh"
    " sqrt sub tan tanh trunc"
).split():
    row(f"_foreach_{_name}", each(same(_name)))
row("addcdiv", lambda n, x, a, b, value=1: R.add(x, R.multiply(R.divide(a, b), n.cast(value, n.dtype_out))))
row(
    "linalg__powsum",
    lambda n, x, order=2, axes=None, keepdim=False, **options: R.sum(
        R.power(R.abs(n.cast(x, n.dtype_out)), n.cast(order, n.dtype_out)), n.axes(x, axes), keepdim
    ),
)
row("_foreach_powsum", each(lambda n, x, order=2, **options: TABLE["linalg__powsum"](n, x, order)))
row("_foreach_norm", each(lambda n, x, order=2, **options: TABLE["linalg_vector_norm"](n, x, order)))
row("_foreach_copy", each(lambda n, x, source, *rest: n.cast(R.broadcast_to(source, n.shape(x)), n.dtype(x))))
row("_foreach_zero", each(same("zeros_like")))

# Other names ----------------------------------------------------------------------------------------------------------

for _names, _other in {
    "_aminmax": "aminmax",
    "_index_put_impl": "index_put",
    "_is_all_true": "all",
    "_is_any_true": "any",
    "_logcumsumexp": "logcumsumexp",
    "_stack": "stack",
    "detach_copy _lazy_clone": "detach",
    "_neg_view_copy": "neg",
    "_reshape_alias_copy _reshape_copy": "reshape",
    "split_copy": "split",
    "view_as_complex_copy": "view_as_complex",
    "view_as_real_copy": "view_as_real",
    "_conj_copy": "conj",
}.items():
    row(_names, same(_other))
row("_unique", lambda n, x, ordered=True, inverse=False: TABLE["_unique2"](n, x, ordered, inverse)[:2])
row(
    "unique_dim_consecutive",
    lambda n, x, dim, inverse=False, counts=False: TABLE["unique_consecutive"](n, x, inverse, counts, dim),
)

# Counts ---------------------------------------------------------------------------------------------------------------


def bincount(n: FxNode, x: Expr, weights: Expr | None = None, minlength: int = 0) -> Expr:
    """How often each number from 0 to the greatest occurs, or the sum of the weights where it does."""
    x = n.emit(n.cast(x, "int64"), "numbers")
    least = R.full((1,), PrimValue(minlength - 1), "int64")
    greatest = R.max(n.emit(R.concat([x, least], 0), "ends"), [0], True)
    (length,) = n.emitter.sizes_of(n.emit(R.add(greatest, R.const(1, "int64")), "length"), "bins")
    weights = weights if weights is None else n.emit(n.cast(weights, n.dtype_out), "weights")
    return R.bincount(x, (length,), weights)


def segment_reduce(n: FxNode, data: Expr, reduce: str, **options: Any) -> Expr:
    """The slices of segments that follow one another, whose lengths are a vector, joined; empty ones are `initial`."""
    lengths, axis, initial = options.get("lengths"), n.axis(data, options.get("axis", 0)), options.get("initial")
    if lengths is None or n.rank(lengths) != 1 or axis != 0:
        raise Unsupported("segments of rows, or by offsets")
    if initial is not None or not is_float(n.dtype(data)):
        raise Unsupported("segments that begin with a value, or of integers")
    ends = n.emit(R.cumsum(n.cast(lengths, "int64"), 0), "ends")
    places = R.searchsorted(ends, R.arange(0, n.shape(data)[0], 1, "int64"), True)
    kinds = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}
    return R.segment_reduce(data, n.emit(places, "segment"), (n.shape(lengths)[0],), kinds[reduce])


row("bincount", bincount)
row("segment_reduce", segment_reduce)

# Products of integers, and windows ------------------------------------------------------------------------------------


def product_with_int8(n: FxNode, x: Expr, weight: Expr, scales: Expr) -> Expr:
    """Rows by a matrix of int8 turned, whose rows have a scale each: summed in float32."""
    wide = "float64" if n.dtype(x) == "float64" else "float32"
    turned = n.emit(R.permute_dims(n.cast(weight, wide), (1, 0)), "weight")
    return n.cast(R.multiply(R.matmul(n.cast(x, wide), turned), n.cast(scales, wide)), n.dtype_out)


def conv_tbc(n: FxNode, x: Expr, weight: Expr, bias: Expr, pad: int = 0) -> Expr:
    """A convolution of (time, batch, channels) by (time, channels, new channels)."""
    images, kernel = R.permute_dims(x, (1, 2, 0)), R.permute_dims(weight, (2, 1, 0))
    made = R.nn.conv1d(images, kernel, 1, [pad, pad])
    return R.add(R.permute_dims(made, (2, 0, 1)), bias)


def window(function: Any, *defaults: Any) -> Any:
    """A window of known length, with its options in the order in which PyTorch names them."""

    def made(n: FxNode, length: int, periodic: bool = True, *given: Any, **options: Any) -> Expr:
        (length,) = n.ints(length)
        if n.dtype_out not in ("float32", "float64"):
            raise Unsupported(f"a window of {n.dtype_out}")
        values = [n.number(value) for value in (*given, *defaults[len(given) :])]
        return function(length, bool(periodic), *values, n.dtype_out)

    return made


def _triangle(length: int, periodic: bool, dtype: str) -> Expr:
    steps = max(length if periodic else length - 1, 1)
    if length == 1:
        return R.ones((1,), dtype)
    at = R.multiply(R.astype(R.arange(0, length, 1, "int64"), dtype), 2.0 / steps)
    return R.subtract(1.0, R.abs(R.subtract(at, 1.0)))


row("_weight_int8pack_mm", product_with_int8)
row("_int_mm", lambda n, a, b: R.matmul(a, b, "int32"))
row("conv_tbc", conv_tbc)
row("bartlett_window", window(_triangle))
row("blackman_window", window(R.blackman_window))
row("hamming_window", window(R.hamming_window, 0.54, 0.46))
row("kaiser_window", window(lambda length, periodic, beta, dtype: R.kaiser_window(length, beta, periodic, dtype), 12.0))
