"""Reading the statements of a block, in order, each by its row."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FunctionType
from typing import Any

from weft.ir.tensor import SeqStmt, Stmt
from weft.script.forms.reading import TENSOR
from weft.script.reader.recovery import attempt
from weft.script.reader.scope import Scope
from weft.script.reader.tensor.session import TensorSession

__all__ = ["nested_one", "read_body", "read_nested", "read_statements", "statement_list"]

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def read_body(session: TensorSession, trees: Sequence[ast.stmt], *, top: bool = False) -> Stmt:
    """The statements of a block as one statement."""
    stmts = read_statements(session, trees, top=top)
    return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))


def read_statements(session: TensorSession, trees: Sequence[ast.stmt], *, top: bool = False) -> list[Stmt]:
    """Statements in order; statement-form T.attr and T.launch_thread take the rest of the block as their body."""
    result: list[Stmt] = []
    for position, tree in enumerate(trees):
        if position == 0 and top and _is_docstring(tree):
            continue
        before, session.pending = session.pending, [] if isinstance(tree, _SIMPLE) else None
        views, session.views = session.views, []
        made: Any = attempt(session, tree, lambda tree=tree: _statement(session, tree))
        result.extend((*session.views, *(session.pending or ())))
        session.pending, session.views = before, views
        if isinstance(made, FunctionType):  # a scope that reaches to the end of the block
            result.append(made(read_body(session, trees[position + 1 :])))
            return result
        if isinstance(made, list):
            result.extend(made)
        elif made is not None:
            result.append(made)
    return result


def _statement(session: TensorSession, tree: ast.stmt) -> Any:
    read = TENSOR.tree.get(type(tree))
    if read is None:
        raise session.unsupported(tree)
    return read(session, tree)


def statement_list(session: TensorSession, trees: Sequence[ast.stmt]) -> list[Any]:
    """Statements in order."""
    return list(read_statements(session, trees))


def read_nested(session: TensorSession, trees: Sequence[ast.stmt]) -> list[Stmt]:
    """The statements of an inner block, with a scope of their own."""
    saved, session.scope = session.scope, Scope(session.scope)
    block, session.block = session.block, None
    try:
        return read_statements(session, trees)
    finally:
        session.scope, session.block = saved, block


def nested_one(session: TensorSession, trees: Sequence[ast.stmt]) -> Stmt:
    """The statements of an inner block as one."""
    return _as_one(read_nested(session, trees))


def _as_one(stmts: list[Stmt]) -> Stmt:
    return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))


def _is_docstring(tree: ast.stmt) -> bool:
    return isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant) and isinstance(tree.value.value, str)
