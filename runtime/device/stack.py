"""How far the stack of a thread reaches down: where calls out of compiled code stop nesting (W951), before it ends.

Compiled code that calls itself through registered functions takes much more of the stack than Python counts.
"""

from __future__ import annotations

import threading

from weft.support.stack import thread_stack

__all__ = ["lowest_place"]

_MARGIN = 160 << 10
_known = threading.local()


def lowest_place() -> int:
    """The lowest address that calls of this thread may reach; 0 where the system does not say.

    >>> lowest_place() >= 0
    True
    """
    found = getattr(_known, "place", None)
    if found is None:
        start, size = thread_stack()
        found = _known.place = start + min(_MARGIN, size // 2)  # the end of the stack, and a margin above
    return found
