"""Floating-point types that NumPy lacks: raw bits to values and back.

    value ::= (-1)^sign * 2^(exponent - bias) * (1 + mantissa / 2^m)        subnormal when the exponent field is zero

Every such type has at most 16 bits, so one table per type holds the value of each bit pattern; encoding finds the
nearest value (ties to the even pattern). What is out of range becomes infinity where the type has it, else nan where
it has that, else the greatest value. All values are exact in float32, which is what decoded arrays hold.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import dtypes

__all__ = ["decode", "encode", "round_to"]


@functools.cache
def _table(dtype: str) -> np.ndarray:
    """The value of every bit pattern, as float32."""
    layout = dtypes.float_format(dtype)
    width = layout.exponent + layout.mantissa + layout.signed
    bits = np.arange(1 << width, dtype=np.int64)
    mantissa = bits & ((1 << layout.mantissa) - 1)
    exponent = (bits >> layout.mantissa) & ((1 << layout.exponent) - 1)
    top = (1 << layout.exponent) - 1
    fraction = mantissa / (1 << layout.mantissa)
    if layout.mantissa:
        values = np.where(
            exponent == 0, np.ldexp(fraction, 1 - layout.bias), np.ldexp(1 + fraction, exponent - layout.bias)
        )  # fmt: skip
    else:  # a type without a mantissa has no zero: its patterns are the powers of two
        values = np.ldexp(1.0, exponent - layout.bias)
    if layout.special == "ieee":
        values = np.where(exponent == top, np.where(mantissa == 0, np.inf, np.nan), values)
    elif layout.special == "fn":
        values = np.where((exponent == top) & (mantissa == (1 << layout.mantissa) - 1), np.nan, values)
    if layout.signed:
        values = np.where(bits >> (width - 1), -values, values)
    if layout.special == "fnuz":
        values = np.where(bits == 1 << (width - 1), np.nan, values)
    table = values.astype(np.float32)
    table.flags.writeable = False
    return table


@dataclass(frozen=True)
class _Encoder:
    """The nonnegative finite values in order, their patterns, the largest one, and what lies beyond."""

    values: np.ndarray
    patterns: np.ndarray
    overflow: int
    nan: int
    sign: int
    limit: float


@functools.cache
def _encoder(dtype: str) -> _Encoder:
    layout, table = dtypes.float_format(dtype), _table(dtype).astype(np.float64)
    half = len(table) // 2 if layout.signed else len(table)
    patterns = np.flatnonzero(np.isfinite(table[:half]))
    values = table[patterns]
    nans, infinities = np.flatnonzero(np.isnan(table)), np.flatnonzero(np.isinf(table[:half]))
    # The quiet nan with the least payload, as hardware gives it.
    quiet = (
        patterns[-1] + 1 + (1 << (layout.mantissa - 1))
        if layout.special == "ieee"
        else (nans[0] if len(nans) else patterns[-1])
    )
    overflow = int(infinities[0]) if len(infinities) else int(quiet)
    step = values[-1] - values[-2]
    return _Encoder(values, patterns, overflow, int(quiet), half if layout.signed else 0, values[-1] + step / 2)


def decode(bits: Any, dtype: str) -> Any:
    """The values (float32) of raw bits of a type that NumPy lacks; the shape stays.

    >>> decode(np.array([0x3F80, 0xC000], "uint16"), "bfloat16").tolist()
    [1.0, -2.0]
    """
    table = _table(dtype)
    return table[np.asarray(bits) & (len(table) - 1)]


def encode(values: Any, dtype: str) -> Any:
    """The raw bits (`dtype.storage`) of the nearest values of a type that NumPy lacks; ties go to the even pattern.

    >>> hex(encode(np.float32(1.0), "bfloat16"))
    '0x3f80'
    """
    encoder = _encoder(dtype)
    exact = np.asarray(values, np.float64)
    if dtype == "bfloat16":
        return _encode_bfloat16(exact)
    size = np.abs(exact)
    above = np.clip(np.searchsorted(encoder.values, size), 1, len(encoder.values) - 1)
    low, high = encoder.values[above - 1], encoder.values[above]
    middle = (low + high) / 2
    odd_low = encoder.patterns[above - 1] & 1
    chosen = np.where((size > middle) | ((size == middle) & (odd_low == 1)), above, above - 1)
    bits = encoder.patterns[chosen]
    beyond = size >= encoder.limit if encoder.patterns[-1] & 1 else size > encoder.limit
    bits = np.where(beyond, encoder.overflow, bits)
    zero_is_unsigned = dtypes.float_format(dtype).special == "fnuz"
    negative = np.signbit(exact) & ~((bits == 0) & zero_is_unsigned)
    if encoder.sign:
        bits = np.where(negative & (bits != encoder.nan if zero_is_unsigned else True), bits | encoder.sign, bits)
    elif dtype == "float8_e8m0fnu":
        bits = np.where(negative & (exact != 0), encoder.nan, bits)
    bits = np.where(np.isnan(exact), encoder.nan, bits)
    return bits.astype(dtypes.storage(dtype))[()]


def _encode_bfloat16(exact: np.ndarray) -> Any:
    """Round to nearest even on the bits; the step over float32 is made sticky so that rounding happens once."""
    single = exact.astype(np.float32)
    bits = single.view(np.uint32).astype(np.int64)
    back = single.astype(np.float64)
    # Where float32 rounded onto a tie of bfloat16, move it back to the side on which the exact value lies.
    tie = (bits & 0xFFFF) == 0x8000
    toward_zero = tie & (np.abs(back) > np.abs(exact))
    away = tie & (np.abs(back) < np.abs(exact))
    bits = bits - toward_zero + away
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    special = np.where(np.isnan(exact), ((bits >> 16) & 0x8000) | 0x7FC0, bits >> 16)
    return np.where(np.isfinite(single), rounded, special).astype(np.uint16)[()]


def round_to(values: Any, dtype: str) -> Any:
    """The nearest values of a type that NumPy lacks, as float32."""
    return decode(encode(values, dtype), dtype)
