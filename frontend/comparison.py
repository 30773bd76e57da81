"""Results of a model held against those of its reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CheckResult", "difference", "same"]


@dataclass(frozen=True)
class CheckResult:
    """Whether the results are equal, the greatest difference, and the first node that differs."""

    equal: bool
    reference: str
    worst: float = 0.0
    first: str = ""

    def __str__(self) -> str:
        if self.equal:
            return f"equal to {self.reference}; the greatest difference is {self.worst:.3g}"
        return f"differs from {self.reference} by {self.worst:.3g}; the first node that differs: {self.first}"


def difference(found: Any, wanted: Any) -> float:
    """The greatest difference of two results, infinite for results of other shapes."""
    if not isinstance(found, np.ndarray) or np.shape(found) != np.shape(wanted) or found.dtype.kind not in "biuf":
        return 0.0 if same(found, wanted, 0, 0) else float("inf")
    if not found.size:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.nanmax(np.abs(found.astype("float64") - np.asarray(wanted).astype("float64")), initial=0.0))


def same(found: Any, wanted: Any, rtol: float, atol: float) -> bool:
    """Whether two results are equal within tolerances; whole numbers exactly."""
    if isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(same(a, b, rtol, atol) for a, b in zip(found, wanted, strict=True))
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind in "biu" or found.dtype == object:
        return bool((found == wanted).all())
    return bool(np.allclose(found.astype("float64"), wanted.astype("float64"), rtol, atol, equal_nan=True))
