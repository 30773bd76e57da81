"""Reading calls: of forms, of what is known while reading, of Python functions that scripts know."""

from __future__ import annotations

import ast
from typing import Any

from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import TYPES
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.python_functions import call_python_function
from weft.script.reader.expression.static import call_static
from weft.script.reader.expression.types import type_call
from weft.script.reader.session import Session
from weft.script.source.budget import OPERATION
from weft.script.source.text import MISSING

__all__ = ["call_form", "refuse_call"]


@COMMON.tree(ast.Call)
def _call(session: Session, tree: ast.Call) -> Any:
    name = dotted_name(session, tree.func)
    if name is not None:
        return session.level.call_named(session, name, tree)
    found = call_static(session, tree)
    if found is not MISSING:
        return found
    if isinstance(tree.func, ast.Name) and session.scope.get(tree.func.id) is MISSING:
        found = call_python_function(session, tree.func.id, tree)
        if found is not MISSING:
            return found
    return session.level.call_other(session, tree)


def call_form(session: Session, name: str, tree: ast.Call) -> Any:
    """A call of a name of I, R or T."""
    session.unit.charge(OPERATION, tree)
    if name in TYPES:
        return type_call(session, name, tree)
    read = COMMON.value.get(name)
    if read is not None:
        return read(session, tree)
    raise session.level.unknown(session, name, tree.func)


def refuse_call(session: Session, tree: ast.Call) -> Any:
    """A call of anything else."""
    if isinstance(tree.func, ast.Name):
        session.level.lookup(session, tree.func.id, tree.func)
    raise session.fail("W115", f"`{ast.unparse(tree.func)[:60]}` cannot be called in a script", tree.func)
