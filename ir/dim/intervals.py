"""Bounds of dimensions by interval arithmetic: cheap, sound, not tight.

Source: Moore, Interval analysis, 1966.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.ir.dim.representation import Atom, Bound, Interval, Monomial, Polynomial

_INFINITY = math.inf
NATURAL: Interval = (0, _INFINITY)
_UNKNOWN: Interval = (-_INFINITY, _INFINITY)
NO_BOUNDS: Mapping[str, Interval] = {}


def _scaled(a: Bound, b: Bound) -> Bound:
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):
        return _INFINITY if (a > 0) == (b > 0) else -_INFINITY
    return a * b


def _plus(a: Bound, b: Bound) -> Bound:
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def interval_of(d: int | Polynomial, known: Mapping[str, Interval] = NO_BOUNDS) -> Interval:
    """Bounds of the dimension by interval arithmetic; cheap, sound, not tight."""
    if not isinstance(d, Polynomial):
        return d, d
    if not known and d.known_interval is not None:
        return d.known_interval
    low: Bound = 0
    high: Bound = 0
    for monomial, coefficient in d.terms:
        bottom, top = monomial_interval(monomial, known)
        if coefficient < 0:
            bottom, top = top, bottom
        low, high = _plus(low, _scaled(coefficient, bottom)), _plus(high, _scaled(coefficient, top))
    if not known:
        d.known_interval = low, high
    return low, high


def monomial_interval(monomial: Monomial, known: Mapping[str, Interval]) -> Interval:
    """Bounds of a product of atoms."""
    if len(monomial.powers) == 1 and monomial.powers[0][1] == 1:  # most are
        return atom_interval(monomial.powers[0][0], known)
    result: Interval = (1, 1)
    for atom, power in monomial.powers:
        base = atom_interval(atom, known)
        if power % 2 == 0 and base[0] < 0:
            top = max(abs(base[0]), abs(base[1]))
            base = (0 if base[1] >= 0 else min(abs(base[0]), abs(base[1])), top)
        factor: Interval = (1, 1)
        for _ in range(power):
            factor = _product_interval(factor, base)
        result = _product_interval(result, factor)
    return result


def _product_interval(a: Interval, b: Interval) -> Interval:
    corners = [_scaled(x, y) for x in a for y in b]
    return min(corners), max(corners)


def atom_interval(atom: Atom, known: Mapping[str, Interval]) -> Interval:
    """Bounds of an atom, where symbols have the known ones and are not negative otherwise."""
    if atom.kind == "symbol":
        return known.get(atom.arguments[0], NATURAL)
    arguments = [interval_of(argument, known) for argument in atom.arguments]
    if atom.kind == "min":
        return min(low for low, _ in arguments), min(high for _, high in arguments)
    if atom.kind == "max":
        return max(low for low, _ in arguments), max(high for _, high in arguments)
    if atom.kind == "floordiv":
        return quotient_interval(*arguments)
    return _remainder_interval(*arguments)


def _floor_bound(a: Bound, b: Bound) -> Bound:
    """a // b in the limit, for b >= 1."""
    if isinstance(a, float):
        return a
    if isinstance(b, float):
        return 0 if a >= 0 else -1
    return a // b


def quotient_interval(a: Interval, b: Interval) -> Interval:
    """Bounds of a // b."""
    if b[0] < 0:
        return _UNKNOWN
    least, most = max(b[0], 1), max(b[1], 1)
    corners = [_floor_bound(x, y) for x in a for y in (least, most)]
    return min(corners), max(corners)


def _remainder_interval(a: Interval, b: Interval) -> Interval:
    if b[0] < 0:
        return _UNKNOWN
    top = _plus(max(b[1], 1), -1)
    return 0, min(top, a[1]) if a[0] >= 0 else top
