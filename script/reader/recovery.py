"""Going on after an error, where all errors of a text are gathered (`Unit.findings`).

    statement ::= a statement of a function, a parameter, a member of a module

A statement that cannot be read is noted and left out, and the names that it binds are unread from then on: what uses
them is a `Consequence`, which is not reported. A text with findings gives no module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from weft.errors import WeftError
from weft.script.reader.scope import UNREAD
from weft.script.reader.session import Session

__all__ = ["attempt"]

_Result = TypeVar("_Result")


def attempt(session: Session, tree: ast.AST, read: Callable[[], _Result]) -> _Result | None:
    """What reading a statement gives; None where it is wrong and errors are gathered, elsewhere the error is raised."""
    if session.unit.findings is None or session.expanding:  # a macro fails as a whole, at its call
        return read()
    state = dict(vars(session))
    try:
        return read()
    except WeftError as error:
        if not session.unit.note(error):
            raise
        vars(session).clear()
        vars(session).update(state)
        _leave_out(session, tree)
        return None


def _leave_out(session: Session, tree: ast.AST) -> None:
    """Mark what a statement binds as unread; symbols that it may define are taken as defined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            session.scope.names[node.id] = UNREAD
        elif isinstance(node, ast.FunctionDef):
            session.scope.names[node.name] = UNREAD
        elif isinstance(node, ast.arg) and node is tree:
            session.scope.names[node.arg] = UNREAD
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            session.symbols.add(node.value)
