"""A child of a fork has one thread, and the locks of its parent as they were: what makes it usable all the same.

no_fork()               while inside, of any thread, a fork waits: for libraries with locks of their own, such as LLVM
free_in_child(lock)     the lock, which a child gets free
in_child(action)        what a child does first
cached_property         an attribute that is computed once, without the lock that Python 3.11 holds meanwhile

A fork waits, too, for what other threads import of weft and of what it loads late: a module whose import ended with its
thread can be imported never more. Processes that are started otherwise (`subprocess`) wait for nothing.
"""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property", "free_in_child", "in_child", "no_fork"]

T = TypeVar("T")
_LATE = frozenset({"weft", "llvmlite", "lark", "sympy"})
"""The packages whose modules are imported while programs are read and compiled."""
_HOOKED = (logging, concurrent.futures.thread)
"""They take locks before a fork that imports need: loaded first, so that they take them when all imports are over."""
_gate = threading.Condition()
_inside: dict[int, int] = {}
"""How often each thread is inside of `no_fork`."""
_holders: list[int] = []
"""The threads that fork, as often as they have taken the gate."""


@contextmanager
def no_fork() -> Generator[None]:
    """Let forks of other threads wait while inside.

    >>> with no_fork():
    ...     pass
    """
    thread = threading.get_ident()
    with _gate:
        while _holders and thread not in _inside:
            _gate.wait()
        _inside[thread] = _inside.get(thread, 0) + 1
    try:
        yield
    finally:
        with _gate:
            _inside[thread] -= 1
            if not _inside[thread]:
                del _inside[thread]
                _gate.notify_all()


def free_in_child(lock: T) -> T:
    """A lock that a child gets free, whoever held it.

    >>> lock = free_in_child(threading.Lock())
    """
    in_child(lambda: getattr(lock, "_at_fork_reinit")())  # noqa: B009 (no attribute that type checkers know)
    return lock


def in_child(action: Callable[[], object]) -> None:
    """Let children of forks do something first."""
    _register(after_in_child=action)


def _register(**hooks: Callable[[], object]) -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def _settle() -> None:
    """Wait until no other thread imports or is inside, and keep the gate."""
    own = threading.get_ident()
    while True:
        for name in _imported(own):
            with contextlib.suppress(Exception):  # whoever imports it is told
                importlib.import_module(name)
        _hold()
        if not _imported(own):
            return
        _let_go()


def _hold() -> None:
    """Wait until no other thread is inside, and keep the gate."""
    own = threading.get_ident()
    _gate.acquire()
    _holders.append(own)
    while any(thread != own for thread in _inside):
        _gate.wait()


def _imported(own: int) -> list[str]:
    """The modules that other threads are importing: those whose locks they hold."""
    locks: dict[str, Callable[[], Any]] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    held = [(name, reference()) for name, reference in list(locks.items()) if name.partition(".")[0] in _LATE]
    return [name for name, lock in held if getattr(lock, "owner", None) not in (None, own)]


def _let_go() -> None:
    """Open the gate again."""
    own = threading.get_ident()
    while own in _holders:
        _holders.remove(own)
        _gate.notify_all()
        _gate.release()


def _begin_anew() -> None:
    """What a child does: it has one thread, and a gate of its own."""
    global _gate
    own = threading.get_ident()
    times = _inside.get(own)
    _inside.clear()
    if times:
        _inside[own] = times
    _holders.clear()
    _gate = threading.Condition()


_register(before=_settle, after_in_parent=_let_go, after_in_child=_begin_anew)


class cached_property(Generic[T]):
    """An attribute that a method computes when it is first asked for.

    >>> class Square:
    ...     @cached_property
    ...     def area(self) -> int:
    ...         return 4
    >>> Square().area
    4
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[T] | T:
        if instance is None:
            return self
        value = self.function(instance)
        instance.__dict__[self.name] = value
        return value
