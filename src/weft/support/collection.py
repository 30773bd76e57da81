"""Collections of garbage while programs are read, printed and compiled, which make many objects that live on.

Python looks at young objects after every 700 new ones, and at all there are when those have grown by a quarter: most of
that is in vain here, and what a process has loaded besides is looked at as well. Collections do not stop altogether,
so that what is garbage in a long compilation stays bounded.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from weft.support.forks import free_in_child, in_child

__all__ = ["rare_collections"]

_YOUNG = 200_000
"""New objects between two looks at them: some 20 MB."""
_lock = free_in_child(threading.Lock())
_inside: list[int] = []
"""The threads that are inside, as often as they are."""
_users = gc.get_threshold()
"""The thresholds that the first of them found."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect garbage rarely while inside; the last one out, of any thread, restores what was.

    >>> with rare_collections():
    ...     gc.get_threshold()[0] >= 200000
    True
    """
    global _users
    thread = threading.get_ident()
    with _lock:
        if not _inside:
            _users = gc.get_threshold()
        _inside.append(thread)
        if 0 < _users[0] < _YOUNG:  # at 0 none are wanted
            gc.set_threshold(_YOUNG, *_users[1:])
    try:
        yield
    finally:
        _leave([thread])


def _leave(threads: Sequence[int]) -> None:
    with _lock:
        for thread in threads:
            _inside.remove(thread)
        if threads and not _inside and gc.get_threshold()[0] == _YOUNG:
            gc.set_threshold(*_users)


in_child(lambda: _leave([thread for thread in _inside if thread != threading.get_ident()]))
