"""Packed nests: blocks of both operands are copied into the order in which tiles read them.

for blocks of rows:  for blocks of the sum:
  A's block packed                                    stays in the second cache: read by every panel
  for panels of B, a tile wide:  B's panel packed     stays in the first cache: read by every tile of rows
    for tiles of rows:  C's tile += A's tile * panel  sums go on in C from one block to the next, in order
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute
from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.contractions.planning import (
    INDEX,
    Limits,
    ceil_div,
    tile_rows,
    tile_vectors,
    vector_tiers,
)
from weft.transform.contractions.recognition import Contraction, runs_along
from weft.transform.contractions.tiles import (
    Access,
    Tile,
    cover,
    cover_rows,
    fresh,
    plus,
    row_at,
    times,
    vector_at,
    vector_index,
)

__all__ = ["packed"]


def packed(found: Contraction, limits: Limits) -> Stmt:
    """The nest over packed blocks."""
    return _Packed(found, limits).build()


class _Packed:
    def __init__(self, found: Contraction, limits: Limits) -> None:
        assert found.r is not None
        self.found, self.limits, self.r, self.k = found, limits, found.r, found.reduction[0]
        self.dtype = found.store.buffer.dtype
        extents = found.extents
        self.rows = tile_rows(extents[self.r], limits)
        self.vectors = min(tile_vectors(self.rows, extents[found.v], limits), 2 * limits.most_vectors)
        self.sums = _block(extents[self.k], limits.block_sums, 1)
        self.block_rows = _block(extents[self.r], limits.block_rows, self.rows)
        # Without a direct nest for few rows, a single one must not be rounded up far.
        self.rests = (ceil_div(self.rows, 2),) if runs_along(found.vector, found.v) else (1, ceil_div(self.rows, 2))
        # A last tile of symbolic size may have rows to spare.
        self.a = Buffer("a_packed", ((self.block_rows + self.rows) * self.sums,), self.dtype)
        self.b = Buffer("b_packed", (self.sums * self.vectors * limits.lanes,), self.dtype)

    def build(self) -> Stmt:
        """The loops over blocks, inside those over outer variables."""
        found = self.found
        body = _blocks(self.r, found.extents[self.r], self.block_rows, lambda at, n: self._rows(at, n))
        variables = {var: fresh(var) for var in found.outer}
        body = substitute(body, variables)
        for var in reversed(found.outer):
            body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
        return SeqStmt((AllocBuffer(self.a), AllocBuffer(self.b), body))

    def _rows(self, first: PrimExpr, count: Extent) -> Stmt:
        return _blocks(self.k, self.found.extents[self.k], self.sums, lambda at, n: self._block(first, count, at, n))

    def _block(self, first: PrimExpr, count: Extent, k: PrimExpr, sums: Extent) -> Stmt:
        columns = self.found.extents[self.found.v]
        tiers = vector_tiers(self.vectors, columns, self.limits)

        def panel(v: PrimExpr, vectors: int, lanes: int) -> Stmt:
            tiles = cover_rows(
                self.r.name, count, self.rows, self.rests,
                lambda at, rows, clamp: self._tile(first, at, rows, clamp, k, sums, v, vectors, lanes),
            )  # fmt: skip
            return SeqStmt((self._pack_b(k, sums, v, vectors, lanes), tiles))

        return SeqStmt((self._pack_a(first, count, k, sums), cover(self.found.v.name, columns, tiers, panel)))

    def _pack_a(self, first: PrimExpr, count: Extent, k: PrimExpr, sums: Extent) -> Stmt:
        """Tile after tile; in a tile the elements of all rows for one k side by side."""

        def tile(at: PrimExpr, rows: int, clamp: Access) -> Stmt:
            i, p = PrimVar("i", INDEX), PrimVar("p", INDEX)
            row = plus(first, clamp(plus(at, i)))
            value = substitute(row_at(self.found.scalar, self.r, row), {self.k: plus(k, p)})
            place = plus(binary("mul", at, as_expr(sums, INDEX)), plus(times(p, rows), i))
            return For(p, 0, sums, For(i, 0, rows, BufferStore(self.a, value, (place,)), "unrolled"))

        return cover_rows(self.r.name, count, self.rows, self.rests, tile)

    def _pack_b(self, k: PrimExpr, sums: Extent, v: PrimExpr, vectors: int, lanes: int) -> Stmt:
        """The rows of the panel one after another."""
        p, j = PrimVar("p", INDEX), PrimVar("j", INDEX)
        load = substitute(self.found.vector, {self.k: plus(k, p)})
        width = vectors * lanes
        if not runs_along(self.found.vector, self.found.v):
            value = substitute(load, {self.found.v: plus(v, j)})
            place = plus(times(p, width), j)
            return For(p, 0, sums, For(j, 0, width, BufferStore(self.b, value, (place,)), "unrolled"))
        value = vector_at(load, self.found.v, plus(v, times(j, lanes)), lanes)
        place = vector_index(plus(times(p, width), times(j, lanes)), lanes)
        return For(p, 0, sums, For(j, 0, vectors, BufferStore(self.b, value, (place,)), "unrolled"))

    def _tile(
        self, first: PrimExpr, at: PrimExpr, rows: int, clamp: Access, k: PrimExpr, sums: Extent,
        v: PrimExpr, vectors: int, lanes: int,
    ) -> Stmt:  # fmt: skip
        found, p = self.found, PrimVar("p", INDEX)
        target = BufferLoad(found.store.buffer, found.store.indices)
        start = binary("mul", at, as_expr(sums, INDEX))

        def scalar(i: PrimExpr) -> PrimExpr:
            return BufferLoad(self.a, (plus(start, plus(times(p, rows), i)),))

        def vector(j: PrimExpr) -> PrimExpr:
            place = plus(times(p, vectors * lanes), times(j, lanes))
            return BufferLoad(self.b, (vector_index(place, lanes),))

        def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            row = plus(first, clamp(plus(at, i)))
            return vector_at(row_at(target, self.r, row), found.v, plus(v, times(j, lanes)), lanes)

        several = not isinstance(found.extents[self.k], int) or found.extents[self.k] != self.sums
        goes_on = binary("gt", k, const(0, INDEX)) if several else None
        return Tile(rows, vectors, lanes, scalar, vector, element, [(p, sums)], goes_on).build(self.dtype)


def _block(extent: Extent, most: int, unit: int) -> int:
    """The size of a block: a known extent that fits, otherwise whole units, shared out evenly when that is known."""
    if not isinstance(extent, int):
        return ceil_div(most, unit) * unit
    return extent if extent <= most else ceil_div(ceil_div(extent, ceil_div(extent, most)), unit) * unit


def _blocks(var: PrimVar, extent: Extent, size: int, inner: Callable[[PrimExpr, Extent], Stmt]) -> Stmt:
    """A loop over blocks, `inner(start, count)` each; of a known extent the rest apart, so that its size is known."""
    index = PrimVar(f"{var.name.removeprefix('v')}_block", INDEX)
    start = times(index, size)
    if not isinstance(extent, int):
        count = binary("min", binary("sub", extent, start), const(size, INDEX))
        blocks = binary("floordiv", binary("add", extent, const(size - 1, INDEX)), const(size, INDEX))
        return For(index, 0, blocks, inner(start, count))
    tiers = [(count, 1) for count in (size, extent % size) if count]
    return cover(f"{var.name}_block", extent, tiers, lambda at, count, _: inner(at, count))
