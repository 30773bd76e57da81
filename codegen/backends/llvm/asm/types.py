"""Dtypes and constants in LLVM's spelling.

value type   of an SSA value: i1 for bool, half, float, double, iN; bfloat16 and smaller floats are their bits (iN)
memory type  of one element in a buffer: as `weft.dtypes.storage` lays it out (bool and 4-bit types take a byte)
"""

from __future__ import annotations

import functools
import struct

import numpy as np

from weft import dtypes
from weft.support.small_floats import encode

__all__ = [
    "bytes_of",
    "constant",
    "element_bytes",
    "int_type",
    "is_bits_float",
    "memory_type",
    "splat",
    "splat_of",
    "value_type",
]

_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


@functools.cache
def is_bits_float(dtype: str) -> bool:
    """Whether a floating type is held as its bits because LLVM's code for it needs library support (bfloat16, 8-bit
    floats).
    """
    return dtypes.is_float(dtype) and _scalar(dtypes.element(dtype)).startswith("i")


@functools.cache
def _scalar(dtype: str) -> str:
    if dtype == "handle":
        return "ptr"
    if dtype == "void":
        return "void"
    return dtypes.SCALARS[dtype].llvm


@functools.cache
def value_type(dtype: str) -> str:
    """The LLVM type of a value."""
    lanes = dtypes.lanes(dtype)
    scalar = _scalar(dtypes.element(dtype))
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def int_type(bits: int, lanes: int) -> str:
    """The LLVM type of integers of any width.

    >>> int_type(6, 1), int_type(6, 4)
    ('i6', '<4 x i6>')
    """
    return f"i{bits}" if lanes == 1 else f"<{lanes} x i{bits}>"


@functools.cache
def memory_type(dtype: str) -> str:
    """The LLVM type of a value in memory."""
    lanes, element = dtypes.lanes(dtype), dtypes.element(dtype)
    scalar = _scalar(element)
    if scalar.startswith("i"):
        scalar = f"i{dtypes.storage(element).itemsize * 8}"
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


@functools.cache
def bytes_of(ty: str) -> int | None:
    """The bytes that a value of an LLVM type takes in memory; None where that is not simple.

    >>> bytes_of("<16 x float>"), bytes_of("i64"), bytes_of("<8 x i1>")
    (64, 8, None)
    """
    if not ty.startswith("<"):
        return _BYTES.get(ty)
    count, _, element = ty[1:-1].partition(" x ")
    size = _BYTES.get(element)
    return None if size is None else int(count) * size


@functools.cache
def element_bytes(dtype: str) -> int:
    """Bytes of one scalar element in memory."""
    element = dtypes.element(dtype)
    return 8 if element == "handle" else dtypes.storage(element).itemsize


def splat(text: str, dtype: str) -> str:
    """A scalar constant repeated for every lane of `dtype`."""
    lanes = dtypes.lanes(dtype)
    if lanes == 1:
        return text
    return f"splat ({_scalar(dtypes.element(dtype))} {text})"


def splat_of(text: str, ty: str) -> str:
    """A scalar constant repeated for every lane of an LLVM type."""
    return f"splat ({ty[1:-1].split(' x ')[1]} {text})" if ty.startswith("<") else text


def constant(value: float | int, dtype: str) -> str:
    """A constant of a dtype; the same in every lane of a vector."""
    element = dtypes.element(dtype)
    if is_bits_float(element):
        text = str(_small_float_bits(float(value), element))
    elif dtypes.is_float(element):
        text = _float_text(float(value), element)
    elif dtypes.is_bool(element):
        text = "true" if value else "false"
    elif element == "handle":
        text = "null" if value == 0 else f"inttoptr (i64 {int(value)} to ptr)"
    else:
        text = str(int(value))
    return splat(text, dtype)


def _float_text(value: float, dtype: str) -> str:
    with np.errstate(over="ignore"):
        if dtype == "float16":
            return f"0xH{int(np.float16(value).view('uint16')):04X}"
        exact = float(np.float32(value)) if dtype == "float32" else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"


def _small_float_bits(value: float, dtype: str) -> int:
    with np.errstate(over="ignore"):
        return int(encode(value, dtype))
