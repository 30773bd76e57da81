"""Windows of one element by columns: vectors run along the positions, of which some are copied for all rows of weights.

for images:  for blocks of positions:
  near[k, positions] = X[k, positions]                      all of k, row by row: what windows step over is left out
  for tiles of channels:  for panels of positions:  C[channels, positions] = weights * near

Each element of X is met by all weights once it is near, so that it is read from a far cache once, in runs as long as a
block. Sums of all of k stay in registers and end where they are stored: nothing is transposed, and no partial sum is
written. Weights are constants, packed when the module is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.dtypes import bits, with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
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
from weft.support.forks import cached_property
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.convolutions.channels import Channels, panels_of_weights
from weft.transform.autoschedule.gemm.convolutions.positions import Positions, rows_of
from weft.transform.autoschedule.gemm.epilogue import ends_of
from weft.transform.autoschedule.gemm.match import Moves, Window, uses
from weft.transform.autoschedule.gemm.packing import places_of
from weft.transform.autoschedule.gemm.tiles import (
    Ends,
    Panel,
    Tile,
    blocks,
    cover,
    cover_columns,
    epilogue_of,
    flat_view,
    fresh,
    plus,
    times,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, tile_rows
from weft.transform.autoschedule.registry import checked
from weft.transform.autoschedule.rules.loops import nested, sequence
from weft.transform.infra.decisions import Decision, refused

__all__ = ["Columns", "columns_of", "cost_of_columns"]

_SHARE_OF_CACHE = 2
"""The second cache is so many times what a block of positions takes: weights, and results that are stored, have the
rest."""
_MAX_COLUMNS = 512
"""Of a block: longer runs are read no faster."""
_COPYING, _ENDING = 14, 5
"""What it costs to copy an element, and what a sum costs beside its products, in multiplications."""


@dataclass(frozen=True, eq=False)
class Columns(Positions):
    """The sizes of tiles and blocks: a tile has `mr` channels by `nr_vectors` vectors of positions, a block
    `block_rows` rows of `length` positions, which are those of the result, or all of them in a single one."""

    capacity: Capacity
    mr: int
    nr_vectors: int
    length: int
    block_rows: int

    @property
    def r(self) -> PrimVar:
        """The variable of the channels."""
        assert self.found.r is not None
        return self.found.r

    @property
    def k(self) -> PrimVar:
        """The variable of the reduction."""
        return self.found.reduction[0]

    @property
    def products(self) -> int:
        """Products of each sum."""
        return known(self.found.extents[self.k])

    @property
    def is_one_run(self) -> bool:
        """Whether positions follow one another as elements of X do, so that rows are none."""
        return self.length == self.width * self.height

    @property
    def columns(self) -> int:
        """Positions of a block."""
        return self.block_rows if self.is_one_run else self.block_rows * self.length

    @property
    def has_several_tiles(self) -> bool:
        """Whether each copied position is met by more than one full tile of channels."""
        return known(self.found.extents[self.r]) >= 2 * self.capacity.max_mr

    @cached_property
    def weights(self) -> Buffer:
        """The packed weights: a row for each tile of channels, along k."""
        channels = known(self.found.extents[self.r])
        return Buffer("weights_packed", (ceil_div(channels, self.mr), self.products * self.mr), self.found.dtype)

    def near(self, count: int) -> Buffer:
        """The copy of `count` positions: rows of whole vectors, an odd number of cache lines apart, so that all sets of
        the first cache have some."""
        line = max(1, self.capacity.machine.line_bytes * 8 // bits(self.found.dtype))
        step = math.lcm(line, self.capacity.lanes)
        lines = ceil_div(count, step) * step // line
        row = lines + (1 - lines % 2) * (step // line)
        return Buffer("near", (self.products, row * line), self.found.dtype)

    @cached_property
    def flat(self) -> Buffer:
        """X with its positions as one axis."""
        return flat_view(self.found.vector.buffer, len(self.window.axes))

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "mr": self.mr,
            "nr_vectors": self.nr_vectors,
            "lanes": self.capacity.lanes,
            "mc": self.columns,
            "a": "constant",
            "b": "blocks",
        }

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        high = self.width * self.height
        checked(decision, "mr", 1, known(self.found.extents[self.r]), "channels")
        value = checked(decision, "mc", 1, high, f"there are {high} positions")
        if value != self.columns:
            raise refused(f"gemm of {decision.about!r}: mc={value} comes out as {self.columns} positions")

    def packed_weights(self) -> Iterator[Stmt]:
        """The copies of the weights."""
        found, channel, p = self.found, PrimVar("channel", INDEX), PrimVar("p", INDEX)
        first = {var: const(0, INDEX) for var in found.reduction}
        value = found.of_a(substitute(found.scalar, {**first, self.k: p, self.r: channel}))
        weights = [([(p, self.products)], channel, value, times(p, self.mr))]
        return panels_of_weights(self.weights, known(found.extents[self.r]), self.mr, weights)

    def build(self) -> Stmt:
        """The loops over images and blocks."""
        found = self.found
        axis = self.window.axes[0]
        rows = self.length if self.is_one_run else self.height

        def block(first: PrimExpr, count: Extent) -> Stmt:
            each = 1 if self.is_one_run else self.length
            return self._block(first, times(first, each), known(count) * each)

        body = blocks(axis, rows, self.block_rows, block)
        variables = {var: fresh(var) for var in found.outer}
        loops = [(variables[var], found.extents[var]) for var in found.outer]
        nest = nested(loops, substitute(body, variables))
        return SeqStmt((DeclBuffer(self.flat), nest)) if self.is_one_run else nest

    def _block(self, row: PrimExpr, first: PrimExpr, count: int) -> Stmt:
        """All channels at `count` positions from `first` on, which row `row` begins with."""
        capacity, found = self.capacity, self.found
        channels, near = known(found.extents[self.r]), self.near(count)

        def panels(at: PrimExpr, channels: int) -> Stmt:
            return cover_columns(
                found.v.name,
                count,
                self.nr_vectors,
                capacity,
                lambda panel: self._tile(near, at, channels, panel, first, count),
            )

        tiers = [(n, 1) for n in (self.mr, channels % self.mr) if n]
        tiles = cover(self.r.name, channels, tiers, lambda at, n, _: panels(at, n))
        return SeqStmt((AllocBuffer(near), self._copied(near, row, first, count), tiles))

    def _copied(self, near: Buffer, row: PrimExpr, first: PrimExpr, count: int) -> Stmt:
        """The copy of `count` positions, for all of k; lanes of the last vector beyond them are zeros, with which
        products take no longer than others."""
        lanes, p = self.capacity.lanes, PrimVar("p", INDEX)
        whole, left = divmod(count, lanes)
        zero = const(0.0, with_lanes(self.found.dtype, lanes))
        place = (p, vector_index(const(whole * lanes, INDEX), lanes))
        clear = [BufferStore(near, zero, place)] if left else []
        if self.is_one_run:
            return For(p, 0, self.products, sequence([*clear, self._run(near, p, None, first, count)]))
        y = PrimVar("y", INDEX)
        rows = For(y, 0, count // self.length, self._run(near, p, y, plus(row, y), self.length))
        return For(p, 0, self.products, sequence([*clear, rows]))

    def _run(self, near: Buffer, p: PrimExpr, y: PrimExpr | None, at: PrimExpr, length: int) -> Stmt:
        """The copy of `length` positions: of row y of a block, which is row `at`, or from position `at` on (None)."""
        found, lanes = self.found, self.capacity.lanes
        load = substitute(found.vector, {**{x: const(0, INDEX) for x in found.reduction}, self.k: p})

        def vector(j: PrimExpr, used: int) -> Stmt:
            lane = PrimVar("lane", INDEX)
            x = plus(times(j, lanes), lane)
            if y is None:
                source = BufferLoad(self.flat, (*load.indices[: self.flat.ndim - 1], plus(at, x)))
            else:
                source = substitute(load, {**places_of(self.window, at), self.window.axes[-1]: x})
            place = x if y is None else plus(times(y, length), x)
            stmt: Stmt = BufferStore(near, source, (p, place))
            if used < lanes:
                stmt = IfThenElse(binary("lt", lane, const(used, INDEX)), stmt, None)
            return For(lane, 0, lanes, stmt, "vectorized")

        whole, left = divmod(length, lanes)
        j = PrimVar("j", INDEX)
        parts = [For(j, 0, whole, vector(j, lanes))] if whole else []
        return sequence([*parts, *([vector(const(whole, INDEX), left)] if left else [])])

    def _tile(self, near: Buffer, at: PrimExpr, channels: int, panel: Panel, first: PrimExpr, count: int) -> Stmt:
        """The tile of `channels` channels from `at` on, for a panel of a block of `count` positions from `first` on."""
        found, p, lanes = self.found, PrimVar("p", INDEX), panel.lanes
        there = replace(panel, start=plus(first, panel.start))
        tile = binary("floordiv", at, const(self.mr, INDEX))

        def row(i: PrimExpr) -> PrimExpr:
            return plus(at, i)

        def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            places = {found.v: vector_index(plus(there.start, times(j, lanes)), lanes), self.r: row(i)}
            return BufferLoad(found.store.buffer, tuple(substitute(index, places) for index in found.store.indices))

        return Tile(
            channels,
            panel,
            scalar=lambda i: BufferLoad(self.weights, (tile, plus(times(p, self.mr), i))),
            vector=lambda j: BufferLoad(near, (p, vector_index(plus(panel.start, times(j, lanes)), lanes))),
            element=element,
            loops=[(p, self.products)],
            epilogue=epilogue_of(found, there, row),
            long_epilogue=found.has_long_epilogue,
            ends=self._with_later_elements(
                ends_of(found, self.capacity, there, channels, row, None), tile, channels, panel, first, count
            ),
        ).build(found.dtype)

    def _with_later_elements(
        self, ends: Ends | None, tile: PrimExpr, channels: int, panel: Panel, first: PrimExpr, count: int
    ) -> Ends | None:
        """What a tile prefetches: besides where it ends its share of what the next block copies, at the same columns.

        So memory is read while a block sums, and copies find their elements in the second cache.
        """
        found, line = self.found, max(1, self.capacity.machine.line_bytes * 8 // bits(self.found.vector.dtype))
        total = self.width * self.height
        if not self.is_one_run or (count == total and not self._has_images):
            return ends
        lines = ceil_div(panel.width if panel.left is None else known(panel.left), line)
        share = ceil_div(self.products * lines, ceil_div(known(found.extents[self.r]), self.mr))
        each = ceil_div(share, channels)
        image, start = self._after(plus(first, const(count, INDEX)))
        gone = {x: const(0, INDEX) for x in found.reduction}

        def places(i: PrimExpr) -> Sequence[BufferLoad]:
            results = () if ends is None else ends.places(i)
            return [*results, *(element(plus(times(i, each), const(number, INDEX))) for number in range(each))]

        def element(number: PrimExpr) -> BufferLoad:
            number = binary("min", plus(times(tile, share), number), const(self.products * lines - 1, INDEX))
            p, part = number, const(0, INDEX)
            if lines > 1:
                p, part = (binary(kind, number, const(lines, INDEX)) for kind in ("floordiv", "floormod"))
            at = plus(plus(start, panel.start), times(part, line))
            load = substitute(found.vector, {**gone, **image, self.k: p})
            place = binary("min", at, const(total - 1, INDEX))
            return BufferLoad(self.flat, (*load.indices[: self.flat.ndim - 1], place))

        return Ends(channels, places, is_spread=True)

    @property
    def _has_images(self) -> bool:
        """Whether blocks go through images, one after the other."""
        outer = self.found.outer
        return len(outer) == 1 and self.found.vector.indices[0] is outer[0]

    def _after(self, position: PrimExpr) -> tuple[Mapping[PrimVar, PrimExpr], PrimExpr]:
        """The image and the position in it of what follows one, which may be past its end."""
        if not self._has_images:
            return {}, position
        (batch,), total = self.found.outer, const(self.width * self.height, INDEX)
        last = binary("sub", as_expr(self.found.extents[batch], INDEX), const(1, INDEX))
        image = plus(batch, binary("floordiv", position, total))
        return {batch: binary("min", image, last)}, binary("floormod", position, total)


def columns_of(channels: Channels | None) -> Columns | None:
    """The nest; None where windows have several elements, or positions are too few or too far apart for a block."""
    if channels is None:
        return None
    found, capacity, pins = channels.found, channels.capacity, channels.capacity.pins
    assert found.r is not None
    assert found.window is not None
    if channels.granularity != 1 or any(found.casts) or found.filling is not None or found.is_long_sum:
        return None
    lead = found.vector.indices[: -len(found.window.axes)]
    if found.partial_sums is not None or found.moves is None or any(uses(lead, x) for x in found.window.axes):
        return None
    mr = tile_rows(found.extents[found.r], capacity)
    vectors = pins.get("nr_vectors", capacity.knobs.nr_vectors)
    height, width = rows_of(found.window)
    room = capacity.machine.l2_bytes * 8 // (_SHARE_OF_CACHE * channels.products * bits(found.dtype))
    most, panel = min(_MAX_COLUMNS, room), vectors * capacity.lanes
    if _is_one_run(found.vector, found.window, found.moves):
        total = height * width
        if most < min(panel, total):
            return None
        return Columns(found, capacity, mr, vectors, total, pins.get("mc", block_size(total, most, panel)))
    rows = pins["mc"] // width if "mc" in pins else block_size(height, most // width) if most >= width else 0
    return Columns(found, capacity, mr, vectors, width, rows) if rows else None


def cost_of_columns(columns: Columns) -> float:
    """What windows of one element by columns cost, in multiplications: copies, and lanes of positions that are empty.

    What is compared was measured on convolutions of ResNet, MobileNet, SqueezeNet and GoogLeNet.
    """
    channels, positions = known(columns.found.extents[columns.r]), columns.width * columns.height
    empty = ceil_div(positions, columns.capacity.lanes) * columns.capacity.lanes / positions - 1
    products = columns.products * positions * channels
    return products * (1 + empty + _COPYING / channels + _ENDING / columns.products)


def _is_one_run(load: BufferLoad, window: Window, moves: Sequence[Moves]) -> bool:
    """Whether windows of one element meet all elements of the last axes of a buffer in their order."""
    shape = load.buffer.shape[-len(window.axes) :]
    return load.buffer.strides is None and all(x.step == 1 for x in moves) and same_extents(shape, window.sizes)
