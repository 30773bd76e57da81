"""Index expressions turned round: the variables that give known indices.

inverted((v0 * 4 + v1, v2), sizes, (a, b))   v0 = a // 4, v1 = a % 4, v2 = b, and what must hold of a and b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.dim import Dim, floordiv, floormod, product, symbol
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.tensor import Extent, PrimExpr, PrimVar
from weft.transform.analysis.loops.affine import Reader, Term, Value
from weft.transform.analysis.loops.points import Point

__all__ = ["inverted"]


def inverted(
    indices: Sequence[PrimExpr],
    sizes: Mapping[PrimVar, tuple[Extent, Extent]],
    given: Sequence[PrimExpr],
    point: Point,
) -> tuple[dict[PrimVar, PrimExpr], list[PrimExpr]] | None:
    """Values of the variables (with their starts and extents) at which the indices are the given ones.

    `given` are expressions at the point. Beside the values, the conditions on them that are not proved there. None
    where the variables are not digits of the indices.
    """
    inner = point.copy()
    extents: dict[str, Dim] = {}
    for variable, (start, extent) in sizes.items():
        size = inner.dim(extent)
        if start != 0 or size is None:
            return None
        inner.range(variable, start, extent)
        extents[inner.name(variable)] = size
    reader = Reader(inner, extents, {})
    digits: dict[Dim, list[tuple[Term, Dim]]] = {}
    needs: list[tuple[Dim, Dim]] = []  # 0 <= first < second
    exact: list[tuple[Dim, Dim]] = []  # equal
    for index, known in zip(indices, given, strict=True):
        wanted, here = inner.dim(index), point.dim(known)
        value = None if wanted is None else reader.read(wanted)
        if value is None or here is None:
            return None
        if not value.terms:
            exact.append((here, value.base))
            continue
        ordered = reader.ordered(Value(value.terms))
        if ordered is None:
            return None
        left = here - value.base
        total = product(term.extent for term in ordered)
        if ordered or not inner.same(total, 1):
            needs.append((left, total))
        for term in ordered:
            top = term is ordered[-1]
            digit = floordiv(left, term.scale)
            digits.setdefault(term.source.dim, []).append((term, digit if top else floormod(digit, term.extent)))
        if not ordered:
            exact.append((here, value.base))
    values = _composed(reader, digits, sizes, inner)
    if values is None:
        return None
    conditions = [part for pair in needs for part in _within(*pair, point)]
    conditions += [part for var, dim in values.items() for part in _within(dim, extents[inner.name(var)], point)]
    conditions += [
        binary("eq", point.expr(a, "int64"), point.expr(b, "int64")) for a, b in exact if not point.same(a, b)
    ]
    return {var: point.expr(dim, var.dtype) for var, dim in values.items()}, conditions


def _composed(
    reader: Reader, digits: Mapping[Dim, list[tuple[Term, Dim]]], sizes: Mapping[PrimVar, object], point: Point
) -> dict[PrimVar, Dim] | None:
    """Each variable from its digits; None when some are missing, or digits are of a sum of variables."""
    left = dict(digits)
    values: dict[PrimVar, Dim] = {}
    for variable in sizes:
        here = symbol(point.name(variable))
        parts = left.pop(here, [])
        lower: Dim = 1
        total: Dim = 0
        while parts:
            found = next((pair for pair in parts if point.same(pair[0].lower, lower)), None)
            if found is None:
                return None
            parts.remove(found)
            total = total + found[1] * lower
            lower = lower * found[0].extent
        if not point.at_most(reader.extents[point.name(variable)], lower):
            return None
        values[variable] = total
    return None if left else values


def _within(value: Dim, limit: Dim, point: Point) -> list[PrimExpr]:
    """What is not proved of 0 <= value < limit."""
    found: list[PrimExpr] = []
    if not point.at_most(0, value):
        found.append(binary("le", as_expr(0, "int64"), point.expr(value, "int64")))
    if not point.below(value, limit):
        found.append(binary("lt", point.expr(value, "int64"), point.expr(limit, "int64")))
    return found
