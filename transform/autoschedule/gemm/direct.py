"""Direct nests: tiles that read both operands where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import BufferLoad, Extent, For, IfThenElse, PrimExpr, PrimVar, Stmt
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.tiles import (
    Panel,
    Tile,
    blocks,
    cover_columns,
    cover_rows,
    epilogue_of,
    fresh,
    plus,
    row_at,
    tiles_of,
    times,
    vector_at,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, tile_rows, tile_vectors

__all__ = ["direct", "streams"]

_ZERO = const(0, INDEX)


def direct(found: Contraction, capacity: Capacity) -> Stmt:
    """The nest, with a version of its own for a single row when the number of rows is symbolic."""
    rows = None if found.r is None else found.extents[found.r]
    over_columns = _streams if streams(found, capacity) else _columns

    def single(panel: Panel, part: Part | None) -> Stmt:
        return _tile(found, None if rows is None else lambda i: _ZERO, panel, 1, part)

    def many(panel: Panel, part: Part | None) -> Stmt:
        return _rows(found, capacity, panel, part)

    if rows is None or (isinstance(rows, int) and rows == 1):
        return _outer(found, over_columns(found, capacity, 1, single))
    several = _outer(found, over_columns(found, capacity, tile_rows(rows, capacity), many))
    if isinstance(rows, int) or tiles_of(rows, tile_rows(rows, capacity)) is not None:
        return several
    one = _outer(found, over_columns(found, capacity, 1, single))
    return IfThenElse(binary("eq", rows, const(1, INDEX)), one, several)


def streams(found: Contraction, capacity: Capacity) -> bool:
    """Whether rows of B are read from end to end: it comes from a far cache, or may do so."""
    if len(found.reduction) != 1:
        return False
    columns, terms = most_of(found.extents[found.v]), most_of(found.extents[found.reduction[0]])
    return columns is None or terms is None or columns * terms >= capacity.pack_from


def _streams(
    found: Contraction, capacity: Capacity, rows: int, tile: Callable[[Panel, Part | None], Stmt]
) -> Stmt:
    """Some rows of B at a time from end to end, as memory likes to be read; sums go on in C."""
    (k,) = found.reduction
    columns, terms = found.extents[found.v], found.extents[k]
    vectors = min(tile_vectors(rows, columns, capacity), capacity.knobs.stream_vectors)
    depth = capacity.knobs.stream_k
    if isinstance(columns, int):  # enough for threads to share
        depth = max(depth, min(capacity.knobs.stream_max_k, capacity.knobs.stream_from // (columns * rows)))

    def rows_of_b(start: PrimExpr, count: Extent) -> Stmt:
        def panel(at: Panel) -> Stmt:
            is_last = binary("ge", plus(start, as_expr(count, INDEX)), as_expr(terms, INDEX))
            return tile(at, Part(start, count, binary("gt", start, _ZERO), is_last))

        return cover_columns(found.v.name, columns, vectors, capacity, panel, capacity.chunks)

    return blocks(k, terms, depth, rows_of_b, at_least_one=True, one_loop=True)


@dataclass(frozen=True)
class Part:
    """A part of each sum: `extent` terms from `start` on, whether they go on with sums, and end them."""

    start: PrimExpr
    extent: Extent
    accumulates: PrimExpr
    is_last: PrimExpr


def _outer(found: Contraction, body: Stmt) -> Stmt:
    variables = {var: fresh(var) for var in found.outer}
    body = substitute(body, variables)
    for var in reversed(found.outer):
        body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
    return body


def _columns(
    found: Contraction, capacity: Capacity, rows: int, tile: Callable[[Panel, Part | None], Stmt]
) -> Stmt:
    columns = found.extents[found.v]
    vectors = tile_vectors(rows, columns, capacity)
    return cover_columns(found.v.name, columns, vectors, capacity, lambda panel: tile(panel, None))


def _rows(found: Contraction, capacity: Capacity, panel: Panel, part: Part | None) -> Stmt:
    assert found.r is not None
    extent = found.extents[found.r]
    most = tile_rows(extent, capacity)
    return cover_rows(
        found.r.name, extent, most, (ceil_div(most, 2),),
        lambda at, rows, clamp: _tile(found, lambda i: clamp(plus(at, i)), panel, rows, part),
    )  # fmt: skip


def _tile(
    found: Contraction, row: Callable[[PrimExpr], PrimExpr] | None, panel: Panel, rows: int, part: Part | None = None
) -> Stmt:
    """One tile, over the whole sum or a part of it."""
    reduction: dict[PrimVar, PrimExpr]
    if part is None:
        variables = {var: fresh(var) for var in found.reduction}
        loops = [(variables[var], found.extents[var]) for var in found.reduction]
        reduction = {**variables}
    else:
        p = PrimVar("p", INDEX)
        loops = [(p, part.extent)]
        reduction = {found.reduction[0]: plus(part.start, p)}
    target = found.target
    vectors, lanes = panel.vectors, panel.lanes

    def columns(load: BufferLoad, j: PrimExpr) -> BufferLoad:
        return vector_at(load, found.v, panel.start if vectors == 1 else plus(panel.start, times(j, lanes)), lanes)

    def in_row(load: BufferLoad, i: PrimExpr) -> BufferLoad:
        return load if row is None else row_at(load, found.r, row(i))

    def of_b(j: PrimExpr) -> PrimExpr:
        load = substitute(columns(found.vector, j), reduction)
        mask = panel.mask(j)
        return found.of_b(load if mask is None else replace(load, predicate=mask))

    return Tile(
        rows, panel,
        scalar=lambda i: found.of_a(substitute(in_row(found.scalar, i), reduction)),
        vector=of_b,
        element=lambda i, j: columns(in_row(target, i), j),
        loops=loops, accumulates=found.accumulates or (part is not None and part.accumulates),
        is_last=None if part is None else part.is_last,
        epilogue=epilogue_of(found, panel, row), long_epilogue=found.has_long_epilogue,
    ).build(target.buffer.dtype)  # fmt: skip
