"""The table of ATen operators: one row for each, a function from a node and its arguments to an expression of ours.

    row("relu", lambda n, x: R.nn.relu(x))                    every overload
    row("add", add)                                           arguments as the operator's definition says

Tensors come as expressions, sizes as dimensions, everything else as it is. A row returns an expression, a tuple of them
(one for each result), or a dimension. `weft.frontend.emitter.Unsupported` says why a node has no native form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["TABLE", "row"]

TABLE: dict[str, Callable[..., Any]] = {}
"""The name of an operator without its overload -> its row."""


def row(names: str, function: Callable[..., Any]) -> None:
    """Add one function for one or several operators, named with blanks between; a later one replaces it."""
    for name in names.split():
        TABLE[name] = function
