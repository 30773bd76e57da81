"""Floats of 16 bits and less to wider floats and back, in integer instructions that every processor has.

    narrowed   a float32 or float64 to the bits of the short float: rounded once, to nearest even
    widened    the bits of a short float as a float32, which holds all of them
    stepped    the next value towards another one, on the bits

LLVM calls `__truncdfhf2`, `__truncsfhf2` or `__extendhfsf2` of the compiler's own library where a processor has no
instruction, and nothing loads that library. What is written here is branch-free, so that vectors stay vectors. The
formats are rows of the table of dtypes (`FloatFormat`); what they do at their ends is that of `ml_dtypes`.

Normal numbers lose their low bits after half of the new last place was added to the bits. A number below the least
normal one is added to the power of two whose last place is that of the short subnormals, so the addition rounds it,
and its low bits are the result. What is beyond the greatest value has bits above those of all numbers, and becomes the
least of these: infinity, nan, or the greatest value. A nan of float16 keeps the high bits of its payload and becomes
quiet, as processors do it; others become the usual one, as `ml_dtypes` does it.
"""

from __future__ import annotations

import struct

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import binary, cast, fcmp, icmp, select
from weft.codegen.backends.llvm.asm.types import int_type, splat, splat_of, value_type

__all__ = ["SHORT_FLOATS", "converted_by_instructions", "narrowed", "stepped", "widened"]


SHORT_FLOATS = {name: row.layout for name, row in dtypes.SCALARS.items() if row.layout and row.bits <= 16}
_WIDE = {name: dtypes.float_format(name) for name in ("float32", "float64")}
_QUIET = 0x7FC00000
"""The usual nan of float32."""


def converted_by_instructions(features: frozenset[str]) -> frozenset[str]:
    """The floats that a processor with these features converts to float16 and back by instructions.

    >>> sorted(converted_by_instructions(frozenset(["f16c"])))
    ['float32']
    """
    if features & {"avx512fp16", "fp-armv8"}:
        return frozenset(("float32", "float64"))
    return frozenset(("float32",)) if "f16c" in features else frozenset()


class _Ints:
    """Integer instructions on vectors of one width."""

    def __init__(self, w: FunctionWriter, width: int, lanes: int) -> None:
        self.w, self.ty = w, int_type(width, lanes)
        self.mask = value_type(dtypes.with_lanes("bool", lanes))

    def const(self, value: int) -> str:
        """A constant in every lane."""
        return splat_of(str(value), self.ty)

    def do(self, name: str, a: str, b: str | int) -> str:
        """The operation of LLVM with this name."""
        return self.w.emit(binary(name, self.ty, a, self.const(b) if isinstance(b, int) else b))

    def compare(self, predicate: str, a: str, b: str | int) -> str:
        """A comparison."""
        return self.w.emit(icmp(predicate, self.ty, a, self.const(b) if isinstance(b, int) else b))

    def do_min(self, a: str, most: int) -> str:
        """The lesser one, of unsigned numbers."""
        return self.choose(self.compare("ult", a, most), a, self.const(most))

    def choose(self, condition: str, a: str | int, b: str) -> str:
        """condition ? a : b."""
        first = self.const(a) if isinstance(a, int) else a
        return self.w.emit(select(self.mask, condition, self.ty, first, b))


def narrowed(w: FunctionWriter, source: str, target: str, value: str) -> str:
    """The bits, as integers of its width, of a float32 or float64 value as a short float."""
    lanes, wide, short = dtypes.lanes(source), _WIDE[dtypes.element(source)], SHORT_FLOATS[dtypes.element(target)]
    width = dtypes.bits(source)
    v = _Ints(w, width, lanes)
    bits = w.emit(cast("bitcast", value_type(source), value, v.ty))
    drop = wide.mantissa - short.mantissa
    if not short.mantissa:
        made = _power_of_two(v, bits, wide, short)
    elif wide.bias == short.bias:  # the same exponents: every number rounds in the same way, the sign with it
        made = _same_range(v, bits, drop, source, value)
    else:
        made = _smaller_range(v, bits, wide, short, source)
    return w.emit(cast("trunc", v.ty, made, int_type(dtypes.bits(target), lanes)))


