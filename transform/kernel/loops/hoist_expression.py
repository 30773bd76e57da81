"""HoistExpression: conditions and values that a loop does not change are evaluated before it.

    for i in range(n):                      if m > 0:
        k = m * 8                               k = m * 8
        if m > 0: y[i] = x[k + i]               for i in range(n): y[i] = x[k + i]

A condition moves out where it is all that the loop does; with an `else`, there is a loop in each branch, and without
one the parts of a conjunction move out that the loop does not change. A bound value moves out from the start of a
loop's body. What reads memory, or may fail, stays where it is. `HoistIfThenElse` moves whole conditions alone.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.tensor import AttrStmt, Bind, Block, For, IfThenElse, PrimCall, PrimExpr, PrimFunc, PrimVar, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import conjunction
from weft.transform.analysis.loops.points import conjuncts
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.own_names import with_own_names
from weft.transform.kernel.scalars.rewrite_unsafe_select import may_fail

__all__ = ["HoistExpression", "hoisted"]


@dataclass(frozen=True)
class HoistExpression(FunctionPass):
    """Evaluate conditions and values before the loops that do not change them."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    conditions: bool = True
    bindings: bool = True
    expressions: bool = True

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with less inside of its loops; the same object when nothing moves."""
        return hoisted(function, conditions=self.conditions, bindings=self.bindings, expressions=self.expressions)


def hoisted(function: PrimFunc, *, conditions: bool, bindings: bool, expressions: bool = False) -> PrimFunc:
    """A function with conditions of statements, bound values, and conditions of expressions before loops."""

    def moved(node: Node) -> Node | None:
        if not isinstance(node, For):
            return None
        values: list[Stmt] = []
        loop = node
        if bindings:
            values, loop = _values(node)
        new = _outside(loop, function, expressions) if conditions else None
        if new is None and expressions:
            new = _chosen(loop, function)
        if not values and new is None:
            return None
        return SeqStmt((*values, loop if new is None else new), span=node.span) if values else new

    return rewrite(function, moved)


def _values(loop: For) -> tuple[list[Stmt], For]:
    """The values that the body binds first and that the loop does not change, and the loop without them."""
    stmts = loop.body.stmts if isinstance(loop.body, SeqStmt) else ()
    moved: list[Stmt] = []
    for stmt in stmts:
        if not isinstance(stmt, Bind) or not _is_free(stmt.value, loop):
            break
        moved.append(stmt)
    rest = stmts[len(moved) :]
    if not moved:
        return [], loop
    return moved, replace(loop, body=rest[0] if len(rest) == 1 else SeqStmt(rest, span=loop.body.span))  # type: ignore[attr-defined]


def _outside(loop: For, function: PrimFunc, in_parts: bool) -> Stmt | None:
    """The condition that is all that a loop does, with the loop in its branches; parts of it where there is no else."""
    inner = loop.body
    if not isinstance(inner, IfThenElse):
        return None
    if _is_free(inner.condition, loop):
        return _branches(loop, inner.condition, inner.then_body, inner.else_body, function)
    parts = conjuncts(inner.condition) if in_parts and inner.else_body is None else []
    free = [part for part in parts if _is_free(part, loop)]
    if not free:
        return None
    rest = conjunction(part for part in parts if part not in free)
    return IfThenElse(conjunction(free), replace(loop, body=replace(inner, condition=rest)), None, span=loop.span)


def _branches(loop: For, condition: PrimExpr, first: Stmt, second: Stmt | None, function: PrimFunc) -> Stmt:
    other = None if second is None else with_own_names(replace(loop, body=second), function)
    return IfThenElse(condition, replace(loop, body=first), other, span=loop.span)


def _chosen(loop: For, function: PrimFunc) -> Stmt | None:
    """A loop for each value of a condition in the expressions of its body."""
    if loop.kind == "thread_binding":
        return None
    inner = {part.loop_var for part in walk(loop) if isinstance(part, For)}
    for part in walk(loop.body):
        if isinstance(part, PrimCall) and part.op == "if_then_else" and isinstance(part.args[0], PrimExpr):
            condition = part.args[0]
            if _is_free(condition, loop) and inner.isdisjoint(walk(condition)) and not _binds(loop, condition):
                first, second = (_decided(loop.body, condition, side) for side in (1, 2))
                return _branches(loop, condition, first, second, function)
    return None


def _decided(body: Stmt, condition: PrimExpr, side: int) -> Stmt:
    """A body with what is chosen where a condition holds (1) or does not (2)."""

    def chosen(node: Node) -> Node | None:
        same = isinstance(node, PrimCall) and node.op == "if_then_else" and node.args[0] is condition
        return node.args[side] if same else None  # type: ignore[attr-defined]

    return rewrite(body, chosen)


def _binds(loop: For, condition: PrimExpr) -> bool:
    """Whether something inside of a loop gives a value to a variable of a condition."""
    used = {part for part in walk(condition) if isinstance(part, PrimVar)}
    for part in walk(loop):
        if isinstance(part, Bind) and part.var in used:
            return True
        if isinstance(part, Block) and (used & {item.var for item in part.iter_vars} or part.match_buffers):
            return True
        if isinstance(part, AttrStmt) and isinstance(part.node, Node) and not used.isdisjoint(walk(part.node)):
            return True
    return False


def _is_free(value: PrimExpr, loop: For) -> bool:
    """Whether a value is the same in all iterations, and may be evaluated where none runs."""
    return not may_fail(value) and loop.loop_var not in walk(value)
