"""Scalars and dtypes at the border of compiled code: codes of dtypes, storage of elements, numbers as 64-bit words."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from weft.dtypes import CODES, is_float, offered_items, storage
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.support.numbers import number
from weft.support.small_floats import decode, encode

__all__ = [
    "DTYPE_CODES",
    "DTYPE_NAMES",
    "check_scalar",
    "is_size",
    "scalar_word",
    "shape_sizes",
    "storage",
    "word_scalar",
]

DTYPE_CODES = CODES
DTYPE_NAMES = {code: name for name, code in DTYPE_CODES.items()}


def is_size(value: Any) -> bool:
    """Whether a value is a nonnegative integer (and no bool)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**63


def shape_sizes(value: Any, rank: int) -> list[int] | None:
    """The sizes of a shape of a rank, or of any up to `DYNAMIC_RANK` where that is -1; None for what is no such shape.

    >>> shape_sizes((2, 3), 2), shape_sizes((1.5,), 1), shape_sizes(range(17), -1)
    ([2, 3], None, None)
    """
    items = offered_items(value)
    if items is None or not (len(items) == rank if rank >= 0 else len(items) <= DYNAMIC_RANK):
        return None
    if not all(map(is_size, items)):
        return None
    sizes = [int(size) for size in items]
    return sizes if all(map(is_size, sizes)) else None


def check_scalar(value: Any, dtype: str) -> Any:
    """A number as a value of the dtype, or None when its kind or range does not fit."""
    if dtype == "handle":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    return number(value, dtype)


_FORMATS = {"float64": ("<d", "<q"), "float32": ("<f", "<i"), "float16": ("<e", "<h")}


def scalar_word(value: Any, dtype: str) -> int:
    """The 64-bit word that holds a scalar."""
    if dtype in _FORMATS:
        with np.errstate(over="ignore"):
            exact = np.dtype(dtype).type(value)
        return int(exact.view(f"int{exact.dtype.itemsize * 8}"))
    if is_float(dtype):  # one that NumPy lacks
        return int(encode(value, dtype))
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else int(value)


def word_scalar(word: int, dtype: str) -> Any:
    """The Python scalar that a word holds."""
    if dtype in _FORMATS:
        float_format, _ = _FORMATS[dtype]
        size = struct.calcsize(float_format)
        return struct.unpack(float_format, struct.pack("<q", word)[:size])[0]
    if is_float(dtype):
        return float(decode(word & 0xFFFF, dtype))
    if dtype == "bool":
        return bool(word)
    return word & (1 << int(dtype[4:])) - 1 if dtype.startswith("uint") else word
