"""StorageRewrite: buffers of a kernel's own that are never needed together share memory.

    a = T.alloc_buffer((64,))           a = T.alloc_buffer((64,))
    b = T.alloc_buffer((32,))           ... last use of a
    ... last use of a                   ... a in place of b
    ... first use of b

Two buffers of one sequence share where the last statement that uses one comes before the first that uses the other: of
one dtype and scope, and of equal shape, or both of one dimension and constant size. What is passed on, viewed or
matched keeps memory of its own. Code generators see fewer allocations; results are the same.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, structural_equal, walk
from weft.ir.tensor import AllocBuffer, Buffer, PrimFunc, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.buffers.compact_buffer_allocation import is_passed_on

__all__ = ["StorageRewrite"]


@dataclass(frozen=True)
class StorageRewrite(FunctionPass):
    """Share memory between the buffers of kernels."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with fewer buffers; the same object when none can share."""
        while (pair := _pair(function)) is not None:
            function = _joined(function, *pair)
        return function


@dataclass(frozen=True)
class _Life:
    """A buffer, and the statements of its sequence in which it is used first and last."""

    buffer: Buffer
    first: int
    last: int


def _pair(function: PrimFunc) -> tuple[SeqStmt, Buffer, Buffer] | None:
    """A sequence, a buffer of it, and one that may take its memory."""
    for sequence in [part for part in walk(function.body) if isinstance(part, SeqStmt)]:
        lives = [life for life in _lives(sequence) if not is_passed_on(function, life.buffer)]
        for early in lives:
            for late in lives:
                if early.last < late.first and _may_share(early.buffer, late.buffer):
                    return sequence, early.buffer, late.buffer
    return None


def _lives(sequence: SeqStmt) -> list[_Life]:
    found: list[_Life] = []
    for stmt in sequence.stmts:
        if isinstance(stmt, AllocBuffer) and not stmt.annotations:
            uses = [i for i, part in enumerate(sequence.stmts) if part is not stmt and _uses(part, stmt.buffer)]
            if uses:
                found.append(_Life(stmt.buffer, uses[0], uses[-1]))
    return found


def _uses(stmt: Stmt, buffer: Buffer) -> bool:
    return any(part is buffer for part in walk(stmt))


def _may_share(a: Buffer, b: Buffer) -> bool:
    plain = all(x.strides is None and x.data is None and x.elem_offset is None for x in (a, b))
    if not plain or (a.dtype, a.scope, a.axis_separators) != (b.dtype, b.scope, b.axis_separators):
        return False
    flat = a.ndim == b.ndim == 1 and isinstance(a.shape[0], int) and isinstance(b.shape[0], int)
    return flat or (a.ndim == b.ndim and all(map(structural_equal, a.shape, b.shape)))


def _joined(function: PrimFunc, sequence: SeqStmt, early: Buffer, late: Buffer) -> PrimFunc:
    """The function with one buffer for two, as large as the larger one and as much aligned."""
    larger = late if early.ndim == 1 and _size(late) > _size(early) else early
    both = replace(early, shape=larger.shape, align=max(early.align, late.align))
    allocated = [stmt.buffer if isinstance(stmt, AllocBuffer) else None for stmt in sequence.stmts]
    places = [i for i, buffer in enumerate(allocated) if buffer is early or buffer is late]

    def moved(node: Node) -> Node | None:
        return both if node is early or node is late else None

    stmts = [stmt for i, stmt in enumerate(sequence.stmts) if i != places[1]]
    new = replace(sequence, stmts=tuple(rewrite(stmt, pre=moved) for stmt in stmts))
    return rewrite(function, pre=lambda node: new if node is sequence else None)


def _size(buffer: Buffer) -> int:
    return buffer.shape[0] if isinstance(buffer.shape[0], int) else 0
