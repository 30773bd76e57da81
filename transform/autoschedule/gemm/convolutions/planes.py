"""Planes: windows where each result has a plane of the input to itself, as in depthwise convolutions.

for outer variables:  for some rows of results:
  for k:  sums[rows, vectors] += W[k] * X's rows, from where the window is
  C's rows = the sums

No other row of weights meets the same elements, so that nothing is worth a copy: one weight at a time meets all vectors
of some rows of results, whose sums stay in registers. Strides are picked from whole loads; the end of a row is under a
mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weft.dtypes import is_float
from weft.ir import replace, substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.match import Contraction, Window
from weft.transform.autoschedule.gemm.packing import places_of
from weft.transform.autoschedule.gemm.tiles import Panel, Tile, cover, fresh, plus, times, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div
from weft.transform.autoschedule.registry import checked
from weft.transform.autoschedule.rules.loops import nested, sequence
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.infra.decisions import Decision

__all__ = ["Planes", "planes_of"]

_MAX_STRIDE = 4


@dataclass(frozen=True, eq=False)
class Planes:
    """The sizes of tiles: `mr` rows of `nr_vectors` vectors of `lanes`, which are whole rows of results."""

    found: Contraction
    mr: int
    nr_vectors: int
    lanes: int
    lanes_of_results: int

    @property
    def window(self) -> Window:
        """The positions."""
        assert self.found.window is not None
        return self.found.window

    @property
    def width(self) -> int:
        """Positions in a row."""
        return known(self.window.sizes[-1])

    @property
    def height(self) -> int:
        """Rows of positions."""
        return math.prod(known(size) for size in self.window.sizes[:-1])

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        return {"mr": self.mr, "nr_vectors": self.nr_vectors, "lanes": self.lanes}

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        checked(decision, "mr", 1, self.height, "rows of results")
        why = "a tile has whole rows"
        checked(decision, "nr_vectors", self.nr_vectors, self.nr_vectors, why)

    def build(self) -> Stmt:
        """The tiles, inside loops over the outer variables."""
        found = self.found
        tiers = [(n, 1) for n in (self.mr, self.height % self.mr) if n]
        body = cover("row", self.height, tiers, lambda at, rows, _: self._tile(at, rows))
        variables = {var: fresh(var) for var in found.outer}
        return nested([(variables[var], found.extents[var]) for var in found.outer], substitute(body, variables))

    def _tile(self, row: PrimExpr, rows: int) -> Stmt:
        """A tile of `rows` rows from `row` on."""
        found, lanes, vectors, axis = self.found, self.lanes, self.nr_vectors, self.window.axes[-1]
        room = max(lanes, self.lanes_of_results)  # what a row stores behind its end is the next one's
        sums = Buffer("sums", (rows * self.width + room,), found.dtype)
        inner = {var: fresh(var) for var in found.reduction}
        stride = step_along(found.vector, axis)
        assert stride is not None

        def column(j: PrimExpr) -> PrimExpr:
            return times(binary("floormod", j, const(vectors, INDEX)), lanes) if vectors > 1 else const(0, INDEX)

        def row_of(j: PrimExpr) -> PrimExpr:
            return binary("floordiv", j, const(vectors, INDEX)) if vectors > 1 else j

        def elements(j: PrimExpr) -> PrimExpr:
            places = places_of(self.window, plus(row, row_of(j)))
            load = substitute(found.vector, {**inner, **places, axis: column(j)})
            vector = Ramp(load.indices[-1], const(stride, INDEX), lanes)
            mask = None
            if vectors * lanes > self.width:
                mask = binary("lt", Ramp(column(j), const(1, INDEX), lanes), Broadcast(const(self.width, INDEX), lanes))
            return replace(load, indices=(*load.indices[:-1], vector), predicate=mask)

        tile = Tile(
            1,
            Panel(const(0, INDEX), rows * vectors, lanes),
            scalar=lambda _: substitute(found.scalar, inner),
            vector=elements,
            element=lambda _, j: BufferLoad(
                sums, (vector_index(plus(times(row_of(j), self.width), column(j)), lanes),)
            ),
            loops=[(inner[x], found.extents[x]) for x in found.reduction],
        ).build(found.dtype)
        return SeqStmt((AllocBuffer(sums), tile, self._results(sums, row, rows)))

    def _results(self, sums: Buffer, row: PrimExpr, rows: int) -> Stmt:
        """What becomes of the sums."""
        lanes, j = self.lanes_of_results, PrimVar("j", INDEX)
        whole, left = divmod(rows * self.width, lanes)
        parts: list[Stmt] = []
        if whole:
            parts.append(For(j, 0, whole, self._result(sums, row, times(j, lanes), lanes)))
        if left:
            parts.append(self._result(sums, row, const(whole * lanes, INDEX), left))
        return sequence(parts)

    def _result(self, sums: Buffer, row: PrimExpr, at: PrimExpr, used: int) -> Stmt:
        """A vector of results, of which so many lanes are used."""
        found, lane = self.found, PrimVar("lane", INDEX)
        places: dict[PrimVar, PrimExpr] = {found.v: plus(times(row, self.width), plus(at, lane))}
        value: PrimExpr = BufferLoad(sums, (plus(at, lane),))
        if found.epilogue is not None:
            value = substitute(found.epilogue.value, {**places, found.epilogue.total: value})
        indices = tuple(substitute(index, places) for index in found.store.indices)
        stmt: Stmt = BufferStore(found.store.buffer, value, indices, span=found.store.span)
        if used < self.lanes_of_results:
            stmt = IfThenElse(binary("lt", lane, const(used, INDEX)), stmt, None)
        return For(lane, 0, self.lanes_of_results, stmt, "vectorized")


def planes_of(found: Contraction, capacity: Capacity) -> Planes | None:
    """The nest; None where sizes are not known, rows too long, or the machine has no masks for the ends of rows."""
    window = found.window
    if window is None or found.r is not None or not is_float(found.dtype) or any(found.casts):
        return None
    sizes = *window.sizes, *(found.extents[x] for x in found.reduction)
    known_sizes = all(isinstance(size, int) and size > 0 for size in sizes)
    stride = step_along(found.vector, window.axes[-1])
    if not known_sizes or not capacity.masks or capacity.lanes == 1 or stride not in range(1, _MAX_STRIDE + 1):
        return None
    width, height = known(window.sizes[-1]), math.prod(known(size) for size in window.sizes[:-1])
    lanes = min(capacity.lanes, max(4, 1 << (width - 1).bit_length()))
    vectors, most = ceil_div(width, lanes), capacity.machine.vector_registers // 2
    if vectors > most:
        return None
    mr = capacity.pins.get("mr", block_size(height, max(1, most // vectors)))
    return Planes(found, mr, vectors, lanes, capacity.lanes)
