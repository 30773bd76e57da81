"""Expanding macros and lambdas: their bodies read with the parameters bound to the arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weft.errors import WeftError
from weft.script.forms.reading import COMMON
from weft.script.reader.expression.arguments import static_arguments
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Scope
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import Unit

__all__ = ["as_lambda", "expand_expression", "expand_macro"]


def expand_macro(
    session: Session, macro: Macro, tree: ast.Call, read: Callable[[Any, Macro, ast.Call], Any] | None = None
) -> Any:
    """What a macro gives here: its body read with its parameters bound to the arguments."""
    if macro.level not in ("", session.level.letter):
        hint = f"a macro for this place is decorated with @{session.level.letter}.macro"
        raise session.fail("W115", f"'{macro.name}' is a macro of the other level", tree.func, hint)
    session.unit.step(tree)
    args, keywords = static_arguments(session, tree)
    caller, scope = session.unit, session.scope
    unit = macro.unit_for(caller)
    parent = scope if not macro.hygienic else macro.scope.around(scope) if macro.scope is not None else None
    if session.expanding >= session.unit.limits.nesting:
        raise session.fail(
            "W103", f"macros nest deeper than {session.unit.limits.nesting}", tree, "Limits(nesting=...)"
        )
    bound = _bind_macro(session, macro, unit, [*macro.receiver, *args], keywords, tree)
    place = session.span(tree)
    session.unit, session.scope = unit, Scope(parent, own=True)
    session.scope.names.update(bound)
    session.expanding += 1
    try:
        return (read or session.level.expand_body)(session, macro, tree)
    except WeftError as error:
        note = f"in the macro '{macro.name}' called at {place.filename}:{place.line}:{place.column}"
        if macro.level and error.code != "W103":
            error.notes = (*error.notes, note)
        raise
    finally:
        session.expanding -= 1
        session.unit, session.scope = caller, scope


def expand_expression(session: Session, macro: Macro, tree: ast.Call) -> Any:
    """The value of a macro outside functions: that of an expression; W115 for one with statements."""
    if isinstance(macro.body, ast.expr):
        return session.value(macro.body)
    raise session.fail("W115", f"the macro '{macro.name}' has statements, which cannot stand here", tree)


def _bind_macro(
    session: Session, macro: Macro, unit: Unit, args: list[Any], keywords: dict[str, Any], tree: ast.Call
) -> dict[str, Any]:
    """Parameters to values, as Python binds them."""
    arguments = macro.arguments
    positional = [*arguments.posonlyargs, *arguments.args]
    names = [argument.arg for argument in (*positional, *arguments.kwonlyargs)]
    bound = {argument.arg: value for argument, value in zip(positional, args, strict=False)}
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = tuple(args[len(positional) :])
    elif len(args) > len(positional):
        many = "s" if len(positional) != 1 else ""
        raise session.fail("W113", f"'{macro.name}' takes {len(positional)} argument{many}, got {len(args)}", tree)
    rest: dict[str, Any] = {}
    for name, value in keywords.items():
        if name in bound:
            raise session.fail("W113", f"'{macro.name}' got '{name}' twice", tree)
        if name not in names and arguments.kwarg is None:
            raise session.fail("W113", f"'{macro.name}' has no argument '{name}'", tree, did_you_mean(name, names))
        (bound if name in names else rest)[name] = value
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = rest
    _bind_defaults(session, macro, unit, bound)
    for name in names:
        if name not in bound:
            raise session.fail("W113", f"'{macro.name}' lacks its argument '{name}'", tree)
    return bound


def _bind_defaults(session: Session, macro: Macro, unit: Unit, bound: dict[str, Any]) -> None:
    """Defaults are read where the macro is defined."""
    arguments = macro.arguments
    positional = [*arguments.posonlyargs, *arguments.args]
    defaulted = positional[len(positional) - len(arguments.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(defaulted, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    saved = session.unit, session.scope
    session.unit, session.scope = unit, Scope(macro.scope)
    try:
        for argument, default in pairs:
            if argument.arg not in bound and default is not None:
                bound[argument.arg] = session.value(default)
    finally:
        session.unit, session.scope = saved


@COMMON.tree(ast.Lambda)
def as_lambda(session: Session, tree: ast.Lambda) -> Macro:
    """A lambda: read where it is called."""
    return Macro("lambda", tree.args, tree.body, session.unit, scope=session.scope)
