"""Tiles of depthwise convolutions: the rows of the input that they read are in registers.

for each column of the window:                    rows[u] = X's row u, from this column on
  for each row of the window, for rows of results:  sums[j] += W[row, column] * rows[j * stride + row]

A vector of the input meets all results that it is part of, so that there are several products for each load. Rows that
lie in the padding have no products: of a tile at a place of its own they are left out, of tiles at many places they are
zeros there, which is asked of no other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby

from weft.dtypes import with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import known
from weft.transform.autoschedule.gemm.epilogue import Vectors, unrolls
from weft.transform.autoschedule.gemm.match import Contraction, Moves
from weft.transform.autoschedule.gemm.tiles import fresh, plus, times, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import nested
from weft.transform.autoschedule.rules.strides import cases_along

__all__ = ["Plane", "PlaneTile", "rows_inside"]


@dataclass(frozen=True, eq=False)
class Plane:
    """Where the input is: in a buffer in near memory, whose rows are parted by the remainder of the stride.

    `number` is that of a plane, where there are several.
    """

    buffer: Buffer
    number: tuple[PrimExpr, ...] = ()


@dataclass(frozen=True, eq=False)
class PlaneTile:
    """Sums of `rows` rows from `row` on in the part of a plane that starts with the row `first`, for one vector each.

    `column` is where the vectors start, of which `used` lanes are results. `leading` are the places along the axes of
    windows before the last two. `starts` are the lowest and the highest value of `row`.
    """

    found: Contraction
    moves: tuple[Moves, ...]
    lanes: int
    first: PrimExpr
    row: PrimExpr
    rows: int
    starts: tuple[int, int]
    column: PrimExpr
    used: Extent
    leading: Mapping[PrimVar, PrimExpr]
    plane: Plane | None = None
    padding: BufferStore | None = None

    def build(self) -> Stmt:
        """The sums, and what becomes of them."""
        found, lanes = self.found, self.lanes
        sums = Buffer("accumulators", (self.rows * lanes,), found.dtype, "local")
        rows = Buffer("rows", (len(self._is_inside) * lanes,), found.dtype, "local")
        inner = {var: fresh(var) for var in found.reduction}
        zero = const(0.0, with_lanes(found.dtype, lanes))
        clear = _unrolled("j", 0, self.rows, lambda j: BufferStore(sums, zero, (self._vector(j),)))
        body = SeqStmt((*self._loads(rows, inner), *self._products(sums, rows, inner)))
        across = self.moves[-1].reduced
        kept = [x for x in found.reduction if x is not self._down.reduced and x is not across]
        step = body if across is None else For(inner[across], 0, self.moves[-1].count, body)
        step = nested([(inner[x], found.extents[x]) for x in kept], step)
        return SeqStmt((AllocBuffer(sums), AllocBuffer(rows), clear, step, *self._results(sums)))

    @property
    def _down(self) -> Moves:
        """How windows move from row to row; windows of one axis have one row."""
        return self.moves[-2] if len(self.moves) > 1 else Moves(PrimVar("y", INDEX), 1, None, 1, 1)

    @cached_property
    def _is_inside(self) -> tuple[bool | None, ...]:
        """For each row that is read: whether it is a row of the input, and not of the padding; None: of some tiles."""
        read = range(self._down.read(self.rows))
        if self.padding is None or len(self.moves) < 2:
            return (True,) * len(read)
        inside, start = rows_inside(self.padding), simplify(self._row_of_input(const(0, INDEX), 0))
        if inside is None or not isinstance(start, IntImm):
            return (None,) * len(read)
        places = [[start.value + row * self._down.step + u for row in self.starts] for u in read]
        lies = [{inside[0] <= place < inside[1] for place in both} for both in places]
        is_alone = len(set(self.starts)) == 1
        return tuple(True if ends == {True} else False if ends == {False} and is_alone else None for ends in lies)

    def _row_of_input(self, row: PrimExpr, u: PrimExpr | int) -> PrimExpr:
        """The row of the input that is the one number u from where the window of a row of results starts."""
        down = self._down
        gone = {} if down.reduced is None else {down.reduced: const(0, INDEX)}
        at = substitute(self.found.vector.indices[-2], {**gone, down.axis: row})
        return plus(at, as_expr(u, INDEX))

    def _loads(self, rows: Buffer, inner: Mapping[PrimVar, PrimExpr]) -> Iterator[Stmt]:
        """The rows that are read, into registers: runs of those of which the same is known."""
        used = {j * self._down.step + k * self._down.gap for j in range(self.rows) for k in range(self._down.count)}
        wanted = [self._is_inside[u] if u in used else False for u in range(len(self._is_inside))]
        for inside, numbers in groupby(range(len(wanted)), wanted.__getitem__):
            run = list(numbers)
            if inside is not False:
                yield _unrolled("u", run[0], len(run), partial(self._load, rows, inner, inside is True))

    def _load(self, rows: Buffer, inner: Mapping[PrimVar, PrimExpr], is_there: bool, u: PrimExpr) -> Stmt:
        """A row of the input, of which it may be known that it is no padding."""
        across, lanes = self.moves[-1], self.lanes
        row = self.row if self.plane is not None else plus(self.first, self.row)
        down = (self._row_of_input(row, u),) if len(self.moves) > 1 else ()
        load = substitute(self.found.vector, {**inner, **self.leading})
        start = substitute(load.indices[-1], {across.axis: self.column})
        lead = load.indices[:-2] if len(self.moves) > 1 else load.indices[:-1]
        if self.padding is not None and self.plane is None:
            lane = PrimVar("lane", INDEX)
            names = [index for index in self.padding.indices if isinstance(index, PrimVar)]
            value = self.padding.value
            value = cases_along(value, names[-1])[1] if is_there and down else value
            places = (*lead, *down, plus(start, times(lane, across.step)))
            stmt = BufferStore(
                rows, substitute(value, dict(zip(names, places, strict=True))), (plus(times(u, lanes), lane),)
            )
            return For(lane, 0, lanes, stmt, "vectorized")
        mask = None
        if self.used != lanes:
            ramp = Ramp(const(0, INDEX), const(1, INDEX), lanes)
            mask = binary("lt", ramp, Broadcast(as_expr(self.used, INDEX), lanes))
        if self.plane is None:
            vector = Ramp(start, const(across.step, INDEX), lanes)
            return BufferStore(
                rows, self.found.of_b(BufferLoad(load.buffer, (*lead, *down, vector), mask)), (self._vector(u),)
            )
        step = const(across.step, INDEX)
        offset = substitute(load.indices[-1], {across.axis: const(0, INDEX)})
        x = vector_index(plus(self.column, binary("floordiv", offset, step)), lanes)
        rest = load.indices[-len(self.moves) : -2] if len(self.moves) > 1 else ()
        part = binary("floormod", offset, step)
        place = (*self.plane.number, *rest, *down, part, x)
        return BufferStore(rows, BufferLoad(self.plane.buffer, place, mask), (self._vector(u),))

    def _products(self, sums: Buffer, rows: Buffer, inner: Mapping[PrimVar, PrimExpr]) -> Iterator[Stmt]:
        """A row of the window after the other: its products with all rows of the input that it meets."""
        down = self._down
        for k in range(down.count):
            reduced = {} if down.reduced is None else {down.reduced: const(k, INDEX)}
            weight = self.found.of_a(substitute(self.found.scalar, {**inner, **reduced}))
            met = [j for j in range(self.rows) if self._is_inside[j * down.step + k * down.gap] is not False]

            def add(j: PrimExpr, weight: PrimExpr = weight, k: int = k) -> Stmt:
                total = BufferLoad(sums, (self._vector(j),))
                row = BufferLoad(rows, (self._vector(plus(times(j, down.step), const(k * down.gap, INDEX))),))
                product = binary("mul", Broadcast(weight, self.lanes), row)
                return BufferStore(sums, binary("add", total, product), total.indices)

            if met:
                yield _unrolled("j", met[0], len(met), add)

    def _results(self, accumulators: Buffer) -> Iterator[Stmt]:
        """What becomes of the sums; long arithmetic, which is there once for all rows, reads them from memory."""
        lanes, j, lane = self.lanes, PrimVar("j", INDEX), PrimVar("lane", INDEX)
        if unrolls(self.found):
            yield self._rows(j, lane, BufferLoad(accumulators, (plus(times(j, lanes), lane),))).unrolled(self.found)
            return
        sums = Buffer("sums", (self.rows, lanes), accumulators.dtype)

        def put(i: PrimExpr) -> Stmt:
            return BufferStore(
                sums, BufferLoad(accumulators, (self._vector(i),)), (i, vector_index(const(0, INDEX), lanes))
            )

        yield AllocBuffer(sums)
        yield _unrolled("i", 0, self.rows, put)
        yield self._rows(j, lane, BufferLoad(sums, (j, lane))).stored(self.found)

    def _rows(self, j: PrimVar, lane: PrimVar, total: BufferLoad) -> Vectors:
        """The rows j of results, of sums that are `total` in a lane."""
        position: PrimExpr = const(0, INDEX)
        places = {**self.leading, self._down.axis: plus(plus(self.first, self.row), j)}
        assert self.found.window is not None
        for move, size in zip(self.moves[:-1], self.found.window.sizes, strict=False):
            position = plus(times(position, known(size)), places[move.axis])
        column = plus(self.column, lane)
        position = plus(times(position, known(self.found.window.sizes[-1])), column)
        return Vectors(j, self.rows, lane, self.lanes, total, {self.found.v: position}, self.used)

    def _vector(self, number: PrimExpr) -> PrimExpr:
        return vector_index(times(number, self.lanes), self.lanes)


def rows_inside(padding: BufferStore) -> tuple[int, int] | None:
    """From which row on, and up to which, what a nest pads are rows of the input; None where that is not known."""
    *_, y, x = padding.indices
    rows = padding.buffer.shape[-2]
    assert isinstance(x, PrimVar)
    assert isinstance(y, PrimVar)
    condition = cases_along(padding.value, x)[0]
    if not isinstance(rows, int):
        return None
    if condition is None:
        return 0, rows

    def holds(row: int) -> bool:
        found = simplify(substitute(condition, {y: const(row, INDEX)}))
        return isinstance(found, IntImm) and bool(found.value)

    first = next((row for row in range(rows) if holds(row)), None)
    return None if first is None else (first, next(row + 1 for row in reversed(range(rows)) if holds(row)))


def _unrolled(name: str, start: int, count: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
    var = PrimVar(name, INDEX)
    return For(var, start, count, inner(var), "unrolled")
