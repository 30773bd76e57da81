"""The memory of arrays: its bytes, and new memory at addresses that suit whole vectors and cache lines."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "ALIGNMENT",
    "aligned_bytes",
    "aligned_zeros",
    "content_bytes",
    "forget_pages",
    "frozen_copy",
    "memory_bytes",
]

ALIGNMENT = 64
"""Bytes: a line of the cache, and the widest vectors."""
_LARGE = 1 << 12
"""Bytes of an array whose place is worth the time that it takes."""
_LARGE_PAGE = 2 << 20
"""Bytes of a page that one entry of a table of addresses serves, where the system gives such pages."""


def aligned_bytes(size: int, make: Callable[..., np.ndarray] = np.empty) -> np.ndarray:
    """An array of so many bytes whose address is a multiple of `ALIGNMENT`; MemoryError, ValueError for too many.

    >>> aligned_bytes(100).ctypes.data % ALIGNMENT
    0
    """
    block = make(size + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + size]


def frozen_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in row-major order that nobody can write; a large one at an address that is a multiple of `ALIGNMENT`.

    Compiled code takes such an array where it is.

    >>> copy = frozen_copy(np.ones((64, 64)))
    >>> copy.flags.writeable, copy.ctypes.data % ALIGNMENT
    (False, 0)
    """
    if array.nbytes < _LARGE:
        made = np.array(array, order="C", copy=True)
    else:
        made = aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
        made[...] = array
        assert made.base is not None
        made.base.flags.writeable = False
    made.flags.writeable = False
    return made


def aligned_zeros(shape: Sequence[int], dtype: np.dtype[Any] | type[np.generic]) -> np.ndarray:
    """Zeros whose address is a multiple of `ALIGNMENT`; what fills large pages has some, where the system gives them.

    Memory that is read from end to end comes faster from large pages: reading does not wait for addresses.

    >>> aligned_zeros((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    large = size >= _LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE")
    block = _in_large_pages(size) if large else aligned_bytes(size, np.zeros)
    return block.view(dtype).reshape(tuple(shape))


def _in_large_pages(size: int) -> np.ndarray:
    """Zeros from the start of a large page on; the last part of one has small pages, so that none is there in vain."""
    block = mmap.mmap(-1, size + _LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(block, np.uint8)
    start = -whole.__array_interface__["data"][0] % _LARGE_PAGE
    with contextlib.suppress(OSError):  # a system without large pages
        block.madvise(mmap.MADV_HUGEPAGE, start, size // _LARGE_PAGE * _LARGE_PAGE)
    return whole[start : start + size]


def content_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The contents of an array in row-major order, to be read: a copy where the array is strided.

    >>> content_bytes(np.array([[1, 2], [3, 4]], "uint8").T).tolist()
    [1, 3, 2, 4]
    """
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def forget_pages(arrays: Iterable[np.ndarray[Any, Any]]) -> None:
    """Let the system take the pages of read-only mapped files that arrays are views of; reading brings them back."""
    files: dict[int, mmap.mmap] = {}
    for array in arrays:
        memory: Any = array
        while isinstance(memory, (np.ndarray, memoryview)):
            memory = memory.base if isinstance(memory, np.ndarray) else memory.obj
        if isinstance(memory, mmap.mmap):
            files[id(memory)] = memory
    for file in files.values():
        # Memory that can be written may hold what is nowhere else.
        if hasattr(mmap, "MADV_DONTNEED") and memoryview(file).readonly:
            with contextlib.suppress(OSError, ValueError):
                file.madvise(mmap.MADV_DONTNEED)


def memory_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The memory of a contiguous array, to be written too; ValueError for a strided one, whose bytes were a copy.

    >>> array = np.zeros(2, "uint16")
    >>> memory_bytes(array)[:] = 1
    >>> array.tolist()
    [257, 257]
    """
    if not array.flags.c_contiguous:
        raise ValueError("a strided array has no bytes in a row")
    return array.reshape(-1).view(np.uint8)
