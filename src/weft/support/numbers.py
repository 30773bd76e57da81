"""Numbers that come from outside as values of a dtype: the one rule for arguments and for results of functions.

    number(value, dtype) -> the nearest value of the dtype as a Python number, or None

A number has to be of the dtype's kind: a bool for bool alone, an integer in range for integers, an integer or a float
for floats. NumPy scalars and arrays of rank 0 have to be of the dtype itself, or integers. Nothing stands for None.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.support.guards import is_array, is_number
from weft.support.small_floats import round_to

__all__ = ["number"]


def number(value: Any, dtype: str) -> bool | int | float | complex | None:
    """A number as the nearest value of a dtype; None when its kind or range does not fit.

    >>> number(0.1, "float32"), number(3, "uint8"), number(True, "int64"), number(None, "int64")
    (0.10000000149011612, 3, None, None)
    """
    if is_array(value) and value.shape == ():
        value = value[()]
    if is_number(value):
        if value.dtype.name != dtype and not (isinstance(value, np.integer) and dtypes.is_integer(dtype)):
            return None
        value = cast("Any", value.item())
    if isinstance(value, bool):
        return value if dtypes.is_bool(dtype) else None
    if isinstance(value, int) and dtypes.is_integer(dtype):
        return value if dtypes.can_hold(dtype, value) else None
    if isinstance(value, (int, float)) and dtypes.is_float(dtype):
        return _nearest(value, dtype)
    if isinstance(value, (int, float, complex)) and dtypes.is_complex(dtype):
        part = dtypes.part(dtype)
        parts = (value.real, value.imag) if isinstance(value, complex) else (value, 0.0)
        real, imaginary = (_nearest(item, part) for item in parts)
        return None if real is None or imaginary is None else complex(real, imaginary)
    return None


def _nearest(value: int | float, dtype: str) -> float | None:
    """The nearest value of a floating type; None for an integer beyond all floats."""
    if isinstance(value, int):
        try:
            exact = float(value)
        except OverflowError:
            return None
        if dtype != "float64" and exact != value:
            exact = _to_odd(exact, value)
    else:
        exact = float(value)
    if dtype == "float64":
        return exact
    if dtype == "float32":
        return ctypes.c_float(exact).value
    if not dtypes.is_numpy(dtype):
        return float(round_to(exact, dtype))
    with np.errstate(over="ignore"):
        return float(np.dtype(dtype).type(exact))


def _to_odd(exact: float, value: int) -> float:
    """Of the two floats around an integer the one whose last bit is set, so that rounding again rounds once."""
    if np.float64(exact).view(np.int64) & 1:
        return exact
    return math.nextafter(exact, math.inf if value > exact else -math.inf)
