"""Definitions: their decorators with options, their parameters."""

from __future__ import annotations

import ast
from typing import Any

from weft.ir.graph import Expr, Function
from weft.ir.tensor import PrimFunc
from weft.script.forms.unsupported import why_unsupported
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.expression.objects import stated_target
from weft.script.reader.macros import MACRO_OPTIONS, Macro
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean, fail

__all__ = ["Definition", "definition_options", "macro_of", "passed_parameters"]

Definition = ast.ClassDef | ast.FunctionDef

_OPTIONS: dict[str, dict[str, Any]] = {
    "R.function": {"pure": True, "private": False, "check_well_formed": True, "name": None},
    "T.prim_func": {"private": False, "check_well_formed": True, "s_tir": False, "persistent": False, "name": None},
    "I.ir_module": {"check_well_formed": True, "s_tir": False, "target": None},
    "R.rewriter": {},
}


def passed_parameters(session: Session, arguments: ast.arguments) -> dict[ast.arg, ast.expr | None]:
    """The parameters that a caller passes, with their defaults.

    One with a default and no type is a constant of the body, as in Python's `def f(x, size=SIZE)`. W115 for
    parameters that cannot be compiled, W118 for two of one name.
    """
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            raise session.fail("W115", f"parameter '{extra.arg}': only plain parameters can be compiled", extra)
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    pairs = [
        *((argument, None) for argument in positional[:first]),
        *zip(positional[first:], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    passed: dict[ast.arg, ast.expr | None] = {}
    seen: set[str] = set()
    for argument, default in pairs:
        if argument.arg in seen:
            raise session.fail("W118", f"two parameters are named '{argument.arg}'", argument)
        seen.add(argument.arg)
        if argument.annotation is not None or default is None:
            if argument in arguments.kwonlyargs:
                raise session.fail(
                    "W115", f"parameter '{argument.arg}': only plain parameters can be compiled", argument
                )
            passed[argument] = default
            continue
        value = session.value(default)
        if isinstance(value, Expr) and not isinstance(value, (PrimFunc, Function)):
            raise session.fail(
                "W115",
                f"the default of '{argument.arg}' is not known while reading",
                default,
                "give the parameter a type, or bind it in the body",
            )
        session.scope.names[argument.arg] = value
    return passed


def macro_of(session: Session, tree: ast.FunctionDef) -> Macro | None:
    """The macro that a definition makes, or None for a definition that is no macro; W113 for a wrong option."""
    for decorator in tree.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted_name(session, call.func if call else decorator)
        if name not in MACRO_OPTIONS:
            continue
        options = dict(MACRO_OPTIONS[name])
        for keyword in call.keywords if call else []:
            if keyword.arg not in options:
                hint = did_you_mean(keyword.arg or "", options) or f"it takes: {', '.join(options) or 'nothing'}"
                raise session.fail("W113", f"{name} has no option '{keyword.arg}'", keyword, hint)
            options[keyword.arg] = session.constant(keyword.value)
        if call and call.args:
            raise session.fail("W113", f"{name} takes keyword options only", call.args[0])
        others = [other for other in tree.decorator_list if other is not decorator]
        if others:
            raise fail("W115", "a macro has one decorator", session.span(others[0]))
        hygienic = bool(options.get("hygienic", True))
        return Macro(tree.name, tree.args, tree.body, session.unit, name[0], hygienic, session.scope)
    return None


def definition_options(session: Session, tree: ast.FunctionDef | ast.ClassDef) -> tuple[str, dict[str, Any]]:
    """The decorator of a definition (R.function, T.prim_func, I.ir_module, R.rewriter) and its options with defaults.

    ScriptError W104 when there is none, W113 for an option that it does not have.
    """
    for decorator in tree.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted_name(session, call.func if call else decorator)
        if name not in _OPTIONS:
            continue
        _check_other_decorators(session, tree, decorator)
        options = dict(_OPTIONS[name])
        for keyword in call.keywords if call else []:
            if keyword.arg not in options:
                hint = did_you_mean(keyword.arg or "", options) or f"it takes: {', '.join(options) or 'none'}"
                raise session.fail("W113", f"{name} has no option '{keyword.arg}'", keyword, hint)
            read = stated_target if keyword.arg == "target" else Session.constant
            options[keyword.arg] = read(session, keyword.value)
        if call and call.args:
            raise session.fail("W113", f"{name} takes keyword options only", call.args[0])
        return name, options
    for decorator in tree.decorator_list:
        tried = dotted_name(session, decorator.func if isinstance(decorator, ast.Call) else decorator)
        if tried is not None and why_unsupported(tried) is not None:
            raise session.level.unknown(session, tried, decorator)
        if tried is not None:
            hint = did_you_mean(tried, _OPTIONS) or f"decorators are {', '.join(_OPTIONS)}"
            raise session.fail("W111", f"`{tried}` does not decorate a {_kind_of_definition(tree)}", decorator, hint)
    what = _kind_of_definition(tree)
    raise fail(
        "W104",
        f"the {what} '{tree.name}' has no decorator of the script",
        session.unit.name_span(tree),
        hint="@I.ir_module for a class; @R.function or @T.prim_func for a function",
    )


def _kind_of_definition(tree: ast.FunctionDef | ast.ClassDef) -> str:
    return "class" if isinstance(tree, ast.ClassDef) else "function"


def _check_other_decorators(session: Session, tree: ast.FunctionDef | ast.ClassDef, chosen: ast.expr) -> None:
    """Decorators above are Python's business in a running program; below, and in a text, they would be ignored."""
    position = tree.decorator_list.index(chosen)
    others = tree.decorator_list if session.unit.captured is None else tree.decorator_list[position:]
    for other in others:
        name = other.id if isinstance(other, ast.Name) else ""
        if other is not chosen and name != "staticmethod" and not session.unit.partial:
            raise session.fail(
                "W115",
                f"the decorator `{ast.unparse(other)[:60]}` has no meaning for a script",
                other,
                "the script is read as it is written",
            )
