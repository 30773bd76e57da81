"""Many rows of a contraction with weights of few bits: matrices in registers (`MATRIX_TILES`) of short floats.

    x = part[0] + part[1] + part[2]                    each a bfloat16: what is left of an element of A, cut off
    for blocks of rows:  for blocks of k:  for panels of B:
      values = elements of the panel less zero points  bfloat16 as well: whole numbers up to 256, which are exact
      for tiles of rows and of columns:
        for two segments of k, each of which one scale belongs to:
          sums = part[0] * values + part[1] * values + part[2] * values;     total += sums * scale
    C = total

All bits of a float32 are in three such parts, those of a float16 in two, and one holds an int8: products are exact, and
sums those of float32. A block of A stays in the second cache, and meets all panels of a chunk there; a panel is
converted once for each block of rows. Instructions over matrices take subnormal numbers as zeros: a part below 2^-126
adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.dtypes import lanes, with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, cast, const
from weft.ir.tensor import (
    MATRIX_TILES,
    AllocBuffer,
    AttrStmt,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.groups.arrangement import FLOAT, SHORT, Matrices
from weft.transform.autoschedule.gemm.groups.operands import Operands, at_group
from weft.transform.autoschedule.gemm.groups.tile import Elements, stored
from weft.transform.autoschedule.gemm.tiles import ceil_of, fresh, plus, store, times, unrolled, vector_at, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.rules.loops import nested, sequence

__all__ = ["many_rows"]

_BITS = "uint32"
_SHORT_BITS = 16
_TOP = 0xFFFF0000
"""The bits of a float32 that a bfloat16 has."""
_PAIR = 2
"""Neighbours along k in a lane of B."""


def many_rows(operands: Operands) -> Stmt:
    """The parts of A, and the loops over chunks of panels."""
    form = operands.form
    assert form.matrices is not None
    return _ManyRows(operands, form.matrices).build()


@dataclass(frozen=True)
class _Block:
    """Where a block of k starts, in blocks; a panel of a chunk, of all panels, and the first row of a block."""

    k: PrimExpr
    own: PrimExpr
    panel: PrimExpr
    row: PrimExpr


class _ManyRows:
    """The loops, and the buffers between them."""

    def __init__(self, operands: Operands, matrices: Matrices) -> None:
        self.operands, self.form, self.how = operands, operands.form, matrices
        self.found, self.plain = self.form.found, self.form.found.plain
        assert self.plain.r is not None
        self.r = self.plain.r
        self.rows = self.plain.extents[self.r]
        self.depth = matrices.instruction.terms
        most = 2 * matrices.instruction.shape[0]
        self.tile_rows = most if not isinstance(self.rows, int) or self.rows > most // 2 else most // 2
        self.tile_width = 2 * self.form.lanes
        self.parts = self._buffer_of_parts()
        self.values = Buffer("values", (matrices.block * self.form.width,), SHORT)

    @cached_property
    def tiles(self) -> Extent:
        """Tiles of rows, the last of which may be part of one."""
        if isinstance(self.rows, int):
            return ceil_div(self.rows, self.tile_rows)
        return ceil_of(self.rows, self.tile_rows)

    @property
    def blocks(self) -> int:
        """Blocks of k."""
        return self.found.size // self.how.block

    @property
    def block_tiles(self) -> int:
        """Tiles in a block of rows."""
        most = self.how.rows // self.tile_rows
        return min(most, self.tiles) if isinstance(self.tiles, int) else most

    @property
    def halves(self) -> int:
        """Tiles of columns in a panel."""
        return self.form.width // self.tile_width

    # Parts of A

    def _buffer_of_parts(self) -> Buffer:
        outer = tuple(self.plain.extents[var] for var in self.plain.outer)
        steps = self.found.size // self.depth
        shape = (*outer, self.tiles, steps, self.how.parts, self.tile_rows, self.depth)
        return Buffer("parts_of_a", shape, SHORT)

    def _fill(self) -> Iterator[Stmt]:
        """The loops that cut elements of A; rows of the last tile that are not there are copies of the last one."""
        yield AllocBuffer(self.parts)
        tile, step, i = variables = [PrimVar(name, INDEX) for name in ("tile", "step", "i")]
        outer = {var: fresh(var) for var in self.plain.outer}
        row: PrimExpr = plus(times(tile, self.tile_rows), i)
        if not isinstance(self.rows, int) or self.rows % self.tile_rows:
            row = binary("min", row, binary("sub", as_expr(self.rows, INDEX), const(1, INDEX)))
        load = substitute(self.found.a.load, {**outer, self.r: row})
        count = self.depth if load.dtype == SHORT else self.form.lanes
        stores: list[Stmt] = []
        for first in range(0, self.depth, count):
            k = plus(times(step, self.depth), const(first, INDEX))
            vector = vector_at(load, self.found.k, k, count)
            for number in range(self.how.parts):
                value = _part(cast(with_lanes(FLOAT, count), vector), number) if load.dtype != SHORT else vector
                place = (*outer.values(), tile, step, const(number, INDEX), i, vector_index(const(first, INDEX), count))
                stores.append(BufferStore(self.parts, value, place))
        extents = (self.tiles, self.found.size // self.depth, self.tile_rows)
        spatial = [(outer[var], self.plain.extents[var]) for var in self.plain.outer]
        yield nested([*spatial, *zip(variables, extents, strict=True)], sequence(stores))

    # Loops

    def build(self) -> Stmt:
        """The parts of A, then chunks of panels, blocks of rows and of k, and the panels of a chunk."""
        form, chunk = self.form, PrimVar("chunk", INDEX)
        count = ceil_div(form.panels, self.how.chunks)
        chunks = ceil_div(form.panels, count)
        k, own, number = PrimVar("k_block", INDEX), PrimVar("panel", INDEX), PrimVar("block", INDEX)
        panel, has_several = plus(times(chunk, count), own), self.blocks > 1
        total = self._totals(count if has_several else 1)
        first = times(number, self.block_tiles)
        block = _Block(k, own if has_several else const(0, INDEX), panel, first)
        body = sequence([self._converted(block), self._over_tiles(block, total, first)])
        if chunks * count != form.panels:
            body = IfThenElse(binary("lt", panel, const(form.panels, INDEX)), body)
        body = For(k, 0, self.blocks, For(own, 0, count, body))
        body = For(number, 0, self._over_blocks(), body)
        for var in reversed(self.plain.outer):
            outer = fresh(var)
            body = For(outer, 0, self.plain.extents[var], substitute(body, {var: outer}))
        body = sequence([AllocBuffer(self.values), AllocBuffer(total), body])
        loop = For(chunk, 0, chunks, body, span=self.plain.store.span)
        return sequence([*self._fill(), loop])

    def _totals(self, panels: int) -> Buffer:
        """The sums of all tiles of a block of rows in some panels, one tile after another."""
        count = panels * self.block_tiles if self.blocks > 1 else 1
        return Buffer("total", (count * self.tile_rows * self.form.width,), FLOAT)

    def _over_blocks(self) -> Extent:
        if isinstance(self.tiles, int):
            return ceil_div(self.tiles, self.block_tiles)
        return ceil_of(self.tiles, self.block_tiles)

    def _over_tiles(self, block: _Block, total: Buffer, first: PrimExpr) -> Stmt:
        """The tiles of a block of rows: of half as many rows where no more are left."""
        tile, small = PrimVar("tile", INDEX), self.tile_rows // 2
        left = binary("sub", as_expr(self.tiles, INDEX), first)
        is_whole = isinstance(self.tiles, int) and self.tiles % self.block_tiles == 0
        count: Extent = self.block_tiles if is_whole else binary("min", left, const(self.block_tiles, INDEX))
        number = plus(first, tile)
        place = plus(times(block.own, self.block_tiles), tile)
        place = const(0, INDEX) if self.blocks == 1 else times(place, self.tile_rows * self.form.width)
        left = binary("sub", as_expr(self.rows, INDEX), times(number, self.tile_rows))

        def of(rows: int) -> Stmt:
            return _Tile(self, block, total, place, number, rows).build(binary("min", left, const(rows, INDEX)))

        rest = self.rows % self.tile_rows if isinstance(self.rows, int) else 1
        if small < self.how.instruction.shape[0] or not 0 < rest <= small:
            return For(tile, 0, count, of(self.tile_rows))
        body = IfThenElse(binary("le", left, const(small, INDEX)), of(small), of(self.tile_rows))
        return For(tile, 0, count, body)

    # Panels

    def _converted(self, block: _Block) -> Stmt:
        """The elements of a panel in a block of k as short floats, pairs of neighbours along k side by side."""
        form = self.form
        unit = max(_PAIR, form.per * form.terms)
        segment, number = PrimVar("segment", INDEX), PrimVar("unit", INDEX)
        units, segments = self.how.segment // unit, self.how.block // self.how.segment
        of_block, g = plus(times(segment, units), number), self.group(block, segment)
        at = plus(times(block.k, self.how.block // unit), of_block)
        elements = Elements(self.operands, block.panel, lambda i: None)
        stores: list[Stmt] = []
        for j in range(form.vectors):
            values = self._unit(elements, at, g, j, unit)
            for pair in range(unit // _PAIR):
                first = plus(times(of_block, unit // _PAIR), const(pair, INDEX))
                value = _paired(values[_PAIR * pair], values[_PAIR * pair + 1])
                stores.append(store(self.pairs(first, const(j // 2, INDEX), const(j % 2, INDEX)), value))
        return nested([(segment, segments), (number, units)], sequence(stores))

    def _unit(self, elements: Elements, at: PrimExpr, g: PrimExpr, j: int, unit: int) -> list[PrimExpr]:
        """Elements that are neighbours along k, vector j of each, as floats."""
        form, zero = self.form, const(0, INDEX)
        kind = with_lanes(FLOAT, form.lanes)
        found: list[PrimExpr] = []
        if form.terms == 1:
            for t in range(unit):
                step = plus(times(at, unit // form.per), const(t // form.per, INDEX))
                found.append(cast(kind, elements.weights(zero, step, t % form.per, j)))
        else:
            for h in range(form.per):
                count = form.lanes * form.terms
                line: PrimExpr = cast(with_lanes("uint8", count), elements.weights(zero, at, h, j))
                if self.operands.offset:
                    line = binary("add", line, const(self.operands.offset, line.dtype))
                found += _bytes(line, form.lanes)
        if self.found.b.zero is None and not self.operands.offset:
            return found
        return [binary("sub", value, elements.zero(g, j, FLOAT)) for value in found]

    def group(self, block: _Block, segment: PrimExpr) -> PrimExpr:
        """The group that a segment of a block is in."""
        number = plus(times(block.k, self.how.block // self.how.segment), segment)
        each = self.found.group // self.how.segment
        return number if each == 1 else binary("floordiv", number, const(each, INDEX))

    def pairs(self, pair: PrimExpr, half: PrimExpr, j: PrimExpr) -> BufferLoad:
        """Vector j of a tile of columns, of a pair of neighbours along k: those of a tile stay in the first cache."""
        lanes = _PAIR * self.form.lanes
        first = times(half, self.how.block // _PAIR)
        place = times(plus(times(plus(first, pair), 2), j), lanes)
        return BufferLoad(self.values, (vector_index(place, lanes),))


class _Tile:
    """The sums of some rows and all columns of a panel in a block of k, `place` of them from there on in the totals."""

    def __init__(
        self, all_rows: _ManyRows, block: _Block, total: Buffer, place: PrimExpr, tile: PrimExpr, rows: int
    ) -> None:
        self.all, self.block, self.total, self.place = all_rows, block, total, place
        self.tile, self.rows, self.form, self.how = tile, rows, all_rows.form, all_rows.how
        self.lanes, self.kind = self.form.lanes, with_lanes(FLOAT, self.form.lanes)
        segments = self.how.block // self.how.segment
        self.at_once = 2 if segments % 2 == 0 else 1  # segments whose sums go to the totals together
        self.steps = segments // self.at_once
        self.sums = Buffer("sums", (self.at_once * rows * all_rows.tile_width,), FLOAT)

    def build(self, left: PrimExpr) -> Stmt:
        """Clear, add up segments, store `left` rows after the last block of k."""
        step, half, row = PrimVar("segments", INDEX), PrimVar("half", INDEX), PrimVar("i", INDEX)
        zero = const(0.0, self.kind)
        first = fresh(half)
        clear: Stmt = For(first, 0, self.all.halves, self._each(lambda i, j: store(self._total(first, i, j), zero)))
        own = fresh(half)
        steps = For(step, 0, self.steps, For(own, 0, self.all.halves, self._segments(step, own)))
        at = plus(times(self.tile, self.all.tile_rows), row)
        panel = times(self.block.panel, self.form.width)

        def finished(j: PrimExpr) -> Stmt:
            column = plus(times(half, 2), j)
            return stored(self.form, panel, lambda _: at, row, column, lambda lane: self._sum_at(half, row, j, lane))

        write: Stmt = For(row, 0, left, For(half, 0, self.all.halves, unrolled("j", 2, finished)))
        if self.all.blocks > 1:
            clear = IfThenElse(binary("eq", self.block.k, const(0, INDEX)), clear)
            write = IfThenElse(binary("eq", self.block.k, const(self.all.blocks - 1, INDEX)), write)
        return sequence([AllocBuffer(self.sums), clear, steps, write])

    def _segments(self, step: PrimExpr, half: PrimExpr) -> Stmt:
        """The products of some segments, then their sums scaled."""
        numbers = [plus(times(step, self.at_once), const(each, INDEX)) for each in range(self.at_once)]
        groups = [self.all.group(self.block, number) for number in numbers]
        scales = Buffer("scale", (self.at_once * self.all.tile_width,), FLOAT, "local")
        elements = Elements(self.all.operands, self.block.panel, lambda i: None)

        def scale(each: int, j: PrimExpr) -> BufferLoad:
            place = times(plus(const(2 * each, INDEX), j), self.lanes)
            return BufferLoad(scales, (vector_index(place, self.lanes),))

        def loaded(j: PrimExpr) -> Stmt:
            column = plus(times(half, 2), j)
            return sequence([store(scale(each, j), elements.scale(g, column)) for each, g in enumerate(groups)])

        def add(i: PrimExpr, j: PrimExpr) -> Stmt:
            total: PrimExpr = self._total(half, i, j)
            for each, g in enumerate(groups):
                value: PrimExpr = self._sum(each, i, j)
                own = self._scale_of_a(g, i)
                value = value if own is None else binary("mul", value, own)
                total = binary("add", total, binary("mul", value, scale(each, j)))
            return store(self._total(half, i, j), total)

        products = [self._products(each, number, half) for each, number in enumerate(numbers)]
        return sequence([*products, AllocBuffer(scales), unrolled("j", 2, loaded), self._each(add)])

    def _scale_of_a(self, g: PrimExpr, i: PrimExpr) -> PrimExpr | None:
        """The scale of A in a row, for all lanes; rows that are not there have that of the last one."""
        own = self.all.found.a.scale
        if own is None:
            return None
        row = binary("sub", as_expr(self.all.rows, INDEX), const(1, INDEX))
        row = binary("min", plus(times(self.tile, self.all.tile_rows), i), row)
        value = cast(FLOAT, substitute(at_group(own, self.all.found.k, g), {self.all.r: row}))
        return Broadcast(value, self.lanes)

    def _products(self, each: int, segment: PrimExpr, half: PrimExpr) -> Stmt:
        """What the instruction does."""
        depth = self.all.depth
        step, number, g = PrimVar("p", INDEX), PrimVar("part", INDEX), PrimVar("g", INDEX)
        steps, pairs = self.how.segment // depth, depth // _PAIR
        first = plus(times(self.block.k, self.how.block // depth), times(segment, steps))
        pair = plus(times(plus(times(segment, steps), step), pairs), g)
        order = tuple(const(x, "int32") for x in range(_PAIR)) * self.lanes

        def product(i: PrimExpr, j: PrimExpr) -> Stmt:
            place = (self.tile, plus(first, step), number, i, vector_index(times(g, _PAIR), _PAIR))
            a = Shuffle((BufferLoad(self.all.parts, (*self.all.plain.outer, *place)),), order)
            sums = self._sum(each, i, j)
            return store(sums, PrimCall("dot_product", (sums, a, self.all.pairs(pair, half, j)), self.kind))

        clear = self._each(lambda i, j: store(self._sum(each, i, j), const(0.0, self.kind)))
        body = nested([(step, steps), (number, self.how.parts), (g, pairs)], self._each(product))
        return AttrStmt(None, MATRIX_TILES, self.how.instruction.instruction, SeqStmt((clear, body)))

    def _each(self, action: Callable[[PrimExpr, PrimExpr], Stmt]) -> Stmt:
        i = PrimVar("i", INDEX)
        return For(i, 0, self.rows, unrolled("j", 2, lambda j: action(i, j)))

    def _sum(self, each: int, i: PrimExpr, j: PrimExpr) -> BufferLoad:
        """Vector j of the sums of a segment in a row."""
        place = times(plus(times(plus(const(each * self.rows, INDEX), i), 2), j), self.lanes)
        return BufferLoad(self.sums, (vector_index(place, self.lanes),))

    def _total(self, half: PrimExpr, i: PrimExpr, j: PrimExpr) -> BufferLoad:
        return BufferLoad(self.total, (vector_index(self._of_total(half, i, j), self.lanes),))

    def _sum_at(self, half: PrimExpr, i: PrimExpr, j: PrimExpr, lane: PrimExpr) -> BufferLoad:
        return BufferLoad(self.total, (plus(self._of_total(half, i, j), lane),))

    def _of_total(self, half: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        row = plus(times(half, self.all.tile_rows), i)
        return plus(self.place, times(plus(times(row, 2), j), self.lanes))


# Numbers --------------------------------------------------------------------------------------------------------------


def _as(dtype: str, value: PrimExpr) -> PrimExpr:
    return PrimCall("reinterpret", (value,), with_lanes(dtype, lanes(value.dtype)))


def _part(value: PrimExpr, number: int) -> PrimExpr:
    """One of the parts of vectors of float32; what is left of an infinite number is 0, of nan nan."""
    count = lanes(value.dtype)
    top, zero = const(_TOP, with_lanes(_BITS, count)), const(0.0, value.dtype)
    for _ in range(number):
        cut = _as(FLOAT, binary("bitwise_and", _as(_BITS, value), top))
        value = Select(binary("eq", cut, value), zero, binary("sub", value, cut))
    bits = binary("shift_right", _as(_BITS, value), const(_SHORT_BITS, top.dtype))
    return _as(SHORT, cast(with_lanes("uint16", count), bits))


def _paired(even: PrimExpr, odd: PrimExpr) -> PrimExpr:
    """Two vectors of float32, all bits of which a bfloat16 has, as one of these: lanes of both in turn."""
    count = lanes(even.dtype)
    kind = with_lanes(_BITS, count)
    low = binary("shift_right", _as(_BITS, even), const(_SHORT_BITS, kind))
    high = binary("bitwise_and", _as(_BITS, odd), const(_TOP, kind))
    return PrimCall("reinterpret", (binary("bitwise_or", low, high),), with_lanes(SHORT, _PAIR * count))


def _bytes(line: PrimExpr, count: int) -> list[PrimExpr]:
    """The first byte of each lane of 32 bits as a float32, the second, and so on."""
    kind = with_lanes(_BITS, count)
    whole, found = PrimCall("reinterpret", (line,), kind), []
    for t in range(4):
        value = whole if t == 0 else binary("shift_right", whole, const(8 * t, kind))
        found.append(cast(with_lanes(FLOAT, count), binary("bitwise_and", value, const(255, kind))))
    return found
