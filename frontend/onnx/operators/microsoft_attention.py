"""Attention of onnxruntime (domain com.microsoft), with its caches, masks and rotations, on heads that lie third:
(batch, length, heads, size), as `R.nn.attention` takes them.

    Attention                 one product makes queries, keys and values
    MultiHeadAttention        queries, keys and values, or all three packed into one tensor
    GroupQueryAttention       fewer heads of keys and values; a cache that each row of the batch has filled to a length
    RotaryEmbedding           the rotation alone

Source: the descriptions of onnxruntime's contrib operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.operators.microsoft import microsoft
from weft.ir.dim import Dim, maximum
from weft.ir.graph import Constant, Expr, PrimValue
from weft.script import relax as R

_LEAST = -3e38


def _heads(n: OnnxNode, x: Expr, count: int) -> Expr:
    """(b, s, hidden) as (b, s, heads, size)."""
    b, s, hidden = n.shape(x)
    return R.reshape(x, (b, s, count, hidden // count))


def _merged(n: OnnxNode, x: Expr) -> Expr:
    """(b, s, heads, size) as (b, s, hidden)."""
    b, s, heads, size = n.shape(x)
    return R.reshape(x, (b, s, heads * size))


def _exchanged(x: Expr) -> Expr:
    """The axes of heads and lengths exchanged: what caches hold is (b, heads, t, size)."""
    return R.permute_dims(x, (0, 2, 1, 3))


def _number(n: OnnxNode, value: float, like: Expr) -> Constant:
    return Constant(np.asarray(value, n.dtype(like)))


def _count(size: Dim, dtype: str = "int64") -> Expr:
    return R.full((), PrimValue(size), dtype)


def attended(n: OnnxNode, q: Expr, k: Expr, v: Expr, bias: Expr | None, causal: str | None) -> Expr:
    """The result of attention in three axes."""
    scale = float(n.attr("scale", 0.0) or 0.0) or None
    if float(n.attr("softcap", 0.0) or 0.0):
        raise Unsupported("scores that a softcap bounds")
    return _merged(n, n.emit(R.nn.attention(q, k, v, bias, scale, causal)))


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else R.add(a, b)


def padding_bias(n: OnnxNode, mask: Expr, like: Expr, total: Dim) -> Expr:
    """What is added to scores for keys that a mask leaves out: (b, t), (b, s, t), or lengths (b,)."""
    least = _number(n, float(n.attr("mask_filter_value", -10000.0)), like)
    zero = _number(n, 0.0, like)
    rank = n.rank(mask)
    if rank == 1:
        b = n.shape(mask)[0]
        place = R.reshape(R.arange(0, total, 1, n.dtype(mask)), (1, total))
        keeps = R.less(place, R.reshape(mask, (b, 1)))
    else:
        keeps = R.not_equal(mask, Constant(np.asarray(0, n.dtype(mask))))
    dims = n.shape(n.emit(keeps, "keeps")) if rank == 1 else n.shape(mask)
    wide = {1: (dims[0], 1, 1, dims[-1]), 2: (dims[0], 1, 1, dims[-1]), 3: (dims[0], 1, *dims[1:]), 4: dims}[rank]
    return R.reshape(R.where(keeps, zero, least), wide)


def _whole_bias(n: OnnxNode, bias: Expr | None, q: Expr, k: Expr) -> Expr | None:
    if bias is None:
        return None
    (b, s, heads, _), t = n.shape(q), n.shape(k)[1]
    return R.broadcast_to(bias, (b, heads, s, t))


def attention(
    n: OnnxNode,
    x: Expr,
    weights: Expr,
    bias: Expr | None,
    mask: Expr | None,
    past: Expr | None,
    scores: Expr | None,
    length: Expr | None,
) -> Any:
    """One product makes queries, keys and values, one after another along the last axis."""
    if n.attr("do_rotary", 0) or n.attr("past_present_share_buffer", 0) or length is not None:
        raise Unsupported("rotations, or a cache that is shared")
    heads = int(n.attr("num_heads"))
    product = n.emit(R.matmul(x, weights) if bias is None else R.add(R.matmul(x, weights), bias), "qkv")
    hidden = n.shape(product)[-1]
    sizes = n.attr("qkv_hidden_sizes") or [hidden // 3] * 3
    ends = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    q, k, v = (
        n.emit(_heads(n, n.emit(R.strided_slice(product, [2], [ends[i]], [ends[i + 1]])), heads)) for i in range(3)
    )
    return _with_past(n, q, k, v, mask, past, scores)


def _with_past(
    n: OnnxNode, q: Expr, k: Expr, v: Expr, mask: Expr | None, past: Expr | None, scores: Expr | None
) -> Any:
    if past is not None:
        before = [n.emit(R.squeeze(R.strided_slice(past, [0], [i], [i + 1]), [0])) for i in (0, 1)]
        k, v = (n.emit(R.concat([_exchanged(old), new], 1)) for old, new in zip(before, (k, v), strict=True))
    total = n.shape(k)[1]
    bias = _sum(padding_bias(n, mask, q, total) if mask is not None else None, scores)
    causal = "BottomRight" if n.attr("unidirectional", 0) else None
    y = attended(n, q, k, v, _whole_bias(n, bias, q, k), causal)
    if not n.output_wanted(1):
        return y
    return y, R.stack([_exchanged(k), _exchanged(v)], 0)


def multi_head(
    n: OnnxNode,
    q: Expr,
    k: Expr | None,
    v: Expr | None,
    bias: Expr | None,
    mask: Expr | None,
    scores: Expr | None,
    past_k: Expr | None,
    past_v: Expr | None,
    length: Expr | None,
    indirection: Expr | None,
) -> Any:
    """Queries, keys and values as they come, or packed: (b, s, heads, 3, size), or keys with values."""
    if length is not None or indirection is not None or n.output_wanted(3):
        raise Unsupported("a cache that is shared, or the scores as a result")
    heads = int(n.attr("num_heads"))
    query, key, value = _separate(n, q, k, v, heads)
    if bias is not None:
        query, key, value = _biased(n, (query, key, value), bias, heads)
    if past_k is not None and past_v is not None:
        key, value = (R.concat([_exchanged(old), new], 1) for old, new in ((past_k, key), (past_v, value)))
    key, value = n.emit(key, "key"), n.emit(value, "value")
    total = n.shape(key)[1]
    added = _sum(padding_bias(n, mask, q, total) if mask is not None else None, scores)
    causal = "BottomRight" if n.attr("unidirectional", 0) else None
    y = attended(n, n.emit(query), key, value, _whole_bias(n, added, query, key), causal)
    return (y, _exchanged(key), _exchanged(value))[: max(len(n.proto.output), 1)] if len(n.proto.output) > 1 else y


def _separate(n: OnnxNode, q: Expr, k: Expr | None, v: Expr | None, heads: int) -> tuple[Expr, Expr, Expr]:
    if k is None or v is None:
        packed, kinds = (q, 3) if k is None else (k, 2)
        b, s, count, _, size = n.shape(packed)
        parts = [
            n.emit(R.reshape(R.strided_slice(packed, [3], [i], [i + 1]), (b, s, count, size))) for i in range(kinds)
        ]
        return (parts[0], parts[1], parts[2]) if kinds == 3 else (n.emit(_heads(n, q, heads)), parts[0], parts[1])
    key, value = (_exchanged(x) if n.rank(x) == 4 else _heads(n, x, heads) for x in (k, v))
    return n.emit(_heads(n, q, heads)), n.emit(key), n.emit(value)


def _biased(n: OnnxNode, parts: tuple[Expr, Expr, Expr], bias: Expr, heads: int) -> list[Expr]:
    """The parts of a bias added to queries, keys and values."""
    made, start = [], 0
    for part in parts:
        size = n.dims(part, [3])[0]
        own = R.strided_slice(bias, [0], [start], [start + heads * size])
        made.append(n.emit(R.add(part, R.reshape(own, (heads, size)))))
        start += heads * size
    return made


# Rotations ------------------------------------------------------------------------------------------------------------


def rotated(n: OnnxNode, x: Expr, places: Expr, cos: Expr, sin: Expr, interleaved: bool) -> Expr:
    """(b, s, heads, size) turned by the angles of places (b, s); what tables do not reach stays."""
    half, size = n.dims(cos, [1])[0], n.dims(x, [3])[0]
    cosines, sines = (n.emit(R.expand_dims(R.take(table, places, 0), [2]), "angles") for table in (cos, sin))
    if 2 * half == size:
        return R.nn.rotary_embedding(x, cosines, sines, interleaved)
    part = n.emit(R.strided_slice(x, [3], [0], [2 * half]))
    turned = R.nn.rotary_embedding(part, cosines, sines, interleaved)
    return R.concat([turned, R.strided_slice(x, [3], [2 * half], [size])], 3)


def rotary(n: OnnxNode, x: Expr, places: Expr, cos: Expr, sin: Expr) -> Expr:
    """Heads turned by their places, which one number may begin; (b, s, hidden) or (b, heads, s, size)."""
    turned_axes = n.rank(x) == 4
    heads, width = int(n.attr("num_heads", 0) or 0), int(n.attr("rotary_embedding_dim", 0) or 0)
    if turned_axes:
        wide = n.emit(_exchanged(x), "heads")
    else:
        size = 2 * n.dims(cos, [1])[0]
        wide = n.emit(_heads(n, x, heads or n.dims(x, [2])[0] // (width or size)), "heads")
        if heads and width:
            wide = n.emit(_heads(n, x, heads), "heads")
    b, s = n.shape(wide)[:2]
    if n.rank(places) == 1:
        steps = R.add(R.arange(0, s, 1, "int64"), R.reshape(R.astype(places, "int64"), ()))
        places = R.broadcast_to(R.expand_dims(steps, [0]), (b, s))
    y = n.emit(rotated(n, wide, n.emit(places), cos, sin, bool(n.attr("interleaved", 0))), "turned")
    return _exchanged(y) if turned_axes else _merged(n, y)


# Groups of queries ----------------------------------------------------------------------------------------------------


def group_query(
    n: OnnxNode,
    q: Expr,
    k: Expr | None,
    v: Expr | None,
    past_k: Expr | None,
    past_v: Expr | None,
    lengths: Expr,
    total: Expr,
    cos: Expr | None,
    sin: Expr | None,
    places: Expr | None,
    scores: Expr | None,
    sink: Expr | None,
) -> Any:
    """Each row of the batch goes on where its cache ends; queries see what lies before them, and themselves.

    `lengths` is one less than how many keys each row has with the new ones.
    """
    if sink is not None or n.attr("smooth_softmax", 0) == 1 or n.attr("kv_cache_bit_width", 0):
        raise Unsupported("a sink of the softmax, or a quantised cache")
    heads, groups = int(n.attr("num_heads")), int(n.attr("kv_num_heads"))
    query, key, value = _grouped(n, q, k, v, heads, groups)
    s = n.shape(query)[1]
    whole = _total(n)
    before = n.emit(_cached(n, lengths, whole, s), "before")  # (b, 1): how many keys the cache holds
    own = n.emit(R.add(before, R.expand_dims(R.arange(0, s, 1, "int64"), [0])), "places")  # (b, s)
    if n.attr("do_rotary", 0):
        if cos is None or sin is None:
            raise Unsupported("a rotation without tables")
        at = own if places is None else places
        turns = bool(n.attr("rotary_interleaved", 0))
        query, key = (n.emit(rotated(n, x, at, cos, sin, turns)) for x in (query, key))
    if past_k is not None and past_v is not None:
        room = maximum(n.shape(past_k)[2], whole)
        key, value = (_appended(n, old, new, before, room) for old, new in ((past_k, key), (past_v, value)))
    mask = _seen(n, own, n.shape(key)[1], query)
    added = mask if scores is None else R.add(mask, _fitting(n, scores, n.shape(key)[1]))
    y = attended(n, query, key, value, n.emit(_whole_bias(n, added, query, key) or mask), None)
    return (y, _exchanged(key), _exchanged(value))[: max(len(n.proto.output), 1)] if len(n.proto.output) > 1 else y


def _total(n: OnnxNode) -> Dim:
    """The greatest number of keys of a row, which is an input."""
    known = n.known(6)
    if known is not None:
        item = known.reshape(-1)[0]
        return item if not isinstance(item, np.generic) else int(item)
    return n.sizes_of(R.reshape(R.astype(n.need(6), "int64"), (1,)), n.input_name(6))[0]


def _grouped(n: OnnxNode, q: Expr, k: Expr | None, v: Expr | None, heads: int, groups: int) -> list[Expr]:
    if k is not None and v is not None:
        return [n.emit(_heads(n, x, count)) for x, count in ((q, heads), (k, groups), (v, groups))]
    size = n.dims(q, [2])[0] // (heads + 2 * groups)
    parts, start = [], 0
    for count in (heads, groups, groups):
        parts.append(n.emit(_heads(n, n.emit(R.strided_slice(q, [2], [start], [start + count * size])), count)))
        start += count * size
    return parts


def _cached(n: OnnxNode, lengths: Expr, whole: Dim, s: Dim) -> Expr:
    """How many keys each row had before: none where all of the keys are new."""
    count = R.reshape(R.astype(lengths, "int64"), (-1, 1))
    held = R.subtract(R.add(count, Constant(np.asarray(1, "int64"))), _count(s))
    first = R.equal(_count(whole), _count(s))
    return R.where(first, R.zeros_like(held), held)


def _appended(n: OnnxNode, old: Expr, new: Expr, before: Expr, room: Dim) -> Expr:
    """A cache with the new keys where each row ends: (b, room, heads, size)."""
    old = n.emit(_exchanged(old), "cache")
    b, held = n.shape(old)[:2]
    both = n.emit(R.concat([old, new], 1), "both")
    place = n.emit(R.broadcast_to(R.expand_dims(R.arange(0, room, 1, "int64"), [0]), (b, room)), "place")
    later = R.add(R.subtract(place, before), _count(held))
    chosen = R.where(R.less(place, before), place, R.minimum(later, _count(n.shape(both)[1] - 1)))
    return n.emit(R.gather_nd(both, R.expand_dims(n.emit(chosen, "chosen"), [2]), 1), "cache")


def _seen(n: OnnxNode, own: Expr, t: Dim, like: Expr) -> Expr:
    """What is added to the scores of keys that a query must not see: (b, 1, s, t)."""
    b, s = n.shape(own)
    place = R.reshape(R.arange(0, t, 1, "int64"), (1, 1, t))
    query = R.reshape(own, (b, s, 1))
    keeps = R.less_equal(place, query)
    window = int(n.attr("local_window_size", -1))
    if window > 0:
        keeps = R.logical_and(keeps, R.greater(place, R.subtract(query, Constant(np.asarray(window, "int64")))))
    least = _LEAST if n.dtype(like) != "float16" else -6e4
    return R.reshape(R.where(keeps, _number(n, 0.0, like), _number(n, least, like)), (b, 1, s, t))


def _fitting(n: OnnxNode, scores: Expr, t: Dim) -> Expr:
    if n.shape(scores)[-1] == t:
        return scores
    raise Unsupported("a bias that is shorter than the cache")


microsoft("Attention", attention)
microsoft("MultiHeadAttention", multi_head)
microsoft("RotaryEmbedding", rotary)
microsoft("GroupQueryAttention", group_query)
