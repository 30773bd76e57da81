"""Packed nests: blocks of both operands are copied into the order in which tiles read them.

for blocks of rows:  for blocks of the sum:
  A's block packed                                    stays in the second cache: read by every panel
  for panels of B, a tile wide:  B's panel packed     stays in the first cache: read by every tile of rows
    for tiles of rows:  C's tile += A's tile * panel  sums go on in C from one block to the next, in order

The panels are shared out to parts, each with memory for one panel, so that threads may take a part each. Where there
are few panels and many rows, all panels are packed first and the tiles of rows are what threads share:

for blocks of the sum:
  for panels of B:  B's panel packed
  for tiles of rows:  for panels of B:  C's tile += A's tile * panel

Columns that no whole panel covers are a panel under a mask. B's panel is copied in whole vectors where it runs along
the columns, element by element where it does not, and from piece to piece where windows move over it.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute
from weft.ir.dtype import with_lanes
from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
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
)
from weft.transform.contractions.recognition import Contraction
from weft.transform.contractions.tiles import (
    Access,
    Panel,
    Tile,
    blocks,
    cover_columns,
    cover_rows,
    finisher,
    flat_view,
    fresh,
    minus,
    plus,
    row_at,
    times,
    vector_at,
    vector_index,
)
from weft.transform.nests import same_extents
from weft.transform.rules.access import step_along
from weft.transform.rules.loops import sequence
from weft.transform.rules.transposes import turned

__all__ = ["packed"]


def packed(found: Contraction, limits: Limits) -> Stmt:
    """The nest over packed blocks."""
    return _Packed(found, limits).build()


class _Packed:
    def __init__(self, found: Contraction, limits: Limits) -> None:
        assert found.r is not None
        self.found, self.limits, self.r = found, limits, found.r
        self.k, *self.inner = found.reduction
        self.dtype = found.store.buffer.dtype
        extents = found.extents
        self.rows = tile_rows(extents[self.r], limits)
        self.vectors = min(tile_vectors(self.rows, extents[found.v], limits), 2 * limits.most_vectors)
        self.unit = 1
        for var in self.inner:
            extent = extents[var]
            assert isinstance(extent, int)
            self.unit *= extent
        self.steps = _block(extents[self.k], max(1, limits.block_sums // max(1, self.unit)), 1)
        self.sums = self.steps * self.unit
        self.block_rows = _block(extents[self.r], limits.block_rows, self.rows)
        columns, rows = extents[found.v], extents[self.r]
        self.width = self.vectors * limits.lanes
        panels = ceil_div(columns, self.width) if isinstance(columns, int) else limits.parts
        known = isinstance(rows, int) and isinstance(columns, int) and rows >= 4 * self.rows
        self.shares_rows = known and self._is_narrow() and (limits.masks or columns % self.width == 0)
        self.parts = panels if self.shares_rows else min(limits.parts, panels)
        # Without a direct nest for few rows, a single one must not be rounded up far.
        self.rests = (ceil_div(self.rows, 2),) if found.runs else (1, ceil_div(self.rows, 2))
        self.view_of_a = self._unpacked()
        # A last tile of symbolic size may have rows to spare.
        self.a = Buffer("a_packed", ((self.block_rows + self.rows) * self.sums,), self.dtype)
        self.b = Buffer("b_packed", (self.parts, self.sums * self.width), self.dtype)

    def build(self) -> Stmt:
        """The loops over blocks, inside those over outer variables."""
        found = self.found
        body = blocks(self.r, found.extents[self.r], self.block_rows, lambda at, n: self._rows(at, n))
        variables = {var: fresh(var) for var in found.outer}
        body = substitute(body, variables)
        for var in reversed(found.outer):
            body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
        if self.view_of_a is None:
            return SeqStmt((AllocBuffer(self.a), AllocBuffer(self.b), body))
        view = () if self.view_of_a is found.scalar.buffer else (DeclBuffer(self.view_of_a),)
        return SeqStmt((*view, AllocBuffer(self.b), body))

    def _is_narrow(self) -> bool:
        """Whether there are few panels."""
        columns = self.found.extents[self.found.v]
        return isinstance(columns, int) and columns <= self.limits.few_panels * self.width

    def _unpacked(self) -> Buffer | None:
        """A with its terms along one axis, where it is read too seldom for a copy to pay and lies in that order."""
        found = self.found
        indices = found.scalar.indices
        last = indices[-len(found.reduction) :]
        ordered = len(indices) > len(last) and all(x is y for x, y in zip(last, found.reduction, strict=False))
        sizes = [found.extents[x] for x in found.reduction]
        whole = same_extents(found.scalar.buffer.shape[len(indices) - len(last) :], sizes)
        if not self._is_narrow() or not ordered or not whole or found.scalar.buffer.strides is not None:
            return None
        return found.scalar.buffer if len(last) == 1 else flat_view(found.scalar.buffer, len(last))

    def _rows(self, first: PrimExpr, count: Extent) -> Stmt:
        extent = self.found.extents[self.k]
        return blocks(
            self.k, extent, self.steps, lambda at, n: self._block(first, count, at, n),
            sums=True, one_text=self.unit == 1,
        )  # fmt: skip

    def _block(self, first: PrimExpr, count: Extent, k: PrimExpr, steps: Extent) -> Stmt:
        def over_rows(inner: Callable[[PrimExpr, int, Access], Stmt]) -> Stmt:
            return cover_rows(self.r.name, count, self.rows, self.rests, inner)

        if self.shares_rows:
            packing = self._over_panels(lambda panel: self._pack_b(k, steps, panel))
            tiles = over_rows(lambda row, rows, clamp: self._over_panels(
                lambda panel: self._tile(first, row, rows, clamp, k, steps, panel)
            ))  # fmt: skip
            parts = (packing, tiles)
        else:
            panels = self._over_panels(lambda panel: SeqStmt((
                self._pack_b(k, steps, panel),
                over_rows(lambda row, rows, clamp: self._tile(first, row, rows, clamp, k, steps, panel)),
            )))  # fmt: skip
            parts = (panels,)
        return sequence(parts if self.view_of_a is not None else (self._pack_a(first, count, k, steps), *parts))

    def _over_panels(self, inner: Callable[[Panel], Stmt]) -> Stmt:
        columns = self.found.extents[self.found.v]
        return cover_columns(self.found.v.name, columns, self.vectors, self.limits, inner, self.parts)

    def _in_b(self, panel: Panel, place: PrimExpr, lanes: int = 1) -> tuple[PrimExpr, PrimExpr]:
        """Where elements of a packed panel are; each part has a row of its own, which proves that parts are apart."""
        return as_expr(panel.part, INDEX), vector_index(place, lanes)

    # Packing

    def _sums_of(self, steps: Extent) -> Extent:
        """The terms in a block of steps along k."""
        return times_of(steps, self.unit)

    def _each_term(self, k: PrimExpr, steps: Extent, body: Callable[[dict[PrimVar, PrimExpr], PrimExpr], Stmt]) -> Stmt:
        """A loop over the terms of a block: `body(values of the variables, number of the term)`."""
        p = PrimVar("p", INDEX)
        inner = {var: fresh(var) for var in self.inner}
        number: PrimExpr = p
        for var in self.inner:
            extent = self.found.extents[var]
            assert isinstance(extent, int)
            number = plus(times(number, extent), inner[var])
        stmt = body({self.k: plus(k, p), **inner}, number)
        for var in reversed(self.inner):
            stmt = For(inner[var], 0, self.found.extents[var], stmt)
        return For(p, 0, steps, stmt)

    def _pack_a(self, first: PrimExpr, count: Extent, k: PrimExpr, steps: Extent) -> Stmt:
        """Tile after tile; in a tile the elements of all rows for one term side by side."""
        def tile(at: PrimExpr, rows: int, clamp: Access) -> Stmt:
            i = PrimVar("i", INDEX)
            load = row_at(self.found.scalar, self.r, plus(first, clamp(plus(at, i))))

            def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
                place = plus(times(at, self.sums), plus(times(number, rows), i))
                return For(i, 0, rows, BufferStore(self.a, substitute(load, values), (place,)), "unrolled")

            return self._each_term(k, steps, term)

        return cover_rows(self.r.name, count, self.rows, self.rests, tile)

    def _pack_b(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """The terms of the panel one after another; zeros where it has no columns."""
        if self.found.window is None and self.found.runs:
            return self._pack_vectors(k, steps, panel)
        if self._turns(panel):
            return self._pack_turned(k, steps, panel)
        packed = self._pack_elements if self.found.window is None else self._pack_windows
        copy = packed(k, steps, panel)
        if panel.left is None:
            return copy
        i = PrimVar("i", INDEX)
        zero = const(0.0, with_lanes(self.dtype, panel.lanes))
        clear = BufferStore(self.b, zero, self._in_b(panel, times(i, panel.lanes), panel.lanes))
        return SeqStmt((For(i, 0, times_of(self._sums_of(steps), panel.vectors), clear), copy))

    def _turns(self, panel: Panel) -> bool:
        """Whether B lies along the sum, so that squares of it can be turned."""
        load = self.found.vector
        along = load.indices[-1] is self.k and step_along(load, self.k) == 1
        return self.found.window is None and not self.inner and along and panel.lanes > 1

    def _pack_turned(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """In squares, turned in registers; columns beyond the last one are copies of it."""
        load, v, lanes, width = self.found.vector, self.found.v, panel.lanes, panel.width
        j, p = PrimVar("j", INDEX), PrimVar("p", INDEX)
        last = binary("sub", as_expr(self.found.extents[v], INDEX), const(1, INDEX))

        def column(at: PrimExpr) -> PrimExpr:
            place = plus(panel.start, at)
            return place if panel.left is None else binary("min", place, last)

        def row(t: int) -> BufferLoad:
            place = column(plus(times(j, lanes), const(t, INDEX)))
            indices = tuple(substitute(x, {v: place}) for x in load.indices[:-1])
            return BufferLoad(load.buffer, (*indices, vector_index(plus(k, times(p, lanes)), lanes)))

        def put(t: int, value: PrimExpr) -> Stmt:
            place = plus(times(plus(times(p, lanes), const(t, INDEX)), width), times(j, lanes))
            return BufferStore(self.b, value, self._in_b(panel, place, lanes))

        squares = turned(row, put, lanes, self.dtype)
        whole = steps // lanes if isinstance(steps, int) else binary("floordiv", steps, const(lanes, INDEX))
        parts: list[Stmt] = [For(p, 0, whole, For(j, 0, panel.vectors, squares))]
        rest = minus(steps, times_of(whole, lanes))
        if not (isinstance(rest, int) and rest == 0):
            q, i = PrimVar("p", INDEX), PrimVar("j", INDEX)
            term = plus(as_expr(times_of(whole, lanes), INDEX), q)
            value = substitute(load, {v: column(i), self.k: plus(k, term)})
            copy = BufferStore(self.b, value, self._in_b(panel, plus(times(term, width), i)))
            parts.append(For(q, 0, rest, For(i, 0, width, copy)))
        return SeqStmt(tuple(parts))

    def _pack_elements(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """One by one."""
        j, load = PrimVar("j", INDEX), self.found.vector

        def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            value = substitute(load, {**values, self.found.v: plus(panel.start, j)})
            copy = BufferStore(self.b, value, self._in_b(panel, plus(times(number, panel.width), j)))
            if panel.left is None:
                return For(j, 0, panel.width, copy, "unrolled")
            return For(j, 0, panel.left, copy)

        return self._each_term(k, steps, term)

    def _pack_vectors(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """In whole vectors."""
        j, width, load = PrimVar("j", INDEX), panel.width, self.found.vector

        def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            at = times(j, panel.lanes)
            value = vector_at(substitute(load, values), self.found.v, plus(panel.start, at), panel.lanes)
            place = self._in_b(panel, plus(times(number, width), at), panel.lanes)
            mask = panel.mask(j)
            if mask is not None:
                value = BufferLoad(value.buffer, value.indices, mask)
            return For(j, 0, panel.vectors, BufferStore(self.b, value, place), "unrolled")

        return self._each_term(k, steps, term)

    def _pack_windows(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """Row by row of the windows' positions: `count` of them from (..., x) on, in one row, go to column `to`."""
        window = self.found.window
        assert window is not None
        length = as_expr(window.sizes[-1], INDEX)
        end = plus(panel.start, as_expr(panel.width if panel.left is None else panel.left, INDEX))
        row = binary("floordiv", panel.start, length)
        last = binary("floordiv", binary("sub", end, const(1, INDEX)), length)
        t = PrimVar("t", INDEX)
        names = [PrimVar(name, INDEX) for name in ("row", "start", "count", "to", "x")]
        this, start, count, to, x = names
        binds = [
            Bind(this, plus(row, t)),
            Bind(start, binary("max", panel.start, binary("mul", this, length))),
            Bind(count, binary("sub", binary("min", end, binary("mul", plus(this, const(1, INDEX)), length)), start)),
            Bind(to, binary("sub", start, panel.start)),
            Bind(x, binary("sub", start, binary("mul", this, length))),
        ]
        places: dict[PrimVar, PrimExpr] = {}
        left: PrimExpr = this
        for axis, size in zip(reversed(window.axes[:-1]), reversed(window.sizes[:-1]), strict=True):
            outermost = axis is window.axes[0]
            places[axis] = left if outermost else binary("floormod", left, as_expr(size, INDEX))
            left = binary("floordiv", left, as_expr(size, INDEX))
        lanes = panel.lanes
        most = panel.width if not isinstance(window.sizes[-1], int) else min(panel.width, window.sizes[-1])
        j, lane = PrimVar("j", INDEX), PrimVar("lane", INDEX)

        def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            at = plus(times(j, lanes), lane)
            value = substitute(self.found.vector, {**values, **places, window.axes[-1]: plus(x, at)})
            place = self._in_b(panel, plus(plus(times(number, panel.width), to), at))
            copy = IfThenElse(binary("lt", at, count), BufferStore(self.b, value, place), None)
            return For(j, 0, ceil_div(most, lanes), For(lane, 0, lanes, copy, "vectorized"), "unrolled")

        rows = binary("add", binary("sub", last, row), const(1, INDEX))
        return For(t, 0, rows, SeqStmt((*binds, self._each_term(k, steps, term))))

    # Tiles

    def _tile(
        self, first: PrimExpr, at: PrimExpr, rows: int, clamp: Access, k: PrimExpr, steps: Extent, panel: Panel
    ) -> Stmt:
        found, p, lanes = self.found, PrimVar("p", INDEX), panel.lanes
        sums = self._sums_of(steps)
        target = BufferLoad(found.store.buffer, found.store.indices)
        start = times(at, self.sums)

        def scalar(i: PrimExpr) -> PrimExpr:
            if self.view_of_a is not None:
                lead = row_at(found.scalar, self.r, plus(first, clamp(plus(at, i)))).indices[: -len(found.reduction)]
                return BufferLoad(self.view_of_a, (*lead, plus(times(k, self.unit), p)))
            return BufferLoad(self.a, (plus(start, plus(times(p, rows), i)),))

        def vector(j: PrimExpr) -> PrimExpr:
            place = plus(times(p, panel.width), times(j, lanes))
            return BufferLoad(self.b, self._in_b(panel, place, lanes))

        def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            row = plus(first, clamp(plus(at, i)))
            return vector_at(row_at(target, self.r, row), found.v, plus(panel.start, times(j, lanes)), lanes)

        def soon(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            row = plus(first, plus(plus(at, const(rows, INDEX)), i))
            return vector_at(row_at(target, self.r, row), found.v, plus(panel.start, times(j, lanes)), lanes)

        several = not isinstance(found.extents[self.k], int) or found.extents[self.k] != self.steps
        goes_on = binary("gt", k, const(0, INDEX)) if several else None
        end = binary("ge", plus(k, as_expr(steps, INDEX)), as_expr(found.extents[self.k], INDEX))
        finish = finisher(found, panel, lambda i: plus(first, clamp(plus(at, i))))
        is_last = end if several else None
        return Tile(
            rows, panel, scalar, vector, element, [(p, sums)], goes_on, finish, is_last, found.has_long_epilogue,
            None if self.shares_rows else soon,
        ).build(self.dtype)  # fmt: skip


def times_of(a: Extent, b: int) -> Extent:
    """a * b."""
    return a * b if isinstance(a, int) else times(a, b)


def _block(extent: Extent, most: int, unit: int) -> int:
    """The size of a block: a known extent that fits, or a part of it that leaves no rest, else whole units."""
    if not isinstance(extent, int):
        return ceil_div(most, unit) * unit
    if extent <= most:
        return extent
    even = next((size for size in range(most, most // 2, -1) if extent % size == 0), 0)
    return even or ceil_div(ceil_div(extent, ceil_div(extent, most)), unit) * unit
