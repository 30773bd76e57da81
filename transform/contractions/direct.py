"""Direct nests: tiles that read both operands where they are."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute
from weft.ir.prim import binary, const
from weft.ir.tensor import BufferLoad, For, IfThenElse, PrimExpr, Stmt
from weft.transform.contractions.planning import INDEX, Limits, tile_rows, tile_vectors, vector_tiers
from weft.transform.contractions.recognition import Contraction
from weft.transform.contractions.tiles import Tile, cover, cover_rows, fresh, plus, row_at, times, vector_at

__all__ = ["direct"]


def direct(found: Contraction, limits: Limits) -> Stmt:
    """The nest, with a version of its own for a single row when the number of rows is symbolic."""
    rows = None if found.r is None else found.extents[found.r]
    if rows is None:
        return _outer(found, _columns(found, limits, 1, lambda v, n, w: _tile(found, None, v, 1, n, w)))
    many = _outer(
        found, _columns(found, limits, tile_rows(rows, limits), lambda v, n, w: _rows(found, limits, v, n, w))
    )
    if isinstance(rows, int):
        return many
    zero = const(0, INDEX)
    one = _outer(found, _columns(found, limits, 1, lambda v, n, w: _tile(found, lambda i: zero, v, 1, n, w)))
    return IfThenElse(binary("eq", rows, const(1, INDEX)), one, many)


def _outer(found: Contraction, body: Stmt) -> Stmt:
    variables = {var: fresh(var) for var in found.outer}
    body = substitute(body, variables)
    for var in reversed(found.outer):
        body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
    return body


def _columns(found: Contraction, limits: Limits, rows: int, inner: Callable[[PrimExpr, int, int], Stmt]) -> Stmt:
    columns = found.extents[found.v]
    tiers = vector_tiers(tile_vectors(rows, columns, limits), columns, limits)
    return cover(found.v.name, columns, tiers, inner)


def _rows(found: Contraction, limits: Limits, v: PrimExpr, vectors: int, lanes: int) -> Stmt:
    assert found.r is not None
    extent = found.extents[found.r]
    return cover_rows(
        found.r.name,
        extent,
        tile_rows(extent, limits),
        (2, 4, 7),
        lambda at, rows, clamp: _tile(found, lambda i: clamp(plus(at, i)), v, rows, vectors, lanes),
    )


def _tile(
    found: Contraction, row: Callable[[PrimExpr], PrimExpr] | None, v: PrimExpr, rows: int, vectors: int, lanes: int
) -> Stmt:
    reduction = {var: fresh(var) for var in found.reduction}
    target = BufferLoad(found.store.buffer, found.store.indices)

    def columns(load: BufferLoad, j: PrimExpr) -> BufferLoad:
        return vector_at(load, found.v, v if vectors == 1 else plus(v, times(j, lanes)), lanes)

    def in_row(load: BufferLoad, i: PrimExpr) -> BufferLoad:
        return load if row is None else row_at(load, found.r, row(i))

    return Tile(
        rows, vectors, lanes,
        scalar=lambda i: substitute(in_row(found.scalar, i), reduction),
        vector=lambda j: substitute(columns(found.vector, j), reduction),
        element=lambda i, j: columns(in_row(target, i), j),
        loops=[(reduction[var], found.extents[var]) for var in found.reduction],
    ).build(target.buffer.dtype)  # fmt: skip
