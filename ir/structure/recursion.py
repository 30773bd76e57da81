"""Room on the Python stack for programs that nest deeper than Python's default limit: the one guard of the package.

The limit belongs to the whole process, so it is raised only while somebody asks, to no more than the thread that asks
has stack for, and goes back when the last one leaves, whichever thread that is.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["deep_recursion"]

_LIMIT = 100_000
_USUAL_STACK = 8 << 20
"""The stack, in bytes, for which `_LIMIT` calls of the package are few enough."""
_lock = threading.Lock()
_asked: list[int] = []
_before = 0


@contextmanager
def deep_recursion(frames: int = _LIMIT) -> Iterator[None]:
    """Raise the recursion limit while inside, to at most so many frames; the last one out restores it."""
    global _before
    wanted = min(frames, int(_LIMIT * min(1.0, _stack_bytes() / _USUAL_STACK)))
    with _lock:
        if not _asked:
            _before = sys.getrecursionlimit()
        _asked.append(wanted)
        sys.setrecursionlimit(max(_before, *_asked))
    try:
        yield
    finally:
        with _lock:
            _asked.remove(wanted)
            _set_limit(max([_before, *_asked]))


def _set_limit(limit: int) -> None:
    """Set the limit, or leave a higher one where this thread is deeper than that: the next one out sets it."""
    try:
        sys.setrecursionlimit(limit)
    except RecursionError:
        pass


def _stack_bytes() -> int:
    """The stack that the current thread was given, as far as Python knows."""
    own = threading.stack_size()
    if own and threading.current_thread() is not threading.main_thread():
        return own
    try:
        import resource  # there is none on Windows
    except ImportError:
        return _USUAL_STACK
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return _USUAL_STACK if soft < 0 else soft
