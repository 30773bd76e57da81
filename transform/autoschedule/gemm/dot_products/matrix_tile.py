"""Tiles of matrices in registers: the sums of two by two matrices, added up by one instruction for all of them.

    sums = 0;  for steps of k:  sums[i, j] += A[i, k] * B[k, j]       for all rows i and columns j of the tile

The loops are written out, as what the instruction does, under the attribute `MATRIX_TILES`; code generators that have
no such instruction, or find something else there, emit them as they are. Sums go through memory, which vectors are
finished and stored from. Where a panel is larger than the first cache has room for, it meets all tiles of rows part by
part (`Part`): the sums of all of them stay in memory from one part of k to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import with_lanes
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    MATRIX_TILES,
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferLoad,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.tiles import Tile, masked, plus, store, times, unrolled, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["MatrixTile", "Part"]


@dataclass(frozen=True)
class Part:
    """A part of k: `steps` of the instruction from `start` on, of which sums begin with `is_first` and are complete
    after `is_last` (None: always); those of several tiles of rows, from `at` on in the block of A, are kept in `sums`
    (None: in memory of the tile), at the indices `lead` from the row `first` on (None: from the start)."""

    start: PrimExpr
    steps: Extent
    is_first: PrimExpr | None = None
    is_last: PrimExpr | None = None
    sums: Buffer | None = None
    at: PrimExpr = const(0, INDEX)
    lead: tuple[PrimExpr, ...] = ()
    first: PrimExpr | None = None


@dataclass(frozen=True)
class MatrixTile(Tile):
    """rows x vectors sums over a panel; rows beyond the last one, up to whole matrices, are computed and not stored.

    With a `part` of k, sums are in its memory, those of the tile from row `at` on.
    """

    part: Part | None = None
    at: PrimExpr | None = None

    def build(self, dtype: str) -> Stmt:
        """Sum, add what C holds already, store."""
        assert self.dot is not None
        vectors, lanes, mask = self.panel.vectors, self.panel.lanes, self.panel.mask
        rows, kind = self.dot.padded_rows(self.rows), with_lanes(dtype, lanes)
        part, at = self.part, self.at
        kept, first, lead = (None, None, ()) if part is None else (part.sums, part.first, part.lead)
        sums = Buffer("sums", (rows * vectors * lanes,), dtype) if kept is None else kept

        def own(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            return BufferLoad(sums, (*lead, vector_index(times(place(i, j), lanes), lanes)))

        def place(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            row = i if at is None else plus(at, i)
            return plus(times(row if first is None else plus(first, row), vectors), j)

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
        if part is not None and part.is_first is not None:
            clear = IfThenElse(part.is_first, clear, None)
        step = each(rows, lambda i, j: stored(i, j, product(i, j)))
        for var, extent in reversed(self.loops):
            step = For(var, 0, extent, step)
        products = AttrStmt(None, MATRIX_TILES, self.dot.instruction.instruction, SeqStmt((clear, step)))
        last: list[Stmt] = []
        if self.accumulates is not False:
            added = each(self.rows, lambda i, j: stored(i, j, binary("add", own(i, j), held(i, j))))
            last.append(self.if_accumulates(added, None))
        write = each(self.rows, lambda i, j: store(held(i, j), own(i, j)))
        if self.epilogue is not None:
            finished = each(self.rows, lambda i, j: self.finished(sums, i, j, place, lead), vectors // self.parts)
            write = finished if self.is_last is None else IfThenElse(self.is_last, finished, write)
        last.append(write)
        if part is not None and part.is_last is not None:
            last = [IfThenElse(part.is_last, sequence(last), None)]
        return SeqStmt((*([AllocBuffer(sums)] if kept is None else []), products, *last))
