"""The loops of Winograd convolutions.

for images:  for blocks of rows of tiles:
  strip[c, y, x] = what the block reads of the input, padded      its columns parted by x % m
  windows[e, c, tile] = windows of the strip, transformed         e: one of (m + 2) * (m + 2) products
  for panels of channels:
    for e:  for tiles:  products[e, tile, channels] = sum over c of windows[e, c, tile] * weights[e, c, channels]
    sums[positions, channels] = products, transformed back
    C[channels, positions] = sums, transposed in registers

Vectors run along the tiles of a row where windows are transformed, along the channels everywhere else. A transformed
window that has an infinity gives nan, where a sum of products may be infinite: where elements of the strip are not
finite, or so large that sums of them may not be, the block's sums are those of the products themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator

from weft.dtypes import bits, with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import known
from weft.transform.autoschedule.gemm.convolutions.channels import ChannelBlock
from weft.transform.autoschedule.gemm.convolutions.padded_rows import filling_at, padded_row
from weft.transform.autoschedule.gemm.convolutions.toom_cook import combined, named
from weft.transform.autoschedule.gemm.convolutions.winograd import Winograd
from weft.transform.autoschedule.gemm.tiles import (
    Ends,
    Panel,
    Tile,
    cover,
    flat_view,
    fresh,
    plus,
    times,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.rules.loops import nested, sequence

__all__ = ["winograd_loops"]

_CHECKS = 4
"""Vectors that are looked at side by side for what is not finite."""
_SPARE = 1024.0
"""What elements are multiplied by there: sums of them, times the factors of transforms, are finite as well."""


def winograd_loops(sizes: Winograd) -> Stmt:
    """The loops over images and blocks."""
    found = sizes.found
    variables = {var: fresh(var) for var in found.outer}
    loops = [(variables[var], found.extents[var]) for var in found.outer]
    return nested(loops, substitute(sequence(_blocks(sizes)), variables))


def _blocks(sizes: Winograd) -> Iterator[Stmt]:
    """The blocks; the last one by itself where it has fewer rows, of tiles or of results."""
    last = sizes.down % sizes.rows
    if sizes.height % sizes.transform.m and not last:
        last = sizes.rows
    whole = sizes.down - last
    if whole:
        yield cover("tiles", whole, [(sizes.rows, 1)], lambda row, *_: _Block(sizes, row, sizes.rows).build())
    if last:
        yield _Block(sizes, const(whole, INDEX), last).build()


@dataclass(frozen=True, eq=False)
class _Block:
    """`count` rows of tiles from `row` on."""

    sizes: Winograd
    row: PrimExpr
    count: int

    @property
    def tiles(self) -> int:
        """How many tiles it has."""
        return self.count * self.sizes.across

    @property
    def top(self) -> PrimExpr:
        """The first row of results."""
        return times(self.row, self.sizes.transform.m)

    @property
    def height(self) -> int:
        """Rows of results."""
        rows = self.count * self.sizes.transform.m
        first = self.row.value * self.sizes.transform.m if isinstance(self.row, IntImm) else 0
        return min(rows, self.sizes.height - first)

    @cached_property
    def strip(self) -> Buffer:
        """What is read of the input."""
        sizes, m = self.sizes, self.sizes.transform.m
        return Buffer("strip", (sizes.terms, self.count * m + 2, m, sizes.across + 1), sizes.found.dtype)

    @cached_property
    def windows(self) -> Buffer:
        """The transformed windows."""
        return Buffer("windows", (self.sizes.products, self.sizes.terms, self.tiles), self.sizes.found.dtype)

    @cached_property
    def check(self) -> _Check:
        """Whether elements of the strip are finite."""
        return _Check(self.strip, self._lanes)

    def build(self) -> Stmt:
        """The block: as products of transformed windows, or of elements where some of these are not finite."""
        transformed = IfThenElse(self.check.is_finite, self._transformed(), None)
        panels = self.sizes.channels.each_panel(self._panel)
        strip = AllocBuffer(self.strip), self._filled(), *self.check.steps()
        return SeqStmt((*strip, AllocBuffer(self.windows), transformed, panels))

    def _panel(self, panel: Panel) -> Stmt:
        """The results of a panel of channels."""
        top, height = self.top, self.height
        return _Panel(self, ChannelBlock(self.sizes.channels, panel, top, height)).build()

    def _filled(self) -> Stmt:
        """The strip, row by row."""
        c, y, x = (PrimVar(name, INDEX) for name in ("in_channel", "y", "x"))

        def store(part: int, at: PrimExpr, value: PrimExpr) -> BufferStore:
            return BufferStore(self.strip, value, (c, y, const(part, INDEX), at))

        length = math.prod(map(known, self.strip.shape[2:]))
        row = padded_row(self._element(c, y, x), x, length, self.sizes.transform.m, self._lanes, store)
        return nested([(c, self.sizes.terms), (y, self.strip.shape[1])], row)

    @property
    def _lanes(self) -> int:
        return self.sizes.channels.capacity.lanes

    def _element(self, c: PrimExpr, y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """An element of the input, or of what pads it; zero where tiles go beyond it."""
        sizes, zero = self.sizes, const(0, INDEX)
        at_y, axes = plus(self.top, y), sizes.window.axes
        places = {axes[0]: at_y, axes[1]: x, sizes.c: c, sizes.window_y: zero, sizes.window_x: zero}
        load: PrimExpr = simplify(substitute(sizes.found.vector, places))
        assert isinstance(load, BufferLoad)
        condition, value, other = _cases(
            sizes.found.of_b(load) if sizes.filling is None else filling_at(sizes.filling, load.indices)
        )
        conditions = [] if condition is None else [condition]
        if sizes.down * sizes.transform.m > sizes.height:
            conditions.append(binary("lt", at_y, const(sizes.height + 2, INDEX)))
        if (sizes.across + 1) * sizes.transform.m > sizes.width + 2:
            conditions.append(binary("lt", x, const(sizes.width + 2, INDEX)))
        if not conditions:
            return value
        both = functools.reduce(functools.partial(binary, "and"), conditions)
        return PrimCall("if_then_else", (both, value, other), value.dtype)

    def _transformed(self) -> Stmt:
        """The windows of all channels, in vectors along the tiles of a row."""
        across, c, row = self.sizes.across, PrimVar("in_channel", INDEX), PrimVar("row", INDEX)
        lanes = min(self._lanes, 1 << (across - 1).bit_length())
        tiers = [(count, 1) for count in (lanes, across % lanes) if count]
        body = cover("x", across, tiers, lambda x, used, _: self._row_of_windows(c, row, Panel(x, 1, lanes, used)))
        return nested([(c, self.sizes.terms), (row, self.count)], body)

    def _row_of_windows(self, c: PrimExpr, row: PrimExpr, tiles: Panel) -> Stmt:
        """Some windows side by side."""
        m, n, lanes, matrix = self.sizes.transform.m, self.sizes.transform.n, tiles.lanes, self.sizes.transform.inputs
        mask = None if tiles.left == lanes else tiles.mask(const(0, INDEX))
        stmts: list[Stmt] = []

        def element(y: int, x: int) -> PrimExpr:
            at = c, plus(times(row, m), const(y, INDEX)), const(x % m, INDEX)
            place = vector_index(plus(tiles.start, const(x // m, INDEX)), lanes)
            return named(f"x_{y}{x}", BufferLoad(self.strip, (*at, place), mask), stmts)

        columns = [combined(matrix, [element(y, x) for y in range(n)], stmts) for x in range(n)]
        place = vector_index(plus(times(row, self.sizes.across), tiles.start), lanes)
        for y, line in enumerate(zip(*columns, strict=True)):
            for x, value in enumerate(combined(matrix, line, stmts)):
                stmts.append(BufferStore(self.windows, value, (const(y * n + x, INDEX), c, place), mask))
        return SeqStmt(tuple(stmts))


def _cases(value: PrimExpr) -> tuple[PrimExpr | None, PrimExpr, PrimExpr]:
    """The condition of a value, if it has one, the value where it holds, and where not."""
    if isinstance(value, PrimCall) and value.op == "if_then_else":
        condition, chosen, other = value.args
        assert isinstance(condition, PrimExpr)
        assert isinstance(chosen, PrimExpr)
        assert isinstance(other, PrimExpr)
        return condition, chosen, other
    return None, value, const(0.0, value.dtype)


@dataclass(frozen=True, eq=False)
class _Panel:
    """The results of a block for a panel of channels."""

    block: _Block
    results: ChannelBlock

    @property
    def sizes(self) -> Winograd:
        """The sizes of all blocks."""
        return self.block.sizes

    @property
    def _panel(self) -> Panel:
        return self.results.panel

    def _vector(self, j: PrimExpr) -> PrimExpr:
        """The places of vector j of the channels."""
        return vector_index(times(j, self._panel.lanes), self._panel.lanes)

    @cached_property
    def products(self) -> Buffer:
        """The products of transformed windows and weights, summed over the input channels."""
        shape = self.sizes.products, self.block.tiles, self.sizes.channels.nr
        return Buffer("products", shape, self.sizes.found.dtype)

    def build(self) -> Stmt:
        """The sums, and what becomes of them."""
        sums = IfThenElse(self.block.check.is_finite, self._transformed(), self._direct())
        return SeqStmt((AllocBuffer(self.results.sums), sums, self.results.stored()))

    def _transformed(self) -> Stmt:
        """Sums from transformed windows."""
        e, sizes = PrimVar("e", INDEX), self.sizes
        tiers = [(n, 1) for n in (sizes.mr, self.block.tiles % sizes.mr) if n]
        tiles = cover("tile", self.block.tiles, tiers, lambda at, count, _: self._tile(e, at, count))
        return SeqStmt((AllocBuffer(self.products), For(e, 0, sizes.products, tiles), self._back()))

    def _tile(self, e: PrimExpr, at: PrimExpr, count: int) -> Stmt:
        """A register tile of one of the products."""
        sizes, panel, c = self.sizes, self._panel, PrimVar("in_channel", INDEX)
        number = binary("floordiv", panel.start, const(sizes.channels.nr, INDEX))

        def weights(j: PrimExpr) -> PrimExpr:
            place = plus(sizes.place_of_weight(e, c), times(j, panel.lanes))
            return BufferLoad(sizes.weights, (number, vector_index(place, panel.lanes)))

        before: list[Stmt] = []
        run = plus(times(e, self._tiles), binary("floordiv", at, const(sizes.mr, INDEX)))
        tile = Tile(
            count,
            Panel(panel.start, panel.vectors, panel.lanes),
            scalar=lambda i: BufferLoad(self.block.windows, (e, c, plus(at, i))),
            vector=weights,
            element=lambda i, j: BufferLoad(self.products, (e, plus(at, i), self._vector(j))),
            loops=[(c, sizes.terms)],
            ends=self._ends(run, before) if sizes.has_near_weights else None,
        )
        return SeqStmt((*before, tile.build(sizes.found.dtype)))

    @property
    def _tiles(self) -> int:
        """Register tiles of one of the products."""
        return ceil_div(self.block.tiles, self.sizes.mr)

    def _ends(self, tile: PrimExpr, stmts: list[Stmt]) -> Ends:
        """What a register tile prefetches, step by step: its share of the lines that the panel's results are stored to.

        Some lines of one channel, or all of several: little is to be computed for each. `stmts` get what is the same
        for all of them. Lines beyond the last one may be named.
        """
        channels, tiles = self._panel.width, self._tiles * self.sizes.products
        line = self.sizes.channels.capacity.machine.line_bytes * 8 // bits(self.sizes.found.dtype)
        lines, several, parts = self.results.lines(line), ceil_div(channels, tiles), max(1, tiles // channels)
        if several > 1:
            start, size = named("channel", times(tile, several), stmts), const(lines, INDEX)
            return Ends(
                several * lines,
                lambda i: self.results.places(
                    plus(start, binary("floordiv", i, size)), times(binary("floormod", i, size), line)
                ),
                is_spread=True,
            )
        each, size = ceil_div(lines, parts), const(parts, INDEX)
        channel = named("channel", binary("floordiv", tile, size), stmts)
        first = named("line", times(binary("floormod", tile, size), each), stmts)
        return Ends(each, lambda i: self.results.places(channel, times(plus(first, i), line)), is_spread=True)

    def _back(self) -> Stmt:
        """The sums of all tiles, transformed back."""
        row, x, j = (PrimVar(name, INDEX) for name in ("row", "x", "j"))
        loops = [(row, self.block.count), (x, self.sizes.across), (j, self._panel.vectors)]
        return nested(loops, self._tile_of_results(row, x, j))

    def _tile_of_results(self, row: PrimExpr, x: PrimExpr, j: PrimExpr) -> Stmt:
        """m x m results of a vector of channels."""
        n, matrix = self.sizes.transform.n, self.sizes.transform.results
        stmts: list[Stmt] = []
        tile = plus(times(row, self.sizes.across), x)

        def product(at_y: int, at_x: int) -> PrimExpr:
            load = BufferLoad(self.products, (const(at_y * n + at_x, INDEX), tile, self._vector(j)))
            return named(f"product_{at_y}{at_x}", load, stmts)

        columns = [combined(matrix, [product(at_y, at_x) for at_y in range(n)], stmts) for at_x in range(n)]
        for at_y, line in enumerate(zip(*columns, strict=True)):
            for at_x, value in enumerate(combined(matrix, line, stmts)):
                stmts.append(self._stored((row, at_y), (x, at_x), j, value))
        return SeqStmt(tuple(stmts))

    def _stored(self, row: tuple[PrimExpr, int], x: tuple[PrimExpr, int], j: PrimExpr, value: PrimExpr) -> Stmt:
        """A vector of results, where it is one: tiles may go beyond the last row and column."""
        m, width, height = self.sizes.transform.m, self.sizes.width, self.results.count
        at_y, at_x = (plus(times(tile, m), const(place, INDEX)) for tile, place in (row, x))
        stmt: Stmt = BufferStore(self.results.sums, value, (plus(times(at_y, width), at_x), self._vector(j)))
        if x[1] > (width - 1) % m:
            stmt = IfThenElse(binary("lt", at_x, const(width, INDEX)), stmt, None)
        if row[1] > (height - 1) % m:
            stmt = IfThenElse(binary("lt", at_y, const(height, INDEX)), stmt, None)
        return stmt

    def _direct(self) -> Stmt:
        """Sums from elements and weights as they are; the vectors of weights are collected first."""
        sums, lanes, j = self.results.sums, self._panel.lanes, PrimVar("j", INDEX)
        position = PrimVar("position", INDEX)
        zero = BufferStore(sums, const(0.0, with_lanes(sums.dtype, lanes)), (position, self._vector(j)))
        cleared = nested([(position, sums.shape[0]), (j, self._panel.vectors)], zero)
        return SeqStmt((cleared, self._summed()))

    def _summed(self) -> Stmt:
        """Sums of the products of elements and weights."""
        sizes, m = self.sizes, self.sizes.transform.m
        sums, weights = self.results.sums, Buffer("weights", (sizes.channels.nr,), self.results.sums.dtype)
        c, in_y, in_x, y, x, j = (
            PrimVar(name, INDEX) for name in ("in_channel", "window_y", "window_x", "y", "x", "j")
        )
        column, size = plus(x, in_x), const(m, INDEX)
        place = c, plus(y, in_y), binary("floormod", column, size), binary("floordiv", column, size)
        element = Broadcast(BufferLoad(self.block.strip, place), self._panel.lanes)
        total = BufferLoad(sums, (plus(times(y, sizes.width), x), self._vector(j)))
        product = binary("mul", element, BufferLoad(weights, (self._vector(j),)))
        added = BufferStore(sums, binary("add", total, product), total.indices)
        each = nested([(y, self.results.count), (x, sizes.width), (j, self._panel.vectors)], added)
        collected = self._collected(weights, {sizes.c: c, sizes.window_y: in_y, sizes.window_x: in_x})
        loops = [(c, sizes.terms), (in_y, 3), (in_x, 3)]
        return nested(loops, SeqStmt((AllocBuffer(weights), collected, each)))

    def _collected(self, weights: Buffer, places: dict[PrimVar, PrimExpr]) -> Stmt:
        """The weights of the panel's channels, in vectors; beyond the last one they are its."""
        j, lane, lanes = PrimVar("j", INDEX), PrimVar("lane", INDEX), self._panel.lanes
        channel, r = plus(times(j, lanes), lane), self.sizes.channels.r
        at = plus(self._panel.start, channel)
        if self._panel.left is not None:
            at = binary("min", at, const(known(self.sizes.found.extents[r]) - 1, INDEX))
        found = self.sizes.found
        weight = found.of_a(substitute(found.scalar, {**places, r: at}))
        vector = For(lane, 0, lanes, BufferStore(weights, weight, (channel,)), "vectorized")
        return For(j, 0, self._panel.vectors, vector)


