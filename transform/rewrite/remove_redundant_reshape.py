"""RemoveRedundantReshape: of changes of shape in a row the last one stays, and one that changes nothing goes.

R.reshape(R.expand_dims(x, axis=1), (4, n))   ->   R.reshape(x, (4, n)), or x where it has these sizes
"""

from __future__ import annotations

from functools import reduce
from typing import ClassVar

from weft.ir import Call, Expr, Function, Op, TensorType, Var
from weft.ir.dim import prove_equal
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.language import DFPattern
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["RemoveRedundantReshape"]

_NAMES = ("reshape", "flatten", "expand_dims", "squeeze")
_FORMS: list[DFPattern] = [is_op(name)(wildcard(), varg_default_wildcard=True) for name in _NAMES]
_FORM = reduce(lambda one, other: one | other, _FORMS)


def _shortened(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    given = site.call.args[0]
    wanted, source = site.tensor(site.call), site.tensor(given)
    if (
        wanted is None
        or source is None
        or wanted.dims is None
        or source.dims is None
        or wanted.vdevice != source.vdevice
    ):
        return None
    if len(wanted.dims) == len(source.dims) and all(
        prove_equal(a, b) is True for a, b in zip(wanted.dims, source.dims, strict=True)
    ):
        return given
    inner = site.value(given)
    if isinstance(inner, Call) and isinstance(inner.op, Op) and inner.op.name in _NAMES and len(inner.attrs) <= 1:
        return get_op("reshape")(inner.args[0], wanted.dims)
    return None


def _instance(choices: Choices) -> Function:
    a, b = choices.pick((2, 3, 1, 0)), choices.pick((2, 3, 1, 4))
    x = Var("x", TensorType(choices.pick(((a, b), (b, a, 2), (b,), (a, 2 * b))), choices.pick(("float32", "int8"))))
    value: Expr = x
    for _ in range(2):
        kind = choices.integer(0, 2)
        if kind == 0:
            value = get_op("expand_dims")(value, axis=choices.integer(0, 1))
        elif kind == 1:
            value = get_op("flatten")(value)
        else:
            value = get_op("reshape")(value, (-1, 1) if choices.flip() else x.ty.dims)  # type: ignore[union-attr]
    return function_of(value, [x])


register_rules(
    RuleSet(
        "reshapes",
        "changes of shape that cancel or join",
        [Rule("RemoveRedundantReshape", _FORM, _shortened, _instance, "bit", doc="the last of several shapes holds")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class RemoveRedundantReshape(RulePass):
    """Join changes of shape that follow each other, and drop those that change nothing."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("reshapes",)
