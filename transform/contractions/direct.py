"""Direct nests: tiles that read both operands where they are."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import replace, substitute
from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import BufferLoad, Extent, For, IfThenElse, PrimExpr, PrimVar, Stmt
from weft.transform.contractions.planning import INDEX, Limits, ceil_div, tile_rows, tile_vectors
from weft.transform.contractions.recognition import Contraction
from weft.transform.contractions.tiles import (
    Panel,
    Tile,
    blocks,
    cover_columns,
    cover_rows,
    finisher,
    fresh,
    plus,
    row_at,
    times,
    vector_at,
)

__all__ = ["direct"]

_ZERO = const(0, INDEX)


def direct(found: Contraction, limits: Limits) -> Stmt:
    """The nest, with a version of its own for a single row when the number of rows is symbolic."""
    rows = None if found.r is None else found.extents[found.r]
    streams = rows is None or rows == 1 or not isinstance(rows, int)
    if streams and len(found.reduction) == 1 and _is_large(found, limits):
        single = _stream(found, limits)
        if rows is None or isinstance(rows, int):
            return single
    else:
        single = None
    if rows is None:
        return _outer(found, _columns(found, limits, 1, lambda panel: _tile(found, None, panel, 1)))
    many = _outer(found, _columns(found, limits, tile_rows(rows, limits), lambda panel: _rows(found, limits, panel)))
    if isinstance(rows, int):
        return many
    one = single or _outer(found, _columns(found, limits, 1, lambda panel: _tile(found, lambda i: _ZERO, panel, 1)))
    return IfThenElse(binary("eq", rows, const(1, INDEX)), one, many)


def _is_large(found: Contraction, limits: Limits) -> bool:
    """Whether B comes from a far cache, or may do so."""
    columns, sums = found.extents[found.v], found.extents[found.reduction[0]]
    return not isinstance(columns, int) or not isinstance(sums, int) or columns * sums >= limits.pack_from


def _stream(found: Contraction, limits: Limits) -> Stmt:
    """A single row: a few rows of B at a time from end to end, as memory likes to be read; sums go on in C."""
    (k,) = found.reduction

    def rows_of_b(start: PrimExpr, count: Extent) -> Stmt:
        def tile(panel: Panel) -> Stmt:
            p = PrimVar("p", INDEX)
            last = binary("ge", plus(start, as_expr(count, INDEX)), as_expr(found.extents[k], INDEX))
            part = (p, count, plus(start, p))
            return _tile(found, lambda i: _ZERO, panel, 1, part, binary("gt", start, _ZERO), last)

        return cover_columns(found.v.name, found.extents[found.v], limits.stream_vectors, limits, tile)

    return _outer(found, blocks(k, found.extents[k], limits.stream_rows, rows_of_b, sums=True))


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
        found.r.name, extent, most, (ceil_div(most, 2),),
        lambda at, rows, clamp: _tile(found, lambda i: clamp(plus(at, i)), panel, rows),
    )  # fmt: skip


def _tile(
    found: Contraction, row: Callable[[PrimExpr], PrimExpr] | None, panel: Panel, rows: int,
    part: tuple[PrimVar, Extent, PrimExpr] | None = None, goes_on: PrimExpr | None = None,
    is_last: PrimExpr | None = None,
) -> Stmt:  # fmt: skip
    """One tile; with `part`, over a part of the sum: its loop variable, extent, and the term that it stands for."""
    reduction: dict[PrimVar, PrimExpr]
    if part is None:
        variables = {var: fresh(var) for var in found.reduction}
        loops = [(variables[var], found.extents[var]) for var in found.reduction]
        reduction = {**variables}
    else:
        loops = [part[:2]]
        reduction = {found.reduction[0]: part[2]}
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
        loops=loops, goes_on=goes_on, is_last=is_last,
        finish=finisher(found, panel, row), long_finish=found.has_long_epilogue,
    ).build(target.buffer.dtype)  # fmt: skip
