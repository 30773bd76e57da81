"""How large the stack of a thread is, as far as Python knows, and a larger one for the main thread for a while.

stack_bytes()       the bytes that the current thread was given
reachable_stack()   the bytes that it has with `grow_stack`
grow_stack()        raise the limit of the main thread's stack: on Linux that stack grows while it is used
shrink_stack()      the limit that there was
"""

from __future__ import annotations

import importlib
import sys
import threading

__all__ = ["USUAL_STACK", "grow_stack", "reachable_stack", "shrink_stack", "stack_bytes"]

USUAL_STACK = 8 << 20
_DEEP_STACK = 64 << 20
"""What the main thread may grow to for programs that nest deeply."""
_grown_from: int | None = None
"""The limit of the main thread's stack that comes back, while it is raised."""


def stack_bytes() -> int:
    """The stack that the current thread was given.

    >>> stack_bytes() > 0
    True
    """
    own = threading.stack_size()
    if own and threading.current_thread() is not threading.main_thread():
        return own
    if _grown_from is not None:
        return _grown_from
    soft = _limits()[0]
    return USUAL_STACK if soft < 0 else soft


def reachable_stack() -> int:
    """The stack of the current thread where `grow_stack` has been called in it.

    >>> reachable_stack() >= stack_bytes()
    True
    """
    if threading.current_thread() is not threading.main_thread():
        return stack_bytes()
    hard = _limits()[1] if sys.platform == "linux" else 0
    return max(stack_bytes(), _DEEP_STACK if hard < 0 else min(hard, _DEEP_STACK))


def grow_stack() -> None:
    """Raise the limit of the main thread's stack, if this is that thread; the stacks of others stay.

    >>> grow_stack()
    >>> shrink_stack()
    """
    global _grown_from
    soft, hard = _limits()
    if _grown_from is None and threading.current_thread() is threading.main_thread() and 0 <= soft < reachable_stack():
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_STACK, (reachable_stack(), hard))
        _grown_from = soft


def shrink_stack() -> None:
    """Set the limit that the main thread's stack had before `grow_stack`.

    >>> shrink_stack()
    """
    global _grown_from
    if _grown_from is not None:
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_STACK, (_grown_from, _limits()[1]))
        _grown_from = None


def _limits() -> tuple[int, int]:
    """The soft and the hard limit of the stack in bytes; -1: there is none."""
    try:
        import resource  # there is none on Windows
    except ImportError:
        return USUAL_STACK, USUAL_STACK
    return resource.getrlimit(resource.RLIMIT_STACK)