def _rounded(v: _Ints, bits: str, drop: int, offset: int = 0) -> str:
    """The bits without the `drop` lowest ones, to nearest even; `offset` is added to them before."""
    odd = v.do("and", v.do("lshr", bits, drop), 1)
    return v.do("lshr", v.do("add", v.do("add", bits, (1 << (drop - 1)) - 1 + offset), odd), drop)


def _same_range(v: _Ints, bits: str, drop: int, source: str, value: str) -> str:
    ty = value_type(source)
    is_nan = v.w.emit(fcmp("uno", ty, value, value))
    usual = v.do("and", v.do("or", v.do("lshr", bits, drop), 0x7FFF), 0xFFC0)
    return v.choose(is_nan, usual, _rounded(v, bits, drop))


def _power_of_two(v: _Ints, bits: str, wide: dtypes.FloatFormat, short: dtypes.FloatFormat) -> str:
    """The nearest exponent, for a format that has nothing else: of a middle the greater one; nan for what is not
    positive. As in `ml_dtypes`, all numbers between the two least ones become the greater one of these."""
    half, top = 1 << (wide.mantissa - 1), (1 << short.exponent) - 1
    made = v.do("lshr", v.do("add", bits, half), wide.mantissa)
    least = half  # float32 has it as a subnormal, with the exponent of the next one
    if wide.bias != short.bias:
        least = (wide.bias - short.bias) << wide.mantissa
        made = v.do("sub", made, wide.bias - short.bias)
        made = v.choose(v.compare("slt", made, 1), 1, made)
    made = v.choose(v.compare("sle", bits, least), 0, v.do_min(made, top))
    return v.choose(v.compare("sle", bits, 0), top, made)


def _smaller_range(v: _Ints, bits: str, wide: dtypes.FloatFormat, short: dtypes.FloatFormat, source: str) -> str:
    w, width, drop = v.w, dtypes.bits(source), wide.mantissa - short.mantissa
    short_sign = 1 << (short.exponent + short.mantissa)
    size = v.do("and", bits, (1 << (width - 1)) - 1)
    sign = v.do("and", v.do("lshr", bits, width - 1 - (short.exponent + short.mantissa)), short_sign)
    made = _rounded(v, size, drop, -((wide.bias - short.bias) << wide.mantissa))
    ty = value_type(source)
    last_place = 1 - short.bias - short.mantissa  # of the subnormals, as a power of two
    carrier = (wide.bias + wide.mantissa + last_place) << wide.mantissa
    of_size = w.emit(cast("bitcast", v.ty, size, ty))
    aligned = w.emit(binary("fadd", ty, of_size, _float(carrier, source)))
    subnormal = v.do("sub", w.emit(cast("bitcast", ty, aligned, v.ty)), carrier)
    least = (wide.bias + 1 - short.bias) << wide.mantissa
    made = v.choose(v.compare("ult", size, least), subnormal, made)
    made = v.do_min(made, short.beyond)
    is_nan = v.compare("ugt", size, wide.infinity)
    if short.special == "none":  # it has no nan: a zero of the other sign
        return v.do("xor", v.choose(is_nan, short_sign, made), sign)
    quiet: str | int = short.nan
    if short is SHORT_FLOATS["float16"]:
        payload = v.do("and", v.do("lshr", size, drop), (1 << short.mantissa) - 1)
        quiet = v.do("or", payload, quiet)
    made = v.choose(is_nan, quiet, made)
    if short.special == "fnuz":  # zero and nan have no sign
        unsigned = v.compare("eq", v.do("and", made, short_sign - 1), 0)
        sign = v.choose(unsigned, 0, sign)
    return v.do("or", made, sign)


def _float(bits: int, dtype: str) -> str:
    """A constant by its bits; LLVM spells those of float32 as those of the equal float64."""
    if dtypes.element(dtype) == "float32":
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return splat(f"0x{bits:016X}", dtype)


