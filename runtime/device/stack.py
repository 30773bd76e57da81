"""How far the stack of a thread reaches down: where calls out of compiled code stop nesting (W951), before it ends.

Compiled code that calls itself through registered functions takes much more of the stack than Python counts.
"""

from __future__ import annotations

import ctypes
import sys
import threading

__all__ = ["lowest_place"]

_MARGIN = 160 << 10
_ATTRIBUTES = 128  # bytes, more than a pthread_attr_t takes anywhere
_known = threading.local()


def lowest_place() -> int:
    """The lowest address that calls of this thread may reach; 0 where the system does not say.

    >>> lowest_place() >= 0
    True
    """
    found = getattr(_known, "place", None)
    if found is None:
        found = _known.place = _asked() if sys.platform == "linux" else 0
    return found


def _asked() -> int:
    """The end of the thread's stack, and a margin (at most half of it) above."""
    try:
        library = ctypes.CDLL(None)
        own, get, stack = library.pthread_self, library.pthread_getattr_np, library.pthread_attr_getstack
    except (OSError, AttributeError):  # another C library
        return 0
    own.restype = ctypes.c_void_p
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    if get(ctypes.c_void_p(own()), attributes) != 0:
        return 0
    stack(attributes, ctypes.byref(start), ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return (start.value or 0) + min(_MARGIN, size.value // 2)
