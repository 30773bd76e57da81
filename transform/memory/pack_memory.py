"""Offsets in one block of memory for tensors whose sizes may be symbolic.

    pack(requests, facts, alignment) -> Packing(offsets, total)

No two requests that are needed at one step overlap, for all values of the symbols. A request is placed at the lowest
offset (at representative values) that is proved to be free: the start, or the end of another one; where nothing is
proved, after the greatest end of those that are in the way, or, where that is a long expression, after all that were
placed before: the sum of their sizes is a short one. Where a tensor fits at representative values is found by integers,
and only such places are proved; that starts and ends are in order is proved once for two neighbours, so proofs grow
with the number of tensors, not with its square.

Where such a plan is larger than what is needed at one step, as where small tensors of known size would fit beside large
ones of any, places are found for the sizes at representative values (`first_fit`), and a request begins at the greatest
end of those that lie below it there: what is below stays below, whatever the symbols are, and nothing is proved for it.
Several orders are tried until a plan is as small as can be at usual values; the smallest is taken.

Source: Pisarchyk and Lee, Efficient memory management for deep neural net inference, 2020 (greedy, by size or breadth).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, Facts, bounds, evaluate, free_symbols, maximum, prove_le, symbol, value_at
from weft.support.array_memory import ALIGNMENT
from weft.support.records import dataclass
from weft.transform.memory.first_fit import low_places

__all__ = ["ALIGNMENT", "Packing", "Request", "aligned", "live_bytes", "pack"]

_TYPICAL = 1024
_VALUES = (1, 2, 7, 64, 333, _TYPICAL, 4096)
_FEW = 32
"""Requests of which any orders are tried, too."""

_MOST_PARTS = 256
"""Of an offset: greatest ends of greatest ends grow without limit, and are computed at every call."""


@dataclass(frozen=True, eq=False)
class Request:
    """Memory of `size` bytes that is needed from step `first` to step `last`, both included.

    `alignment` is what a planner of a user's has to give it; `pack` takes one for all.
    """

    size: Dim
    first: int
    last: int
    alignment: int = 16

    def meets(self, other: Request) -> bool:
        """Whether both are needed at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Packing:
    """The offset of each request, and the size of the block, in bytes."""

    offsets: tuple[Dim, ...]
    total: Dim


def aligned(size: Dim, alignment: int = ALIGNMENT) -> Dim:
    """The least multiple of the alignment that is not below.

    >>> from weft.ir.dim import symbol
    >>> aligned(100), aligned(256 * symbol("n")), aligned(4 * symbol("n"))
    (128, 256 * n, 64 * ((n + 15) // 16))
    """
    if isinstance(size, DimExpr) and all(factor % alignment == 0 for _, factor in size.terms):
        return size
    return (size + alignment - 1) // alignment * alignment


def pack(requests: Sequence[Request], facts: Facts | None = None, alignment: int = ALIGNMENT) -> Packing:
    """Place the requests; every offset and the total are multiples of the alignment.

    >>> pack([Request(32, 0, 1), Request(64, 1, 2), Request(32, 2, 3)]).offsets
    (0, 64, 0)
    """
    judge = _Judge(facts or Facts(), sorted({name for r in requests for name in free_symbols(r.size)}))
    sizes = [aligned(request.size, alignment) for request in requests]
    weights = [judge.weight(size) for size in sizes]
    near = _neighbours(requests)
    goal = max(_live(requests, weights), default=0)
    orders = _orders(requests, weights)
    plans: list[Packing] = []
    for number, order in enumerate(orders):
        plans.append(_place(order, sizes, near, judge))
        if number == 0 and not _is_least(plans[0], requests, sizes, judge):
            more = (*orders, _by_breadth(requests, weights), *_shuffled(len(requests)))
            plans += _lifted(low_places(weights, near, more, goal), sizes, near, judge)
        if any(judge.weight(plan.total) <= goal for plan in plans):
            break
    return min(plans, key=lambda plan: judge.weights_of(plan.total))


def _is_least(plan: Packing, requests: Sequence[Request], sizes: Sequence[Dim], judge: _Judge) -> bool:
    """Whether no plan is smaller at representative values, the usual ones and a few others."""
    needed = [judge.weights_of(size) for size in sizes]
    return all(
        total <= max(_live(requests, [weights[place] for weights in needed]), default=0)
        for place, total in enumerate(judge.weights_of(plan.total))
    )


def live_bytes(requests: Sequence[Request], values: Mapping[str, int]) -> int:
    """The most bytes that are needed at one step for given values of the symbols: no plan can do with less."""
    return max(_live(requests, [evaluate(aligned(request.size), values) for request in requests]), default=0)


