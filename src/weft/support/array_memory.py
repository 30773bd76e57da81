"""The memory of arrays: its bytes, and new memory at addresses that suit whole vectors and cache lines."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["ALIGNMENT", "aligned_bytes", "aligned_copy", "aligned_zeros", "content_bytes", "memory_bytes"]

ALIGNMENT = 64
"""Bytes: a line of the cache, and the widest vectors."""
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


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in row-major order that nobody can write, at an address that is a multiple of `ALIGNMENT`.

    >>> copy = aligned_copy(np.array([[1, 2], [3, 4]]).T)
    >>> copy.tolist(), copy.flags.writeable, copy.ctypes.data % ALIGNMENT
    ([[1, 3], [2, 4]], False, 0)
    """
    block = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)[...] = array
    block.flags.writeable = False
    return block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


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
