"""Constants whose elements are formulas of the position: uniform, ranges along an axis, triangles of two values."""

from __future__ import annotations

import math

import numpy as np

from weft.dtypes import can_hold, is_integer
from weft.ir import Constant
from weft.ir.dim import Dim, Facts
from weft.transform.analysis.positions.formulas import SMALL, Element, choose, is_nonnegative

__all__ = ["element_of_constant", "number_in"]


def number_in(dtype: str, number: float) -> Element | None:
    """A number in a dtype; None for integers that arithmetic may wrap, nan, and dtypes that NumPy lacks."""
    if dtype == "bool":
        return bool(number)
    if is_integer(dtype):
        whole = abs(number) < SMALL and number == int(number) and can_hold(dtype, int(number))
        return int(number) if whole else None
    if dtype not in ("float16", "float32", "float64") or math.isnan(number):
        return None
    with np.errstate(over="ignore"):
        return float(np.asarray(number, dtype))


def element_of_constant(constant: Constant, at: tuple[Dim, ...], facts: Facts) -> Element | None:
    """The element of a constant at a position."""
    data = constant.data
    if data.size == 0 or not constant.is_numpy or data.dtype.kind not in "biuf":
        return None
    first = data.flat[0]
    if data.size == 1 or (data == first).all():
        return number_in(constant.dtype, first.item())
    axes = [axis for axis, size in enumerate(data.shape) if size > 1]
    if len(axes) == 1 and data.dtype.kind in "iu":
        return _range(data.reshape(-1), at[axes[0]])
    if len(axes) == 2:
        return _triangle(data.reshape([data.shape[axis] for axis in axes]), constant.dtype, at, axes, facts)
    return None


def _range(data: np.ndarray, index: Dim) -> Element | None:
    start, step = int(data[0]), int(data[1]) - int(data[0])
    if max(abs(start), abs(step)) >= SMALL or abs(int(data[-1])) >= SMALL:
        return None
    return start + index * step if np.array_equal(data, start + step * np.arange(len(data))) else None


def _triangle(data: np.ndarray, dtype: str, at: tuple[Dim, ...], axes: list[int], facts: Facts) -> Element | None:
    """One value up to a diagonal, another beyond it."""
    low, high = data[-1, 0], data[0, -1]
    below = data == low
    count = int(np.count_nonzero(below[0]))
    place = count - 1
    if not count:  # the diagonal starts in a later row
        place = -int(np.argmax(below[:, 0]))
    if (
        not np.array_equal(below, np.tri(data.shape[0], data.shape[1], place, dtype=bool))
        or not (data[~below] == high).all()
    ):
        return None
    then, otherwise = number_in(dtype, low.item()), number_in(dtype, high.item())
    if then is None or otherwise is None:
        return None
    seen = is_nonnegative(at[axes[0]] - at[axes[1]] + place, facts)
    return choose(seen, then, otherwise, facts)
