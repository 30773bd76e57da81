"""Linear reasoning about dimensions: Fourier-Motzkin elimination, each monomial a variable.

Source: Fourier, 1827, and Motzkin, 1936, as in Schrijver, Theory of linear and integer programming, 1986.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from weft.ir.dim.expression import Dim, DimExpr, atom_dim, divide_monomials, make_expression, terms_of
from weft.ir.dim.intervals import NATURAL, interval_of, monomial_interval
from weft.ir.dim.representation import ONE, Atom, Interval, Monomial, make_monomial, only_atom

_MAX_ROWS = 160
_MAX_MONOMIALS = 24
_Row: TypeAlias = "dict[Monomial, int]"


@lru_cache(maxsize=1 << 12)
def known_bounds(assumptions: tuple[Dim, ...]) -> Mapping[str, Interval]:
    """Bounds of the symbols that follow from the assumptions one at a time."""
    known: dict[str, Interval] = {}
    linear = [d for d in assumptions if isinstance(d, DimExpr) and d.terms[0][0].degree == 1]
    single = [
        (atom.arguments[0], coefficient, assumption - make_expression({monomial: coefficient}))
        for assumption in linear
        for monomial, coefficient in assumption.terms
        if (atom := only_atom(monomial)) is not None and atom.kind == "symbol"
    ]
    for _ in range(min(len(linear), 4)):  # one fact may bound what the next one speaks about
        before = dict(known)
        for name, coefficient, rest in single:
            _tighten(known, name, coefficient, rest)
        if known == before:
            break
    return known


def _tighten(known: dict[str, Interval], name: str, coefficient: int, rest: Dim) -> None:
    """Uses coefficient * name + rest >= 0."""
    most = interval_of(rest, known)[1]
    low, high = known.get(name, NATURAL)
    if math.isinf(most):
        return
    if coefficient < 0:
        high = min(high, most // -coefficient)
    else:
        low = max(low, -(most // coefficient))
    if low <= high:  # otherwise the facts exclude each other, which elimination finds
        known[name] = low, high


def nonnegative_linearly(goal: Dim, assumptions: tuple[Dim, ...]) -> bool:
    """Whether goal >= 0 follows linearly from the assumptions and from what its atoms mean; True is a proof."""
    known = known_bounds(assumptions)
    if interval_of(goal, known)[0] >= 0:
        return True
    if not isinstance(goal, DimExpr) and not assumptions:
        return False
    facts = [*assumptions, *_raised_assumptions(goal, assumptions)]
    rows = [-goal - 1, *facts, *_axioms([goal, *facts], known)]
    return _infeasible([terms_of(row) for row in rows])


def _raised_assumptions(goal: Dim, assumptions: tuple[Dim, ...]) -> Iterator[Dim]:
    """Assumptions times the symbols of the goal's products: from n <= m follows n * k <= m * k."""
    if isinstance(goal, DimExpr) and goal.terms[0][0].degree == 2:
        atoms = {atom: None for monomial, _ in goal.terms if monomial.degree == 2 for atom, _ in monomial.powers}
        factors = [atom_dim(atom) for atom in atoms if atom.kind == "symbol"][:3]
        for assumption in assumptions[:4]:
            if isinstance(assumption, DimExpr) and assumption.terms[0][0].degree == 1:
                yield from (assumption * factor for factor in factors)


