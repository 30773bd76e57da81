"""RemoveRedundantCasts: a cast through a dtype that holds every value is none, and one to the same dtype goes.

R.astype(R.astype(x, "float32"), "float16")   ->   x of float16, and x of int8 to float32 to int32 is x to int32
"""

from __future__ import annotations

from typing import ClassVar

from weft import dtypes
from weft.ir import Call, Expr, Function, TensorType, Var
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.apply_rules import RulePass
from weft.transform.rewrite.rule_set import RuleSet, register_rules

__all__ = ["RemoveRedundantCasts"]

_X = wildcard()
_FORM = is_op("astype")(_X)
_FLOATS = {
    name: (layout.mantissa + 1, layout.exponent)
    for name in ("float16", "bfloat16", "float32", "float64")
    for layout in [dtypes.float_format(name)]
}
"""Bits of the significand (the hidden one counts) and of the exponent."""


def _holds_all(wide: str, narrow: str) -> bool:
    """Whether every value of a dtype is one of another, exactly."""
    if wide in _FLOATS and narrow in _FLOATS:
        return all(a >= b for a, b in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    if dtypes.is_bool(narrow):
        return wide in _FLOATS or dtypes.is_integer(wide) or dtypes.is_bool(wide)
    if not dtypes.is_integer(narrow) or dtypes.is_bool(wide):
        return False
    if wide in _FLOATS:
        return wide != "float16" and dtypes.bits(narrow) <= _FLOATS[wide][0]
    if not dtypes.is_integer(wide):
        return False
    low, high = (int(limit(narrow)) for limit in (dtypes.min_value, dtypes.max_value))
    return int(dtypes.min_value(wide)) <= low and high <= int(dtypes.max_value(wide))


def _shortened(site: Site) -> Expr | None:
    wanted, given = site.tensor(site.call), site.tensor(_X)
    if wanted is None or given is None or wanted.dtype is None or given.dtype is None:
        return None
    if wanted.dtype == given.dtype:
        return site[_X]
    inner = site.value(_X)
    if not isinstance(inner, Call) or not _FORM.match(inner):
        return None
    source = site.tensor(inner.args[0])
    if source is None or source.dtype is None or not _holds_all(given.dtype, source.dtype):
        return None
    return inner.args[0] if source.dtype == wanted.dtype else get_op("astype")(inner.args[0], wanted.dtype)


def _instance(choices: Choices) -> Function:
    names = ("float32", "int8", "float64", "bool", "float16", "int32", "uint8", "int64", "int16")
    x = Var("x", TensorType((choices.integer(0, 5),), choices.pick(names)))
    value = get_op("astype")(get_op("astype")(x, choices.pick(names)), choices.pick(names))
    return function_of(value, [x])


register_rules(
    RuleSet(
        "casts",
        "casts that lose nothing on the way",
        [Rule("RemoveRedundantCasts", _FORM, _shortened, _instance, "bit", doc="the dtype between holds every value")],
        trusted=True,
    )
)


@dataclass(frozen=True)
class RemoveRedundantCasts(RulePass):
    """Drop casts to the dtype that a value has, and those through a dtype that holds every value."""

    sets_of_class: ClassVar[tuple[str, ...]] = ("casts",)
