"""Scalar and vector arithmetic in which every case is defined.

    integers   wrap; division and remainder by zero give 0, the least value over -1 wraps; shifts by the width or more
               give 0 (the sign for arithmetic right shifts)
    floats     IEEE; floor division and remainder as NumPy defines them; min and max give nan when either side is nan
    casts      those of `conversions`
    bfloat16   computed in float32 and rounded to nearest even after each operation; so are floats of 8 bits and less,
               and float16 on processors without instructions for it

Each function takes a FunctionWriter, a dtype (lanes included) and operand spellings, and gives the result's spelling.
"""

from __future__ import annotations

import math
import struct

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import binary, fcmp, fneg, icmp, select
from weft.codegen.backends.llvm.asm.types import constant, is_bits_float, splat, value_type
from weft.codegen.backends.llvm.math.conversions import Conversions, call_function, mangled
from weft.codegen.backends.llvm.math.short_floats import converted_by_instructions
from weft.errors import TargetError

__all__ = ["EXTREMES", "Arithmetic"]

_COMPARE_INT = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "truncmod": "frem"}
_INT_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}

EXTREMES = frozenset({"sse2", "fp-armv8", "neon"})
"""Processors with one of these have instructions for `llvm.maximum`; others would call fmaximum of C23 for it."""


def _is_number(operand: str) -> bool:
    """Whether an operand is a constant, or one in all lanes, and not nan."""
    text = operand.removeprefix("splat (").removesuffix(")").rpartition(" ")[2]
    if not text.startswith("0x") or text.startswith("0xH"):
        return False
    return not math.isnan(struct.unpack("<d", int(text, 16).to_bytes(8, "little"))[0])


