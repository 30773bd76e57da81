"""Planes: windows where each result has a plane of the input to itself, as in depthwise convolutions.

for outer variables:  for some rows of results:  for columns of vectors:
  sums[rows] = the products of the rows of X that they read, a vector of each                   (see `plane_tile`)
  C's rows = the sums

What pads the input with zeros is left out by masks, as X is read where it is. Other padding, and strides along a row,
are copied plane by plane, in memory that stays near: large planes go in strips, small ones some at once, as what is
still on its way to memory is read slowly. Strides are parted there, so that elements of one vector lie side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import Any

from weft.dtypes import bits, is_float
from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    FloatImm,
    For,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.blocking import block_size, known
from weft.transform.autoschedule.gemm.convolutions.padded_rows import (
    ends_in_padding,
    filled,
    filling_at,
    filling_before,
    padded_row,
)
from weft.transform.autoschedule.gemm.convolutions.plane_tile import Plane, PlaneTile, rows_inside
from weft.transform.autoschedule.gemm.convolutions.positions import Positions
from weft.transform.autoschedule.gemm.match import Contraction, Filling, Moves, uses
from weft.transform.autoschedule.gemm.tiles import cover, fresh, plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div
from weft.transform.autoschedule.registry import Site, checked
from weft.transform.autoschedule.rules.loops import nested, sequence
from weft.transform.autoschedule.rules.strides import cases_along, difference_along
from weft.transform.infra.decisions import Decision

__all__ = ["Planes", "planes_of", "with_planes"]

_MAX_STRIDE = 4
_MIN_PLANE = 2048
"""Bytes of a plane from which on it is filled by itself: what is still on its way to memory is read slowly."""
_MIN_STRIP = 4
"""Rows of results that a part of a plane is read for at least."""
_OTHER_REGISTERS = 2
"""What a tile has beside sums and rows: a weight, and one to spare."""
_MIN_GROUP = 4
"""Small planes that are filled at once at least."""


@dataclass(frozen=True, eq=False)
class Planes(Positions):
    """The sizes of tiles: `mr` rows of results, a vector of `lanes` of each."""

    capacity: Capacity
    moves: tuple[Moves, ...]
    mr: int
    lanes: int

    @property
    def height(self) -> int:
        """Rows of results one below the other."""
        return known(self.window.sizes[-2]) if len(self.moves) > 1 else 1

    @property
    def lanes_of_results(self) -> int:
        """Lanes of the vectors that results are stored in."""
        return self.capacity.lanes

    @property
    def filling(self) -> Filling | None:
        """What computes the input."""
        return self.found.filling

    @property
    def in_place(self) -> bool:
        """Whether the input is read where it is, and padding is what masks leave out."""
        return self.filling is not None and _reads_in_place(self.filling, self.moves)

    def values(self) -> dict[str, Any]:
        """What a record says of it."""
        copies = {} if self.filling is None else {"planes": "in place" if self.in_place else "copied"}
        return {"mr": self.mr, "nr_vectors": 1, "lanes": self.lanes, **copies}

    @property
    def stride(self) -> int:
        """Elements between neighbours of a row."""
        return self.moves[-1].step

    @cached_property
    def strip(self) -> int:
        """Rows of results whose part of the input is in near memory at once."""
        if self.filling is None or self.in_place or self._rows_read is None:
            return self.height
        row = self.stride * self.part
        most = self.capacity.machine.stack_bytes * 8 // (row * bits(self.found.dtype))
        step, window = self._rows_read
        rows = (most - window) // step + 1
        return block_size(self.height, max(self.mr, rows // self.mr * self.mr), self.mr)

    @property
    def _is_whole(self) -> bool:
        """Whether rows of a plane that is copied are known by their number: it is no strip."""
        return self._rows_read is not None and self.strip == self.height

    @cached_property
    def group(self) -> int:
        """Small planes that are filled before they are read, one after another."""
        return 1 if self.filling is None or self.in_place else _planes_at_once(self.found, self.capacity.machine)

    @cached_property
    def _rows_read(self) -> tuple[int, int] | None:
        return _rows_read(self.found)

    @property
    def part(self) -> int:
        """Room for the elements of a row that are the stride apart: whole vectors where the rest is padding."""
        assert self.filling is not None
        store, length = self.filling.store, known(self.found.vector.buffer.shape[-1])
        count, lanes, x = ceil_div(length, self.stride), self.lanes_of_results, store.indices[-1]
        assert isinstance(x, PrimVar)
        return ceil_div(count, lanes) * lanes if ends_in_padding(store.value, x, length) else count

    def plane(self, rows: int) -> Buffer:
        """What so many rows of results read of a plane of the input, its rows parted by the remainder of the stride."""
        shape = [known(extent) for extent in self.found.vector.buffer.shape[-len(self.window.axes) : -1]]
        if self._rows_read is not None:
            step, window = self._rows_read
            shape = [(rows - 1) * step + window]
        return Buffer("plane", (*shape, self.stride, self.part), self.found.dtype)

    def check(self, decision: Decision) -> None:
        """PassError W528 for values that cannot be followed."""
        checked(decision, "mr", 1, self.height, "rows of results")
        checked(decision, "nr_vectors", 1, 1, "a vector of each row")

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
        filled = self._filled(self.filling, zero, Plane(planes, (fills,)))
        tiles = self._tiles(zero, self.height, Plane(planes, (reads,)))

        def each(plane: PrimVar, stmt: Stmt) -> Stmt:
            return For(plane, 0, group, substitute(stmt, {channel: plus(times(number, group), plane)}))

        steps = SeqStmt((AllocBuffer(planes), each(fills, filled), each(reads, tiles)))
        return For(number, 0, known(self.found.extents[channel]) // group, steps)

    def _strip(self, first: PrimExpr, rows: int) -> Stmt:
        """So many rows of results from `first` on."""
        if self.filling is None or self.in_place:
            return self._tiles(first, rows, None)
        plane = Plane(self.plane(rows))
        filled = self._filled(self.filling, first, plane)
        return SeqStmt((AllocBuffer(plane.buffer), filled, self._tiles(first, rows, plane)))

    def _tiles(self, first: PrimExpr, rows: int, plane: Plane | None) -> Stmt:
        """The tiles of so many rows from `first` on."""
        whole, left = rows // self.mr * self.mr, rows % self.mr
        parts: list[Stmt] = []
        if whole:
            ends = (0, whole - self.mr)
            parts.append(cover("row", whole, [(self.mr, 1)], lambda at, n, _: self._tile(first, at, n, ends, plane)))
        if left:
            parts.append(self._tile(first, const(whole, INDEX), left, (whole, whole), plane))
        return sequence(parts)

    def _filled(self, filling: Filling, first: PrimExpr, plane: Plane) -> Stmt:
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

        def row(value: PrimExpr) -> Stmt:
            length, has_room = known(filling.store.buffer.shape[-1]), self.part % self.lanes_of_results == 0
            return padded_row(value, x, length, self.stride, self.lanes_of_results, store, has_room)

        if not self._is_whole:
            return nested([(y, extent) for y, extent in zip(rows, shape, strict=True)], row(value))
        _, inside, outside = cases_along(value, x)
        cases = {True: inside, None: value, False: None if self.height == self.mr else outside}
        runs: list[Stmt] = []
        limits = rows_inside(filling.store)
        where = (None if limits is None else limits[0] <= y < limits[1] for y in range(known(shape[0])))
        for is_inside, numbers in groupby(enumerate(where), lambda item: item[1]):
            ((y, _), *rest), case = list(numbers), cases[is_inside]
            if case is not None:
                own = PrimVar("y", INDEX)
                runs.append(For(own, y, 1 + len(rest), substitute(row(case), {rows[0]: own})))
        return sequence(runs)

    def _tile(self, first: PrimExpr, row: PrimExpr, rows: int, starts: tuple[int, int], plane: Plane | None) -> Stmt:
        """The tiles of `rows` rows from `row` on in the strip that starts at `first`, along the columns."""
        padding = self.filling.store if self.filling is not None and (self.in_place or self._is_whole) else None
        leading = {axis: fresh(axis) for axis in self.window.axes[:-2]}

        def tile(column: PrimExpr, used: Extent) -> Stmt:
            return PlaneTile(
                self.found, self.moves, self.lanes, first, row, rows, starts, column, used, leading, plane, padding
            ).build()

        columns = self._columns(tile)
        loops = [(leading[x], size) for x, size in zip(self.window.axes[:-2], self.window.sizes[:-2], strict=False)]
        return nested(loops, columns)

    def _columns(self, tile: Callable[[PrimExpr, Extent], Stmt]) -> Stmt:
        """Tiles along the columns, of one text: masks are asked for once in many products."""
        lanes, width, index = self.lanes, self.width, PrimVar("column", INDEX)
        count, column = ceil_div(width, lanes), times(index, lanes)
        if count == 1:
            return tile(const(0, INDEX), width)
        used = binary("sub", const(width, INDEX), column) if width % lanes else lanes
        return For(index, 0, count, tile(column, used))


def with_planes(site: Site, found: Contraction, machine: MachineModel) -> Contraction:
    """Windows with what computes their input right before them or converts it, where a plane of it stays near."""
    filling = filling_before(site, found)
    if filling is not None and not found.casts[1] and _reads_in_place(filling, found.moves):
        return filled(found, filling)
    return filled(found, filling) if _is_near(found, machine) else found


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


def _reads_in_place(filling: Filling, moves: tuple[Moves, ...] | None) -> bool:
    """Whether padding is zeros around what is read as it is, next to each other."""
    value = filling.store.value
    if moves is None or moves[-1].step != 1 or not isinstance(value, PrimCall) or value.op != "if_then_else":
        return False
    _, chosen, other = value.args
    return isinstance(chosen, BufferLoad) and isinstance(other, FloatImm) and other.value == 0


def planes_of(found: Contraction, capacity: Capacity) -> Planes | None:
    """The nest; None where sizes are not known, or the machine has no masks for the ends of rows."""
    window = found.window
    if window is None or found.r is not None or not is_float(found.dtype):
        return None
    sizes = *window.sizes, *(found.extents[x] for x in found.reduction)
    known_sizes = all(isinstance(size, int) and size > 0 for size in sizes)
    if not known_sizes or not capacity.masks or capacity.lanes == 1:
        return None
    moves = found.moves
    if moves is None or moves[-1].step > _MAX_STRIDE:
        return None
    width = known(window.sizes[-1])
    lanes = min(capacity.lanes, max(4, 1 << (width - 1).bit_length()))
    if len(moves) == 1:
        return Planes(found, capacity, moves, 1, lanes)
    mr = capacity.pins.get("mr", block_size(known(window.sizes[-2]), _most_rows(moves[-2], capacity.machine)))
    return Planes(found, capacity, moves, mr, lanes)


def _most_rows(moves: Moves, machine: MachineModel) -> int:
    """Rows of results whose sums are in registers beside the rows of the input that they read, and a weight."""
    rows = range(machine.vector_registers, 1, -1)
    return next((n for n in rows if n + moves.read(n) + _OTHER_REGISTERS <= machine.vector_registers), 1)
