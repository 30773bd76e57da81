"""The tensor-level intrinsics on the CPU: which LLVM intrinsic, library function or instruction sequence each one is.

    LLVM        an LLVM intrinsic of the value's type (the code generator picks an instruction or the C library)
    LIBRARY     a function of the C library, called lane by lane on vectors
    CUSTOM      a sequence written here
    POLYNOMIALS what vector code computes itself in float32 and float64, unless the target asks for strict_math
Short floats (float16, bfloat16 and those of 8 bits and less) are computed in float32 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import (
    binary,
    cast,
    extractelement,
    fcmp,
    icmp,
    insertelement,
    load,
    store,
)
from weft.codegen.backends.llvm.asm.types import constant, is_bits_float, splat, value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.math.conversions import mangled
from weft.codegen.backends.llvm.math.dot_products import dot_product
from weft.codegen.backends.llvm.math.polynomials import exp_polynomial, tanh_polynomial
from weft.codegen.backends.llvm.math.short_floats import SHORT_FLOATS, stepped
from weft.codegen.backends.llvm.math.vector_math import (
    cos_float32,
    erf_float32,
    log1p_float32,
    log_float32,
    pow_float32,
    sin_float32,
    whole_power_float32,
)
from weft.codegen.backends.llvm.math.vector_math_float64 import (
    cos_float64,
    erf_float64,
    log1p_float64,
    log_float64,
    pow_float64,
    sin_float64,
)
from weft.errors import TargetError
from weft.ir.kernel.intrinsics import INTRINSICS

__all__ = ["emit_math", "is_math"]

_POLYNOMIALS: dict[str, dict[str, Callable[..., str]]] = {
    "float32": {
        "cos": cos_float32,
        "erf": erf_float32,
        "exp": exp_polynomial,
        "log": log_float32,
        "log1p": log1p_float32,
        "sin": sin_float32,
        "tanh": tanh_polynomial,
    },
    "float64": {
        "cos": cos_float64,
        "erf": erf_float64,
        "exp": exp_polynomial,
        "log": log_float64,
        "log1p": log1p_float64,
        "sin": sin_float64,
        "tanh": tanh_polynomial,
    },
}
_LIBRARY = {"exp10": "exp10"}
"""Functions that the C libraries of the systems that LLVM's code runs on have beside those of the standard."""


def is_math(name: str) -> bool:
    """Whether the intrinsic is arithmetic on its operands (no memory, no control flow)."""
    entry = INTRINSICS.get(name)
    return name in _CUSTOM or name in _LIBRARY or (entry is not None and bool(entry.llvm or entry.c))


def emit_math(arith: Arithmetic, name: str, dtype: str, operands: Sequence[str], kinds: Sequence[str]) -> str:
    """An intrinsic of the result `dtype` on operands of dtypes `kinds`; TargetError W741 of types that only move."""
    for kind in (dtype, *kinds):
        if is_bits_float(kind) and dtypes.element(kind) not in SHORT_FLOATS:
            raise TargetError(f"llvm: T.{name} of {kind} values", code="W741", hint="cast to float16 first")
    if name in ("rsqrt", "sigmoid") and dtypes.element(dtype) in SHORT_FLOATS:
        return _in_float32(arith, name, dtype, operands)
    if name in _CUSTOM:
        return _CUSTOM[name](arith, dtype, list(operands), list(kinds))
    if dtypes.element(dtype) in SHORT_FLOATS:
        if name == "nextafter":
            return _next_short(arith, dtype, operands)
        if dtypes.element(dtype) != "float16" or name not in ("copysign", "fabs"):
            return _in_float32(arith, name, dtype, operands)
    polynomial = None if arith.strict else _POLYNOMIALS.get(dtypes.element(dtype), {}).get(name)
    if polynomial is not None:
        return polynomial(arith, dtype, operands[0])
    entry = INTRINSICS[name]
    if entry.llvm:
        return arith.overloaded(entry.llvm, dtype, *operands)
    return _library(arith, _LIBRARY.get(name, entry.c), dtype, operands)


def _in_float32(arith: Arithmetic, name: str, dtype: str, operands: Sequence[str]) -> str:
    wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
    values = [arith.cast(dtype, wide, operand) for operand in operands]
    return arith.cast(wide, dtype, emit_math(arith, name, wide, values, [wide] * len(values)))


def _next_short(arith: Arithmetic, dtype: str, operands: Sequence[str]) -> str:
    ints, ty = value_type(dtypes.with_lanes("int16", dtypes.lanes(dtype))), value_type(dtype)
    layout = dtypes.float_format(dtype)
    if layout.special not in ("ieee", "fn") or not layout.mantissa:
        raise TargetError(f"llvm: T.nextafter of {dtype}", code="W741", hint="cast it to float32 first")
    if dtypes.element(dtype) != "float16":
        return stepped(arith.w, dtype, *operands)
    bits = [arith.w.emit(cast("bitcast", ty, operand, ints)) for operand in operands]
    return arith.w.emit(cast("bitcast", ints, stepped(arith.w, dtype, *bits), ty))


