"""Solving dimensions for a symbol, and matching a pattern of dimensions with values."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.ir.dim.expression import (
    Dim,
    DimExpr,
    as_dim,
    divide_exactly,
    divide_monomials,
    floordiv,
    floormod,
    make_expression,
    maximum,
)
from weft.ir.dim.inspection import evaluate, free_symbols, same, substitute
from weft.ir.dim.proofs import prove_equal, prove_lt, prove_ne, prove_nonnegative
from weft.ir.dim.representation import Monomial, dim_error, make_monomial, single_atom


def solve_for(expr: Dim, name: str, value: Dim) -> Dim | None:
    """The d with ``substitute(expr, {name: d}) == value``, for an expr linear in the symbol and an exact division.

    None where that is not proved, or where the solution is negative for all symbol values.

    >>> from weft.ir.dim import symbol
    >>> solve_for(2 * symbol("n"), "n", 2 * symbol("m"))
    m
    """
    parts = linear_parts(expr, name)
    return None if parts is None else _solve_linear(*parts, value)


def linear_parts(expr: Dim, name: str) -> tuple[Dim, Dim] | None:
    """(c, r) with expr == c * name + r, neither depending on the name; None where there are none or c is 0.

    >>> from weft.ir.dim import symbol
    >>> n, m = symbol("n"), symbol("m")
    >>> linear_parts(n * m - 2 * n + 1, "n"), linear_parts(n // 2, "n")
    ((m - 2, 1), None)
    """
    factor: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    if not isinstance(expr, DimExpr) or name not in expr.names:
        return None
    for monomial, coefficient in expr.terms:
        holders = [(atom, power) for atom, power in monomial.powers if name in atom.names]
        if not holders:
            rest[monomial] = coefficient
        elif len(holders) == 1 and holders[0][1] == 1 and holders[0][0].kind == "symbol":
            reduced = divide_monomials(monomial, make_monomial(((holders[0][0], 1),)))
            assert reduced is not None
            factor[reduced] = coefficient
        else:
            return None
    return make_expression(factor), make_expression(rest)


def _solve_linear(factor: Dim, rest: Dim, value: Dim) -> Dim | None:
    wanted = as_dim(value) - rest
    if prove_ne(factor, 0) is not True:
        return None
    solution = divide_exactly(wanted, factor)
    if solution is None and prove_equal(floormod(wanted, factor), 0):
        solution = floordiv(wanted, factor)
    return None if solution is None or prove_lt(solution, 0) else solution


_SAMPLE = 1009
"""The first of the sizes that stand for symbols where only counts which of them dimensions determine."""


def determined(dims: Sequence[Dim], known: Collection[str] = ()) -> frozenset[str]:
    """The symbols whose values follow from the values of the dimensions: bare ones, and what a linear one leaves over.

    The values of some symbols are known before.

    >>> from weft.ir.dim import symbol
    >>> n, m, k = symbol("n"), symbol("m"), symbol("k")
    >>> sorted(determined([2 * n, n + m, k // 2]))
    ['m', 'n']
    >>> determined([n * m], ["m"])
    frozenset({'n'})
    """
    dims = [dim for dim in dims if isinstance(dim, DimExpr)]
    names = dict.fromkeys(name for dim in dims for name in free_symbols(dim))
    sample = {name: _SAMPLE + position for position, name in enumerate(names)}
    values = [evaluate(dim, sample) for dim in dims]
    given = {name: sample[name] for name in names if name in known}
    return frozenset(match_dims([substitute(dim, given) for dim in dims], values)[0])


def match_dims(pattern: Sequence[Dim], values: Sequence[Dim]) -> tuple[dict[str, Dim], list[tuple[Dim, Dim]]]:
    """Binds the pattern's symbols to values: bare symbols first, then those that a linear equation determines.

    Returns the bindings, and the pairs that remain to be checked for equality (pattern side over the values' symbols,
    value); pairs that are equal by canonical form are left out. A symbol of the pattern that nothing determines stays
    in its pair under its own name. ShapeError W290 when the numbers of dimensions differ.

    >>> from weft.ir.dim import symbol
    >>> n, m = symbol("n"), symbol("m")
    >>> match_dims([n, 2 * m, n + m], [8, 6, 11])
    ({'n': 8, 'm': 3}, [])
    """
    if len(pattern) != len(values):
        raise dim_error("W290", f"{len(pattern)} dimensions expected, {len(values)} given")
    bindings: dict[str, Dim] = {}
    checks: list[tuple[Dim, Dim]] = []
    pending: list[tuple[Dim, Dim]] = []
    for expected, given in zip(pattern, values, strict=True):
        atom = single_atom(expected)
        if atom is not None and atom.kind == "symbol" and atom.arguments[0] not in bindings:
            bindings[atom.arguments[0]] = as_dim(given)
        else:
            pending.append((as_dim(expected), as_dim(given)))
    while True:
        solved = next((pair for pair in pending if _bind_linear(*pair, bindings, checks)), None)
        if solved is None:
            break
        pending.remove(solved)
    checks.extend((substitute(expected, bindings), given) for expected, given in pending)
    return bindings, [(expected, given) for expected, given in checks if not same(expected, given)]


def _bind_linear(expected: Dim, given: Dim, bindings: dict[str, Dim], checks: list[tuple[Dim, Dim]]) -> bool:
    """Binds the one unbound symbol of ``expected``, if ``expected == given`` determines it."""
    unbound = [name for name in free_symbols(expected) if name not in bindings]
    parts = linear_parts(expected, unbound[0]) if len(unbound) == 1 else None
    if parts is None:
        return False
    factor, rest = (substitute(part, bindings) for part in parts)
    solution = _solve_linear(factor, rest, given)
    if solution is None:
        return False
    if prove_nonnegative(solution) is not True:
        # A symbol is a size: that the solution is not negative is one more thing to check.
        checks.append((factor * maximum(solution, 0) + rest, given))
    bindings[unbound[0]] = solution
    return True
