"""What holds at a point of the code: facts about dimensions, implications, and conditions that were asserted.

Facts are immutable and added to. What depends on memory is volatile, and ends where memory may be written; what the
range of a loop says belongs to its variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from weft import dtypes
from weft.ir import structural_equal, walk
from weft.ir.dim import Dim
from weft.ir.kernel.prim import binary
from weft.ir.tensor import COMPARISONS, Binary, Buffer, BufferLoad, IntImm, PrimCall, PrimExpr, PrimVar, Unary
from weft.support.records import dataclass

__all__ = ["EveryElement", "Fact", "Facts", "conjunction", "disjunction", "is_choice", "negated", "reads_memory"]

_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


def conjunction(parts: Iterable[PrimExpr]) -> PrimExpr:
    """All of them (at least one), evaluated from the left."""
    return reduce(lambda left, right: binary("and", left, right), parts)


def disjunction(parts: Iterable[PrimExpr]) -> PrimExpr:
    """One of them (of at least one), evaluated from the left."""
    return reduce(lambda left, right: binary("or", left, right), parts)


def negated(condition: PrimExpr) -> PrimExpr:
    """The opposite; comparisons of integers are turned round."""
    if isinstance(condition, Unary) and condition.kind == "not":
        return condition.a
    if isinstance(condition, Binary) and condition.kind in COMPARISONS and dtypes.is_integer(condition.a.dtype):
        kind = _INVERSE[condition.kind]
        if isinstance(condition.a, IntImm) and kind == "ge":
            return Binary("le", condition.b, condition.a, span=condition.span)
        return Binary(kind, condition.a, condition.b, span=condition.span)
    return Unary("not", condition, span=condition.span)


@dataclass(frozen=True)
class Fact:
    """`nonnegative` >= 0, or == 0; it comes from the range of the loop of `owner`, if any."""

    nonnegative: Dim
    equal: bool = False
    owner: PrimVar | None = None
    volatile: bool = False


@dataclass(frozen=True)
class EveryElement:
    """A condition that holds for every element of a buffer, which nothing writes.

    It is written for the one at `indices`: variables, which stand for any place along their axis, and constants.
    """

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    condition: PrimExpr


@dataclass(frozen=True)
class Facts:
    """What holds at one point; immutable."""

    facts: tuple[Fact, ...] = ()
    implications: tuple[tuple[PrimExpr, PrimExpr], ...] = ()  # where the first holds, the second does
    asserted: tuple[tuple[int, PrimExpr], ...] = ()
    nonzero: tuple[tuple[Dim, bool], ...] = ()  # what is not 0, and whether that is volatile
    elements: tuple[EveryElement, ...] = ()

    def is_nonzero(self, dim: Dim) -> bool:
        """Whether just this dimension, or its opposite, is known not to be 0."""
        return any(dim == known or dim == -known for known, _ in self.nonzero)

    def with_nonzero(self, dim: Dim, *, volatile: bool) -> Facts:
        """These, and that a dimension is not 0."""
        return replace(self, nonzero=(*self.nonzero, (dim, volatile)))

    def has_asserted(self, condition: PrimExpr, key: int) -> bool:
        """Whether just this condition, with its structural hash, is known to hold."""
        return any(key == other and structural_equal(condition, known) for other, known in self.asserted)

    def with_asserted(self, condition: PrimExpr, key: int) -> Facts:
        """These, and a condition as it stands, with its structural hash."""
        return replace(self, asserted=(*self.asserted, (key, condition)))

    def with_facts(self, *facts: Fact) -> Facts:
        """These and more."""
        return replace(self, facts=(*self.facts, *facts))

    def with_elements(self, *elements: EveryElement) -> Facts:
        """These, and what holds for every element of a buffer."""
        return replace(self, elements=(*self.elements, *elements)) if elements else self

    def without_owners(self, owners: set[PrimVar]) -> Facts:
        """These without what the ranges of some loops say."""
        return replace(self, facts=tuple(fact for fact in self.facts if fact.owner not in owners))

    def without_ranges(self) -> Facts:
        """These without what the ranges of loops say: what holds outside of them, too."""
        return replace(self, facts=tuple(fact for fact in self.facts if fact.owner is None))

    def after_write(self) -> Facts:
        """What is left when memory was written."""
        return Facts(
            tuple(fact for fact in self.facts if not fact.volatile),
            tuple(pair for pair in self.implications if not any(reads_memory(part) for part in pair)),
            tuple(pair for pair in self.asserted if not reads_memory(pair[1])),
            tuple(pair for pair in self.nonzero if not pair[1]),
            self.elements,
        )


def reads_memory(expr: PrimExpr) -> bool:
    """Whether a value can change when memory is written, or when it is evaluated again."""
    return any(isinstance(part, (BufferLoad, PrimCall)) and not is_choice(part) for part in walk(expr))


def is_choice(part: Any) -> bool:
    """Whether a call chooses between values, and is no call of anything."""
    return isinstance(part, PrimCall) and part.op in ("if_then_else", "likely")
