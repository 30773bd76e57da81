"""Results of a model held against those of its reference, on inputs whose sizes are chosen here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ModelError
from weft.ir.dim import Dim, evaluate, free_symbols
from weft.support.records import dataclass

__all__ = ["CheckResult", "difference", "input_shape", "require_symbols", "same"]

_SIZE = 3  # of a symbol that nobody states
_MOST_ELEMENTS = 1 << 31
"""Of a random input: in float64, as they are drawn, 16 GiB."""


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


def require_symbols(sizes: Mapping[str, int], dims: Iterable[Dim]) -> None:
    """ModelError W978 where sizes are stated of symbols that the inputs do not have."""
    there = list(dict.fromkeys(name for dim in dims for name in free_symbols(dim)))
    for name in sizes:
        if name not in there:
            hint = f"they have: {', '.join(there)}" if there else "their sizes are numbers"
            raise ModelError(f"the inputs have no symbol {name!r}", code="W978", hint=hint)


def input_shape(name: str, dims: Sequence[Dim], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a random input at the sizes of its symbols, by default 3; ModelError W978 where it is too large."""
    shape = tuple(evaluate(dim, {symbol: sizes.get(symbol, _SIZE) for symbol in free_symbols(dim)}) for dim in dims)
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ModelError(
            f"no random value is made for the input {name!r}: the shape {shape} has over {_MOST_ELEMENTS} elements",
            code="W978",
            hint="give its array, or lesser sizes of its symbols",
        )
    return shape


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
