"""ReorderPermuteDimsAfterConcat: one permutation of what is put together instead of one for each part.

R.concat((R.permute_dims(a, axes=p), R.permute_dims(b, axes=p)), axis=c)
    ->   R.permute_dims(R.concat((a, b), axis=p[c]), axes=p)
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Call, Expr, Function, TensorType, Tuple, Var
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.cancel_transposes import axes_of_permutation
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["ReorderPermuteDimsAfterConcat"]

_PARTS = wildcard()
_FORM = is_op("concat")(_PARTS)
_MOVED = is_op("permute_dims")(wildcard())


def _put_together(site: Site) -> Expr | None:
    parts, ty = site.value(_PARTS), site.tensor(site.call)
    assert isinstance(site.call, Call)
    axis = OPS["concat"].values(site.call)["axis"]
    if not isinstance(parts, Tuple) or ty is None or axis is None or len(parts.fields) < 2:
        return None
    calls = [site.value(part) for part in parts.fields]
    orders = [axes_of_permutation(call, ty.ndim) for call in calls if isinstance(call, Call) and _MOVED.match(call)]
    if len(orders) < len(calls) or len(set(orders)) > 1:
        return None
    sources = Tuple(tuple(call.args[0] for call in calls if isinstance(call, Call)))
    joined = get_op("concat")(sources, axis=orders[0][axis % ty.ndim])
    return get_op("permute_dims")(joined, axes=orders[0])


def _instance(choices: Choices) -> Function:
    rank = choices.integer(1, 3)
    axes = [(axis + 1) % rank for axis in range(rank)]
    axis = choices.integer(0, rank - 1)
    sizes = [choices.pick((2, 3, 1, 0)) for _ in range(rank)]
    params = []
    for number in range(choices.integer(2, 3)):
        own = list(sizes)
        own[axes[axis]] = choices.integer(0, 3)
        params.append(Var(f"x{number}", TensorType(tuple(own), "float32")))
    moved: list[Expr] = [get_op("permute_dims")(param, axes=tuple(axes)) for param in params]
    return function_of(get_op("concat")(Tuple(tuple(moved)), axis=axis), params)


register_rules(
    RuleSet(
        "permute-after-concat",
        "one permutation of what is put together",
        [Rule("ReorderPermuteDimsAfterConcat", _FORM, _put_together, _instance, "bit", doc="one instead of many")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class ReorderPermuteDimsAfterConcat(RulePass):
    """Permute what is put together once instead of each part."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("permute-after-concat",)
