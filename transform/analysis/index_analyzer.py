"""What is known about index expressions: tensor-level arithmetic as dimensions, and facts under which it is decided.

    IndexAnalyzer   the variables of one function as dimensions, and the way back to expressions
    Facts           what holds at a point of the code (`facts`)
    Exactness       which values arithmetic in 64 bits has exactly: the rule of wrapping (`exactness`)

The symbols of a dimension are nonnegative, variables are not: a variable that can be negative is the difference of two
symbols, or its start plus a symbol, and stands only in sums and products. Everything else that involves such variables,
and what dimensions cannot say (values read from memory, calls), is an atom: a symbol of its own, of which a few things
are known. Atoms that read memory are volatile: what is known of them ends where memory may be written.

The dimension of an expression is its value modulo 2**64 where code computes it in 64 bits, and its value where it is
proved to fit (`Exactness`): an index whose dimension is proved to lie in a buffer is the one that the code computes.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import Node, rewrite, structural_equal, structural_hash, substitute, walk
from weft.ir.dim import (
    Dim,
    DimExpr,
    floordiv,
    floormod,
    free_symbols,
    fresh_name,
    maximum,
    minimum,
    operation,
    prove_le,
    symbol,
)
from weft.ir.dim import Facts as DimFacts
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.tensor import (
    COMPARISONS,
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
from weft.transform.analysis.exactness import LARGEST, LEAST, Exactness, limits_of
from weft.transform.analysis.facts import Fact, Facts, is_choice, negated, reads_memory

__all__ = ["INDEX", "IndexAnalyzer"]

INDEX = "int64"
_MOST_CASES = 6  # choices looked into for one question


@dataclass(frozen=True)
class _Atom:
    """An opaque value: what is known of it, and the values it has in the cases that decide it."""

    expr: PrimExpr
    value: Dim
    facts: tuple[Fact, ...] = ()
    cases: tuple[tuple[PrimExpr | Fact, Dim], ...] = ()
    quotient: tuple[Dim, Dim] | None = None  # (a, b) of a // b with b > 0


class IndexAnalyzer:
    """The integer variables and values of one function as dimensions."""

    def __init__(self) -> None:
        self.values: dict[PrimVar, Dim] = {}
        self.lets: dict[PrimVar, PrimExpr] = {}  # what variables of expressions stand for
        self.binds: dict[PrimVar, PrimExpr] = {}  # truth values bound by statements
        self.moving: dict[PrimVar, str] = {}  # the symbol that grows with a variable
        self.spelling: dict[str, PrimExpr] = {}  # symbols to expressions
        self.formal: dict[str, Dim] = {}  # helper symbols in terms of spelled ones
        self.atoms: dict[tuple[int, bool], list[_Atom]] = {}
        self.atom_of: dict[str, _Atom] = {}
        self.signed: set[str] = set()  # symbols that stand only in sums and products
        self.volatile: set[str] = set()
        self.exactness = Exactness()
        self._decided: dict[tuple[Dim, tuple[Fact, ...]], bool] = {}

    # Variables

    def size(self, variable: PrimVar, largest: float = LARGEST) -> Dim:
        """A variable that is never negative."""
        name = self._fresh(variable.name)
        self.exactness.note(name, 0, largest)
        self.spelling[name] = variable
        self.moving[variable] = name
        self.values[variable] = symbol(name)
        return self.values[variable]

    def unknown(self, variable: PrimVar, facts: Facts) -> Facts:
        """A variable of which its dtype says all that is known."""
        value, name = self._difference(variable, variable.name)
        self.values[variable], self.moving[variable] = value, name
        return facts.with_facts(*_dtype_facts(variable.dtype, value))

    def nonzero_factors(self, extent: Extent, facts: Facts) -> list[Dim]:
        """What is positive because a product is: its factors, where all but one of them are not negative."""
        if not (isinstance(extent, Binary) and extent.kind == "mul"):
            return []
        a, b = self.dim(extent.a, facts), self.dim(extent.b, facts)
        if not self.proves(a, facts) and not self.proves(b, facts):
            return []
        parts = [*self.nonzero_factors(extent.a, facts), *self.nonzero_factors(extent.b, facts)]
        return [x for x in (a, b, *parts) if not isinstance(x, int)]

    def range(self, variable: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Facts:
        """A variable that runs over [start, start + extent)."""
        volatile = self.is_volatile(start) or self.is_volatile(extent)
        if self.is_volatile(start):
            facts = self.unknown(variable, facts)
        elif self.proves(start, facts):
            self.size(variable, max(0, self.exactness.interval(self.spelled(start + extent - 1))[1]))
        else:
            name = self._fresh(variable.name)
            self.spelling[name] = variable
            offset = self._fresh(f"{name}_from_start")
            self.formal[offset] = symbol(name) - start
            self.signed |= {offset, name}
            low, _ = self.exactness.interval(self.spelled(start))
            _, high = self.exactness.interval(self.spelled(start + extent - 1))
            self.exactness.note(name, low, high)
            self.values[variable], self.moving[variable] = start + symbol(offset), offset
        value = self.values[variable]
        low = Fact(value - start, owner=variable, volatile=volatile)
        return facts.with_facts(low, Fact(start + extent - 1 - value, owner=variable, volatile=volatile))

    def frozen(self, variable: PrimVar, value: PrimExpr, facts: Facts) -> Facts:
        """A variable that holds what memory said when it was bound."""
        reads: dict[int, tuple[PrimExpr, PrimVar]] = {}

        def freeze(part: Any) -> PrimVar | None:
            if not isinstance(part, (BufferLoad, PrimCall)) or is_choice(part):
                return None
            same = next((var for expr, var in reads.values() if structural_equal(expr, part)), None)
            variable = PrimVar(_label(part), part.dtype) if same is None else same
            return reads.setdefault(id(part), (part, variable))[1]

        held = rewrite(self.closed(value), pre=freeze)
        for read, var in reads.values():
            if dtypes.is_integer(var.dtype) and dtypes.lanes(var.dtype) == 1 and var not in self.values:
                now = self.dim(read, facts)
                facts = self.unknown(var, facts)
                facts = facts.with_facts(Fact(now - self.values[var], equal=True, volatile=True))
        facts = self.unknown(variable, facts)
        dim = self.dim(held, facts)
        if self.fits(dim, variable.dtype, facts):
            name, own = self.moving[variable], self.values[variable]
            always = IntImm(1, "bool")
            self.atom_of[name] = _Atom(held, own, (Fact(own - dim, equal=True),), ((always, dim),))
        return facts

    def _fresh(self, base: str) -> str:
        plain = base.isidentifier() and base.isascii() and not keyword.iskeyword(base)
        base = base if plain else "v"
        used = self.spelling.keys() | self.formal.keys()
        return fresh_name(base, used)

    def _difference(self, expr: PrimExpr, base: str) -> tuple[Dim, str]:
        """(above - below, above) for a value of any sign."""
        name = self._fresh(base)
        self.spelling[name] = expr
        above, below = self._fresh(f"{name}_above"), self._fresh(f"{name}_below")
        self.formal[above] = symbol(name) + symbol(below)
        self.formal[below] = symbol(below)  # cancels
        self.signed |= {above, below, name}
        self.exactness.note(name, *(limits_of(expr.dtype) if dtypes.is_integer(expr.dtype) else (LEAST, LARGEST)))
        return symbol(above) - symbol(below), above

    def replaced(self, dim: Dim, variable: PrimVar, value: Dim) -> Dim:
        """A dimension with another value for a variable that it is linear in."""
        name = self.moving[variable]
        return substitute_dim(dim, {name: symbol(name) + (value - self.values[variable])})

    def variables(self, dim: Dim) -> set[PrimVar]:
        """The variables that the spelling of a dimension uses."""
        spelled = (self.spelling[name] for name in free_symbols(self.spelled(dim)))
        return {part for expr in spelled for part in walk(expr) if isinstance(part, PrimVar)}

    def is_volatile(self, dim: Dim) -> bool:
        """Whether a dimension depends on memory."""
        return not self.volatile.isdisjoint(free_symbols(dim))

    # Expressions to dimensions

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
        if not self.is_exact(a, facts) or not self.is_exact(b, facts):
            return None
        mixed = self._is_signed(a) or self._is_signed(b)
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

    def _is_signed(self, dim: Dim) -> bool:
        return not self.signed.isdisjoint(free_symbols(dim))

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
        below, above = self.exactness.interval(self.spelled(dim))
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
        for fact in (*self.exactness.extents, *facts.facts):
            if self.exactness.interval(self.spelled(dim - fact.nonnegative))[0] >= 0:
                return True
        return self.proves(dim, facts.with_facts(*self.exactness.extents))

    def compared(self, expr: PrimExpr, facts: Facts) -> Dim:
        """The value that a comparison sees: one of its dtype, which is an atom where arithmetic may have wrapped."""
        dim = self.dim(expr, facts)
        return dim if self.is_exact(dim, facts, expr.dtype) else self._opaque(expr, facts)

    def _opaque(self, expr: PrimExpr, facts: Facts) -> Dim:
        expr = self.closed(expr)
        divides = isinstance(expr, Binary) and expr.kind in ("floordiv", "floormod") and dtypes.is_integer(expr.dtype)
        positive = divides and self.proves(self.dim(expr.b, facts) - 1, facts)  # type: ignore[union-attr]
        group = self.atoms.setdefault((structural_hash(expr), positive), [])
        for atom in group:
            if structural_equal(atom.expr, expr):
                return atom.value
        value, name = self._difference(expr, _label(expr))
        if reads_memory(expr):
            self.volatile |= set(free_symbols(value)) | set(free_symbols(self.spelled(value)))
        known = [*_dtype_facts(expr.dtype, value)]
        quotient: tuple[Dim, Dim] | None = None
        if positive and isinstance(expr, Binary):
            a, b = self.dim(expr.a, facts), self.dim(expr.b, facts)
            quotient = (a, b) if expr.kind == "floordiv" else None
            left = a - b * value if expr.kind == "floordiv" else value
            known += [Fact(left), Fact(b - 1 - left)]
        atom = _Atom(expr, value, tuple(known), tuple(self._cases(expr, facts)), quotient)
        group.append(atom)
        self.atom_of[name] = atom
        return value

    def _cases(self, expr: PrimExpr, facts: Facts) -> Iterator[tuple[PrimExpr | Fact, Dim]]:
        """The values of a choice, each with what holds when it is taken."""
        if dtypes.lanes(expr.dtype) > 1 or not dtypes.is_integer(expr.dtype):
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
        taken = [(test, self.dim(arm, self.assume(test, facts))) for test, arm in chosen]
        if all(self.fits(value, expr.dtype, self.assume(test, facts)) for test, value in taken):
            yield from taken

    def closed(self, expr: PrimExpr) -> PrimExpr:
        """An expression without variables that only expressions bind: one that may stand in several places."""
        expr = rewrite(expr, _opened)
        used = {part for part in walk(expr) if isinstance(part, PrimVar) and part in self.lets} if self.lets else set()
        return self.closed(substitute(expr, {var: self.lets[var] for var in used})) if used else expr

    # Dimensions to expressions

    def spelled(self, dim: Dim) -> Dim:
        """A dimension in symbols that have a spelling."""
        while True:
            helpers = {
                name: self.formal[name]
                for name in free_symbols(dim)
                if name in self.formal and self.formal[name] != symbol(name)
            }
            if not helpers:
                return dim
            dim = substitute_dim(dim, helpers)

    def condition(self, dim: Dim) -> PrimExpr:
        """`dim` >= 0 as an expression: what is subtracted stands on the left of a comparison."""
        env: Mapping[str, Any] = {name: cast(INDEX, self.spelling[name]) for name in free_symbols(self.spelled(dim))}
        left: Dim = 0
        right: Dim = 0
        for part in _terms(self.spelled(dim)):
            if (part if isinstance(part, int) else part.terms[0][1]) < 0:
                left = left - part
            else:
                right = right + part
        kind = "le"
        if _constant(left) == 1:
            kind, left = "lt", left - 1
        if isinstance(left, int) and isinstance(right, int):
            return IntImm(int(left <= right if kind == "le" else left < right), "bool")
        return binary(kind, as_expr(dim_to_prim(left, env), INDEX), as_expr(dim_to_prim(right, env), INDEX))

    def exact_condition(self, dim: Dim) -> PrimExpr:
        """That a dimension is a number of 64 bits, as a check of bounds says it: its arithmetic does not overflow."""
        env: Mapping[str, Any] = {name: cast(INDEX, self.spelling[name]) for name in free_symbols(self.spelled(dim))}
        return binary("le", as_expr(dim_to_prim(self.spelled(dim), env), INDEX), IntImm(LARGEST, INDEX))

    def text(self, dim: Dim) -> str | None:
        """A dimension as users read it; None when it has parts without a name."""
        spelled = self.spelled(dim)
        plain = all(isinstance(self.spelling[name], PrimVar) for name in free_symbols(spelled))
        return str(spelled) if plain else None

    # Facts

    def assume(self, condition: Any, facts: Facts, *, exact: bool = False) -> Facts:
        """What holds where a condition does, besides; the comparisons of a check of bounds are `exact`."""
        if not isinstance(condition, PrimExpr) or dtypes.lanes(condition.dtype) > 1:
            return facts
        if isinstance(condition, IntImm):
            return facts if condition.value else facts.with_facts(Fact(-1))  # nothing gets here
        if isinstance(condition, PrimVar):
            value = self.lets.get(condition, self.binds.get(condition))
            return facts if value is None else self.assume(value, facts)
        if isinstance(condition, PrimCall) and condition.op == "likely":
            return self.assume(condition.args[0], facts)
        if isinstance(condition, Unary) and condition.kind == "not":
            return self._assume_not(condition.a, facts)
        if not isinstance(condition, Binary):
            return facts
        if condition.kind == "and" or (condition.kind == "bitwise_and" and dtypes.is_bool(condition.dtype)):
            return self.assume(condition.b, self.assume(condition.a, facts, exact=exact), exact=exact)
        if condition.kind == "or":
            if isinstance(condition.b, IntImm) and not condition.b.value:
                return self.assume(condition.a, facts, exact=exact)
            pair = (negated(condition.a), condition.b)
            return replace(facts, implications=(*facts.implications, pair))
        if condition.kind in COMPARISONS and dtypes.is_integer(condition.a.dtype):
            return self._assume_order(condition, facts, self.dim if exact else self.compared)
        return facts

    def _assume_not(self, condition: PrimExpr, facts: Facts) -> Facts:
        if isinstance(condition, PrimVar):
            value = self.lets.get(condition, self.binds.get(condition))
            return facts if value is None else self._assume_not(value, facts)
        if isinstance(condition, PrimCall) and condition.op == "likely":
            return self._assume_not(condition.args[0], facts)  # type: ignore[arg-type]
        if isinstance(condition, Binary) and condition.kind == "or":
            return self._assume_not(condition.b, self._assume_not(condition.a, facts))
        if isinstance(condition, Binary) and condition.kind == "and":
            return self.assume(binary("or", negated(condition.a), negated(condition.b)), facts)
        opposite = negated(condition)
        return facts if isinstance(opposite, Unary) and opposite.kind == "not" else self.assume(opposite, facts)

    def _assume_order(self, condition: Binary, facts: Facts, value: Callable[[PrimExpr, Facts], Dim]) -> Facts:
        try:
            more = value(condition.b, facts) - value(condition.a, facts)
        except ShapeError:  # over the limits of dimensions
            return facts
        volatile = self.is_volatile(more)
        if condition.kind == "eq":
            return facts.with_facts(Fact(more, equal=True, volatile=volatile))
        if condition.kind == "ne":
            apart = [side for side in (more, -more) if self.proves(side, facts)]
            return facts.with_facts(*(Fact(side - 1, volatile=volatile) for side in apart))
        if condition.kind in ("gt", "ge"):
            more = -more
        return facts.with_facts(Fact(more - 1 if condition.kind in ("lt", "gt") else more, volatile=volatile))

    def proves(self, dim: Dim, facts: Facts, cases: int = _MOST_CASES) -> bool:
        """Whether a dimension is never negative where the facts hold."""
        if isinstance(dim, int):
            return dim >= 0
        if any(fact.nonnegative is dim for fact in facts.facts):
            return True
        relevant = self._relevant(dim, facts)
        if self._decide(dim, relevant):
            return True
        if cases and any(self.proves(claim, facts, cases - 1) for claim in self._without_quotients(dim)):
            return True
        for name in free_symbols(dim):
            atom = self.atom_of.get(name)
            if atom is not None and atom.cases and cases:
                return all(self._proves_case(dim, name, atom, case, facts, cases - 1) for case in atom.cases)
        known = self._resolved(facts) if facts.implications else facts
        if known is not facts:
            return self.proves(dim, known, cases)
        return self._is_contradictory(facts.facts)  # nothing gets here

    def _without_quotients(self, dim: DimExpr) -> Iterator[Dim]:
        """What says the same as `dim` >= 0 where a quotient stands in it alone: r - a // b >= 0 is b * (r + 1) > a."""
        found = [(atom.value, *atom.quotient) for name, atom in self._atoms_in(dim) if atom.quotient is not None]
        for part in _terms(dim):
            for quotient in (part, -part):
                kind, operands = operation(quotient)
                if kind == "floordiv":
                    found.append((quotient, *operands))
        for value, a, b in found:
            more, less = dim + value, dim - value
            if _size(more) < dim.size:
                yield b * (more + 1) - a - 1
            if _size(less) < dim.size:
                yield a + b * less

    def _atoms_in(self, dim: DimExpr) -> list[tuple[str, _Atom]]:
        return [(name, self.atom_of[name]) for name in free_symbols(dim) if name in self.atom_of]

    def _proves_case(
        self, dim: Dim, name: str, atom: _Atom, case: tuple[PrimExpr | Fact, Dim], facts: Facts, cases: int
    ) -> bool:
        test, value = case
        inside = facts.with_facts(test) if isinstance(test, Fact) else self.assume(test, facts)
        return self.proves(substitute_dim(dim, {name: symbol(name) + (value - atom.value)}), inside, cases)

    def _resolved(self, facts: Facts) -> Facts:
        """The facts with the implications whose condition holds taken as facts; the same object when there are none."""
        left, new = [], []
        for condition, result in facts.implications:
            (new if self.holds(condition, replace(facts, implications=())) else left).append((condition, result))
        if not new:
            return facts
        known = replace(facts, implications=tuple(left))
        for _, result in new:
            known = self.assume(result, known)
        return known

    def holds(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether a condition is proved."""
        if isinstance(condition, IntImm):
            return bool(condition.value)
        if isinstance(condition, PrimVar):
            value = self.lets.get(condition, self.binds.get(condition))
            return value is not None and self.holds(value, facts)
        if isinstance(condition, Unary) and condition.kind == "not":
            return self._fails(condition.a, facts)
        if isinstance(condition, Binary) and condition.kind == "and":
            return self.holds(condition.a, facts) and self.holds(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind == "or":
            return self.holds(condition.a, facts) or self.holds(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind in COMPARISONS and dtypes.is_integer(condition.a.dtype):
            if dtypes.lanes(condition.a.dtype) == 1:
                more = self.compared(condition.b, facts) - self.compared(condition.a, facts)
                wanted = {"le": [more], "lt": [more - 1], "ge": [-more], "gt": [-more - 1], "eq": [more, -more]}
                return condition.kind != "ne" and all(self.proves(side, facts) for side in wanted[condition.kind])
        return False

    def _fails(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether the opposite of a condition is proved."""
        if isinstance(condition, Binary) and condition.kind == "or":
            return self._fails(condition.a, facts) and self._fails(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind == "and":
            return self._fails(condition.a, facts) or self._fails(condition.b, facts)
        opposite = negated(condition)
        return not (isinstance(opposite, Unary) and opposite.a is condition) and self.holds(opposite, facts)

    def _relevant(self, dim: DimExpr, facts: Facts) -> tuple[Fact, ...]:
        names = set(dim.names)
        pool = list(facts.facts)
        asked: set[str] = set()
        chosen: dict[Fact, None] = {}
        while True:
            for name in names - asked:
                asked.add(name)
                pool.extend(self.atom_of[name].facts if name in self.atom_of else ())
            found = [f for f in pool if not names.isdisjoint(free_symbols(f.nonnegative))]
            before = len(chosen)
            for fact in found:
                chosen.setdefault(fact)
                names.update(free_symbols(fact.nonnegative))
            if len(chosen) == before and names == asked:
                return tuple(chosen)

    def _is_contradictory(self, facts: tuple[Fact, ...]) -> bool:
        if any(isinstance(fact.nonnegative, int) and fact.nonnegative < 0 for fact in facts):
            return True
        key = (-1, facts)
        if key not in self._decided:
            try:
                self._decided[key] = _dim_facts(facts).contradictory
            except ShapeError:  # over the limits of dimensions
                self._decided[key] = False
        return self._decided[key]

    def _decide(self, dim: DimExpr, relevant: tuple[Fact, ...]) -> bool:
        key = (dim, relevant)
        if key not in self._decided:
            try:
                self._decided[key] = prove_le(0, dim, _dim_facts(relevant)) is True
            except ShapeError:  # over the limits of dimensions
                self._decided[key] = False
        return self._decided[key]


_ARITHMETIC = {"add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod"}


def _dtype_facts(dtype: str, value: Dim) -> tuple[Fact, ...]:
    if dtypes.is_bool(dtype):
        return Fact(value), Fact(1 - value)
    if not dtypes.is_integer(dtype) or dtype == INDEX:
        return ()
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return (Fact(value - low), Fact(high - value)) if dtypes.bits(dtype) < 64 else (Fact(value - low),)


def _dim_facts(facts: tuple[Fact, ...]) -> DimFacts:
    return DimFacts(
        tuple((fact.nonnegative, 0) for fact in facts if fact.equal),
        tuple((0, fact.nonnegative) for fact in facts if not fact.equal),
    )


def _covers(wide: str, narrow: str) -> bool:
    low, high = int(dtypes.min_value(narrow)), int(dtypes.max_value(narrow))
    return dtypes.can_hold(wide, low) and dtypes.can_hold(wide, high)


def _opened(node: Node) -> PrimExpr | None:
    return substitute(node.body, {node.var: node.value}) if isinstance(node, Let) else None


def _label(expr: PrimExpr) -> str:
    while isinstance(expr, Cast):
        expr = expr.value
    return expr.buffer.name if isinstance(expr, BufferLoad) else "value"


def _terms(dim: Dim) -> Iterator[Any]:
    kind, operands = operation(dim)
    yield from operands if kind == "add" else (dim,)


def _size(dim: Dim) -> int:
    return dim.size if isinstance(dim, DimExpr) else 0


def _constant(dim: Dim) -> int:
    return sum(part for part in _terms(dim) if isinstance(part, int))