class Arithmetic:
    """Emits arithmetic into a function.

    `flags` are the fast-math flags of the optimisation level; `strict` asks for the C library's functions in place of
    polynomials, `features` are those of the processor that may be used by name.
    """

    def __init__(
        self, writer: FunctionWriter, flags: str = "", strict: bool = False, features: frozenset[str] = frozenset()
    ) -> None:
        self.w = writer
        self.strict = strict
        self.features = features
        self.flags = flags
        conversions = Conversions(writer, converted_by_instructions(features))
        self.cast, self.in_float32 = conversions.cast, conversions.in_float32

    def call(self, name: str, dtype: str, *operands: tuple[str, str], flags: str = "") -> str:
        """Call an LLVM intrinsic or library function with (type, value) operands; `dtype` is of the result."""
        return call_function(self.w, name, dtype, operands, flags)

    def overloaded(self, name: str, dtype: str, *operands: str) -> str:
        """Call an LLVM intrinsic `llvm.<name>.<type>` whose operands have the result's type."""
        ty = value_type(dtype)
        return self.call(f"llvm.{name}.{mangled(dtype)}", dtype, *((ty, operand) for operand in operands))

    def select(self, condition: str, dtype: str, a: str, b: str) -> str:
        """condition ? a : b, lane by lane when the condition is a vector of `dtype`'s lanes."""
        ty = value_type(dtype)
        kind = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        return self.w.emit(select(kind, condition, ty, a, b))

    # Binary operations

    def binary(self, kind: str, dtype: str, a: str, b: str) -> str:
        """A binary operation on two values of `dtype`."""
        if kind in _COMPARE_INT:
            return self.compare(kind, dtype, a, b)
        if self.in_float32(dtype):
            wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
            wide_a, wide_b = self.cast(dtype, wide, a), self.cast(dtype, wide, b)
            if kind in ("min", "max"):  # one of the two as it is: nothing is rounded
                return self.select(self._comes_first(kind, wide, wide_a, wide_b), dtype, a, b)
            return self.cast(wide, dtype, self.binary(kind, wide, wide_a, wide_b))
        if dtypes.is_float(dtype):
            return self._float_binary(kind, dtype, a, b)
        return self._int_binary(kind, dtype, a, b)

    def compare(self, kind: str, dtype: str, a: str, b: str) -> str:
        """A comparison; gives bools."""
        if self.in_float32(dtype):
            wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
            return self.compare(kind, wide, self.cast(dtype, wide, a), self.cast(dtype, wide, b))
        ty = value_type(dtype)
        if dtypes.is_float(dtype):
            return self.w.emit(fcmp(_COMPARE_FLOAT[kind], ty, a, b))
        sign = "" if kind in ("eq", "ne") else "s" if dtypes.is_signed(dtype) else "u"
        return self.w.emit(icmp(f"{sign}{kind}", ty, a, b))

    def _float_binary(self, kind: str, dtype: str, a: str, b: str) -> str:
        ty = value_type(dtype)
        if kind in _FLOAT_BINARY:
            return self.w.emit(binary(_FLOAT_BINARY[kind], ty, a, b, self.flags))
        if kind in ("min", "max"):
            if self.features.isdisjoint(EXTREMES):
                return self.select(self._comes_first(kind, dtype, a, b), dtype, a, b)
            number = next((operand for operand in (b, a) if _is_number(operand)), None)
            if number is not None and self.w.constants_in_memory and "sse2" in self.features:
                # maxps gives its second operand where one is nan: LLVM does not see that a number in memory is none.
                other = a if number is b else b
                first = self.w.emit(fcmp("ogt" if kind == "max" else "olt", ty, number, other))
                return self.select(first, dtype, number, other)
            # Which zero is the greater one is left open (as NumPy does); to say so saves half of the instructions.
            name = f"llvm.{'minimum' if kind == 'min' else 'maximum'}.{mangled(dtype)}"
            return self.call(name, dtype, (ty, a), (ty, b), flags="nsz")
        if kind == "truncdiv":
            return self.overloaded("trunc", dtype, self.w.emit(binary("fdiv", ty, a, b)))
        if kind in ("floordiv", "floormod"):
            return self._float_floor(kind, dtype, a, b)
        raise TargetError(f"llvm: {kind} of {dtype} values", code="W741")

    def _comes_first(self, kind: str, dtype: str, a: str, b: str) -> str:
        """Whether a minimum or maximum is `a` and not `b`: where it is nan too, so that they are nan when either is."""
        ty = value_type(dtype)
        first = self.w.emit(fcmp("ogt" if kind == "max" else "olt", ty, a, b))
        lanes = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        return self.w.emit(binary("or", lanes, first, self.w.emit(fcmp("uno", ty, a, a))))

    def _float_floor(self, kind: str, dtype: str, a: str, b: str) -> str:
        """NumPy's floor_divide and remainder: from fmod, so that quotient and remainder agree."""
        ty, zero, w = value_type(dtype), constant(0.0, dtype), self.w
        mod = w.emit(binary("frem", ty, a, b))
        quotient = w.emit(binary("fdiv", ty, w.emit(binary("fsub", ty, a, mod)), b))
        b_negative, mod_negative = self.compare("lt", dtype, b, zero), self.compare("lt", dtype, mod, zero)
        lanes = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        differ = w.emit(binary("xor", lanes, b_negative, mod_negative))
        nonzero = w.emit(fcmp("one", ty, mod, zero))
        adjust = w.emit(binary("and", lanes, differ, nonzero))
        if kind == "floormod":
            adjusted = self.select(adjust, dtype, w.emit(binary("fadd", ty, mod, b)), mod)
            is_zero = w.emit(fcmp("oeq", ty, mod, zero))
            return self.select(is_zero, dtype, self.overloaded("copysign", dtype, zero, b), adjusted)
        quotient = self.select(adjust, dtype, w.emit(binary("fsub", ty, quotient, constant(1.0, dtype))), quotient)
        floor = self.overloaded("floor", dtype, quotient)
        high = w.emit(fcmp("ogt", ty, w.emit(binary("fsub", ty, quotient, floor)), constant(0.5, dtype)))
        floor = self.select(high, dtype, w.emit(binary("fadd", ty, floor, constant(1.0, dtype))), floor)
        plain = w.emit(binary("fdiv", ty, a, b))
        is_zero = w.emit(fcmp("oeq", ty, quotient, zero))
        floor = self.select(is_zero, dtype, self.overloaded("copysign", dtype, zero, plain), floor)
        by_zero = w.emit(fcmp("oeq", ty, b, zero))
        return self.select(by_zero, dtype, plain, floor)

    def _int_binary(self, kind: str, dtype: str, a: str, b: str) -> str:
        ty, w = value_type(dtype), self.w
        if kind in ("and", "or"):
            return w.emit(binary(kind, ty, a, b))
        if dtypes.is_bool(dtype) and kind in ("min", "max"):
            return w.emit(binary("or" if kind == "max" else "and", ty, a, b))
        if kind in _INT_BINARY:
            return w.emit(binary(_INT_BINARY[kind], ty, a, b))
        if kind in ("min", "max"):
            return self.overloaded(("s" if dtypes.is_signed(dtype) else "u") + kind, dtype, a, b)
        if kind in ("shift_left", "shift_right"):
            return self._shift(kind, dtype, a, b)
        if kind in ("floordiv", "truncdiv", "div", "floormod", "truncmod"):
            return self._divide(kind, dtype, a, b)
        raise TargetError(f"llvm: {kind} of {dtype} values", code="W741")

    def _shift(self, kind: str, dtype: str, a: str, b: str) -> str:
        ty, w, width = value_type(dtype), self.w, dtypes.bits(dtype)
        if b.isdigit() and int(b) < width:
            return w.emit(
                binary("shl" if kind == "shift_left" else "ashr" if dtypes.is_signed(dtype) else "lshr", ty, a, b)
            )
        wide = w.emit(icmp("uge", ty, b, splat(str(width), dtype)))
        if kind == "shift_right" and dtypes.is_signed(dtype):
            return w.emit(binary("ashr", ty, a, self.select(wide, dtype, splat(str(width - 1), dtype), b)))
        safe = self.select(wide, dtype, splat("0", dtype), b)
        shifted = w.emit(binary("shl" if kind == "shift_left" else "lshr", ty, a, safe))
        return self.select(wide, dtype, splat("0", dtype), shifted)

    def _divide(self, kind: str, dtype: str, a: str, b: str) -> str:
        """Division and remainder: by a divisor made safe, with the special cases put in afterwards."""
        ty, w = value_type(dtype), self.w
        quotient = not kind.endswith("mod")
        if b.isdigit() and int(b) > 0:
            return self._divide_by_positive(kind, dtype, a, b)
        zero, one = splat("0", dtype), splat("1", dtype)
        by_zero = w.emit(icmp("eq", ty, b, zero))
        if not dtypes.is_signed(dtype):
            result = w.emit(binary("udiv" if quotient else "urem", ty, a, self.select(by_zero, dtype, one, b)))
            return self.select(by_zero, dtype, zero, result)
        by_minus_one = w.emit(icmp("eq", ty, b, splat("-1", dtype)))
        lanes = value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        special = w.emit(binary("or", lanes, by_zero, by_minus_one))
        result = self._divide_signed(kind, dtype, a, self.select(special, dtype, one, b))
        if not quotient:
            return self.select(special, dtype, zero, result)
        result = self.select(by_minus_one, dtype, w.emit(binary("sub", ty, zero, a)), result)
        return self.select(by_zero, dtype, zero, result)

    def _divide_by_positive(self, kind: str, dtype: str, a: str, b: str) -> str:
        ty, w, divisor = value_type(dtype), self.w, int(b)
        if not dtypes.is_signed(dtype):
            return w.emit(binary("urem" if kind.endswith("mod") else "udiv", ty, a, b))
        if kind == "floordiv" and divisor & (divisor - 1) == 0:
            return w.emit(binary("ashr", ty, a, divisor.bit_length() - 1))
        if kind == "floormod" and divisor & (divisor - 1) == 0:
            return w.emit(binary("and", ty, a, divisor - 1))
        return self._divide_signed(kind, dtype, a, b)

    def _divide_signed(self, kind: str, dtype: str, a: str, b: str) -> str:
        """Signed division by a divisor that is neither 0 nor -1; floor forms correct the truncated result."""
        ty, w = value_type(dtype), self.w
        if kind in ("truncdiv", "div"):
            return w.emit(binary("sdiv", ty, a, b))
        remainder = w.emit(binary("srem", ty, a, b))
        if kind == "truncmod":
            return remainder
        zero, lanes = splat("0", dtype), value_type(dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        nonzero = w.emit(icmp("ne", ty, remainder, zero))
        differ = w.emit(icmp("slt", ty, w.emit(binary("xor", ty, remainder, b)), zero))
        adjust = w.emit(binary("and", lanes, nonzero, differ))
        if kind == "floormod":
            return self.select(adjust, dtype, w.emit(binary("add", ty, remainder, b)), remainder)
        quotient = w.emit(binary("sdiv", ty, a, b))
        return self.select(adjust, dtype, w.emit(binary("sub", ty, quotient, splat("1", dtype))), quotient)

    # Unary operations

    def unary(self, kind: str, dtype: str, a: str) -> str:
        """neg, not, bitwise_not."""
        ty = value_type(dtype)
        if kind == "neg":
            if is_bits_float(dtype) and dtypes.float_format(dtype).has_signed_zero:
                return self.w.emit(binary("xor", ty, a, splat(str(1 << (dtypes.bits(dtype) - 1)), dtype)))
            if is_bits_float(dtype):
                wide = dtypes.with_lanes("float32", dtypes.lanes(dtype))
                return self.cast(wide, dtype, self.unary(kind, wide, self.cast(dtype, wide, a)))
            if dtypes.is_float(dtype):
                return self.w.emit(fneg(ty, a))
            return self.w.emit(binary("sub", ty, splat("0", dtype), a))
        return self.w.emit(binary("xor", ty, a, splat("true" if dtypes.is_bool(dtype) else "-1", dtype)))