def widened(w: FunctionWriter, source: str, value: str) -> str:
    """The bits of a short float (integers of its width) as float32."""
    lanes, short, wide = dtypes.lanes(source), SHORT_FLOATS[dtypes.element(source)], _WIDE["float32"]
    v, single = _Ints(w, 32, lanes), dtypes.with_lanes("float32", lanes)
    ty = value_type(single)
    bits = w.emit(cast("zext", int_type(dtypes.bits(source), lanes), value, v.ty))
    moved = v.do("shl", bits, wide.mantissa - short.mantissa)
    if not short.mantissa:
        made = v.choose(v.compare("eq", bits, 0), 1 << (wide.mantissa - 1), moved)
        made = v.choose(v.compare("eq", bits, (1 << short.exponent) - 1), _QUIET, made)
        return w.emit(cast("bitcast", v.ty, made, ty))
    if wide.bias == short.bias:
        return w.emit(cast("bitcast", v.ty, moved, ty))
    short_sign = 1 << (short.exponent + short.mantissa)
    size = v.do("and", bits, short_sign - 1)
    sign = v.do("shl", v.do("and", bits, short_sign), 31 - short.exponent - short.mantissa)
    moved = v.do("shl", size, wide.mantissa - short.mantissa)
    made = v.do("add", moved, (wide.bias - short.bias) << wide.mantissa)
    whole = w.emit(cast("sitofp", v.ty, size, ty))
    last_place = _float((wide.bias + 1 - short.bias - short.mantissa) << wide.mantissa, single)
    subnormal = w.emit(cast("bitcast", ty, w.emit(binary("fmul", ty, whole, last_place)), v.ty))
    made = v.choose(v.compare("ult", size, 1 << short.mantissa), subnormal, made)
    if short.special == "ieee":
        special = v.do("or", moved, wide.infinity)
        made = v.choose(v.compare("uge", size, short.infinity), special, made)
        is_half = short is SHORT_FLOATS["float16"]
        quiet = v.do("or", special, 1 << (wide.mantissa - 1)) if is_half else _QUIET
        made = v.choose(v.compare("ugt", size, short.infinity), quiet, made)
    elif short.special == "fn":
        made = v.choose(v.compare("eq", size, short.nan), _QUIET, made)
    made = v.do("or", made, sign)
    if short.special == "fnuz":
        made = v.choose(v.compare("eq", bits, short.nan), _QUIET | 1 << 31, made)
    return w.emit(cast("bitcast", v.ty, made, ty))


def stepped(w: FunctionWriter, dtype: str, value: str, towards: str) -> str:
    """The bits of the next value of a short float towards another one (`nextafter` of C), of bits and bits.

    For formats that count on from their greatest value to infinity, or to nan.
    """
    lanes, short = dtypes.lanes(dtype), SHORT_FLOATS[dtypes.element(dtype)]
    v, sign = _Ints(w, dtypes.bits(dtype), lanes), 1 << (dtypes.bits(dtype) - 1)
    last = short.infinity if short.special == "ieee" else short.nan - 1

    def ordered(bits: str) -> tuple[str, str]:
        """The size, and a number that grows with the value."""
        size = v.do("and", bits, sign - 1)
        return size, v.choose(v.compare("slt", bits, 0), v.do("sub", v.const(0), size), size)

    (size, own), (other_size, other) = ordered(value), ordered(towards)
    up = v.compare("sgt", other, own)
    nearby = v.choose(up, v.do("add", own, 1), v.do("sub", own, 1))
    # Back to sign and size; from the least number towards zero the sign stays.
    negative = v.w.emit(binary("or", v.mask, v.compare("slt", nearby, 0), v.compare("slt", own, 0)))
    back = v.choose(v.compare("slt", nearby, 0), v.do("sub", v.const(0), nearby), nearby)
    made = v.choose(negative, v.do("or", back, -sign), back)
    made = v.choose(v.compare("eq", other, own), towards, made)
    made = v.choose(v.compare("ugt", other_size, last), towards, made)
    return v.choose(v.compare("ugt", size, last), value, made)
