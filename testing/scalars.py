"""Random tensor-level expressions with a value for every input: no division by zero, no overflowing conversion.

An expression is *exact* when rounding cannot change it much: loads of inputs, integers, truth values. Only exact values
are compared, rounded to integers or used as indices, so that two correct evaluations with different rounding (a
reference and machine code) agree up to small errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import dtypes
from weft.ir.kernel.prim import binary, cast, const, intrinsic, unary
from weft.ir.tensor import Binary, Cast, FloatImm, IntImm, Let, PrimCall, PrimExpr, PrimVar, Select
from weft.transform.infra.generators.choices import Choices

__all__ = ["Atom", "Scalars"]


class Atom:
    """A value that expressions are made of; `make` builds a new occurrence."""

    __slots__ = ("dtype", "exact", "make")

    def __init__(self, dtype: str, make: Callable[[], PrimExpr], exact: bool = True) -> None:
        self.dtype = dtype
        self.make = make
        self.exact = exact


_SMOOTH = ("tanh", "sigmoid", "sin", "cos", "erf", "abs", "atan", "asinh")
_STEPS = ("floor", "ceil", "trunc", "round")


class Scalars:
    """Expressions over atoms."""

    def __init__(self, choices: Choices, atoms: Sequence[Atom]) -> None:
        self.choices = choices
        self.atoms = list(atoms)

    def value(self, dtype: str, depth: int = 3) -> PrimExpr:
        """An expression of a dtype."""
        if depth <= 0 or self.choices.flip(15):
            return self.leaf(dtype)
        if dtypes.is_bool(dtype):
            return self._truth(depth)
        shared = self._shared(dtype, depth)
        if shared is not None:
            return shared
        return self._float(dtype, depth) if dtypes.is_float(dtype) else self._integer(dtype, depth)

    def leaf(self, dtype: str, exact: bool = False) -> PrimExpr:
        """An atom of the dtype, or a converted one, or a constant."""
        fitting = [atom for atom in self.atoms if atom.dtype == dtype and (atom.exact or not exact)]
        if fitting and self.choices.flip(75):
            return self.choices.pick(fitting).make()
        if self.choices.flip(60):
            converted = self._converted(dtype, exact)
            if converted is not None:
                return converted
        return self.number(dtype)

    def _converted(self, dtype: str, exact: bool) -> PrimExpr | None:
        """An atom of another dtype in this one; a float becomes an integer only when it is exact (and so small)."""
        narrow = not dtypes.is_float(dtype)
        fitting = [
            atom
            for atom in self.atoms
            if atom.dtype != dtype and (atom.exact or not (exact or (narrow and dtypes.is_float(atom.dtype))))
        ]
        if not fitting:
            return None
        atom = self.choices.pick(fitting)
        value = atom.make()
        if dtypes.is_bool(dtype):
            return binary("ne", value, const(0, atom.dtype)) if not dtypes.is_float(atom.dtype) else None
        if dtypes.is_float(atom.dtype) and dtypes.is_unsigned(dtype):
            value = intrinsic("abs", value)
        return Cast(dtype, value)

    def number(self, dtype: str) -> PrimExpr:
        """A small constant."""
        if dtypes.is_float(dtype):
            return FloatImm(self.choices.pick((1.0, 0.5, -1.0, 2.0, 0.0, -0.25, 1.5)), dtype)
        if dtypes.is_bool(dtype):
            return IntImm(int(self.choices.flip()), "bool")
        low = 0 if dtypes.is_unsigned(dtype) else -3
        return IntImm(self.choices.integer(low, 5), dtype)

    def _shared(self, dtype: str, depth: int) -> PrimExpr | None:
        """Forms that every dtype has; None for the forms of its own."""
        kind = self.choices.integer(0, 19)
        if kind == 19:
            variable = PrimVar(self.choices.name(), dtype)
            self.atoms.append(Atom(dtype, lambda: variable, exact=False))
            body = self.value(dtype, depth - 1)
            self.atoms.pop()
            return Let(variable, self.value(dtype, depth - 1), body)
        if kind == 18:
            return Select(self._truth(depth - 1), self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        if kind == 17:
            parts = self._truth(depth - 1), self.value(dtype, depth - 1), self.value(dtype, depth - 1)
            return PrimCall("if_then_else", parts, dtype)
        if kind >= 15:
            return binary(self.choices.pick(("max", "min")), self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        if kind >= 7:
            arithmetic = self.choices.pick(("add", "sub", "mul"))
            return Binary(arithmetic, self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        return None

    def _float(self, dtype: str, depth: int) -> PrimExpr:
        kind = self.choices.integer(0, 7)
        if kind == 0:
            return intrinsic(self.choices.pick(_SMOOTH), self.value(dtype, depth - 1))
        if kind == 1:
            return intrinsic(self.choices.pick(_STEPS), self.leaf(dtype, exact=True))
        if kind == 2:
            return unary("neg", self.value(dtype, depth - 1))
        if kind == 3:
            divisor = FloatImm(self.choices.pick((2.0, 4.0, -3.0, 0.5)), dtype)
            return binary("div", self.value(dtype, depth - 1), divisor)
        if kind == 4:
            positive = binary("add", intrinsic("abs", self.value(dtype, depth - 1)), FloatImm(1.0, dtype))
            return intrinsic(self.choices.pick(("sqrt", "log", "rsqrt", "log2", "log1p", "log10")), positive)
        if kind == 5:
            bounded = intrinsic("tanh", self.value(dtype, depth - 1))
            return intrinsic(self.choices.pick(("exp", "exp2", "sinh", "cosh", "tan")), bounded)
        if kind == 6:
            base = binary("add", intrinsic("sigmoid", self.value(dtype, depth - 1)), FloatImm(0.5, dtype))
            return intrinsic("pow", base, FloatImm(self.choices.pick((2.0, 0.5, 3.0, -1.0)), dtype))
        other = self.choices.pick(("float32", "float64", "int32"))
        return cast(dtype, self.value(other, depth - 1)) if other != dtype else self.leaf(dtype)

    def _integer(self, dtype: str, depth: int) -> PrimExpr:
        kind = self.choices.integer(0, 5)
        if kind == 0:
            operation = self.choices.pick(("floordiv", "floormod", "truncdiv", "truncmod"))
            return Binary(operation, self.value(dtype, depth - 1), IntImm(self.choices.integer(1, 5), dtype))
        if kind == 1:
            operation = self.choices.pick(("bitwise_and", "bitwise_or", "bitwise_xor"))
            return Binary(operation, self.value(dtype, depth - 1), self.value(dtype, depth - 1))
        if kind == 2:
            operation = self.choices.pick(("shift_right", "shift_left"))
            return Binary(operation, self.value(dtype, depth - 1), IntImm(self.choices.integer(0, 3), dtype))
        if kind == 3:
            return unary("bitwise_not", self.value(dtype, depth - 1))
        if kind == 4 and dtypes.is_signed(dtype):
            value = self.value(dtype, depth - 1)
            return unary("neg", value) if self.choices.flip() else intrinsic("abs", value)
        other = self.choices.pick(("int32", "int64", "uint8", "bool"))
        return Cast(dtype, self.value(other, depth - 1)) if other != dtype else self.leaf(dtype)

    def _truth(self, depth: int) -> PrimExpr:
        kind = self.choices.integer(0, 5)
        if depth <= 0 or kind < 3:
            dtype = self.choices.pick([atom.dtype for atom in self.atoms] or ["int32"])
            comparison = self.choices.pick(("lt", "le", "gt", "ge", "eq", "ne"))
            if dtypes.is_bool(dtype):
                return self.leaf("bool")
            if dtypes.is_float(dtype):
                return binary(comparison, self.leaf(dtype, exact=True), self.number(dtype))
            return binary(comparison, self.value(dtype, depth - 1), self.number(dtype))
        if kind == 3:
            return unary("not", self._truth(depth - 1))
        return binary(self.choices.pick(("and", "or")), self._truth(depth - 1), self._truth(depth - 1))
