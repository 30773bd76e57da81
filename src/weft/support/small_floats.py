"""Floating-point types that NumPy lacks: raw bits to values and back, by `ml_dtypes`.

    decode     bits -> float32, which holds every value of these types
    encode     numbers -> the bits of the nearest values, rounded once

The types are those of `ml_dtypes`: ties go to the even pattern (in float8_e8m0fnu, which has no mantissa, to the
greater power of two); what is out of range becomes infinity where the type has it, else nan where it has that, else the
greatest value. Conversions of `ml_dtypes` from wider types than float32 round to float32 first; here such a number is
rounded to odd first (Boldo and Melquiond, 2008), which keeps on which side of a tie it lies.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft import dtypes

__all__ = ["decode", "encode", "round_to"]


@functools.cache
def _table(dtype: str) -> np.ndarray:
    """The value of every bit pattern, as float32."""
    patterns = np.arange(1 << dtypes.bits(dtype)).astype(dtypes.storage(dtype))
    table = patterns.view(dtypes.array_dtype(dtype)).astype(np.float32)
    table.flags.writeable = False
    return table


def decode(bits: Any, dtype: str) -> Any:
    """The values (float32) of raw bits of a type that NumPy lacks; the shape stays.

    >>> decode(np.array([0x3F80, 0xC000], "uint16"), "bfloat16").tolist()
    [1.0, -2.0]
    """
    table = _table(dtype)
    return table[np.asarray(bits) & (len(table) - 1)]


def encode(values: Any, dtype: str) -> Any:
    """The raw bits (`dtype.storage`) of the nearest values of a type that NumPy lacks.

    >>> hex(encode(np.float32(1.0), "bfloat16"))
    '0x3f80'
    """
    numbers = np.asarray(values)
    single = numbers if numbers.dtype.name in ("float32", "float16") else _to_odd(numbers)
    with np.errstate(over="ignore", invalid="ignore"):
        short = np.asarray(single.astype(dtypes.array_dtype(dtype)))
    return short.view(dtypes.storage(dtype))[()]


def _to_odd(numbers: np.ndarray) -> np.ndarray:
    """Numbers as float32; one between two of them as the one whose last bit is set."""
    exact = _in_float64(numbers)
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(exact.astype(np.float32))
    inexact = np.isfinite(exact) & (single != exact)
    bits = single.view(np.uint32) - (inexact & (np.abs(single) > np.abs(exact)))
    return (bits | inexact).astype(np.uint32).view(np.float32)


def _in_float64(numbers: np.ndarray) -> np.ndarray:
    """Numbers as float64; of large integers that it lacks those with the twelfth bit set where a lower one was."""
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8:
        low = numbers & 0x7FF
        marked = (numbers - low) | ((low != 0).astype(numbers.dtype) << 11)
        numbers = np.where((numbers >= 1 << 53) | (numbers <= -(1 << 53)), marked, numbers)
    return np.asarray(numbers.astype(np.float64))


def round_to(values: Any, dtype: str) -> Any:
    """The nearest values of a type that NumPy lacks, as float32."""
    return decode(encode(values, dtype), dtype)
