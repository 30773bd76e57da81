"""Which numbers explain a condition that failed: the integers that it saw, for the note of the error."""

from __future__ import annotations

import itertools

from weft import dtypes
from weft.ir.graph import Expr
from weft.ir.structure.visit import children, walk
from weft.ir.tensor import LOGICAL, Binary, BufferLoad, Let, PrimCall, PrimExpr, PrimVar, Select

__all__ = ["integers_seen"]

_MOST_LOADS = 8
"""In an integer that is shown, itself included."""


def integers_seen(condition: Expr, limit: int) -> list[PrimVar | BufferLoad]:
    """The integer variables of a condition, and those of its loads that no branch of it may have skipped.

    Loads at places that many loads lead to are left out: each is computed again, and says little to a reader.
    """
    inner = {node.var for node in walk(condition) if isinstance(node, Let)}
    found: dict[PrimVar | BufferLoad, None] = {}
    stack: list[tuple[Expr, bool]] = [(condition, not inner)]
    while stack:
        node, certain = stack.pop()
        known = node not in inner if isinstance(node, PrimVar) else isinstance(node, BufferLoad) and certain
        if known and isinstance(node, (PrimVar, BufferLoad)) and _is_integer(node.dtype):
            found[node] = None
        lazy = isinstance(node, (Select, PrimCall)) or (isinstance(node, Binary) and node.kind in LOGICAL)
        parts = [(part, certain and not (lazy and index)) for index, part in enumerate(children(node))]
        stack.extend((part, sure) for part, sure in reversed(parts) if isinstance(part, PrimExpr))
    return list(itertools.islice(filter(_is_shallow, found), limit))


def _is_shallow(part: PrimVar | BufferLoad) -> bool:
    loads = (node for node in walk(part) if isinstance(node, BufferLoad))
    return next(itertools.islice(loads, _MOST_LOADS, None), None) is None


def _is_integer(dtype: str) -> bool:
    return dtypes.is_integer(dtype) and dtypes.lanes(dtype) == 1