def _live(requests: Sequence[Request], weights: Sequence[int]) -> list[int]:
    changes: dict[int, int] = {}
    for request, weight in zip(requests, weights, strict=True):
        changes[request.first] = changes.get(request.first, 0) + weight
        changes[request.last + 1] = changes.get(request.last + 1, 0) - weight
    now, found = 0, []
    for step in sorted(changes):
        now += changes[step]
        found.append(now)
    return found


def _orders(requests: Sequence[Request], weights: Sequence[int]) -> Iterable[tuple[int, ...]]:
    """Orders of placing, each once: by size, by size and time, by time; largest first as they were given."""
    lengths = [request.last - request.first for request in requests]
    keys: list[Callable[[int], tuple[int, ...]]] = [
        lambda i: (-weights[i], requests[i].first, i),
        lambda i: (-weights[i] * (1 + lengths[i]), requests[i].first, i),
        lambda i: (requests[i].first, -weights[i], i),
        lambda i: (-weights[i], i),
    ]
    return dict.fromkeys(tuple(sorted(range(len(requests)), key=key)) for key in keys)


def _by_breadth(requests: Sequence[Request], weights: Sequence[int]) -> tuple[int, ...]:
    """What is needed at the step at which most is needed first, the largest of it first, and so on."""
    steps = sorted({request.first for request in requests})
    needed = {step: [i for i, r in enumerate(requests) if r.first <= step <= r.last] for step in steps}
    breadth = sorted(steps, key=lambda step: -sum(weights[i] for i in needed[step]))
    found = [i for step in breadth for i in sorted(needed[step], key=lambda i: (-weights[i], i))]
    return tuple(dict.fromkeys(found))


def _shuffled(count: int) -> list[list[int]]:
    """Any orders of a few requests, always the same ones: with them nearly all plans are as small as can be."""
    chosen = random.Random(0)
    return [chosen.sample(range(count), count) for _ in range(16 if count <= _FEW else 0)]


def _neighbours(requests: Sequence[Request]) -> list[list[int]]:
    """For each request those that are needed at some step at which it is."""
    near: list[list[int]] = [[] for _ in requests]
    open_: list[int] = []
    for i in sorted(range(len(requests)), key=lambda i: (requests[i].first, i)):
        open_ = [j for j in open_ if requests[j].last >= requests[i].first]
        for j in open_:
            near[i].append(j)
            near[j].append(i)
        open_.append(i)
    return near


class _Placed(NamedTuple):
    """Where a request is: as numbers at representative values, and as dimensions."""

    low: int
    high: int
    start: Dim
    end: Dim


def _place(order: Sequence[int], sizes: Sequence[Dim], near: Sequence[Sequence[int]], judge: _Judge) -> Packing:
    placed: dict[int, _Placed] = {}
    whole: Dim = 0  # no end is beyond the sum of the sizes: every start is an end or the greatest of some
    for i in order:
        others = {placed[j] for j in near[i] if j in placed}
        start = judge.lowest(sizes[i], sorted(others, key=itemgetter(0, 1)))
        start = whole if start is None else start
        end = start + sizes[i]
        placed[i] = _Placed(judge.weight(start), judge.weight(end), start, end)
        whole = whole + sizes[i]
    ends = list(dict.fromkeys(place.end for place in placed.values()))
    total = judge.greatest(ends) if ends else 0
    return Packing(tuple(placed[i].start for i in range(len(sizes))), whole if total is None else total)


def _lifted(starts: Sequence[int], sizes: Sequence[Dim], near: Sequence[Sequence[int]], judge: _Judge) -> list[Packing]:
    """The places of representative values for all values: on the greatest end of what is below; none for long ones."""
    found: dict[int, Dim] = {}
    weights = [judge.weight(size) for size in sizes]
    for i in sorted(range(len(sizes)), key=lambda i: (starts[i], weights[i], i)):  # what has no size first
        below = dict.fromkeys(
            found[j] + sizes[j] for j in near[i] if j in found and starts[j] + weights[j] <= starts[i]
        )
        start = judge.greatest(list(below)) if below else 0
        if start is None:
            return []
        found[i] = start
    ends = dict.fromkeys(found[i] + sizes[i] for i in range(len(sizes)))
    total = judge.greatest(list(ends)) if ends else 0
    return [] if total is None else [Packing(tuple(found[i] for i in range(len(sizes))), total)]


def _parts(size: Dim) -> int:
    return size.size if isinstance(size, DimExpr) else 1


