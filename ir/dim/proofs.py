"""Questions about dimensions, answered True, False or None: normal forms, cases, linear reasoning, factors.

True and False are proofs. A claim is first tried at points; what is left is shown directly, in each of a complete set
of cases (arguments of a minimum, residues of a symbol, zero or not), or for the factors that sympy finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from itertools import product as cartesian
from typing import Any, TypeAlias

from weft.errors import ShapeError
from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    as_dim,
    atom_dim,
    content_of,
    floordiv,
    product,
    scaled_down,
    symbol,
    terms_of,
    unchecked_symbol,
)
from weft.ir.dim.facts import Facts, period_of
from weft.ir.dim.formatting import load_sympy, to_sympy
from weft.ir.dim.inspection import BUILD, evaluate, evaluator, free_symbols, map_atoms, substitute
from weft.ir.dim.intervals import NO_BOUNDS, atom_interval, interval_of
from weft.ir.dim.linear import atom_axioms, known_bounds, nonnegative_linearly
from weft.ir.dim.normal_form import normal_form
from weft.ir.dim.representation import ONE, Atom, only_atom
from weft.ir.dim.samples import candidate_points, sample_points

_Case: TypeAlias = "tuple[Dim, tuple[Dim, ...]]"
_MAX_CASES = 200
_MAX_PERIOD = 64
_MAX_SPLITS = 4


class _Fuel:
    """How many more cases one question may look at."""

    def __init__(self) -> None:
        self.left = _MAX_CASES

    def burn(self, cases: int) -> bool:
        self.left -= cases
        return self.left >= 0


def _proved_zero(d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    return d == 0 or (
        bool(assumptions) and nonnegative_linearly(d, assumptions) and nonnegative_linearly(-d, assumptions)
    )


def _proved_nonzero(d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    if isinstance(d, DimExpr):
        divisor = content_of(terms_of(d), 0)
        if terms_of(d).get(ONE, 0) % divisor:
            return True
    elif d != 0:
        return True
    return nonnegative_linearly(d - 1, assumptions) or nonnegative_linearly(-d - 1, assumptions)


_Claim: TypeAlias = Callable[[Dim, "tuple[Dim, ...]"], bool]


def _proved(claim: _Claim, d: Dim, assumptions: tuple[Dim, ...], fuel: _Fuel, splits: int = _MAX_SPLITS) -> bool:
    """Whether the claim holds of a normal form, directly or in each of a complete set of cases."""
    if claim(d, assumptions):
        return True
    if splits == 0 or not isinstance(d, DimExpr):
        return False
    cases = _cases(d, assumptions)
    if cases is None or not fuel.burn(len(cases)):
        return False
    return all(_proved(claim, case, given, fuel, splits - 1) for case, given in cases)


def _cases(d: DimExpr, assumptions: tuple[Dim, ...]) -> list[_Case] | None:
    atoms = list(_all_atoms(d))
    for atom in atoms:
        if atom.kind == "min":
            return _defined(partial(_minimum_case, d, assumptions, atom, argument) for argument in atom.arguments)
    for atom in atoms:
        if atom.kind == "floordiv" and isinstance(atom.arguments[1], int):
            for inner in _all_atoms(atom.arguments[0]):
                if inner.kind == "floordiv" and isinstance(inner.arguments[1], DimExpr):
                    return _opaque_cases(d, assumptions, inner)
    periods = [(period_of(d, name), name) for name in sorted(d.names)]
    for period, name in periods:
        coarse = _coarser(d, assumptions, name) if period > _MAX_PERIOD else None
        if coarse is not None:
            return [coarse]
    periods = [item for item in periods if 1 < item[0] <= _MAX_PERIOD]
    if periods:
        period, name = min(periods)
        images: list[Dim] = [period * unchecked_symbol(name) + residue for residue in range(period)]
        return _defined(partial(_substituted, d, assumptions, {name: image}) for image in images)
    names = [name for name in sorted(d.names) if _nonlinear_in(d, name)]
    if names:
        name = names[0]
        return _defined(
            partial(_substituted, d, assumptions, {name: value}) for value in (0, unchecked_symbol(name) + 1)
        )
    return None


def _defined(cases: Iterable[Callable[[], _Case]]) -> list[_Case]:
    """The cases in which the dimension and the assumptions have a value."""
    found: list[_Case] = []
    for case in cases:
        try:
            found.append(case())
        except ShapeError as error:
            if error.code != "W280":
                raise
    return found


def _substituted(d: Dim, assumptions: tuple[Dim, ...], values: Mapping[str, Dim]) -> _Case:
    given = tuple(normal_form(substitute(assumption, values)) for assumption in assumptions)
    return normal_form(substitute(d, values)), given


def _minimum_case(d: Dim, assumptions: tuple[Dim, ...], atom: Atom, chosen: Dim) -> _Case:
    given = [normal_form(_replace_atom(assumption, atom, chosen)) for assumption in assumptions]
    given += [normal_form(other - chosen) for other in atom.arguments if other is not chosen]
    return normal_form(_replace_atom(d, atom, chosen)), tuple(given)


def _opaque_cases(d: Dim, assumptions: tuple[Dim, ...], atom: Atom) -> list[_Case]:
    """The division by a symbol as a new symbol, of which only the axioms are kept; it can then be split by residues."""
    value = unchecked_symbol(f"({atom.text})")  # no name of a user's
    images: list[Dim] = [value] if atom_interval(atom, NO_BOUNDS)[0] >= 0 else [value, -value - 1]
    known = (*assumptions, *atom_axioms(atom, NO_BOUNDS))

    def case(image: Dim) -> _Case:
        given = tuple(normal_form(_replace_atom(assumption, atom, image)) for assumption in known)
        return normal_form(_replace_atom(d, atom, image)), given

    return _defined(partial(case, image) for image in images)


def _replace_atom(d: Dim, atom: Atom, value: Dim) -> Dim:
    images: dict[Atom, Dim] = {atom: value}

    def replace(candidate: Atom) -> Dim:
        if candidate.kind == "symbol":
            return atom_dim(candidate)
        return BUILD[candidate.kind](*(map_atoms(argument, replace, images) for argument in candidate.arguments))

    return map_atoms(d, replace, images)


def _all_atoms(d: Dim, seen: set[Atom] | None = None) -> Iterator[Atom]:
    """Every atom of the dimension once, inner ones first."""
    seen = set() if seen is None else seen
    for monomial in terms_of(d):
        for atom, _ in monomial.powers:
            if atom in seen:
                continue
            seen.add(atom)
            if atom.kind != "symbol":
                for argument in atom.arguments:
                    yield from _all_atoms(argument, seen)
            yield atom


def _coarser(d: Dim, assumptions: tuple[Dim, ...], name: str) -> _Case | None:
    """The case n == g * q + r with 0 <= r < g, where every division of n looks only at q; q is called n again."""
    dims = (d, *assumptions)
    divisions = [atom for dim in dims for atom in _all_atoms(dim) if atom.kind != "symbol" and name in atom.names]
    grain = 0
    for atom in divisions:
        dividend, divisor = (*atom.arguments, None)[:2]
        offset = dividend - unchecked_symbol(name) if isinstance(dividend, DimExpr) else 0
        if atom.kind != "floordiv" or not isinstance(divisor, int) or name in free_symbols(offset):
            return None
        grain = math.gcd(grain, divisor, *terms_of(offset).values())
    if grain <= 1:
        return None
    rest = unchecked_symbol(name + "'")  # no name of a user's

    def coarse(atom: Atom) -> Dim:
        if atom.kind == "symbol":
            return grain * unchecked_symbol(name) + rest if atom.arguments[0] == name else atom_dim(atom)
        if name not in atom.names:
            return atom_dim(atom)
        offset = atom.arguments[0] - unchecked_symbol(name)
        return floordiv(unchecked_symbol(name) + scaled_down(terms_of(offset), grain), atom.arguments[1] // grain)

    given = [normal_form(map_atoms(assumption, coarse)) for assumption in assumptions]
    return normal_form(map_atoms(d, coarse)), (*given, grain - 1 - rest)


def _nonlinear_in(d: DimExpr, name: str) -> bool:
    for monomial, _ in d.terms:
        if monomial.degree > 1 or (monomial.degree == 1 and monomial.powers[0][0].kind != "symbol"):
            if any(name in atom.names for atom, _ in monomial.powers):
                return True
    return False


def _value_at(d: Dim, assumptions: Iterable[Dim], point: Mapping[str, int]) -> int | None:
    """The value at a point; None where it has none or an assumption fails."""
    value = evaluator(point)
    try:
        if all(value(assumption) >= 0 for assumption in assumptions):
            return value(d)
    except ShapeError:
        pass
    return None


def _signs(d: DimExpr, assumptions: tuple[Dim, ...]) -> set[int]:
    names = tuple(sorted(d.names.union(*(set(free_symbols(assumption)) for assumption in assumptions))))
    values = (_value_at(d, assumptions, point) for point in sample_points(names, 24))
    return {(value > 0) - (value < 0) for value in values if value is not None}


def _question(a: Dim, b: Dim, facts: Facts | None) -> tuple[Dim, tuple[Dim, ...]]:
    """b - a, and what may be assumed, over the parameters of the facts."""
    difference = as_dim(b) - as_dim(a)
    if facts is None or not isinstance(difference, DimExpr) or not (facts.equalities or facts.orders):
        return normal_form(difference), ()
    try:
        translated = facts.world.translate(difference)
    except ShapeError as error:  # products of what many sizes stand for: what is asked is answered without the facts
        _only_limits(error)
        translated = None
    return (normal_form(difference), ()) if translated is None else (normal_form(translated), facts.world.assumptions)


def _never_divisible(d: DimExpr) -> bool:
    """Whether a polynomial is never zero because of its residues: n * n is never 4 * m + 2."""
    if d.nesting or d.size > 64:
        return False
    names = sorted(d.names)
    for modulus in (2, 3, 4, 5, 8):
        if modulus ** len(names) <= 64:
            points = cartesian(range(modulus), repeat=len(names))
            if all(evaluate(d, dict(zip(names, point, strict=True))) % modulus for point in points):
                return True
    return False


def _only_limits(error: ShapeError) -> None:
    """Gives up a proof whose cases grew past the limits; anything else is an error of ours."""
    if error.code not in ("W281", "W282"):
        raise error


@lru_cache(maxsize=1 << 14)
def _decide_zero(d: Dim, assumptions: tuple[Dim, ...]) -> bool | None:
    if not isinstance(d, DimExpr):
        return d == 0
    signs = _signs(d, assumptions)
    if 0 in signs and len(signs) > 1:
        return None
    try:
        if signs <= {0} and _proved(_proved_zero, d, assumptions, _Fuel()):
            return True
        if 0 not in signs:
            if _proved(_proved_nonzero, d, assumptions, _Fuel()) or _never_divisible(d):
                return False
            if _factors_prove(_proved_nonzero, d, assumptions):
                return False
            if any(_factors_prove(nonnegative_linearly, side, assumptions) for side in (d - 1, -d - 1)):
                return False
    except ShapeError as error:
        _only_limits(error)
    return None


def _generalized(d: DimExpr) -> DimExpr | None:
    """The dimension with a symbol for a long sum that it divides: s - 16 * (s // 16) is not negative for any s >= 0."""
    for dividend in dict.fromkeys(atom.arguments[0] for atom in _all_atoms(d) if atom.kind == "floordiv"):
        if isinstance(dividend, DimExpr) and len(dividend.terms) > _LONG_SUM and interval_of(dividend)[0] >= 0:
            (monomial, coefficient), image = dividend.terms[0], unchecked_symbol(f"({dividend})")  # no name of a user's
            images: dict[Atom, Dim] = {
                atom: floordiv(image, atom.arguments[1])
                for atom in _all_atoms(d)
                if atom.kind == "floordiv" and atom.arguments[0] is dividend
            }
            times = terms_of(d).get(monomial, 0) // coefficient
            made = normal_form(map_atoms(d, atom_dim, images) + times * (image - dividend))
            if isinstance(made, DimExpr) and made.size < d.size:
                return made
    return None


_LONG_SUM = 6
"""Proofs about sums of fewer terms look into their terms."""


def _choices_prove(d: Dim, assumptions: tuple[Dim, ...], fuel: _Fuel) -> bool:
    """Whether d >= 0 for every argument of its minima, and for some argument of each of its maxima (-min(...)).

    That is more than has to hold, and asks about sums alone, which come back again and again: of sizes that are the
    greatest of many sums, all cases of which one is the greatest would be far more work.
    """
    extremes = [(coefficient, atom) for atom, coefficient in _single_atoms(d) if atom.kind == "min"]
    if not extremes:
        return _directly_nonnegative(d, assumptions)
    coefficient, atom = max(extremes, key=lambda extreme: extreme[0])  # minima first: each may need another maximum
    rest = d - coefficient * atom_dim(atom)
    every = all if coefficient > 0 else any
    return fuel.burn(len(atom.arguments)) and every(
        _choices_prove(normal_form(rest + coefficient * argument), assumptions, fuel) for argument in atom.arguments
    )


@lru_cache(maxsize=1 << 14)
def _directly_nonnegative(d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    """Whether d >= 0 is proved without cases."""
    return not (isinstance(d, DimExpr) and -1 in _signs(d, assumptions)) and nonnegative_linearly(d, assumptions)


def _single_atoms(d: Dim) -> Iterator[tuple[Atom, int]]:
    """The atoms that are terms of the dimension, with their coefficients."""
    for monomial, coefficient in d.terms if isinstance(d, DimExpr) else ():
        atom = only_atom(monomial)
        if atom is not None:
            yield atom, coefficient


@lru_cache(maxsize=1 << 14)
def _decide_nonnegative(d: Dim, assumptions: tuple[Dim, ...]) -> bool | None:
    if not isinstance(d, DimExpr):
        return d >= 0
    signs = _signs(d, assumptions)
    try:
        if -1 not in signs:
            if any(atom.kind == "min" for atom, _ in _single_atoms(d)) and _choices_prove(d, assumptions, _Fuel()):
                return True
            general = _generalized(d)
            if general is not None and _decide_nonnegative(general, ()):
                return True
            claims = nonnegative_linearly
            if _proved(claims, d, assumptions, _Fuel()) or _factors_prove(claims, d, assumptions):
                return True
        opposite = -d - 1
        if signs <= {-1} and (
            _proved(nonnegative_linearly, opposite, assumptions, _Fuel())
            or _factors_prove(nonnegative_linearly, opposite, assumptions)
        ):
            return False
    except ShapeError as error:
        _only_limits(error)
    return None


def prove_equal(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a == b for all symbol values under the facts (True), for none (False), or None: it depends or is unknown.

    >>> n = symbol("n")
    >>> prove_equal((n + 1) // 2 + n // 2, n), prove_equal(2 * n, 2 * n + 1), prove_equal(n, 4)
    (True, False, None)
    """
    if a is b:
        return True
    return _decide_zero(*_question(a, b, facts))


def prove_ne(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a != b for all symbol values (True), for none (False), or None."""
    equal = prove_equal(a, b, facts)
    return None if equal is None else not equal


def prove_le(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a <= b for all symbol values under the facts (True), for none (False), or None.

    >>> n = symbol("n")
    >>> prove_le(n // 2, n), prove_le(n + 1, n), prove_le(n, 4)
    (True, False, None)
    """
    return _is_rounded_down(a, b) or _decide_nonnegative(*_question(a, b, facts))


def _is_rounded_down(a: Dim, b: Dim) -> bool:
    """Whether a is k * (b // k), in whatever way that is written."""
    divisor = content_of(terms_of(a), terms_of(a).get(ONE, 0)) if isinstance(a, DimExpr) else 1
    try:
        return divisor > 1 and a is divisor * floordiv(b, divisor)
    except ShapeError as error:
        _only_limits(error)
        return False


def prove_lt(a: Dim, b: Dim, facts: Facts | None = None) -> bool | None:
    """Whether a < b for all symbol values under the facts (True), for none (False), or None."""
    return prove_le(as_dim(a) + 1, b, facts)


def prove_nonnegative(d: Dim, facts: Facts | None = None) -> bool | None:
    """Whether d >= 0 for all symbol values under the facts (True), for none (False), or None."""
    return prove_le(0, d, facts)


def bounds(d: Dim, facts: Facts | None = None) -> tuple[int | None, int | None]:
    """Inclusive lower and upper bounds of the dimension; None where none is known.

    >>> bounds(symbol("n") % 8), bounds(symbol("n") + 1)
    ((0, 7), (1, None))
    """
    if not isinstance(d, DimExpr):
        return d, d
    image, assumptions = _question(0, d, facts)
    if not isinstance(image, DimExpr):
        return image, image
    known = known_bounds(assumptions)
    translated = None if facts is None else facts.world.translate(d)
    ends = [interval_of(form, known) for form in (image, d if translated is None else translated)]
    low, high = max(low for low, _ in ends), min(high for _, high in ends)
    names = tuple(sorted(image.names.union(*(set(free_symbols(assumption)) for assumption in assumptions))))
    points = [*sample_points(names, 24), *(islice(candidate_points(names), 200) if assumptions else ())]
    found = [value for value in (_value_at(image, assumptions, point) for point in points) if value is not None]
    # An extreme value that was seen is the bound if it can be proved to be one.
    if found and min(found) > low and _decide_nonnegative(image - min(found), assumptions):
        low = min(found)
    if found and max(found) < high and _decide_nonnegative(max(found) - image, assumptions):
        high = max(found)
    return None if math.isinf(low) else int(low), None if math.isinf(high) else int(high)


def _factors_prove(claim: _Claim, d: Dim, assumptions: tuple[Dim, ...]) -> bool:
    """Whether the claim (nonnegative, or nonzero) holds for each factor that can spoil it."""
    if not isinstance(d, DimExpr) or d.nesting or len(d.names) > 4 or d.size > 64:
        return False
    if not 2 <= d.terms[0][0].degree <= 8:
        return False
    constant, factors = _factor(d)
    if claim is nonnegative_linearly:
        if constant < 0:
            return False
        factors = [(factor, power) for factor, power in factors if power % 2]
    elif len(factors) == 1 and factors[0][1] == 1:
        return False
    return all(_proved(claim, normal_form(factor), assumptions, _Fuel()) for factor, _ in factors)


@lru_cache(maxsize=1 << 10)
def _factor(d: DimExpr) -> tuple[int, list[tuple[Dim, int]]]:
    """The constant and the irreducible factors, with their powers, of a polynomial."""
    sympy = load_sympy()
    symbols = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in sorted(d.names)}
    constant, factors = sympy.factor_list(to_sympy(d), *symbols.values())
    return int(constant), [(_from_polynomial(factor, symbols), int(power)) for factor, power in factors]


def _from_polynomial(expression: Any, symbols: Mapping[str, Any]) -> Dim:
    sympy = load_sympy()
    total: Dim = 0
    for powers, coefficient in sympy.Poly(expression, *symbols.values()).terms():
        total = total + product([int(coefficient), *(symbol(n) ** p for n, p in zip(symbols, powers, strict=True))])
    return total