@dataclass(frozen=True, eq=False)
class _Check:
    """Looks for elements of a buffer that are not finite, or nearly: their products with zero are no zeros."""

    buffer: Buffer
    most_lanes: int

    @cached_property
    def lanes(self) -> int:
        """Lanes of vectors, which the buffer fills one of at least."""
        return min(self.most_lanes, 1 << self._size.bit_length() - 1)

    @cached_property
    def count(self) -> int:
        """Vectors side by side, no more than the buffer has."""
        return min(_CHECKS, self._size // self.lanes)

    @property
    def _size(self) -> int:
        return math.prod(map(known, self.buffer.shape))

    @cached_property
    def _flat(self) -> Buffer:
        return flat_view(self.buffer, self.buffer.ndim)

    @cached_property
    def _total(self) -> Buffer:
        return Buffer("not_finite", (1,), self.buffer.dtype)

    @property
    def is_finite(self) -> PrimExpr:
        """Whether all elements are finite, after `steps`."""
        return binary("eq", self._at(self._total, const(0, INDEX), 1), const(0.0, self.buffer.dtype))

    def steps(self) -> list[Stmt]:
        """What finds out: the sums of vectors of products, several side by side, then of all of these."""
        step, i = self.count * self.lanes, PrimVar("i", INDEX)
        sums = Buffer("sums", (step,), self.buffer.dtype, "local")
        offsets = [const(u * self.lanes, INDEX) for u in range(self.count)]
        places = [self._at(sums, offset, self.lanes) for offset in offsets]
        cleared = (BufferStore(sums, const(0.0, place.dtype), place.indices) for place in places)
        start = binary("min", times(i, step), const(self._size - step, INDEX))  # the last step may repeat elements
        products = (self._product(plus(start, offset)) for offset in offsets)
        loop = For(i, 0, ceil_div(self._size, step), sequence(list(map(_add_to, places, products))))
        total = functools.reduce(functools.partial(binary, "add"), places)
        return [DeclBuffer(self._flat), AllocBuffer(self._total), AllocBuffer(sums), *cleared, loop, *self._sum(total)]

    def _sum(self, vector: PrimExpr) -> list[Stmt]:
        """The sum of the lanes of a vector, by halves."""
        stmts: list[Stmt] = []
        lanes = self.lanes
        while lanes > 1:
            vector, lanes = named("sums_of_lanes", vector, stmts), lanes // 2
            halves = (_lanes_of(vector, range(first, first + lanes)) for first in (0, lanes))
            vector = functools.reduce(functools.partial(binary, "add"), halves)
        return [*stmts, BufferStore(self._total, vector, (const(0, INDEX),))]

    def _product(self, first: PrimExpr) -> PrimExpr:
        """Elements times zero."""
        elements = self._at(self._flat, first, self.lanes)
        large = binary("mul", elements, const(_SPARE, elements.dtype))
        return binary("mul", large, const(0.0, elements.dtype))

    def _at(self, buffer: Buffer, first: PrimExpr, lanes: int) -> BufferLoad:
        return BufferLoad(buffer, (vector_index(first, lanes),))


def _lanes_of(vector: PrimExpr, lanes: Iterable[int]) -> PrimExpr:
    return Shuffle((vector,), tuple(const(lane, "int32") for lane in lanes))


def _add_to(place: BufferLoad, value: PrimExpr) -> Stmt:
    return BufferStore(place.buffer, binary("add", place, value), place.indices)
