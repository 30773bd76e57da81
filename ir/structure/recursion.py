"""Room on the Python stack for programs that nest deeper than Python's default limit: the one guard of the package.

The limit belongs to the whole process, and what recurses without end in a program of the user is stopped by nothing
else. So it stays as it is for programs of usual nesting, is raised by what the nesting of a deep one needs, to no more
than the thread that asks has stack for, and goes back when the last one leaves, whichever thread that is.

    deeply(root, work)     work(), and once more with room for the nesting of `root` where that was too little
    room_for(root)         room for it from the start: for work that cannot be done twice
    room_of(levels)        the same, of a nesting that is known
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from weft.ir.node import Node, fields_of
from weft.ir.structure.visit import children_of
from weft.ir.tensor import PrimFunc
from weft.support.forks import free_in_child, in_child
from weft.support.guards import is_listing, is_mapping
from weft.support.stack import grow_stack, reachable_stack, shrink_stack

__all__ = ["USUAL_NESTING", "deep_recursion", "deeply", "is_deep", "nesting", "room_for", "room_of", "used_frames"]

T = TypeVar("T")
_LIMIT = 100_000
_CALL_BYTES = 450
"""The stack that a call of Python takes where C calls it (a generator, `map`): calls from Python take less than 100."""
USUAL_NESTING = 50
_SHARED = 1 << 12
"""Nodes of one level among which some may be the same."""
_FRAMES = 16
"""The most Python calls that one level of nesting takes."""
_lock = free_in_child(threading.Lock())
_asked: list[tuple[int, int]] = []
"""Threads with the frames that they have asked for."""
_own = threading.local()
_before = 0


def nesting(root: Any) -> int:
    """How many nodes are inside of one another, at most: of a node, or of the functions of a module.

    >>> from weft.ir.types import TupleType
    >>> nesting(TupleType((TupleType((TupleType(()),)),)))
    3
    """
    if isinstance(root, PrimFunc):
        return _height(root)
    heights: dict[int, int] = {}
    opened: set[int] = set()
    pending = [(root, False)]
    while pending:  # each once, however many others hold it
        value, inside_is_known = pending.pop()
        if inside_is_known:
            below = max((heights.get(id(part), 0) for part in _parts(value)), default=0)
            heights[id(value)] = below + isinstance(value, Node)
        elif id(value) not in opened:
            opened.add(id(value))
            pending.append((value, True))
            pending.extend((part, False) for part in _parts(value))
    return heights[id(root)]


def _height(function: PrimFunc) -> int:
    """The nesting of a kernel, whose types and attributes nest little: there are many kernels."""
    height = 0
    level: list[Node] = [function]
    while level:
        height += 1
        level = children_of(level)
        if len(level) > _SHARED:  # what others hold several times is looked at once
            level = list({id(part): part for part in level}.values())
    return height


def _parts(value: Any) -> list[Any]:
    """What may hold nodes directly inside of a node or a collection."""
    if isinstance(value, Node):
        inside: Any = [getattr(value, item.name, None) for item in fields_of(type(value))]
    elif is_mapping(value):
        inside = value.values()
    else:
        inside = value if is_listing(value) else ()
    return [part for part in inside if _holds_nodes(part)]


_HOLDS: dict[type, bool] = {}
"""By class whether values of it may hold nodes: those that do not are most."""


def _holds_nodes(value: Any) -> bool:
    """Whether a value is a node or may hold some."""
    cls = value.__class__
    found = _HOLDS.get(cls)
    if found is None:
        found = _HOLDS[cls] = issubclass(cls, (Node, tuple, list, Mapping))
    return found


def deeply(root: Any, work: Callable[[], T]) -> T:
    """What `work` gives, which may be done twice; RecursionError where `root` is not what nests too deeply for it.

    None stands for what nests nobody knows how deeply.

    >>> deeply(None, lambda: 3)
    3
    """
    try:
        return work()
    except RecursionError:
        if root is not None and not is_deep(root):
            raise
    with deep_recursion() if root is None else room_for(root):
        return work()


def is_deep(root: Any) -> bool:
    """Whether a node, or the functions of a module, may nest deeper than the usual limit has room for.

    >>> from weft.ir.types import TupleType
    >>> is_deep(TupleType(()))
    False
    """
    return nesting(root) > USUAL_NESTING


@contextmanager
def room_for(root: Any) -> Generator[None]:
    """Room for the nesting of a node while inside, where the usual limit may be too little for it."""
    with room_of(nesting(root)):
        yield


@contextmanager
def room_of(levels: int) -> Generator[None]:
    """Room for so many levels while inside, where the usual limit may be too little for them."""
    if levels <= USUAL_NESTING or _granted() >= _most():
        yield
        return
    with deep_recursion(used_frames() + 600 + levels * _FRAMES):
        yield


def used_frames() -> int:
    """How many Python calls are open."""
    used, frame = 0, inspect.currentframe()
    while frame is not None:
        used += 1
        frame = frame.f_back
    return used


@contextmanager
def deep_recursion(frames: int = _LIMIT) -> Generator[None]:
    """Raise the recursion limit while inside, to at most so many frames; the last one out restores it."""
    global _before
    wanted, granted = min(frames, _most()), _granted()
    asked = threading.get_ident(), wanted
    with _lock:
        if not _asked:
            _before = sys.getrecursionlimit()
        _asked.append(asked)
        grow_stack()
        sys.setrecursionlimit(max(_before, *(most for _, most in _asked)))
    _own.granted = max(wanted, granted)
    try:
        yield
    finally:
        _own.granted = granted
        _leave([asked])


def _leave(asked: Sequence[tuple[int, int]]) -> None:
    with _lock:
        for item in asked:
            _asked.remove(item)
        if not _asked:
            shrink_stack()
        _set_limit(max([_before, *(most for _, most in _asked)]))


def _forked() -> None:
    """Leave for the threads that a child lacks."""
    if gone := [item for item in _asked if item[0] != threading.get_ident()]:
        _leave(gone)


in_child(_forked)


def _granted() -> int:
    """The frames that this thread has asked for, where it is now: counting them again in each call takes long."""
    return getattr(_own, "granted", 0)


def _most() -> int:
    """The most frames that this thread has stack for."""
    return min(_LIMIT, reachable_stack() // _CALL_BYTES)


def _set_limit(limit: int) -> None:
    """Set the limit, or leave a higher one where this thread is deeper than that: the next one out sets it."""
    try:
        sys.setrecursionlimit(limit)
    except RecursionError:
        pass
