"""float16 and bfloat16 to wider floats and back, in integer instructions that every processor has.

    narrowed   a float32 or float64 to the bits of the short float: rounded once, to nearest even
    widened    the bits of a float16 as a float32, which holds all of them
    stepped    the next value towards another one, on the bits

LLVM calls `__truncdfhf2`, `__truncsfhf2` or `__extendhfsf2` of the compiler's own library where a processor has no
instruction, and nothing loads that library. What is written here is branch-free, so that vectors stay vectors.

Normal numbers lose their low bits after half of the new last place was added to the bits. A number below the least
normal one is added to the power of two whose last place is that of the short subnormals, so the addition rounds it, and
its low bits are the result. A nan of float16 keeps the high bits of its payload and becomes quiet, as processors do it;
one of bfloat16 becomes the usual one, as `ml_dtypes` does it.
"""

from __future__ import annotations

import struct

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import binary, cast, fcmp, icmp, select
from weft.codegen.backends.llvm.asm.types import splat, value_type

__all__ = ["SHORT_FLOATS", "converted_by_instructions", "narrowed", "stepped", "widened"]


SHORT_FLOATS = {name: dtypes.float_format(name) for name in ("float16", "bfloat16")}
_WIDE = {name: dtypes.float_format(name) for name in ("float32", "float64")}
_SIGN, _BITS = 0x8000, 0x7FFF


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
        self.w, self.dtype = w, dtypes.with_lanes(f"int{width}", lanes)
        self.ty, self.mask = value_type(self.dtype), value_type(dtypes.with_lanes("bool", lanes))

    def const(self, value: int) -> str:
        """A constant in every lane."""
        return splat(str(value), self.dtype)

    def do(self, name: str, a: str, b: str | int) -> str:
        """The operation of LLVM with this name."""
        return self.w.emit(binary(name, self.ty, a, self.const(b) if isinstance(b, int) else b))

    def compare(self, predicate: str, a: str, b: str | int) -> str:
        """A comparison."""
        return self.w.emit(icmp(predicate, self.ty, a, self.const(b) if isinstance(b, int) else b))

    def choose(self, condition: str, a: str | int, b: str) -> str:
        """condition ? a : b."""
        first = self.const(a) if isinstance(a, int) else a
        return self.w.emit(select(self.mask, condition, self.ty, first, b))


def narrowed(w: FunctionWriter, source: str, target: str, value: str) -> str:
    """The bits, as 16-bit integers, of a float32 or float64 value as float16 or bfloat16."""
    lanes, wide, short = dtypes.lanes(source), _WIDE[dtypes.element(source)], SHORT_FLOATS[dtypes.element(target)]
    width = dtypes.bits(source)
    v = _Ints(w, width, lanes)
    bits = w.emit(cast("bitcast", value_type(source), value, v.ty))
    drop = wide.mantissa - short.mantissa
    if wide.bias == short.bias:  # the same exponents: every number rounds in the same way, the sign with it
        made = _same_range(v, bits, drop, source, value)
    else:
        made = _smaller_range(v, bits, wide, short, source)
    return w.emit(cast("trunc", v.ty, made, value_type(dtypes.with_lanes("int16", lanes))))


def _rounded(v: _Ints, bits: str, drop: int, offset: int = 0) -> str:
    """The bits without the `drop` lowest ones, to nearest even; `offset` is added to them before."""
    odd = v.do("and", v.do("lshr", bits, drop), 1)
    return v.do("lshr", v.do("add", v.do("add", bits, (1 << (drop - 1)) - 1 + offset), odd), drop)


def _same_range(v: _Ints, bits: str, drop: int, source: str, value: str) -> str:
    ty = value_type(source)
    is_nan = v.w.emit(fcmp("uno", ty, value, value))
    usual = v.do("and", v.do("or", v.do("lshr", bits, drop), _BITS), _SIGN | 0x7FC0)
    return v.choose(is_nan, usual, _rounded(v, bits, drop))


