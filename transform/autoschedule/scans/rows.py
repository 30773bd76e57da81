"""Scans along a row: prefixes within a vector, and what is before it joined with all of them.

    [a, b, c, d]  ->  [a, ab, bc, cd]  ->  [a, ab, abc, abcd]       log2(lanes) steps, each of a shift and a join
    out = before, before, ... joined with that;  before = before joined with the last lane

so that from vector to vector one join waits for another (Hillis and Steele, Data parallel algorithms, 1986).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.ir import substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Ramp,
    Shuffle,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Cost, cost
from weft.transform.autoschedule.rules.accumulators import guarded, is_zero
from weft.transform.autoschedule.rules.loops import (
    INDEX,
    minus,
    nested,
    plus,
    sequence,
    split,
    times,
    vector_loop,
)
from weft.transform.autoschedule.scans.match import Join, Scan, start_of

__all__ = ["along_rows"]


def along_rows(found: Scan, join: Join, lanes: int, *, masks: bool) -> Stmt:
    """Loops over the rows, and vectors of so many lanes along each."""
    outer = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in found.spatial}
    row = _Row(found, join, lanes, outer, *_buffers(join, lanes))
    extent = found.extents[found.axis]
    body = sequence(row.statements(extent, masks))
    if row.start is None and not isinstance(extent, int):
        body = IfThenElse(binary("gt", extent, const(0, INDEX)), body, None)
    return nested([(new, found.extents[old]) for old, new in outer.items()], body)


def _buffers(join: Join, lanes: int) -> tuple[Buffer, Buffer, Buffer]:
    names = ("before", "prefix", "shifted")
    first, second, third = (Buffer(name, (lanes,), join.identity.dtype, "local") for name in names)
    return first, second, third


@dataclass(frozen=True)
class _Row:
    """One row: what is joined so far (in every lane), the prefixes of a vector, and these shifted, all in registers."""

    found: Scan
    join: Join
    lanes: int
    outer: dict[PrimVar, PrimVar]
    before: Buffer
    prefix: Buffer
    shifted: Buffer

    @cached_property
    def start(self) -> PrimExpr | None:
        """What is before the first element; None where that is not one like the others."""
        return start_of(self.found, self.join)

    def statements(self, extent: Extent, masks: bool) -> Iterator[Stmt]:
        """All elements."""
        for buffer in (self.before, self.prefix, self.shifted):
            yield AllocBuffer(buffer)
        start, first = 0, self.start
        if first is None:
            start, zero = 1, const(0, INDEX)
            first = self._at(self.found.first, zero)
            yield self._store(zero, first)
        yield vector_loop(0, self.lanes, lambda j: BufferStore(self.before, first, (j,)))
        steps, done = split(start, extent, self.lanes)
        if not is_zero(steps):
            i = PrimVar(f"{self.found.axis.name.removeprefix('v')}_{self.lanes}", INDEX)
            yield For(i, 0, steps, sequence(self._vector(plus(start, times(i, self.lanes)))))
        rest = minus(extent, done)
        if not is_zero(rest):
            yield from self._rest(done, rest, masks)

    def _vector(self, start: PrimExpr) -> Iterator[Stmt]:
        """The elements of a whole vector."""
        yield from self._prefixes(lambda j: self._at(self.join.element, plus(start, j)), self.lanes)
        last = BufferLoad(self.prefix, (const(self.lanes - 1, INDEX),))
        if self._is_cheap:  # one join more, and nothing waits for those of the lanes
            result, before = self._joined, lambda j: self.join.combine(BufferLoad(self.before, (j,)), last)
        else:
            yield self._each(lambda j: BufferStore(self.prefix, self._joined(self.before, j), (j,)))
            result, before = (lambda _, j: BufferLoad(self.prefix, (j,))), lambda _: last
        yield self._each(lambda j: self._store(plus(start, j), result(self.before, j)))
        yield self._each(lambda j: BufferStore(self.before, before(j), (j,)))

    def _each(self, action: Callable[[PrimExpr], Stmt]) -> Stmt:
        """An action on every lane."""
        return vector_loop(0, self.lanes, action)

    @property
    def _is_cheap(self) -> bool:
        return cost(self.found.later) is not Cost.EXPENSIVE

    def _rest(self, done: Extent, rest: Extent, masks: bool) -> Iterator[Stmt]:
        """What fills no vector: a part of one, or one element after another."""
        if not masks or rest == 1:
            t = PrimVar("rest", INDEX)
            yield For(t, 0, rest, self._one(plus(done, t)))
            return
        part = self._part(done, rest)
        yield part if isinstance(rest, int) else IfThenElse(binary("gt", rest, const(0, INDEX)), part, None)

    def _one(self, place: PrimExpr) -> Stmt:
        """One element, joined with the first lane of what is before it."""
        zero = const(0, INDEX)
        before = BufferLoad(self.before, (zero,))
        joined = self.join.combine(before, self._at(self.join.element, place))
        return sequence((BufferStore(self.before, joined, (zero,)), self._store(place, before)))

    def _part(self, done: Extent, rest: Extent) -> Stmt:
        """The elements of a part of a vector, others are as if they were not there."""
        width = 1 << (rest - 1).bit_length() if isinstance(rest, int) else self.lanes
        left = None if width == rest else rest

        def element(j: PrimExpr) -> PrimExpr:
            return guarded(j, left, self._at(self.join.element, plus(done, j)), self.join.identity)

        def put(j: PrimExpr) -> Stmt:
            return self._store(plus(done, j), self._joined(self.before, j))

        return sequence((*self._prefixes(element, width), vector_loop(0, width, put, left)))

    def _prefixes(self, element: Callable[[PrimExpr], PrimExpr], width: int) -> Iterator[Stmt]:
        """Every lane joined with those before it in the vector."""
        every = (Ramp(const(0, INDEX), const(1, INDEX), width),)
        nothing = Broadcast(self.join.identity, width)
        yield vector_loop(0, width, lambda j: BufferStore(self.prefix, element(j), (j,)))
        shift = 1
        while shift < width:
            lanes = tuple(const(width - shift + lane, "int32") for lane in range(width))
            moved = Shuffle((nothing, BufferLoad(self.prefix, every)), lanes)
            yield BufferStore(self.shifted, moved, every)
            yield vector_loop(0, width, lambda j: BufferStore(self.prefix, self._joined(self.shifted, j), (j,)))
            shift *= 2

    def _joined(self, first: Buffer, j: PrimExpr) -> PrimExpr:
        """A lane of some buffer joined with that of the prefixes."""
        return self.join.combine(BufferLoad(first, (j,)), BufferLoad(self.prefix, (j,)))

    def _at(self, value: PrimExpr, place: PrimExpr) -> PrimExpr:
        return substitute(value, {**self.outer, self.found.axis: place})

    def _store(self, place: PrimExpr, value: PrimExpr) -> Stmt:
        store = self.found.store
        indices = tuple(self._at(index, place) for index in store.indices)
        return BufferStore(store.buffer, value, indices, span=store.span)
