"""How large tensors may be: sizes are 64-bit numbers, and no memory has `MAX_BYTES`.

    size_in_64_bits   an exact size as one that programs can have, OutOfMemoryError W950 for a larger one
    tensor_bytes      the bytes of a tensor
    check_extents     OutOfMemoryError W950 for a shape that no tensor can have

A shape in which one extent is 0 needs no memory, and yet the product of its other extents must fit: strides and loops
are made of it (NumPy refuses the same shapes). So of every tensor that exists it is known that the product of its
extents that are not 0, times the bytes of an element, is at most `MAX_BYTES`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft import dtypes
from weft.errors import OutOfMemoryError, Span

__all__ = ["MAX_BYTES", "check_extents", "size_in_64_bits", "tensor_bytes"]

MAX_BYTES = 1 << 62
_INT64 = 1 << 63


def size_in_64_bits(value: int, text: object, span: Span | None = None) -> int:
    """The value of a size that is written as `text`; OutOfMemoryError W950 when 64 bits do not hold it.

    >>> size_in_64_bits(6, "2 * n")
    6
    """
    if -_INT64 <= value < _INT64:
        return value
    raise OutOfMemoryError(f"no memory for a size of {text}: it does not fit 64 bits", code="W950", span=span)


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """The bytes of a tensor.

    >>> tensor_bytes((3, 4), "float32")
    48
    """
    return math.prod(shape) * dtypes.item_bytes(dtype)


def check_extents(shape: Sequence[object], dtype: str, name: str, span: Span | None = None) -> None:
    """Refuse a shape that no tensor can have, as far as its extents are known: OutOfMemoryError W950.

    >>> check_extents(("n", 3), "float32", "x")
    """
    known = [extent or 1 for extent in shape if isinstance(extent, int)]
    bytes_ = math.prod(known) * dtypes.item_bytes(dtype)
    if bytes_ > MAX_BYTES:
        text = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        raise OutOfMemoryError(
            f"no memory for {name}: a tensor of shape {text} spans {bytes_} bytes", code="W950", span=span
        )
