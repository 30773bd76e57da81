"""Offsets for blocks of memory from their sizes and lifetimes alone.

    plan(requests) -> (offsets, total)        no two requests that live at one time overlap

A planner is any function of that form; `greedy` places the largest first at the lowest offset that is free all its
life.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Request", "greedy", "overlaps"]


@dataclass(frozen=True, slots=True)
class Request:
    """Memory of `size` bytes that is needed from step `first` to step `last`, both included."""

    size: int
    first: int
    last: int


def overlaps(a: Request, b: Request) -> bool:
    """Whether both are needed at some step."""
    return a.first <= b.last and b.first <= a.last


def greedy(requests: Sequence[Request], alignment: int = 16) -> tuple[list[int], int]:
    """Offsets by descending size, lowest free place first.

    >>> greedy([Request(32, 0, 1), Request(16, 1, 2), Request(32, 2, 3)])
    ([0, 32, 0], 48)
    """
    offsets = [0] * len(requests)
    placed: list[int] = []
    for index in sorted(range(len(requests)), key=lambda i: (-requests[i].size, i)):
        request, offset = requests[index], 0
        for other in sorted((i for i in placed if overlaps(requests[i], request)), key=lambda i: offsets[i]):
            if offset + request.size <= offsets[other]:
                break
            offset = max(offset, -(-(offsets[other] + requests[other].size) // alignment) * alignment)
        offsets[index] = offset
        placed.append(index)
    total = max((offsets[i] + requests[i].size for i in placed), default=0)
    return offsets, -(-total // alignment) * alignment