def _smaller_range(v: _Ints, bits: str, wide: dtypes.FloatFormat, short: dtypes.FloatFormat, source: str) -> str:
    w, width, drop = v.w, dtypes.bits(source), wide.mantissa - short.mantissa
    size = v.do("and", bits, (1 << (width - 1)) - 1)
    sign = v.do("and", v.do("lshr", bits, width - 16), _SIGN)
    made = _rounded(v, size, drop, -((wide.bias - short.bias) << wide.mantissa))
    ty = value_type(source)
    last_place = 1 - short.bias - short.mantissa  # of the subnormals, as a power of two
    carrier = (wide.bias + wide.mantissa + last_place) << wide.mantissa
    of_size = w.emit(cast("bitcast", v.ty, size, ty))
    aligned = w.emit(binary("fadd", ty, of_size, _float(carrier, source)))
    subnormal = v.do("sub", w.emit(cast("bitcast", ty, aligned, v.ty)), carrier)
    least = (wide.bias + 1 - short.bias) << wide.mantissa
    made = v.choose(v.compare("ult", size, least), subnormal, made)
    beyond = (wide.bias + 1 + short.bias) << wide.mantissa
    made = v.choose(v.compare("uge", size, beyond), short.infinity, made)
    quiet: str | int = short.infinity | 1 << (short.mantissa - 1)
    if short is SHORT_FLOATS["float16"]:
        payload = v.do("and", v.do("lshr", size, drop), (1 << short.mantissa) - 1)
        quiet = v.do("or", payload, quiet)
    made = v.choose(v.compare("ugt", size, wide.infinity), quiet, made)
    return v.do("or", made, sign)


def _float(bits: int, dtype: str) -> str:
    """A constant by its bits; LLVM spells those of float32 as those of the equal float64."""
    if dtypes.element(dtype) == "float32":
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return splat(f"0x{bits:016X}", dtype)


def widened(w: FunctionWriter, source: str, value: str) -> str:
    """The bits of float16 (16-bit integers) as float32."""
    lanes = dtypes.lanes(source)
    v, single = _Ints(w, 32, lanes), dtypes.with_lanes("float32", lanes)
    ty, short, wide = value_type(single), SHORT_FLOATS["float16"], _WIDE["float32"]
    bits = w.emit(cast("zext", value_type(dtypes.with_lanes("int16", lanes)), value, v.ty))
    size = v.do("and", bits, _BITS)
    sign = v.do("shl", v.do("and", bits, _SIGN), 16)
    moved = v.do("shl", size, wide.mantissa - short.mantissa)
    made = v.do("add", moved, (wide.bias - short.bias) << wide.mantissa)
    whole = w.emit(cast("sitofp", v.ty, size, ty))
    last_place = _float((wide.bias + 1 - short.bias - short.mantissa) << wide.mantissa, single)
    subnormal = w.emit(cast("bitcast", ty, w.emit(binary("fmul", ty, whole, last_place)), v.ty))
    made = v.choose(v.compare("ult", size, 1 << short.mantissa), subnormal, made)
    special = v.do("or", moved, wide.infinity)
    made = v.choose(v.compare("uge", size, short.infinity), special, made)
    quiet = v.do("or", special, 1 << (wide.mantissa - 1))
    made = v.choose(v.compare("ugt", size, short.infinity), quiet, made)
    return w.emit(cast("bitcast", v.ty, v.do("or", made, sign), ty))


def stepped(w: FunctionWriter, dtype: str, value: str, towards: str) -> str:
    """The bits of the next value of a short float towards another one (`nextafter` of C), of bits and bits."""
    lanes, infinity = dtypes.lanes(dtype), SHORT_FLOATS[dtypes.element(dtype)].infinity
    v = _Ints(w, 16, lanes)

    def ordered(bits: str) -> tuple[str, str]:
        """The size, and a number that grows with the value."""
        size = v.do("and", bits, _BITS)
        return size, v.choose(v.compare("slt", bits, 0), v.do("sub", v.const(0), size), size)

    (size, own), (other_size, other) = ordered(value), ordered(towards)
    up = v.compare("sgt", other, own)
    nearby = v.choose(up, v.do("add", own, 1), v.do("sub", own, 1))
    # Back to sign and size; from the least number towards zero the sign stays.
    negative = v.w.emit(binary("or", v.mask, v.compare("slt", nearby, 0), v.compare("slt", own, 0)))
    back = v.choose(v.compare("slt", nearby, 0), v.do("sub", v.const(0), nearby), nearby)
    made = v.choose(negative, v.do("or", back, -_SIGN), back)
    made = v.choose(v.compare("eq", other, own), towards, made)
    made = v.choose(v.compare("ugt", other_size, infinity), towards, made)
    return v.choose(v.compare("ugt", size, infinity), value, made)
