"""Casts between dtypes, in which every case is defined.

float to integer saturates, nan gives 0; to bool is `!= 0`; to a shorter float rounds once; what is held as bits or
has no instructions of the processor (bfloat16, floats of 8 bits and less, float16 on some) goes through float32
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import binary, call, cast, fcmp, icmp, select
from weft.codegen.backends.llvm.asm.types import constant, is_bits_float, splat, value_type
from weft.codegen.backends.llvm.math.short_floats import SHORT_FLOATS, narrowed, widened

__all__ = ["Conversions", "call_function", "mangled"]


def call_function(
    w: FunctionWriter, name: str, dtype: str, operands: Sequence[tuple[str, str]], flags: str = ""
) -> str:
    """Call an LLVM intrinsic or library function with (type, value) operands; `dtype` is of the result."""
    result = value_type(dtype)
    w.module.declare(name, result, tuple([ty for ty, _ in operands]))
    return w.emit(call(result, f"@{name}", operands, flags))


@functools.cache
def mangled(dtype: str) -> str:
    """The type suffix of an LLVM intrinsic's name."""
    lanes, element = dtypes.lanes(dtype), dtypes.element(dtype)
    scalar = f"f{dtypes.bits(element)}" if dtypes.is_float(element) else f"i{dtypes.bits(element)}"
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


