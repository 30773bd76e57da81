"""Scratch memory of parallel loops: what has a place for each iteration is used by one slot for each thread.

    for i in T.parallel(8): t[i, j] = ...; ... t[i, k]      ->      t[slot, j] = ...; ... t[slot, k]

Iterations that run one after another then use the same memory, which stays in the caches. A slot is a number below that
of the iterations which no two threads of a loop have at once. Scratch memory is what the kernel allocates, and the
parameters that `weft.transform.memory.hoist_scratch` made of that: nothing else sees it. Where the loop runs once, no
iteration finds in it what it did not write itself; in another loop that is proved, or each keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.attrs import SCRATCH
from weft.ir.node import Node, replace
from weft.ir.structure.visit import children, rewrite, statements, walk
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    For,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Stmt,
    While,
)
from weft.transform.analysis.written import written_by_iteration

__all__ = ["in_slot", "scratch_of"]


def scratch_of(function: PrimFunc, loop: For) -> frozenset[Buffer]:
    """The scratch memory of a kernel that only this loop uses, each iteration in a place of its own."""
    made = (part.buffer for part in statements(function.body) if isinstance(part, AllocBuffer))
    candidates = (*made, *(function.params[at] for at in function.attrs.get(SCRATCH, ())))
    found = {x for x in candidates if isinstance(x, Buffer) and _has_place_for_each(x, loop)}
    if found:
        inside = {id(part) for part in _users(loop.body)}
        for part in _users(function.body):
            if isinstance(part, (BufferLoad, BufferStore)):
                if part.buffer in found and not (id(part) in inside and _is_own(part, loop)):
                    found.discard(part.buffer)
            elif not isinstance(part, AllocBuffer):
                found.difference_update(x for x in children(part) if isinstance(x, Buffer))
    if found and _is_repeated(function.body, loop):
        found &= written_by_iteration(function, loop, found)
    return frozenset(found)


def _is_repeated(body: Stmt, loop: For) -> bool:
    """Whether a loop runs more than once: it stands in another one."""
    loops = (part for part in statements(body) if isinstance(part, (For, While)) and getattr(part, "extent", 0) != 1)
    return any(part is loop for outer in loops if outer is not loop for part in statements(outer.body))


def _users(stmt: Stmt) -> Iterator[Node]:
    """What may use a buffer."""
    for part in walk(stmt):
        if isinstance(part, (Stmt, BufferLoad, PrimCall)) or not isinstance(part, PrimExpr):
            yield part


def _has_place_for_each(buffer: Buffer, loop: For) -> bool:
    starts = isinstance(loop.start, int) and loop.start == 0 and isinstance(loop.extent, int)
    return starts and bool(buffer.shape) and buffer.shape[0] == loop.extent


def _is_own(part: BufferLoad | BufferStore, loop: For) -> bool:
    """Whether an access is to the place of the iteration."""
    if not part.indices:
        return False
    index = part.indices[0]
    while isinstance(index, Cast):
        index = index.value
    return index is loop.loop_var


def in_slot(loop: For, scratch: frozenset[Buffer], slot: PrimExpr) -> For:
    """The loop with the place of a slot for that of each iteration."""

    def moved(node: Node) -> Node | None:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in scratch:
            return replace(node, indices=(slot, *node.indices[1:]))
        return None

    return replace(loop, body=rewrite(loop.body, moved)) if scratch else loop
