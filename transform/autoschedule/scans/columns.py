"""Scans down the columns: every row is computed from the one before it, in vectors along the row.

for k: for j: out[k, j] = join(out[k - 1, j], x[k, j])        memory is read and written from end to end
"""

from __future__ import annotations

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import BufferStore, Extent, For, IfThenElse, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, over_vectors, plus, sequence
from weft.transform.autoschedule.scans.match import Scan

__all__ = ["down_columns"]


def down_columns(found: Scan, var: PrimVar, lanes: int, vectors: int, *, masks: bool, wide: bool) -> Stmt:
    """Loops over the other axes, the rows, and vectors along one."""
    outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in found.spatial if x is not var}
    row, extent = PrimVar(found.axis.name.removeprefix("v"), INDEX), found.extents[found.axis]
    store = found.store

    def at(value: PrimExpr, place: PrimExpr, j: PrimExpr) -> PrimExpr:
        return substitute(value, {**outer, found.axis: place, var: j})

    def along(place: PrimExpr, value: PrimExpr) -> Stmt:
        def put(j: PrimExpr) -> Stmt:
            indices = tuple(at(index, place, j) for index in store.indices)
            return BufferStore(store.buffer, at(value, place, j), indices, span=store.span)

        name = var.name.removeprefix("v")
        return sequence(over_vectors(name, found.extents[var], lanes, vectors, put, masks, wide=wide))

    first = along(const(0, INDEX), found.first)
    later = substitute(found.later, {found.previous: found.before})
    rest = For(row, 0, minus(extent, 1), along(plus(row, 1), later))
    return nested([(new, found.extents[old]) for old, new in outer.items()], _where_some(extent, first, rest))


def _where_some(extent: Extent, first: Stmt, rest: Stmt) -> Stmt:
    """The first row where there is one, and those after it."""
    if isinstance(extent, int):  # at least 2, as the rule has made sure
        return sequence((first, rest))
    return IfThenElse(binary("gt", as_expr(extent, INDEX), const(0, INDEX)), sequence((first, rest)), None)
