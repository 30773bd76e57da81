"""CommonSubexprElim: what a kernel computes more than once is computed once and bound to a name.

    y[i * 8 + j] = x[i * 8 + j]         cse_v = i * 8 + j
                                        y[cse_v] = x[cse_v]

A value is bound before the first statement that needs it, in the innermost sequence that holds all of its uses. Only
what depends on variables alone is shared: what reads memory may change, and what may fail stays behind its conditions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from weft import dtypes
from weft.ir import IRModule, Node, replace, rewrite, structural_equal, structural_hash, walk
from weft.ir.structure.visit import children
from weft.ir.tensor import (
    AttrStmt,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferRegion,
    For,
    IfThenElse,
    Let,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.scalars.normal_form import size_of
from weft.transform.kernel.scalars.rewrite_unsafe_select import may_fail

__all__ = ["CommonSubexprElim"]

_LEAST = 3


@dataclass(frozen=True)
class CommonSubexprElim(FunctionPass):
    """Bind what is computed more than once to a name."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    name_of_values: str = "cse_v"

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with shared values; the same object when it computes nothing twice."""
        return replace(function, body=_Sharing(self.name_of_values).scope(function.body))


@dataclass
class _Value:
    """A value that occurs, the statements of a sequence in which it does, and how often."""

    expr: PrimExpr
    places: list[int]
    count: int = 0


class _Sharing:
    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def scope(self, body: Stmt) -> Stmt:
        """A body of its own: values are shared in it, then in what is inside."""
        stmts = list(body.stmts) if isinstance(body, SeqStmt) else [body]
        while (found := _shared(stmts)) is not None:
            self.count += 1
            name = self.name if self.count == 1 else f"{self.name}_{self.count}"
            var = PrimVar(name, found.expr.dtype)
            first = min(found.places)
            stmts[first:] = [_with_name(stmt, found.expr, var) for stmt in stmts[first:]]
            stmts.insert(first, Bind(var, found.expr))
        new = [self.inside(stmt) for stmt in stmts]
        old = body.stmts if isinstance(body, SeqStmt) else (body,)
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return body
        return new[0] if len(new) == 1 else SeqStmt(tuple(new), span=body.span)  # type: ignore[attr-defined]

    def inside(self, stmt: Stmt) -> Stmt:
        """A statement with the scopes in it done."""
        if isinstance(stmt, (For, While, AttrStmt)):
            return replace(stmt, body=self.scope(stmt.body))
        if isinstance(stmt, Block):
            init = None if stmt.init is None else self.scope(stmt.init)
            return replace(stmt, body=self.scope(stmt.body), init=init)
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_body is None else self.scope(stmt.else_body)
            return replace(stmt, then_body=self.scope(stmt.then_body), else_body=other)
        return stmt


def _shared(stmts: list[Stmt]) -> _Value | None:
    """The largest value that occurs twice among statements, and not in one body inside of them alone."""
    values: dict[int, list[_Value]] = {}
    for place, stmt in enumerate(stmts):
        for slot in _slots(stmt):
            bound = _bound(slot)
            seen: set[int] = set()
            for expr in _candidates(slot):
                if not bound.isdisjoint(walk(expr)):
                    continue
                value = _entry(values, expr)
                if not isinstance(slot, Stmt) or id(value) not in seen:  # a body counts once
                    value.count += 1
                    seen.add(id(value))
                    value.places.append(place)
    repeated = [value for group in values.values() for value in group if value.count > 1]
    return max(repeated, key=lambda value: size_of(value.expr), default=None)


def _entry(values: dict[int, list[_Value]], expr: PrimExpr) -> _Value:
    group = values.setdefault(structural_hash(expr), [])
    for value in group:
        if structural_equal(value.expr, expr):
            return value
    group.append(_Value(expr, []))
    return group[-1]


def _slots(stmt: Stmt) -> Iterator[Node]:
    """The expressions that a statement evaluates itself, and the bodies in it."""
    for child in children(stmt, types=False):
        if isinstance(child, (Stmt, PrimExpr)):
            yield child
        elif isinstance(child, Node) and not isinstance(child, (Buffer, BufferRegion, MatchBufferRegion)):
            yield from (part for part in children(child, types=False) if isinstance(part, PrimExpr))


def _bound(slot: Node) -> set[Node]:
    """The variables that are bound in a body or an expression."""
    found: set[Node] = set()
    for part in walk(slot):
        if isinstance(part, For):
            found.add(part.loop_var)
        elif isinstance(part, (Bind, Let)):
            found.add(part.var)
        elif isinstance(part, Block):
            found.update(item.var for item in part.iter_vars)
            found.update(_sizes(part))
        elif isinstance(part, AttrStmt) and isinstance(part.node, Node):
            found.update(child for child in walk(part.node) if isinstance(child, PrimVar))
    return found


def _sizes(block: Block) -> Iterator[PrimVar]:
    """The variables that matched buffers give a value to."""
    for match in block.match_buffers:
        for extent in (*match.buffer.shape, *(match.buffer.strides or ()), match.buffer.elem_offset):
            if isinstance(extent, PrimVar):
                yield extent


def _candidates(root: Node) -> Iterator[PrimExpr]:
    """The expressions in a tree that may be computed at another place."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, (Buffer, BufferRegion, MatchBufferRegion)):
            continue
        if _is_candidate(node):
            yield node
        stack.extend(children(node, types=False))


def _is_candidate(node: Node) -> bool:
    compound = isinstance(node, (Binary, Select)) or (isinstance(node, PrimCall) and node.op != "likely")
    if not compound or dtypes.lanes(node.dtype) > 1 or node.dtype in ("handle", "void"):  # type: ignore[attr-defined]
        return False
    return size_of(node) >= _LEAST and not may_fail(node)  # type: ignore[arg-type]


def _with_name(stmt: Stmt, expr: PrimExpr, var: PrimVar) -> Stmt:
    """A statement with a name in place of a value."""
    key = structural_hash(expr)

    def named(node: Node) -> Node | None:
        if isinstance(node, (Buffer, BufferRegion, MatchBufferRegion)):
            return node
        same = isinstance(node, type(expr)) and structural_hash(node) == key and structural_equal(node, expr)
        return var if same else None

    return rewrite(stmt, pre=named)