@dataclass
class _Judge:
    """Comparisons of sizes that hold for all values of the symbols, remembered."""

    facts: Facts
    names: Sequence[str]
    points: list[dict[str, int]] = field(default_factory=list)
    usual: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[Dim, Dim], bool] = field(default_factory=dict)
    weights: dict[Dim, int] = field(default_factory=dict)
    others: list[dict[str, int]] = field(default_factory=list)
    several: dict[Dim, tuple[int, ...]] = field(default_factory=dict)
    is_usual: bool = True

    def __post_init__(self) -> None:
        limits = {name: bounds(symbol(name), self.facts)[1] for name in self.names}
        self.usual = {name: limits[name] or _TYPICAL for name in self.names}
        found = [dict.fromkeys(self.names, value) for value in _VALUES]
        found += [{**dict.fromkeys(self.names, low), name: 1000} for name in self.names for low in (1, 50)]
        self.points = [point for point in found if self._holds(point)]
        self.others = self.points[: len(_VALUES) - 2 : 2] if self.names else []
        self.is_usual = self._holds(self.usual)

    def _holds(self, point: Mapping[str, int]) -> bool:
        return self.facts.holds({**dict.fromkeys(self.facts.names, 1), **point})

    def weight(self, size: Dim) -> int:
        """A size at representative values."""
        if isinstance(size, int):
            return size
        if size not in self.weights:
            self.weights[size] = value_at(size, self.usual) or 0
        return self.weights[size]

    def weights_of(self, size: Dim) -> tuple[int, ...]:
        """A size at the usual values, and at a few others."""
        if isinstance(size, int):
            return (size,) * (1 + len(self.others))
        if size not in self.several:
            self.several[size] = (self.weight(size), *(value_at(size, point) or 0 for point in self.others))
        return self.several[size]

    def le(self, a: Dim, b: Dim) -> bool:
        """Whether a <= b is proved."""
        if isinstance(a, int) and isinstance(b, int):
            return a <= b
        if a is b:
            return True
        found = self.known.get((a, b))
        if found is None:
            found = self.known[a, b] = self._proved(a, b)
        return found

    def _proved(self, a: Dim, b: Dim) -> bool:
        for point in self.points:
            least, most = value_at(a, point), value_at(b, point)
            if least is not None and most is not None and least > most:
                return False
        try:
            return prove_le(a, b, self.facts) is True
        except ShapeError:  # beyond the limits of dimensions
            return False

    def lowest(self, size: Dim, others: Sequence[_Placed]) -> Dim | None:
        """The lowest offset that is free of the others, in the order of their starts; None where it is a long one."""
        for offset, before in self._candidates(self.weight(size), others):
            if self._is_free(offset, offset + size, others[:before], others[before:]):
                return offset
        return self.greatest([place.end for place in others])

    def greatest(self, sizes: Sequence[Dim]) -> Dim | None:
        """The greatest of sizes (at least one); None where that is a long expression."""
        kept = self.undominated(sizes)
        if sum(_parts(size) for size in kept) > _MOST_PARTS:
            return None
        return maximum(*kept)

    def _candidates(self, weight: int, others: Sequence[_Placed]) -> Iterable[tuple[Dim, int]]:
        """The start and the ends where the size fits at the usual values, and how many of the others begin before."""
        starts = [place.low for place in others]
        highest = [0, *accumulate((place.high for place in others), max)]
        ends = dict(sorted(((place.end, place.high) for place in others), key=lambda item: item[1]))
        for offset, number in ((0, 0), *ends.items()):
            before = bisect_right(starts, number)
            fits = highest[before] <= number and (before == len(starts) or number + weight <= starts[before])
            if fits or not self.is_usual:
                yield offset, before

    def _is_free(self, offset: Dim, stop: Dim, before: Sequence[_Placed], after: Sequence[_Placed]) -> bool:
        """Whether nothing of the others is between: from neighbour to neighbour where those are in order, or each."""
        above, below = stop, offset
        for place in after:
            if not self.le(above, place.start):
                if not self.le(stop, place.start) and not self.le(place.end, offset):
                    return False
                continue
            above = place.start
        for place in reversed(before):
            if not self.le(place.end, below):
                if not self.le(place.end, offset) and not self.le(stop, place.start):
                    return False
                continue
            below = place.end
        return True

    def undominated(self, sizes: Sequence[Dim]) -> list[Dim]:
        """The sizes without those that another one is proved to reach."""
        kept: list[Dim] = []
        for size in sorted(sizes, key=self.weight, reverse=True):
            if not any(self.le(size, other) for other in kept):
                kept.append(size)
        return kept