def _axioms(dims: Iterable[Dim], known: Mapping[str, Interval]) -> Iterator[Dim]:
    """Dimensions that are nonnegative because of what the monomials mean."""
    queue = list(dict.fromkeys(monomial for d in dims for monomial in terms_of(d) if monomial is not ONE))
    limit = 1 + max((monomial.degree for monomial in queue), default=0)
    seen = set(queue)
    used: set[tuple[Atom, Dim]] = set()
    for monomial in queue:  # grows while it is walked
        variable = make_expression({monomial: 1})
        low, high = monomial_interval(monomial, known)
        if not math.isinf(low):
            yield variable - int(low)
        if not math.isinf(high):
            yield int(high) - variable
        for atom, _ in monomial.powers:
            cofactor = make_expression({divide_monomials(monomial, make_monomial(((atom, 1),))) or ONE: 1})
            square = divide_monomials(monomial, make_monomial(((atom, 2),)))
            if square is not None and monomial_interval(square, known)[0] >= 0:
                yield variable - cofactor  # x * x >= x for every integer
            if atom.kind == "symbol" or interval_of(cofactor, known)[0] < 0:
                continue
            factors = [factor for factor in dict.fromkeys((1, cofactor)) if (atom, factor) not in used]
            used.update((atom, factor) for factor in factors)
            for row in [factor * axiom for factor in factors for axiom in atom_axioms(atom, known)]:
                new = [m for m in terms_of(row) if m is not ONE and m not in seen]
                # The symbols of a long sum take few rows: what grows is the number of products and quotients.
                if all(m.degree <= limit for m in new) and _compound([*queue, *new]) <= _MAX_MONOMIALS:
                    queue.extend(new)
                    seen.update(new)
                    yield row


def _compound(monomials: Iterable[Monomial]) -> int:
    """How many of them are no symbols."""
    return sum(monomial.degree > 1 or monomial.powers[0][0].kind != "symbol" for monomial in monomials)


def atom_axioms(atom: Atom, known: Mapping[str, Interval]) -> Iterator[Dim]:
    """What is nonnegative because of what the atom means."""
    value = atom_dim(atom)
    if atom.kind == "min":
        yield from (argument - value for argument in atom.arguments)
    elif atom.kind == "floordiv":
        dividend, divisor = atom.arguments
        if interval_of(divisor, known)[0] >= 0:  # not zero, as the division has a value
            yield dividend - divisor * value
            yield divisor * value + divisor - 1 - dividend
            if isinstance(divisor, DimExpr):
                yield divisor - 1
                if interval_of(value, known)[0] >= 0:
                    yield divisor * value - value


def _infeasible(rows: list[_Row]) -> bool:
    """Whether no integers satisfy all rows >= 0 (False: not shown)."""
    table: dict[tuple[tuple[Monomial, int], ...], int] = {}
    for row in rows:
        if not _add_row(table, row):
            return True
    while table:
        counts: dict[Monomial, list[int]] = {}
        for key in table:
            for monomial, coefficient in key:
                counts.setdefault(monomial, [0, 0])[coefficient > 0] += 1
        victim = min(counts, key=lambda m: (counts[m][0] * counts[m][1] - sum(counts[m]), m.key))
        if len(table) + counts[victim][0] * counts[victim][1] > _MAX_ROWS:
            return False
        table_or_none = _eliminate(table, victim)
        if table_or_none is None:
            return True
        table = table_or_none
    return False


def _add_row(table: dict[tuple[tuple[Monomial, int], ...], int], row: _Row) -> bool:
    """Adds a row, divided by its content; False when it is a constant below zero."""
    constant = row.pop(ONE, 0)
    items = [(monomial, coefficient) for monomial, coefficient in row.items() if coefficient]
    if not items:
        return constant >= 0
    divisor = math.gcd(*(coefficient for _, coefficient in items))
    key = tuple(sorted(((m, coefficient // divisor) for m, coefficient in items), key=lambda item: id(item[0])))
    constant //= divisor
    table[key] = min(constant, table.get(key, constant))
    return True


def _eliminate(
    table: dict[tuple[tuple[Monomial, int], ...], int], victim: Monomial
) -> dict[tuple[tuple[Monomial, int], ...], int] | None:
    """The rows without one monomial; None when they contradict each other."""
    result: dict[tuple[tuple[Monomial, int], ...], int] = {}
    below: list[tuple[_Row, int]] = []
    above: list[tuple[_Row, int]] = []
    for key, constant in table.items():
        row = dict(key)
        coefficient = row.pop(victim, 0)
        if coefficient == 0:
            result[key] = constant
            continue
        row[ONE] = constant
        (below if coefficient > 0 else above).append((row, abs(coefficient)))
    for low, one in below:
        for high, other in above:
            row = {m: low.get(m, 0) * other + high.get(m, 0) * one for m in (*low, *high)}
            if not _add_row(result, row):
                return None
    return result
