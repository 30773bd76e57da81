"""Accumulators: sums (products, minima, maxima) along a row run in vectors of their own, which are combined at the end.

    running[0:w] = identity;  for k: running[0:w] = combine(running[0:w], term(k : k + w));  halves, until one is left

Several results run side by side, for one load to serve them all. What fills no vector at the end of the row goes lane
by lane under a mask, or one after another where the machine has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from weft import dtypes
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.rules.loops import (
    BLOCK,
    INDEX,
    as_int,
    in_blocks,
    minus,
    plus,
    sequence,
    split,
    times,
    vector_loop,
)

__all__ = ["IDENTITIES", "Accumulators", "Each", "Term", "guarded", "is_zero"]

Term = Callable[[PrimExpr], PrimExpr]
"""The place along the row -> the value there."""

Each = Callable[[Callable[[Extent, Term], Stmt]], Sequence[Stmt]]
"""What is done to a result, given its first accumulator and its terms -> the statements that do it to each result."""

IDENTITIES: dict[str, Callable[[str], int | float]] = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "max": dtypes.lowest,
    "min": dtypes.highest,
}


@dataclass(frozen=True)
class Accumulators:
    """A small buffer, which registers hold: `vectors` of `lanes` for each result, combined by `kind`."""

    kind: str
    dtype: str
    lanes: int
    vectors: int
    has_masks: bool
    buffer: Buffer

    @staticmethod
    def of(kind: str, dtype: str, lanes: int, vectors: int, has_masks: bool, results: int = 1) -> Accumulators:
        """Those of some results."""
        buffer = Buffer("running", (results * vectors * lanes,), dtype, "local")
        return Accumulators(kind, dtype, lanes, vectors, has_masks, buffer)

    @property
    def width(self) -> int:
        """Elements that belong to one result."""
        return self.vectors * self.lanes

    @property
    def identity(self) -> PrimExpr:
        """The value that changes nothing."""
        return const(IDENTITIES[self.kind](self.dtype), self.dtype)

    def at(self, place: PrimExpr) -> BufferLoad:
        """One of them."""
        return BufferLoad(self.buffer, (place,))

    def put(self, place: PrimExpr, value: PrimExpr) -> Stmt:
        """Set one."""
        return BufferStore(self.buffer, value, (place,))

    def add(self, place: PrimExpr, value: PrimExpr) -> Stmt:
        """Combine a value with one."""
        return self.put(place, binary(self.kind, self.at(place), value))

    def clear(self) -> list[Stmt]:
        """All of them at the identity."""
        return self._all(lambda j: self.put(j, self.identity))

    def _all(self, action: Callable[[PrimExpr], Stmt]) -> list[Stmt]:
        """An action on all accumulators, a vector after another."""
        (size,) = self.buffer.shape
        assert isinstance(size, int)
        if size <= 4 * self.lanes:
            return [vector_loop(at, self.lanes, action) for at in range(0, size, self.lanes)]
        u = PrimVar("u", INDEX)
        return [For(u, 0, size // self.lanes, vector_loop(times(u, self.lanes), self.lanes, action), "unrolled")]

    def along(self, name: str, extent: Extent, each: Each, may_be_long: bool = False) -> Iterator[Stmt]:
        """The terms of each result combined: all vectors at a time, then single ones, then a part of one.

        Where `may_be_long`, a symbolic extent is looked at for being long; in a loop over many rows that costs time.
        """
        lanes, width = self.lanes, self.width
        steps, done = split(0, extent, width)
        if not is_zero(steps):
            i, u = PrimVar(name, INDEX), PrimVar("u", INDEX)
            start = plus(times(i, width), times(u, lanes))
            body = sequence(each(partial(self._vector, start=start, offset=times(u, lanes))))
            step = For(u, 0, self.vectors, body, "unrolled")
            loop = For(i, 0, steps, step)
            if self._is_long(steps, may_be_long):
                loop = in_blocks(loop, BLOCK, self.buffer, self.identity, lambda action: sequence(self._all(action)))
            yield loop
        if self.vectors > 1:
            start = done
            steps, done = split(start, extent, lanes)
            if not is_zero(steps):
                t = PrimVar(name, INDEX)
                yield For(t, 0, steps, sequence(each(partial(self._vector, start=plus(start, times(t, lanes))))))
        rest = minus(extent, done)
        if not is_zero(rest):
            yield from self._rest(done, rest, each)

    def _is_long(self, steps: Extent, may_be_long: bool) -> bool:
        if self.kind != "add" or self.dtype != "float32":
            return False
        return steps > BLOCK if isinstance(steps, int) else may_be_long

    def _vector(self, first: Extent, term: Term, start: Extent, offset: Extent = 0) -> Stmt:
        def lane(j: PrimExpr) -> Stmt:
            return self.add(plus(first, plus(offset, j)), term(plus(start, j)))

        return vector_loop(0, self.lanes, lane)

    def _rest(self, done: Extent, rest: Extent, each: Each) -> Iterator[Stmt]:
        if not self.has_masks:
            t = PrimVar("rest", INDEX)
            one = each(lambda first, term: self.add(as_expr(first, INDEX), term(plus(done, t))))
            yield For(t, 0, rest, sequence(one))
            return
        width = 1 << (rest - 1).bit_length() if isinstance(rest, int) else self.lanes
        valid = None if width == rest else rest

        def masked(first: Extent, term: Term) -> Stmt:
            def lane(j: PrimExpr) -> Stmt:
                return self.add(plus(first, j), guarded(j, valid, term(plus(done, j)), self.identity))

            return vector_loop(0, width, lane)

        yield from each(masked)

    def combined(self, first: Extent) -> Iterator[Stmt]:
        """The accumulators of a result combined by halves, until the first is all of them."""
        half = self.width
        while half > 1:
            half //= 2
            lanes = min(half, self.lanes)
            for start in range(0, half, lanes):
                place = as_int(plus(first, start))
                yield vector_loop(place, lanes, lambda j, half=half: self.add(j, self.at(plus(j, half))))


def guarded(j: PrimExpr, left: Extent | None, value: PrimExpr, other: PrimExpr) -> PrimExpr:
    """The value for lanes below `left`, whose loads then happen for those alone."""
    if left is None:
        return value
    return PrimCall("if_then_else", (binary("lt", j, as_expr(left, INDEX)), value, other), value.dtype)


def is_zero(extent: Extent) -> bool:
    """Whether a number of elements is known to be none."""
    return isinstance(extent, int) and extent == 0
