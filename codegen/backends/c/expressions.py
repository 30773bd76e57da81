"""Tensor-level expressions to C99.

A value is C text of exactly its dtype's type. Arithmetic on signed integers goes through unsigned types, where
wrapping is defined; what else C leaves undefined goes through helpers. A vector is written lane by lane: `lane` is the
text of the lane number while a vector's element is being written.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Protocol

import numpy as np

from weft import dtypes
from weft.codegen.backends.c.helpers import MATH, bits_helper, c_type, cast_helper, exact_helper, helper, math_helper
from weft.codegen.backends.c.short_floats import SHORT_FLOATS, marking, narrowing, widening
from weft.errors import Span, TargetError
from weft.ir.graph import Expr
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import as_expr, buffer_strides
from weft.ir.tensor import (
    COMPARISONS,
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    Extent,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    Shuffle,
    Unary,
)
from weft.support.records import dataclass
from weft.support.small_floats import encode

__all__ = ["expression", "float_literal", "int_literal", "unsupported"]

_EXACT_KINDS = frozenset({"add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max"})
_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&&", "or": "||"}
_ARITHMETIC = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_SIGNED: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


class Scope(Protocol):
    """What an expression asks of the function it stands in."""

    def use(self, item: tuple[str, str]) -> str: ...
    def check_dtype(self, dtype: str, span: Span | None) -> None: ...
    def variable(self, var: PrimVar, lane: str | None) -> str: ...
    def range_of(self, var: PrimVar) -> tuple[int, int] | None: ...
    def pointer(self, buffer: Buffer) -> str: ...
    def let(self, var: PrimVar, value: PrimExpr) -> None: ...
    def address(self, expr: PrimCall) -> str: ...
    def call_extern(self, expr: PrimCall) -> str: ...
    def call_function(self, expr: PrimCall) -> str: ...


def unsupported(what: str, span: Span | None) -> TargetError:
    """The error for a construct that C99 code cannot express."""
    return TargetError(f"c: {what} is not supported", code="W741", span=span)


def int_literal(value: int, dtype: str) -> str:
    """An integer constant of exactly the type."""
    if dtypes.is_bool(dtype):
        return str(int(value))
    bits = dtypes.bits(dtype)
    if value == -(2**63):
        return "INT64_MIN"
    suffix = ("u" if dtypes.is_unsigned(dtype) else "") + ("ll" if bits == 64 else "")
    if value == -(2**31):
        return "(-2147483647 - 1)"
    text = f"{value}{suffix}"
    text = f"({text})" if value < 0 else text
    return text if bits >= 32 else f"(({c_type(dtype)}){text})"


def in_width(dtype: str, text: str) -> str:
    """A number of less than a byte in the range of its type; C has it in a byte."""
    bits = dtypes.bits(dtype)
    if not dtypes.is_integer(dtype) or bits >= 8:
        return text
    low = f"((uint8_t){text} & {(1 << bits) - 1}u)"
    if dtypes.is_unsigned(dtype):
        return f"((uint8_t){low})"
    sign = 1 << (bits - 1)
    return f"((int8_t)((int)({low} ^ {sign}u) - {sign}))"


def hex_literal(value: int, dtype: str) -> str:
    """The bits of a short float."""
    return f"0x{value:0{dtypes.storage(dtype).itemsize * 2}x}u"


def float_literal(value: float, dtype: str) -> str:
    """A floating-point constant, exact in hexadecimal."""
    if math.isnan(value):
        text = "NAN" if not struct.pack(">d", value)[0] & 0x80 else "(-NAN)"
    elif math.isinf(value):
        text = "INFINITY" if value > 0 else "(-INFINITY)"
    else:
        if dtype == "float32":
            value = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3.5e38 else value
        text = f"{value:.17g}" if value == int(value) and abs(value) < 1e16 else value.hex()
        text = text if any(mark in text for mark in ".xe") else f"{text}.0"
        text += "f" if dtype == "float32" else ""
        return f"({text})" if text.startswith("-") else text
    return text if dtype == "float32" else f"(double){text}"


def expression(writer: Scope, expr: Expr | int, lane: str | None = None) -> str:
    """The C text of an expression (of one lane of a vector)."""
    if isinstance(expr, int):
        return int_literal(expr, "int64")
    emit = _EMITTERS.get(type(expr))
    if emit is None:
        raise unsupported(type(expr).__name__, expr.span)
    if lane is None and isinstance(expr, PrimExpr) and dtypes.lanes(expr.dtype) > 1:
        raise unsupported(f"{expr.dtype} where one number is written", expr.span)
    return emit(writer, expr, lane)


def _int(writer: Scope, expr: IntImm, lane: str | None) -> str:
    return int_literal(expr.value, expr.dtype)


def _float(writer: Scope, expr: FloatImm, lane: str | None) -> str:
    writer.check_dtype(expr.dtype, expr.span)
    dtype = dtypes.element(expr.dtype)
    if dtype in SHORT_FLOATS:
        return f"(({c_type(dtype)}){hex_literal(_short_bits(expr.value, dtype), dtype)})"
    return float_literal(expr.value, dtype)


def _short_bits(value: float, dtype: str) -> int:
    with np.errstate(over="ignore"):
        return int(np.float16(value).view("uint16") if dtype == "float16" else encode(value, dtype))


def _wide_float(writer: Scope, dtype: str, value: str) -> tuple[str, str]:
    """The dtype that a float is computed in, and its value in that."""
    return ("float32", f"{writer.use(widening(dtype))}({value})") if dtype in SHORT_FLOATS else (dtype, value)


def _rounded(writer: Scope, source: str, dtype: str, value: str) -> str:
    """A float32 or a float64 as a float that may be shorter."""
    return f"{writer.use(narrowing(source, dtype))}({value})" if dtype in SHORT_FLOATS else value


def _variable(writer: Scope, expr: PrimVar, lane: str | None) -> str:
    return writer.variable(expr, lane)


def _unary(writer: Scope, expr: Unary, lane: str | None) -> str:
    value, dtype = expression(writer, expr.a, lane), dtypes.element(expr.dtype)
    if expr.kind == "not":
        return f"(!{value})"
    if expr.kind == "bitwise_not":
        return in_width(dtype, f"(({c_type(dtype)})~{value})") if not dtypes.is_bool(dtype) else f"(!{value})"
    if dtype in SHORT_FLOATS and dtypes.float_format(dtype).has_signed_zero:
        return f"(({c_type(dtype)})({value} ^ 0x{1 << (dtypes.bits(dtype) - 1):02x}u))"
    if dtype in SHORT_FLOATS:
        return _rounded(writer, "float32", dtype, f"(-{_wide_float(writer, dtype, value)[1]})")
    if dtypes.is_float(dtype):
        return f"(-{value})"
    return in_width(dtype, f"(({c_type(dtype)})(0u - (u{_wide(dtype)}){value}))")


def _wide(dtype: str) -> str:
    return "int64_t" if dtypes.bits(dtype) == 64 else "int32_t"


def _binary(writer: Scope, expr: Binary, lane: str | None) -> str:
    a, b = expression(writer, expr.a, lane), expression(writer, expr.b, lane)
    dtype = dtypes.element(expr.a.dtype)
    writer.check_dtype(dtype, expr.span)
    if dtype in SHORT_FLOATS:
        (wide, a), (_, b) = _wide_float(writer, dtype, a), _wide_float(writer, dtype, b)
        found = _of_values(writer, expr, wide, a, b)
        return found if expr.kind in _OPERATORS else _rounded(writer, wide, dtype, found)
    return _of_values(writer, expr, dtype, a, b)


def _of_values(writer: Scope, expr: Binary, dtype: str, a: str, b: str) -> str:
    """A binary operation on two values of a dtype that C has."""
    if expr.kind in _OPERATORS:
        return f"({a} {_OPERATORS[expr.kind]} {b})"
    if expr.kind == "div" and not dtypes.is_float(dtype):
        expr = Binary("truncdiv", expr.a, expr.b, span=expr.span)
    if dtypes.is_bool(dtype):
        return _bool_arithmetic(expr, a, b)
    if expr.kind in _ARITHMETIC:
        sign = _ARITHMETIC[expr.kind]
        if dtypes.is_float(dtype):
            return f"({a} {sign} {b})"
        wide = f"u{_wide(dtype)}"
        return in_width(dtype, f"(({c_type(dtype)})(({wide}){a} {sign} ({wide}){b}))")
    return in_width(dtype, f"{writer.use(helper(expr.kind, dtype))}({a}, {b})")


EXACT = "weft_exact"
"""The name of what says whether the arithmetic of a check of bounds fits 64 bits."""


def exact_condition(writer: Scope, condition: PrimExpr) -> str | None:
    """The condition of a check of bounds, where a comparison whose arithmetic leaves 64 bits does not hold.

    None when there is no such arithmetic.
    """
    if isinstance(condition, Binary) and condition.kind in ("and", "or"):
        sides = [exact_condition(writer, side) for side in (condition.a, condition.b)]
        if sides == [None, None]:
            return None
        a, b = (text or expression(writer, side) for text, side in zip(sides, (condition.a, condition.b), strict=True))
        return f"({a} {'&&' if condition.kind == 'and' else '||'} {b})"
    if not isinstance(condition, Binary) or condition.kind not in COMPARISONS:
        return None
    sides = [_exact(writer, side) for side in (condition.a, condition.b)]
    if sides == [None, None]:
        return None
    a, b = (text or expression(writer, side) for text, side in zip(sides, (condition.a, condition.b), strict=True))
    return f"({EXACT} = 1, ({a} {_OPERATORS[condition.kind]} {b}) && {EXACT})"


def _exact(writer: Scope, expr: PrimExpr) -> str | None:
    """Signed scalar arithmetic in 64 bits that notes when it leaves them; None for anything else."""
    if isinstance(expr, Cast) and expr.dtype == "int64" and dtypes.is_signed(expr.value.dtype):
        return _exact(writer, expr.value)
    if not isinstance(expr, Binary) or dtypes.lanes(expr.dtype) > 1 or not dtypes.is_signed(expr.dtype):
        return None
    if not dtypes.is_integer(expr.dtype) or expr.kind not in _EXACT_KINDS:
        return None
    sides = [_exact(writer, side) for side in (expr.a, expr.b)]
    a, b = (text or expression(writer, side) for text, side in zip(sides, (expr.a, expr.b), strict=True))
    if expr.kind in ("add", "sub", "mul"):
        return f"{writer.use(exact_helper(expr.kind))}({a}, {b}, &{EXACT})"
    return None if sides == [None, None] else f"{writer.use(helper(expr.kind, 'int64'))}({a}, {b})"


def _bool_arithmetic(expr: Binary, a: str, b: str) -> str:
    """Truth values as one-bit numbers."""
    forms = {
        "add": "({a} ^ {b})",
        "sub": "({a} ^ {b})",
        "mul": "({a} & {b})",
        "min": "({a} & {b})",
        "max": "({a} | {b})",
        "bitwise_and": "({a} & {b})",
        "bitwise_or": "({a} | {b})",
        "bitwise_xor": "({a} ^ {b})",
        "floordiv": "({a} & {b})",
        "truncdiv": "({a} & {b})",
    }
    if expr.kind not in forms:
        raise unsupported(f"{expr.kind} of bool", expr.span)
    return f"((uint8_t){forms[expr.kind].format(a=a, b=b)})"


def _cast(writer: Scope, expr: Cast, lane: str | None) -> str:
    value = expression(writer, expr.value, lane)
    source, target = dtypes.element(expr.value.dtype), dtypes.element(expr.dtype)
    writer.check_dtype(target, expr.span)
    if source == target:
        return value
    source, value = _wide_float(writer, source, value)
    if target in SHORT_FLOATS:
        if not dtypes.is_float(source):
            # float holds whatever integer is not beyond the greatest short float
            wide = "float32" if target != "bfloat16" or dtypes.bits(source) <= 16 else "float64"
            if wide == "float64" and dtypes.bits(source) == 64:
                value = f"{writer.use(marking(source))}({value})"
            source, value = wide, f"({c_type(wide)}){value}"
        return _rounded(writer, source, target, value)
    if dtypes.is_bool(target):
        return f"((uint8_t)({value} != 0))"
    if dtypes.is_float(source) and dtypes.is_integer(target):
        return f"{writer.use(cast_helper(source, target))}({value})"
    return in_width(target, f"(({c_type(target)}){value})")


def _select(writer: Scope, expr: Select, lane: str | None) -> str:
    condition, a, b = (expression(writer, part, lane) for part in (expr.condition, expr.true_value, expr.false_value))
    return f"({condition} ? {a} : {b})"


def _load(writer: Scope, expr: BufferLoad, lane: str | None) -> str:
    element = f"{writer.pointer(expr.buffer)}[{offset(writer, expr.buffer, expr.indices, lane)}]"
    element = in_width(dtypes.element(expr.dtype), element)
    if expr.predicate is not None:
        guard = expression(writer, expr.predicate, lane)
        return f"({guard} ? {element} : 0)"
    return element


def offset(writer: Scope, buffer: Buffer, indices: tuple[PrimExpr, ...], lane: str | None) -> str:
    """The element offset of an access.

    A valid access is inside of its buffer, so indices are written in plain signed arithmetic, which compilers optimise
    best, where no step of it can leave its type in C; elsewhere they wrap as other arithmetic does.
    """
    terms = [
        _term(_index(writer, index, lane), _index(writer, as_expr(stride, "int64"), None), extent)
        for index, stride, extent in zip(indices, buffer_strides(buffer), buffer.shape, strict=True)
    ]
    if buffer.elem_offset is not None and buffer.data is not None:  # others start at their first element
        terms.append(_index(writer, as_expr(buffer.elem_offset, "int64"), None))
    total = terms[0] if terms else _NOTHING
    for term in terms[1:]:
        total = _plain("+", total, term, total.low + term.low, total.high + term.high)
    return total.text


@dataclass(frozen=True)
class _Index:
    """C text of an integer, the width of its type in C, and the values that it may have."""

    text: str
    bits: int
    low: int
    high: int

    def widened(self) -> _Index:
        """The same in 64 bits."""
        return self if self.bits == 64 else _Index(f"(int64_t){self.text}", 64, self.low, self.high)


_NOTHING = _Index("0", 32, 0, 0)


def _plain(sign: str, a: _Index, b: _Index, low: int, high: int) -> _Index:
    """Two numbers added or multiplied in signed arithmetic of the width that its values need."""
    if "0" in (a.text, b.text) and sign == "+":
        return b if a.text == "0" else a
    if not -(2**31) <= low <= high < 2**31:
        a = a if b.bits == 64 else a.widened()
    return _Index(f"{a.text} {sign} {b.text}", max(a.bits, b.bits), low, high)


def _term(index: _Index, stride: _Index, extent: Extent) -> _Index:
    """An index of a dimension, which is inside of it, times the stride."""
    most = extent - 1 if isinstance(extent, int) else 2**62
    low, high = max(index.low, 0), max(min(index.high, most), 0)
    index = _Index(index.text, index.bits, low, high)
    if stride.text == "1":
        return index
    ends = (low * stride.low, low * stride.high, high * stride.low, high * stride.high)
    return _plain("*", index, stride, min(ends), max(ends))


def _index(writer: Scope, expr: PrimExpr, lane: str | None) -> _Index:
    dtype = dtypes.element(expr.dtype)
    bits = max(32, dtypes.bits(dtype))
    if isinstance(expr, IntImm):
        small = abs(expr.value) < 2**31
        text = str(expr.value) if small else expression(writer, expr)
        return _Index(text, 32 if small else bits, expr.value, expr.value)
    if isinstance(expr, Binary) and expr.kind in _SIGNED and dtypes.is_signed(dtype):
        found = _signed(expr.kind, _index(writer, expr.a, lane), _index(writer, expr.b, lane), dtypes.bits(dtype))
        if found is not None:
            return found
    low, high = (0, 1) if dtypes.is_bool(dtype) else (int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype)))
    if isinstance(expr, PrimVar):
        low, high = writer.range_of(expr) or (low, high)
    return _Index(expression(writer, expr, lane), bits, low, high)


def _signed(kind: str, a: _Index, b: _Index, bits: int) -> _Index | None:
    """A sum, difference or product in plain arithmetic; None where it may leave its type."""
    ends = [_SIGNED[kind](x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if not -(1 << bits - 1) <= min(ends) <= max(ends) < 1 << bits - 1:
        return None
    if not -(2**31) <= min(ends) <= max(ends) < 2**31:
        a = a if b.bits == 64 else a.widened()
    return _Index(f"({a.text} {_ARITHMETIC[kind]} {b.text})", max(a.bits, b.bits), min(ends), max(ends))


def _ramp(writer: Scope, expr: Ramp, lane: str | None) -> str:
    dtype = expr.base.dtype
    wide = f"u{_wide(dtype)}"
    base, stride = expression(writer, expr.base), expression(writer, expr.stride)
    return f"(({c_type(dtype)})(({wide}){base} + ({wide}){stride} * ({wide}){lane}))"


def _broadcast(writer: Scope, expr: Broadcast, lane: str | None) -> str:
    return expression(writer, expr.value)


def _let(writer: Scope, expr: Let, lane: str | None) -> str:
    writer.let(expr.var, expr.value)
    return expression(writer, expr.body, lane)


def _call(writer: Scope, expr: PrimCall, lane: str | None) -> str:
    if not isinstance(expr.op, str):
        return writer.call_function(expr)
    special: dict[str, Callable[[], str]] = {
        "if_then_else": lambda: "({} ? {} : {})".format(*(expression(writer, arg, lane) for arg in expr.args)),
        "likely": lambda: expression(writer, expr.args[0], lane),
        "call_extern": lambda: writer.call_extern(expr),
        "call_pure_extern": lambda: writer.call_extern(expr),
        "address_of": lambda: writer.address(expr),
        "has_intrinsic": lambda: "0",
    }
    if expr.op in special:
        return special[expr.op]()
    dtype = dtypes.element(getattr(expr.args[0], "dtype", "void")) if expr.args else "void"
    if expr.op == "reinterpret" and lane is not None and dtypes.bits(dtype) != dtypes.bits(expr.dtype):
        return _bytes_of_lanes(writer, expr, dtype, lane)
    args = [expression(writer, arg, lane) for arg in expr.args]
    if dtype in SHORT_FLOATS and expr.op != "reinterpret":
        return _short_call(writer, expr, dtype, args)
    return _called(writer, expr, dtype, args)


def _bytes_of_lanes(writer: Scope, expr: PrimCall, dtype: str, lane: str) -> str:
    """One lane of unsigned integers seen as wider or narrower ones; the first byte is the lowest."""
    source, target = dtypes.bits(dtype), dtypes.bits(expr.dtype)
    if not (dtypes.is_unsigned(dtype) and dtypes.is_unsigned(expr.dtype) and min(source, target) >= 8):
        raise unsupported(f"T.reinterpret of {dtype} as {expr.dtype}", expr.span)
    kind = c_type(dtypes.element(expr.dtype))
    if source > target:
        per = source // target
        whole = expression(writer, expr.args[0], f"({lane} / {per})")
        return f"(({kind})({whole} >> ({target}u * (unsigned)({lane} % {per}))))"
    per = target // source
    parts = [expression(writer, expr.args[0], f"({lane} * {per} + {part})") for part in range(per)]
    return "(" + " | ".join(f"({kind})(({kind}){part} << {source * at}u)" for at, part in enumerate(parts)) + ")"


def _shuffle(writer: Scope, expr: Shuffle, lane: str | None) -> str:
    """One lane of a vector."""
    chosen = expr.indices[0]
    if len(expr.vectors) != 1 or len(expr.indices) != 1 or not isinstance(chosen, IntImm):
        raise unsupported("T.Shuffle of several lanes", expr.span)
    return expression(writer, expr.vectors[0], str(chosen.value))


def _short_call(writer: Scope, expr: PrimCall, dtype: str, args: list[str]) -> str:
    """Mathematics of a short float: in float, and rounded where a float comes out."""
    if expr.op == "abs" and dtypes.float_format(dtype).has_signed_zero:
        return f"(({c_type(dtype)})({args[0]} & 0x{(1 << (dtypes.bits(dtype) - 1)) - 1:02x}u))"
    if expr.op == "nextafter":
        raise unsupported(f"T.nextafter of {dtype}", expr.span)
    wide = [_wide_float(writer, dtype, arg)[1] for arg in args]
    found = _called(writer, expr, "float32", wide)
    return _rounded(writer, "float32", dtype, found) if dtypes.element(expr.dtype) == dtype else found


def _called(writer: Scope, expr: PrimCall, dtype: str, args: list[str]) -> str:
    """Mathematics of a dtype that C has."""
    assert isinstance(expr.op, str)
    suffix = "f" if dtype == "float32" else ""
    if expr.op in ("isnan", "isinf", "isfinite"):
        return f"((uint8_t)({expr.op}({args[0]}) != 0))" if dtypes.is_float(dtype) else str(int(expr.op == "isfinite"))
    if expr.op == "abs":
        if dtypes.is_float(dtype):
            return f"fabs{suffix}({args[0]})"
        size = f"({args[0]} < 0 ? 0u - (u{_wide(dtype)}){args[0]} : (u{_wide(dtype)}){args[0]})"
        return in_width(dtype, f"(({c_type(dtype)}){size})")
    if expr.op == "reinterpret" and dtypes.bits(dtype) == dtypes.bits(expr.dtype):
        target = dtypes.element(expr.dtype)
        for name in (dtype, target):
            writer.check_dtype(name, expr.span)
        return f"{writer.use(bits_helper(dtype, target))}({args[0]})"
    if not dtypes.is_float(dtype):
        raise unsupported(f"T.{expr.op} of {dtype}", expr.span)
    writer.check_dtype(dtype, expr.span)
    if expr.op in MATH:
        return f"{writer.use(math_helper(expr.op, dtype))}({args[0]})"
    entry = INTRINSICS.get(expr.op)
    if entry is not None and entry.c:
        return f"{entry.c}{suffix}({', '.join(args)})"
    raise unsupported(f"T.{expr.op}", expr.span)


_EMITTERS: dict[type, Callable[..., str]] = {
    IntImm: _int,
    FloatImm: _float,
    PrimVar: _variable,
    Unary: _unary,
    Binary: _binary,
    Cast: _cast,
    Select: _select,
    BufferLoad: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Let: _let,
    PrimCall: _call,
    Shuffle: _shuffle,
}
assert set(COMPARISONS) < set(_OPERATORS)
