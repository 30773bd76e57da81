"""What assertions about every element of a buffer say of those that are read later.

    for i in range(n): assert 0 <= index[i] and index[i] < m        every element of index is one of [0, m)
    for j in range(k): y[j] = x[index[j]]                           no assertion is needed

It holds to the end of the function, for buffers that nothing in it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.ir import substitute, walk
from weft.ir.attrs import NOALIAS, attribute
from weft.ir.interpret.kernel import written_buffers
from weft.ir.tensor import AssertStmt, Buffer, BufferLoad, IntImm, PrimCall, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.analysis.indices.facts import EveryElement, is_choice
from weft.transform.analysis.loops.plain_loops import plain_loops

__all__ = ["asserted_elements", "said_of", "unchanged_buffers"]


def unchanged_buffers(function: PrimFunc) -> frozenset[Buffer]:
    """The parameters that keep their values while a function runs: memory of their own, which it does not write."""
    if not attribute(function.attrs, NOALIAS, True):
        return frozenset()
    written = written_buffers(function)
    given = [param for param in function.params if isinstance(param, Buffer)]
    return frozenset(param for param in given if param.data is None and param not in written)


def asserted_elements(stmt: Stmt, unchanged: frozenset[Buffer]) -> Iterator[EveryElement]:
    """What a statement asserts of every element of a buffer that is unchanged, once for each of its buffers."""
    loops, asserted = plain_loops(stmt) or ((), stmt)
    if not isinstance(asserted, AssertStmt) or asserted.kind != "BoundsError":
        return
    condition, extents = asserted.condition, {loop.loop_var: loop.extent for loop in loops}
    loads = [part for part in walk(condition) if isinstance(part, BufferLoad)]
    calls = any(isinstance(part, PrimCall) and not is_choice(part) for part in walk(condition))
    if calls or not all(load.buffer in unchanged for load in loads):
        return
    for load in loads:
        chosen = [index for index in load.indices if isinstance(index, PrimVar)]
        constant = all(isinstance(index, (PrimVar, IntImm)) for index in load.indices)
        if not constant or len(set(chosen)) < len(chosen) or set(chosen) != set(extents):
            continue
        pairs = zip(load.indices, load.buffer.shape, strict=True)
        if all(isinstance(index, IntImm) or same_extents((extents[index],), (size,)) for index, size in pairs):  # type: ignore[index]
            yield EveryElement(load.buffer, load.indices, condition)


def said_of(load: BufferLoad, known: EveryElement) -> PrimExpr | None:
    """What is known of an element that is read; None where that is nothing."""
    if load.buffer is not known.buffer:
        return None
    chosen: dict[PrimVar, Any] = {}
    for index, place in zip(load.indices, known.indices, strict=True):
        if isinstance(place, PrimVar):
            chosen[place] = index
        elif not isinstance(index, IntImm) or not isinstance(place, IntImm) or index.value != place.value:
            return None
    return substitute(known.condition, chosen)
