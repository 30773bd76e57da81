"""Tensor-level expressions as dimensions: arithmetic where it means integers, atoms for everything else.

The dimension of an expression is its value modulo 2**64 where code computes it in 64 bits, and its value where it is
proved to fit: an index whose dimension is proved to lie in a buffer is the one that the code computes. One expression
means one dimension wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import Node, rewrite, structural_equal, structural_hash, substitute, walk
from weft.ir.dim import Dim, floordiv, floormod, free_symbols, maximum, minimum
from weft.ir.tensor import (
    Binary,
    BufferLoad,
    Cast,
    Extent,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    Unary,
)
from weft.transform.analysis.indices.conditions import Conditions
from weft.transform.analysis.indices.exactness import LARGEST, is_reinterpreted, limits_of
from weft.transform.analysis.indices.facts import Fact, Facts, negated, reads_memory
from weft.transform.analysis.indices.prover import Atom, Prover
from weft.transform.analysis.indices.symbols import INDEX, Symbols

__all__ = ["Translation", "dtype_facts", "label"]


class Translation:
    """The values of one function as dimensions."""

    def __init__(self) -> None:
        self.symbols = Symbols()
        self.conditions = Conditions(self)
        self.prover = Prover(self.conditions)
        self.values: dict[PrimVar, Dim] = {}
        self.lets: dict[PrimVar, PrimExpr] = {}  # what variables of expressions stand for
        self.binds: dict[PrimVar, PrimExpr] = {}  # truth values bound by statements
        self.atoms: dict[tuple[int, bool], list[Atom]] = {}
        self._closed: dict[tuple[int, int], tuple[PrimExpr, PrimExpr, int]] = {}
        self._opaques: dict[tuple[int, bool], Dim] = {}

    def definition(self, variable: PrimVar) -> PrimExpr | None:
        """What a truth value stands for."""
        return self.lets.get(variable, self.binds.get(variable))

    def proves(self, dim: Dim, facts: Facts) -> bool:
        """Whether a dimension is never negative where the facts hold."""
        return self.prover.proves(dim, facts)

    def is_volatile(self, dim: Dim) -> bool:
        """Whether a dimension depends on memory."""
        return self.symbols.is_volatile(dim)

    def dim(self, expr: Extent, facts: Facts) -> Dim:
        """The dimension that an integer expression means here."""
        if isinstance(expr, int):
            return expr
        if isinstance(expr, IntImm):
            return expr.value
        try:
            found = self._variable(expr, facts) if isinstance(expr, PrimVar) else self._compound(expr, facts)
        except ShapeError:  # over the limits of dimensions
            found = None
        return self._opaque(expr, facts) if found is None else found

    def _variable(self, expr: PrimVar, facts: Facts) -> Dim | None:
        if expr in self.values:
            return self.values[expr]
        value = self.lets.get(expr)
        if value is None or not dtypes.is_integer(value.dtype):
            return None
        dim = self.dim(value, facts)
        return dim if self.fits(dim, expr.dtype, facts) else None

    def _compound(self, expr: PrimExpr, facts: Facts) -> Dim | None:
        if not dtypes.is_integer(expr.dtype) or dtypes.lanes(expr.dtype) > 1:
            return None
        if isinstance(expr, Cast) and dtypes.is_integer(expr.value.dtype):
            inner = self.dim(expr.value, facts)
            return inner if _covers(expr.dtype, expr.value.dtype) or self.fits(inner, expr.dtype, facts) else None
        if isinstance(expr, Unary) and expr.kind == "neg":
            value = -self.dim(expr.a, facts)
            return value if self.fits(value, expr.dtype, facts) else None
        if isinstance(expr, Binary):
            found = self._binary(expr, facts)
            if found is not None and (dtypes.is_signed(expr.dtype) or self.fits(found, expr.dtype, facts)):
                return found
        return None

    def _binary(self, expr: Binary, facts: Facts) -> Dim | None:
        kind = expr.kind
        if kind not in _ARITHMETIC:
            return None
        a, b = self.dim(expr.a, facts), self.dim(expr.b, facts)
        if kind in ("add", "sub", "mul"):
            return a + b if kind == "add" else a - b if kind == "sub" else a * b
        dtype = expr.dtype if is_reinterpreted(expr.dtype) else INDEX
        if not self.is_exact(a, facts, dtype) or not self.is_exact(b, facts, dtype):
            return None
        mixed = self.symbols.is_signed(a) or self.symbols.is_signed(b)
        if kind in ("min", "max"):
            # By what always holds alone: one expression means one dimension wherever it stands.
            if self.proves(b - a, Facts()):
                return a if kind == "min" else b
            if self.proves(a - b, Facts()):
                return b if kind == "min" else a
            return None if mixed else (minimum if kind == "min" else maximum)(a, b)
        if not self.proves(b - 1, facts) or (kind.startswith("trunc") and not self.proves(a, facts)):
            return None
        if mixed and self.proves(a, facts) and self.proves(b - 1 - a, facts):
            return 0 if kind.endswith("div") else a
        return None if mixed else (floordiv if kind.endswith("div") else floormod)(a, b)

    def fits(self, dim: Dim, dtype: str, facts: Facts) -> bool:
        """Whether a value is one of a dtype; 64 bits count as enough, since they keep it modulo 2**64."""
        if not dtypes.is_integer(dtype):
            return False
        return dtype == INDEX or self._lies_in(dim, int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype)), facts)

    def is_exact(self, dim: Dim, facts: Facts, dtype: str = INDEX) -> bool:
        """Whether arithmetic in 64 bits, or in a narrower dtype, has just this value."""
        return self._lies_in(dim, *limits_of(dtype), facts)

    def _lies_in(self, dim: Dim, low: int, high: int, facts: Facts) -> bool:
        if isinstance(dim, int):
            return low <= dim <= high
        below, above = self.symbols.interval(dim)
        if low <= below and above <= high:
            return True
        least = max(low, -LARGEST)  # a constant of a dimension is a number of 64 bits, and so is its opposite
        try:
            return (low <= below or self._is_bounded(dim - least, facts)) and (
                above <= high or self._is_bounded(high - dim, facts)
            )
        except ShapeError:  # over the limits of dimensions
            return False

    def _is_bounded(self, dim: Dim, facts: Facts) -> bool:
        """Whether a dimension is not negative, by what is known of the tensors that exist as well."""
        for fact in (*self.symbols.exactness.extents, *facts.facts):
            if self.symbols.interval(dim - fact.nonnegative)[0] >= 0:
                return True
        return self.proves(dim, facts.with_facts(*self.symbols.exactness.extents))

    def compared(self, expr: PrimExpr, facts: Facts) -> Dim:
        """The value that a comparison sees: one of its dtype, which is an atom where arithmetic may have wrapped."""
        dim = self.dim(expr, facts)
        if self.is_exact(dim, facts, expr.dtype):
            return dim
        if is_reinterpreted(expr.dtype):
            raise ShapeError(f"{expr.dtype} values are compared that may be 2**63 and more", code="W281")
        return self._opaque(expr, facts)

    def _opaque(self, expr: PrimExpr, facts: Facts) -> Dim:
        expr, key = self._closed_with_hash(expr)
        divides = isinstance(expr, Binary) and expr.kind in ("floordiv", "floormod") and dtypes.is_integer(expr.dtype)
        divides = divides and not is_reinterpreted(expr.dtype)
        positive = divides and self.proves(self.dim(expr.b, facts) - 1, facts)  # type: ignore[union-attr]
        found = self._opaques.get((id(expr), positive))
        if found is None:
            found = self._opaques[id(expr), positive] = self._atom(expr, key, positive, facts).value
        return found

    def _atom(self, expr: PrimExpr, key: int, positive: bool, facts: Facts) -> Atom:
        """The atom of an expression, the same for all that are equal; `positive` where it divides by what is."""
        group = self.atoms.setdefault((key, positive), [])
        for atom in group:
            if structural_equal(atom.expr, expr):
                return atom
        value, name = self.symbols.difference(expr, label(expr))
        if reads_memory(expr):
            self.symbols.volatile |= set(free_symbols(value)) | set(free_symbols(self.symbols.spelled(value)))
        known = [*dtype_facts(expr.dtype, value)]
        quotient: tuple[Dim, Dim] | None = None
        if positive and isinstance(expr, Binary):
            a, b = self.dim(expr.a, facts), self.dim(expr.b, facts)
            quotient = (a, b) if expr.kind == "floordiv" else None
            left = a - b * value if expr.kind == "floordiv" else value
            known += [Fact(left), Fact(b - 1 - left)]
        atom = Atom(expr, value, tuple(known), tuple(self._cases(expr, facts)), quotient, len(self.prover.atom_of))
        group.append(atom)
        self.prover.atom_of[name] = atom
        return atom

    def _cases(self, expr: PrimExpr, facts: Facts) -> Iterator[tuple[PrimExpr | Fact, Dim]]:
        """The values of a choice, each with what holds when it is taken."""
        if dtypes.lanes(expr.dtype) > 1 or not dtypes.is_integer(expr.dtype) or is_reinterpreted(expr.dtype):
            return
        if isinstance(expr, Binary) and expr.kind in ("min", "max"):
            a, b = self.dim(expr.a, facts), self.dim(expr.b, facts)
            more = b - a if expr.kind == "min" else a - b
            yield Fact(more, volatile=self.is_volatile(more)), a
            yield Fact(-more, volatile=self.is_volatile(more)), b
            return
        if isinstance(expr, Select):
            condition, arms = expr.condition, (expr.true_value, expr.false_value)
        elif isinstance(expr, PrimCall) and expr.op == "if_then_else":
            condition, *arms = [arg for arg in expr.args if isinstance(arg, PrimExpr)]
        else:
            return
        chosen = [(condition, arms[0]), (negated(condition), arms[1])]
        taken = [(test, self.dim(arm, self.conditions.assume(test, facts))) for test, arm in chosen]
        if all(self.fits(value, expr.dtype, self.conditions.assume(test, facts)) for test, value in taken):
            yield from taken

    def closed(self, expr: PrimExpr) -> PrimExpr:
        """An expression without variables that only expressions bind: one that may stand in several places."""
        return self._closed_with_hash(expr)[0]

    def _closed_with_hash(self, expr: PrimExpr) -> tuple[PrimExpr, int]:
        """It and its structural hash, found once: an expression is asked about wherever it stands in another one."""
        key = (id(expr), len(self.lets))  # what a variable stands for does not change
        if key not in self._closed:
            closed = self._close(expr)
            self._closed[key] = (expr, closed, structural_hash(closed))  # which are kept, and with them their ids
        return self._closed[key][1:]

    def _close(self, expr: PrimExpr) -> PrimExpr:
        expr = rewrite(expr, _opened)
        inside = walk(expr) if self.lets else ()
        used = {part for part in inside if isinstance(part, PrimVar) and part in self.lets}
        return self._close(substitute(expr, {var: self.lets[var] for var in used})) if used else expr


_ARITHMETIC = {"add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod"}


def dtype_facts(dtype: str, value: Dim) -> tuple[Fact, ...]:
    """What a dtype says of its values."""
    if dtypes.is_bool(dtype):
        return Fact(value), Fact(1 - value)
    if not dtypes.is_integer(dtype) or dtypes.element(dtype) == INDEX or is_reinterpreted(dtype):
        return ()
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return (Fact(value - low), Fact(high - value)) if dtypes.bits(dtype) < 64 else (Fact(value - low),)


def _covers(wide: str, narrow: str) -> bool:
    low, high = int(dtypes.min_value(narrow)), int(dtypes.max_value(narrow))
    return dtypes.can_hold(wide, low) and dtypes.can_hold(wide, high)


def _opened(node: Node) -> PrimExpr | None:
    return substitute(node.body, {node.var: node.value}) if isinstance(node, Let) else None


def label(expr: PrimExpr) -> str:
    """What an opaque value is called."""
    while isinstance(expr, Cast):
        expr = expr.value
    return expr.buffer.name if isinstance(expr, BufferLoad) else "value"
