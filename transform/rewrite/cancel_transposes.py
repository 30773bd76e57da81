"""CancelTransposes: permutations of permutations become one, and one that changes nothing goes.

R.permute_dims(R.permute_dims(x, axes=p), axes=q)   ->   R.permute_dims(x, axes=[p[a] for a in q]), or x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Var
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["CancelTransposes", "axes_of_permutation"]

_INNER = wildcard()
_FORM = is_op("permute_dims")(_INNER)


def axes_of_permutation(call: Call, ndim: int) -> tuple[int, ...]:
    """The axes of a call of `permute_dims`, all at least 0."""
    axes: Sequence[int] | None = OPS["permute_dims"].values(call)["axes"]
    return tuple(reversed(range(ndim))) if axes is None else tuple(axis % ndim for axis in axes)


def _composed(site: Site) -> Expr | None:
    ty = site.tensor(site.call)
    if ty is None or not isinstance(site.call, Call):
        return None
    outer, source = axes_of_permutation(site.call, ty.ndim), site[_INNER]
    inner = site.value(_INNER)
    if isinstance(inner, Call) and _FORM.match(inner):
        own = axes_of_permutation(inner, ty.ndim)
        outer, source = tuple(own[axis] for axis in outer), inner.args[0]
    elif outer != tuple(range(ty.ndim)):
        return None
    return source if outer == tuple(range(ty.ndim)) else get_op("permute_dims")(source, axes=outer)


def _instance(choices: Choices) -> Function:
    rank = choices.integer(1, 4)
    x = Var("x", TensorType(tuple(choices.pick((2, 3, 1, 0)) for _ in range(rank)), choices.pick(("float32", "int8"))))
    value: Expr = x
    for _ in range(2):
        axes = list(range(rank))
        for place in range(rank - 1, 0, -1):
            other = choices.integer(0, place)
            axes[place], axes[other] = axes[other], axes[place]
        value = get_op("permute_dims")(value, axes=tuple(axes))
    return function_of(value, [x])


register_rules(
    RuleSet(
        "transposes",
        "permutations of axes that cancel or join",
        [Rule("CancelTransposes", _FORM, _composed, _instance, "bit", doc="permutations of one value join")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class CancelTransposes(RulePass):
    """Join permutations of axes, and drop those that change nothing."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("transposes",)
