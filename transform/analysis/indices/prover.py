"""Whether dimensions are never negative where facts hold: the proofs of the index analyzer.

A claim is decided by linear arithmetic over the facts that share symbols with it (`weft.ir.dim.prove_le`). What is left
open is looked into case by case: the arms of a choice, the two sides of a minimum, a quotient as what it is bounded by,
implications whose condition holds; and where the facts contradict each other, nothing gets here and all is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, free_symbols, operation, prove_le, symbol
from weft.ir.dim import Facts as DimFacts
from weft.ir.dim import substitute as substitute_dim
from weft.ir.tensor import PrimExpr
from weft.transform.analysis.indices.facts import Fact, Facts
from weft.transform.analysis.indices.symbols import terms

__all__ = ["MAX_CASES", "Atom", "Prover"]

MAX_CASES = 6
"""How many choices are looked into for one question."""


@dataclass(frozen=True)
class Atom:
    """An opaque value: what is known of it, and the values it has in the cases that decide it."""

    expr: PrimExpr
    value: Dim
    facts: tuple[Fact, ...] = ()
    cases: tuple[tuple[PrimExpr | Fact, Dim], ...] = ()
    quotient: tuple[Dim, Dim] | None = None  # (a, b) of a // b with b > 0
    number: int = 0  # in the order in which they were made


class Assumptions(Protocol):
    """What proofs ask about conditions."""

    def assume(self, condition: Any, facts: Facts) -> Facts:
        """What holds where a condition does."""
        ...

    def holds(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether a condition is proved."""
        ...


class Prover:
    """Proofs about the dimensions of one function; what was decided is kept."""

    def __init__(self, conditions: Assumptions) -> None:
        self.conditions = conditions
        self.atom_of: dict[str, Atom] = {}
        self._answers: dict[tuple[Dim, Facts, int], bool] = {}
        self._decided: dict[tuple[Dim, tuple[Fact, ...]], bool] = {}

    def proves(self, dim: Dim, facts: Facts, cases: int = MAX_CASES) -> bool:
        """Whether a dimension is never negative where the facts hold."""
        if isinstance(dim, int):
            return dim >= 0
        key = (dim, facts, cases)
        found = self._answers.get(key)
        if found is None:  # what is learnt of atoms later could only turn a no into a yes
            try:
                found = self._proves(dim, facts, cases)
            except ShapeError:  # over the limits of dimensions
                found = False
            self._answers[key] = found
        return found

    def _proves(self, dim: DimExpr, facts: Facts, cases: int) -> bool:
        if any(fact.nonnegative is dim for fact in facts.facts):
            return True
        relevant = self._relevant(dim, facts)
        if self._decide(dim, relevant):
            return True
        if cases and any(self.proves(claim, facts, cases - 1) for claim in self._without_quotients(dim)):
            return True
        choices = [pair for pair in self._atoms_in(dim) if pair[1].cases] if cases else []
        if choices:  # the latest first: it may be made of the others
            name, atom = max(choices, key=lambda pair: pair[1].number)
            return all(self._proves_case(dim, name, atom, case, facts, cases - 1) for case in atom.cases)
        known = self._resolved(facts) if facts.implications else facts
        if known is not facts:
            return self.proves(dim, known, cases)
        return self._is_contradictory(facts.facts)  # nothing gets here

    def _without_quotients(self, dim: DimExpr) -> Iterator[Dim]:
        """What says the same as `dim` >= 0 where a quotient stands in it alone: r - a // b >= 0 is b * (r + 1) > a."""
        found = [(atom.value, *atom.quotient) for _, atom in self._atoms_in(dim) if atom.quotient is not None]
        for part in terms(dim):
            for quotient in (part, -part):
                kind, operands = operation(quotient)
                if kind == "floordiv":
                    found.append((quotient, *operands))
        if len(found) > _MAX_QUOTIENTS:
            return
        for value, a, b in found:
            more, less = dim + value, dim - value
            if _size(more) < dim.size:
                yield b * (more + 1) - a - 1
            if _size(less) < dim.size:
                yield a + b * less

    def _atoms_in(self, dim: DimExpr) -> list[tuple[str, Atom]]:
        return [(name, self.atom_of[name]) for name in free_symbols(dim) if name in self.atom_of]

    def _proves_case(
        self, dim: Dim, name: str, atom: Atom, case: tuple[PrimExpr | Fact, Dim], facts: Facts, cases: int
    ) -> bool:
        test, value = case
        inside = facts.with_facts(test) if isinstance(test, Fact) else self.conditions.assume(test, facts)
        return self.proves(substitute_dim(dim, {name: symbol(name) + (value - atom.value)}), inside, cases)

    def _resolved(self, facts: Facts) -> Facts:
        """The facts with the implications whose condition holds taken as facts; the same object when there are none."""
        left: list[tuple[PrimExpr, PrimExpr]] = []
        new: list[tuple[PrimExpr, PrimExpr]] = []
        for condition, result in facts.implications:
            holds = self.conditions.holds(condition, replace(facts, implications=()))
            (new if holds else left).append((condition, result))
        if not new:
            return facts
        known = replace(facts, implications=tuple(left))
        for _, result in new:
            known = self.conditions.assume(result, known)
        return known

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


_MAX_QUOTIENTS = 8
"""A sum of more is proved as it stands: without one of them it is nearly as long."""

_ARITHMETIC = {"add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod"}


def _dim_facts(facts: tuple[Fact, ...]) -> DimFacts:
    return DimFacts(
        tuple((fact.nonnegative, 0) for fact in facts if fact.equal),
        tuple((0, fact.nonnegative) for fact in facts if not fact.equal),
    )


def _size(dim: Dim) -> int:
    return dim.size if isinstance(dim, DimExpr) else 0
