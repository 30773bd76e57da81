"""Collections of garbage while programs are read, printed and compiled, which make many objects that live on.

Python looks at young objects after every 700 new ones, and at all there are when those have grown by a quarter: most of
that is in vain here, and what a process has loaded besides is looked at as well. Collections do not stop altogether,
so that what is garbage in a long compilation stays bounded.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["rare_collections"]

_YOUNG = 200_000
"""New objects between two looks at them: some 20 MB."""
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds of each that is inside, of which the first are the user's."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect garbage rarely while inside; the last one out, of any thread, restores what was.

    >>> with rare_collections():
    ...     gc.get_threshold()[0] >= 200000
    True
    """
    with _lock:
        _before.append(gc.get_threshold() if not _before else _before[0])
        if 0 < _before[0][0] < _YOUNG:  # at 0 none are wanted
            gc.set_threshold(_YOUNG, *_before[0][1:])
    try:
        yield
    finally:
        with _lock:
            if gc.get_threshold()[0] == _YOUNG and len(_before) == 1:
                gc.set_threshold(*_before[0])
            _before.pop()
