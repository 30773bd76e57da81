"""FuseAttention: a softmax between two products over heads is attention, whose scores stay in blocks.

    q, k, v = permute_dims(query, (0, 2, 1, 3)), ... of key, ... of value
    s = R.matmul(q, R.permute_dims(k, (0, 1, 3, 2))) * scale + bias
    R.matmul(R.nn.softmax(s), v)
        -> R.permute_dims(R.nn.attention(query, key, value, bias, scale, safe_softmax=False), (0, 2, 1, 3))

In float32 and float64, where nothing else uses the scores, and where queries, keys and values are permuted already: no
copies are added. The scale (a factor or a divisor that is one number) and the bias, of any sizes that are broadcast,
may be missing. A query whose scores are all -inf gives nan in both forms.

Source: Dao et al., FlashAttention, 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from weft.ir import Call, Constant, Expr, Function, TensorType, Var
from weft.ir.dim import prove_equal
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["FuseAttention"]

_WEIGHTS, _VALUE = wildcard(), wildcard()
_FORM = is_op("matmul")(_WEIGHTS, _VALUE)
_FORMS = {
    "softmax": is_op("nn.softmax")(wildcard()),
    "add": is_op("add")(wildcard(), wildcard()),
    "multiply": is_op("multiply")(wildcard(), wildcard()),
    "divide": is_op("divide")(wildcard(), wildcard()),
    "matmul": is_op("matmul")(wildcard(), wildcard()),
    "permute_dims": is_op("permute_dims")(wildcard()),
}
_HEADS_FIRST, _KEYS_LAST = (0, 2, 1, 3), (0, 2, 3, 1)
"""Where the axes (batch, length, head, size) come to lie in the operands of products."""


def _fused(site: Site) -> Expr | None:
    weights, result = _call(site, site[_WEIGHTS], "softmax"), site.tensor(site.call)
    if weights is None or result is None or result.ndim != 4 or result.dtype not in ("float32", "float64"):
        return None
    if OPS["nn.softmax"].values(weights)["axis"] not in (-1, 3) or not _is_plain(site, site.call):
        return None
    scores, bias = _without_bias(site, weights.args[0])
    scores, scale = _without_scale(site, scores)
    product = _call(site, scores, "matmul")
    if product is None or not _is_plain(site, product):
        return None
    given = [
        _unpermuted(site, operand, axes)
        for operand, axes in zip((*product.args, site[_VALUE]), (_HEADS_FIRST, _KEYS_LAST, _HEADS_FIRST), strict=True)
    ]
    sizes = [site.tensor(operand) for operand in (*product.args, site[_VALUE])]
    query, key, value = given
    if query is None or key is None or value is None or not _same_heads(sizes):
        return None
    if bias is not None:
        bias = _of_rank_four(site, bias, scores)
        if bias is None:
            return None
    made = get_op("nn.attention")(query, key, value, bias, scale=scale, safe_softmax=False)
    return get_op("permute_dims")(made, axes=_HEADS_FIRST)


def _call(site: Site, operand: Expr, form: str) -> Call | None:
    """The call of a form that an operand is the result of, where nothing else uses it."""
    value = site.value(operand)
    return value if isinstance(value, Call) and _FORMS[form].match(value) and site.is_used_once(operand) else None


def _is_plain(site: Site, product: Expr) -> bool:
    """Whether a product is of operands of rank 4, in their own dtype."""
    assert isinstance(product, Call)
    types = [site.tensor(operand) for operand in product.args]
    return not product.attrs and all(ty is not None and ty.ndim == 4 for ty in types)


def _same_heads(sizes: Sequence[TensorType | None]) -> bool:
    """Whether batches and heads of queries (b, h, s, d), keys (b, h, d, t) and values (b, h, t, v) are proved equal."""
    dims = [ty.dims for ty in sizes if ty is not None and ty.dims is not None]
    return len(dims) == len(sizes) and all(
        prove_equal(dims[0][axis], other[axis]) is True for other in dims[1:] for axis in (0, 1)
    )


def _without_bias(site: Site, scores: Expr) -> tuple[Expr, Expr | None]:
    """The scores and what is added to them; the scores are a product, or a multiple of one."""
    added = _call(site, scores, "add")
    if added is not None:
        for own, other in (added.args, added.args[::-1]):
            if _call(site, _without_scale(site, own)[0], "matmul") is not None:
                return own, other
    return scores, None


def _without_scale(site: Site, scores: Expr) -> tuple[Expr, float]:
    """The scores and the number that they are multiplied with."""
    scaled = _call(site, scores, "multiply")
    if scaled is not None:
        for own, other in (scaled.args, scaled.args[::-1]):
            factor = _number(site, other)
            if factor is not None:
                return own, factor
    divided = _call(site, scores, "divide")
    divisor = None if divided is None else _number(site, divided.args[1])
    if divided is None or not divisor:
        return scores, 1.0
    return divided.args[0], 1.0 / divisor


def _number(site: Site, operand: Expr) -> float | None:
    """The value of a constant of one number that is finite."""
    value = site.value(operand)
    if not isinstance(value, Constant) or value.data.size != 1 or value.data.ndim > 4:
        return None
    number = float(value.data.reshape(()))
    return number if math.isfinite(number) else None


def _unpermuted(site: Site, operand: Expr, axes: tuple[int, ...]) -> Expr | None:
    """What an operand is a permutation of, by these axes; permutations of permutations are followed."""
    found, value = tuple(range(len(axes))), site.value(operand)
    while isinstance(value, Call) and _FORMS["permute_dims"].match(value):
        own = axes_of_permutation(value, len(axes))
        found = tuple(own[axis] for axis in found)
        if found == axes:
            return value.args[0]
        value = site.value(value.args[0])
    return None


def _of_rank_four(site: Site, bias: Expr, scores: Expr) -> Expr | None:
    """A bias with leading axes of size 1, where each of its sizes is 1 or proved to be that of the scores."""
    own, full = site.tensor(bias), site.tensor(scores)
    if own is None or full is None or own.dims is None or full.dims is None or own.dtype != full.dtype or own.ndim > 4:
        return None
    missing = 4 - own.ndim
    if not all(
        size == 1 or prove_equal(size, wanted) is True
        for size, wanted in zip(own.dims, full.dims[missing:], strict=True)
    ):
        return None
    return get_op("expand_dims")(bias, axis=tuple(range(missing))) if missing else bias


def _instance(choices: Choices) -> Function:
    batch, heads, rows, keys, width = (choices.pick((2, 1, 3)) for _ in range(5))
    dtype = choices.pick(("float32", "float64"))
    permute, matmul = get_op("permute_dims"), get_op("matmul")
    q, k, v = (
        Var(name, TensorType((batch, length, heads, width), dtype))
        for name, length in (("q", rows), ("k", keys), ("v", keys))
    )
    if choices.integer(0, 1):
        right = permute(k, axes=_KEYS_LAST)
    else:
        right = permute(permute(k, axes=_HEADS_FIRST), axes=(0, 1, 3, 2))
    scores: Expr = matmul(permute(q, axes=_HEADS_FIRST), right)
    given: list[Expr] = [q, k, v]
    kind = choices.integer(0, 2)
    if kind:
        number = Constant(np.asarray(choices.pick((0.5, 2.0, -1.0)), dtype))
        scores = get_op(("multiply", "divide")[kind - 1])(scores, number)
    if choices.integer(0, 1):
        shape = choices.pick(((batch, heads, rows, keys), (rows, keys), (batch, 1, 1, keys), (keys,), ()))
        bias = Var("bias", TensorType(shape, dtype))
        given.append(bias)
        scores = get_op("add")(*((scores, bias) if choices.integer(0, 1) else (bias, scores)))
    return function_of(matmul(get_op("nn.softmax")(scores), permute(v, axes=_HEADS_FIRST)), given)


register_rules(
    RuleSet(
        "attention",
        "a softmax between two products over heads as one kernel",
        [Rule("FuseAttention", _FORM, _fused, _instance, "real", doc="scores are never stored as a whole")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class FuseAttention(RulePass):
    """Compute attention that is written out as products and a softmax in one kernel."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("attention",)
