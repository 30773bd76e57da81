"""Planes: windows where each result has a plane of the input to itself, as in depthwise convolutions.

for outer variables:  for some rows of results:
  for k:  sums[rows, vectors] += W[k] * X's rows, from where the window is
  C's rows = the sums

One weight at a time meets all vectors of some rows of results, whose sums stay in registers. What pads the input is
done plane by plane, in memory that stays near: large planes go in strips, small ones some at once, as what is still on
its way to memory is read slowly. Strides are parted there, so that elements of one vector lie side by side. Elsewhere
strides are picked from whole loads. The end of a row is under a mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weft.dtypes import bits, is_float, with_lanes
from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.convolutions.padded_rows import filled, filling_at, filling_before, padded_row
from weft.transform.autoschedule.gemm.convolutions.positions import Positions, rows_of
from weft.transform.autoschedule.gemm.epilogue import Vectors
from weft.transform.autoschedule.gemm.match import Contraction, Filling, uses
from weft.transform.autoschedule.gemm.packing import places_of
from weft.transform.autoschedule.gemm.tiles import Panel, Tile, cover, fresh, plus, times, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div
from weft.transform.autoschedule.registry import Site, checked
from weft.transform.autoschedule.rules.loops import nested
from weft.transform.autoschedule.rules.strides import difference_along, step_along
from weft.transform.infra.decisions import Decision

__all__ = ["Planes", "planes_of", "with_planes"]

_MAX_STRIDE = 4
_MIN_PLANE = 2048
"""Bytes of a plane from which on it is filled by itself: what is still on its way to memory is read slowly."""
_MIN_STRIP = 4
"""Rows of results that a part of a plane is read for at least."""
_MIN_GROUP = 4
"""Small planes that are filled at once at least."""


@dataclass(frozen=True, eq=False)
class _Plane:
    """Where a plane of the input is: the one of a `number`, where there are several."""

    buffer: Buffer
    number: tuple[PrimExpr, ...] = ()


@dataclass(frozen=True, eq=False)
class Planes(Positions):
    """The sizes of tiles: `mr` rows of `nr_vectors` vectors of `lanes`, which are whole rows of results."""

    capacity: Capacity
    mr: int
    nr_vectors: int
    lanes: int

    @property
    def lanes_of_results(self) -> int:
        """Lanes of the vectors that results are stored in."""
        return self.capacity.lanes

    @property
    def filling(self) -> Filling | None:
        """What computes the input."""
        return self.found.filling

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        copies = {} if self.filling is None else {"planes": "copied"}
        return {"mr": self.mr, "nr_vectors": self.nr_vectors, "lanes": self.lanes, **copies}

    @cached_property
    def stride(self) -> int:
        """Elements between neighbours of a row."""
        stride = step_along(self.found.vector, self.window.axes[-1])
        assert stride is not None
        return stride

    @cached_property
    def strip(self) -> int:
        """Rows of results whose part of the input is in near memory at once."""
        if self.filling is None or self._rows_read is None:
            return self.height
        row = self.stride * ceil_div(known(self.found.vector.buffer.shape[-1]), self.stride)
        most = self.capacity.machine.stack_bytes * 8 // (row * bits(self.found.dtype))
        step, window = self._rows_read
        rows = (most - window) // step + 1
        return block_size(self.height, max(self.mr, rows // self.mr * self.mr), self.mr)

    @cached_property
    def group(self) -> int:
        """Small planes that are filled before they are read, one after another."""
        return 1 if self.filling is None else _planes_at_once(self.found, self.capacity.machine)

    @cached_property
    def _rows_read(self) -> tuple[int, int] | None:
        return _rows_read(self.found)

    def plane(self, rows: int) -> Buffer:
        """What so many rows of results read of a plane of the input, its rows parted by the remainder of the stride."""
        *shape, length = (known(extent) for extent in self.found.vector.buffer.shape[-len(self.window.axes) :])
        if self._rows_read is not None:
            step, window = self._rows_read
            shape = [(rows - 1) * step + window]
        return Buffer("plane", (*shape, self.stride, ceil_div(length, self.stride)), self.found.dtype)

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        checked(decision, "mr", 1, self.height, "rows of results")
        why = "a tile has whole rows"
        checked(decision, "nr_vectors", self.nr_vectors, self.nr_vectors, why)

    def build(self) -> Stmt:
        """The tiles, inside loops over the outer variables."""
        found = self.found
        variables = {var: fresh(var) for var in found.outer}
        loops = [(variables[var], found.extents[var]) for var in found.outer]
        if self.group > 1:
            return nested(loops[:-1], substitute(self._groups(), variables))
        tiers = [(n, 1) for n in (self.strip, self.height % self.strip) if n]
        body = cover("strip", self.height, tiers, lambda at, rows, _: self._strip(at, rows))
        return nested(loops, substitute(body, variables))

    def _groups(self) -> Stmt:
        """Groups of small planes along the last of the outer variables: all are filled, then all are read."""
        assert self.filling is not None
        channel, group, buffer = self.found.outer[-1], self.group, self.plane(self.height)
        planes = replace(buffer, shape=(group, *buffer.shape))
        number, fills, reads = fresh(channel), PrimVar("plane", INDEX), PrimVar("plane", INDEX)
        zero = const(0, INDEX)
        filled = self._filled(self.filling, zero, _Plane(planes, (fills,)))
        tiles = self._tiles(zero, self.height, _Plane(planes, (reads,)))

        def each(plane: PrimVar, stmt: Stmt) -> Stmt:
            return For(plane, 0, group, substitute(stmt, {channel: plus(times(number, group), plane)}))

        steps = SeqStmt((AllocBuffer(planes), each(fills, filled), each(reads, tiles)))
        return For(number, 0, known(self.found.extents[channel]) // group, steps)

    def _strip(self, first: PrimExpr, rows: int) -> Stmt:
        """So many rows of results from `first` on."""
        if self.filling is None:
            return self._tiles(first, rows, None)
        plane = _Plane(self.plane(rows))
        filled = self._filled(self.filling, first, plane)
        return SeqStmt((AllocBuffer(plane.buffer), filled, self._tiles(first, rows, plane)))

    def _tiles(self, first: PrimExpr, rows: int, plane: _Plane | None) -> Stmt:
        """The tiles of so many rows from `first` on."""
        tiers = [(n, 1) for n in (self.mr, rows % self.mr) if n]
        return cover("row", rows, tiers, lambda at, count, _: self._tile(first, at, count, plane))

    def _filled(self, filling: Filling, first: PrimExpr, plane: _Plane) -> Stmt:
        """What is read of a plane from the row of results `first` on, row by row."""
        count = len(self.window.axes)
        gone = dict.fromkeys(self.found.reduction, const(0, INDEX))
        shape = plane.buffer.shape[len(plane.number) : -2]
        rows = [PrimVar("y", INDEX) for _ in shape]
        lead = (substitute(index, gone) for index in self.found.vector.indices[:-count])
        at = [as_expr(row, INDEX) for row in rows]
        if self._rows_read is not None:
            at = [plus(times(first, self._rows_read[0]), rows[0])]
        x = PrimVar("x", INDEX)
        value = filling_at(filling, (*lead, *at, x))

        def store(part: int, at: PrimExpr, value: PrimExpr) -> BufferStore:
            return BufferStore(plane.buffer, value, (*plane.number, *rows, const(part, INDEX), at))

        length = known(filling.store.buffer.shape[-1])
        row = padded_row(value, x, length, self.stride, self.lanes_of_results, store)
        return nested([(row, extent) for row, extent in zip(rows, shape, strict=True)], row)

    def _tile(self, first: PrimExpr, row: PrimExpr, rows: int, plane: _Plane | None) -> Stmt:
        """A tile of `rows` rows from `row` on in the strip that starts at `first`."""
        found, lanes, vectors, axis = self.found, self.lanes, self.nr_vectors, self.window.axes[-1]
        room = max(lanes, self.lanes_of_results)  # what a row stores behind its end is the next one's
        sums = Buffer("sums", (rows * self.width + room,), found.dtype)
        inner = {var: fresh(var) for var in found.reduction}
        stride = self.stride

        def column(j: PrimExpr) -> PrimExpr:
            return times(binary("floormod", j, const(vectors, INDEX)), lanes) if vectors > 1 else const(0, INDEX)

        def row_of(j: PrimExpr) -> PrimExpr:
            return binary("floordiv", j, const(vectors, INDEX)) if vectors > 1 else j

        def elements(j: PrimExpr) -> PrimExpr:
            places = places_of(self.window, plus(row if plane is not None else plus(first, row), row_of(j)))
            load = substitute(found.vector, {**inner, **places, axis: column(j)})
            vector, mask = Ramp(load.indices[-1], const(stride, INDEX), lanes), None
            if vectors * lanes > self.width:
                mask = binary("lt", Ramp(column(j), const(1, INDEX), lanes), Broadcast(const(self.width, INDEX), lanes))
            if plane is None:
                return found.of_b(replace(load, indices=(*load.indices[:-1], vector), predicate=mask))
            step = const(stride, INDEX)
            offset = substitute(found.vector.indices[-1], {**inner, axis: const(0, INDEX)})
            x = vector_index(plus(column(j), binary("floordiv", offset, step)), lanes)
            rest = load.indices[-len(self.window.axes) : -1]
            return BufferLoad(plane.buffer, (*plane.number, *rest, binary("floormod", offset, step), x), mask)

        tile = Tile(
            1,
            Panel(const(0, INDEX), rows * vectors, lanes),
            scalar=lambda _: found.of_a(substitute(found.scalar, inner)),
            vector=elements,
            element=lambda _, j: BufferLoad(
                sums, (vector_index(plus(times(row_of(j), self.width), column(j)), lanes),)
            ),
            loops=[(inner[x], found.extents[x]) for x in found.reduction],
        ).build(found.dtype)
        zero = const(0.0, with_lanes(found.dtype, room))
        clear = BufferStore(sums, zero, (vector_index(const(rows * self.width, INDEX), room),))
        return SeqStmt((AllocBuffer(sums), clear, tile, self._results(sums, plus(first, row), rows)))

    def _results(self, sums: Buffer, row: PrimExpr, rows: int) -> Stmt:
        """What becomes of the sums."""
        lanes, j, lane = self.lanes_of_results, PrimVar("j", INDEX), PrimVar("lane", INDEX)
        positions = rows * self.width
        at = plus(times(j, lanes), lane)
        used = lanes if positions % lanes == 0 else binary("sub", const(positions, INDEX), times(j, lanes))
        places: dict[PrimVar, PrimExpr] = {self.found.v: plus(times(row, self.width), at)}
        total = BufferLoad(sums, (at,))
        return Vectors(j, ceil_div(positions, lanes), lane, lanes, total, places, used).stored(self.found)


def with_planes(site: Site, found: Contraction, machine: MachineModel) -> Contraction:
    """Windows with what computes their input right before them or converts it, where a plane of it stays near."""
    return filled(found, filling_before(site, found)) if _is_near(found, machine) else found


def _is_near(found: Contraction, machine: MachineModel) -> bool:
    """Whether a plane of the input is of a known size and stays near, or several small ones do."""
    window, load = found.window, found.vector
    if window is None or any(uses(load.indices[: -len(window.axes)], axis) for axis in window.axes):
        return False
    reduced = [x for x in found.reduction if uses(load.indices[: -len(window.axes)], x)]
    extents = [extent for extent in load.buffer.shape[-len(window.axes) :] if isinstance(extent, int)]
    if len(extents) < len(window.axes) or any(found.extents[x] != 1 for x in reduced):
        return False
    size = math.prod(extents) * bits(found.dtype) // 8
    row, read = size // max(1, math.prod(extents[:-1])), _rows_read(found)
    by_strips = read is not None and row * (read[1] + _MIN_STRIP * read[0]) <= machine.stack_bytes
    is_alone = size >= _MIN_PLANE and (by_strips or size <= machine.l1_bytes)
    return is_alone or _planes_at_once(found, machine) > 1


def _planes_at_once(found: Contraction, machine: MachineModel) -> int:
    """How many small planes are filled before they are read; 1 where they are not small, or not side by side."""
    window, load = found.window, found.vector
    if window is None or not found.outer:
        return 1
    count, channel = len(window.axes), found.outer[-1]
    gone = dict.fromkeys(found.reduction, const(0, INDEX))
    lead = [simplify(substitute(index, gone)) for index in load.indices[:-count]]
    extents = [*load.buffer.shape[-count:], found.extents[channel]]
    if any(not isinstance(extent, int) for extent in extents) or not lead or lead[-1] is not channel:
        return 1
    *sizes, channels = map(known, extents)
    size = math.prod(sizes) * bits(found.dtype) // 8
    if not 0 < size < _MIN_PLANE or uses(lead[:-1], channel):
        return 1
    most = machine.stack_bytes // 2 // size
    return next((n for n in range(min(most, channels), _MIN_GROUP - 1, -1) if channels % n == 0), 1)


def _rows_read(found: Contraction) -> tuple[int, int] | None:
    """By how many rows of the input neighbouring rows of results are apart, and how many rows each of them reads.

    None where windows do not move along two axes from the start of the input on.
    """
    window = found.window
    if window is None or len(window.axes) != 2:
        return None
    index, axis = found.vector.indices[-2], window.axes[0]
    ends = (
        {x: const(at(known(found.extents[x])), INDEX) for x in found.reduction} for at in (lambda _: 0, lambda n: n - 1)
    )
    first, last = (simplify(substitute(index, {**end, axis: const(0, INDEX)})) for end in ends)
    step = difference_along(index, axis)
    if not isinstance(first, IntImm) or not isinstance(last, IntImm) or first.value or not step or step < 0:
        return None
    return step, last.value + 1


def planes_of(found: Contraction, capacity: Capacity) -> Planes | None:
    """The nest; None where sizes are not known, rows too long, or the machine has no masks for the ends of rows."""
    window = found.window
    if window is None or found.r is not None or not is_float(found.dtype):
        return None
    sizes = *window.sizes, *(found.extents[x] for x in found.reduction)
    known_sizes = all(isinstance(size, int) and size > 0 for size in sizes)
    stride = step_along(found.vector, window.axes[-1])
    if not known_sizes or not capacity.masks or capacity.lanes == 1 or stride not in range(1, _MAX_STRIDE + 1):
        return None
    height, width = rows_of(window)
    lanes = min(capacity.lanes, max(4, 1 << (width - 1).bit_length()))
    vectors, most = ceil_div(width, lanes), capacity.machine.vector_registers // 2
    if vectors > most:
        return None
    mr = capacity.pins.get("mr", block_size(height, max(1, most // vectors)))
    return Planes(found, capacity, mr, vectors, lanes)
