"""Formulas of positions: integers, conditions on them, and what a condition chooses.

    element   ::= integer | float | condition | Choice(condition, element, element)
    integer   ::= dim                             over the symbols of positions and sizes
    condition ::= True | False | All(dims)        each of the dims is at least 0

A condition that cannot be written so, and a choice that is no simpler than two elements, are unknown: None. Nothing
here is a guess: what a formula says holds for all sizes and positions that the facts allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from weft.ir.dim import Dim, DimExpr, Facts, prove_equal, prove_nonnegative
from weft.support.records import dataclass

__all__ = [
    "SMALL",
    "All",
    "Choice",
    "Condition",
    "Element",
    "both",
    "choose",
    "is_dim",
    "is_nonnegative",
    "mapped",
    "negated",
]

SMALL = 1 << 30
"""Numbers and factors in formulas are below it in absolute value."""


@dataclass(frozen=True)
class All:
    """Each of some integers is at least 0; there is one at least, and none is known to be."""

    dims: tuple[Dim, ...]


Condition: TypeAlias = "bool | All"


@dataclass(frozen=True)
class Choice:
    """One element where a condition holds, another where it does not."""

    condition: All
    then: Element
    otherwise: Element


Element: TypeAlias = "Dim | float | Condition | Choice"


def is_dim(element: Element | None) -> bool:
    """Whether an element is an integer."""
    return isinstance(element, (int, DimExpr)) and not isinstance(element, bool)


def is_nonnegative(value: Dim, facts: Facts) -> Condition:
    """Whether an integer is at least 0."""
    known = prove_nonnegative(value, facts)
    return All((value,)) if known is None else known


def negated(condition: Condition, facts: Facts) -> Condition | None:
    """Where a condition does not hold; None for more than one integer."""
    if isinstance(condition, bool):
        return not condition
    return is_nonnegative(-condition.dims[0] - 1, facts) if len(condition.dims) == 1 else None


def both(first: Condition, second: Condition) -> Condition:
    """Where two conditions hold."""
    if isinstance(first, bool):
        return second if first else False
    if isinstance(second, bool):
        return first if second else False
    return All(tuple(dict.fromkeys((*first.dims, *second.dims))))


def _equal(first: Element, second: Element, facts: Facts) -> bool:
    if isinstance(first, (int, DimExpr)) and isinstance(second, (int, DimExpr)) and is_dim(first) and is_dim(second):
        return prove_equal(first, second, facts) is True
    return type(first) is type(second) and first == second


def choose(condition: Condition, then: Element, otherwise: Element, facts: Facts) -> Element | None:
    """The one element where a condition holds, and the other elsewhere."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    within = facts
    for dim in condition.dims:
        within = within.assume_le(0, dim)
    if _equal(then, otherwise, within):
        return otherwise
    opposite = negated(condition, facts)
    if isinstance(opposite, All) and _equal(then, otherwise, facts.assume_le(0, opposite.dims[0])):
        return then
    if isinstance(then, Choice) and _equal(then.otherwise, otherwise, facts):
        inner = both(condition, then.condition)
        return choose(inner, then.then, otherwise, facts)
    if isinstance(then, (bool, All)) and otherwise is False:
        return both(condition, then)
    return Choice(condition, then, otherwise)


def mapped(make: Callable[[Element], Element | None], element: Element, facts: Facts) -> Element | None:
    """What is made of an element, on both sides of a choice."""
    if not isinstance(element, Choice):
        return make(element)
    then, otherwise = mapped(make, element.then, facts), mapped(make, element.otherwise, facts)
    if then is None or otherwise is None:
        return None
    return choose(element.condition, then, otherwise, facts)
