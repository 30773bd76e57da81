"""Tiles of matrices in registers: the sums of two by two matrices, added up by one instruction for all of them.

    sums = 0;  for steps of k:  sums[i, j] += A[i, k] * B[k, j]       for all rows i and columns j of the tile

The loops are written out, as what the instruction does, under the attribute `MATRIX_TILES`; code generators that have
no such instruction, or find something else there, emit them as they are. Sums go through memory, which vectors are
finished and stored from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.dtypes import with_lanes
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    MATRIX_TILES,
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferLoad,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.gemm.tiles import Tile, masked, plus, store, times, unrolled, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX

__all__ = ["MatrixTile"]


@dataclass(frozen=True)
class MatrixTile(Tile):
    """rows x vectors sums over a panel; rows beyond the last one, up to whole matrices, are computed and not stored."""

    def build(self, dtype: str) -> Stmt:
        """Sum, add what C holds already, store."""
        assert self.dot is not None
        vectors, lanes, mask = self.panel.vectors, self.panel.lanes, self.panel.mask
        rows, kind = self.dot.padded_rows(self.rows), with_lanes(dtype, lanes)
        sums = Buffer("sums", (rows * vectors * lanes,), dtype)

        def own(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            return BufferLoad(sums, (vector_index(times(place(i, j), lanes), lanes),))

        def place(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            return plus(times(i, vectors), j)

        def each(count: int, action: Callable[[PrimExpr, PrimExpr], Stmt], width: int = vectors) -> Stmt:
            i = PrimVar("i", INDEX)
            return For(i, 0, count, unrolled("j", width, lambda j: action(i, j)))

        def stored(i: PrimExpr, j: PrimExpr, value: PrimExpr) -> Stmt:
            return store(own(i, j), value)

        def held(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            return masked(self.element(i, j), mask(j))

        def product(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            return PrimCall("dot_product", (own(i, j), self.repeated(self.scalar(i)), self.vector(j)), kind)

        clear = each(rows, lambda i, j: stored(i, j, const(0, kind)))
        step = each(rows, lambda i, j: stored(i, j, product(i, j)))
        for var, extent in reversed(self.loops):
            step = For(var, 0, extent, step)
        stmts: list[Stmt] = [AttrStmt(None, MATRIX_TILES, self.dot.instruction.instruction, SeqStmt((clear, step)))]
        if self.accumulates is not False:
            added = each(self.rows, lambda i, j: stored(i, j, binary("add", own(i, j), held(i, j))))
            stmts.append(self.if_accumulates(added, None))
        write = each(self.rows, lambda i, j: store(held(i, j), own(i, j)))
        if self.epilogue is not None:
            finished = each(self.rows, lambda i, j: self.finished(sums, i, j, place), vectors // self.parts)
            write = finished if self.is_last is None else IfThenElse(self.is_last, finished, write)
        return SeqStmt((AllocBuffer(sums), *stmts, write))
