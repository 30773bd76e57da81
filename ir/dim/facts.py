"""What is assumed of symbols, and its solved form: symbols rewritten over parameters that are free."""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.errors import ShapeError
from weft.ir.dim.expression import Dim, DimExpr, as_dim, atom_dim, symbol, terms_of
from weft.ir.dim.inspection import evaluate, free_symbols, same, substitute
from weft.ir.dim.intervals import interval_of
from weft.ir.dim.linear import nonnegative_linearly
from weft.ir.dim.normal_form import normal_form
from weft.ir.dim.representation import ONE
from weft.support.forks import cached_property
from weft.support.records import dataclass


@dataclass(frozen=True)
class Facts:
    """An immutable set of learnt equalities and bounds, under which the prove functions answer.

    >>> from weft.ir.dim import prove_equal, symbol
    >>> n, m = symbol("n"), symbol("m")
    >>> prove_equal(n // 2, m, Facts().assume_equal(n, 2 * m))
    True
    """

    equalities: tuple[tuple[Dim, Dim], ...] = ()
    orders: tuple[tuple[Dim, Dim], ...] = ()

    def assume_equal(self, a: Dim, b: Dim) -> Facts:
        """These facts and ``a == b``."""
        return self if same(a, b) else Facts((*self.equalities, (as_dim(a), as_dim(b))), self.orders)

    def assume_le(self, a: Dim, b: Dim) -> Facts:
        """These facts and ``a <= b``."""
        return self if same(a, b) else Facts(self.equalities, (*self.orders, (as_dim(a), as_dim(b))))

    def assume_nonnegative(self, d: Dim) -> Facts:
        """These facts and ``d >= 0``, which says something of ``n - 1`` and nothing of ``n``."""
        return self.assume_le(0, d) if isinstance(d, DimExpr) and interval_of(d)[0] < 0 else self

    def assume_bounds(self, name: str, low: int | None = None, high: int | None = None) -> Facts:
        """These facts and ``low <= name <= high``; None leaves a side open."""
        facts = self if low is None else self.assume_le(low, symbol(name))
        return facts if high is None else facts.assume_le(symbol(name), high)

    def simplify(self, d: Dim) -> Dim:
        """The dimension after the equalities that define a symbol by others (``n == 2 * m``)."""
        for name, value in self._definitions:
            d = substitute(d, {name: value})
        return d

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether these symbol values satisfy every fact (and give each a value)."""
        try:
            return all(evaluate(a, values) == evaluate(b, values) for a, b in self.equalities) and all(
                evaluate(a, values) <= evaluate(b, values) for a, b in self.orders
            )
        except ShapeError as error:
            if error.code != "W280":
                raise
            return False

    @cached_property
    def names(self) -> frozenset[str]:
        """The symbols that the facts speak about."""
        dims = [side for pair in (*self.equalities, *self.orders) for side in pair]
        return frozenset[str]().union(*(d.names for d in dims if isinstance(d, DimExpr)))

    @cached_property
    def contradictory(self) -> bool:
        """Whether the facts are proved to exclude each other (False may mean: not found)."""
        return not self._have_easy_witness() and nonnegative_linearly(-1, self.world.assumptions)

    def _have_easy_witness(self) -> bool:
        """Whether small values of the symbols satisfy all facts: all 0, or large where a bound grows with a symbol."""
        growing = {
            name
            for a, b in self.orders
            for monomial, factor in terms_of(b - a).items()
            if factor > 0 and monomial is not ONE
            for atom, _ in monomial.powers
            for name in atom.names
        }
        zeros = dict.fromkeys(self.names, 0)
        return self.holds(zeros) or self.holds(zeros | dict.fromkeys(growing, 64))

    @cached_property
    def _definitions(self) -> tuple[tuple[str, Dim], ...]:
        found: list[tuple[str, Dim]] = []
        for a, b in self.equalities:
            difference = a - b
            for name, value in found:
                difference = substitute(difference, {name: value})
            definition = _definition_in(difference)
            if definition is not None:
                found.append(definition)
        return tuple(found)

    @cached_property
    def world(self) -> _World:
        """The facts in solved form."""
        return _world_of(self)


NO_FACTS = Facts()


@dataclass(frozen=True)
class _World:
    """Facts in solved form: symbols rewritten step by step over new parameters, and what is left as ``d >= 0``.

    A step may map a name to an expression over the same name (``n`` to ``4 * n + 1``): after it the name stands for the
    new, nonnegative parameter.
    """

    steps: tuple[Mapping[str, Dim], ...]
    assumptions: tuple[Dim, ...]

    def translate(self, d: Dim) -> Dim | None:
        """The dimension over the parameters; None where the facts make it a division by zero."""
        try:
            for step in self.steps:
                d = substitute(d, step)
        except ShapeError as error:
            if error.code != "W280":
                raise
            return None
        return d


def _world_of(facts: Facts) -> _World:
    steps: list[Mapping[str, Dim]] = []
    zeros: list[Dim] = [a - b for a, b in facts.equalities]
    positives: list[Dim] = [b - a for a, b in facts.orders]
    for _ in range(64):
        step = _next_step(zeros, positives)
        if step is None:
            break
        after = _moved(step, zeros, positives)
        if after is None:
            break
        steps.append(step)
        zeros, positives = after
        positives.extend(value for value in step.values() if interval_of(value)[0] < 0)
    rest = [side for zero in zeros if zero != 0 for side in (zero, -zero)] + positives
    kept = [d for d in map(normal_form, rest) if interval_of(d)[0] < 0]
    return _World(tuple(steps), tuple(dict.fromkeys(kept)))


def _moved(step: Mapping[str, Dim], zeros: list[Dim], positives: list[Dim]) -> tuple[list[Dim], list[Dim]] | None:
    """What is known after a step; None where it divides by zero or multiplies products out past all use."""
    moved = _World((step,), ())
    try:
        found = [moved.translate(d) for d in (*zeros, *positives)]
    except ShapeError as error:
        if error.code not in ("W281", "W282"):
            raise
        return None
    after = [d for d in found if d is not None]
    if len(after) < len(found) or sum(len(terms_of(d)) for d in after) > _MAX_TERMS:
        return None
    return after[: len(zeros)], after[len(zeros) :]


_MAX_TERMS = 1 << 8
"""The terms of all facts together: n0 * n1 * ... of eight symbols that are at least 1 has so many alone."""


def _next_step(zeros: list[Dim], positives: list[Dim]) -> dict[str, Dim] | None:
    for zero in zeros:
        definition = _definition_in(zero)
        if definition is not None:
            return dict([definition])
        step = _ratio_step(zero) or _residue_step(zero)
        if step is not None:
            return step
    for positive in positives:
        least = _least_value(positive)
        if least is not None:
            return {least[0]: symbol(least[0]) + least[1]}
    for positive in positives:
        step = _above_step(positive)
        if step is not None:
            return step
    return None


def _above_step(positive: Dim) -> dict[str, Dim] | None:
    """The step for ``name >= rest`` with a rest that is never negative: name becomes the rest and a new parameter."""
    if not isinstance(positive, DimExpr) or len(positive.terms) < 2:
        return None
    for monomial, coefficient in positive.terms:
        if coefficient == 1 and monomial.degree == 1 and monomial.powers[0][0].kind == "symbol":
            name = monomial.powers[0][0].arguments[0]
            rest = symbol(name) - positive
            if name not in free_symbols(rest) and interval_of(rest)[0] >= 0:
                return {name: rest + symbol(name)}
    return None


def _least_value(positive: Dim) -> tuple[str, int] | None:
    """(name, least) where ``positive >= 0`` says ``name >= least > 0`` and nothing else."""
    if isinstance(positive, DimExpr) and len(positive.terms) == 2:
        (monomial, coefficient), (last, constant) = positive.terms
        if last is ONE and monomial.degree == 1 and monomial.powers[0][0].kind == "symbol":
            if coefficient > 0 and constant < 0:
                return monomial.powers[0][0].arguments[0], -(constant // coefficient)
    return None


def _definition_in(zero: Dim) -> tuple[str, Dim] | None:
    """(name, value) that ``zero == 0`` says, where a symbol stands alone with coefficient 1 or -1."""
    if not isinstance(zero, DimExpr):
        return None
    candidates: list[tuple[bool, str, Dim]] = []
    for monomial, coefficient in zero.terms:
        if monomial.degree == 1 and abs(coefficient) == 1 and monomial.powers[0][0].kind == "symbol":
            name = monomial.powers[0][0].arguments[0]
            rest = zero - coefficient * symbol(name)
            if name not in free_symbols(rest):
                value = -coefficient * rest
                candidates.append((interval_of(value)[0] < 0, name, value))
    if not candidates:
        return None
    _, name, value = min(candidates, key=lambda candidate: candidate[:2])
    return name, value


def _ratio_step(zero: Dim) -> dict[str, Dim] | None:
    """The step for ``a * x == b * y``: x and y in terms of one parameter."""
    if not isinstance(zero, DimExpr) or len(zero.terms) != 2:
        return None
    (first, one), (second, other) = zero.terms
    if first.degree != 1 or second.degree != 1 or (one < 0) == (other < 0):
        return None
    atoms = first.powers[0][0], second.powers[0][0]
    if atoms[0].kind != "symbol" or atoms[1].kind != "symbol":
        return None
    divisor = math.gcd(one, other)
    parameter = atom_dim(atoms[0])
    return {
        atoms[0].arguments[0]: abs(other) // divisor * parameter,
        atoms[1].arguments[0]: abs(one) // divisor * parameter,
    }


def _residue_step(zero: Dim) -> dict[str, Dim] | None:
    """The step for a fact such as ``n % 4 == 1`` that leaves one residue of its only symbol."""
    names = free_symbols(zero)
    period = period_of(normal_form(zero), names[0]) if len(names) == 1 else 1
    if not 1 < period <= 256:
        return None
    possible: list[Dim] = []
    for residue in range(period):
        image = period * symbol(names[0]) + residue
        value = normal_form(substitute(zero, {names[0]: image}))
        if isinstance(value, DimExpr):
            return None
        if value == 0:
            possible.append(image)
    return {names[0]: possible[0]} if len(possible) == 1 else None


def period_of(d: Dim, name: str) -> int:
    """P such that replacing the symbol by P * symbol + r removes it from every division by a constant; 1 for none."""
    result = 1
    for monomial in terms_of(d):
        for atom, _ in monomial.powers:
            if atom.kind == "floordiv" and name in atom.names and isinstance(atom.arguments[1], int):
                result = math.lcm(result, atom.arguments[1] * period_of(atom.arguments[0], name))
            elif atom.kind != "symbol" and name in atom.names:
                result = math.lcm(result, *(period_of(argument, name) for argument in atom.arguments))
    return result
