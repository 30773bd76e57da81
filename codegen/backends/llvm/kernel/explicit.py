"""Whether a kernel says itself what is computed on vectors."""

from __future__ import annotations

import math

from weft import dtypes
from weft.ir.node import Node
from weft.ir.structure.visit import children, statements
from weft.ir.tensor import Buffer, BufferStore, For, PrimFunc, Stmt, While
from weft.transform.analysis.access_pattern import most_of

__all__ = ["fills_registers", "is_explicit"]

_FEW = 4
_VECTOR = 16
"""Elements of a vector: an unknown extent that is less is what remains beside vectors, and LLVM gains nothing there."""
_TILE = 8
"""Vectors of a buffer that is to stay in registers, from which on there are few left for others."""


def fills_registers(function: PrimFunc) -> bool:
    """Whether a lowered function computes in buffers of many vectors that are to stay in registers."""
    return any(
        _vectors_in(stmt.buffer, dtypes.lanes(stmt.value.dtype)) >= _TILE
        for stmt in statements(function.body)
        if isinstance(stmt, BufferStore) and stmt.buffer.scope == "local" and dtypes.lanes(stmt.value.dtype) > 1
    )


def _vectors_in(buffer: Buffer, lanes: int) -> int:
    size = math.prod(extent for extent in buffer.shape if isinstance(extent, int))
    return size // lanes


def is_explicit(function: PrimFunc) -> bool:
    """Whether a lowered function says itself what is computed on vectors: LLVM need not look for more.

    It has vectors, and no loop that stores elements one by one.
    """
    found: list[tuple[Node, int]] = [(function.body, -1)]  # statements, parents before children, and their parents
    for place, (stmt, _) in enumerate(found):
        if not isinstance(stmt, BufferStore):
            found += [(part, place) for part in children(stmt) if isinstance(part, Stmt)]
    loops, stores, vectors = ([False] * len(found) for _ in range(3))  # what is in each
    for place in range(len(found) - 1, -1, -1):
        stmt, parent = found[place]
        if isinstance(stmt, BufferStore):
            stores[place], vectors[place] = True, dtypes.lanes(stmt.value.dtype) > 1
        if isinstance(stmt, For) and _is_long(stmt) and stores[place] and not loops[place] and not vectors[place]:
            return False
        if parent >= 0:
            loops[parent] |= loops[place] or isinstance(stmt, (For, While))
            stores[parent] |= stores[place]
            vectors[parent] |= vectors[place]
    return vectors[0]


def _is_long(loop: For) -> bool:
    """Whether a loop has more than a few iterations, and stays a loop; what vectors leave has few."""
    if loop.kind == "unrolled":
        return False
    if isinstance(loop.extent, int):
        return loop.extent > _FEW
    most = most_of(loop.extent)
    return most is None or most >= _VECTOR