class Conversions:
    """Emits casts; `halves` are the floats that the processor converts from and to float16."""

    def __init__(self, w: FunctionWriter, halves: frozenset[str]) -> None:
        self.w = w
        self._halves = halves

    def in_float32(self, dtype: str) -> bool:
        """Whether arithmetic on a dtype is done in float32: the processor has none of its own."""
        return is_bits_float(dtype) or (dtypes.element(dtype) == "float16" and "float32" not in self._halves)

    def cast(self, source: str, target: str, value: str) -> str:
        """A value of dtype `source` converted to `target` (same lanes)."""
        if source == target:
            return value
        a, b = dtypes.element(source), dtypes.element(target)
        from_type, to_type = value_type(source), value_type(target)
        if self.in_float32(a) or (a == "float16" and dtypes.is_integer(b)):  # LLVM turns half nans into integers
            wide = dtypes.with_lanes("float32", dtypes.lanes(source))
            return self.cast(wide, target, self._expand(source, wide, value))
        if self.in_float32(b) or (b in SHORT_FLOATS and a == "float64" and a not in self._halves):
            return self._contract(source, target, value)
        if dtypes.is_bool(b):
            return self._to_bool(source, value)
        if dtypes.is_float(a) and dtypes.is_float(b):
            return self.w.emit(
                cast("fpext" if dtypes.bits(b) > dtypes.bits(a) else "fptrunc", from_type, value, to_type)
            )
        if dtypes.is_float(b):
            return self.w.emit(cast("sitofp" if dtypes.is_signed(a) else "uitofp", from_type, value, to_type))
        if dtypes.is_float(a) and dtypes.lanes(target) > 1 and not dtypes.is_scalable(target):
            return self._saturated(source, target, value)
        if dtypes.is_float(a):
            name = f"llvm.fpto{'si' if dtypes.is_signed(b) else 'ui'}.sat.{mangled(target)}.{mangled(source)}"
            return call_function(self.w, name, target, [(from_type, value)])
        return self._between_integers(a, b, from_type, to_type, value)

    def _saturated(self, source: str, target: str, value: str) -> str:
        """A vector of floats as integers; LLVM's own saturating conversion goes lane by lane on x86."""
        w, lanes, number = self.w, dtypes.lanes(source), dtypes.element(target)
        ty, low, high = value_type(source), int(dtypes.min_value(target)), int(dtypes.max_value(target))
        beyond = w.emit(fcmp("oge", ty, value, constant(float(high + 1), source)))
        below = w.emit(fcmp("olt", ty, value, constant(float(low), source)))
        mask = value_type(dtypes.with_lanes("bool", lanes))
        is_nan = w.emit(fcmp("uno", ty, value, value))
        outside = w.emit(binary("or", mask, is_nan, w.emit(binary("or", mask, beyond, below))))
        inside = w.emit(select(mask, outside, ty, "zeroinitializer", value))
        wide = dtypes.with_lanes("int32" if dtypes.bits(number) < 32 else number, lanes)
        kind = value_type(wide)
        made = w.emit(cast("fptosi" if dtypes.is_signed(wide) else "fptoui", ty, inside, kind))
        for condition, limit in ((beyond, high), (below, low)):
            made = w.emit(select(mask, condition, kind, splat(str(limit), wide), made))
        return self._between_integers(dtypes.element(wide), number, kind, value_type(target), made)

    def _between_integers(self, a: str, b: str, from_type: str, to_type: str, value: str) -> str:
        if "handle" in (a, b):
            if a == b:
                return value
            return self.w.emit(cast("ptrtoint" if a == "handle" else "inttoptr", from_type, value, to_type))
        if dtypes.bits(a) == dtypes.bits(b):
            return value
        if dtypes.bits(a) > dtypes.bits(b):
            return self.w.emit(cast("trunc", from_type, value, to_type))
        if value.lstrip("-").isdigit() and (dtypes.is_signed(a) or int(value) >= 0):
            return value
        return self.w.emit(cast("sext" if dtypes.is_signed(a) else "zext", from_type, value, to_type))

    def _to_bool(self, source: str, value: str) -> str:
        ty = value_type(source)
        if dtypes.is_float(source):
            return self.w.emit(fcmp("une", ty, value, constant(0.0, source)))
        return self.w.emit(icmp("ne", ty, value, splat("null" if source == "handle" else "0", source)))

    def _expand(self, source: str, wide: str, value: str) -> str:
        """A short float as float32."""
        lanes, element = dtypes.lanes(source), dtypes.element(source)
        if element == "float16" and "float32" in self._halves:
            return self.w.emit(cast("fpext", value_type(source), value, value_type(wide)))
        if element == "float16":
            short = value_type(dtypes.with_lanes("int16", lanes))
            value = self.w.emit(cast("bitcast", value_type(source), value, short))
        return widened(self.w, source, value)

    def _contract(self, source: str, target: str, value: str) -> str:
        """Any number as a short float, rounded once to nearest even."""
        lanes, element, short = dtypes.lanes(source), dtypes.element(source), dtypes.element(target)
        if element not in ("float32", "float64"):
            # float32 holds short floats, short integers, and whatever integer of these is not beyond the greatest.
            exact = short != "bfloat16" or dtypes.bits(element) <= 16
            wide = dtypes.with_lanes("float32" if exact else "float64", lanes)
            if not exact and dtypes.bits(element) == 64:
                value = self._marked(source, value)
            return self._contract(wide, target, self.cast(source, wide, value))
        bits = narrowed(self.w, source, target, value)
        if short != "float16":
            return bits
        return self.w.emit(cast("bitcast", value_type(dtypes.with_lanes("int16", lanes)), bits, value_type(target)))

    def _marked(self, source: str, value: str) -> str:
        """A number of 64 bits, with the twelfth bit set where a lower one was, which float64 lacks."""
        w, ty, lanes = self.w, value_type(source), dtypes.lanes(source)

        def const(number: int) -> str:
            return splat(str(number), source)

        low = w.emit(binary("and", ty, value, const(0x7FF)))
        some = w.emit(icmp("ne", ty, low, const(0)))
        mask = value_type(dtypes.with_lanes("bool", lanes))
        mark = w.emit(binary("shl", ty, w.emit(cast("zext", mask, some, ty)), const(11)))
        marked = w.emit(binary("or", ty, w.emit(binary("xor", ty, value, low)), mark))
        # What float64 holds is -2**53 to 2**53: as an unsigned number at most 2**54 after 2**53 was added.
        offset = w.emit(binary("add", ty, value, const(1 << 53))) if dtypes.is_signed(source) else value
        most = 1 << (54 if dtypes.is_signed(source) else 53)
        return w.emit(select(mask, w.emit(icmp("ugt", ty, offset, const(most))), ty, marked, value))
