"""Work of the process that releases the GIL, such as hashing, on several cores at once.

A thread that computes in Python keeps the GIL for 5 ms when another asks for it. One that works in C and asks for it
after each of a few dozen calls, as a thread that compiles with LLVM does, would wait for longer than it works:
`short_turns`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from weft.support.forks import free_in_child, in_child

__all__ = ["cores", "short_turns", "spread"]

T = TypeVar("T")
R = TypeVar("R")
_MOST = 4
_SHORT = 0.0002
_lock = free_in_child(threading.Lock())
_inside: list[int] = []
"""The threads that are inside, as often as they are."""
_users = sys.getswitchinterval()
"""The interval that the first of them found."""


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


@contextmanager
def short_turns() -> Generator[None]:
    """Let threads wait for the GIL at most a fifth of a millisecond while inside; the last out restores what was.

    >>> with short_turns():
    ...     sys.getswitchinterval() <= 0.0003
    True
    """
    global _users
    thread = threading.get_ident()
    with _lock:
        if not _inside:
            _users = sys.getswitchinterval()
            sys.setswitchinterval(min(_users, _SHORT))
        _inside.append(thread)
    try:
        yield
    finally:
        with _lock:
            _leave([thread])


def _leave(threads: list[int]) -> None:
    for thread in threads:
        _inside.remove(thread)
    if threads and not _inside and abs(sys.getswitchinterval() - min(_users, _SHORT)) < _SHORT / 100:
        sys.setswitchinterval(_users)


in_child(lambda: _leave([thread for thread in _inside if thread != threading.get_ident()]))
