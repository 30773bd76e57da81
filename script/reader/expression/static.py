"""Calls of what is known while reading: macros, lambdas, methods of containers, Python functions of the program."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weft.errors import WeftError
from weft.ir.dim import DimExpr
from weft.ir.node import FrozenMap, Node
from weft.ir.op import OpDef
from weft.script.reader.expression.arguments import static_arguments
from weft.script.reader.expression.expansion import as_lambda, expand_macro
from weft.script.reader.expression.names import adapt, item_of_path
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Called, ModuleScope, is_plain
from weft.script.reader.session import Session
from weft.script.source.text import MISSING

__all__ = ["call_static", "counted", "nothing_instead", "run_python", "static_path"]

_METHODS_OF_DICTS = ("get", "items", "keys", "values")


def call_static(session: Session, tree: ast.Call) -> Any:
    """A call of a macro, a lambda, or (in decorated scripts) of a Python function; MISSING for any other."""
    found = as_lambda(session, tree.func) if isinstance(tree.func, ast.Lambda) else static_path(session, tree.func)
    if isinstance(found, Macro):
        return expand_macro(session, found, tree)
    if isinstance(tree.func, ast.Attribute):
        made = _method_of_container(session, tree.func, tree)
        if made is not MISSING:
            return made
    if isinstance(found, Called):
        return session.level.call_named(session, found.name, tree)
    if found is MISSING or session.unit.captured is None or isinstance(found, (Node, ModuleScope)):
        return MISSING
    if hasattr(found, "__weft_dtype__"):
        return session.level.call_named(session, f"T.{found.__weft_dtype__}", tree)
    if isinstance(found, OpDef):
        return session.level.call_named(session, f"R.{found.name}", tree)
    name = getattr(found, "__weft_name__", None)
    if isinstance(name, str):
        return session.level.call_named(session, name, tree)
    if callable(found) and not hasattr(found, "functions"):
        return _call_python(session, found, tree)
    return MISSING


def static_path(session: Session, tree: ast.expr) -> Any:
    """What a path of names stands for when its root is no IR value: a macro, a captured object; or MISSING."""
    if isinstance(tree, ast.Name):
        found = session.scope.get(tree.id)
        if found is not MISSING or tree.id in session.symbols:
            return found
        return session.unit.capture(tree.id)
    if isinstance(tree, ast.Attribute):
        macro = _macro_of_module(session, tree)
        if macro is not None:
            return macro
        if session.unit.captured is None or tree.attr.startswith("_"):
            return MISSING
        base = static_path(session, tree.value)
        if base is MISSING or isinstance(base, (Node, DimExpr, ModuleScope)) or is_plain(base):
            return MISSING
        return getattr(base, tree.attr, MISSING)
    return item_of_path(session, tree, static_path)


def _macro_of_module(session: Session, tree: ast.Attribute) -> Macro | None:
    """The macro that `cls.f` or `Module.f` names."""
    if isinstance(tree.value, ast.Name):
        bound = session.scope.get(tree.value.id)
        if bound is session.module or (bound is MISSING and tree.value.id in ("cls", session.module.name)):
            return session.module.macros.get(tree.attr)
    return None


def _call_python(session: Session, function: Callable[..., Any], tree: ast.Call) -> Any:
    """The result of a Python function of the program that the script stands in."""
    args, keywords = static_arguments(session, tree)
    name = ast.unparse(tree.func)[:60]
    try:
        return adapt(session, run_python(session, lambda: function(*args, **keywords), name, tree), name, tree)
    except WeftError as error:
        if error.code == "W153" and error.hint is None and any(map(_holds_nodes, args)):
            error.hint = session.level.instead_of(session, name.rpartition(".")[2])
        raise


def _holds_nodes(value: Any) -> bool:
    """Whether a value is one of the script, or lists some."""
    return any(map(_holds_nodes, value)) if isinstance(value, (list, tuple)) else isinstance(value, (Node, DimExpr))


def nothing_instead(session: Session, name: str) -> str | None:
    """A hint for a Python function that was called on values of the script: what has its name here."""
    return None


def run_python(session: Session, compute: Callable[[], Any], name: str, tree: ast.AST) -> Any:
    """What a computation of the user's program gives; its failures are errors at the tree (W153)."""
    try:
        return compute()
    except WeftError as error:
        error.notes = (*error.notes, f"while reading calls `{name}`")
        raise error.at(session.span(tree)) from None
    except Exception as error:
        raise session.fail("W153", f"`{name}` raised {type(error).__name__}: {error}", tree) from error


def _method_of_container(session: Session, func: ast.Attribute, tree: ast.Call) -> Any:
    """`parts.append(x)` of a list of this block, `sizes.items()` of a dictionary."""
    if not isinstance(func.value, ast.Name):
        return MISSING
    base = session.scope.get(func.value.id)
    if isinstance(base, list) and func.attr in ("append", "extend"):
        return _grow(session, base, func, tree)
    if base is MISSING:
        base = session.unit.capture(func.value.id)
    if isinstance(base, (dict, FrozenMap)) and func.attr in _METHODS_OF_DICTS:
        args, _ = static_arguments(session, tree)
        made = session.fold(lambda: getattr(base, func.attr)(*args), tree)
        return made if func.attr == "get" else list(made)
    return MISSING


def counted(name: str) -> str:
    """What to write for a list whose length a run decides."""
    first = f"begin with `{name} = R.zeros((most,), dtype)` and `count = 0`"
    return f"{first}, write `{name}[count] = value` and `count += 1`, and take `{name}[:count]`"


def _grow(session: Session, base: list[Any], func: ast.Attribute, tree: ast.Call) -> None:
    """Add to a list. Only in the block that made it: what runs later, or not at all, cannot change it now."""
    assert isinstance(func.value, ast.Name)
    if session.scope.names.get(func.value.id) is not base:
        raise session.fail(
            "W115",
            f"the list '{func.value.id}' belongs to an outer block",
            tree,
            "build it where it is made; a loop makes a tensor of a list that each iteration appends one value to;"
            f" where a run decides how many, {counted(func.value.id)}",
        )
    args, keywords = static_arguments(session, tree)
    if len(args) != 1 or keywords:
        raise session.fail("W113", f"{func.attr} takes 1 argument, got {len(args) + len(keywords)}", tree)
    session.unit.step(tree)
    base.extend(args if func.attr == "append" else session.level.iterable(session, args[0], tree.args[0]))
