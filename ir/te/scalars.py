"""Scalar formulas: arithmetic, functions and choices over the elements that a formula loads.

Every one takes expressions and Python numbers; these are of the dtype of what they are used with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.errors import DTypeError
from weft.ir.kernel import prim
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.tensor import PrimCall, PrimExpr, Select

__all__ = [
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "complex",
    "conj",
    "const",
    "cos",
    "cosh",
    "div",
    "equal",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "if_then_else",
    "imag",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "logaddexp",
    "max_value",
    "maximum",
    "min_value",
    "minimum",
    "nearbyint",
    "not_equal",
    "popcount",
    "power",
    "real",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
]


def const(value: Any, dtype: str = "float32") -> PrimExpr:
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


abs, isnan, isinf, isfinite = map(_intrinsic, ("abs", "isnan", "isinf", "isfinite"))
ceil, floor, round, trunc, nearbyint = map(_intrinsic, ("ceil", "floor", "round", "trunc", "nearbyint"))
exp, log, log2, log10, sqrt, rsqrt = map(_intrinsic, ("exp", "log", "log2", "log10", "sqrt", "rsqrt"))
sin, cos, tan, asin, acos, atan = map(_intrinsic, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, asinh, acosh, atanh = map(_intrinsic, ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"))
erf, sigmoid, popcount = map(_intrinsic, ("erf", "sigmoid", "popcount"))
real, imag, conj = map(_intrinsic, ("real", "imag", "conj"))


def max_value(dtype: str) -> PrimExpr:
    """The greatest finite number of a dtype."""
    return prim.const(dtypes.max_value(dtype), dtype)


def min_value(dtype: str) -> PrimExpr:
    """The least finite number of a dtype."""
    return prim.const(dtypes.min_value(dtype), dtype)


def complex(real: Any, imag: Any) -> PrimExpr:
    """The complex number of two parts."""
    return prim.intrinsic("complex", real, imag)


def fmod(a: Any, b: Any) -> PrimExpr:
    """What is left of a / b truncated; it has the sign of a."""
    return prim.intrinsic("fmod", a, b)


def div(a: Any, b: Any) -> PrimExpr:
    """a / b: rounded towards zero for integers."""
    left, right = prim.pair(a, b, "div")
    return prim.binary("truncdiv" if dtypes.is_integer(dtypes.element(left.dtype)) else "div", left, right)


def logaddexp(a: Any, b: Any) -> PrimExpr:
    """log(exp(a) + exp(b)), without overflow."""
    left, right = prim.pair(a, b, "logaddexp")
    apart = prim.intrinsic("log1p", prim.intrinsic("exp", -prim.intrinsic("abs", left - right)))
    twice = prim.const(math.log(2), left.dtype)  # of equal values, infinite ones too
    return maximum(left, right) + select(equal(left, right), twice, apart)


def floordiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded down."""
    return prim.binary("floordiv", a, b)


def floormod(a: Any, b: Any) -> PrimExpr:
    """What floordiv leaves; it has the sign of b."""
    return prim.binary("floormod", a, b)


def indexdiv(a: Any, b: Any) -> PrimExpr:
    """a // b of indices, which are not negative."""
    return floordiv(a, b)


def indexmod(a: Any, b: Any) -> PrimExpr:
    """a % b of indices, which are not negative."""
    return floormod(a, b)


def truncdiv(a: Any, b: Any) -> PrimExpr:
    """a / b rounded towards zero."""
    return prim.binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> PrimExpr:
    """What truncdiv leaves; it has the sign of a."""
    return prim.binary("truncmod", a, b)


def power(base: Any, exponent: Any) -> PrimExpr:
    """The base to the power of the exponent."""
    return prim.intrinsic("pow", base, exponent)
