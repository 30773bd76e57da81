"""What is known about index expressions: tensor-level arithmetic as dimensions, and facts under which it is decided.

    IndexAnalyzer   the variables of one function as dimensions, and every question about them
    Symbols         the names in dimensions, and the way back to expressions (`indices.symbols`)
    Translation     expressions as dimensions (`indices.translation`)
    Conditions      what conditions say, and whether they hold (`indices.conditions`)
    Prover          whether a dimension is never negative (`indices.prover`)
    Facts           what holds at a point of the code (`indices.facts`)
    Exactness       which values arithmetic in 64 bits has exactly: the rule of wrapping (`indices.exactness`)

The symbols of a dimension are nonnegative, variables are not: a variable that can be negative is the difference of two
symbols, or its start plus a symbol, and stands only in sums and products. Everything else that involves such variables,
and what dimensions cannot say (values read from memory, calls), is an atom: a symbol of its own, of which a few things
are known. Atoms that read memory are volatile: what is known of them ends where memory may be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft import dtypes
from weft.ir import rewrite, structural_equal
from weft.ir.dim import Dim, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.tensor import (
    Binary,
    Broadcast,
    BufferLoad,
    Cast,
    Extent,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    Unary,
)
from weft.transform.analysis.indices.exactness import LARGEST, Exactness
from weft.transform.analysis.indices.facts import Fact, Facts, is_choice, negated
from weft.transform.analysis.indices.prover import Atom
from weft.transform.analysis.indices.symbols import INDEX
from weft.transform.analysis.indices.translation import Translation, dtype_facts, label

__all__ = ["INDEX", "RING", "IndexAnalyzer"]

_QUOTIENTS = frozenset({"floordiv", "floormod", "truncdiv", "truncmod", "min", "max"})
"""Arithmetic that is right only for operands that are the numbers they say, not those numbers modulo 2**64."""
RING = frozenset({"add", "sub", "mul"})
"""Arithmetic that is right modulo 2**64 whatever wraps in between."""
Guards = tuple[PrimExpr, ...]
_MOST_GUARDS = 8


class IndexAnalyzer:
    """The integer variables and values of one function as dimensions."""

    def __init__(self) -> None:
        self.translation = Translation()
        self.symbols = self.translation.symbols
        self.values = self.translation.values
        self.lets = self.translation.lets
        self.binds = self.translation.binds
        self.moving: dict[PrimVar, str] = {}  # the symbol that grows with a variable
        # what the value of a variable divides or compares
        self.divided: dict[PrimVar, tuple[tuple[Guards, PrimExpr], ...]] = {}

    @property
    def exactness(self) -> Exactness:
        """What 64 bits hold."""
        return self.symbols.exactness

    # Variables

    def size(self, variable: PrimVar, largest: float = LARGEST) -> Dim:
        """A variable that is never negative."""
        name = self.symbols.fresh(variable.name)
        self.symbols.exactness.note(name, 0, largest)
        self.symbols.spelling[name] = variable
        self.moving[variable] = name
        self.values[variable] = symbol(name)
        return self.values[variable]

    def unknown(self, variable: PrimVar, facts: Facts) -> Facts:
        """A variable of which its dtype says all that is known."""
        value, name = self.symbols.difference(variable, variable.name)
        self.values[variable], self.moving[variable] = value, name
        return facts.with_facts(*dtype_facts(variable.dtype, value))

    def range(self, variable: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Facts:
        """A variable that runs over [start, start + extent)."""
        volatile = self.is_volatile(start) or self.is_volatile(extent)
        if self.is_volatile(start):
            facts = self.unknown(variable, facts)
        elif self.proves(start, facts):
            self.size(variable, max(0, self.symbols.interval(start + extent - 1)[1]))
        else:
            name = self.symbols.fresh(variable.name)
            self.symbols.spelling[name] = variable
            offset = self.symbols.fresh(f"{name}_from_start")
            self.symbols.formal[offset] = symbol(name) - start
            self.symbols.signed |= {offset, name}
            low, _ = self.symbols.interval(start)
            _, high = self.symbols.interval(start + extent - 1)
            self.symbols.exactness.note(name, low, high)
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
            variable = PrimVar(label(part), part.dtype) if same is None else same
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
            known, atoms = (Fact(own - dim, equal=True),), self.translation.prover.atom_of
            atoms[name] = Atom(held, own, known, ((always, dim),), number=len(atoms))
        return facts

    def note_divided(self, variable: PrimVar, value: PrimExpr) -> None:
        """Remember what the value of a variable divides, takes the remainder of or compares."""
        if found := [*self.operands(value)]:
            self.divided[variable] = tuple(_with_few_guards(found))

    def replaced(self, dim: Dim, variable: PrimVar, value: Dim) -> Dim:
        """A dimension with another value for a variable that it is linear in."""
        name = self.moving[variable]
        return substitute_dim(dim, {name: symbol(name) + (value - self.values[variable])})

    # Questions

    def operands(self, expr: Extent, guards: Guards = ()) -> Iterator[tuple[Guards, PrimExpr]]:
        """What an expression divides, takes the remainder of or compares, each with the conditions of its choices.

        So do the values of variables. Values that are chosen, read, called or compared are what they are. What stands
        in several places under the same conditions comes once.
        """
        stack: list[tuple[Guards, Extent, bool]] = [(guards, expr, False)]
        seen: dict[tuple[tuple[int, ...], int, bool], tuple[Guards, Extent]] = {}  # and keeps what has those ids
        while stack:
            inside, current, found = stack.pop()
            key = (tuple(map(id, inside)), id(current), found)
            if key in seen:
                continue
            seen[key] = (inside, current)
            if found:
                yield inside, current  # type: ignore[misc]
            else:
                stack.extend(reversed(_looked_into(self, inside, current)))

    def variables(self, dim: Dim) -> set[PrimVar]:
        """The variables that the spelling of a dimension uses."""
        return self.symbols.variables(dim)

    def is_volatile(self, dim: Dim) -> bool:
        """Whether a dimension depends on memory."""
        return self.symbols.is_volatile(dim)

    def dim(self, expr: Extent, facts: Facts) -> Dim:
        """The dimension that an integer expression means here."""
        return self.translation.dim(expr, facts)

    def compared(self, expr: PrimExpr, facts: Facts) -> Dim:
        """The value that a comparison sees: one of its dtype, which is an atom where arithmetic may have wrapped."""
        return self.translation.compared(expr, facts)

    def closed(self, expr: PrimExpr) -> PrimExpr:
        """An expression without variables that only expressions bind: one that may stand in several places."""
        return self.translation.closed(expr)

    def fits(self, dim: Dim, dtype: str, facts: Facts) -> bool:
        """Whether a value is one of a dtype; 64 bits count as enough, since they keep it modulo 2**64."""
        return self.translation.fits(dim, dtype, facts)

    def is_exact(self, dim: Dim, facts: Facts, dtype: str = INDEX) -> bool:
        """Whether arithmetic in 64 bits, or in a narrower dtype, has just this value."""
        return self.translation.is_exact(dim, facts, dtype)

    def assume(self, condition: Any, facts: Facts, *, exact: bool = False) -> Facts:
        """What holds where a condition does, besides; the comparisons of a check of bounds are `exact`."""
        return self.translation.conditions.assume(condition, facts, exact=exact)

    def holds(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether a condition is proved."""
        return self.translation.conditions.holds(condition, facts)

    def proves(self, dim: Dim, facts: Facts) -> bool:
        """Whether a dimension is never negative where the facts hold."""
        return self.translation.prover.proves(dim, facts)

    def text(self, dim: Dim) -> str | None:
        """A dimension as users read it; None when it has parts without a name."""
        return self.symbols.text(dim)


