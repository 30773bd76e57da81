"""RemoveNoOp: statements that change nothing are dropped.

    for i in range(n): T.evaluate(0)        nothing: a loop, condition or block around nothing
    for i in range(0): y[i] = x[i]          nothing
    y[i] = y[i]                             nothing
    k = i * 8; y[i] = x[i]                  y[i] = x[i]: what is bound and never used
    t = T.alloc_buffer((8,)); t[0] = x[0]   nothing: memory of the kernel's own that nobody reads

What may have an effect, jump, or end the program stays, and so does memory whose address is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, structural_equal, walk
from weft.ir.kernel.simplify import is_pure
from weft.ir.tensor import (
    AllocBuffer,
    AttrStmt,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import negated
from weft.transform.infra.base import FunctionPass

__all__ = ["RemoveNoOp", "without_empty"]


@dataclass(frozen=True)
class RemoveNoOp(FunctionPass):
    """Drop the statements of kernels that change nothing."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without them; the same object when it has none."""
        while True:
            used = _used(function)
            unread = _unread(function)
            new = rewrite(function, lambda node, used=used, unread=unread: _dropped(node, used, unread))
            if new is function:
                return function
            function = new


def _used(function: PrimFunc) -> set[PrimVar]:
    """The variables that occur more often than they are bound."""
    found: Counter[PrimVar] = Counter()
    for node in walk(function):
        if isinstance(node, PrimVar):
            found[node] += 1
        elif isinstance(node, Bind):
            found[node.var] -= 1
    return {var for var, count in found.items() if count > 0}


def _unread(function: PrimFunc) -> set[Buffer]:
    """The buffers that the kernel makes, stores into, and uses in no other way."""
    own: set[Buffer] = set()
    other: set[Buffer] = set()
    for node in walk(function.body):
        if isinstance(node, AllocBuffer):
            own.add(node.buffer)
        elif isinstance(node, Block):
            own.update(node.alloc_buffers)
            if node.annotations:
                other.update(part for value in node.annotations.values() for part in _buffers(value))
        elif isinstance(node, BufferLoad) or (isinstance(node, BufferStore) and _has_effects(node)):
            other.add(node.buffer)
        elif isinstance(node, PrimCall):
            other.update(arg for arg in node.args if isinstance(arg, Buffer))
        elif isinstance(node, MatchBufferRegion):
            other.add(node.source.buffer)
        elif isinstance(node, AttrStmt):
            other.update(_buffers(node.node))
        elif isinstance(node, DeclBuffer):
            other.update(part for part in walk(node.buffer) if isinstance(part, Buffer))
        elif isinstance(node, Buffer) and node.data is not None:
            other.update(part for part in walk(node.data) if isinstance(part, Buffer))
    return own - other


def _buffers(value: object) -> list[Buffer]:
    return [part for part in walk(value) if isinstance(part, Buffer)] if isinstance(value, Node) else []


def _dropped(node: Node, used: Set[PrimVar], unread: Set[Buffer]) -> Node | None:
    if isinstance(node, Bind) and node.var not in used and is_pure(node.value):
        return SeqStmt((), span=node.span)
    if isinstance(node, BufferStore) and _is_vain(node, unread):
        return SeqStmt((), span=node.span)
    if isinstance(node, AllocBuffer) and node.buffer in unread:
        return SeqStmt((), span=node.span)
    if isinstance(node, Block) and not unread.isdisjoint(node.alloc_buffers):
        node = replace(
            node,
            alloc_buffers=tuple(buffer for buffer in node.alloc_buffers if buffer not in unread),
            reads=_without(node.reads, unread),
            writes=_without(node.writes, unread),
        )
        return without_empty(node) or node
    if isinstance(node, Block) and (node.reads or node.writes):
        reads, writes = _without(node.reads, unread), _without(node.writes, unread)
        if reads != node.reads or writes != node.writes:
            return replace(node, reads=reads, writes=writes)
    return without_empty(node)


def _without(regions: tuple[BufferRegion, ...] | None, unread: Set[Buffer]) -> tuple[BufferRegion, ...] | None:
    if regions is None or all(region.buffer not in unread for region in regions):
        return regions
    return tuple(region for region in regions if region.buffer not in unread)


def _has_effects(store: BufferStore) -> bool:
    """Whether a store does more than to store."""
    parts = (store.value, *store.indices, *(() if store.predicate is None else (store.predicate,)))
    return not all(map(is_pure, parts))


def _is_vain(store: BufferStore, unread: Set[Buffer]) -> bool:
    if _has_effects(store):
        return False
    if store.buffer in unread:
        return True
    load = store.value
    if not isinstance(load, BufferLoad) or load.buffer is not store.buffer or load.predicate is not None:
        return False
    return len(load.indices) == len(store.indices) and all(map(structural_equal, load.indices, store.indices))


def without_empty(node: Node) -> Node | None:
    """What is left of a statement around nothing; None where it stays."""
    if isinstance(node, SeqStmt):
        kept = tuple(stmt for stmt in node.stmts if not _is_empty(stmt))
        return kept[0] if len(kept) == 1 else None if len(kept) == len(node.stmts) else replace(node, stmts=kept)
    if isinstance(node, IfThenElse):
        return _condition(node)
    if isinstance(node, Evaluate) and isinstance(node.value, PrimExpr) and is_pure(node.value):
        return SeqStmt((), span=node.span)
    if isinstance(node, For) and isinstance(node.extent, int) and node.extent <= 0 and _costs_nothing(node.start):
        return SeqStmt((), span=node.span)
    if isinstance(node, For) and _is_empty(node.body) and node.kind != "thread_binding":
        return node.body if all(map(_costs_nothing, (node.start, node.extent, node.step))) else None
    if isinstance(node, Block) and _is_empty(node.body) and (node.init is None or _is_empty(node.init)):
        guards = (node.predicate, *(item.value for item in node.iter_vars))
        return SeqStmt((), span=node.span) if all(map(_costs_nothing, guards)) and not node.annotations else None
    return None


def _condition(node: IfThenElse) -> Stmt | None:
    if node.else_body is not None and _is_empty(node.else_body):
        node = replace(node, else_body=None)
    elif not _is_empty(node.then_body):
        return None
    if not _is_empty(node.then_body):
        return node
    if node.else_body is not None:
        return IfThenElse(negated(node.condition), node.else_body, span=node.span)
    return SeqStmt((), span=node.span) if is_pure(node.condition) else Evaluate(node.condition, span=node.span)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, SeqStmt) and not stmt.stmts


def _costs_nothing(value: object) -> bool:
    return not isinstance(value, PrimExpr) or is_pure(value)