def _library(arith: Arithmetic, name: str, dtype: str, operands: Sequence[str]) -> str:
    element = dtypes.element(dtype)
    function = name if element == "float64" else f"{name}f"

    def one(*values: str) -> str:
        return arith.call(function, element, *((value_type(element), value) for value in values))

    return by_lane(arith, dtype, operands, [dtype] * len(operands), one)


def by_lane(
    arith: Arithmetic, dtype: str, operands: Sequence[str], kinds: Sequence[str], one: Callable[..., str]
) -> str:
    """Apply a scalar function to each lane."""
    lanes, w = dtypes.lanes(dtype), arith.w
    if lanes == 1:
        return one(*operands)
    result, element = "poison", value_type(dtypes.element(dtype))
    for lane in range(lanes):
        parts = [w.emit(extractelement(value_type(k), v, lane)) for v, k in zip(operands, kinds, strict=True)]
        result = w.emit(insertelement(value_type(dtype), result, element, one(*parts), lane))
    return result


# Sequences


def _rsqrt(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    root = emit_math(arith, "sqrt", dtype, operands, kinds)
    return arith.binary("div", dtype, constant(1.0, dtype), root)


def _sigmoid(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    # exp of a nonpositive number never overflows.
    (x,), one = operands, constant(1.0, dtype)
    e = emit_math(arith, "exp", dtype, [arith.unary("neg", dtype, emit_math(arith, "fabs", dtype, [x], kinds))], kinds)
    below = arith.binary("add", dtype, one, e)
    positive = arith.compare("ge", dtype, x, constant(0.0, dtype))
    return arith.binary("div", dtype, arith.select(positive, dtype, one, e), below)


def _abs(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    if dtypes.is_float(dtype):
        return emit_math(arith, "fabs", dtype, operands, kinds)
    if not dtypes.is_signed(dtype):
        return operands[0]
    ty = value_type(dtype)
    return arith.call(f"llvm.abs.{mangled(dtype)}", dtype, (ty, operands[0]), ("i1", "false"))


def _classify(infinite: bool, finite: bool) -> Callable[[Arithmetic, str, list[str], list[str]], str]:
    def emit(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
        kind = kinds[0]
        if not dtypes.is_float(kind):
            return constant(1 if finite else 0, dtype)
        wide = kind
        value = operands[0]
        if arith.in_float32(kind):
            wide = dtypes.with_lanes("float32", dtypes.lanes(kind))
            value = arith.cast(kind, wide, value)
        ty = value_type(wide)
        if not infinite and not finite:
            return arith.w.emit(fcmp("uno", ty, value, value))
        size = arith.overloaded("fabs", wide, value)
        return arith.w.emit(fcmp("oeq" if infinite else "one", ty, size, constant(float("inf"), wide)))

    return emit


def _popcount(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    return arith.overloaded("ctpop", dtype, operands[0])


def _clz(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    if dtypes.is_bool(dtype):  # LLVM ends the process on vectors of them for AArch64
        return arith.unary("not", dtype, operands[0])
    return arith.call(f"llvm.ctlz.{mangled(dtype)}", dtype, (value_type(dtype), operands[0]), ("i1", "false"))


def _likely(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    return arith.cast(kinds[0], dtype, operands[0])


_SIMPLE_POWERS = (0.5, 1.0, 2.0, -1.0)
"""Exponents that LLVM turns into a few instructions."""
_REPEATED_POWERS = (3, 4, 5, 6, 7, 8, -2, -3, -4)
"""Exponents that are a few products."""


def _pow(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    if dtypes.is_float(dtype):
        if dtypes.element(dtype) in SHORT_FLOATS:
            return _in_float32(arith, "pow", dtype, operands)
        simple = any(operands[1] == constant(value, dtype) for value in _SIMPLE_POWERS)
        if dtypes.element(dtype) == "float32" and not arith.strict and not simple:
            repeated = [count for count in _REPEATED_POWERS if operands[1] == constant(float(count), dtype)]
            if repeated:
                return whole_power_float32(arith, dtype, operands[0], repeated[0])
            return pow_float32(arith, dtype, *operands)
        if dtypes.element(dtype) == "float64" and not arith.strict and not simple:
            x = operands[0]
            if operands[1] == constant(3.0, dtype):
                return arith.binary("mul", dtype, arith.binary("mul", dtype, x, x), x)
            return pow_float64(arith, dtype, *operands)
        return arith.overloaded("pow", dtype, *operands)
    if dtypes.is_bool(dtype):
        return arith.binary("or", dtype, operands[0], arith.unary("not", dtype, operands[1]))
    return by_lane(arith, dtype, operands, kinds, lambda a, b: _integer_power(arith, dtypes.element(dtype), a, b))


def _integer_power(arith: Arithmetic, dtype: str, base: str, exponent: str) -> str:
    """Repeated squaring; a negative exponent gives the truncated quotient 1 / base**-exponent (0 for base 0)."""
    w, ty = arith.w, value_type(dtype)
    head, body, done = w.label("power"), w.label("power.body"), w.label("power.done")
    state = [w.alloca(ty) for _ in range(3)]
    signed = dtypes.is_signed(dtype)
    negative = w.emit(icmp("slt", ty, exponent, "0")) if signed else "false"
    count = exponent
    if signed:
        parity = w.emit(binary("and", ty, exponent, "1"))
        # |base| > 1 to a negative power is 0; 1 and -1 only need the parity of the exponent.
        count = arith.select(negative, dtype, parity, exponent)
    for slot, value in zip(state, ("1", base, count), strict=True):
        w.do(store(ty, value, slot))
    w.open(head)
    rest = w.emit(load(ty, state[2]))
    w.branch(w.emit(icmp("eq", ty, rest, "0")), done, body)
    w.open(body)
    result, square = (w.emit(load(ty, slot)) for slot in state[:2])
    odd = w.emit(cast("trunc", ty, rest, "i1"))
    w.do(store(ty, arith.select(odd, dtype, w.emit(binary("mul", ty, result, square)), result), state[0]))
    w.do(store(ty, w.emit(binary("mul", ty, square, square)), state[1]))
    w.do(store(ty, w.emit(binary("lshr", ty, rest, "1")), state[2]))
    w.jump(head)
    w.open(done)
    power = w.emit(load(ty, state[0]))
    if not signed:
        return power
    size = _abs(arith, dtype, [base], [dtype])
    unit = w.emit(icmp("eq", ty, size, "1"))
    return arith.select(negative, dtype, arith.select(unit, dtype, power, "0"), power)


def _ldexp(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    element = dtypes.element(dtype)
    if element in SHORT_FLOATS:
        wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
        return arith.cast(
            wide, dtype, _ldexp(arith, wide, [arith.cast(dtype, wide, operands[0]), operands[1]], [wide, kinds[1]])
        )
    count = dtypes.with_lanes("int32", dtypes.lanes(dtype))
    exponent = operands[1]
    if dtypes.is_integer(kinds[1]) and dtypes.bits(kinds[1]) > 32:
        low, high = constant(-(2**20), kinds[1]), constant(2**20, kinds[1])
        exponent = arith.binary("max", kinds[1], arith.binary("min", kinds[1], exponent, high), low)
    exponent = arith.cast(kinds[1], count, exponent)
    function = "ldexp" if element == "float64" else "ldexpf"

    def one(value: str, power: str) -> str:
        return arith.call(function, element, (value_type(element), value), ("i32", power))

    return by_lane(arith, dtype, [operands[0], exponent], [dtype, count], one)


def _reinterpret(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    source, target = value_type(kinds[0]), value_type(dtype)
    if source == target:
        return operands[0]
    if "ptr" in (source, target):
        return arith.cast(kinds[0], dtype, operands[0])
    return arith.w.emit(cast("bitcast", source, operands[0], target))


def _q_multiply_shift(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    """round(x * y * 2**-(q - s)) in 64 bits, halves up: fixed-point multiplication of Q-format numbers."""
    w, wide = arith.w, dtypes.with_lanes("int64", dtypes.lanes(dtype))
    ty = value_type(wide)
    x, y, q, s = (arith.cast(kind, wide, value) for kind, value in zip(kinds, operands, strict=True))
    zero, one = splat("0", wide), splat("1", wide)
    left = arith.binary("max", wide, s, zero)
    right = arith.binary("add", wide, q, arith.binary("max", wide, arith.unary("neg", wide, s), zero))
    product = w.emit(binary("mul", ty, arith.binary("shift_left", wide, x, left), y))
    half = arith.binary("shift_left", wide, one, w.emit(binary("sub", ty, right, one)))
    total = arith.binary("shift_right", wide, w.emit(binary("add", ty, product, half)), right)
    return arith.cast(wide, dtype, total)


_CUSTOM: dict[str, Callable[[Arithmetic, str, list[str], list[str]], str]] = {
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "abs": _abs,
    "isnan": _classify(infinite=False, finite=False),
    "isinf": _classify(infinite=True, finite=False),
    "isfinite": _classify(infinite=False, finite=True),
    "popcount": _popcount,
    "clz": _clz,
    "likely": _likely,
    "pow": _pow,
    "dot_product": dot_product,
    "ldexp": _ldexp,
    "reinterpret": _reinterpret,
    "q_multiply_shift": _q_multiply_shift,
}
