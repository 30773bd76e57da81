"""How much the results of a quantized model decline, where no metric says it.

result_drop(expected, got)      the largest drop of a result over all calls: of floats the norm of the difference
                                divided by the norm (0.01 is 40 dB), of integers and truth values the share of
                                elements that differ
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["result_drop"]


def result_drop(expected: Sequence[Any], got: Sequence[Any]) -> float:
    """The largest drop of a result over all calls; results are arrays or tuples of them.

    >>> result_drop([np.array([3.0, 4.0])], [np.array([3.0, 3.5])])
    0.1
    >>> result_drop([np.array([3 + 4j])], [np.array([3 + 3.5j])])
    0.1
    """
    columns = zip(*(list(_arrays(item)) for item in expected), strict=True)
    others = zip(*(list(_arrays(item)) for item in got), strict=True)
    return max((_drop_of(list(a), list(b)) for a, b in zip(columns, others, strict=True)), default=0.0)


def _arrays(result: Any) -> Iterator[np.ndarray]:
    if isinstance(result, tuple):
        for item in result:
            yield from _arrays(item)
    else:
        yield np.asarray(result)


def _drop_of(expected: list[np.ndarray], got: list[np.ndarray]) -> float:
    if any(a.shape != b.shape for a, b in zip(expected, got, strict=True)):
        return math.inf
    if expected[0].dtype.kind not in "fc":
        count = sum(item.size for item in expected)
        return sum(int((a != b).sum()) for a, b in zip(expected, got, strict=True)) / max(1, count)
    wide = "float64" if expected[0].dtype.kind == "f" else "complex128"
    pairs = [(a.astype(wide), b.astype(wide)) for a, b in zip(expected, got, strict=True)]
    if any((np.isfinite(a) != np.isfinite(b)).any() for a, b in pairs):
        return math.inf
    kept = [(a[np.isfinite(a)], b[np.isfinite(a)]) for a, b in pairs]
    signal = sum(float(np.square(np.abs(a)).sum()) for a, _ in kept)
    noise = sum(float(np.square(np.abs(a - b)).sum()) for a, b in kept)
    return math.sqrt(noise / signal) if signal else 0.0 if not noise else math.inf
