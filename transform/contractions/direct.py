"""Direct nests: tiles that read both operands where they are."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import replace, substitute
from weft.ir.prim import binary, const
from weft.ir.tensor import BufferLoad, For, IfThenElse, PrimExpr, Stmt
from weft.transform.contractions.planning import INDEX, Limits, ceil_div, tile_rows, tile_vectors
from weft.transform.contractions.recognition import Contraction
from weft.transform.contractions.tiles import (
    Panel,
    Tile,
    cover_columns,
    cover_rows,
    fresh,
    plus,
    row_at,
    times,
    vector_at,
)

__all__ = ["direct"]


def direct(found: Contraction, limits: Limits) -> Stmt:
    """The nest, with a version of its own for a single row when the number of rows is symbolic."""
    rows = None if found.r is None else found.extents[found.r]
    if rows is None:
        return _outer(found, _columns(found, limits, 1, lambda panel: _tile(found, None, panel, 1)))
    many = _outer(found, _columns(found, limits, tile_rows(rows, limits), lambda panel: _rows(found, limits, panel)))
    if isinstance(rows, int):
        return many
    zero = const(0, INDEX)
    one = _outer(found, _columns(found, limits, 1, lambda panel: _tile(found, lambda i: zero, panel, 1)))
    return IfThenElse(binary("eq", rows, const(1, INDEX)), one, many)


def _outer(found: Contraction, body: Stmt) -> Stmt:
    variables = {var: fresh(var) for var in found.outer}
    body = substitute(body, variables)
    for var in reversed(found.outer):
        body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
    return body


def _columns(found: Contraction, limits: Limits, rows: int, inner: Callable[[Panel], Stmt]) -> Stmt:
    columns = found.extents[found.v]
    return cover_columns(found.v.name, columns, tile_vectors(rows, columns, limits), limits, inner)


def _rows(found: Contraction, limits: Limits, panel: Panel) -> Stmt:
    assert found.r is not None
    extent = found.extents[found.r]
    most = tile_rows(extent, limits)
    return cover_rows(
        found.r.name, extent, most, (ceil_div(most, 4), ceil_div(most, 2)),
        lambda at, rows, clamp: _tile(found, lambda i: clamp(plus(at, i)), panel, rows),
    )  # fmt: skip


def _tile(found: Contraction, row: Callable[[PrimExpr], PrimExpr] | None, panel: Panel, rows: int) -> Stmt:
    reduction = {var: fresh(var) for var in found.reduction}
    target = BufferLoad(found.store.buffer, found.store.indices)
    vectors, lanes = panel.vectors, panel.lanes

    def columns(load: BufferLoad, j: PrimExpr) -> BufferLoad:
        return vector_at(load, found.v, panel.start if vectors == 1 else plus(panel.start, times(j, lanes)), lanes)

    def in_row(load: BufferLoad, i: PrimExpr) -> BufferLoad:
        return load if row is None else row_at(load, found.r, row(i))

    def of_b(j: PrimExpr) -> BufferLoad:
        load = substitute(columns(found.vector, j), reduction)
        mask = panel.mask(j)
        return load if mask is None else replace(load, predicate=mask)

    return Tile(
        rows, panel,
        scalar=lambda i: substitute(in_row(found.scalar, i), reduction),
        vector=of_b,
        element=lambda i, j: columns(in_row(target, i), j),
        loops=[(reduction[var], found.extents[var]) for var in found.reduction],
    ).build(target.buffer.dtype)  # fmt: skip
