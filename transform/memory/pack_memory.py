"""Offsets in one block of memory for tensors whose sizes may be symbolic.

    pack(requests, facts, alignment) -> Packing(offsets, total)

No two requests that are needed at one step overlap, for all values of the symbols. A request is placed at the lowest
offset (at representative values) that is proved to be free: the start, or the end of another one; where nothing is
proved, after the greatest end of those that are in the way. Several orders are tried, and the smallest plan is taken.

Source: Pisarchyk and Lee, Efficient memory management for deep neural net inference, 2020 (greedy, by size or time).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.aligned import ALIGNMENT
from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, Facts, bounds, evaluate, free_symbols, maximum, prove_le, symbol, value_at

__all__ = ["ALIGNMENT", "Packing", "Request", "aligned", "live_bytes", "pack"]

_TYPICAL = 1024
_VALUES = (1, 2, 7, 64, 333, _TYPICAL, 4096)


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
    best: Packing | None = None
    goal = max(_live(requests, weights), default=0)
    for order in _orders(requests, weights):
        found = _place(order, sizes, near, judge)
        if best is None or judge.weight(found.total) < judge.weight(best.total):
            best = found
        if judge.weight(best.total) <= goal:
            break
    assert best is not None
    return best


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


def _place(order: Sequence[int], sizes: Sequence[Dim], near: Sequence[Sequence[int]], judge: _Judge) -> Packing:
    offsets: dict[int, Dim] = {}
    ends: dict[int, Dim] = {}
    for i in order:
        others = list(dict.fromkeys((offsets[j], ends[j]) for j in near[i] if j in offsets))
        offsets[i] = judge.lowest(sizes[i], others)
        ends[i] = offsets[i] + sizes[i]
    total = maximum(*judge.undominated(list(dict.fromkeys(ends.values())))) if ends else 0
    return Packing(tuple(offsets[i] for i in range(len(sizes))), total)


@dataclass
class _Judge:
    """Comparisons of sizes that hold for all values of the symbols, remembered."""

    facts: Facts
    names: Sequence[str]
    points: list[dict[str, int]] = field(default_factory=list)
    usual: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[Dim, Dim], bool] = field(default_factory=dict)
    weights: dict[Dim, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limits = {name: bounds(symbol(name), self.facts)[1] for name in self.names}
        self.usual = {name: limits[name] or _TYPICAL for name in self.names}
        found = [dict.fromkeys(self.names, value) for value in _VALUES]
        found += [{**dict.fromkeys(self.names, low), name: 1000} for name in self.names for low in (1, 50)]
        self.points = [point for point in found if self.facts.holds({**_free(self.facts), **point})]

    def weight(self, size: Dim) -> int:
        """A size at representative values."""
        if isinstance(size, int):
            return size
        if size not in self.weights:
            self.weights[size] = value_at(size, self.usual) or 0
        return self.weights[size]

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

    def lowest(self, size: Dim, others: Sequence[tuple[Dim, Dim]]) -> Dim:
        """The lowest offset that is free of the intervals."""
        ends = sorted({end for _, end in others}, key=self.weight)
        in_order = sorted(others, key=lambda interval: self.weight(interval[0]))
        starts = [self.weight(start) for start, _ in in_order]
        for offset in (0, *ends):
            stop = offset + size
            near = bisect_right(starts, self.weight(offset))  # what is in the way mostly begins here
            probed = (*in_order[max(0, near - 1) : near + 1], *in_order)
            if all(self.le(stop, start) or self.le(end, offset) for start, end in probed):
                return offset
        return maximum(*self.undominated(ends))

    def undominated(self, sizes: Sequence[Dim]) -> list[Dim]:
        """The sizes without those that another one is proved to reach."""
        kept: list[Dim] = []
        for size in sorted(sizes, key=self.weight, reverse=True):
            if not any(self.le(size, other) for other in kept):
                kept.append(size)
        return kept


def _free(facts: Facts) -> dict[str, int]:
    return dict.fromkeys(facts.names, 1)
