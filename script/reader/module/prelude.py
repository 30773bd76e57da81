"""What may stand around the units of a text: imports of the namespaces, symbols, constants, macros."""

from __future__ import annotations

import ast
from dataclasses import replace

from weft.errors import WeftError
from weft.script.reader.definition import macro_of
from weft.script.reader.expression.names import dotted_name, dtype_name
from weft.script.reader.session import Session
from weft.script.source.diagnostics import fail
from weft.script.source.text import NAMESPACE_MODULES, Unit

__all__ = ["declare", "declare_macro", "import_names", "is_harmless"]


def is_harmless(tree: ast.stmt) -> bool:
    """Whether a statement says nothing: `pass`, or a text that documents."""
    return isinstance(tree, ast.Pass) or (isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant))


def import_names(unit: Unit, tree: ast.Import | ast.ImportFrom, *, strict: bool = True) -> None:
    """Take a prelude import as aliases; any other import is refused in a text that must be a script."""
    for alias in tree.names:
        if isinstance(tree, ast.ImportFrom):
            path = f"{tree.module or ''}.{alias.name}"
            known = (tree.module or "").split(".")[0] in ("weft", "tvm", "__future__", "typing", "typing_extensions")
        else:
            path = alias.name
            known = path.split(".")[0] in ("weft", "tvm", "numpy")
        space = NAMESPACE_MODULES.get(path)
        name = alias.asname or alias.name
        if space is not None and "." not in name:
            unit.aliases[name] = space
        elif not known and strict:
            raise fail("W104", f"`import {path}` has no meaning in a text: nothing is imported", unit.span(tree))


def declare_macro(session: Session, tree: ast.FunctionDef) -> bool:
    """Note a macro that is defined outside functions; whether the definition is one."""
    macro = macro_of(session, tree)
    if macro is None:
        return False
    session.unit.constants[tree.name] = replace(macro, scope=None)
    return True


def declare(session: Session, tree: ast.stmt, *, strict: bool = True) -> bool:
    """`n = T.int64()`, `n = TypeVar("n")` and `N = 4` outside functions."""
    if not (isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name)):
        return False
    name = tree.targets[0].id
    value = tree.value
    if isinstance(value, ast.Call):
        called = dotted_name(session, value.func) or (value.func.id if isinstance(value.func, ast.Name) else "")
        dtype = dtype_name(called) if not value.args and not value.keywords else None
        is_type_variable = called in ("TypeVar", "T.TypeVar", "I.TypeVar", "R.TypeVar")
        if is_type_variable and not value.args:
            raise fail("W113", f"{called} takes the name of the symbol", session.span(value), f'{called}("{name}")')
        if is_type_variable or dtype is not None:
            session.unit.symbols[name] = dtype or "int64"
            return True
    try:
        made = session.value(value)
    except WeftError:
        if strict:
            raise
        return False
    if session.known(made, value):
        session.unit.constants[name] = made
        return True
    return False
