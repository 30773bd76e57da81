"""Accumulators: sums (products, minima, maxima) along a row run in vectors of their own, which are combined at the end.

    running[0:w] = identity;  for k: running[0:w] = combine(running[0:w], term(k : k + w));  halves, until one is left

Several results run side by side, for one load to serve them all. What fills no vector at the end of the row goes lane
by lane under a mask, or one after another where the machine has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from weft import dtypes
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Extent, For, PrimCall, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.rules.loops import INDEX, minus, plus, sequence, split, times, vector_loop

__all__ = ["IDENTITIES", "Accumulators", "Term", "guarded", "is_zero"]

Term = Callable[[PrimExpr], PrimExpr]
"""The place along the row -> the value there."""

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

    def result(self, number: int) -> BufferLoad:
        """Where a result is, once its accumulators are combined."""
        return self.at(const(number * self.width, INDEX))

    def clear(self) -> list[Stmt]:
        """All of them at the identity."""
        (size,) = self.buffer.shape
        assert isinstance(size, int)
        return [vector_loop(at, self.lanes, lambda j: self.put(j, self.identity)) for at in range(0, size, self.lanes)]

    def along(self, name: str, extent: Extent, terms: Sequence[Term]) -> Iterator[Stmt]:
        """The terms of each result combined: all vectors at a time, then single ones, then a part of one."""
        lanes, width = self.lanes, self.width
        firsts = [(number * width, term) for number, term in enumerate(terms)]
        steps, done = split(0, extent, width)
        if not is_zero(steps):
            i, u = PrimVar(name, INDEX), PrimVar("u", INDEX)

            def whole(j: PrimExpr, first: int, term: Term) -> Stmt:
                place = plus(times(u, lanes), j)
                return self.add(plus(first, place), term(plus(times(i, width), place)))

            body = sequence(vector_loop(0, lanes, partial(whole, first=first, term=term)) for first, term in firsts)
            yield For(i, 0, steps, For(u, 0, self.vectors, body, "unrolled"))
        if self.vectors > 1:
            start = done
            steps, done = split(start, extent, lanes)
            if not is_zero(steps):
                t = PrimVar(name, INDEX)
                yield For(t, 0, steps, sequence(self._vector(plus(start, times(t, lanes)), firsts)))
        rest = minus(extent, done)
        if not is_zero(rest):
            yield from self._rest(done, rest, firsts)

    def _vector(self, start: PrimExpr, firsts: Sequence[tuple[int, Term]]) -> Iterator[Stmt]:
        for first, term in firsts:
            yield vector_loop(0, self.lanes, partial(self._lane, start=start, first=first, term=term))

    def _lane(self, j: PrimExpr, start: Extent, first: int, term: Term) -> Stmt:
        return self.add(plus(first, j), term(plus(start, j)))

    def _rest(self, done: Extent, rest: Extent, firsts: Sequence[tuple[int, Term]]) -> Iterator[Stmt]:
        if not self.has_masks:
            t = PrimVar("rest", INDEX)
            yield For(t, 0, rest, sequence(self.add(const(at, INDEX), term(plus(done, t))) for at, term in firsts))
            return
        width = 1 << (rest - 1).bit_length() if isinstance(rest, int) else self.lanes
        valid = None if width == rest else rest

        def masked(j: PrimExpr, first: int, term: Term) -> Stmt:
            return self.add(plus(first, j), guarded(j, valid, term(plus(done, j)), self.identity))

        for first, term in firsts:
            yield vector_loop(0, width, partial(masked, first=first, term=term))

    def combined(self, number: int) -> Iterator[Stmt]:
        """The accumulators of a result combined by halves, until the first is all of them."""
        first, half = number * self.width, self.width
        while half > 1:
            half //= 2
            lanes = min(half, self.lanes)
            for start in range(first, first + half, lanes):
                yield vector_loop(start, lanes, lambda j, half=half: self.add(j, self.at(plus(j, half))))


def guarded(j: PrimExpr, left: Extent | None, value: PrimExpr, other: PrimExpr) -> PrimExpr:
    """The value for lanes below `left`, whose loads then happen for those alone."""
    if left is None:
        return value
    return PrimCall("if_then_else", (binary("lt", j, as_expr(left, INDEX)), value, other), value.dtype)


def is_zero(extent: Extent) -> bool:
    """Whether a number of elements is known to be none."""
    return isinstance(extent, int) and extent == 0
