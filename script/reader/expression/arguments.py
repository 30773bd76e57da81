"""The arguments of a call: bound to the holes of a form as Python would bind them, or as plain values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.ir.node import FrozenMap
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import REQUIRED, Form
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean

__all__ = [
    "OLD_KEYWORDS",
    "KnownValue",
    "argument_trees",
    "as_it_is",
    "bind_arguments",
    "elements",
    "signature_text",
    "spread_container",
    "static_arguments",
]

OLD_KEYWORDS = {"out_sinfo": "out_ty", "sinfo_args": "ty_args", "py_func_name": "func_name"}


class KnownValue(ast.expr):
    """A value that is known already, in the place of a syntax tree."""

    _fields = ()

    def __init__(self, item: Any, place: ast.AST) -> None:
        super().__init__()
        self.item = item
        ast.copy_location(self, place)


def signature_text(form: Form) -> str:
    """How a form is written."""
    parts: list[str] = []
    for hole in form.holes:
        if hole.star:
            parts.append(f"*{hole.name}")
        elif hole.default is REQUIRED:
            parts.append(hole.name)
        else:
            parts.append(f"{hole.name}={hole.default!r}")
    return f"{form.name}({', '.join(parts)})"


def bind_arguments(session: Session, form: Form, tree: ast.Call) -> dict[str, Any]:
    """The values of a call's arguments by hole name, each read by its kind; W113 when they do not fit the form."""
    values: dict[str, Any] = {}
    positional = form.positional
    star = next((hole for hole in form.holes if hole.star), None)
    rest: list[Any] = []
    arguments = argument_trees(session, tree)
    for index, argument in enumerate(arguments):
        if index < len(positional):
            hole = positional[index]
            values[hole.name] = hole.kind.read(session, argument)
        elif star is not None:
            rest.append(star.kind.read(session, argument))
        else:
            most = len(positional)
            raise session.fail(
                "W113",
                f"{form.name} takes at most {most} argument{'s' * (most != 1)}, got {len(arguments)}",
                argument,
            )
    by_name = {hole.name: hole for hole in form.holes if not hole.star}
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise session.fail("W115", "** is not part of the script", keyword.value)
        name = (form.old_names or {}).get(keyword.arg, OLD_KEYWORDS.get(keyword.arg, keyword.arg))
        hole = by_name.get(name)
        if hole is None:
            hint = did_you_mean(name, by_name) or f"it takes: {', '.join(by_name) or 'no keyword arguments'}"
            raise session.fail("W113", f"{form.name} has no argument '{keyword.arg}'", keyword, hint)
        if name in values:
            raise session.fail("W113", f"{form.name} got '{name}' twice", keyword)
        values[name] = hole.kind.read(session, keyword.value)
    for hole in form.holes:
        if hole.star:
            values[hole.name] = tuple(rest)
        elif hole.name not in values:
            if hole.default is REQUIRED:
                raise session.fail(
                    "W113",
                    f"{form.name} lacks its argument '{hole.name}'",
                    tree,
                    f"it is written {signature_text(form)}",
                )
            values[hole.name] = hole.default
    return values


def argument_trees(session: Session, tree: ast.Call) -> list[ast.expr]:
    """The positional argument trees, with `*(a, b)` written out."""
    result: list[ast.expr] = []
    for argument in tree.args:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List)):
            result.extend(argument.value.elts)
        elif isinstance(argument, ast.Starred):
            parts = session.level.spread(session, session.value(argument.value), argument)
            result.extend(KnownValue(item, argument) for item in parts)  # type: ignore[misc]
        else:
            result.append(argument)
    return result


@COMMON.tree(KnownValue)
def _known(session: Session, tree: Any) -> Any:
    return tree.item


def static_arguments(session: Session, tree: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments; each is computed once, however often it is used."""
    args = [
        session.level.settled(session, session.value(argument), argument) for argument in argument_trees(session, tree)
    ]
    keywords: dict[str, Any] = {}
    for keyword in tree.keywords:
        value = session.level.settled(session, session.value(keyword.value), keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, (dict, FrozenMap)) and all(isinstance(key, str) for key in value):
            keywords.update(value)
        else:
            raise session.fail("W115", "only dictionaries known while reading can be spread with **", keyword.value)
    return args, keywords


def as_it_is(session: Session, value: Any, tree: ast.expr) -> Any:
    """A value that may be used more than once."""
    return value


def spread_container(session: Session, value: Any, tree: ast.expr) -> Sequence[Any]:
    """The parts of `*value`."""
    if not isinstance(value, (tuple, list, range)):
        raise session.fail("W115", "only tuples known while reading can be spread with *", tree)
    session.check_rounds(value, session.unit.limits.parts, tree)
    return value


def elements(session: Session, trees: list[ast.expr]) -> list[Any]:
    """The values of the elements; a starred plain tuple is spread."""
    result: list[Any] = []
    for tree in trees:
        if isinstance(tree, ast.Starred):
            result.extend(session.level.spread(session, session.value(tree.value), tree))
        else:
            result.append(session.value(tree))
    return result
