"""Casts to and from floats and integers of eight bits or fewer, by tables: machine code only moves such values.

from short floats    their bits, read as uint8, choose a float of a table of 256
to short floats      a value's place among the midpoints between neighbours chooses an element of a table; a
                     midpoint goes to the neighbour whose last bit is 0
to short integers    the value modulo 2^bits chooses an element
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from weft.dtypes import array_dtype, bits, is_float, is_signed, max_value
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.ir.graph import Constant, Expr
from weft.script import relax as R

__all__ = ["from_short_float", "is_short_float", "is_short_integer", "to_short_float", "to_short_integer"]


def is_short_float(dtype: str) -> bool:
    """Whether a dtype is a float of eight bits or fewer."""
    return is_float(dtype) and bits(dtype) <= 8


def is_short_integer(dtype: str) -> bool:
    """Whether a dtype is an integer of fewer than eight bits."""
    return dtype in ("int4", "uint4", "int2", "uint2")


@lru_cache
def _values(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All values of a dtype, and the same as float32."""
    short = np.arange(1 << bits(dtype), dtype="uint8").view(array_dtype(dtype))
    with np.errstate(all="ignore"):
        return short, short.astype("float32")


def from_short_float(n: OnnxNode, x: Expr, dtype: str) -> Expr:
    """The values in another float dtype."""
    _, wide = _values(n.dtype(x))
    place = R.astype(R.memory.view(n.emit(x), None, "uint8"), "int64")
    found = R.take(Constant(wide), n.emit(place, "bits"), 0)
    return found if dtype == "float32" else R.astype(found, dtype)


def to_short_float(n: OnnxNode, x: Expr, dtype: str, saturate: bool) -> Expr:
    """The nearest values; greater ones than the greatest are that, or infinite or nan without saturation."""
    if dtype == "float8_e8m0fnu":
        raise Unsupported("the rounding of powers of two")
    short, wide = _values(dtype)
    finite = np.isfinite(wide)
    order = np.argsort(wide[finite], kind="stable")
    codes = np.flatnonzero(finite)[order]
    if wide[codes].min() < 0:  # 0 stands for -0 as well
        codes = codes[~((wide[codes] == 0) & np.signbit(wide[codes]))]
    values = wide[codes].astype("float64")
    boundaries = ((values[1:] + values[:-1]) / 2).astype("float32")
    boundaries = np.where(codes[:-1] % 2 == 0, boundaries, np.nextafter(boundaries, np.float32(-np.inf)))
    x = n.emit(x if n.dtype(x) == "float32" else R.astype(x, "float32"), "wide")
    greatest = float(max_value(dtype))
    inside = R.clip(x, -greatest, greatest)
    place = n.emit(R.bucketize(inside, Constant(boundaries.astype("float32"))), "place")
    code = n.emit(R.take(Constant(codes.astype("int64")), place, 0), "code")
    if not saturate:
        code = _beyond(n, x, code, wide, values, greatest)
    nan = np.flatnonzero(np.isnan(wide))
    if nan.size:
        code = R.where(R.isnan(x), Constant(np.asarray(nan[0], "int64")), code)
    else:  # the only float without nan: -0
        code = R.where(R.isnan(x), Constant(np.asarray(1 << (bits(dtype) - 1), "int64")), code)
    return R.take(Constant(short), n.emit(code, "code"), 0)


def _beyond(n: OnnxNode, x: Expr, code: Expr, wide: np.ndarray, values: np.ndarray, greatest: float) -> Expr:
    """What is rounded beyond the greatest value: infinite where there is such a value, else nan."""
    half = (values[-1] - values[-2]) / 2
    limit = np.float32(greatest + half)
    for sign, beyond in ((1, R.greater_equal(x, float(limit))), (-1, R.less_equal(x, -float(limit)))):
        infinite = np.flatnonzero(np.isinf(wide) & (np.sign(wide) == sign))
        target = infinite if infinite.size else np.flatnonzero(np.isnan(wide))
        if target.size:
            code = n.emit(R.where(beyond, Constant(np.asarray(target[0], "int64")), code), "code")
    return code


def to_short_integer(n: OnnxNode, x: Expr, dtype: str) -> Expr:
    """Whole numbers, of which the lowest bits are kept."""
    width = bits(dtype)
    numbers = np.arange(1 << width)
    if is_signed(dtype):
        numbers = np.where(numbers >= 1 << (width - 1), numbers - (1 << width), numbers)
    whole = R.astype(x, "int64")
    place = R.floor_mod(whole, Constant(np.asarray(1 << width, "int64")))
    return R.take(Constant(numbers.astype(array_dtype(dtype))), n.emit(place, "place"), 0)
