"""GroupAttentionHeads: attention reads heads that share keys and values where they lie, instead of copies for each.

    k = R.reshape(R.broadcast_to(R.expand_dims(x, axis=2), (b, m, g, t, h)), (b, m * g, t, h))      repeat_kv of Llama
    R.nn.attention(q, R.permute_dims(k, (0, 2, 1, 3)), v)   ->   R.nn.attention(q, R.permute_dims(x, (0, 2, 1, 3)), v)

Heads may be copied in either layout, (b, m, t, h) or (b, t, m, h), of the key, of the value, or of both.

Source: Ainslie et al., GQA, 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Var
from weft.ir.dim import Dim, prove_equal
from weft.ir.op import get_op
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["GroupAttentionHeads"]

_FORM = is_op("nn.attention")(wildcard(), wildcard(), wildcard(), varg_default_wildcard=True)
_MOVED = is_op("permute_dims")(wildcard())
_FLATTENED = is_op("reshape")(wildcard(), wildcard())
_COPIED = is_op("broadcast_to")(wildcard(), wildcard())
_SWAPPED = (0, 2, 1, 3)


def _equal(one: tuple[Dim, ...], other: tuple[Dim, ...]) -> bool:
    return len(one) == len(other) and all(prove_equal(a, b) is True for a, b in zip(one, other, strict=True))


def _dims(site: Site, expr: Expr) -> tuple[Dim, ...]:
    ty = site.tensor(expr)
    return () if ty is None or ty.dims is None else ty.dims


def _without_copies(site: Site, expr: Expr, heads: int) -> Expr | None:
    """The heads that are copied side by side along an axis; None where none are."""
    flat = site.value(expr)
    copies = site.value(flat.args[0]) if isinstance(flat, Call) and _FLATTENED.match(flat) else None
    if not isinstance(flat, Call) or not isinstance(copies, Call) or not _COPIED.match(copies):
        return None
    flattened, copied, source = (_dims(site, part) for part in (expr, flat.args[0], copies.args[0]))
    count = heads + 1  # the axis of the copies
    if len(copied) != len(flattened) + 1 or len(source) != len(copied) or source[count] != 1:
        return None
    own = (*copied[:count], *copied[count + 1 :])
    joined = (*own[:heads], copied[heads] * copied[count], *own[count:])
    if not _equal((*source[:count], *source[count + 1 :]), own) or not _equal(joined, flattened):
        return None
    if not all(isinstance(copied[axis], int) for axis in (heads, count)):  # groups are of known sizes
        return None
    return get_op("reshape")(copies.args[0], own)


def _grouped(site: Site, expr: Expr) -> Expr | None:
    """A key or value (b, t, n, h) with a head for each group; None where heads are no copies."""
    value = site.value(expr)
    if isinstance(value, Call) and _MOVED.match(value) and axes_of_permutation(value, 4) == _SWAPPED:
        made = _without_copies(site, value.args[0], 1)
        return None if made is None else get_op("permute_dims")(made, axes=_SWAPPED)
    return _without_copies(site, expr, 2)


def _shared(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    query, key, value, *rest = site.call.args
    made = [_grouped(site, operand) for operand in (key, value)]
    if made == [None, None]:
        return None
    return get_op("nn.attention")(query, made[0] or key, made[1] or value, *rest, **site.call.attrs)


def _instance(choices: Choices) -> Function:
    batch, rows, keys, width = 2, choices.pick((1, 3)), choices.pick((1, 4)), choices.pick((2, 1))
    heads, group = choices.pick((2, 1)), choices.pick((3, 1, 2))
    reshape, copied, permute = (get_op(name) for name in ("reshape", "broadcast_to", "permute_dims"))
    q = Var("q", TensorType((batch, rows, heads * group, width), "float32"))
    params, operands = [q], list[Expr]()
    for name in ("k", "v"):
        inner = choices.flip()
        own = (batch, heads, keys) if inner else (batch, keys, heads)
        place = 2 if inner else 3
        x = Var(name, TensorType((*own, width), "float32"))
        params.append(x)
        if not choices.flip(80):
            own = (*own[: place - 1], heads * group, *own[place:])
            x = params[-1] = Var(name, TensorType((*own, width), "float32"))
            operands.append(permute(x, axes=_SWAPPED) if inner else x)
            continue
        spread = reshape(x, (*own[:place], 1, *own[place:], width))
        spread = copied(spread, (*own[:place], group, *own[place:], width))
        flat = reshape(spread, (*own[: place - 1], heads * group, *own[place:], width))
        operands.append(permute(flat, axes=_SWAPPED) if inner else flat)
    return function_of(get_op("nn.attention")(q, *operands), params)


register_rules(
    RuleSet(
        "attention-groups",
        "attention whose heads share keys and values",
        [Rule("GroupAttentionHeads", _FORM, _shared, _instance, "real", doc="no copies are made for heads of a group")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class GroupAttentionHeads(RulePass):
    """Let heads of attention that share keys and values read the same ones, instead of copies."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("attention-groups",)