def _with_few_guards(operands: list[tuple[Guards, PrimExpr]]) -> Iterator[tuple[Guards, PrimExpr]]:
    """Operands, each with few combinations of conditions: where there are many, with those that all of them share.

    Variables of choices between values of such variables would have exponentially many.
    """
    together: dict[int, list[tuple[Guards, PrimExpr]]] = {}
    for guards, expr in operands:
        together.setdefault(id(expr), []).append((guards, expr))
    for several in together.values():
        if len(several) <= _MOST_GUARDS:
            yield from several
        else:
            (guards, expr), *others = several
            shared = {id(guard) for guard in guards}.intersection(*({id(g) for g in each} for each, _ in others))
            yield tuple(guard for guard in guards if id(guard) in shared), expr


def _looked_into(analyzer: IndexAnalyzer, guards: Guards, expr: Extent) -> list[tuple[Guards, Any, bool]]:
    """The parts of an expression in their order, each with its conditions and whether it is an operand itself."""
    if isinstance(expr, PrimVar):
        value = analyzer.lets.get(expr)
        if value is not None:
            return [(guards, value, False)]
        return [((*guards, *inner), part, True) for inner, part in analyzer.divided.get(expr, ())]
    if isinstance(expr, Binary) and expr.kind in _QUOTIENTS | RING:
        divides = expr.kind in _QUOTIENTS
        sides = [[(guards, x, False), (guards, x, True)][: 1 + (divides and _is_word(x))] for x in (expr.a, expr.b)]
        return [*sides[0], *sides[1]]
    if isinstance(expr, (Cast, Broadcast)):
        return [(guards, expr.value, False)]
    if isinstance(expr, Unary):
        return [(guards, expr.a, False)]
    if isinstance(expr, Ramp):
        return [(guards, expr.base, False), (guards, expr.stride, False)]
    if isinstance(expr, Select) or (isinstance(expr, PrimCall) and expr.op == "if_then_else"):
        parts = (expr.condition, expr.true_value, expr.false_value) if isinstance(expr, Select) else expr.args
        test, a, b = (part for part in parts if isinstance(part, PrimExpr))
        choices = ((test, a), (negated(test), b))
        return [((*guards, analyzer.closed(chosen)), arm, False) for chosen, arm in choices]
    return []


def nonzero_factors(known: IndexAnalyzer, extent: Extent, facts: Facts) -> list[Dim]:
    """What is positive because a product is: its factors, where all but one of them are not negative."""
    if not (isinstance(extent, Binary) and extent.kind == "mul"):
        return []
    a, b = known.dim(extent.a, facts), known.dim(extent.b, facts)
    if not known.proves(a, facts) and not known.proves(b, facts):
        return []
    parts = [*nonzero_factors(known, extent.a, facts), *nonzero_factors(known, extent.b, facts)]
    return [x for x in (a, b, *parts) if not isinstance(x, int)]


def _is_word(expr: PrimExpr) -> bool:
    return dtypes.lanes(expr.dtype) == 1 and dtypes.is_integer(expr.dtype) and dtypes.is_signed(expr.dtype)
