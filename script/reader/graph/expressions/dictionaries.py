"""Dictionaries that a loop carries, or a branch gives: tuples of their values, in the order of their keys.

    state = {"mean": m, "count": 0}             state = (m, 0)
    for v in x:                                 for v in x:
        state["mean"] += v                          state = (state[0] + v, state[1])

The keys, which are known while reading, are the same in all iterations, and in both branches. A form is what a value is
but for its leaves, which are None: dictionaries, and the lists and tuples that hold them or that they hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from weft.errors import WeftError
from weft.ir.graph import Expr, TupleGetItem
from weft.script.reader.graph.bindings import as_leaf
from weft.script.reader.graph.session import GraphSession

__all__ = ["flat", "form_of", "in_form"]


def form_of(value: Any) -> Any:
    """The form of a value that has a dictionary in it; None for one that has none, which is carried as it is."""
    return _form(value) if _has_dictionary(value) else None


def _has_dictionary(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, (tuple, list)) and any(map(_has_dictionary, value)))


def _form(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _form(part) for key, part in value.items()}
    return type(value)(map(_form, value)) if isinstance(value, (tuple, list)) else None


def flat(session: GraphSession, form: Any, value: Any, name: str, tree: ast.AST) -> Any:
    """A value of a form as a tuple of its leaves, in the order of the form; W115 where it has other keys."""
    return value if form is None else tuple(_leaves(session, form, value, name, tree))


def _leaves(session: GraphSession, form: Any, value: Any, name: str, tree: ast.AST) -> Iterator[Any]:
    if isinstance(form, dict):
        if not isinstance(value, dict) or value.keys() != form.keys():
            got = f"the keys {list(value)}" if isinstance(value, dict) else "another value"
            message = f"the dictionary `{name}` has the keys {list(form)}, and {got} after a branch or an iteration"
            raise _changed(session, message, tree)
        for key, inner in form.items():
            yield from _leaves(session, inner, value[key], name, tree)
    elif isinstance(form, (tuple, list)):
        if not isinstance(value, (tuple, list)) or len(value) != len(form):
            message = f"`{name}` has {len(form)} values in a place, and others after a branch or an iteration"
            raise _changed(session, message, tree)
        for inner, part in zip(form, value, strict=True):
            yield from _leaves(session, inner, part, name, tree)
    else:
        yield value


def _changed(session: GraphSession, message: str, tree: ast.AST) -> WeftError:
    return session.fail("W115", message, tree, "it has the same keys and as many parts whatever runs")


def in_form(session: GraphSession, form: Any, value: Expr, tree: ast.AST) -> Any:
    """What is carried, a tuple of leaves, as what it is in the text."""
    if form is None:
        return value
    places = iter(range(1 << 31))

    def made(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: made(part) for key, part in inner.items()}
        if isinstance(inner, (tuple, list)):
            return type(inner)(map(made, inner))
        return as_leaf(session, TupleGetItem(value, next(places), span=session.span(tree)), tree)

    return made(form)
