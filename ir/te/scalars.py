"""Scalar formulas: arithmetic, functions and choices over the elements that a formula loads.

Every one takes expressions and Python numbers; these are of the dtype of what they are used with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.errors import DTypeError
from weft.ir.kernel import prim
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.tensor import PrimCall, PrimExpr, Select

__all__ = [
    "abs",
    "all",
    "any",
    "cast",
    "ceil",
    "const",
    "cos",
    "equal",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "isnan",
    "log",
    "maximum",
    "minimum",
    "not_equal",
    "power",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
]


def const(value: int | float | bool, dtype: str = "float32") -> PrimExpr:
    """A constant of the given dtype."""
    return prim.const(value, dtype)


def maximum(a: Any, b: Any) -> PrimExpr:
    """The greater of two values."""
    return prim.binary("max", a, b)


def minimum(a: Any, b: Any) -> PrimExpr:
    """The smaller of two values."""
    return prim.binary("min", a, b)


def _choice(name: str, condition: Any, true_value: Any, false_value: Any) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    left, right = prim.pair(true_value, false_value, name)
    condition = prim.as_expr(condition)
    if not dtypes.is_bool(dtypes.element(condition.dtype)):
        raise DTypeError(f"the condition of {name} is {condition.dtype}, not bool", code="W313")
    return condition, left, right


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values; only the chosen one is evaluated, so it may guard a load."""
    operands = _choice("if_then_else", condition, true_value, false_value)
    return PrimCall("if_then_else", operands, operands[1].dtype)


def select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """One of two values; both are evaluated."""
    return Select(*_choice("select", condition, true_value, false_value))


def all(*conditions: Any) -> PrimExpr:
    """Whether every condition holds (True for none); lazily from left to right."""
    return _joined("and", conditions, True)


def any(*conditions: Any) -> PrimExpr:
    """Whether some condition holds (False for none); lazily from left to right."""
    return _joined("or", conditions, False)


def _joined(kind: str, conditions: Sequence[Any], empty: bool) -> PrimExpr:
    if not conditions:
        return const(empty, "bool")
    result = prim.as_expr(conditions[0])
    for condition in conditions[1:]:
        result = prim.binary(kind, result, condition)
    return result


def equal(a: Any, b: Any) -> PrimExpr:
    """a == b."""
    return prim.binary("eq", a, b)


def not_equal(a: Any, b: Any) -> PrimExpr:
    """a != b."""
    return prim.binary("ne", a, b)


def cast(dtype: str, value: Any) -> PrimExpr:
    """The value converted to a dtype."""
    return prim.cast(dtype, prim.as_expr(value))


def _intrinsic(name: str) -> Callable[[Any], PrimExpr]:
    """The function of a row of the table of intrinsics."""

    def function(value: Any) -> PrimExpr:
        return prim.intrinsic(name, value)

    function.__name__ = function.__qualname__ = name
    doc = INTRINSICS[name].doc
    function.__doc__ = f"{doc[0].upper()}{doc[1:]}."
    return function


abs, isnan = _intrinsic("abs"), _intrinsic("isnan")
ceil, floor, round, trunc = map(_intrinsic, ("ceil", "floor", "round", "trunc"))
exp, log, sqrt, rsqrt = map(_intrinsic, ("exp", "log", "sqrt", "rsqrt"))
sin, cos, tanh, erf, sigmoid = map(_intrinsic, ("sin", "cos", "tanh", "erf", "sigmoid"))


def floordiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded down."""
    return prim.binary("floordiv", a, b)


def floormod(a: Any, b: Any) -> PrimExpr:
    """What floordiv leaves; it has the sign of b."""
    return prim.binary("floormod", a, b)


def truncdiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded towards zero."""
    return prim.binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> PrimExpr:
    """What truncdiv leaves; it has the sign of a."""
    return prim.binary("truncmod", a, b)


def power(base: Any, exponent: Any) -> PrimExpr:
    """The base to the power of the exponent."""
    return prim.intrinsic("pow", base, exponent)
