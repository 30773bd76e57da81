"""Lanes: arithmetic on values of one dtype, vectors or scalars; `polynomials` and `vector_math` are written with it.

Operations named `add`, `sub` and `mul` may be joined to fused ones; `do` rounds after each one, which sums without
errors depend on.

Source: Estrin, Organization of computer systems: the fixed plus variable structure computer, 1960.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import binary, cast, fcmp, fneg
from weft.codegen.backends.llvm.asm.types import constant, splat, value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic

__all__ = ["Lanes"]


class Lanes:
    """Arithmetic on values of one dtype."""

    def __init__(self, arith: Arithmetic, dtype: str) -> None:
        self.arith, self.w, self.dtype, self.ty = arith, arith.w, dtype, value_type(dtype)
        self.ints = dtypes.with_lanes(f"int{dtypes.bits(dtypes.element(dtype))}", dtypes.lanes(dtype))
        self.int_type = value_type(self.ints)

    def const(self, value: float) -> str:
        """A constant in every lane."""
        return constant(value, self.dtype)

    def int(self, value: int) -> str:
        """An integer of the same width in every lane."""
        return splat(str(value), self.ints)

    def do(self, name: str, a: str, b: str) -> str:
        """The operation of LLVM with this name."""
        return self.w.emit(binary(name, self.ty, a, b))

    def add(self, a: str, b: str) -> str:
        """a + b."""
        return self.w.emit(binary("fadd", self.ty, a, b, "contract"))

    def sub(self, a: str, b: str) -> str:
        """a - b."""
        return self.w.emit(binary("fsub", self.ty, a, b, "contract"))

    def mul(self, a: str, b: str) -> str:
        """a * b."""
        return self.w.emit(binary("fmul", self.ty, a, b, "contract"))

    def neg(self, a: str) -> str:
        """-a."""
        return self.w.emit(fneg(self.ty, a))

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c, rounded once on every processor."""
        return self.arith.overloaded("fma", self.dtype, a, b, c)

    def on_bits(self, name: str, a: str, b: str) -> str:
        """The operation of LLVM with this name on integers."""
        return self.w.emit(binary(name, self.int_type, a, b))

    def bits(self, a: str) -> str:
        """The bits of a as integers."""
        return self.w.emit(cast("bitcast", self.ty, a, self.int_type))

    def from_bits(self, a: str) -> str:
        """The values with these bits."""
        return self.w.emit(cast("bitcast", self.int_type, a, self.ty))

    def test(self, kind: str, a: str, b: str) -> str:
        """A comparison."""
        return self.w.emit(fcmp(kind, self.ty, a, b))

    def select(self, condition: str, a: str, b: str) -> str:
        """a where the condition holds, else b."""
        return self.arith.select(condition, self.dtype, a, b)

    def both(self, name: str, a: str, b: str) -> str:
        """An operation on truth values."""
        return self.w.emit(binary(name, value_type(dtypes.with_lanes("bool", dtypes.lanes(self.dtype))), a, b))

    def size(self, a: str) -> str:
        """The absolute value."""
        return self.arith.overloaded("fabs", self.dtype, a)

    def with_sign(self, a: str, sign: str) -> str:
        """a with the sign of another value."""
        return self.arith.overloaded("copysign", self.dtype, a, sign)

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """The polynomial with coefficients from the constant one on: (a + b x) + (c + d x) x**2 + ...

        Summed in pairs (Estrin), so that few operations wait for each other.
        """
        parts = [self.const(value) for value in coefficients]

        def joined(low: str, high: str) -> str:
            return self.add(self.mul(high, x), low)

        while len(parts) > 1:
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [joined(low, high) for low, high in zip(parts[::2], parts[1::2], strict=False)]
            if parts[1:] or odd:
                x = self.mul(x, x)
            if odd:
                parts[-1] = joined(parts[-1], odd[0])
        return parts[0]
