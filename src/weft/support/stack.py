"""How large the stack of a thread is, and a larger one for the main thread, or for work that nests deeply, for a while.

The frames of Python functions lie beside it: CPython keeps those of a thread in pieces of 16 KiB, and hands a piece
back to the system when its last frame is left. Where a loop calls functions across the end of a piece, each of its
iterations asks the system for one: one depth of calls in a hundred makes a compilation up to a fifth slower. A frame
that needs more than a piece gets a larger one, of a power of two bytes, and what it leaves serves the calls inside.

stack_bytes()       the bytes that the current thread was given, as far as Python knows
thread_stack()      where its stack is, as the system tells it
own_stack()         its bytes, as the system tells, else as far as Python knows
with_stack(work)    what `work` gives, in a thread of its own where this one has little stack
stacks_of(size)     the stack of threads that start inside
reachable_stack()   the bytes that it has with `grow_stack`
grow_stack()        raise the limit of the main thread's stack: on Linux that stack grows while it is used
shrink_stack()      the limit that there was
frames_in_one_piece a decorator: frames of the calls inside share one piece of memory
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from weft.support.forks import no_fork

__all__ = [
    "USUAL_STACK",
    "frames_in_one_piece",
    "grow_stack",
    "own_stack",
    "reachable_stack",
    "shrink_stack",
    "stack_bytes",
    "stacks_of",
    "thread_stack",
    "with_stack",
]

T = TypeVar("T")
P = ParamSpec("P")

USUAL_STACK = 8 << 20
_DEEP_STACK = 64 << 20
"""What the main thread may grow to for programs that nest deeply."""
_ENOUGH = 2 << 20
"""The stack that Python's parser takes for the deepest text that it reads, and room to spare."""
_SLOTS = 1 << 16
"""Pointers that a large frame asks for: a little more than half of its piece, which leaves 500 KB to those inside."""
_ATTRIBUTES = 128  # bytes, more than a pthread_attr_t takes anywhere
_known = threading.local()
_starting = threading.Lock()  # held where no fork comes
_grown_from: int | None = None
"""The limit of the main thread's stack that comes back, while it is raised."""


def stack_bytes() -> int:
    """The stack that the current thread was given.

    >>> stack_bytes() > 0
    True
    """
    if threading.current_thread() is not threading.main_thread():
        own = _own_setting()
        if own:
            return own
    if _grown_from is not None:
        return _grown_from
    soft = _limits()[0]
    return USUAL_STACK if soft < 0 else soft


def _own_setting() -> int:
    """What threads get that the user set a stack for, else 0: Python tells it to those alone that set another."""
    with no_fork(), _starting:
        own = threading.stack_size()
        if own:
            threading.stack_size(own)
    return own


def thread_stack() -> tuple[int, int]:
    """The lowest address of this thread's stack and its bytes, asked once; zeros where the system does not say.

    >>> start, size = thread_stack()
    >>> start >= 0 and size >= 0
    True
    """
    found: tuple[int, int] | None = getattr(_known, "stack", None)
    if found is None:
        found = _known.stack = _asked() if sys.platform == "linux" else (0, 0)
    return found


def _asked() -> tuple[int, int]:
    try:
        library = ctypes.CDLL(None)
        own, get, stack = library.pthread_self, library.pthread_getattr_np, library.pthread_attr_getstack
    except (OSError, AttributeError):  # another C library
        return 0, 0
    own.restype = ctypes.c_void_p
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    start, size = ctypes.c_void_p(), ctypes.c_size_t()
    if get(ctypes.c_void_p(own()), attributes) != 0:
        return 0, 0
    stack(attributes, ctypes.byref(start), ctypes.byref(size))
    library.pthread_attr_destroy(attributes)
    return start.value or 0, size.value


def own_stack() -> int:
    """The bytes of this thread's stack: what the system tells, which is kept, else what Python knows.

    >>> own_stack() > 0
    True
    """
    return thread_stack()[1] or stack_bytes()


def with_stack(work: Callable[[], T]) -> T:
    """What `work` gives, or raises: in a thread with the usual stack where this one has too little for deep calls of C.

    >>> with_stack(lambda: 3)
    3
    """
    if own_stack() >= _ENOUGH:
        return work()
    done: Future[T] = Future()

    def finish() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=finish, name="weft-deep")
    try:
        with stacks_of(USUAL_STACK):
            thread.start()
    except RuntimeError:  # no thread can be had
        return work()
    thread.join()
    return done.result()


@contextmanager
def stacks_of(size: int) -> Generator[None]:
    """Give threads that start inside a stack of so many bytes: by one thread at a time, which sets what was before.

    >>> with stacks_of(1 << 20):
    ...     threading.stack_size() == 1 << 20
    True
    """
    with no_fork(), _starting:
        before = threading.stack_size(size)
        try:
            yield
        finally:
            threading.stack_size(before)


def reachable_stack() -> int:
    """The stack of the current thread where `grow_stack` has been called in it.

    >>> reachable_stack() >= stack_bytes()
    True
    """
    if threading.current_thread() is not threading.main_thread():
        return max(stack_bytes(), USUAL_STACK)
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


def frames_in_one_piece(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator for functions whose calls inside, 1000 deep or more, shall share one piece of memory.

    >>> @frames_in_one_piece
    ... def double(x):
    ...     return x * 2
    >>> double(3)
    6
    """

    def call(*args: P.args, **options: P.kwargs) -> T:
        return function(*args, **options)

    call.__code__ = call.__code__.replace(co_stacksize=_SLOTS)
    return functools.wraps(function)(call)
