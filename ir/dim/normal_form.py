"""The normal form for proofs: no remainders, no maxima, every residue reduced."""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    atom_dim,
    content_of,
    floordiv,
    make_atom,
    make_expression,
    merge_nested_division,
    minimum,
    scaled_down,
    terms_of,
)
from weft.ir.dim.inspection import map_atoms
from weft.ir.dim.intervals import interval_of
from weft.ir.dim.representation import ONE, Atom, Monomial, term_key


def normal_form(d: Dim) -> Dim:
    """The dimension without ``%`` and ``max``, and with one spelling for divisions that differ by whole multiples.

    Canonical form keeps what a reader wants to see (``n % 4``, ``(n + 1) // 2``); here ``a % b`` is
    ``a - b * (a // b)``, so that identities between the two become equal polynomials.
    """
    if not isinstance(d, DimExpr):
        return d
    if d.known_normal is None:
        result = map_atoms(d, _normal_atom)
        if isinstance(result, DimExpr):
            result.known_normal = result
        d.known_normal = result
    normal = d.known_normal
    assert isinstance(normal, (int, DimExpr))
    return normal


def _normal_atom(atom: Atom) -> Dim:
    if atom.kind == "symbol":
        return atom_dim(atom)
    arguments = [normal_form(argument) for argument in atom.arguments]
    if atom.kind == "floordiv":
        return _normal_division(arguments[0], arguments[1])
    if atom.kind == "mod":
        return arguments[0] - arguments[1] * _normal_division(arguments[0], arguments[1])
    if atom.kind == "min":
        return _normal_minimum(arguments)
    return -_normal_minimum([-argument for argument in arguments])


def _normal_division(a: Dim, b: Dim) -> Dim:
    if isinstance(b, DimExpr):
        return map_atoms(floordiv(a, b), _nested_division)
    if not isinstance(a, DimExpr) or b <= 1:
        return floordiv(a, b)
    rest = {monomial: coefficient % b for monomial, coefficient in a.terms}
    whole = make_expression({monomial: coefficient // b for monomial, coefficient in a.terms})
    numerator = make_expression(rest)
    if not isinstance(numerator, DimExpr):
        return whole
    divisor = content_of(rest, b)
    if divisor > 1:
        return whole + _normal_division(scaled_down(rest, divisor), b // divisor)
    # Of the two spellings floor(a / b) and -floor((b - 1 - a) / b), take the one with the smaller residues.
    opposite = {monomial: (b - 1 if monomial is ONE else 0) - rest.get(monomial, 0) for monomial in (*rest, ONE)}
    opposite = {monomial: coefficient % b for monomial, coefficient in opposite.items()}
    if _residues(opposite) < _residues(rest):
        raised = make_expression(
            {m: (opposite[m] + rest.get(m, 0) - (b - 1 if m is ONE else 0)) // b for m in opposite}
        )
        return whole + raised - _normal_division(make_expression(opposite), b)
    merged = merge_nested_division(numerator, b, by_symbols=False)
    if merged is not None:
        return whole + normal_form(merged)
    low, high = interval_of(numerator)
    if not math.isinf(low) and not math.isinf(high) and low // b == high // b:
        return whole + int(low // b)
    return whole + atom_dim(make_atom("floordiv", numerator, b))


def _nested_division(atom: Atom) -> Dim:
    """x // (2 * m * n) as x // m // n // 2: so it shares its inner divisions with others."""
    if atom.kind != "floordiv" or not isinstance(atom.arguments[1], DimExpr):
        return atom_dim(atom)
    dividend, divisor = atom.arguments
    (monomial, coefficient), *others = divisor.terms
    if others or interval_of(divisor)[0] < 0 or (monomial.degree == 1 and coefficient == 1):
        return atom_dim(atom)
    for factor in [atom_dim(factor) for factor, power in monomial.powers for _ in range(power)]:
        if dividend is atom.arguments[0]:
            dividend = floordiv(dividend, factor)
        elif isinstance(dividend, DimExpr):
            dividend = atom_dim(make_atom("floordiv", dividend, factor))
        else:
            dividend = floordiv(dividend, factor)
    return _normal_division(dividend, coefficient)


def _residues(terms: Mapping[Monomial, int]) -> list[int]:
    ordered = sorted((monomial for monomial in terms if monomial is not ONE), key=term_key)
    return [terms[monomial] for monomial in ordered] + [terms.get(ONE, 0)]


def _normal_minimum(arguments: list[Dim]) -> Dim:
    """min with what its arguments share (an offset, a factor) taken out."""
    tables = [terms_of(argument) for argument in arguments]
    shared = {m: min(table.get(m, 0) for table in tables) for table in tables for m in table}
    offset = make_expression(shared)
    moved = [argument - offset for argument in arguments]
    factor = math.gcd(*(coefficient for argument in moved for coefficient in terms_of(argument).values()))
    if factor == 0:
        return offset
    return offset + factor * minimum(*(scaled_down(terms_of(argument), factor) for argument in moved))
