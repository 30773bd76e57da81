"""Attention whose scores and mask are graphs of one score and its place: `flex_attention`, as products and a softmax.

Each graph is written for one element; it runs on all of them at once, as every operator of it is elementwise or reads
buffers at places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
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


row("flex_attention", flexible_attention)
