"""Packing: blocks of A and panels of B, copied into the order in which tiles read them.

A's block is tile after tile; in a tile the elements of all rows for one k side by side, or row after row where A lies
along k, whose vectors are copied (and converted) as they are. B's panel is one k after
another. It is copied in whole vectors where B runs along the columns, in squares that are transposed in registers where
it lies along k, from run to run where windows move over it, and element by element otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    Bind,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import Blocking, row_of_a
from weft.transform.autoschedule.gemm.match import Window
from weft.transform.autoschedule.gemm.tiles import (
    Access,
    Panel,
    column_at,
    fresh,
    minus,
    plus,
    row_at,
    times,
    times_of,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.rules.loops import split
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.autoschedule.rules.transposes import transposed

__all__ = ["Packing", "each_k", "place_in_b", "places_of", "windows"]

Put = Callable[[Panel, PrimExpr, PrimExpr], Stmt]
"""(panel, place in it, what is loaded) -> how it is stored."""
AtK = Callable[[dict[PrimVar, PrimExpr], PrimExpr], Stmt]
"""(values of the reduction's variables, their number along k) -> what is done there."""


def each_k(blocking: Blocking, k: PrimExpr, steps: Extent, body: AtK) -> Stmt:
    """A loop over a block of k, `steps` from `k` on."""
    p = PrimVar("p", INDEX)
    inner = {var: fresh(var) for var in blocking.inner}
    number: PrimExpr = p
    for var in blocking.inner:
        extent = blocking.found.extents[var]
        assert isinstance(extent, int)
        number = plus(times(number, extent), inner[var])
    stmt = body({blocking.k: plus(k, p), **inner}, number)
    for var in reversed(blocking.inner):
        stmt = For(inner[var], 0, blocking.found.extents[var], stmt)
    return For(p, 0, steps, stmt)


def place_in_b(blocking: Blocking, panel: Panel, place: PrimExpr, lanes: int = 1) -> tuple[PrimExpr, ...]:
    """Where elements of a packed panel are; each chunk has a row of its own, which proves chunks independent."""
    if not blocking.reuses_panels:
        return as_expr(panel.chunk, INDEX), vector_index(place, lanes)
    slot = as_expr(panel.number, INDEX)
    if blocking.has_several_blocks is not None:  # panels that are packed one after another need one place
        slot = Select(blocking.has_several_blocks, slot, const(0, INDEX))
    return as_expr(panel.chunk, INDEX), slot, vector_index(place, lanes)


@dataclass(frozen=True)
class Packing:
    """The copies of the operands of a contraction that is done in blocks."""

    blocking: Blocking

    def tile_of_a(self, row: PrimExpr, at: PrimExpr, count: int, clamp: Access, k: PrimExpr, steps: Extent) -> Stmt:
        """A tile of `count` rows from `at` on, of the block that starts at `row`."""
        blocking, i = self.blocking, PrimVar("i", INDEX)
        load = row_at(blocking.found.scalar, blocking.r, plus(row, clamp(plus(at, i))))
        if blocking.packs_rows_of_a:
            return For(i, 0, count, self._converted_row(load, times(plus(at, i), row_of_a(blocking)), k, steps))

        def at_k(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            place = plus(times(at, blocking.kc), plus(times(number, count), i))
            value = blocking.found.of_a(substitute(load, values))
            return For(i, 0, count, BufferStore(blocking.a, value, (place,)), "unrolled")

        return each_k(blocking, k, steps, at_k)

    def _converted_row(self, load: BufferLoad, place: PrimExpr, k: PrimExpr, steps: Extent) -> Stmt:
        """A row of A from k on, in whole vectors and what is left."""
        blocking, found = self.blocking, self.blocking.found
        whole, end = split(0, steps, blocking.capacity.lanes)

        def copy(first: PrimExpr, lanes: int) -> Stmt:
            value = found.of_a(vector_at(load, blocking.k, plus(k, first), lanes))
            return BufferStore(blocking.a, value, (vector_index(plus(place, first), lanes),))

        p, q = PrimVar("p", INDEX), PrimVar("p", INDEX)
        vectors = For(p, 0, whole, copy(times(p, blocking.capacity.lanes), blocking.capacity.lanes))
        remainder = minus(steps, end)
        if isinstance(remainder, int) and remainder == 0:
            return vectors
        return SeqStmt((vectors, For(q, 0, remainder, copy(plus(as_expr(end, INDEX), q), 1))))

    def panel_of_b(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """The panel, one k after another; zeros where it has no columns."""
        found, window = self.blocking.found, self.blocking.found.window
        if window is None and found.runs:
            return self._vectors(k, steps, panel)
        if window is None and self._lies_along_k(panel):
            return self._squares(k, steps, panel)
        copy = self._elements(k, steps, panel) if window is None else windows(self.blocking, k, steps, panel, self._put)
        if panel.left is None:
            return copy
        i = PrimVar("i", INDEX)
        zero = const(0.0, with_lanes(self.blocking.b.dtype, panel.lanes))
        clear = BufferStore(self.blocking.b, zero, place_in_b(self.blocking, panel, times(i, panel.lanes), panel.lanes))
        vectors = times_of(times_of(steps, self.blocking.granularity), panel.vectors)
        return SeqStmt((For(i, 0, vectors, clear), copy))

    def _lies_along_k(self, panel: Panel) -> bool:
        """Whether B lies along k, so that squares of it can be transposed."""
        load, k = self.blocking.found.vector, self.blocking.k
        return not self.blocking.inner and load.indices[-1] is k and step_along(load, k) == 1 and panel.lanes > 1

    def _squares(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """In squares, transposed in registers; columns beyond the last one are copies of it."""
        found, lanes, width = self.blocking.found, panel.lanes, panel.width
        load, v, b = found.vector, found.v, self.blocking.b
        j, p = PrimVar("j", INDEX), PrimVar("p", INDEX)
        last = binary("sub", as_expr(found.extents[v], INDEX), const(1, INDEX))

        def column(at: PrimExpr) -> PrimExpr:
            place = column_at(found, panel.start, width, at)
            return place if panel.left is None else binary("min", place, last)

        def row(t: int) -> PrimExpr:
            place = column(plus(times(j, lanes), const(t, INDEX)))
            indices = tuple(substitute(x, {v: place}) for x in load.indices[:-1])
            return found.of_b(BufferLoad(load.buffer, (*indices, vector_index(plus(k, times(p, lanes)), lanes))))

        def put(t: int, value: PrimExpr) -> Stmt:
            place = plus(times(plus(times(p, lanes), const(t, INDEX)), width), times(j, lanes))
            return BufferStore(b, value, place_in_b(self.blocking, panel, place, lanes))

        squares = transposed(row, put, lanes, b.dtype)
        whole = steps // lanes if isinstance(steps, int) else binary("floordiv", steps, const(lanes, INDEX))
        stmts: list[Stmt] = [For(p, 0, whole, For(j, 0, panel.vectors, squares))]
        remainder = minus(steps, times_of(whole, lanes))
        if not (isinstance(remainder, int) and remainder == 0):
            q, i = PrimVar("p", INDEX), PrimVar("j", INDEX)
            at_k = plus(as_expr(times_of(whole, lanes), INDEX), q)
            value = found.of_b(substitute(load, {v: column(i), self.blocking.k: plus(k, at_k)}))
            copy = BufferStore(b, value, place_in_b(self.blocking, panel, plus(times(at_k, width), i)))
            stmts.append(For(q, 0, remainder, For(i, 0, width, copy)))
        return SeqStmt(tuple(stmts))

    def _elements(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """One by one."""
        j, found = PrimVar("j", INDEX), self.blocking.found

        def at_k(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            column = column_at(found, panel.start, panel.width, j)
            value = found.of_b(substitute(found.vector, {**values, found.v: column}))
            place = place_in_b(self.blocking, panel, plus(times(number, panel.width), j))
            copy = BufferStore(self.blocking.b, value, place)
            return For(j, 0, panel.width, copy, "unrolled") if panel.left is None else For(j, 0, panel.left, copy)

        return each_k(self.blocking, k, steps, at_k)

    def _vectors(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """In whole vectors."""
        j, found = PrimVar("j", INDEX), self.blocking.found

        def at_k(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            at = times(j, panel.lanes)
            column = column_at(found, panel.start, panel.width, at)
            value = vector_at(substitute(found.vector, values), found.v, column, panel.lanes)
            place = place_in_b(self.blocking, panel, plus(times(number, panel.width), at), panel.lanes)
            mask = panel.mask(j)
            if mask is not None:
                value = BufferLoad(value.buffer, value.indices, mask)
            return For(j, 0, panel.vectors, BufferStore(self.blocking.b, found.of_b(value), place), "unrolled")

        return each_k(self.blocking, k, steps, at_k)

    def _put(self, panel: Panel, place: PrimExpr, load: PrimExpr) -> Stmt:
        place_in_panel = place_in_b(self.blocking, panel, place)
        return BufferStore(self.blocking.b, self.blocking.found.of_b(load), place_in_panel)


def windows(blocking: Blocking, k: PrimExpr, steps: Extent, panel: Panel, put: Put) -> Stmt:
    """Row by row of the windows' positions: `count` of them from (..., x) on, in one row, go to column `to`."""
    window = blocking.found.window
    assert window is not None
    length = as_expr(window.sizes[-1], INDEX)
    end = plus(panel.start, as_expr(panel.width if panel.left is None else panel.left, INDEX))
    row = binary("floordiv", panel.start, length)
    last = binary("floordiv", binary("sub", end, const(1, INDEX)), length)
    t = PrimVar("t", INDEX)
    this, start, count, to, x = (PrimVar(name, INDEX) for name in ("row", "start", "count", "to", "x"))
    binds = [
        Bind(this, plus(row, t)),
        Bind(start, binary("max", panel.start, binary("mul", this, length))),
        Bind(count, binary("sub", binary("min", end, binary("mul", plus(this, const(1, INDEX)), length)), start)),
        Bind(to, binary("sub", start, panel.start)),
        Bind(x, binary("sub", start, binary("mul", this, length))),
    ]
    places = {**places_of(window, this), window.axes[-1]: x}
    lanes, size = panel.lanes, window.sizes[-1]
    limit = min(panel.width, size) if isinstance(size, int) else panel.width
    j, lane = PrimVar("j", INDEX), PrimVar("lane", INDEX)

    def at_k(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
        at = plus(times(j, lanes), lane)
        load = substitute(blocking.found.vector, {**values, **places, window.axes[-1]: plus(x, at)})
        store = put(panel, plus(plus(times(number, panel.width), to), at), load)
        copy = IfThenElse(binary("lt", at, count), store, None)
        return For(j, 0, ceil_div(limit, lanes), For(lane, 0, lanes, copy, "vectorized"), "unrolled")

    rows = binary("add", binary("sub", last, row), const(1, INDEX))
    return For(t, 0, rows, SeqStmt((*binds, each_k(blocking, k, steps, at_k))))


def places_of(window: Window, row: PrimExpr) -> dict[PrimVar, PrimExpr]:
    """The axes of a window but for the last one, from the number of a row of positions."""
    places: dict[PrimVar, PrimExpr] = {}
    left = row
    for axis, size in zip(reversed(window.axes[:-1]), reversed(window.sizes[:-1]), strict=True):
        outermost = axis is window.axes[0]
        places[axis] = left if outermost else binary("floormod", left, as_expr(size, INDEX))
        left = binary("floordiv", left, as_expr(size, INDEX))
    return places
