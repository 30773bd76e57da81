"""Loops and comprehensions over what is known while reading."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from weft.ir.node import FrozenMap, Node
from weft.script.forms.reading import COMMON
from weft.script.reader.scope import Scope, describe
from weft.script.reader.session import Session

__all__ = [
    "NOT_KNOWN",
    "iterable_container",
    "set_target",
    "static_comprehension",
    "static_condition",
    "static_for",
    "unpack_targets",
]

NOT_KNOWN = "the condition is not known while reading"


def iterable_container(session: Session, value: Any, tree: ast.expr) -> Sequence[Any]:
    """The items of a value that is known while reading; W115 for any other."""
    if isinstance(value, (dict, FrozenMap)):
        value = list(value)
    if hasattr(value, "tolist") and session.unit.captured is not None and not isinstance(value, Node):
        value = value.tolist()
    if not isinstance(value, (tuple, list, range, str)):
        raise session.fail(
            "W115", f"{describe(value)} cannot be looped over while reading", tree, session.level.loop_hint
        )
    session.check_rounds(value, session.unit.limits.unrolled, tree)
    return value


def set_target(session: Session, target: ast.expr, value: Any) -> None:
    """Bind the target of a static loop; tuples are unpacked, a starred target takes the rest."""
    if isinstance(target, ast.Name):
        session.scope.names[target.id] = value
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise session.fail("W115", "only names can be bound by a static loop", target)
    for item, part in unpack_targets(session, target, session.level.iterable(session, value, target), target):
        set_target(session, item, part)


def unpack_targets(
    session: Session, target: ast.Tuple | ast.List, values: Sequence[Any], tree: ast.AST
) -> list[tuple[ast.expr, Any]]:
    """Targets with their parts; W113 when the numbers do not fit."""
    stars = [index for index, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
    least = len(target.elts) - len(stars)
    session.check_rounds(values, session.unit.limits.parts, tree)
    if len(values) < least or (not stars and len(values) != least):
        expected = f"at least {least}" if stars else str(least)
        raise session.fail("W113", f"{len(values)} values cannot be unpacked into {expected} names", tree)
    if not stars:
        return list(zip(target.elts, values, strict=True))
    first = stars[0]
    after = len(target.elts) - first - 1
    starred = target.elts[first]
    assert isinstance(starred, ast.Starred)
    return [
        *zip(target.elts[:first], values[:first], strict=True),
        (starred.value, list(values[first : len(values) - after])),
        *zip(target.elts[first + 1 :], values[len(values) - after :], strict=True),
    ]


@COMMON.tree(ast.ListComp, ast.GeneratorExp)
def _comprehension(session: Session, tree: ast.ListComp | ast.GeneratorExp) -> Any:
    if tree.generators[0].is_async:
        raise session.fail("W115", "an asynchronous comprehension is not part of the script", tree)
    return session.level.comprehension(session, tree)


def static_comprehension(session: Session, tree: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    """The values of a comprehension over what is known while reading."""
    return [
        session.level.settled(session, session.value(tree.elt), tree.elt)
        for _ in _rounds(session, tree.generators, tree)
    ]


@COMMON.tree(ast.DictComp)
def _dict_comprehension(session: Session, tree: ast.DictComp) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for _ in _rounds(session, tree.generators, tree):
        key = session.value(tree.key)
        if not isinstance(key, (str, int)):
            raise session.fail("W114", f"a key must be a string or an integer, got {describe(key)}", tree.key)
        made[key] = session.level.settled(session, session.value(tree.value), tree.value)
    return made


def _rounds(session: Session, generators: list[ast.comprehension], tree: ast.AST) -> Iterator[None]:
    """Once per round of a comprehension, its names bound."""
    first, *rest = generators
    if first.is_async:
        raise session.fail("W115", "an asynchronous comprehension is not part of the script", tree)
    values = session.level.iterable(session, session.value(first.iter), first.iter)
    saved, session.scope = session.scope, Scope(session.scope, own=True)
    try:
        for item in values:
            session.unit.step(tree)
            set_target(session, first.target, item)
            if all(static_condition(session, test) for test in first.ifs):
                if rest:
                    yield from _rounds(session, rest, tree)
                else:
                    yield
    finally:
        session.scope = saved


def static_condition(session: Session, tree: ast.expr) -> bool:
    """A condition that is known while reading; W115 for any other."""
    value = session.level.condition(session, tree)
    if not session.known(value, tree):
        raise session.fail("W115", NOT_KNOWN, tree)
    return bool(value)


def static_for(session: Session, tree: ast.For, values: Sequence[Any]) -> list[Any]:
    """The statements of an unrolled loop; `break` and `continue` are decided while reading."""
    made: list[Any] = []
    for item in values:
        session.unit.step(tree)
        set_target(session, tree.target, item)
        if _static_body(session, tree.body, made) == "break":
            return made
    if tree.orelse:
        made.extend(session.level.statement_list(session, tree.orelse))
    return made


def _static_body(session: Session, trees: Sequence[ast.stmt], made: list[Any]) -> str:
    """Read one round; gives "break" or "continue" where the round says so, else ""."""
    run: list[ast.stmt] = []
    for tree in trees:
        session.unit.step(tree)
        leaves = isinstance(tree, (ast.Break, ast.Continue))
        if not leaves and not (isinstance(tree, ast.If) and _leaves_loop(tree)):
            run.append(tree)
            continue
        made.extend(session.level.statement_list(session, run))
        run = []
        if leaves:
            return "break" if isinstance(tree, ast.Break) else "continue"
        assert isinstance(tree, ast.If)
        signal = _static_body(session, tree.body if static_condition(session, tree.test) else tree.orelse, made)
        if signal:
            return signal
    made.extend(session.level.statement_list(session, run))
    return ""


def _leaves_loop(tree: ast.If) -> bool:
    """Whether a branch of an `if` ends the round of the loop around it."""
    for statement in (*tree.body, *tree.orelse):
        if isinstance(statement, (ast.Break, ast.Continue)):
            return True
        if isinstance(statement, ast.If) and _leaves_loop(statement):
            return True
    return False
