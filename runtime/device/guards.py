"""Guarded memory, for tests: programs whose buffers stand between canaries and pages that nobody may touch.

    with guarded():                         what is compiled and loaded inside, and WEFT_GUARD=1 for a whole process
        exe = weft.compile(module)
    exe(x)                                  BoundsError W914 where a call wrote beside a buffer

    region ::= closed page, canary, buffer, canary up to the end of a page, closed page

The memory that programs allocate, and arrays that callers pass (as copies, copied back after the call), end at the end
of a page as far as their alignment allows. A write beside a buffer that stays in the page is found after the call; an
access beyond it ends the process by a signal, so what may do that runs in a child process. New memory begins with a
pattern, so that what is read before it is written is not zero by luck. Memory is not used again between calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.support.array_memory import ALIGNMENT as _ALIGNMENT
from weft.support.forks import free_in_child
from weft.support.records import dataclass

__all__ = ["Guards", "guarded", "guards", "is_guarded"]

_PAGE = mmap.PAGESIZE
_CANARY, _NEW = 0xA5, 0xCB
_MOST_NEW = 64 << 20  # bytes at the front of new memory that hold the pattern: what is larger is there at once
_CLOSED, _OPEN = 0, 3
_PRIVATE, _ANONYMOUS = mmap.MAP_PRIVATE if hasattr(mmap, "MAP_PRIVATE") else 2, getattr(mmap, "MAP_ANONYMOUS", 0x20)
_depth = 0


def is_guarded() -> bool:
    """Whether what is compiled and loaded now is guarded."""
    return _depth > 0 or os.environ.get("WEFT_GUARD") == "1"


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Guard what is compiled and loaded inside, in all threads."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


@dataclass(frozen=True)
class _Region:
    """A mapping: where it begins, its bytes, the open part, the buffer in it."""

    base: int
    total: int
    first: int
    last: int
    start: int
    size: int

    def broken(self) -> str:
        """Which side was written, or empty."""
        end = self.start + self.size
        for place, stop, side in ((self.first, self.start, "before"), (end, self.last, "behind")):
            if ctypes.string_at(place, stop - place) != bytes([_CANARY]) * (stop - place):
                return side
        return ""


class Guards:
    """The guarded buffers of the process."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._map = libc.mmap
        self._map.restype = ctypes.c_void_p
        self._map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self._unmap, self._protect = libc.munmap, libc.mprotect
        self._unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._lock = free_in_child(threading.RLock())
        self._live: dict[int, _Region] = {}
        self._found: list[str] = []
        allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
        self._callbacks = allocate(self._allocated), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.free)
        addresses = [ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self._callbacks]
        self.symbols: dict[str, int] = {"aligned_alloc": addresses[0], "free": addresses[1]}
        """What programs link in place of the functions of the C library."""

    def _allocated(self, _alignment: int, size: int) -> int | None:
        return self.allocate(size)

    def allocate(self, size: int) -> int | None:
        """The address of a new buffer; None where there is no memory."""
        inside = -(-(size + _ALIGNMENT) // _PAGE) * _PAGE
        total = inside + 2 * _PAGE
        base = self._map(None, total, _CLOSED, _PRIVATE | _ANONYMOUS, -1, 0)
        if base is None or base == ctypes.c_void_p(-1).value:
            return None
        first, last = base + _PAGE, base + _PAGE + inside
        self._protect(first, inside, _OPEN)
        start = (last - size) // _ALIGNMENT * _ALIGNMENT
        ctypes.memset(first, _CANARY, start - first)
        ctypes.memset(start, _NEW, min(size, _MOST_NEW))
        ctypes.memset(start + size, _CANARY, last - start - size)
        with self._lock:
            self._live[start] = _Region(base, total, first, last, start, size)
        return start

    def free(self, address: int | None) -> None:
        """Give a buffer back; what was written beside it is told by the next `check`."""
        with self._lock:
            region = self._live.pop(address or 0, None)
            if region is not None:
                self._look(region)
                self._unmap(region.base, region.total)

    def check(self, name: str) -> None:
        """BoundsError W914 where something was written beside a buffer; `name` is the function that was called."""
        with self._lock:
            for region in self._live.values():
                self._look(region)
            found, self._found = self._found, []
        if found:
            raise BoundsError(f"{name} wrote {found[0]}", code="W914")

    def _look(self, region: _Region) -> None:
        side = region.broken()
        if side:
            self._found.append(f"{side} a buffer of {region.size} bytes")
            ctypes.memset(region.first, _CANARY, region.start - region.first)
            end = region.start + region.size
            ctypes.memset(end, _CANARY, region.last - end)

    @contextlib.contextmanager
    def arguments(self, values: Sequence[object]) -> Iterator[list[object]]:
        """Arguments of a call whose plain arrays stand in guarded memory, and are copied back afterwards."""
        taken: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        try:
            yield [self._copy(value, taken) for value in values]
            for given, copy in taken.values():
                if given.flags.writeable:
                    given[...] = copy
        finally:
            for _, copy in taken.values():
                self.free(copy.ctypes.data)

    def _copy(self, value: object, taken: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]) -> object:
        if type(value) is not np.ndarray or not value.flags.carray or not value.size or value.base is not None:
            return value
        if value.dtype.hasobject:  # which the call refuses
            return value
        key = value.ctypes.data, value.nbytes
        if key not in taken:
            place = self.allocate(value.nbytes)
            if place is None:
                return value
            memory: Any = (ctypes.c_uint8 * value.nbytes).from_address(place)
            copy = np.frombuffer(memory, "uint8").view(value.dtype).reshape(value.shape)
            copy[...] = value
            taken[key] = value, copy
        return taken[key][1]


@functools.cache
def guards() -> Guards:
    """The guarded buffers of this process."""
    return Guards()
