"""Arithmetic with the exact meaning of a dtype, on scalars and on vectors.

    scalar ::= int (integers) | bool | NumPy scalar (floats and complex numbers; float32 for floats that NumPy lacks)
    vector ::= NumPy array of the same elements

Integers wrap to their width. Division and remainder of integers by zero give 0. A shift by less than zero or by the
width or more shifts everything out. Floats round to their type at each step; `min` and `max` hand on nan and take -0.0
for less than 0.0; float `floordiv` and `floormod` are those of Python. A float becomes an integer by truncation,
out-of-range values saturate, nan gives 0.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.ir.kernel.comparisons import COMPARE
from weft.support.guards import is_array, is_number
from weft.support.numbers import number
from weft.support.small_floats import round_to

__all__ = [
    "binary_function",
    "cast_function",
    "check_scalar",
    "coerce",
    "element_type",
    "unary_function",
    "wrap_array",
    "wrapper",
]

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


@functools.cache
def element_type(dtype: str) -> np.dtype[Any]:
    """The NumPy type of the elements of values of a dtype (float32 for floats that NumPy lacks)."""
    scalar = dtypes.element(dtype)
    if dtypes.is_float(scalar) and not dtypes.is_numpy(scalar):
        return np.dtype("float32")
    return dtypes.storage(scalar)


@functools.cache
def wrapper(dtype: str) -> Callable[[int], int]:
    """The function that brings any Python int into the range of an integer type."""
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    mask = (1 << dtypes.bits(dtype)) - 1

    def wrap(value: int) -> int:
        return value if low <= value <= high else ((value - low) & mask) + low

    return wrap


def _same(value: Any) -> Any:
    return value


def wrap_array(dtype: str) -> Unary:
    """The function that brings arrays into the range of a type: those of less than a byte are kept in bytes."""
    kind = dtypes.element(dtype)
    if dtypes.is_numpy(kind):
        return _same
    low, mask = int(dtypes.min_value(kind)), (1 << dtypes.bits(kind)) - 1
    stored = dtypes.storage(kind)
    return lambda value: (((value.astype(np.int64) - low) & mask) + low).astype(stored)


def check_scalar(value: Any, dtype: str) -> Any:
    """A caller's number as a scalar of `dtype`, or None when its kind or range does not fit."""
    kind = dtypes.element(dtype)
    if dtypes.is_float(kind) and not dtypes.is_numpy(kind) and is_number(value) and value.dtype.name == "float32":
        return value if value != value or round_to(value, kind) == value else None  # as `coerce` makes it
    found = number(value, dtype)
    return None if found is None else coerce(found, dtype)


# Scalars ------------------------------------------------------------------------------------------------------------


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _floormod(a: int, b: int) -> int:
    return a % b if b else 0


def _truncdiv(a: int, b: int) -> int:
    if not b:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncmod(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b) if b else 0


def _shift_left(bits: int) -> Binary:
    return lambda a, b: a << b if 0 <= b < bits else 0


def _shift_right(bits: int) -> Binary:
    return lambda a, b: a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


_IN_RANGE: dict[str, Binary] = {  # results that are in range whenever the operands are
    "floormod": _floormod,
    "truncmod": _truncmod,
    "min": min,
    "max": max,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}
_WRAPPED: dict[str, Binary] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _floordiv,
    "truncdiv": _truncdiv,
    "div": _truncdiv,  # of integers, as in the field
}


def _integer_scalar(kind: str, dtype: str) -> Binary:
    if kind in _IN_RANGE:
        return _IN_RANGE[kind]
    if kind == "shift_right":
        return _shift_right(dtypes.bits(dtype))
    function = _shift_left(dtypes.bits(dtype)) if kind == "shift_left" else _WRAPPED[kind]
    wrap = wrapper(dtype)
    return lambda a, b: wrap(function(a, b))


def _bool_scalar(kind: str) -> Binary:
    function = (
        _IN_RANGE.get(kind)
        or _WRAPPED.get(kind)
        or {"shift_left": _shift_left(1), "shift_right": _shift_right(1)}[kind]
    )
    return lambda a, b: bool(function(int(a), int(b)) & 1)


# np.minimum and np.maximum leave open which of two zeros they give.


def _float_minimum(a: Any, b: Any) -> Any:
    if is_array(a):
        return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))
    return _least(a, b)


def _float_maximum(a: Any, b: Any) -> Any:
    if is_array(a):
        return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))
    return -_least(-a, -b)


def _least(a: Any, b: Any) -> Any:
    if a < b or a != a:
        return a
    return a if a == b and np.signbit(a) else b


_FLOATS: dict[str, Binary] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda a, b: a / b,
    "floordiv": np.floor_divide,
    "floormod": np.remainder,
    "truncdiv": lambda a, b: np.trunc(a / b),
    "truncmod": np.fmod,
    "min": _float_minimum,
    "max": _float_maximum,
}


def _rounded(function: Binary, dtype: str) -> Binary:
    scalar = dtypes.element(dtype)
    if dtypes.is_numpy(scalar):
        return function
    return lambda a, b: round_to(function(a, b), scalar)


# Vectors ------------------------------------------------------------------------------------------------------------


def _divide_arrays(function: Binary) -> Binary:
    def divide(a: Any, b: Any) -> Any:
        zero = b == 0
        return np.where(zero, 0, function(a, np.where(zero, 1, b))).astype(a.dtype)

    return divide


