"""PlanAndUpdateBufferAllocationLocation: each buffer is allocated by the innermost block or loop that holds its uses.

    t = T.alloc_buffer((64, 8))                 for i in range(64):
    for i in range(64):                             t = T.alloc_buffer((64, 8))
        for j in range(8): t[i, j] = ...            for j in range(8): t[i, j] = ...
        for j in range(8): y[i, j] = t[i, j]        for j in range(8): y[i, j] = t[i, j]

An allocation moves into a loop where each iteration is proved to read only what it wrote itself
(`weft.transform.analysis.written`); `CompactBufferAllocation` then makes it as small as an iteration needs. Under a
loop a block without variables holds the allocation, so that it stands in the text of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.tensor import AllocBuffer, Block, Buffer, For, PrimExpr, PrimFunc, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.analysis.written import unproved_reads
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = ["PlanAndUpdateBufferAllocationLocation"]


@dataclass(frozen=True)
class PlanAndUpdateBufferAllocationLocation(FunctionPass):
    """Allocate the buffers of blocks where they are used."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with its allocations further inside; the same object when none moves."""
        blocks = [part for part in walk(function.body) if isinstance(part, Block)]
        own = _own(function.body) if blocks else ()
        for buffer in (*own, *(buffer for block in blocks for buffer in block.alloc_buffers)):
            function = _moved(function, buffer)
        return function


def _own(body: Stmt) -> tuple[Buffer, ...]:
    """What the outermost sequence of a function allocates."""
    stmts = body.stmts if isinstance(body, SeqStmt) else ()
    return tuple(stmt.buffer for stmt in stmts if isinstance(stmt, AllocBuffer))


def _moved(function: PrimFunc, buffer: Buffer) -> PrimFunc:
    """The function with one buffer allocated in the innermost loop that may have it."""
    owner: Stmt = function.body
    if buffer not in _own(owner):
        owner = next(part for part in walk(owner) if isinstance(part, Block) and buffer in part.alloc_buffers)
    for place in reversed(list(_places(owner, buffer))):
        new = _at(function, owner, buffer, place)
        if not _reads_more(function, new, buffer):
            return new
    return function


def _places(owner: Stmt, buffer: Buffer) -> Iterator[Stmt]:
    """The blocks and loops below an owner that hold every use of a buffer of its, outermost first."""
    stmt: Stmt = owner.body if isinstance(owner, Block) else owner
    while True:
        if isinstance(stmt, SeqStmt):
            users = [part for part in stmt.stmts if buffer in walk(part) and not isinstance(part, AllocBuffer)]
            if len(users) != 1:
                return
            stmt = users[0]
        if isinstance(stmt, For) and stmt.kind != "thread_binding":
            if _sizes_vary(stmt, buffer) or stmt.kind == "vectorized":
                return
            yield stmt
        elif isinstance(stmt, Block):
            if stmt.iter_vars or stmt.init is not None or stmt.match_buffers or stmt.predicate is not None:
                return
            yield stmt
        else:
            return
        stmt = stmt.body


def _sizes_vary(loop: For, buffer: Buffer) -> bool:
    """Whether the bounds of a loop read the buffer."""
    return any(isinstance(part, PrimExpr) and buffer in walk(part) for part in (loop.start, loop.extent, loop.step))


def _at(function: PrimFunc, owner: Stmt, buffer: Buffer, place: Stmt) -> PrimFunc:
    def moved(node: Node) -> Node | None:
        if node is place and isinstance(place, Block):
            return replace(place, alloc_buffers=(*place.alloc_buffers, buffer))
        if node is place and isinstance(place, For):
            inner = place.body
            if isinstance(inner, Block) and not inner.iter_vars and inner.init is None and inner.predicate is None:
                return replace(place, body=replace(inner, alloc_buffers=(*inner.alloc_buffers, buffer)))
            return replace(place, body=Block("", inner, alloc_buffers=(buffer,), span=inner.span))
        return None

    if isinstance(owner, SeqStmt):
        kept = [stmt for stmt in owner.stmts if not (isinstance(stmt, AllocBuffer) and stmt.buffer is buffer)]
        rest = [rewrite(stmt, pre=moved) for stmt in kept]
        return replace(function, body=rest[0] if len(rest) == 1 else replace(owner, stmts=tuple(rest)))
    assert isinstance(owner, Block)
    inside = rewrite(owner.body, pre=moved)
    others = tuple(item for item in owner.alloc_buffers if item is not buffer)
    new = replace(owner, alloc_buffers=others, body=inside)
    return rewrite(function, pre=lambda node: new if node is owner else None)


def _reads_more(old: PrimFunc, new: PrimFunc, buffer: Buffer) -> bool:
    """Whether a read of the buffer is not proved to see what was written, where the buffer is new."""
    found = unproved_reads(lower_blocks(new))
    allocated = {part.buffer for part in walk(lower_blocks(new).body) if isinstance(part, AllocBuffer)}
    return buffer in found.read or buffer in found.opaque or buffer not in allocated
