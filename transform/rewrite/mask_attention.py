"""MaskAttention: a bias that is a mask of positions is a causal mask, or a window, of the attention.

    visible = R.less_equal(keys, rows)               keys, rows: ranges (1, 1, 1, n) and (1, 1, n, 1), however written
    R.nn.attention(q, k, v, R.where(visible, 0.0, -inf))
        -> R.nn.attention(q, k, v, causal_mask="TopLeft", masked_bias=-inf)

A mask that lets everything through goes. The mask need not be computed, and kernels leave out the scores that it hides.
What it is of is proved from the positions (`analysis.positions`): ranges and their comparisons, triangles, constants,
segments of one range. A mask that hides or shows one key more than a causal mask does, for any size, stays as it is.

Hidden scores have the same value in both forms: what the mask adds is an attribute (`masked_bias`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.ir import Call, Constant, Expr, Function, TensorType, Var
from weft.ir.dim import Dim, Facts, prove_equal
from weft.ir.op import OPS, get_op
from weft.transform.analysis.positions.evaluate import Positions, position_in
from weft.transform.analysis.positions.formulas import All, Choice, Condition, Element, negated
from weft.transform.analysis.positions.operators import OPERATORS
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["MaskAttention"]

_QUERY, _KEY, _VALUE, _BIAS = (wildcard() for _ in range(4))
_FORM = is_op("nn.attention")(_QUERY, _KEY, _VALUE, _BIAS)
_POSITIONS = tuple(position_in(axis) for axis in ("batch", "heads", "rows", "keys"))


def _masked(site: Site) -> Expr | None:
    call, query, key, bias = site.call, site.tensor(_QUERY), site.tensor(_KEY), site.tensor(_BIAS)
    assert isinstance(call, Call)
    values = OPS["nn.attention"].values(call)
    if query is None or key is None or bias is None or bias.dims is None or query.dims is None or key.dims is None:
        return None
    if not all(prove_equal(*sizes) is True for sizes in zip(bias.dims[2:], (query.dims[1], key.dims[1]), strict=True)):
        return None
    if values["causal_mask"] is not None or values["masked_bias"] is not None or len(bias.dims) != 4:
        return None
    facts, at = Facts(), list[Dim]()
    for position, size in zip(_POSITIONS, bias.dims, strict=True):
        facts = facts.assume_le(position + 1, size)
        at.append(0 if size == 1 else position)
    found = Positions(OPERATORS, site.value, site.tensor, facts).element(site[_BIAS], at)
    if found == 0.0:
        return get_op("nn.attention")(site[_QUERY], site[_KEY], site[_VALUE], **call.attrs)
    visible = _visible(found, facts)
    mask = None if visible is None else _causal_mask(visible[0].dims, query.dims[1], key.dims[1])
    if visible is None or mask is None:
        return None
    attributes = {**call.attrs, "causal_mask": mask[0], "masked_bias": visible[1]}
    if mask[1] is not None:
        attributes["window_size"] = mask[1]
    return get_op("nn.attention")(site[_QUERY], site[_KEY], site[_VALUE], **attributes)


def _visible(bias: Element | None, facts: Facts) -> tuple[All, float] | None:
    """Where a bias is 0, and the number that it is elsewhere."""
    if not isinstance(bias, Choice):
        return None
    shown: Condition | None = bias.condition
    hidden = bias.otherwise
    if bias.then != 0.0:
        shown, hidden = negated(bias.condition, facts), bias.then if bias.otherwise == 0.0 else None
    return (shown, hidden) if isinstance(shown, All) and isinstance(hidden, float) else None


def _causal_mask(conditions: tuple[Dim, ...], rows: Dim, keys: Dim) -> tuple[str, int | None] | None:
    """The alignment and the width of the window of a mask that lets keys through where integers are at least 0."""
    row, key = _POSITIONS[2:]
    for name, last in (("TopLeft", row), ("BottomRight", row + keys - rows)):
        if last - key not in conditions:
            continue
        others = [condition for condition in conditions if condition is not last - key]
        if not others:
            return name, None
        width = others[0] - (key - last) + 1
        if len(others) == 1 and isinstance(width, int) and width > 0:
            return name, width
    return None


def _instance(choices: Choices) -> Function:
    rows, keys = choices.pick(((3, 3), (2, 4), (4, 2), (5, 5)))
    q, k, v = (
        Var(name, TensorType((2, length, 1, 2), "float32")) for name, length in (("q", rows), ("k", keys), ("v", keys))
    )
    row, key = (
        get_op("reshape")(get_op("arange")(0, size, dtype="int64"), shape)
        for size, shape in ((rows, (1, 1, rows, 1)), (keys, (1, 1, 1, keys)))
    )
    aligned = get_op("add")(row, Constant(np.asarray(choices.pick((0, keys - rows)), "int64")))
    seen = get_op(choices.pick(("less_equal", "less_equal", "less")))(key, aligned)
    if choices.flip(40):
        first = get_op("subtract")(aligned, Constant(np.asarray(choices.pick((1, 2, 3)), "int64")))
        seen = get_op("logical_and")(seen, get_op("greater")(key, first))
    hidden = choices.pick((-1e30, -3e38, float("-inf")))
    bias = get_op("where")(seen, Constant(np.asarray(0.0, "float32")), Constant(np.asarray(hidden, "float32")))
    return function_of(get_op("nn.attention")(q, k, v, bias, scale=choices.pick((None, 0.5))), [q, k, v])


register_rules(
    RuleSet(
        "attention-masks",
        "masks of positions as attributes of attention",
        [Rule("MaskAttention", _FORM, _masked, _instance, "real", doc="blocks of scores that it hides are left out")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class MaskAttention(RulePass):
    """Make a bias that is a mask of positions a causal mask, or a window, of the attention."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("attention-masks",)
