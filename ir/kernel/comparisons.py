"""What the comparisons of scalars mean: `Binary` by its kind, on Python's values and NumPy's."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

__all__ = ["COMPARE"]

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
