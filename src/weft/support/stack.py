"""How large the stack of a thread is, as far as Python knows.

stack_bytes()       the bytes that the current thread was given
"""

from __future__ import annotations

import threading

__all__ = ["USUAL_STACK", "stack_bytes"]

USUAL_STACK = 8 << 20


def stack_bytes() -> int:
    """The stack that the current thread was given.

    >>> stack_bytes() > 0
    True
    """
    own = threading.stack_size()
    if own and threading.current_thread() is not threading.main_thread():
        return own
    try:
        import resource  # there is none on Windows
    except ImportError:
        return USUAL_STACK
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return USUAL_STACK if soft < 0 else soft
