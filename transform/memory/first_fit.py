"""Places for requests of known sizes: each in the lowest gap, in several orders, mended where one stands too high.

    low_places(weights, near, orders, goal) -> the start of each

`near` lists for each request those that are needed at some step at which it is. No plan is smaller than `goal`. What
ends beyond it is placed again, just before what it stands on, so that this moves up, if it is in the way at all.

Source: Pisarchyk and Lee, Efficient memory management for deep neural net inference, 2020 (greedy, by size or time).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["low_places"]

_ROUNDS = 4
"""How often an order is mended: a plan that can be is as small as can be after one or two."""


def low_places(
    weights: Sequence[int], near: Sequence[Sequence[int]], orders: Iterable[Sequence[int]], goal: int
) -> list[int]:
    """The starts of the smallest plan that is found, of the first one that is no greater than the goal.

    >>> low_places([1, 2, 1], [[1], [0, 2], [1]], [(0, 1, 2)], 3)
    [0, 1, 0]
    """
    best: list[int] = []
    least: int | None = None
    for first in orders:
        order = first
        for _ in range(_ROUNDS):
            starts = _first_fit(weights, near, order)
            total = max(map(sum, zip(starts, weights, strict=True)), default=0)
            if least is None or total < least:
                best, least = starts, total
            if total <= goal:
                return best
            order = _mended(order, starts, weights, near, goal)
    return best


def _first_fit(weights: Sequence[int], near: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    starts: dict[int, int] = {}
    for i in order:
        place = 0
        for low, high in sorted((starts[j], starts[j] + weights[j]) for j in near[i] if j in starts):
            if low - place >= weights[i]:
                break
            place = max(place, high)
        starts[i] = place
    return [starts[i] for i in range(len(weights))]


def _mended(
    order: Sequence[int], starts: Sequence[int], weights: Sequence[int], near: Sequence[Sequence[int]], goal: int
) -> list[int]:
    """The order with what ends beyond the goal before what it stands on, as are others that stand on it."""
    position = {i: place for place, i in enumerate(order)}
    moved: dict[int, int] = {}
    for i in sorted(order, key=lambda i: starts[i]):
        if starts[i] + weights[i] > goal:
            below = [moved.get(j, position[j]) for j in near[i] if starts[j] + weights[j] == starts[i]]
            moved[i] = min([*below, position[i]])
    return sorted(order, key=lambda i: (moved.get(i, position[i]), i not in moved, position[i]))
