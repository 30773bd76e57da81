"""Scaled dot-product attention.

Shapes: query (b, s, n, h), key (b, t, m, h), value (b, t, m, v), bias broadcast to (b, n, s, t) -> (b, s, n, v).
Heads may be grouped: n is a multiple of m, and n / m neighbouring heads of the query share one of key and value.

Sources: Vaswani et al., Attention is all you need, 2017; Ainslie et al., GQA, 2023 (heads in groups).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from weft.errors import ShapeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Dims,
    Kernel,
    broadcast_dim,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.precision import always
from weft.ir.op.reductions.reduction import accumulator, sizes_of
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []

_MASKS = (None, "TopLeft", "BottomRight")


def _visible(args: Arguments, row: PrimExpr, column: PrimExpr, rows: Dim, columns: Dim) -> PrimExpr | None:
    """Whether a query may look at a key; None when it always may."""
    if args.causal_mask is None:
        return None
    # BottomRight aligns the last query with the last key.
    last = row if args.causal_mask == "TopLeft" else row + (te.size(columns) - te.size(rows))
    seen = column <= last
    return seen if args.window_size is None else te.all(seen, column > last - args.window_size)


@kernel_lowering
def _lower_attention(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    (batch, rows, heads, width), (_, columns, _, _), (_, _, _, depth) = (
        sizes_of(args, operand, context) for operand in ("query", "key", "value")
    )
    own_width = sizes_of(args, "key", context)[3]
    width = width if isinstance(width, int) else own_width
    groups = {name: _group(heads, sizes_of(args, name, context)[2]) for name in ("key", "value")}
    query = kernel.input("query", (batch, rows, heads, width))
    key = kernel.input("key", (batch, columns, _shared(heads, groups["key"]), width))
    value = kernel.input("value", (batch, columns, _shared(heads, groups["value"]), depth))
    bias = _bias_input(kernel, args, context, (batch, heads, rows, columns))
    wide = accumulator(kernel.dtype)
    scores_shape: Dims = (batch, heads, rows, columns)
    k = te.reduce_axis((0, width), name="k")

    def inner(b: PrimExpr, n: PrimExpr, s: PrimExpr, t: PrimExpr) -> te.Reduction:
        own = key(b, t, _of_group(n, groups["key"]), k)
        return te.sum(te.cast(wide, query(b, s, n, k)) * te.cast(wide, own), axis=k)

    product = te.compute(scores_shape, inner, "query_key")

    def score(b: PrimExpr, n: PrimExpr, s: PrimExpr, t: PrimExpr) -> PrimExpr:
        scaled = product(b, n, s, t) * _scale(args, width, wide)
        if bias is not None:
            at = (0 if size == 1 else index for size, index in zip(bias.shape, (b, n, s, t), strict=True))
            scaled = scaled + te.cast(wide, bias(*at))
        visible = _visible(args, s, t, rows, columns)
        if visible is None:
            return scaled
        if args.masked_bias is None:
            return te.select(visible, scaled, te.const(float("-inf"), wide))
        return te.select(visible, scaled, scaled + te.const(args.masked_bias, wide))

    scores = te.compute(scores_shape, score, "scores")
    t = te.reduce_axis((0, columns), name="t")

    def row_max(b: PrimExpr, n: PrimExpr, s: PrimExpr) -> te.Reduction:
        return replace(te.max(scores(b, n, s, t), axis=t), may_be_empty=False)

    greatest = te.compute(scores_shape[:3], row_max, "greatest")

    def power(b: PrimExpr, n: PrimExpr, s: PrimExpr, t: PrimExpr) -> PrimExpr:
        # A query that sees no key has -inf everywhere: every weight is 0 then, and not nan.
        hidden = te.equal(scores(b, n, s, t), te.const(float("-inf"), wide))
        return te.select(hidden, te.const(0, wide), te.exp(scores(b, n, s, t) - greatest(b, n, s)))

    powers = te.compute(scores_shape, power, "powers")
    u = te.reduce_axis((0, columns), name="t")

    def row_sum(b: PrimExpr, n: PrimExpr, s: PrimExpr) -> te.Reduction:
        return te.sum(powers(b, n, s, u), axis=u)

    total = te.compute(scores_shape[:3], row_sum, "total")
    w = te.reduce_axis((0, columns), name="t")

    def weighted_sum(b: PrimExpr, s: PrimExpr, n: PrimExpr, d: PrimExpr) -> te.Reduction:
        return te.sum(powers(b, n, s, w) * te.cast(wide, value(b, w, _of_group(n, groups["value"]), d)), axis=w)

    weighted = te.compute((batch, rows, heads, depth), weighted_sum, "weighted")

    def normalised(b: PrimExpr, s: PrimExpr, n: PrimExpr, d: PrimExpr) -> PrimExpr:
        divisor = total(b, n, s)
        if args.safe_softmax:
            divisor = te.select(te.equal(divisor, te.const(0, wide)), te.const(1, wide), divisor)
        elif not isinstance(columns, int) or columns == 0:  # a sum over no keys is 0
            divisor = te.select(te.equal(te.size(columns), te.size(0)), te.const(1, wide), divisor)
        return weighted(b, s, n, d) / divisor

    return kernel.compute(normalised, "attention")


def _group(heads: Dim, shared: Dim) -> int:
    """How many heads of the query share one of the key or value."""
    return heads // shared if isinstance(heads, int) and isinstance(shared, int) and shared else 1


def _shared(heads: Dim, group: int) -> Dim:
    return heads // group if isinstance(heads, int) else heads


def _of_group(head: PrimExpr, group: int) -> PrimExpr:
    return head if group == 1 else head // group


def _scale(args: Arguments, width: Dim, dtype: str) -> PrimExpr:
    if args.scale is not None:
        return te.const(args.scale, dtype)
    if isinstance(width, int):
        return te.const(1 / math.sqrt(width) if width else 1.0, dtype)
    return te.rsqrt(te.cast(dtype, te.size(width)))


def _bias_input(kernel: Kernel, args: Arguments, context: TypeContext, shape: Dims) -> Any:
    if args.bias is None:
        return None
    sizes = sizes_of(args, "bias", context)
    return kernel.input("bias", tuple(1 if size == 1 else full for size, full in zip(sizes, shape, strict=True)))


def _attention_reference(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    *,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
    safe_softmax: bool = True,
    masked_bias: float | None = None,
) -> Any:
    heads = query.shape[2]
    key, value = (
        array if array.shape[2] in (0, heads) else np.repeat(array, heads // array.shape[2], 2)
        for array in (key, value)
    )
    q, k, v = (np.moveaxis(array.astype(np.float64), 2, 1) for array in (query, key, value))
    factor = 1 / math.sqrt(max(query.shape[3], 1)) if scale is None else scale
    scores = q @ np.swapaxes(k, 2, 3) * factor
    if bias is not None:
        scores = scores + bias
    rows, columns = scores.shape[2:]
    if causal_mask is not None:
        row = untyped_np.arange(rows)[:, None] + (columns - rows if causal_mask == "BottomRight" else 0)
        column = untyped_np.arange(columns)[None, :]
        seen = column <= row
        if window_size is not None:
            seen &= column > row - window_size
        scores = untyped_np.where(seen, scores, -np.inf if masked_bias is None else scores + masked_bias)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = untyped_np.where(np.isneginf(scores), 0.0, np.exp(scores - untyped_np.where(np.isneginf(top), 0.0, top)))
    total = weights.sum(-1, keepdims=True)
    if safe_softmax:
        total = untyped_np.where(total == 0, 1, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = (weights / total) @ v
    return np.moveaxis(result, 1, 2).astype(query.dtype)


def _params(bias: Param) -> list[Param]:
    return [
        Param("query"),
        Param("key"),
        Param("value"),
        bias,
        Param("scale", "attr", None, "float?"),
        Param("causal_mask", "attr", None, "str?"),
        Param("window_size", "attr", None, "int?"),
        Param("safe_softmax", "attr", True, "bool"),
        Param("masked_bias", "attr", None, "float?"),
    ]


def _rule(args: Arguments, context: TypeContext) -> TensorType:
    if args.causal_mask not in _MASKS:
        hint = "the masks are None, 'TopLeft' and 'BottomRight'"
        raise shape_error(args, f"unknown causal_mask {args.causal_mask!r}", "W205", hint)
    if args.window_size is not None and args.causal_mask is None:
        raise shape_error(args, "window_size needs a causal_mask", "W205")
    if args.masked_bias is not None and args.causal_mask is None:
        raise shape_error(args, "masked_bias needs a causal_mask", "W205")
    operands = {name: tensor(args, name, context) for name in ("query", "key", "value")}
    if args.bias is not None:
        operands["bias"] = tensor(args, "bias", context)
    for name, operand in operands.items():
        require_rank(args, name, operand, 4)
        require_dtype(args, name, operand, "float")
    dtype = same_dtype(args, *operands.values())
    query, key, value = (dims_of(operands[name]) for name in ("query", "key", "value"))
    if query is None or key is None or value is None:
        return TensorType(dtype=dtype, ndim=4)
    equal = (
        ("batches of query and key", query[0], key[0]),
        ("batches of query and value", query[0], value[0]),
        ("widths of query and key", query[3], key[3]),
        ("lengths of key and value", key[1], value[1]),
    )
    for what, a, b in equal:
        context.require_equal(a, b, f"{args.name}: the {what}", args.span)
    for name, shared in (("key", key[2]), ("value", value[2])):
        _check_heads(args, name, query[2], shared, context)
    bias = dims_of(operands["bias"]) if "bias" in operands else None
    if bias is not None:
        _check_bias(args, bias, (query[0], query[2], query[1], key[1]), context)
    return TensorType((query[0], query[1], query[2], value[3]), dtype)


def _check_heads(args: Arguments, name: str, heads: Dim, shared: Dim, context: TypeContext) -> None:
    """Heads of key or value: as many as the query has, or a known number that divides that."""
    if isinstance(heads, int) and isinstance(shared, int) and heads and shared:
        if heads % shared:
            raise shape_error(args, f"the {heads} heads of query are no multiple of the {shared} of {name}", "W201")
        return
    context.require_equal(heads, shared, f"{args.name}: the heads of query and {name}", args.span)


def _check_bias(args: Arguments, bias: Dims, scores: Dims, context: TypeContext) -> None:
    for axis, (own, full) in enumerate(zip(bias, scores, strict=True)):
        try:
            context.require_equal(broadcast_dim(args, full, own, context), full, f"{args.name}: bias", args.span)
        except ShapeError as error:
            error.notes = (*error.notes, f"axis {axis} of bias must be 1 or {full}")
            raise


_EXAMPLES = (
    example(f32(2, 3, 2, 4), f32(2, 5, 2, 4), f32(2, 5, 2, 3)),
    example(f32("b", "s", 2, 4), f32("b", "t", 2, 4), f32("b", "t", 2, 4), scale=0.5, causal_mask="TopLeft"),
    example(f32(1, "s", 2, 4), f32(1, "t", 2, 4), f32(1, "t", 2, 4), causal_mask="BottomRight"),
    example(f32(1, 5, 1, 4), f32(1, 6, 1, 4), f32(1, 6, 1, 4), causal_mask="BottomRight", window_size=2),
    example(*(typed("float16", 1, 4, 1, 8) for _ in range(3))),
    example(f32(1, "s", 6, 4), f32(1, "t", 2, 4), f32(1, "t", 2, 4), causal_mask="BottomRight"),
    example(f32(1, "s", 2, 4), f32(1, "t", 2, 4), f32(1, "t", 2, 4), safe_softmax=False),
    example(f32(1, "s", 2, 4), f32(1, "t", 2, 4), f32(1, "t", 2, 4), causal_mask="BottomRight", masked_bias=-1e30),
)


@register_op(
    "nn.attention",
    _params(Param("bias", default=None)),
    lowering=_lower_attention,
    numpy=_attention_reference,
    pure=True,
    examples=(*_EXAMPLES, example(f32(2, 3, 2, 4), f32(2, 5, 2, 4), f32(2, 5, 2, 4), f32(2, 1, 3, 5))),
    precision=always("query", "key", "value", "bias"),
)
def attention(args: Arguments, context: TypeContext) -> TensorType:
    """softmax(query key^T * scale + bias) value, for each batch and head; scale is 1 / sqrt(h) by default.

    query (b, s, n, h), key (b, t, m, h), value (b, t, m, v), bias with sizes 1 or (b, n, s, t) -> (b, s, n, v). Where
    n is a multiple of m, n / m neighbouring heads of the query share one of key and value. A causal mask lets query i
    see the keys up to i ("TopLeft"), or up to i + t - s ("BottomRight"); with window_size only that many of the last of
    them. Scores that the mask hides are -inf; with masked_bias that is added to them instead. A query that sees no key
    (whose scores are all -inf) gives zeros; nan with safe_softmax=False, as softmax(scores) value does where it is
    written out.
    """
    return _rule(args, context)


@register_op(
    "nn.attention_bias",
    _params(Param("bias")),
    lowering=_lower_attention,
    numpy=_attention_reference,
    pure=True,
    examples=(
        example(f32(2, 3, 2, 4), f32(2, 5, 2, 4), f32(2, 5, 2, 4), f32(2, 2, 3, 5)),
        example(f32("b", "s", 2, 4), f32("b", "t", 2, 4), f32("b", "t", 2, 4), f32(1, 1, "s", "t"), scale=1.0),
    ),
    precision=always("query", "key", "value", "bias"),
)
def attention_bias(args: Arguments, context: TypeContext) -> TensorType:
    """Attention with a bias that is always given; see nn.attention."""
    return _rule(args, context)
