"""Values at which claims are tried: before anyone tries to prove them, and to find a counter-example."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product as cartesian

# Values at which a claim is tried before anyone tries to prove it.
_UNIFORM = (1, 2, 3, 0, 4, 5, 7, 8, 16, 31, 64, 100)
_MIXED = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 255, 1000, 4096)


@lru_cache(maxsize=256)
def sample_points(names: tuple[str, ...], count: int) -> tuple[dict[str, int], ...]:
    """Uniform points, then `count` mixed ones; always the same."""
    points = [dict.fromkeys(names, value) for value in _UNIFORM]
    if len(names) > 1:
        state = 12345
        for _ in range(count):
            point: dict[str, int] = {}
            for name in names:
                state = (state * 1103515245 + 12345) % 2**31
                point[name] = _MIXED[(state >> 12) % len(_MIXED)]
            points.append(point)
    else:
        points.extend(dict.fromkeys(names, value) for value in _MIXED)
    return tuple(points)


_MAX_TRIES = 3000


def candidate_points(names: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Points to try: small positive ones, then with zeros, then larger and mixed ones."""
    if not names:
        yield {}
        return
    side = max(2, int(_MAX_TRIES ** (1 / len(names)) / 2)) if len(names) <= 10 else 1
    side = min(side, 300)
    if side > 1:
        for low, ring in [(1, high) for high in range(1, side + 1)] + [(0, high) for high in range(side + 1)]:
            for point in _ring(len(names), low, ring):
                if low == 1 or 0 in point:
                    yield dict(zip(names, point, strict=True))
    yield from sample_points(names, 400)


def _ring(count: int, low: int, high: int) -> Iterator[tuple[int, ...]]:
    """The points of a cube whose largest coordinate is ``high``."""
    for point in cartesian(range(low, high + 1), repeat=count):
        if max(point) == high:
            yield point
