"""Packed nests: blocks of both operands are copied into the order in which tiles read them.

for blocks of columns:  for blocks of the sum:
  for panels of B, a tile wide:  B's panel packed
  for blocks of rows:
    A's block packed                                    stays in the second cache: read by every panel
    for panels of B:
      for tiles of rows:  C's tile += A's tile * panel  sums go on in C from one block to the next, in order

Blocks of columns bound the memory that panels are kept in; tiles ask for the panel some terms early, as it comes from
a further cache. With a single block of rows each panel is packed right before its tiles, and stays in the first cache.
The panels are shared out to parts, so that threads may take a part each. Where there are few panels and many rows, the
tiles of rows are what threads share:

for blocks of the sum:
  for panels of B:  B's panel packed
  for tiles of rows:  for panels of B:  C's tile += A's tile * panel

Columns that no whole panel covers are a panel under a mask. B's panel is copied in whole vectors where it runs along
the columns, element by element where it does not, and from piece to piece where windows move over it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from weft.dtypes import with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const, unary
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.tiles import (
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
    panels_of_part,
    plus,
    row_at,
    runs_of_panels,
    times,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import (
    INDEX,
    Capacity,
    ceil_div,
    packs_whole,
    tile_rows,
    tile_vectors,
)
from weft.transform.autoschedule.registry import checked
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.autoschedule.rules.transposes import turned
from weft.transform.infra.decisions import Decision, refused

__all__ = ["Packed"]


Panels = Callable[[Callable[[Panel], Stmt]], Stmt]
"""Loops over panels around what is done with each."""


class Packed:
    """A contraction over packed blocks: what is decided about it, what packs its constants, its loops."""

    def __init__(self, found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> None:
        assert found.r is not None
        self.found, self.capacity, self.r = found, capacity, found.r
        self.k, *self.inner = found.reduction
        self.dtype = found.store.buffer.dtype
        extents = found.extents
        columns, rows = extents[found.v], extents[self.r]
        self.rows = tile_rows(rows, capacity)
        # What masks and empty lanes cost a large product is more than what a text of their own costs to compile.
        sizes = [extents[x] for x in (found.v, self.r, *found.reduction)]
        self.apart = capacity.knobs.remainders_from <= math.prod(x if isinstance(x, int) else 0 for x in sizes)
        widest = capacity.pins.get("nr_vectors", 2 * capacity.knobs.nr_vectors)
        self.vectors = min(tile_vectors(self.rows, columns, capacity), widest)
        self.width = self.vectors * capacity.lanes
        self.unit = 1
        for var in self.inner:
            extent = extents[var]
            assert isinstance(extent, int)
            self.unit *= extent
        # Panels that are kept need places of their own, which a rest in narrower panels would not have.
        whole = capacity.masks or (isinstance(columns, int) and columns % self.width == 0)
        self.constant_b = found.window is None and packs_whole(found, found.vector, found.v, constants)
        self.constant_a = packs_whole(found, found.scalar, self.r, constants)
        self._choose_blocks(columns, rows)
        known = isinstance(rows, int) and isinstance(columns, int) and rows >= 4 * self.rows
        self.shares_rows = known and self._is_narrow() and whole
        panels = ceil_div(columns, self.width) if isinstance(columns, int) else capacity.chunks
        most = capacity.knobs.few_chunks if self.in_turn else capacity.chunks
        wanted = capacity.pins.get("chunks", min(most, capacity.chunks))
        self.parts = panels if self.shares_rows else min(wanted, panels) if isinstance(columns, int) else wanted
        # Without a direct nest for few rows, a single one must not be rounded up far.
        alone = not found.runs or self.constant_b
        self.rests = (1, ceil_div(self.rows, 2)) if alone else (ceil_div(self.rows, 2),)
        self.view_of_a = self._unpacked()
        # A last tile of symbolic size may have rows to spare.
        self.a = Buffer("a_packed", ((self.block_rows + self.rows) * self.sums,), self.dtype)
        one = isinstance(rows, int) and rows <= self.block_rows
        self.keeps = whole and not one and not self.shares_rows and not self.constant_b
        if not self.keeps and isinstance(columns, int) and "nc" not in capacity.pins:
            self.block_columns = columns
        unknown = self.keeps and not isinstance(rows, int)
        self.has_many = binary("gt", as_expr(rows, INDEX), const(self.block_rows, INDEX)) if unknown else None
        many = capacity.knobs.many_panels
        most_panels = panels_of_part(self.block_columns, self.width, self.parts, self.apart, many)
        slots = (most_panels,) if self.keeps else ()
        self.b = Buffer("b_packed", (self.parts, *slots, self.sums * self.width), self.dtype)
        if self.constant_a:
            self.a = Buffer("a_packed", (ceil_div(_known(rows), self.rows), self.rows * self.terms), self.dtype)
        if self.constant_b:
            panels = ceil_div(_known(columns), self.width)
            self.b = Buffer("b_packed", (panels, self.width * self.terms), self.dtype)

    def _choose_blocks(self, columns: Extent, rows: Extent) -> None:
        """How much of both operands is packed at a time."""
        capacity = self.capacity
        plain = isinstance(rows, int) and self.found.window is None
        large = plain and _known(rows) > capacity.mc
        # Panels that are packed in turn are written again and again: in all, parts have no more than stays near.
        self.in_turn = plain and not large and not self.constant_b
        most = capacity.knobs.kc if large else 3 * capacity.knobs.kc // 4
        if self.constant_b and isinstance(rows, int):  # nothing but A is packed: few rows may be longer
            most = max(most, capacity.mc * capacity.knobs.kc // max(rows, capacity.max_mr))
        self.steps = _block(self.found.extents[self.k], max(1, most // max(1, self.unit)), 1)
        pins = capacity.pins
        if "kc" in pins:
            self.steps = max(1, pins["kc"] // self.unit)
        self.sums = self.steps * self.unit
        most = capacity.mc if self.found.window is None else capacity.knobs.window_mc
        self.block_rows = _even_block(rows, most, self.rows)
        self.block_columns = _even_block(columns, capacity.nc, self.width)
        self.block_rows = pins.get("mc", self.block_rows)
        self.block_columns = pins.get("nc", self.block_columns)

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        several = self.found.extents[self.k] != self.steps
        return {
            "mr": self.rows, "nr_vectors": self.vectors, "lanes": self.capacity.lanes, "mc": self.block_rows,
            "nc": self.block_columns, "kc": self.sums, "chunks": self.parts,
            "a": "constant" if self.constant_a else "blocks" if self.view_of_a is None else "in place",
            "b": "constant" if self.constant_b else "panels", "shares": "rows" if self.shares_rows else "columns",
            "reuses_panels": self.keeps, "repacks_per_block": self.in_turn,
            "accumulates": self.found.resumes or several, "remainders": "apart" if self.apart else "masked",
        }  # fmt: skip

    def check(self, decision: Decision) -> None:
        """PassError W528 for blocks that do not hold whole tiles, or more than there is."""
        rows, columns = self.found.extents[self.r], self.found.extents[self.found.v]
        terms = times_of(self.found.extents[self.k], self.unit)
        for name, extent, unit, what in (
            ("mc", rows, self.rows, "rows of a tile (mr)"), ("nc", columns, self.width, "columns of a panel"),
            ("kc", terms, self.unit, "terms that stay together"),
        ):  # fmt: skip
            high = extent if isinstance(extent, int) else 1 << 24
            value = checked(decision, name, 1, high, f"there are {high}")
            if value % unit and value != extent:
                raise refused(f"gemm of {decision.about!r}: {name}={value} is no multiple of the {unit} {what}")
        checked(decision, "chunks", 1, 1024, "chunks that threads may share")
        for name, here, why in (
            ("nc", self.keeps or self.block_columns == columns or not isinstance(columns, int),
             "with one block of rows panels are packed one at a time"),
            ("chunks", self.parts == decision.values["chunks"], f"there are {self.parts} chunks of the loop to share"),
        ):  # fmt: skip
            if not here:
                raise refused(f"gemm of {decision.about!r}: {name}={decision.values[name]} changes nothing: {why}")

    def build(self) -> Stmt:
        """The loops over blocks, inside those over outer variables."""
        found = self.found
        columns = found.extents[found.v]
        if (isinstance(columns, int) and columns <= self.block_columns) or not self.keeps:
            body = self._over_sums(const(0, INDEX), columns)
        else:
            body = blocks(found.v, columns, self.block_columns, self._over_sums, one_text=True)
        variables = {var: fresh(var) for var in found.outer}
        body = substitute(body, variables)
        for var in reversed(found.outer):
            body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
        view = self.view_of_a
        declared: tuple[Stmt, ...] = () if view is None or view is found.scalar.buffer else (DeclBuffer(view),)
        own: list[Stmt] = [] if view is not None or self.constant_a else [AllocBuffer(self.a)]
        own += [] if self.constant_b else [AllocBuffer(self.b)]
        return sequence([*declared, *own, body])

    # Constants

    @property
    def terms(self) -> int:
        """The terms of a whole sum, where they are known."""
        return _known(self.found.extents[self.k]) * self.unit

    def _runs(self) -> list[tuple[int, int, int, int]]:
        columns = _known(self.found.extents[self.found.v])
        return list(runs_of_panels(columns, self.vectors, self.capacity, self.apart))

    def constants(self) -> tuple[Stmt, ...]:
        """Constant operands in the order of tiles: plain copies, which `PackConstants` takes out of the kernel."""
        return tuple(self._constants())

    def _constants(self) -> Iterator[Stmt]:
        if self.constant_a:
            yield AllocBuffer(self.a)
        if self.constant_b:
            yield AllocBuffer(self.b)
        if self.constant_a:
            rows = _known(self.found.extents[self.r])
            whole = rows // self.rows * self.rows
            for start, width, count in ((0, self.rows, rows // self.rows), (whole, rows - whole, 1)):
                if width and count:
                    yield self._whole_copy(self.found.scalar, self.r, self.a, start, width, count, width)
        if self.constant_b:
            load, v = self.found.vector, self.found.v
            for start, width, count, last in self._runs():
                if last == width:
                    yield self._whole_copy(load, v, self.b, start, width, count, width)
                    continue
                if count > 1:
                    yield self._whole_copy(load, v, self.b, start, width, count - 1, width)
                end = start + (count - 1) * width
                i, (row, skipped) = PrimVar("i", INDEX), self._row_of(self.b, const(end, INDEX))
                place = (row, plus(const(skipped, INDEX), i))
                yield For(i, 0, self.terms * width, BufferStore(self.b, const(0.0, self.dtype), place))
                yield self._whole_copy(load, v, self.b, end, width, 1, last)

    def _row_of(self, target: Buffer, start: PrimExpr) -> tuple[PrimExpr, int]:
        """The row of a packed constant that holds a panel or tile from `start` on, and the elements before it there.

        Narrower ones, which cover what whole ones leave over, share the last row.
        """
        width = self.width if target is self.b else self.rows
        if isinstance(start, IntImm):
            return const(start.value // width, INDEX), start.value % width * self.terms
        return _divided(start, width), 0

    def _whole_copy(
        self, load: BufferLoad, var: PrimVar, target: Buffer, start: int, width: int, count: int, used: int
    ) -> Stmt:
        """`count` panels or tiles of `width` from `start` on, of which `used` are there: all terms of each in order."""
        panel, j = PrimVar("panel", INDEX), PrimVar("j", INDEX)
        first, skipped = self._row_of(target, const(start, INDEX))
        row = first if count == 1 else plus(first, panel)

        def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
            column = plus(plus(const(start, INDEX), times(panel, width)), j)
            place = (row, plus(const(skipped, INDEX), plus(times(number, width), j)))
            return For(j, 0, used, BufferStore(target, substitute(load, {**values, var: column}), place))

        return For(panel, 0, count, self._each_term(const(0, INDEX), _known(self.found.extents[self.k]), term))

    def _over_sums(self, first: PrimExpr, columns: Extent) -> Stmt:
        """The blocks of the sum for columns from `first` on."""

        def block(k: PrimExpr, steps: Extent) -> Stmt:
            def panels(inner: Callable[[Panel], Stmt]) -> Stmt:
                return cover_columns(
                    self.found.v.name, columns, self.vectors, self.capacity,
                    lambda panel: inner(_moved(panel, first)), self.parts, self.apart,
                )  # fmt: skip

            return self._block(panels, k, steps)

        return blocks(
            self.k, self.found.extents[self.k], self.steps, block, sums=True,
            one_text=self.unit == 1 and self.found.runs,
        )  # fmt: skip

    def _block(self, panels: Panels, k: PrimExpr, steps: Extent) -> Stmt:
        """A block of B with all blocks of rows."""

        def pack_a(rows: Rows) -> tuple[Stmt, ...]:
            here = self.view_of_a is None and not self.constant_a
            return (self._pack_a(rows, k, steps),) if here else ()

        def by_rows(rows: Rows) -> Stmt:
            tiles = self._over_rows(rows, lambda row, n, clamp: panels(
                lambda panel: self._tile(rows.first, row, n, clamp, k, steps, panel)
            ))  # fmt: skip
            return sequence([*pack_a(rows), tiles])

        def by_panels(rows: Rows) -> Stmt:
            def tiles(panel: Panel) -> Stmt:
                return self._over_rows(
                    rows, lambda row, n, clamp: self._tile(rows.first, row, n, clamp, k, steps, panel)
                )

            if self.constant_b:
                return sequence([*pack_a(rows), panels(tiles)])

            def with_packing(panel: Panel) -> Stmt:
                packing = self._pack_b(k, steps, panel)
                if self.keeps and self.has_many is not None:
                    packing = IfThenElse(unary("not", self.has_many), packing, None)
                return SeqStmt((packing, tiles(panel)))

            in_turn = not self.keeps or self.has_many is not None
            return sequence([*pack_a(rows), panels(with_packing if in_turn else tiles)])

        if not self.shares_rows and not self.keeps:
            return self._blocks_of_rows(by_panels)
        if self.constant_b:
            return self._blocks_of_rows(by_rows)
        packing = panels(lambda panel: self._pack_b(k, steps, panel))
        if self.has_many is not None:
            packing = IfThenElse(self.has_many, packing, None)
        return sequence([packing, self._blocks_of_rows(by_rows if self.shares_rows else by_panels)])

    def _blocks_of_rows(self, inner: Callable[[Rows], Stmt]) -> Stmt:
        extent, size = self.found.extents[self.r], self.block_rows
        if self.view_of_a is not None:  # nothing is packed
            return inner(Rows(const(0, INDEX), extent))
        if not isinstance(extent, int) or extent <= size:
            return blocks(self.r, extent, size, lambda first, count: inner(Rows(first, count)))
        index = PrimVar(f"{self.r.name.removeprefix('v')}_block", INDEX)
        whole = extent // self.rows * self.rows
        number = ceil_div(whole, size)
        first = times(index, size)
        count: Extent = size
        if whole % size:
            count = binary("min", binary("sub", const(whole, INDEX), first), const(size, INDEX))
        is_last = binary("eq", index, const(number - 1, INDEX))
        rest = Rest(is_last, whole - (number - 1) * size, extent % self.rows)
        return For(index, 0, number, inner(Rows(first, count, rest)))

    def _over_rows(self, rows: Rows, inner: Callable[[PrimExpr, int, Access], Stmt]) -> Stmt:
        """The tiles of a block of rows."""
        if rows.rest is None:
            return cover_rows(self.r.name, rows.count, self.rows, self.rests, inner)
        index = PrimVar(f"{self.r.name.removeprefix('v')}_{self.rows}", INDEX)
        if isinstance(rows.count, int):
            tiles: Extent = rows.count // self.rows
        else:
            tiles = binary("floordiv", rows.count, const(self.rows, INDEX))
        body: Stmt = For(index, 0, tiles, inner(times(index, self.rows), self.rows, lambda row: row))
        if rows.rest.rows:
            last = inner(const(rows.rest.at, INDEX), rows.rest.rows, lambda row: row)
            body = SeqStmt((body, IfThenElse(rows.rest.is_last, last, None)))
        return body

    def _is_narrow(self) -> bool:
        """Whether there are few panels."""
        columns = self.found.extents[self.found.v]
        return isinstance(columns, int) and columns <= self.capacity.knobs.few_panels * self.width

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
        if self.constant_a:
            return None
        return found.scalar.buffer if len(last) == 1 else flat_view(found.scalar.buffer, len(last))

    def _in_b(self, panel: Panel, place: PrimExpr, lanes: int = 1) -> tuple[PrimExpr, ...]:
        """Where elements of a packed panel are; each part has a row of its own, which proves that parts are apart."""
        if not self.keeps:
            return as_expr(panel.part, INDEX), vector_index(place, lanes)
        slot = as_expr(panel.number, INDEX)
        if self.has_many is not None:  # panels that are packed in turn need one place
            slot = Select(self.has_many, slot, const(0, INDEX))
        return as_expr(panel.part, INDEX), slot, vector_index(place, lanes)

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

    def _pack_a(self, rows: Rows, k: PrimExpr, steps: Extent) -> Stmt:
        """Tile after tile; in a tile the elements of all rows for one term side by side."""
        def tile(at: PrimExpr, count: int, clamp: Access) -> Stmt:
            i = PrimVar("i", INDEX)
            load = row_at(self.found.scalar, self.r, plus(rows.first, clamp(plus(at, i))))

            def term(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
                place = plus(times(at, self.sums), plus(times(number, count), i))
                return For(i, 0, count, BufferStore(self.a, substitute(load, values), (place,)), "unrolled")

            return self._each_term(k, steps, term)

        return self._over_rows(rows, tile)

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
            if self.constant_a:
                row, _ = self._row_of(self.a, plus(first, at))
                return BufferLoad(self.a, (row, plus(times(plus(times(k, self.unit), p), rows), i)))
            return BufferLoad(self.a, (plus(start, plus(times(p, rows), i)),))

        def of_b(term: PrimExpr, j: PrimExpr, lanes_read: int) -> BufferLoad:
            if self.constant_b:
                term = plus(times(k, self.unit), term)
            place = plus(times(term, panel.width), times(j, lanes))
            if self.constant_b:
                row, skipped = self._row_of(self.b, panel.start)
                place = plus(const(skipped, INDEX), place) if skipped else place
                return BufferLoad(self.b, (row, vector_index(place, lanes_read)))
            return BufferLoad(self.b, self._in_b(panel, place, lanes_read))

        def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            row = plus(first, clamp(plus(at, i)))
            return vector_at(row_at(target, self.r, row), found.v, plus(panel.start, times(j, lanes)), lanes)

        def soon(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            row = plus(first, plus(plus(at, const(rows, INDEX)), i))
            return vector_at(row_at(target, self.r, row), found.v, plus(panel.start, times(j, lanes)), lanes)

        def early(j: PrimExpr) -> BufferLoad:
            return of_b(plus(p, const(self.capacity.knobs.prefetch_k, INDEX)), j, 1)

        asks = rows > 2 and found.window is None  # windows are packed right before their tiles, and of many rows
        several = not isinstance(found.extents[self.k], int) or found.extents[self.k] != self.steps
        goes_on = found.resumes or (several and binary("gt", k, const(0, INDEX)))
        end = binary("ge", plus(k, as_expr(steps, INDEX)), as_expr(found.extents[self.k], INDEX))
        finish = finisher(found, panel, lambda i: plus(first, clamp(plus(at, i))))
        is_last = end if several else None
        return Tile(
            rows, panel, scalar, lambda j: of_b(p, j, lanes), element, [(p, sums)], goes_on, finish, is_last,
            found.has_long_epilogue, None if self.shares_rows else soon, early if asks else None,
        ).build(self.dtype)  # fmt: skip


def _divided(a: PrimExpr, b: int) -> PrimExpr:
    """a / b for what is a sum of multiples of b in form."""
    if isinstance(a, IntImm) and a.value % b == 0:
        return const(a.value // b, INDEX)
    if isinstance(a, Binary) and a.kind == "mul" and isinstance(a.b, IntImm) and a.b.value % b == 0:
        return times(a.a, a.b.value // b)
    assert isinstance(a, Binary) and a.kind == "add", a  # noqa: PT018
    return plus(_divided(a.a, b), _divided(a.b, b))


def _known(extent: Extent) -> int:
    assert isinstance(extent, int)
    return extent


@dataclass(frozen=True)
class Rest:
    """The rows that whole tiles leave over: so many, from `at` on in the last block."""

    is_last: PrimExpr
    at: int
    rows: int


@dataclass(frozen=True)
class Rows:
    """A block of rows: `count` of them from `first` on; with `rest` these are whole tiles, and the rest follows."""

    first: PrimExpr
    count: Extent
    rest: Rest | None = None


def _moved(panel: Panel, start: PrimExpr | None) -> Panel:
    """A panel of a block of columns that starts at a column."""
    if start is None or (isinstance(start, IntImm) and start.value == 0):
        return panel
    return dataclasses.replace(panel, start=plus(start, panel.start))


def times_of(a: Extent, b: int) -> Extent:
    """a * b."""
    return a * b if isinstance(a, int) else times(a, b)


def _even_block(extent: Extent, most: int, unit: int) -> int:
    """The size of a block: all, or parts of whole panels or tiles that are as even as can be."""
    if not isinstance(extent, int):
        return ceil_div(most, unit) * unit
    if extent <= most:
        return extent
    return ceil_div(ceil_div(extent, ceil_div(extent, most)), unit) * unit


def _block(extent: Extent, most: int, unit: int) -> int:
    """The size of a block: a known extent that fits, or a part of it that leaves no rest, else whole units."""
    if not isinstance(extent, int):
        return ceil_div(most, unit) * unit
    if extent <= most:
        return extent
    even = next((size for size in range(most, most // 2, -1) if extent % size == 0), 0)
    return even or ceil_div(ceil_div(extent, ceil_div(extent, most)), unit) * unit
