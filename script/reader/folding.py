"""Arithmetic on what is known while reading, within limits that are checked before anything is computed.

    binary("mul", 3, 4, limits)        what Python gives
    contains(0.5, range(10**12))       in constant time, where Python would compare one by one
    rounded(5, -10**9)                 0: without the power of ten that Python would compute

ScriptError W103 for a value over the limits, W124 for operands that are not folded; whoever calls adds the place.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.errors import ScriptError
from weft.ir.kernel.comparisons import COMPARE
from weft.script.reader.scope import describe
from weft.script.source.diagnostics import Limits, fail

__all__ = ["MAX_BITS", "binary", "check_bits", "contains", "rounded", "too_many", "unary"]

MAX_BITS = 4096

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "pow": operator.pow,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    **COMPARE,
}

_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "not": operator.not_,
    "bitwise_not": operator.invert,
}

_SIZED = (str, tuple, list)


def binary(kind: str, left: Any, right: Any, limits: Limits) -> Any:
    """What Python computes for a binary operation on plain values or dimensions."""
    _check(kind, left, right, limits)
    return _BINARY[kind](left, right)


def unary(kind: str, operand: Any) -> Any:
    """What Python computes for a unary operation on a plain value."""
    return _UNARY[kind](operand)


def contains(item: Any, values: Any) -> bool:
    """`item in values`; in a range by arithmetic, for every number."""
    if not isinstance(values, range):
        return item in values
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, float):
        return item.is_integer() and int(item) in values
    return isinstance(item, int) and int(item) in values


def rounded(value: Any, digits: Any = None) -> Any:
    """Python's `round`; an integer is rounded to no more digits than it has."""
    if isinstance(value, int) and isinstance(digits, int):
        digits = max(digits, -value.bit_length() - 1)
    return round(value, digits)


def check_bits(value: Any) -> Any:
    """The value; W103 for an integer of too many bits."""
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise _too_long(value.bit_length())
    return value


def too_many(what: str, limits: Limits) -> ScriptError:
    """The error for a constant over the limit of parts."""
    message = f"the constant would have more than {limits.parts} {what}"
    return fail("W103", message, hint="Limits(parts=...) allows more")


def _too_long(bits: int) -> ScriptError:
    return fail("W103", f"the constant would have about {bits} bits, the limit is {MAX_BITS}")


def _check(kind: str, left: Any, right: Any, limits: Limits) -> None:
    """W103 where the result would be too large, W124 for strings and lists that an operation does not take."""
    if kind == "add" and isinstance(left, _SIZED) and isinstance(right, _SIZED):
        _check_parts(len(left) + len(right), limits)
    elif kind == "floormod" and isinstance(left, str):
        _check_parts(_formatted_length(left, right), limits)
    elif kind in ("pow", "shift_left", "mul"):
        _check_product(kind, left, right, limits)


def _check_product(kind: str, left: Any, right: Any, limits: Limits) -> None:
    for side, count in ((left, right), (right, left)):
        if isinstance(side, _SIZED) and kind == "mul" and isinstance(count, int):
            _check_parts(len(side) * count, limits)
            return
        if isinstance(side, (*_SIZED, np.ndarray)):
            raise fail("W124", f"{kind} of {describe(left)} and {describe(right)} is not folded")
    if isinstance(left, int) and isinstance(right, int):
        bits = {
            "pow": left.bit_length() * max(right, 0),
            "shift_left": left.bit_length() + right,
            "mul": left.bit_length() + right.bit_length(),
        }[kind]
        if bits > MAX_BITS:
            raise _too_long(bits)


def _check_parts(count: int, limits: Limits) -> None:
    if count > limits.parts:
        raise too_many("parts", limits)


def _formatted_length(text: str, values: Any) -> int:
    """A bound of the length of `text % values`, its arguments aside: what widths and precisions ask for."""
    widths = sum(int(width[:20]) for width in re.findall(r"[0-9]+", text))
    stars = text.count("*") and sum(abs(value) for value in _parts(values) if isinstance(value, int))
    return len(text) + widths + stars


def _parts(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)
