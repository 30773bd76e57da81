"""Windows by channels: vectors run along the output channels, and elements are read where windows meet them.

for groups of images:  for panels of channels:  for images of a group:  for blocks of positions:
  for blocks of k:  for tiles of positions:  sums[positions, channels] += X[element] * W's panel
  C[channels, positions] = the sums, transposed in registers

No windows are copied: each element of X is read by itself and meets a vector of weights, a constant whose panels are
packed along k when the module is compiled. Tiles have positions of one row, or of several whole rows where those are
short, so that no size of a picture leaves lanes empty. Sums stay near until all of k is in them. Panels of large
weights come from a far cache: each meets a group of images that the second cache holds. Small weights stay near, and
panels are innermost.

Sources: Georganas et al., Anatomy of high-performance deep learning convolutions on SIMD architectures, 2018; Zhang et
al., High performance zero-memory overhead direct convolutions, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from weft.dtypes import bits, is_float
from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.node import FrozenMap
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.convolutions.padded_rows import filled, filling_at, filling_before, padded_row
from weft.transform.autoschedule.gemm.convolutions.positions import Positions, rows_of
from weft.transform.autoschedule.gemm.epilogue import Vectors
from weft.transform.autoschedule.gemm.match import Contraction, Filling, Window, uses
from weft.transform.autoschedule.gemm.packing import places_of
from weft.transform.autoschedule.gemm.tiles import (
    Panel,
    Tile,
    blocks,
    cover,
    fresh,
    plus,
    times,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, packs_whole
from weft.transform.autoschedule.registry import Site, checked
from weft.transform.autoschedule.rules.loops import SHARED, nested, sequence
from weft.transform.autoschedule.rules.strides import loads_in, step_along
from weft.transform.autoschedule.rules.transposes import transposed
from weft.transform.infra.decisions import Decision, refused

__all__ = [
    "ChannelBlock",
    "Channels",
    "channels_of",
    "cost_of_channels",
    "cost_of_direct",
    "cost_of_matrices",
    "panels_of_weights",
    "with_images",
]

_TRANSPOSING = 20
"""What it costs to transpose a sum, in multiplications."""
_MAX_IMAGES = 1 << 20
"""The most images that a decision may name."""
_CONVERTING = 4
"""What it costs a tile to convert an element, in vectors of multiplications."""
_FAR_PLANES, _PAGE_PART = 0.25, 2048
"""What it costs, as a part of all multiplications, that windows of one element meet another plane at each step of k,
and bytes of planes from which on it does: most steps are in a page of their own, which no processor prefetches."""
_COPYING, _LOADING = 0.15, 0.05
"""What it costs to copy windows, and to read rows of B in their own order, as a part of all multiplications."""
_MEETING, _STORING = 3, 16
"""What an element and a result cost where both stay where they are, in multiplications."""


@dataclass(frozen=True, eq=False)
class Channels(Positions):
    """The sizes of tiles and blocks.

    A tile has `mr` positions of one row, or of `rows` whole rows; a block `block_rows` rows. `steps` are iterations of
    the outermost reduction in a block.
    """

    capacity: Capacity
    mr: int
    nr_vectors: int
    rows: int
    block_rows: int
    steps: int

    @property
    def nr(self) -> int:
        """Channels of a panel."""
        return self.nr_vectors * self.capacity.lanes

    @property
    def r(self) -> PrimVar:
        """The variable of the channels."""
        assert self.found.r is not None
        return self.found.r

    @property
    def granularity(self) -> int:
        """Products that stay together along k."""
        return math.prod(known(self.found.extents[x]) for x in self.found.reduction[1:])

    @property
    def products(self) -> int:
        """Products of each sum."""
        return self.granularity * known(self.found.extents[self.found.reduction[0]])

    @property
    def multiplications(self) -> int:
        """Those of one image."""
        return self.products * self.width * self.height * known(self.found.extents[self.r])

    @cached_property
    def weights(self) -> Buffer:
        """The packed weights: a row for each panel, its vectors along k.

        Those that stay near have the type of the sums; those from a far cache are as small as they are stored.
        """
        dtype = self.found.scalar.dtype if self.has_large_weights else self.found.dtype
        return Buffer("weights_packed", self._shape_of_weights, dtype)

    @property
    def _shape_of_weights(self) -> tuple[int, int]:
        channels, k = known(self.found.extents[self.r]), known(self.found.extents[self.found.reduction[0]])
        return ceil_div(channels, self.nr), k * self.granularity * self.nr

    @property
    def image_bytes(self) -> int:
        """The bytes of an image that windows read, as far as its sizes are known."""
        extents = [extent for extent in self.found.vector.buffer.shape[1:] if isinstance(extent, int)]
        return math.prod(extents) * bits(self.found.vector.dtype) // 8

    @property
    def has_large_weights(self) -> bool:
        """Whether weights come from a far cache, and each panel meets several blocks, of images that are smaller."""
        size = math.prod(self._shape_of_weights) * bits(self.found.scalar.dtype) // 8
        return 2 * size > self.capacity.machine.l2_bytes and self.image_bytes <= size

    @property
    def batch_block(self) -> int | None:
        """How many images meet a panel of large weights before the next does; None where all are few.

        They are read again for each panel, so the second cache is to hold them, or a single one. Images that are
        padded or converted are copied, one at a time: what a copy of all of them costs is more than weights that
        come again.
        """
        found = self.found
        if not _has_images(found) or found.casts[1] or not self.has_large_weights:
            return None
        near = self.capacity.machine.l2_bytes // max(1, self.image_bytes)
        several = 1 if found.filling is not None else max(1, near)
        chosen, images = self.capacity.pins.get("batch_block", several), found.extents[found.outer[0]]
        return None if isinstance(images, int) and images <= chosen else chosen

    @property
    def filling(self) -> Filling | None:
        """What computes the input of one image at a time: where no panel meets several images.

        However large an image is: one that is computed where the last one was is nearer than all of a batch.
        """
        copies = bool(self.found.casts[1]) or not self.has_large_weights or self.batch_block == 1
        return self.found.filling if copies else None

    @cached_property
    def image(self) -> Buffer:
        """The input of one image."""
        return Buffer("image", self.found.vector.buffer.shape[1:], self.found.dtype)

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        copies = {} if self.filling is None else {"images": "copied"}
        groups = {} if self.batch_block is None else {"batch_block": self.batch_block}
        return {
            **copies,
            **groups,
            "mr": self.mr,
            "nr_vectors": self.nr_vectors,
            "lanes": self.capacity.lanes,
            "mc": self.block_rows * self.width,
            "kc": self.steps * self.granularity,
            "a": "in place",
            "b": "constant",
        }

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        extent = known(self.found.extents[self.found.reduction[0]]) * self.granularity
        if "batch_block" in decision.values:
            checked(decision, "batch_block", 1, _MAX_IMAGES, "images that meet a panel of weights")
        for name, granularity, high, what in (
            ("mr", 1, self.width * self.height, "positions"),
            ("mc", self.width, self.width * self.height, "positions of a row"),
            ("kc", self.granularity, extent, "products that stay together"),
        ):
            value = checked(decision, name, 1, high, f"there are {high}")
            own = self.values()[name]
            if value != own:
                reason = f"no multiple of the {granularity} {what}" if value % granularity else f"comes out as {own}"
                raise refused(f"gemm of {decision.about!r}: {name}={value} is {reason}")

    def packed_weights(self) -> Iterator[Stmt]:
        """The copies of the weights."""
        found, channel = self.found, PrimVar("channel", INDEX)
        inner = {var: fresh(var) for var in found.reduction}
        load = substitute(found.scalar, {**inner, self.r: channel})
        load = load if self.has_large_weights else found.of_a(load)
        loops = [(inner[x], found.extents[x]) for x in found.reduction]
        weights = [(loops, channel, load, times(self.number(inner), self.nr))]
        return panels_of_weights(self.weights, known(found.extents[self.r]), self.nr, weights)

    def build(self) -> Stmt:
        """The loops over images, panels and blocks: large weights are read once for a group, small ones stay near."""

        def block(panel: Panel, row: PrimExpr, count: int) -> Stmt:
            return ChannelBlock(self, panel, row, count).build()

        def images(first: PrimExpr | None, count: Extent) -> Stmt:
            if self.has_large_weights:
                return self.each_panel(
                    lambda panel: self._blocks(lambda row, rows: block(panel, row, rows), first, count)
                )
            return self._blocks(lambda row, rows: self.each_panel(lambda panel: block(panel, row, rows)), first, count)

        if self.batch_block is None and self.filling is None:
            return images(None, 1)
        batch = self.found.outer[0]
        extent, image = self.found.extents[batch], fresh(batch)
        if self.filling is not None:
            copied = self._filled(self.filling, image)
            return For(image, 0, extent, SeqStmt((AllocBuffer(self.image), copied, images(image, 1))))
        if self.batch_block is None or self.batch_block == 1:
            return For(image, 0, extent, images(image, 1))
        return blocks(batch, extent, self.batch_block, lambda *some: _shared(images(*some)), one_loop=True)

    def each_panel(self, inner: Callable[[Panel], Stmt]) -> Stmt:
        """The panels of channels; one for the rest has as many vectors as it needs."""
        channels, lanes, name = known(self.found.extents[self.r]), self.capacity.lanes, self.r.name
        whole, left = channels // self.nr * self.nr, channels % self.nr
        parts: list[Stmt] = []
        if whole:
            parts.append(cover(name, whole, [(self.nr, 1)], lambda at, *_: inner(Panel(at, self.nr_vectors, lanes))))
        if left:
            parts.append(inner(Panel(const(whole, INDEX), ceil_div(left, lanes), lanes, left)))
        return sequence(parts)

    def _blocks(self, inner: Callable[[PrimExpr, int], Stmt], first: PrimExpr | None, count: Extent) -> Stmt:
        """The blocks of rows of positions, for all outer variables, or those of `count` images from the first on."""
        found, axis = self.found, self.window.axes[0]
        body = blocks(axis, self.height, self.block_rows, lambda row, rows: inner(row, known(rows)))
        variables = {var: fresh(var) for var in found.outer}
        loops = [(variables[var], found.extents[var]) for var in found.outer]
        if first is None:
            return nested(loops, substitute(body, variables))
        own, rest = loops[0][0], loops[1:]
        places = {**variables, found.outer[0]: first if count == 1 else plus(first, own)}
        return nested(rest if count == 1 else [(own, count), *rest], substitute(body, places))

    def _filled(self, filling: Filling, number: PrimVar) -> Stmt:
        """The input of an image, row by row."""
        image, x = self.image, PrimVar("x", INDEX)
        rows = [PrimVar("y", INDEX) for _ in image.shape[:-1]]
        value = filling_at(filling, (number, *rows, x))

        def store(_: int, at: PrimExpr, value: PrimExpr) -> BufferStore:
            return BufferStore(image, value, (*rows, at))

        row = padded_row(value, x, known(image.shape[-1]), 1, self.capacity.lanes, store)
        return nested(list(zip(rows, image.shape[:-1], strict=True)), row)

    def number(self, places: Mapping[PrimVar, PrimExpr]) -> PrimExpr:
        """Which step along k one is."""
        number: PrimExpr = const(0, INDEX)
        for var in self.found.reduction:
            number = plus(times(number, known(self.found.extents[var])), places[var])
        return number


def _shared(panels: Stmt) -> Stmt:
    """Panels that threads share: groups of images may be few, and of different sizes."""
    if isinstance(panels, SeqStmt):
        return replace(panels, stmts=tuple(map(_shared, panels.stmts)))
    return replace(panels, annotations=FrozenMap({SHARED: True})) if isinstance(panels, For) else panels


PanelOfWeights = tuple[Sequence[tuple[PrimVar, Extent]], PrimVar, PrimExpr, PrimExpr]
"""Loops, the variable of a channel, its weight, and where in a panel the weights of all its channels begin."""


def panels_of_weights(target: Buffer, channels: int, nr: int, weights: Sequence[PanelOfWeights]) -> Iterator[Stmt]:
    """What fills panels of weights: a row each, `nr` channels side by side; zeros where the last has no channels."""
    panels, left = divmod(channels, nr)
    yield AllocBuffer(target)
    if left:
        i = PrimVar("i", INDEX)
        zero = BufferStore(target, const(0.0, target.dtype), (const(panels, INDEX), i))
        yield For(i, 0, known(target.shape[1]), zero)
    for first, count, used in ((0, panels, nr), (panels, 1, left)):
        for loops, channel, value, place in weights if count and used else ():
            panel, j = PrimVar("panel", INDEX), PrimVar("j", INDEX)
            own = {var: PrimVar(var.name, var.dtype) for var, _ in loops}
            row = plus(const(first, INDEX), panel)
            value, place = (substitute(x, {**own, channel: plus(times(row, nr), j)}) for x in (value, place))
            stmt = BufferStore(target, value, (row, plus(place, j)))
            yield nested([(panel, count), *((own[var], extent) for var, extent in loops), (j, used)], stmt)


@dataclass(frozen=True, eq=False)
class ChannelBlock:
    """A block of `count` rows of positions from `row` on, for a panel of channels."""

    sizes: Channels
    panel: Panel
    row: PrimExpr
    count: int

    @cached_property
    def sums(self) -> Buffer:
        """The sums."""
        return Buffer("sums", (self.count * self.sizes.width, self.sizes.nr), self.sizes.found.dtype)

    def build(self) -> Stmt:
        """All sums, and what becomes of them."""
        found, count = self.sizes.found, self.count
        k = found.reduction[0]

        def k_block(start: PrimExpr, steps: Extent) -> Stmt:
            tiers = [(n, 1) for n in (self.sizes.rows, count % self.sizes.rows) if n]
            return cover("row", count, tiers, lambda at, rows, _: self._tiles(at, rows, start, known(steps)))

        over_k = blocks(k, found.extents[k], self.sizes.steps, k_block)
        return SeqStmt((AllocBuffer(self.sums), over_k, self.stored()))

    def _prefetches(self, start: PrimExpr, positions: int) -> Stmt:
        """Prefetches of what results of a tile are stored to, and read with: those of a block at once would wait."""
        sizes, found, lanes = self.sizes, self.sizes.found, self.panel.lanes
        channel, q = PrimVar("channel", INDEX), PrimVar("position", INDEX)
        last = binary("sub", const(known(found.extents[sizes.r]), INDEX), const(1, INDEX))
        at = plus(self.panel.start, channel)
        places: dict[PrimVar, PrimExpr] = {
            found.v: plus(plus(times(self.row, sizes.width), start), times(q, lanes)),
            sizes.r: at if self.panel.left is None else binary("min", at, last),
        }
        loads = [BufferLoad(found.store.buffer, found.store.indices)]
        if found.epilogue is not None:
            loads += [load for load in loads_in(found.epilogue.value) if uses(load.indices, found.v)]
        body = sequence([AttrStmt(None, PREFETCH, substitute(load, places), SeqStmt(())) for load in loads])
        return For(channel, 0, self.panel.width, For(q, 0, ceil_div(positions, lanes), body))

    def places(self, channel: PrimExpr, offset: PrimExpr) -> list[BufferLoad]:
        """Where a result of the block is stored, and what it is put together with; rows of places have no end."""
        sizes, found = self.sizes, self.sizes.found
        first = {found.v: times(self.row, sizes.width), sizes.r: plus(self.panel.start, channel)}
        loads = [BufferLoad(found.store.buffer, found.store.indices)]
        if found.epilogue is not None:
            loads += [load for load in loads_in(found.epilogue.value) if uses(load.indices[-1:], found.v)]
        starts = [simplify(substitute(load, first)) for load in loads]
        return [replace(start, indices=(*start.indices[:-1], plus(start.indices[-1], offset))) for start in starts]

    def lines(self, line: int) -> int:
        """Lines of so many positions that the results of a channel have."""
        return ceil_div(self.count * self.sizes.width, line)

    def _tiles(self, at: PrimExpr, rows: int, k: PrimExpr, steps: int) -> Stmt:
        """The tiles of `rows` rows from `at` on in the block, for `steps` of k from `k` on."""
        sizes = self.sizes
        if sizes.rows > 1:
            return self._tile(at, const(0, INDEX), rows * sizes.width, k, steps)
        tiers = [(n, 1) for n in (sizes.mr, sizes.width % sizes.mr) if n]
        return cover("position", sizes.width, tiers, lambda x, n, _: self._tile(at, x, n, k, steps))

    def _tile(self, row: PrimExpr, x: PrimExpr, positions: int, k: PrimExpr, steps: int) -> Stmt:
        """A tile of so many positions from (row, x) on."""
        sizes, panel, found = self.sizes, self.panel, self.sizes.found
        p, lanes, width = PrimVar("p", INDEX), panel.lanes, sizes.width
        inner: dict[PrimVar, PrimExpr] = {var: fresh(var) for var in found.reduction[1:]}
        reduction = {found.reduction[0]: plus(k, p), **inner}
        start = plus(times(row, width), x)

        def element_of_x(i: PrimExpr) -> PrimExpr:
            this, column = plus(self.row, row), plus(x, i)
            if sizes.rows > 1:
                size = const(width, INDEX)
                this, column = plus(this, binary("floordiv", i, size)), binary("floormod", i, size)
            places = {**places_of(sizes.window, this), sizes.window.axes[-1]: column}
            element = substitute(found.vector, {**reduction, **places})
            return found.of_b(element) if sizes.filling is None else BufferLoad(sizes.image, element.indices[1:])

        def weights(j: PrimExpr) -> PrimExpr:
            place = plus(times(sizes.number(reduction), sizes.nr), times(j, lanes))
            number = binary("floordiv", panel.start, const(sizes.nr, INDEX))
            vector = BufferLoad(sizes.weights, (number, vector_index(place, lanes)))
            return found.of_a(vector) if sizes.has_large_weights else vector

        loops = [(p, steps), *((inner[x], found.extents[x]) for x in found.reduction[1:])]
        several = found.extents[found.reduction[0]] != sizes.steps
        prefetches = self._prefetches(start, positions)
        tile = Tile(
            positions,
            Panel(panel.start, panel.vectors, lanes),
            scalar=element_of_x,
            vector=weights,
            element=lambda i, j: BufferLoad(self.sums, (plus(start, i), vector_index(times(j, lanes), lanes))),
            loops=loops,
            prefetch_b=[
                *self._later_weights(plus(self.row, row), x, k, sizes.number({**reduction, found.reduction[0]: p})),
                *self._later_elements(plus(self.row, row), x, positions, reduction),
            ],
            accumulates=several and binary("gt", k, const(0, INDEX)),
            adds_last=found.is_long_sum,
        ).build(found.dtype)
        return SeqStmt(
            (IfThenElse(binary("eq", k, const(0, INDEX)), prefetches, None) if several else prefetches, tile)
        )

    def _later_weights(self, row: PrimExpr, x: PrimExpr, k: PrimExpr, number: PrimExpr) -> list[BufferLoad]:
        """What a step of a tile prefetches: its share of the next block of large weights, or of the next panel."""
        sizes, lanes = self.sizes, self.panel.lanes
        width = ceil_div(sizes.width, sizes.mr)
        tiles = sizes.height // sizes.rows * width
        if not sizes.has_large_weights or tiles < sizes.nr_vectors:
            return []
        parts = 1 << (tiles // sizes.nr_vectors).bit_length() - 1
        tile = binary("floordiv", row, const(sizes.rows, INDEX))
        tile = plus(times(tile, width), binary("floordiv", x, const(sizes.mr, INDEX)))
        steps = sizes.steps * sizes.granularity
        share = binary("floormod", tile, const(parts * sizes.nr_vectors, INDEX))
        start = times(
            plus(times(share, ceil_div(steps, parts)), binary("floordiv", number, const(parts, INDEX))), lanes
        )
        panel = binary("floordiv", self.panel.start, const(sizes.nr, INDEX))
        later = times(plus(times(k, sizes.granularity), const(steps, INDEX)), sizes.nr)
        return [BufferLoad(sizes.weights, (panel, plus(later, start)))]

    @property
    def prefetches_elements(self) -> bool:
        """Whether tiles prefetch elements of the next block, which small weights meet for the first time there.

        Windows of one element read each plane in pieces that are too short for what the processor prefetches itself.
        Of an image that was copied right before, all is near.
        """
        sizes, found = self.sizes, self.sizes.found
        if sizes.filling is not None:
            return False
        is_dense = step_along(found.vector, sizes.window.axes[-1]) == 1
        return sizes.granularity == 1 and _has_images(found) and is_dense and not sizes.has_large_weights

    def _later_elements(
        self, row: PrimExpr, x: PrimExpr, positions: int, step: Mapping[PrimVar, PrimExpr]
    ) -> list[BufferLoad]:
        """What a step of a tile prefetches of X: what the same tile of the next block, or image, reads in it."""
        sizes, found = self.sizes, self.sizes.found
        if not self.prefetches_elements:
            return []
        batch, height = found.outer[0], const(sizes.height, INDEX)
        later = plus(row, const(self.count, INDEX))
        image = plus(batch, binary("floordiv", later, height))
        last = binary("sub", as_expr(found.extents[batch], INDEX), const(1, INDEX))
        rows = places_of(sizes.window, binary("floormod", later, height))
        rest = {var: const(0, INDEX) for var in found.reduction[1:]}
        line = sizes.capacity.machine.line_bytes * 8 // bits(found.vector.dtype)

        def element(column: int) -> BufferLoad:
            own = {sizes.window.axes[-1]: plus(x, const(column, INDEX)), batch: binary("min", image, last)}
            return substitute(found.vector, {**step, **rest, **rows, **own})

        return [element(column) for column in range(0, positions, line)]

    def stored(self) -> Stmt:
        """Finished sums, transposed in squares and stored along the positions."""
        lanes, positions = self.panel.lanes, self.count * self.sizes.width
        turned = Buffer("turned", (lanes, lanes), self.sums.dtype)
        j, q = PrimVar("j", INDEX), PrimVar("position", INDEX)
        used = lanes if positions % lanes == 0 else binary("sub", const(positions, INDEX), times(q, lanes))
        squares = For(q, 0, ceil_div(positions, lanes), self._square(turned, j, q, used))
        return For(j, 0, self.panel.vectors, SeqStmt((AllocBuffer(turned), squares)))

    def _square(self, turned: Buffer, j: PrimExpr, q: PrimExpr, used: Extent) -> Stmt:
        """The square of channels j and positions q, of which `used` are there."""
        lanes = self.panel.lanes
        last = None if used == lanes else const(self.count * self.sizes.width - 1, INDEX)

        def sums(t: int) -> PrimExpr:
            row = plus(times(q, lanes), const(t, INDEX))
            row = row if last is None else binary("min", row, last)
            return BufferLoad(self.sums, (row, vector_index(times(j, lanes), lanes)))

        def turn(t: int, value: PrimExpr) -> Stmt:
            return BufferStore(turned, value, (const(t, INDEX), vector_index(const(0, INDEX), lanes)))

        square = transposed(sums, turn, lanes, self.sums.dtype)
        return SeqStmt((square, self._rows_of_square(turned, j, q, used)))

    def _rows_of_square(self, turned: Buffer, j: PrimExpr, q: PrimExpr, used: Extent) -> Stmt:
        """The channels of a square, `used` positions of each."""
        panel, found, lanes = self.panel, self.sizes.found, self.panel.lanes
        t, lane = PrimVar("t", INDEX), PrimVar("lane", INDEX)
        channel = plus(times(j, lanes), t)
        column = plus(times(self.row, self.sizes.width), plus(times(q, lanes), lane))
        places: dict[PrimVar, PrimExpr] = {found.v: column, self.sizes.r: plus(panel.start, channel)}
        is_there = None
        if panel.left is not None and panel.left % lanes:
            is_there = binary("lt", channel, as_expr(panel.left, INDEX))
        total = BufferLoad(turned, (t, lane))
        return Vectors(t, lanes, lane, lanes, total, places, used, is_there).stored(found)


def channels_of(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Channels | None:
    """The nest by channels; None where weights are no constants, or channels, positions or products too few."""
    window, extents = found.window, found.extents
    if window is None or found.r is None or not packs_whole(found, found.scalar, found.r, constants):
        return None
    sizes, channels = window.sizes, extents[found.r]
    if any(not isinstance(size, int) or size == 0 for size in sizes) or not is_float(found.dtype):
        return None
    lanes, positions = capacity.lanes, math.prod(known(size) for size in sizes)
    if lanes == 1 or known(channels) < lanes or positions < lanes // 2:
        return None
    return _sized(found, capacity, known(channels), window)


def with_images(site: Site, found: Contraction, machine: MachineModel) -> Contraction:
    """Windows with what computes their input right before them or converts it, where images are of known sizes."""
    indices, shape = found.vector.indices, found.vector.buffer.shape[1:]
    are_known = all(isinstance(extent, int) for extent in shape)
    if not _has_images(found) or not machine.has_masks or not are_known:
        return found
    own = not uses(indices[1:], found.outer[0])
    return filled(found, filling_before(site, found)) if own else found


def _has_images(found: Contraction) -> bool:
    """Whether the first of the outer variables numbers images of the input."""
    return bool(found.outer) and found.vector.indices[0] is found.outer[0]


def cost_of_channels(channels: Channels) -> float:
    """What windows by channels cost, in multiplications: transposing sums, and lanes of channels that are empty.

    What is compared was measured on convolutions of ResNet, MobileNet and EfficientNet.
    """
    results = known(channels.found.extents[channels.r])
    converting = _CONVERTING / channels.nr_vectors if channels.found.casts[1] and channels.filling is None else 0
    empty = _empty(results, channels.capacity.lanes)
    far = 0
    if channels.granularity == 1:  # the second cache gives elements for each panel, which takes as long for short ones
        empty = _empty(results, channels.nr)
        far = _FAR_PLANES if _plane_bytes(channels) >= _PAGE_PART else 0
    return channels.multiplications * (1 + _TRANSPOSING / channels.products + empty + converting + far)


def _plane_bytes(channels: Channels) -> int:
    """The bytes of the axes of an image that windows move along, as far as they are known."""
    extents = channels.found.vector.buffer.shape[-len(channels.window.axes) :]
    return math.prod(extent for extent in extents if isinstance(extent, int)) * bits(channels.found.vector.dtype) // 8


def cost_of_matrices(channels: Channels, copies: bool) -> float:
    """What the product of matrices costs instead: lanes of positions that are empty, and, where it `copies` windows,
    that."""
    positions = _empty(channels.width * channels.height, channels.capacity.lanes)
    return channels.multiplications * (1 + positions + (_COPYING if copies else _LOADING))


def cost_of_direct(channels: Channels) -> float:
    """What windows of one element cost as a product of matrices that are read where they are: elements that a panel
    meets for the first time, and results, which it stores in pieces of rows."""
    positions = _empty(channels.width * channels.height, channels.capacity.lanes)
    results = known(channels.found.extents[channels.r])
    return channels.multiplications * (1 + positions + _MEETING / results + _STORING / channels.products)


def _empty(extent: int, lanes: int) -> float:
    """Empty lanes of vectors along an extent, as a part of those that are not.

    >>> _empty(48, 16), _empty(8, 16)
    (0.0, 1.0)
    """
    return ceil_div(extent, lanes) * lanes / extent - 1


def _sized(found: Contraction, capacity: Capacity, channels: int, window: Window) -> Channels:
    """Tiles and blocks of windows."""
    pins, knobs = capacity.pins, capacity.knobs
    lanes, (height, width) = capacity.lanes, rows_of(window)
    outermost = known(found.extents[found.reduction[0]])
    granularity = math.prod(known(found.extents[x]) for x in found.reduction[1:])
    vectors = pins.get("nr_vectors", min(knobs.nr_vectors, ceil_div(channels, lanes)))
    most = pins.get("mr", max(1, (capacity.machine.vector_registers - vectors - 2) // vectors))
    rows = max(1, min(most // width, height)) if len(window.sizes) <= 2 else 1
    mr = rows * width if rows > 1 else ceil_div(width, ceil_div(width, most))
    nr = vectors * lanes
    positions = capacity.machine.stack_bytes * 8 // (nr * bits(found.dtype))
    block_rows = pins["mc"] // width if "mc" in pins else block_size(height, max(rows, positions // width), rows)
    panel_bytes = outermost * granularity * nr * bits(found.dtype) // 8
    # No other step of a window of one element meets what a tile reads again: long tiles would only go through caches.
    meets_once = granularity == 1
    near = (capacity.machine.l1_bytes if meets_once else capacity.machine.l2_bytes) // 2
    is_near = not found.is_long_sum and panel_bytes <= near
    longest = min(knobs.kc, max(1, near * 8 // (nr * bits(found.dtype)))) if meets_once else knobs.kc
    limit = pins.get("kc", outermost * granularity if is_near else longest)
    steps = block_size(outermost, max(1, limit // granularity))
    return Channels(found, capacity, mr, vectors, rows, max(1, block_rows), steps)
