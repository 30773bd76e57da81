"""Attention as `torch.nn` has it: of graphs of one score (`flex_attention`), and in whole layers of encoders.

Each graph of a score and its place is written for one element; it runs on all of them at once, as every operator of it
is elementwise or reads buffers at places. Layers (TransformerEncoderLayer, MultiheadAttention without gradients) are
one node in graphs of `torch.compile`; programs that are exported hold their operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.operators.reductions import linear, of_scores
from weft.frontend.torch.table import row
from weft.ir.dim import Dim
from weft.ir.graph import Expr
from weft.script import relax as R

__all__: list[str] = []

_CREATED = "full ones zeros new_full new_ones new_zeros scalar_tensor"
_PLACED = frozenset(f"{_CREATED} index where clone detach _to_copy to __and__ __or__ __xor__".split())
"""Operators that work on one element beside those that PyTorch calls pointwise; `index` reads one of a buffer."""


def _on_all(n: FxNode, graph: Any, inputs: Sequence[Any]) -> Expr:
    """The result of a graph of one element on tensors of all elements."""
    pointwise = n.importer.torch.Tag.pointwise
    for node in n.importer.graphs[graph].graph.nodes:
        if node.op == "call_function":
            name = getattr(node.target, "_opname", "")
            if getattr(node.meta.get("val"), "ndim", 0) or not (name in _PLACED or pointwise in node.target.tags):
                raise Unsupported(f"{node.target} in a graph of one score")
    (result,) = n.importer.inlined(graph, inputs)
    return result


def _places(n: FxNode, dims: Sequence[Dim]) -> list[Expr]:
    """The place along each axis, spread over the others."""
    shapes = [tuple(size if other == axis else 1 for other in range(len(dims))) for axis, size in enumerate(dims)]
    each = [R.reshape(R.astype(R.arange(size), "int32"), shape) for size, shape in zip(dims, shapes, strict=True)]
    return [n.emit(place, "place") for place in each]


def _for_heads(n: FxNode, x: Expr, heads: Dim) -> Expr:
    """Keys or values of groups of heads, for each head."""
    own = n.shape(x)[1]
    if own == heads:
        return x
    if not (isinstance(own, int) and isinstance(heads, int)):
        raise Unsupported("groups of heads whose number is not known")
    return n.emit(R.repeat(x, heads // own, 1), "heads")


def flexible_attention(
    n: FxNode,
    q: Expr,
    k: Expr,
    v: Expr,
    score: Any,
    blocks: Sequence[Any],
    scale: float,
    options: Any,
    score_buffers: Sequence[Any] = (),
    mask_buffers: Sequence[Any] = (),
) -> list[Expr | None]:
    """The values weighted by the softmax of what a graph makes of each score, where another one does not mask it."""
    if n.wanted(1) or n.wanted(2):
        raise Unsupported("the sums or the greatest of the scores")
    dims, dtype = n.shape(q), n.dtype(q)
    wide = "float64" if dtype == "float64" else "float32"
    k, v = (_for_heads(n, x, dims[1]) for x in (k, v))
    product = R.matmul(R.astype(q, wide), R.permute_dims(R.astype(k, wide), (0, 1, 3, 2)))
    scores = n.emit(R.multiply(product, R.const(scale, wide)), "scores")
    places = _places(n, (*dims[:3], n.shape(k)[2]))
    mask, changed = (
        _on_all(n, blocks[-1], [*places, *mask_buffers]),
        _on_all(n, score, [scores, *places, *score_buffers]),
    )
    none = R.const(float("-inf"), wide)
    changed = n.emit(R.where(mask, changed, none), "masked")
    empty = R.equal(R.max(changed, [-1], True), none)
    weights = R.where(empty, R.const(0.0, wide), R.nn.softmax(changed, -1))
    return [R.matmul(R.astype(weights, dtype), v), None, None]


# Layers of encoders ---------------------------------------------------------------------------------------------------


def _projected(n: FxNode, inputs: tuple[Expr, Expr, Expr], weight: Expr, bias: Expr, heads: int) -> list[Expr]:
    """Queries, keys and values (batch, length, heads, size) of three tensors, which may be one."""
    width = n.shape(weight)[1]
    parts: list[Expr] = []
    whole = n.emit(linear(n, inputs[0], weight, bias), "qkv") if inputs[0] is inputs[1] is inputs[2] else None
    for place, x in enumerate(inputs):
        first, last = place * width, (place + 1) * width
        if whole is None:
            own = (n.emit(R.strided_slice(part, [0], [first], [last]), "part") for part in (weight, bias))
            found = linear(n, x, *own)
        else:
            found = R.strided_slice(whole, [2], [first], [last])
        batch, length, _ = n.shape(x)
        parts.append(n.emit(R.reshape(found, (batch, length, heads, width // heads)), "projected"))
    return parts


def _hidden(n: FxNode, mask: Expr, kind: int | None) -> Expr:
    """Which scores (batch, heads, queries, keys) a mask hides: of queries and keys (0), of keys (1), or of all (2)."""
    dims = n.shape(mask)
    wide = {0: (1, 1, *dims), 1: (*dims[:1], 1, 1, *dims[1:]), 2: dims}.get(2 if kind is None else kind)
    if wide is None or len(wide) != 4:
        raise Unsupported("a mask of another rank than its kind says")
    return n.emit(R.reshape(n.cast(mask, "bool"), wide), "hidden")


def _attended(n: FxNode, q: Expr, k: Expr, v: Expr, hidden: Expr | None) -> Expr:
    """The values (batch, length, heads, size) that each query attends to; nan where all of them are hidden."""
    if hidden is None:
        return R.nn.attention(q, k, v)
    dtype, (batch, length, heads, _) = n.dtype(q), n.shape(q)
    hides = R.where(R.all(hidden, [3], True), n.cast(float("nan"), dtype), n.cast(float("-inf"), dtype))
    bias = R.where(hidden, hides, n.cast(0.0, dtype))
    return R.nn.attention(q, k, v, of_scores(n, bias, (batch, heads, length, n.shape(k)[1])))


def _weights(n: FxNode, q: Expr, k: Expr, hidden: Expr | None) -> Expr:
    """The shares (batch, heads, queries, keys) of the keys in what each query attends to."""
    scale = float(n.ints(n.shape(q)[3])[0]) ** -0.5
    heads = [n.emit(R.permute_dims(q, (0, 2, 1, 3))), n.emit(R.permute_dims(k, (0, 2, 3, 1)))]
    scores = R.multiply(R.matmul(*heads), n.cast(scale, n.dtype(q)))
    if hidden is not None:
        scores = R.where(hidden, n.cast(float("-inf"), n.dtype(q)), scores)
    return n.emit(R.nn.softmax(scores, 3), "weights")


def attention(
    n: FxNode,
    q: Expr,
    k: Expr,
    v: Expr,
    width: int,
    heads: int,
    weight: Expr,
    bias: Expr,
    out_weight: Expr,
    out_bias: Expr,
    mask: Expr | None = None,
    need_weights: bool = True,
    average: bool = True,
    kind: int | None = None,
) -> list[Expr | None]:
    """Attention of heads with its projections, and its weights where somebody uses them."""
    if any(n.rank(x) != 3 or n.dtype(x) not in ("float32", "float16", "bfloat16") for x in (q, k, v)):
        raise Unsupported("another rank than 3, or float64")
    queries, keys, values = _projected(n, (q, k, v), weight, bias, heads)
    hidden = None if mask is None else _hidden(n, mask, kind)
    found = n.emit(_attended(n, queries, keys, values, hidden), "attended")
    batch, length, _ = n.shape(q)
    made = linear(n, n.emit(R.reshape(found, (batch, length, width)), "joined"), out_weight, out_bias)
    if not need_weights or not n.wanted(1):
        return [made, None]
    weights = _weights(n, queries, keys, hidden)
    return [made, R.mean(weights, [1]) if average else weights]


def encoder_layer(
    n: FxNode,
    x: Expr,
    width: int,
    heads: int,
    weight: Expr,
    bias: Expr,
    out_weight: Expr,
    out_bias: Expr,
    gelu: bool,
    norm_first: bool,
    epsilon: float,
    *rest: Any,
) -> Expr:
    """Attention and two linear layers, each with a norm before or after it and what it was given added."""
    (scale, shift, scale_2, shift_2, first, first_bias, second, second_bias), masks = rest[:8], rest[8:]
    mask, kind = (*masks, None, None)[:2]

    def normed(value: Expr, scale: Expr, shift: Expr) -> Expr:
        return n.emit(R.nn.layer_norm(value, scale, shift, (2,), float(epsilon)), "normed")

    own = normed(x, scale, shift) if norm_first else x
    made = attention(n, own, own, own, width, heads, weight, bias, out_weight, out_bias, mask, False, True, kind)[0]
    assert made is not None
    y = n.emit(R.add(made, x), "attended")
    y = y if norm_first else normed(y, scale, shift)
    own = normed(y, scale_2, shift_2) if norm_first else y
    inner = (R.nn.gelu if gelu else R.nn.relu)(linear(n, own, first, first_bias))
    y = n.emit(R.add(linear(n, n.emit(inner, "inner"), second, second_bias), y), "result")
    return y if norm_first else normed(y, scale_2, shift_2)


row("flex_attention", flexible_attention)
row("_native_multi_head_attention", attention)
row("_transformer_encoder_layer_fwd", encoder_layer)
