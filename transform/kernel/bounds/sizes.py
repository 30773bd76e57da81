"""Sizes that a kernel reads from memory are numbers that it read once.

    B = T.alloc_buffer((X[0],))          n: T.let = X[0]
    X[0] = 100                      =>   B = T.alloc_buffer((n,))
    B[i] = ...                           X[0] = 100
                                         B[i] = ...                      i is held against what B has

A buffer has the sizes, the strides and the place that it was declared with. Where they are expressions that read
memory, an access would be held against what memory says then, so each is bound to a variable where the buffer is
declared, which also checks what it reads. Likewise the value of a store that calls a function is computed before the
place of the store is looked at: the function may write what the place is read from.

What a variable computes of memory, where an index uses it, is computed of variables: `k = X[0] * X[1]` says nothing of
`A[k % 8]` once X has changed, and whether the product fits 64 bits has to be known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from weft import dtypes
from weft.ir import Node, replace, rewrite
from weft.ir.kernel.prim import as_expr
from weft.ir.kernel.simplify import is_pure
from weft.ir.structure.visit import substitute, walk
from weft.ir.tensor import (
    LOGICAL,
    AllocBuffer,
    AssertStmt,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.index_analyzer import RING

__all__ = ["with_bound_sizes"]


def with_bound_sizes(function: PrimFunc) -> PrimFunc:
    """The function with variables for the sizes that buffers read from memory; itself when there are none."""
    indexed = frozenset(_computed_indices(function.body))
    if not indexed and not any(map(_needs, walk(function))):
        return function
    return replace(function, body=_Binder(indexed).run(function.body))


def _computed_indices(body: Stmt) -> Iterator[PrimVar]:
    """The variables that compute something of memory and that places, sizes or ranges use."""
    values = {part.var: part.value for part in walk(body) if isinstance(part, Bind)}
    if not any(map(_computes, values.values())):
        return
    left: list[Any] = [place for part in walk(body) for place in _places(part)]
    seen: set[PrimVar] = set()
    while left:
        place = left.pop()
        for var in walk(place) if isinstance(place, PrimExpr) else ():
            if isinstance(var, PrimVar) and var in values and var not in seen:
                seen.add(var)
                left.append(values[var])
                if _computes(values[var]):
                    yield var


def _computes(value: Any) -> bool:
    """Whether a whole number may leave 64 bits that is computed of what memory says: by a sum or a product."""
    if not isinstance(value, PrimExpr) or dtypes.lanes(value.dtype) != 1 or not dtypes.is_integer(value.dtype):
        return False
    sums = (part for part in walk(value) if isinstance(part, Binary) and part.kind in RING)
    return any(_reads((part.a, part.b)) for part in sums)


def _places(node: Node) -> tuple[Any, ...]:
    if isinstance(node, (BufferLoad, BufferStore)):
        return node.indices
    if isinstance(node, For):
        return node.start, node.extent
    if isinstance(node, (AllocBuffer, DeclBuffer)):
        return _layout(node.buffer)
    if isinstance(node, Block):
        return tuple(item.value for item in node.iter_vars)
    return ()


def _calls(node: Node) -> bool:
    """Whether a store computes its value by a call that may change where it goes."""
    if not isinstance(node, BufferStore) or is_pure(node.value):
        return False
    return _reads(node.indices) and dtypes.lanes(node.value.dtype) == 1


def _layout(buffer: Buffer) -> tuple[Any, ...]:
    return (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset)


def _reads(parts: tuple[Any, ...]) -> bool:
    return any(isinstance(part, PrimExpr) and any(isinstance(x, BufferLoad) for x in walk(part)) for part in parts)


def _reads_region(node: Node) -> bool:
    return isinstance(node, Block) and any(
        _reads((part.start, part.extent)) for match in node.match_buffers for part in match.source.region
    )


def _needs(node: Node) -> bool:
    return (isinstance(node, Buffer) and _reads(_layout(node))) or _reads_region(node) or _calls(node) or _mixes(node)


_VALUES = {Bind: "value", BufferStore: "value", Evaluate: "value", IfThenElse: "condition", AssertStmt: "condition"}


def _is_call(node: Node) -> bool:
    """Whether a part of an expression is a call that may write memory."""
    return isinstance(node, PrimCall) and not _is_lazy(node) and not is_pure(replace(node, args=()))


def _is_lazy(node: Node) -> bool:
    if isinstance(node, Binary):
        return node.kind in LOGICAL and dtypes.lanes(node.dtype) == 1
    return isinstance(node, Let) or (isinstance(node, PrimCall) and node.op in ("if_then_else", "address_of"))


def _mixes(node: Node) -> bool:
    """Whether an expression calls what may write memory, and reads a place that memory says."""
    value = getattr(node, _VALUES.get(type(node), ""), None)
    if not isinstance(value, PrimExpr) or is_pure(value):
        return False
    parts = list(walk(value))
    return any(map(_is_call, parts)) and any(isinstance(x, BufferLoad) and _reads(x.indices) for x in parts)


class _Binder:
    def __init__(self, indexed: frozenset[PrimVar]) -> None:
        self.numbers: Iterator[int] = itertools.count()
        self.indexed = indexed

    def run(self, body: Stmt) -> Stmt:
        return rewrite(body, self.post)

    def post(self, node: Node) -> Node | None:
        if isinstance(node, SeqStmt):
            return self.sequence(node)
        if isinstance(node, Block):
            return self.block(node)
        if isinstance(node, Stmt) and (_mixes(node) or (isinstance(node, Bind) and node.var in self.indexed)):
            name, binds = _VALUES[type(node)], list[Stmt]()
            new = replace(node, **{name: self.in_order(getattr(node, name), binds)})
            last = self.post(new) if isinstance(new, BufferStore) else None
            return SeqStmt((*binds, last if isinstance(last, Stmt) else new), span=node.span)
        if isinstance(node, BufferStore) and _calls(node):
            var = PrimVar(f"value_{next(self.numbers)}", node.value.dtype)
            return SeqStmt((Bind(var, node.value, span=node.span), replace(node, value=var)), span=node.span)
        return None

    def in_order(self, value: PrimExpr, binds: list[Stmt]) -> PrimExpr:
        """A value whose calls and loads are variables, bound in the order in which they are evaluated."""

        def stop(node: Node) -> Node | None:
            return node if isinstance(node, Buffer) or _is_lazy(node) else None

        def bound(node: Node) -> Node | None:
            call = _is_call(node) and node is not value
            if not (call or isinstance(node, BufferLoad)) or dtypes.lanes(node.dtype) != 1:  # type: ignore[union-attr]
                return None
            if node.dtype in ("void", "handle"):  # type: ignore[union-attr]
                return None
            var = PrimVar(f"value_{next(self.numbers)}", node.dtype)  # type: ignore[union-attr]
            binds.append(Bind(var, node, span=node.span))  # type: ignore[arg-type, union-attr]
            return var

        return rewrite(value, bound, pre=stop)

    def sequence(self, node: SeqStmt) -> Stmt | None:
        out: list[Stmt] = []
        rest = node
        for index in range(len(node.stmts)):
            stmt = rest.stmts[index]
            if isinstance(stmt, (AllocBuffer, DeclBuffer)) and _reads(_layout(stmt.buffer)):
                new = self.buffer(stmt.buffer, out, lambda expr: expr)
                rest = substitute(rest, {stmt.buffer: new})
                stmt = rest.stmts[index]
            out.append(stmt)
        return None if len(out) == len(node.stmts) else replace(node, stmts=tuple(out))

    def block(self, node: Block) -> Stmt | None:
        """A block: what its buffers and regions read is read before it, for the values of its variables."""
        binds: list[Stmt] = []
        values = {item.var: as_expr(item.value, item.var.dtype) for item in node.iter_vars if item.value is not None}

        def before(expr: PrimExpr) -> PrimExpr:
            expr = substitute(expr, values)
            if node.predicate is None:
                return expr
            test = substitute(node.predicate, values)
            return PrimCall("if_then_else", (test, expr, IntImm(0, expr.dtype)), expr.dtype)

        new = node
        for buffer in (*node.alloc_buffers, *(match.buffer for match in node.match_buffers)):
            if _reads(_layout(buffer)):
                new = substitute(new, {buffer: self.buffer(buffer, binds, before)})
        matches = []
        for match in new.match_buffers:
            region = tuple(self.range(item, binds, before) for item in match.source.region)
            matches.append(replace(match, source=replace(match.source, region=region)))
        if not binds:
            return None
        return SeqStmt((*binds, replace(new, match_buffers=tuple(matches))), span=node.span)

    def buffer(self, buffer: Buffer, binds: list[Stmt], before: Any) -> Buffer:
        """A buffer with the numbers that its layout says now."""
        name = f"{buffer.name}_size"
        shape = tuple(self.number(part, name, binds, before) for part in buffer.shape)
        strides = buffer.strides and tuple(self.number(part, name, binds, before) for part in buffer.strides)
        offset = self.number(buffer.elem_offset, name, binds, before)
        return replace(buffer, shape=shape, strides=strides, elem_offset=offset)

    def range(self, item: Range, binds: list[Stmt], before: Any) -> Range:
        """An axis of a region with the numbers that it says now."""
        ends = (self.number(part, "region", binds, before) for part in (item.start, item.extent))
        return Range(*ends, span=item.span) if _reads((item.start, item.extent)) else item

    def number(self, part: Any, name: str, binds: list[Stmt], before: Any) -> Any:
        if not _reads((part,)):
            return part
        var = PrimVar(f"{name}_{next(self.numbers)}", part.dtype)
        binds.append(Bind(var, before(part), span=part.span))
        return var
