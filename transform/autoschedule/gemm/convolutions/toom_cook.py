"""Toom-Cook: the matrices of convolutions by interpolation, and vectors multiplied by them.

    results (m) = R ((W weights (3)) * (I inputs (m + 2)))       *: element by element

Polynomials are multiplied at m + 1 points and at infinity. Neighbours that differ by their sign share sums. The points
of four results are those of the smallest error that were found among fractions that float32 has exactly: half of that
of 0, 1, -1, 2, -2.

Source: Barabasz et al., Error analysis and improving the accuracy of Winograd convolution for deep neural networks,
2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache

from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import Bind, PrimExpr, PrimVar, Stmt
from weft.support.records import dataclass

__all__ = ["POINTS", "Transform", "combined", "named", "transform_of"]

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]
_WEIGHTS = 3
POINTS = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(5, 8), Fraction(-5, 8), Fraction(3, 2), Fraction(-3, 2)),
}
"""The points but for infinity, by the number of results."""


@dataclass(frozen=True)
class Transform:
    """The matrices I, W and R that make m results of m + 2 inputs and 3 weights."""

    inputs: Matrix
    weights: Matrix
    results: Matrix

    @property
    def m(self) -> int:
        """The number of results."""
        return len(self.results)

    @property
    def n(self) -> int:
        """The number of inputs, and of products."""
        return len(self.inputs)


@cache
def transform_of(m: int) -> Transform:
    """The transform that makes m results.

    >>> [[int(x) for x in row] for row in transform_of(2).inputs]
    [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]
    """
    points = POINTS[m]
    others = [[b for b in points if b != a] for a in points]
    scales = [math.prod((a - b for b in rest), start=Fraction(1)) for a, rest in zip(points, others, strict=True)]
    signs = [-1 if scale < 0 and a == 0 else 1 for a, scale in zip(points, scales, strict=True)]
    inputs = [(*(sign * x for x in _product(rest)), Fraction(0)) for sign, rest in zip(signs, others, strict=True)]
    weights = [
        tuple(sign * a**k / scale for k in range(_WEIGHTS))
        for sign, a, scale in zip(signs, points, scales, strict=True)
    ]
    at_infinity = (*(Fraction(0) for _ in range(_WEIGHTS - 1)), Fraction(1))
    results = [(*(a**k for a in points), Fraction(int(k == m - 1))) for k in range(m)]
    return Transform((*inputs, _product(points)), (*weights, at_infinity), tuple(results))


def _product(roots: Iterable[Fraction]) -> Row:
    """The coefficients of the product of (x - root), that of 1 first."""
    result: Row = (Fraction(1),)
    for root in roots:
        zero = (Fraction(0),)
        result = tuple(a - root * b for a, b in zip((*zero, *result), (*result, *zero), strict=True))
    return result


def combined(matrix: Matrix, vectors: Sequence[PrimExpr], stmts: list[Stmt]) -> list[PrimExpr]:
    """A matrix times vectors; `stmts` get what binds the parts of the result."""
    matrix, vectors = _with_sums(matrix, vectors, stmts)
    rows = list(matrix)
    found: list[PrimExpr] = []
    while rows:
        row = rows.pop(0)
        if rows and _are_alike(row, rows[0]):
            same, opposite = (_linear(part, vectors, stmts) for part in _by_sign(row, rows.pop(0)))
            found += _sum_and_difference(same, opposite, stmts)
        else:
            found.append(_linear(row, vectors, stmts))
    return found


def _with_sums(matrix: Matrix, vectors: Sequence[PrimExpr], stmts: list[Stmt]) -> tuple[Matrix, list[PrimExpr]]:
    """The matrix for sums and differences of those neighbours among vectors whose columns differ by signs alone."""
    columns, left = list(zip(*matrix, strict=True)), list(vectors)
    new_columns: list[Row] = []
    new: list[PrimExpr] = []
    while columns:
        column, vector = columns.pop(0), left.pop(0)
        if columns and _are_alike(column, columns[0]):
            new_columns += _by_sign(column, columns.pop(0))
            new += _sum_and_difference(vector, left.pop(0), stmts)
        else:
            new_columns.append(column)
            new.append(vector)
    return tuple(zip(*new_columns, strict=True)), new


def _are_alike(a: Row, b: Row) -> bool:
    """Whether two rows differ by signs alone, some of them equal and some opposite."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x or y]
    return all(abs(x) == abs(y) for x, y in pairs) and len({x == y for x, y in pairs}) == 2


def _by_sign(a: Row, b: Row) -> tuple[Row, Row]:
    """What of two rows is the same, and what is opposite, as in the first one."""
    zero = Fraction(0)
    pairs = list(zip(a, b, strict=True))
    return tuple(x if x == y else zero for x, y in pairs), tuple(x if x != y else zero for x, y in pairs)


def _sum_and_difference(a: PrimExpr, b: PrimExpr, stmts: list[Stmt]) -> list[PrimExpr]:
    return [named("part", binary(kind, a, b), stmts) for kind in ("add", "sub")]


def _linear(row: Row, vectors: Sequence[PrimExpr], stmts: list[Stmt]) -> PrimExpr:
    """The sum of vectors times the factors of a row, positive ones first."""
    terms = sorted(((x, v) for x, v in zip(row, vectors, strict=True) if x), key=lambda item: item[0] < 0)
    (factor, vector), *others = terms
    if not others and factor == 1:
        return vector
    total = _times(vector, factor)
    for factor, vector in others:
        total = binary("sub" if factor < 0 else "add", total, _times(vector, abs(factor)))
    return named("part", total, stmts)


def _times(vector: PrimExpr, factor: Fraction) -> PrimExpr:
    return vector if factor == 1 else binary("mul", vector, const(float(factor), vector.dtype))


def named(name: str, value: PrimExpr, stmts: list[Stmt]) -> PrimVar:
    """A variable that a statement binds to a value."""
    var = PrimVar(name, value.dtype)
    stmts.append(Bind(var, value))
    return var
