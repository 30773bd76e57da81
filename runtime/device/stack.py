"""How far the stack of a thread reaches down: where calls out of compiled code stop nesting (W951), before it ends.

Compiled code that calls itself through registered functions takes much more of the stack than Python counts.
"""

from __future__ import annotations

from weft.support.stack import thread_stack

__all__ = ["lowest_place"]

_MARGIN = 160 << 10


def lowest_place() -> int:
    """The lowest address that calls of this thread may reach; 0 where the system does not say.

    >>> lowest_place() >= 0
    True
    """
    start, size = thread_stack()
    return start + min(_MARGIN, size // 2)  # the end of the stack, and a margin above
