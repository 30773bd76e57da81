"""Room on the Python stack for programs that nest deeper than Python's default limit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["deep_recursion"]

_LIMIT = 100_000
_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the recursion limit while inside; the last one out restores it, whichever thread that is."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _LIMIT))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                sys.setrecursionlimit(_before)
