"""Statements after which nothing runs, and those that may end before what follows them.

if i >= n: continue      what follows runs where i < n: so after break, return and T.thread_return
"""

from __future__ import annotations

from typing import Any

from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.structure.visit import inner_statements
from weft.ir.tensor import (
    AssertStmt,
    AttrStmt,
    Break,
    Continue,
    Evaluate,
    For,
    IfThenElse,
    PrimCall,
    Return,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["always_jumps", "is_loud", "leaves_early"]

_JUMPS = (Break, Continue, Return)


def always_jumps(stmt: Stmt) -> bool:
    """Whether nothing that follows a statement runs.

    >>> always_jumps(SeqStmt((Continue(),))), always_jumps(SeqStmt(()))
    (True, False)
    """
    if isinstance(stmt, SeqStmt):
        return any(map(always_jumps, stmt.stmts))
    if isinstance(stmt, IfThenElse):
        return stmt.else_body is not None and always_jumps(stmt.then_body) and always_jumps(stmt.else_body)
    if isinstance(stmt, AttrStmt):
        return always_jumps(stmt.body)
    return isinstance(stmt, _JUMPS) or _ends_thread(stmt)


def _ends_thread(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, PrimCall) and stmt.value.op == "thread_return"


def leaves_early(body: Stmt) -> bool:
    """Whether the body of a loop may leave that loop by a break; those of loops inside of it do not."""
    if isinstance(body, Break):
        return True
    if isinstance(body, (For, While)):
        return False
    return any(map(leaves_early, inner_statements(body)))


def is_loud(part: Any) -> bool:
    """Whether a node may end, raise what is not raised for bounds, or leave out what follows it."""
    if isinstance(part, AssertStmt):
        return part.kind != "BoundsError"
    if isinstance(part, PrimCall):
        entry = INTRINSICS.get(part.op) if isinstance(part.op, str) else None
        return entry is None or not entry.pure
    return isinstance(part, (While, *_JUMPS))
