"""Whether dimensions are never negative where facts hold: the proofs of the index analyzer.

A claim is decided by linear arithmetic over the facts that share symbols with it (`weft.ir.dim.prove_le`). What is left
open is looked into case by case: the arms of a choice, the two sides of a minimum, a quotient as what it is bounded by,
implications whose condition holds; and where the facts contradict each other, nothing gets here and all is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, free_symbols, operation, pattern, prove_le, symbol
from weft.ir.dim import Facts as DimFacts
from weft.ir.dim import substitute as substitute_dim
from weft.ir.tensor import PrimExpr
from weft.support.records import dataclass
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
        self._answers: dict[tuple[Dim, Facts, int], tuple[bool, set[str]]] = {}
        self._used: set[str] = set()  # the symbols that decided what is being asked
        self._connected: tuple[tuple[Fact, ...], dict[str, tuple[Fact, ...]]] = ((), {})
        self._open: dict[int, tuple[PrimExpr, set[str], tuple[Any, ...]]] = {}  # conditions that were not proved
        self._decided: dict[tuple[Dim, tuple[Fact, ...]], bool] = {}

    def proves(self, dim: Dim, facts: Facts, cases: int = MAX_CASES) -> bool:
        """Whether a dimension is never negative where the facts hold."""
        if isinstance(dim, int):
            return dim >= 0
        key = (dim, facts, cases)
        found = self._answers.get(key)
        if found is None:  # what is learnt of atoms later could only turn a no into a yes
            outer, self._used = self._used, set()
            try:
                answer = self._proves(dim, facts, cases)
            except ShapeError:  # over the limits of dimensions
                answer = False
            found, self._used = (answer, self._used), outer
            self._answers[key] = found
        self._used |= found[1]
        return found[0]

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
        plain = replace(facts, implications=())
        for condition, result in facts.implications:
            (new if self._holds(condition, plain) else left).append((condition, result))
        if not new:
            return facts
        known = replace(facts, implications=tuple(left))
        for _, result in new:
            known = self.conditions.assume(result, known)
        return known

    def _holds(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether a condition is proved; what was not is asked again where its symbols have got other facts.

        Facts that contradict each other without it are left to the question that the condition is looked into for.
        """
        before = self._open.get(id(condition))
        if before is not None:
            _, used, known = before
            if known == self._about(used, facts):
                self._used |= used
                return False
        outer, self._used = self._used, set()
        holds = self.conditions.holds(condition, facts)
        used, self._used = self._used, outer
        outer |= used
        if not holds:
            self._open[id(condition)] = condition, used, self._about(used, facts)
        return holds

    def _about(self, names: set[str], facts: Facts) -> tuple[Any, ...]:
        """The facts that are connected with symbols."""
        groups = self._groups(facts.facts)
        found = {id(group): group for name in sorted(names) if (group := groups.get(name)) is not None}
        return (facts.nonzero, *found.values())

    def _relevant(self, dim: DimExpr, facts: Facts) -> tuple[Fact, ...]:
        names = set(dim.names)
        pool = list(facts.facts)
        asked: set[str] = set()
        chosen: dict[Fact, None] = {}
        while True:
            for name in names - asked:
                asked.add(name)
                pool.extend(self.atom_of[name].facts if name in self.atom_of else ())
            apart: list[Fact] = []
            found: list[Fact] = []
            for fact in pool:
                (apart if names.isdisjoint(_names(fact)) else found).append(fact)
            pool = apart
            chosen.update(dict.fromkeys(found))
            names.update(*map(_names, found))
            if not found and names == asked:
                self._used |= names
                return tuple(chosen)

    def _is_contradictory(self, facts: tuple[Fact, ...]) -> bool:
        if any(isinstance(fact.nonnegative, int) and fact.nonnegative < 0 for fact in facts):
            return True
        groups = {id(group): group for group in self._groups(facts).values()}
        return any(map(self._contradict_each_other, groups.values()))

    def _groups(self, facts: tuple[Fact, ...]) -> dict[str, tuple[Fact, ...]]:
        last, groups = self._connected
        if last is not facts:
            groups = _connected(facts)
            self._connected = facts, groups
        return groups

    def _contradict_each_other(self, facts: tuple[Fact, ...]) -> bool:
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
            self._decided[key] = _is_nonnegative(_Claim(dim, relevant))
        return self._decided[key]


class _Claim:
    """That a dimension is never negative under facts: equal to each that says the same of symbols of other names.

    Loops that were unrolled or copied ask the same of their own variables, over and over.
    """

    __slots__ = ("dim", "facts", "pattern")

    def __init__(self, dim: DimExpr, facts: tuple[Fact, ...]) -> None:
        self.dim = dim
        self.facts = facts
        equal = tuple([fact.equal for fact in facts])
        self.pattern = pattern((dim, *(fact.nonnegative for fact in facts))), equal

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Claim) and self.pattern == other.pattern


@lru_cache(maxsize=1 << 13)
def _is_nonnegative(claim: _Claim) -> bool:
    try:
        return prove_le(0, claim.dim, _dim_facts(claim.facts)) is True
    except ShapeError:  # over the limits of dimensions
        return False


_MAX_QUOTIENTS = 8
"""A sum of more is proved as it stands: without one of them it is nearly as long."""

_ARITHMETIC = {"add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod"}


def _dim_facts(facts: tuple[Fact, ...]) -> DimFacts:
    return DimFacts(
        tuple((fact.nonnegative, 0) for fact in facts if fact.equal),
        tuple((0, fact.nonnegative) for fact in facts if not fact.equal),
    )


def _names(fact: Fact) -> frozenset[str]:
    return fact.nonnegative.names if isinstance(fact.nonnegative, DimExpr) else frozenset()


def _connected(facts: tuple[Fact, ...]) -> dict[str, tuple[Fact, ...]]:
    """For each symbol the facts that are connected with it by symbols, in order.

    Facts without a shared symbol cannot contradict each other, and what was found of a group holds wherever it stands.
    """
    group_of: dict[str, list[int]] = {}
    for place, fact in enumerate(facts):
        names = _names(fact)
        joined = {id(group): group for name in names if (group := group_of.get(name)) is not None}
        places = max(joined.values(), key=len, default=list[int]())
        for group in joined.values():
            if group is not places:
                places.extend(group)
                group_of.update((name, places) for other in group for name in _names(facts[other]))
        places.append(place)
        group_of.update((name, places) for name in names)
    groups = {id(places): tuple(facts[place] for place in sorted(places)) for places in group_of.values()}
    return {name: groups[id(places)] for name, places in group_of.items()}


def _size(dim: Dim) -> int:
    return dim.size if isinstance(dim, DimExpr) else 0
