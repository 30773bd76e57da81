"""Calls of the few Python functions that scripts know, on what is known while reading."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.ir.dim import ceildiv, maximum, minimum
from weft.script.reader.expression.arguments import argument_trees, static_arguments
from weft.script.reader.expression.dims import BUILTINS, size_of
from weft.script.reader.expression.operators import apply_binary
from weft.script.reader.scope import describe
from weft.script.reader.session import Session
from weft.script.source.budget import measure
from weft.script.source.text import MISSING

__all__ = ["REDUCTIONS", "call_known", "call_python_function", "no_reduction", "refuse_builtin"]

_LISTS = {"list": list, "tuple": tuple, "reversed": lambda values: list(reversed(values)), "enumerate": enumerate}
REDUCTIONS = ("sum", "min", "max", "any", "all")
_PLAIN: dict[str, Callable[..., Any]] = {
    "any": any,
    "all": all,
    "sorted": sorted,
    "str": str,
    "dict": dict,
}


def call_python_function(session: Session, name: str, tree: ast.Call) -> Any:
    """Functions of Python on what is known while reading."""
    if name == "range":
        return _range(session, tree)
    if name == "zip":
        columns = [
            session.level.iterable(session, session.value(argument), argument)
            for argument in argument_trees(session, tree)
        ]
        strict = any(keyword.arg == "strict" and session.constant(keyword.value) for keyword in tree.keywords)
        return session.fold(lambda: [tuple(row) for row in zip(*columns, strict=strict)], tree)
    if name in _LISTS:
        return _list_function(session, name, tree)
    if name in REDUCTIONS and len(tree.args) == 1 and not tree.keywords:
        found = session.level.reduction(session, name, tree)
        if found is not MISSING:
            return found
    if name == "sum" and tree.args:
        return _sum(session, tree)
    if name == "divmod" and len(tree.args) == 2:
        first, second = (session.level.settled(session, session.value(part), part) for part in tree.args)
        return tuple(apply_binary(session, kind, first, second, tree) for kind in ("floordiv", "floormod"))
    if name == "pow" and not tree.keywords:
        return _pow(session, tree)
    if name in _PLAIN:
        args, keywords = static_arguments(session, tree)
        if not session.known(args, tree) or not session.known(list(keywords.values()), tree):
            raise session.fail("W115", f"`{name}` takes only what is known while reading", tree)
        for value in args:
            if isinstance(value, range):
                session.check_rounds(value, session.unit.limits.unrolled, tree)
        if name == "sorted":
            _charge_sorting(session, args, tree)
        return session.fold_known(partial(_PLAIN[name], **keywords), tuple(args), tree)
    return call_known(session, name, tree)


def call_known(session: Session, name: str, tree: ast.Call) -> Any:
    """A call of one of the few Python functions that scripts know, or MISSING."""
    if name not in BUILTINS:
        return MISSING
    if tree.keywords:
        raise session.fail("W113", f"{name} takes no keyword arguments here", tree)
    values = [session.value(argument) for argument in tree.args]
    sizes = [size_of(session, value) for value in values] if name in ("min", "max", "ceildiv") else []
    if sizes and None not in sizes:
        function: Any = {"min": minimum, "max": maximum, "ceildiv": ceildiv}[name]
        return session.fold(lambda: function(*sizes), tree)
    if all(session.known(value, tree) for value in values) and name != "ceildiv":
        for value in values:
            if isinstance(value, range) and name in ("min", "max"):
                session.check_rounds(value, session.unit.limits.unrolled, tree)
        return session.fold_known(BUILTINS[name], tuple(values), tree)
    return session.level.builtin_of(session, name, values, tree)


def no_reduction(session: Session, name: str, tree: ast.Call) -> Any:
    """Everything that is reduced is known while reading."""
    return MISSING


def refuse_builtin(session: Session, name: str, values: list[Any], tree: ast.Call) -> Any:
    """A Python function applied to IR values."""
    raise session.fail("W115", f"`{name}` cannot be applied to {describe(values[0]) if values else 'nothing'}", tree)


def _charge_sorting(session: Session, args: list[Any], tree: ast.AST) -> None:
    """Each of n elements is compared log(n) times."""
    units = measure(args, session.unit.budget.left, deep=True).units
    session.unit.charge(units * units.bit_length(), tree)


def _range(session: Session, tree: ast.Call) -> range:
    values = [session.value(argument) for argument in argument_trees(session, tree)]
    if tree.keywords or not all(isinstance(item, int) and not isinstance(item, bool) for item in values):
        raise session.fail("W115", "the bounds of a static loop are integers known while reading", tree)
    return session.fold(lambda: range(*map(int, values)), tree)


def _list_function(session: Session, name: str, tree: ast.Call) -> Any:
    args, keywords = static_arguments(session, tree)
    items = list(session.level.iterable(session, args[0], tree.args[0])) if args else []
    rest = args[1:]
    made = session.fold(lambda: _LISTS[name](items, *rest, **keywords), tree)
    return list(made) if name == "enumerate" else made


def _pow(session: Session, tree: ast.Call) -> Any:
    values = [session.value(part) for part in tree.args]
    if all(session.known(value, tree) for value in values):
        session.unit.charge(_bits(values), tree)
    if len(values) == 2:
        return apply_binary(session, "pow", values[0], values[1], tree)
    if len(values) == 3 and all(type(value) is int for value in values):
        return session.fold_known(pow, tuple(values), tree)
    hint = "multiply in a loop: `p = p * base % modulus`"
    raise session.fail("W115", "`pow` takes a base and an exponent of the run, and no modulus", tree, hint)


def _bits(values: list[Any]) -> int:
    """How long the numbers of a power are."""
    return sum(value.bit_length() for value in values if isinstance(value, int))


def _sum(session: Session, tree: ast.Call) -> Any:
    args, _ = static_arguments(session, tree)
    items = session.level.iterable(session, args[0], tree.args[0])
    total: Any = args[1] if len(args) > 1 else MISSING
    for item in items:
        total = item if total is MISSING else apply_binary(session, "add", total, item, tree)
    return 0 if total is MISSING else total
