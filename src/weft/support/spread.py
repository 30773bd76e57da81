"""Work of the process that releases the GIL, such as hashing, on several cores at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["cores", "spread"]

T = TypeVar("T")
R = TypeVar("R")
_MOST = 4


def cores() -> int:
    """The cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of work on each item, in order; here alone where there is one of either, or no thread can be had.

    >>> spread(len, ["a", "bc"])
    [1, 2]
    """
    count = min(cores(), _MOST, len(items))
    if count > 1:
        try:
            with ThreadPoolExecutor(count, "weft-spread") as pool:
                return list(pool.map(work, items))
        except RuntimeError:  # no thread can be had
            pass
    return [work(item) for item in items]
