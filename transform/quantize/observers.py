"""Observers: the interval of floats that integers are to stand for, from the values that were seen.

    MinMaxObserver      from the least to the greatest value
    PercentileObserver  without the outer values: of 99.9, one in two thousand is left out at each end
    EntropyObserver     the interval whose histogram of 128 steps differs least from the one that was seen
                        (Kullback and Leibler's divergence)

Values that are no finite numbers are not counted; `is_finite` says whether there were any. Histograms cover an interval
about 0 that doubles when a value lies outside: neighbouring bins join, so that every batch is looked at once.

Source: Migacz, 8-bit inference with TensorRT, 2017, for the divergence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

__all__ = ["EntropyObserver", "MinMaxObserver", "Observer", "PercentileObserver"]


class Observer(ABC):
    """Sees arrays, and says which interval integers are to cover.

    >>> observer = MinMaxObserver()
    >>> observer.observe(np.array([-1.0, 3.0]))
    >>> observer.interval()
    (-1.0, 3.0)
    """

    def __init__(self) -> None:
        self.is_finite = True
        self.low, self.high = math.inf, -math.inf

    def observe(self, values: np.ndarray) -> None:
        """Count the values of an array."""
        flat = np.asarray(values, "float32").reshape(-1)
        if not flat.size:
            return
        low, high = float(flat.min()), float(flat.max())  # nan where there is one
        if not (math.isfinite(low) and math.isfinite(high)):
            self.is_finite = False
            flat = flat[np.isfinite(flat)]
            if not flat.size:
                return
            low, high = float(flat.min()), float(flat.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._count(flat)

    @property
    def is_empty(self) -> bool:
        """Whether no finite value was seen."""
        return self.low > self.high

    @abstractmethod
    def _count(self, values: np.ndarray) -> None:
        """Take note of finite values."""

    @abstractmethod
    def interval(self) -> tuple[float, float]:
        """The least and the greatest value that integers are to stand for; (0, 0) where nothing was seen."""


class MinMaxObserver(Observer):
    """From the least to the greatest value that was seen."""

    def _count(self, values: np.ndarray) -> None:
        """The extremes are all there is to note."""

    def interval(self) -> tuple[float, float]:
        """The extremes."""
        return (0.0, 0.0) if self.is_empty else (self.low, self.high)


class _HistogramObserver(Observer):
    """Counts values in equal bins from -reach to reach."""

    bins: ClassVar[int] = 4096

    def __init__(self) -> None:
        super().__init__()
        self.reach = 0.0
        self.counts = np.zeros(self.bins, "int64")

    def _count(self, values: np.ndarray) -> None:
        most = max(-self.low, self.high)
        if not most:
            self.counts[self.bins // 2] += values.size
            return
        if not self.reach:
            self.reach = most
            zeros, self.counts[:] = int(self.counts.sum()), 0
            self.counts[self.bins // 2] = zeros
        while self.reach < most:
            self._double()
        places = ((values.astype("float64") / self.reach + 1.0) * (self.bins // 2)).astype("int64")
        self.counts += np.bincount(places.clip(0, self.bins - 1), minlength=self.bins)

    def _double(self) -> None:
        quarter = self.bins // 4
        joined = self.counts.reshape(-1, 2).sum(axis=1)
        self.counts[:] = 0
        self.counts[quarter : 3 * quarter] = joined
        self.reach *= 2


class PercentileObserver(_HistogramObserver):
    """The interval that holds so many of a hundred values, as many left out below as above.

    The ends are exact up to a bin: 1/2048 of the largest value that was seen, at most two of them.
    """

    def __init__(self, percentile: float = 99.9) -> None:
        super().__init__()
        self.percentile = percentile

    def interval(self) -> tuple[float, float]:
        """The percentiles, within the extremes."""
        total = int(self.counts.sum())
        if not total or not self.reach:
            return 0.0, 0.0
        outside = total * (1 - self.percentile / 100) / 2
        below = np.cumsum(self.counts)
        step = 2 * self.reach / self.bins
        first = int(np.searchsorted(below, outside, side="right"))
        last = int(np.searchsorted(below, total - outside, side="left"))
        low, high = first * step - self.reach, (last + 1) * step - self.reach
        return max(low, self.low), min(high, self.high)


class EntropyObserver(_HistogramObserver):
    """The interval about 0 for which 128 steps tell most of the histogram of sizes of values."""

    steps: ClassVar[int] = 128

    def interval(self) -> tuple[float, float]:
        """The best interval, within the extremes."""
        if not self.reach:
            return 0.0, 0.0
        half = self.bins // 2
        sizes = (self.counts[half:] + self.counts[:half][::-1]).astype("float64")
        sizes[0] = sizes[1]  # values that are 0 say nothing of the interval
        used = int(np.flatnonzero(sizes).max(initial=self.steps)) + 1
        ends = range(self.steps, min(used, half) + 1, 8)
        costs = [_divergence(sizes, end, self.steps) for end in ends]
        limit = ends[int(np.argmin(costs))] * self.reach / half if costs else self.reach
        return max(-limit, self.low), min(limit, self.high)


def _divergence(sizes: np.ndarray, end: int, steps: int) -> float:
    """How much a histogram up to a bin, in so many steps, differs from the whole one, what lies outside at its end."""
    seen = sizes[:end].copy()
    seen[-1] += sizes[end:].sum()
    place = np.arange(end) * steps // end
    filled = sizes[:end] > 0
    total = np.bincount(place, sizes[:end], steps)
    count = np.bincount(place, filled, steps)
    spread = np.where(filled, (total / np.maximum(count, 1))[place], 0.0)
    if not seen.sum() or not spread.sum():
        return math.inf
    p, q = seen / seen.sum(), spread / spread.sum()
    told = p > 0
    return float(np.sum(p[told] * np.log(p[told] / np.maximum(q[told], 1e-12))))
