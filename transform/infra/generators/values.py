"""Data inside generated programs: attribute values, arrays, constants of every dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft import dtypes
from weft.ir.dim import symbol
from weft.ir.graph import Constant
from weft.ir.node import FrozenMap, freeze
from weft.transform.infra.generators.choices import Choices

__all__ = [
    "DTYPES",
    "FLOATS",
    "INTEGERS",
    "SMALL_FLOATS",
    "array",
    "attribute_map",
    "attribute_value",
    "constant",
    "small_array",
]

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, "int32", "int64", "bool", "uint8")
SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4", "uint1", "int2")

_KEYS = ("key", "name", "a", "b.c", "two words", "", "é", "0", "tir.note", "quote'\"", "for", "\n")


def attribute_value(choices: Choices, depth: int = 2) -> Any:
    """JSON-like data: None, truth values, integers, floats, strings, lists and dictionaries of them; dimensions too."""
    kind = choices.integer(0, 6 if depth > 0 else 4)
    if kind == 0:
        return choices.pick((0, 1, -1, 7, 2**31, -(2**63), 2**64, 10**30))
    if kind == 1:
        return choices.text()
    if kind == 2:
        return choices.number()
    if kind == 3:
        return choices.pick((None, False, True))
    if kind == 4:
        return (
            symbol(choices.pick(("n", "m"))) * choices.integer(1, 3) + choices.integer(0, 2) if choices.flip(20) else 3
        )
    if kind == 5:
        return freeze(choices.several(0, 3, lambda: attribute_value(choices, depth - 1)))
    return attribute_map(choices, depth - 1)


def attribute_map(choices: Choices, depth: int = 2, most: int = 3) -> FrozenMap:
    """A few named attribute values."""
    names = choices.several(0, most, lambda: choices.text() if choices.flip(10) else choices.pick(_KEYS))
    return FrozenMap({name: attribute_value(choices, depth) for name in names})


def _integer(choices: Choices, dtype: str) -> int:
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return choices.pick((0, 1, high, low)) if choices.flip(20) else choices.integer(max(low, -5), min(high, 5))


def array(choices: Choices, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of any values of a dtype (raw bits for dtypes that NumPy lacks)."""
    count = math.prod(shape)
    kind = dtypes.storage(dtype)
    if dtypes.is_float(dtype) and dtypes.is_numpy(dtype):
        with np.errstate(over="ignore"):
            flat = np.array([choices.number() for _ in range(count)], "float64").astype(kind)
    elif dtypes.is_bool(dtype):
        flat = np.array([choices.flip() for _ in range(count)], kind)
    elif dtypes.is_integer(dtype):
        flat = np.array([_integer(choices, dtype) for _ in range(count)], kind)
    else:
        flat = np.array([choices.integer(0, 2 ** dtypes.bits(dtype) - 1) for _ in range(count)], kind)
    return flat.reshape(shape)


def small_array(choices: Choices, dtype: str, shape: tuple[int, ...], low: Any = None, high: Any = None) -> np.ndarray:
    """An array of moderate values of a dtype: what programs compute with (no nan, no infinity)."""
    count = math.prod(shape)
    if dtypes.is_bool(dtype):
        flat = np.array([choices.flip() for _ in range(count)], bool)
    elif dtypes.is_float(dtype):
        low, high = (-2.0 if low is None else low), (2.0 if high is None else high)
        steps = np.array([choices.integer(0, 64) for _ in range(count)], "float64")
        flat = (low + (high - low) * steps / 64).astype(dtypes.array_dtype(dtype))
    elif dtypes.is_complex(dtype):
        real, imaginary = (small_array(choices, dtypes.part(dtype), (count,), low, high) for _ in range(2))
        flat = (real + 1j * imaginary).astype(dtype)
    else:
        least, most = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
        low = max(least, 0 if dtypes.is_unsigned(dtype) else -4) if low is None else int(low)
        high = min(most, 4) if high is None else int(high)
        flat = np.array([choices.integer(low, high) for _ in range(count)]).astype(dtypes.array_dtype(dtype))
    return flat.reshape(shape)


def constant(choices: Choices, *, runnable: bool) -> Constant:
    """A constant of some dtype and small static shape."""
    shape = tuple(choices.several(0, 2, lambda: choices.pick((2, 1, 3, 0))))
    if runnable:
        dtype = choices.pick(DTYPES)
        return Constant(small_array(choices, dtype, shape), dtype)
    dtype = choices.pick((*DTYPES, *INTEGERS, *SMALL_FLOATS))
    return Constant(array(choices, dtype, shape), dtype)
