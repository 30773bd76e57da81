"""Scalars and dtypes at the border of compiled code: codes of dtypes, storage of elements, numbers as 64-bit words."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from weft.dtypes import CODES, offered_items, storage
from weft.runtime.abi.frame import DYNAMIC_RANK

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
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, np.generic):
        if value.dtype.name != dtype and not (isinstance(value, np.integer) and "int" in dtype):
            return None
        value = value.item()
    if dtype == "bool":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if "int" in dtype:
        bits = int(dtype.lstrip("uint"))
        low, high = (0, 1 << bits) if dtype.startswith("u") else (-(1 << (bits - 1)), 1 << (bits - 1))
        return value if isinstance(value, int) and low <= value < high else None
    if dtype == "handle":
        return value if isinstance(value, int) else None
    return float(value) if isinstance(value, (int, float)) else None


_FORMATS = {"float64": ("<d", "<q"), "float32": ("<f", "<i"), "float16": ("<e", "<h")}


def scalar_word(value: Any, dtype: str) -> int:
    """The 64-bit word that holds a scalar."""
    if dtype in _FORMATS:
        with np.errstate(over="ignore"):
            exact = np.dtype(dtype).type(value)
        return int(exact.view(f"int{exact.dtype.itemsize * 8}"))
    if dtype == "bfloat16":
        bits = int(np.float32(value).view("uint32"))
        return (bits >> 16) | 0x40 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else int(value)


def word_scalar(word: int, dtype: str) -> Any:
    """The Python scalar that a word holds."""
    if dtype in _FORMATS:
        float_format, _ = _FORMATS[dtype]
        size = struct.calcsize(float_format)
        return struct.unpack(float_format, struct.pack("<q", word)[:size])[0]
    if dtype == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", (word & 0xFFFF) << 16))[0]
    if dtype == "bool":
        return bool(word)
    return word & (1 << int(dtype[4:])) - 1 if dtype.startswith("uint") else word
