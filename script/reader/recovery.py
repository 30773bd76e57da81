"""Going on after an error, where all errors of a text are gathered (`Unit.findings`).

    statement ::= a statement of a function, a parameter, a member of a module

A statement that cannot be read is noted and left out, and the names that it binds are unread from then on: what uses
them is a `Consequence`, which is not reported. A text with findings gives no module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Protocol, TypeVar

from weft.errors import WeftError
from weft.script.reader.scope import UNREAD, Scope
from weft.script.source.text import Unit

__all__ = ["attempt"]

_Result = TypeVar("_Result")


class _Reader(Protocol):
    unit: Unit
    scope: Scope
    symbols: set[str]
    expanding: int


def attempt(reader: _Reader, tree: ast.AST, read: Callable[[], _Result]) -> _Result | None:
    """What reading a statement gives; None where it is wrong and errors are gathered, elsewhere the error is raised."""
    if reader.unit.findings is None or reader.expanding:  # a macro fails as a whole, at its call
        return read()
    state = dict(vars(reader))
    try:
        return read()
    except WeftError as error:
        if not reader.unit.note(error):
            raise
        vars(reader).clear()
        vars(reader).update(state)
        _leave_out(reader, tree)
        return None


def _leave_out(reader: _Reader, tree: ast.AST) -> None:
    """Mark what a statement binds as unread; symbols that it may define are taken as defined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            reader.scope.names[node.id] = UNREAD
        elif isinstance(node, ast.FunctionDef):
            reader.scope.names[node.name] = UNREAD
        elif isinstance(node, ast.arg) and node is tree:
            reader.scope.names[node.arg] = UNREAD
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            reader.symbols.add(node.value)
