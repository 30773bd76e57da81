"""Memory of arrays at addresses that suit whole vectors and cache lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["ALIGNMENT", "aligned_bytes", "aligned_zeros"]

ALIGNMENT = 64
"""Bytes: a line of the cache, and the widest vectors."""


def aligned_bytes(size: int, make: Callable[..., np.ndarray] = np.empty) -> np.ndarray:
    """An array of so many bytes whose address is a multiple of `ALIGNMENT`; MemoryError, ValueError for too many.

    >>> aligned_bytes(100).ctypes.data % ALIGNMENT
    0
    """
    block = make(size + ALIGNMENT, np.uint8)
    start = -block.__array_interface__["data"][0] % ALIGNMENT
    return block[start : start + size]


def aligned_zeros(shape: Sequence[int], dtype: np.dtype[Any] | type[np.generic]) -> np.ndarray:
    """Zeros whose address is a multiple of `ALIGNMENT`.

    >>> aligned_zeros((2, 3), np.dtype("float32")).shape
    (2, 3)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return aligned_bytes(size, np.zeros).view(dtype).reshape(tuple(shape))