def _trunc_divide_arrays(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


_VECTOR_INTEGERS: dict[str, Binary] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "floordiv": _divide_arrays(np.floor_divide),
    "floormod": _divide_arrays(np.remainder),
    "truncdiv": _divide_arrays(_trunc_divide_arrays),
    "div": _divide_arrays(_trunc_divide_arrays),
    "truncmod": _divide_arrays(np.fmod),
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


def _shift_arrays(kind: str, bits: int) -> Binary:
    scalar = _shift_left(bits) if kind == "shift_left" else _shift_right(bits)
    mask = (1 << bits) - 1

    def shift(a: Any, b: Any) -> Any:
        values = [scalar(x, y) & mask for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        return np.array(values, np.uint64).astype(a.dtype)

    return shift


def _integer_vector(kind: str, dtype: str) -> Binary:
    wrap = wrap_array(dtype)
    function = _shift_arrays(kind, dtypes.bits(dtype)) if kind.startswith("shift") else _VECTOR_INTEGERS[kind]
    return lambda a, b: wrap(function(a, b))


_VECTOR_LOGIC: dict[str, Binary] = {"and": np.logical_and, "or": np.logical_or}
_SCALAR_LOGIC: dict[str, Binary] = {"and": lambda a, b: a and b, "or": lambda a, b: a or b}


# Entry points -------------------------------------------------------------------------------------------------------


@functools.cache
def binary_function(kind: str, dtype: str) -> Binary:
    """The function of two values of `dtype` for a kind of BINARY_KINDS (`and`, `or` without their laziness)."""
    scalar, vector = dtypes.element(dtype), dtypes.lanes(dtype) > 1
    if kind in COMPARE:
        return COMPARE[kind]
    if kind in ("and", "or"):
        return (_VECTOR_LOGIC if vector else _SCALAR_LOGIC)[kind]
    if dtypes.is_float(scalar) or dtypes.is_complex(scalar):
        return _rounded(_FLOATS[kind], dtype)
    if dtypes.is_bool(scalar):
        if not vector:
            return _bool_scalar(kind)
        return lambda a, b: (_integer_vector(kind, "int8")(a.astype(np.int8), b.astype(np.int8)) & 1).astype(np.bool_)
    return _integer_vector(kind, dtype) if vector else _integer_scalar(kind, scalar)


@functools.cache
def unary_function(kind: str, dtype: str) -> Unary:
    """The function of one value of `dtype` for a kind of UNARY_KINDS."""
    scalar, vector = dtypes.element(dtype), dtypes.lanes(dtype) > 1
    if kind == "not":
        return np.logical_not if vector else operator.not_
    if dtypes.is_float(scalar) or dtypes.is_complex(scalar):
        return operator.neg
    if dtypes.is_bool(scalar):  # -b is b and ~b is not b, modulo two
        return _same if kind == "neg" else (np.logical_not if vector else operator.not_)
    function = operator.neg if kind == "neg" else operator.invert
    wrap: Unary = wrap_array(dtype) if vector else wrapper(scalar)
    return lambda a: wrap(function(a))


@functools.cache
def cast_function(source: str, target: str) -> Unary:
    """The function that converts values of one dtype to another of as many lanes."""
    if source == target:
        return _same
    vector = dtypes.lanes(target) > 1
    a, b = dtypes.element(source), dtypes.element(target)
    if a == b or "handle" in (a, b):
        return _same
    return _vector_cast(a, b) if vector else _scalar_cast(a, b)


def _scalar_cast(a: str, b: str) -> Unary:
    if dtypes.is_bool(b):
        return lambda value: bool(value != 0)
    if dtypes.is_float(b):
        return _to_float_scalar(b)
    if dtypes.is_complex(b):
        return _to_complex_scalar(a, b)
    if not dtypes.is_float(a):
        wrap = wrapper(b)
        return lambda value: wrap(int(value))
    low, high = int(dtypes.min_value(b)), int(dtypes.max_value(b))

    def truncate(value: Any) -> int:
        if value != value:
            return 0
        if value >= high:
            return high
        return low if value <= low else int(value)

    return truncate


def _to_float_scalar(b: str) -> Unary:
    kind = element_type(b).type
    if not dtypes.is_numpy(b):
        return lambda value: round_to(float(value), b)
    if b == "float64":
        return kind

    def convert(value: Any) -> Any:
        # A large integer must round once, so it does not pass through a Python float.
        if isinstance(value, int) and abs(value) > 1 << 53:
            return np.asarray(value, np.uint64 if value > 0 else np.int64).astype(kind)[()]
        return kind(value)

    return convert


def _to_complex_scalar(a: str, b: str) -> Unary:
    kind = element_type(b).type
    if dtypes.is_complex(a):
        return kind
    convert = _to_float_scalar(dtypes.part(b))
    return lambda value: kind(convert(value))


def _vector_cast(a: str, b: str) -> Unary:
    if dtypes.is_bool(b):
        return lambda value: value != 0
    if dtypes.is_float(b):
        kind = element_type(b)
        if dtypes.is_numpy(b):
            return lambda value: value.astype(kind)
        return lambda value: round_to(value, b)
    if dtypes.is_complex(b):
        return lambda value: value.astype(dtypes.part(b) if not dtypes.is_complex(a) else b).astype(b)
    if dtypes.is_float(a):
        one = _scalar_cast(a, b)
        return lambda value: np.array([one(item) for item in value], dtypes.storage(b))
    wrap = wrap_array(b)
    stored = dtypes.storage(b)
    return lambda value: wrap(value.astype(np.int64) if value.dtype == np.bool_ else value).astype(stored)


def coerce(value: Any, dtype: str) -> Any:
    """A Python or NumPy number as a scalar of `dtype` in the form that the interpreter uses."""
    if dtypes.is_bool(dtype):
        return bool(value)
    if dtypes.is_integer(dtype):
        return wrapper(dtype)(int(value))
    if dtypes.is_float(dtype):
        return _to_float_scalar(dtype)(value)
    if dtypes.is_complex(dtype):
        return element_type(dtype).type(value)
    return value
