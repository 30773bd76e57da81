"""Checks of bounds as data, and where they stand: what the facts do not say becomes assertions.

Check       what must hold before a statement wherever its guards hold
Placement   checks as conditions and assertions; those that the facts say are left out, the others are facts after
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from weft.errors import ShapeError, Span
from weft.ir import structural_hash, walk
from weft.ir.dim import Dim
from weft.ir.tensor import AssertStmt, PrimExpr, PrimVar, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.exactness import LARGEST
from weft.transform.analysis.indices.facts import Fact, Facts, conjunction, disjunction, negated, reads_memory

__all__ = ["Check", "Placement", "below_largest", "changed"]


@dataclass(frozen=True)
class Check:
    """What must hold before a statement wherever the guards hold: dimensions nonnegative, and numbers of 64 bits."""

    message: str
    needs: tuple[Dim, ...]
    guards: tuple[PrimExpr, ...] = ()
    exact: tuple[Dim, ...] = ()
    span: Span | None = None
    always: frozenset[PrimVar] = frozenset()  # loops without which the access happens, too (see `_block`)


class Placement:
    """Checks of one function as assertions."""

    def __init__(self, known: IndexAnalyzer) -> None:
        self.known = known
        self.conditions: dict[Any, tuple[PrimExpr, tuple[PrimExpr, ...]]] = {}
        self.keys: dict[int, tuple[PrimExpr, int]] = {}

    def condition(self, check: Check) -> PrimExpr:
        """What a check asserts."""
        key = (check.needs, check.exact, tuple(map(id, check.guards)))
        if key not in self.conditions:
            self.conditions[key] = (self._built(check), check.guards)  # the guards stay alive, and with them their ids
        return self.conditions[key][0]

    def _built(self, check: Check) -> PrimExpr:
        exact = map(self.known.symbols.exact_condition, check.exact)
        needed = conjunction((*exact, *(self.known.symbols.condition(need) for need in check.needs)))
        return disjunction((*(negated(guard) for guard in check.guards), needed))

    def key(self, condition: PrimExpr) -> int:
        """The structural hash of a condition, computed once: guards can be long."""
        found = self.keys.get(id(condition))
        if found is None:
            found = self.keys[id(condition)] = (condition, structural_hash(condition))
        return found[1]

    def is_volatile(self, check: Check) -> bool:
        """Whether a check depends on memory."""
        dims = (*check.needs, *check.exact)
        return any(map(self.known.is_volatile, dims)) or any(map(reads_memory, check.guards))

    def uses(self, check: Check) -> set[PrimVar]:
        """The variables of a check."""
        needed = {variable for dim in (*check.needs, *check.exact) for variable in self.known.variables(dim)}
        return needed | {part for guard in check.guards for part in walk(guard) if isinstance(part, PrimVar)}

    def left(self, check: Check, facts: Facts) -> Check | None:
        """What of a check the facts do not say."""
        if self.is_asserted(self.condition(check), facts):
            return None
        inside = facts
        for guard in check.guards:
            inside = self.known.assume(guard, inside)
        needs = tuple(need for need in check.needs if not self.known.proves(need, inside))
        exact = tuple(dim for dim in check.exact if not self.known.is_exact(dim, inside))
        guards = tuple(guard for guard in check.guards if not self.known.holds(guard, facts))
        if not needs and not exact:
            return None
        never = tuple(need for need in needs if isinstance(need, int))  # what remains is negative
        check = changed(check, needs=never[:1] or needs, guards=guards, exact=exact)
        return None if self.is_asserted(self.condition(check), facts) else check

    def is_asserted(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether just this condition was asserted."""
        return bool(facts.asserted) and facts.has_asserted(condition, self.key(condition))

    def learn(self, check: Check, facts: Facts) -> Facts:
        """The facts once a check has passed."""
        condition = self.condition(check)
        if check.guards:
            return self.known.assume(condition, facts, exact=True).with_asserted(condition, self.key(condition))
        new = map(self.fact, (*check.needs, *below_largest(check.exact)))
        return facts.with_facts(*new).with_asserted(condition, self.key(condition))

    def asserts(self, checks: Iterable[Check], facts: Facts) -> tuple[list[Stmt], Facts]:
        """Assertions of what the facts leave open of some checks, and the facts after them."""
        out: list[Stmt] = []
        for check in checks:
            left = self.left(check, facts)
            if left is not None:
                out.append(AssertStmt(self.condition(left), left.message, "BoundsError", span=left.span))
                facts = self.learn(left, facts)
        return out, facts

    def placed(self, checks: Iterable[Check], stmt: Stmt, facts: Facts) -> Stmt:
        """The statement after its assertions."""
        asserts, _ = self.asserts(checks, facts)
        return SeqStmt((*asserts, stmt), span=stmt.span) if asserts else stmt

    def outside(self, checks: Sequence[Check], stmt: Stmt, facts: Facts) -> tuple[Stmt, list[Check]]:
        """A statement with the checks that read memory right before it, and the others for further out.

        The facts are those before the statement: what its own checks say is known behind them alone.
        """
        up = [check for check in checks if not self.is_volatile(check)]
        if len(up) == len(checks):
            return stmt, up
        for check in up:
            facts = self.learn(check, facts)
        return self.placed([check for check in checks if self.is_volatile(check)], stmt, facts), up

    def fact(self, nonnegative: Dim, owner: PrimVar | None = None) -> Fact:
        """A claim as a fact; that of the range of a loop belongs to its variable."""
        return Fact(nonnegative, owner=owner, volatile=self.known.is_volatile(nonnegative))


def below_largest(dims: Iterable[Dim]) -> Iterator[Dim]:
    """What is not negative where dimensions are numbers of 64 bits, as far as it is a dimension."""
    for dim in dims:
        try:
            yield LARGEST - dim
        except ShapeError:  # a constant over 64 bits
            continue


def changed(check: Check, **changes: Any) -> Check:
    """A check with other parts."""
    return Check(**{**check.__dict__, **changes})
