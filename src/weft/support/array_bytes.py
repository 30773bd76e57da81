"""The bytes of arrays: of their contents, and of their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["content_bytes", "memory_bytes"]


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
