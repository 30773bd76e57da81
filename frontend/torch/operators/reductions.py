"""Reductions, softmax, order, running sums and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_complex, is_float, part
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.dim import Dim, maximum, product
from weft.ir.graph import Expr, PrimValue, TupleGetItem
from weft.script import relax as R


def reduced(operator: Any) -> Any:
    """A reduction over axes, by default all, in the dtype of the result."""

    def made(n: FxNode, x: Expr, axes: Any = None, keepdim: bool = False, **options: Any) -> Expr:
        values = n.cast(x, n.dtype_out)
        return operator(values, n.axes(x, axes), keepdim) if n.rank(x) else values

    return made


def variance(
    n: FxNode, x: Expr, axes: Any = None, unbiased: Any = True, keepdim: bool = False, *, correction: Any = None
) -> Expr:
    """The mean square distance from the mean, over the count less a correction."""
    less = (1 if unbiased else 0) if correction is None else correction
    if isinstance(axes, bool):
        axes, less = None, int(axes)
    along = n.axes(x, axes)
    centred = R.subtract(x, R.mean(x, along, True))
    total = R.sum(R.square(R.abs(centred) if is_complex(n.dtype(x)) else centred), along, keepdim)
    count = product([n.shape(x)[axis] for axis in along])
    if float(less).is_integer():  # of fewer values than that nothing is left, which torch divides by
        left = R.full((), PrimValue(maximum(count - int(less), 0)), "int64")
    else:
        given = R.astype(R.full((), PrimValue(count), "int64"), "float32")
        left = R.maximum(R.subtract(given, R.const(float(less), "float32")), R.const(0.0, "float32"))
    return R.divide(total, R.astype(left, n.dtype_out))


def _with_mean(n: FxNode, x: Expr, after: Any, *args: Any, **options: Any) -> Any:
    """The variance, or its root, and the mean."""
    axes = options.get("dim", args[0] if args else None)
    keeps = options.get("keepdim", args[-1] if args and isinstance(args[-1], bool) and len(args) > 1 else False)
    mean = R.mean(x, n.axes(x, axes if not isinstance(axes, bool) else None), bool(keeps))
    return [after(variance(n, x, *args, **options)), mean]


def _without_nan(n: FxNode, x: Expr) -> Expr:
    return R.where(R.isnan(x), R.zeros_like(x), x) if is_float(part(n.dtype(x))) else x


def norm(n: FxNode, x: Expr, order: Any = 2, axes: Any = None, keepdim: bool = False, **options: Any) -> Expr:
    """The norm of vectors of an order; of halves it is computed in float32, as PyTorch does."""
    wide = "float32" if n.dtype_out in ("float16", "bfloat16") else n.dtype_out
    x = n.emit(R.abs(x if is_complex(n.dtype(x)) else n.cast(x, wide)))
    return n.cast(n.emit(_norm(n, x, order, axes, keepdim)), n.dtype_out)


def _norm(n: FxNode, x: Expr, order: Any, axes: Any, keepdim: bool) -> Expr:
    """The norm of lengths, which are not negative."""
    if not n.rank(x):
        return R.astype(R.not_equal(x, R.zeros_like(x)), n.dtype(x)) if order == 0 else x
    along = n.axes(x, axes)
    if order in (float("inf"), -float("inf")):
        return (R.max if order > 0 else R.min)(x, along, keepdim)
    if order == 0:
        return R.sum(R.astype(R.not_equal(x, R.zeros_like(x)), n.dtype(x)), along, keepdim)
    if order == 1:
        return R.sum(x, along, keepdim)
    if order == 2:
        return R.sqrt(R.sum(R.square(x), along, keepdim))
    return R.power(R.sum(R.power(x, float(order)), along, keepdim), 1.0 / float(order))


def any_or_all(operator: Any) -> Any:
    """Whether one of the values is true, or all are."""

    def made(n: FxNode, x: Expr, axes: Any = None, keepdim: bool = False) -> Expr:
        truth = n.cast(x, "bool")  # of uint8 the result is uint8
        return n.cast(operator(truth, n.axes(x, axes), keepdim) if n.rank(x) else truth, n.dtype_out)

    return made


def extreme(values: Any, place: Any) -> Any:
    """The greatest or least along an axis with its place, or of all."""

    def made(n: FxNode, x: Expr, axis: Any = None, keepdim: bool = False) -> Any:
        if axis is None:
            return values(x, n.axes(x, None), False) if n.rank(x) else x
        if isinstance(axis, Expr):  # of two tensors
            dtype = n.dtype_out
            return (R.maximum if values is R.max else R.minimum)(n.cast(x, dtype), n.cast(axis, dtype))
        if not n.rank(x):
            return x, R.zeros((), "int64")
        axis = n.axis(x, axis)
        return values(x, axis, keepdim), place(x, axis, keepdim)

    return made


def arg_extreme(operator: Any) -> Any:
    """The place of the greatest or least."""

    def made(n: FxNode, x: Expr, axis: Any = None, keepdim: bool = False) -> Expr:
        if not n.rank(x):
            return R.zeros((), "int64")
        return operator(x, None if axis is None else n.axis(x, axis), keepdim)

    return made


def softmax(n: FxNode, x: Expr, axis: int, *rest: Any) -> Expr:
    """Exponentials over their sum."""
    return R.nn.softmax(n.cast(x, n.dtype_out), n.axis(x, axis))


def log_softmax(n: FxNode, x: Expr, axis: int, *rest: Any) -> Expr:
    """The logarithm of the softmax."""
    return R.nn.log_softmax(n.cast(x, n.dtype_out), n.axis(x, axis))


def cumulative(operator: Any) -> Any:
    """A running sum or product."""

    def made(n: FxNode, x: Expr, axis: int, **options: Any) -> Expr:
        values = n.cast(x, n.dtype_out)
        return operator(values, n.axis(x, axis), n.dtype_out) if n.rank(x) else values

    return made


def addmm(n: FxNode, bias: Expr, a: Expr, b: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """beta * bias + alpha * a b."""
    return addmm_of(n, bias, R.matmul(a, b), beta, alpha)


def addmm_of(n: FxNode, bias: Expr, result: Expr, beta: Any, alpha: Any) -> Expr:
    """beta * bias + alpha * a product."""
    result = result if alpha == 1 else R.multiply(result, n.cast(alpha, n.dtype_out))
    if beta == 0:
        return result
    return R.add(result, bias if beta == 1 else R.multiply(bias, n.cast(beta, n.dtype_out)))


def linear(n: FxNode, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """x times the weight turned, and a bias."""
    product_ = R.matmul(x, R.permute_dims(weight, (1, 0)))
    return product_ if bias is None else R.add(product_, bias)


def top_k(n: FxNode, x: Expr, k: Any, axis: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    """The greatest or least elements in order, and their places."""
    if not isinstance(k, int) or k == 0:
        raise Unsupported("a symbolic number of elements")
    both = n.emit(R.topk(x, k, n.axis(x, axis), "both", largest, "int64"))
    return [_part(both, 0), _part(both, 1)]


def _part(value: Expr, index: int) -> Expr:
    return TupleGetItem(value, index)


def sort(n: FxNode, x: Expr, *args: Any, **options: Any) -> Any:
    """The elements in order along an axis, and their places."""
    args = args[1:] if args and isinstance(args[0], (bool, type(None))) and len(args) == 3 else args
    axis = options.get("dim", args[0] if args else -1)
    descending = options.get("descending", args[1] if len(args) > 1 else False)
    order = n.emit(R.argsort(x, n.axis(x, axis), bool(descending), "int64"))
    return [R.gather_elements(x, order, n.axis(x, axis)), order]


def argsort(n: FxNode, x: Expr, dim: int = -1, descending: bool = False, **options: Any) -> Expr:
    """The places that sort an axis, which `argsort.stable` names."""
    return R.argsort(x, n.axis(x, dim), bool(descending), "int64")


def attention(
    n: FxNode,
    q: Expr,
    k: Expr,
    v: Expr,
    mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Expr:
    """Attention of heads: queries (..., heads, length, size)."""
    if dropout or n.rank(q) != 4 or n.dtype(q) not in ("float32", "float16", "bfloat16"):
        raise Unsupported("dropout, or another rank than 4")
    bias = mask
    if mask is not None and n.dtype(mask) == "bool":  # rows of nothing but -inf give 0
        bias = R.where(mask, n.cast(0.0, n.dtype(q)), n.cast(float("-inf"), n.dtype(q)))
    if bias is not None:
        bias = of_scores(n, bias, (*n.shape(q)[:3], n.shape(k)[2]))
    query, key, value = (n.emit(R.permute_dims(x, (0, 2, 1, 3))) for x in (q, k, v))
    made = R.nn.attention(query, key, value, bias, scale, "TopLeft" if causal else None)
    return R.permute_dims(made, (0, 2, 1, 3))


def of_scores(n: FxNode, bias: Expr, scores: tuple[Dim, ...]) -> Expr:
    """A bias with all axes of scores; those of size 1 stay so."""
    bias = n.emit(bias)
    own = (*(1,) * (len(scores) - n.rank(bias)), *n.shape(bias))
    sizes = tuple(1 if size == 1 else full for size, full in zip(own, scores, strict=True))
    bias = bias if len(own) == n.rank(bias) else n.emit(R.reshape(bias, own))
    return bias if sizes == own else R.broadcast_to(bias, sizes)


def pairwise_distances(n: FxNode, x: Any, p: Any = 2.0) -> Expr:
    """The distances of all rows from those that follow, as a vector."""
    (count,) = n.ints(n.shape(x)[:1])
    first, second = np.triu_indices(count, 1)
    places = first * count + second
    found = n.emit(R.cdist(x, x, float(p)))
    return R.take(n.emit(R.reshape(found, (count * count,))), R.const(places.astype("int64"), "int64"), 0)


row("sum", reduced(R.sum))
row("mean", reduced(R.mean))
row("prod", reduced(R.prod))
row("amax", reduced(R.max))
row("amin", reduced(R.min))
row("var", variance)
row("std", lambda n, x, *a, **o: R.sqrt(variance(n, x, *a, **o)))
row("any", any_or_all(R.any))
row("all", any_or_all(R.all))
row("max", extreme(R.max, R.argmax))
row("min", extreme(R.min, R.argmin))
row("argmax", arg_extreme(R.argmax))
row("argmin", arg_extreme(R.argmin))
row("var_mean", lambda n, x, *a, **o: _with_mean(n, x, lambda v: v, *a, **o))
row("std_mean", lambda n, x, *a, **o: _with_mean(n, x, R.sqrt, *a, **o))
row(
    "logsumexp special_logsumexp",
    lambda n, x, axes, keepdim=False: (
        R.logsumexp(n.cast(x, n.dtype_out), n.axes(x, axes), keepdim) if n.rank(x) else n.cast(x, n.dtype_out)
    ),
)
row("logcumsumexp", cumulative(R.logcumsumexp))
row(
    "aminmax",
    lambda n, x, dim=None, keepdim=False: [
        operator(x, n.axes(x, dim), keepdim) if n.rank(x) else x for operator in (R.min, R.max)
    ],
)
row("nansum", lambda n, x, axes=None, keepdim=False, **o: reduced(R.sum)(n, _without_nan(n, x), axes, keepdim))
row(
    "count_nonzero",
    lambda n, x, axes=None: (
        R.sum(R.astype(n.cast(x, "bool"), "int64"), n.axes(x, axes), False)
        if n.rank(x)
        else R.astype(n.cast(x, "bool"), "int64")
    ),
)
row("linalg_vector_norm", norm)
row("softmax _softmax", softmax)
row("log_softmax _log_softmax", log_softmax)
row("cumsum", cumulative(R.cumsum))
row("cumprod", cumulative(R.cumprod))
row("mm bmm matmul mv dot", lambda n, a, b: R.matmul(a, b))
row("vdot", lambda n, a, b: R.matmul(R.conj(a), b))
row("outer ger", lambda n, a, b: R.outer(a, b))
row("trace", lambda n, x: R.sum(n.cast(n.emit(R.diagonal(x)), n.dtype_out), 0, False))
row(
    "linalg_cross",
    lambda n, a, b, *, dim=-1: R.cross(R.broadcast_to(a, n.dims_out), R.broadcast_to(b, n.dims_out), dim % n.out.ndim),
)
row("_pdist_forward", pairwise_distances)
row("_cdist_forward", lambda n, a, b, p, mode=None: R.cdist(a, b, float(p)))
row("addmm addmv", addmm)
row("baddbmm", addmm)
row("addbmm", lambda n, bias, a, b, beta=1, alpha=1: addmm_of(n, bias, R.sum(R.matmul(a, b), 0), beta, alpha))
row("linear", linear)
row(
    "einsum",
    lambda n, equation, tensors, **o: R.einsum(
        [n.cast(tensor, n.dtype_out) for tensor in tensors], equation.replace(" ", "")
    ),
)
row("topk", top_k)
row("sort", sort)
row("argsort", argsort)
row("scaled_dot_product_attention", attention)
