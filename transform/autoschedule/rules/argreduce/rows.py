"""Extremes along a row: in groups of vectors, of which only the best value is compared with the best one so far.

    for i in groups:  v[0:w] = max(x[i, 0, 0:w], x[i, 1, 0:w], ...);  where v is better: steps[0:w], values[0:w] = i, v
    best = max(values[0:w]);  group = min(steps[j] where values[j] is best)
    place = min(u * w + j where x[group, u, j] is best)

A group of one vector needs no second look at x: its place is that of the lane. Steps have as many bits as values, so
that vectors of both have as many lanes; a row of more groups than steps can count goes in segments. A long row of few
is cut into chunks, which threads share; how many there are follows from the size alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_fields
from functools import partial, reduce

from weft import dtypes
from weft.ir import substitute, te
from weft.ir.kernel.prim import as_expr, binary, cast, const
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.rules.accumulators import guarded
from weft.transform.autoschedule.rules.argreduce.match import ArgReduction, Running
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence, split, times, vector_loop

__all__ = ["LINE", "Rows"]

LINE = 64
"""Elements of which a chunk has a multiple, so that it starts where a vector does."""


@dataclass(frozen=True)
class Rows:
    """The rows along `var`: groups of so many times `vectors` side by side; `chunks` of a row from `split_from` on."""

    found: ArgReduction
    var: PrimVar
    vectors: int
    group: int
    chunks: int
    split_from: int

    @property
    def width(self) -> int:
        """Lanes that keep a value each."""
        return self.vectors * self.found.lanes

    @property
    def elements(self) -> int:
        """Elements of a group."""
        return self.group * self.width

    def build(self) -> Stmt:
        """The loops."""
        found, nest = self.found, self.found.nest
        outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.spatial}
        inner = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.reduction if x is not self.var}
        loops = [(new, nest.extents[old]) for old, new in inner.items()]
        variables = {**outer, **inner}
        if self.chunks == 1:
            body = self._range(found, variables, 0, nest.extents[self.var])
            row = [*(substitute(store, outer) for store in found.start), nested(loops, sequence(body))]
        else:
            row = self._in_chunks(variables, outer, loops)
        return nested([(new, nest.extents[old]) for old, new in outer.items()], sequence(row))

    # Chunks -----------------------------------------------------------------------------------------------------------

    def _in_chunks(
        self, variables: dict[PrimVar, PrimVar], outer: dict[PrimVar, PrimVar], loops: list[tuple[PrimVar, Extent]]
    ) -> list[Stmt]:
        """The best of every chunk, which threads can share, then the best of these."""
        found, extent = self.found, as_expr(self.found.nest.extents[self.var], INDEX)
        kept = tuple(
            Buffer(f"chunk_{name}", (self.chunks,), place.dtype)
            for name, place in zip(("positions", "values"), found.places, strict=True)
        )
        chunk, again = PrimVar("chunk", INDEX), PrimVar("chunk", INDEX)
        places = tuple(BufferLoad(buffer, (chunk,)) for buffer in kept)
        start = tuple(
            BufferStore(buffer, store.value, (chunk,)) for buffer, store in zip(kept, found.start, strict=True)
        )
        own = replace_fields(found, places=(places[0], places[1]), start=(start[0], start[1]))
        long = binary("ge", extent, const(self.split_from, INDEX))
        count = Select(long, const(self.chunks, INDEX), const(1, INDEX))
        share = binary("floordiv", plus(extent, self.chunks * LINE - 1), const(self.chunks * LINE, INDEX))
        step, first, last = (PrimVar(name, INDEX) for name in ("chunk_step", "first", "last"))
        body = [
            Bind(first, binary("min", binary("mul", chunk, step), extent)),
            Bind(last, binary("min", plus(first, step), extent)),
            *start,
            nested(loops, sequence(self._range(own, variables, first, minus(last, first)))),
        ]
        best = found.update(*(BufferLoad(buffer, (again,)) for buffer in kept))
        return [
            *(AllocBuffer(buffer) for buffer in kept),
            Bind(step, Select(long, as_expr(times(share, LINE), INDEX), extent)),
            For(chunk, 0, count, sequence(body)),
            *(substitute(store, outer) for store in found.start),
            For(again, 0, count, sequence(substitute(part, outer) for part in best)),
        ]

    # Segments ---------------------------------------------------------------------------------------------------------

    def _range(
        self, found: ArgReduction, variables: dict[PrimVar, PrimVar], first: Extent, length: Extent
    ) -> list[Stmt]:
        """`length` elements from `first` on, in segments of which the steps can be counted."""
        bits = min(dtypes.bits(found.step_dtype), 31)
        segment = (1 << (bits - 1)) * self.elements >> 1
        if isinstance(length, int) and length <= segment:
            return self._segment(found, variables, first, length)
        number, start = PrimVar("segment", INDEX), PrimVar("start", INDEX)
        done = PrimVar("done", INDEX)
        left = binary("min", minus(length, done), const(segment, INDEX))
        body = (
            Bind(done, as_expr(times(number, segment), INDEX)),
            Bind(start, plus(first, done)),
            *self._segment(found, variables, start, left),
        )
        count = binary("floordiv", plus(length, segment - 1), const(segment, INDEX))
        return [For(number, 0, count, SeqStmt(body))]

    def _segment(
        self, found: ArgReduction, variables: dict[PrimVar, PrimVar], start: Extent, length: Extent
    ) -> list[Stmt]:
        """What is stored updated by the best of a segment."""
        running = Running.of(found, self.width)
        lanes = range(0, self.width, found.lanes)

        def value(index: PrimExpr) -> PrimExpr:
            return substitute(found.value, {**variables, self.var: plus(start, index)})

        best = Buffer("best", (self.width,), found.value.dtype, "local")
        top, place = PrimVar("top", found.value.dtype), PrimVar("place", INDEX)
        position = substitute(found.position, {**variables, self.var: plus(start, place)})
        return [
            AllocBuffer(running.steps),
            AllocBuffer(running.values),
            AllocBuffer(best),
            *(vector_loop(at, found.lanes, running.clear) for at in lanes),
            *self._groups(running, length, value),
            *(vector_loop(at, found.lanes, partial(_copied, best, running.values)) for at in lanes),
            *_halved(best, self.width, found.lanes, found.extreme),
            Bind(top, BufferLoad(best, (const(0, INDEX),))),
            *self._place_of(running, top, place, length, value),
            *(substitute(part, variables) for part in found.update(position, top)),
        ]

    def _groups(self, running: Running, length: Extent, value: Callable[[PrimExpr], PrimExpr]) -> Iterator[Stmt]:
        """All candidates: whole groups, then those that are left."""
        lanes, found = running.found.lanes, running.found
        steps, done = split(0, length, self.elements)
        candidates = Buffer("candidates", (self.width,), found.value.dtype, "local")
        yield AllocBuffer(candidates)
        if not (isinstance(steps, int) and steps == 0):
            i = PrimVar(self.var.name.removeprefix("v"), INDEX)
            group = [
                part
                for at in range(0, self.width, lanes)
                for part in self._one_group(
                    running,
                    candidates,
                    at,
                    i,
                    [
                        lambda j, first=at + number * self.width: value(plus(plus(times(i, self.elements), first), j))
                        for number in range(self.group)
                    ],
                )
            ]
            yield For(i, 0, steps, sequence(group))
        rest, last = minus(length, done), as_expr(steps, INDEX)
        if isinstance(rest, int) and rest == 0:
            return
        if not found.machine.has_masks:
            t = PrimVar("rest", INDEX)
            lane = binary("floormod", t, const(self.width, INDEX))
            yield For(t, 0, rest, running.take(lane, last, value(plus(done, t))))
            return
        for at in range(0, self.width, lanes):
            starts = [at + number * self.width for number in range(self.group)]
            some = [start for start in starts if not isinstance(rest, int) or start < rest]
            terms = [partial(self._guarded, value, done, rest, start) for start in some]
            yield from self._one_group(running, candidates, at, last, terms)

    def _guarded(
        self, value: Callable[[PrimExpr], PrimExpr], done: Extent, rest: Extent, first: int, j: PrimExpr
    ) -> PrimExpr:
        """An element of those that fill no group; the worst value where there is none."""
        whole = isinstance(rest, int) and first + self.found.lanes <= rest
        left = None if whole else minus(rest, first)
        return guarded(j, left, value(plus(plus(done, first), j)), self.found.start[1].value)

    def _one_group(
        self,
        running: Running,
        candidates: Buffer,
        first: int,
        step: PrimExpr,
        terms: Sequence[Callable[[PrimExpr], PrimExpr]],
    ) -> list[Stmt]:
        """The lanes from `first` on: the best of their elements in a group is a candidate."""
        if not terms:
            return []
        lanes = self.found.lanes

        def best(j: PrimExpr) -> Stmt:
            return BufferStore(candidates, self._extreme([term(j) for term in terms]), (plus(first, j),))

        def take(j: PrimExpr) -> Stmt:
            return running.take(j, step, BufferLoad(candidates, (j,)))

        return [vector_loop(0, lanes, best), vector_loop(first, lanes, take)]

    def _extreme(self, terms: Sequence[PrimExpr]) -> PrimExpr:
        """The best of several values, by halves."""
        while len(terms) > 1:
            terms = [reduce(self.found.extreme, terms[at : at + 2]) for at in range(0, len(terms), 2)]
        return terms[0]

    # Positions --------------------------------------------------------------------------------------------------------

    def _place_of(
        self, running: Running, top: PrimVar, place: PrimVar, length: Extent, value: Callable[[PrimExpr], PrimExpr]
    ) -> Iterator[Stmt]:
        """`place` as that of the first element that is the best one."""
        found, zero = running.found, (const(0, INDEX),)
        dtype = found.step_dtype if self.group > 1 else _places(found.value.dtype)
        first = Buffer("earliest", (self.width,), dtype, "local")
        none = const(dtypes.max_value(dtype), dtype)

        def step(j: PrimExpr) -> Stmt:
            number = cast(dtype, BufferLoad(running.steps, (j,)))
            if self.group == 1:
                number = binary("add", binary("mul", number, const(self.width, dtype)), cast(dtype, j))
            is_best = _same(BufferLoad(running.values, (j,)), top)
            return BufferStore(first, Select(is_best, number, none), (j,))

        yield AllocBuffer(first)
        yield from (vector_loop(at, found.lanes, step) for at in range(0, self.width, found.lanes))
        yield from _halved(first, self.width, found.lanes, partial(binary, "min"))
        earliest = cast(INDEX, BufferLoad(first, zero))
        if self.group == 1:
            yield Bind(place, earliest)
            return
        limit = as_expr(length, INDEX)
        base = PrimVar("base", INDEX)
        yield Bind(base, te.maximum(te.minimum(binary("mul", earliest, const(self.elements, INDEX)), limit - 1), 0))
        yield from self._place_in_group(top, place, base, limit, value)

    def _place_in_group(
        self, top: PrimVar, place: PrimVar, base: PrimVar, limit: PrimExpr, value: Callable[[PrimExpr], PrimExpr]
    ) -> Iterator[Stmt]:
        """`place` as that of the first element of a group that is the best one."""
        dtype, found = _places(self.found.value.dtype), self.found
        group = Buffer("group", (self.elements,), found.value.dtype, "local")
        seen = Buffer("seen", (self.width,), dtype, "local")
        left = PrimVar("left", INDEX)

        def kept(j: PrimExpr) -> Stmt:
            return BufferStore(group, guarded(j, left, value(plus(base, j)), found.start[1].value), (j,))

        def look(number: int, j: PrimExpr) -> Stmt:
            at = plus(j, number * self.width)
            others = const(self.elements - 1, dtype) if number == 0 else BufferLoad(seen, (j,))
            place = Select(_same(BufferLoad(group, (at,)), top), cast(dtype, at), const(self.elements - 1, dtype))
            return BufferStore(seen, binary("min", others, place), (j,))

        yield from (AllocBuffer(group), AllocBuffer(seen), Bind(left, as_expr(minus(limit, base), INDEX)))
        yield from (vector_loop(at, found.lanes, kept) for at in range(0, self.elements, found.lanes))
        for number in range(self.group):
            step = partial(look, number)
            yield from (vector_loop(at, found.lanes, step) for at in range(0, self.width, found.lanes))
        yield from _halved(seen, self.width, found.lanes, partial(binary, "min"))
        yield Bind(place, plus(base, cast(INDEX, BufferLoad(seen, (const(0, INDEX),)))))


def _halved(buffer: Buffer, width: int, most: int, combine: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Iterator[Stmt]:
    """The lanes of a buffer combined by halves, at most so many at a time, until the first is all of them."""
    half = width
    while half > 1:
        half //= 2
        lanes = min(half, most)

        def join(j: PrimExpr, half: int = half) -> Stmt:
            other = BufferLoad(buffer, (plus(j, half),))
            return BufferStore(buffer, combine(BufferLoad(buffer, (j,)), other), (j,))

        yield from (vector_loop(start, lanes, join) for start in range(0, half, lanes))


def _copied(to: Buffer, of: Buffer, j: PrimExpr) -> Stmt:
    return BufferStore(to, BufferLoad(of, (j,)), (j,))


def _places(dtype: str) -> str:
    """The dtype of places in a segment or a group."""
    return INDEX if dtypes.bits(dtype) > 32 else "int32"


def _same(value: PrimExpr, top: PrimVar) -> PrimExpr:
    """Whether a value is the best one: equal, or a nan as that is."""
    equal = te.equal(value, top)
    if not dtypes.is_float(value.dtype):
        return equal
    return te.any(equal, te.all(te.not_equal(value, value), te.not_equal(top, top)))
