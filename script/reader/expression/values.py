"""Reading expressions that stand for themselves: constants, names, attributes, elements, containers, strings."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from weft.ir.dim import DimExpr
from weft.ir.graph import GlobalVar
from weft.ir.node import FrozenMap, Node
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import ALL_FORMS, NAMES, TYPES
from weft.script.reader.expression.arguments import elements
from weft.script.reader.expression.names import captured_path, dotted_name, dtype_name, global_name, slice_of
from weft.script.reader.expression.types import bare_type
from weft.script.reader.scope import Called, describe, plain_capture
from weft.script.reader.session import Session
from weft.script.source.text import MISSING

__all__ = ["attribute_of_object", "element_of_container", "named_value", "no_pointer"]


@COMMON.tree(ast.Constant)
def _constant(session: Session, tree: ast.Constant) -> Any:
    value = tree.value
    if isinstance(value, bytes) or value is Ellipsis:
        raise session.fail("W115", f"{value!r} is not part of the script", tree)
    if type(value) is int and value.bit_length() > session.unit.limits.digits * 4:
        hint = "Limits(digits=...) allows more"
        raise session.fail("W103", f"an integer of more than {session.unit.limits.digits} digits", tree, hint)
    return value


@COMMON.tree(ast.Name)
def _name(session: Session, tree: ast.Name) -> Any:
    return session.level.lookup(session, tree.id, tree)


def _named_outside(session: Session, tree: ast.Attribute | ast.Subscript) -> Any:
    """A function of the module or a value around it that a path names; MISSING where it names neither."""
    function = global_name(session, tree)
    if function is not None:
        return GlobalVar(function, session.span(tree))
    found = captured_path(session, tree)
    return found if found is MISSING else session.level.captured(session, found, ast.unparse(tree), tree)


@COMMON.tree(ast.Attribute)
def _attribute(session: Session, tree: ast.Attribute) -> Any:
    name = dotted_name(session, tree)
    if name is not None:
        return named_value(session, name, tree)
    found = _named_outside(session, tree)
    if found is not MISSING:
        return found
    pointer = session.level.pointer_dtype(session, tree)
    return session.level.attribute_of(session, session.value(tree.value), tree) if pointer is None else pointer


def no_pointer(session: Session, tree: ast.Attribute) -> str | None:
    """The dtype of `T.handle("float32").ty`, None for any other attribute (see `read_declaration`)."""
    return None


def named_value(session: Session, name: str, tree: ast.expr) -> Any:
    """A name of I, R or T that is not called: a type, or a dtype."""
    if name in TYPES or name in ("T.handle",):
        return bare_type(session, name, tree)
    dtype = dtype_name(name)
    if dtype is not None:
        return dtype
    if name in NAMES or name in ALL_FORMS:
        raise session.fail("W114", f"`{name}` must be called here", tree, f"write `{name}(...)`")
    if name in session.level.extra_names(session, name[0]):
        return Called(name)
    raise session.level.unknown(session, name, tree)


def attribute_of_object(session: Session, base: Any, tree: ast.Attribute) -> Any:
    """An attribute of a value; only captured Python values have them at the base."""
    if session.unit.captured is not None and not isinstance(base, (Node, DimExpr)) and not tree.attr.startswith("_"):
        found = getattr(base, tree.attr, MISSING)
        if found is not MISSING:
            return session.level.captured(session, found, ast.unparse(tree), tree)
    raise session.fail("W115", f"`.{tree.attr}` of {describe(base)} is not part of the script", tree)


@COMMON.tree(ast.Tuple)
def _tuple(session: Session, tree: ast.Tuple) -> Any:
    return tuple(elements(session, tree.elts))


@COMMON.tree(ast.List)
def _list(session: Session, tree: ast.List) -> Any:
    return elements(session, tree.elts)


@COMMON.tree(ast.Dict)
def _dict(session: Session, tree: ast.Dict) -> Any:
    result: dict[str, Any] = {}
    for key, item in zip(tree.keys, tree.values, strict=True):
        if key is None:
            raise session.fail("W115", "** is not part of the script", tree)
        name = session.value(key)
        if not isinstance(name, (str, int)):
            raise session.fail("W114", f"a key must be a string, got {describe(name)}", key)
        if name in result:
            raise session.fail("W118", f"the key {name!r} occurs twice", key)
        result[name] = session.level.settled(session, session.value(item), item)  # type: ignore[index]
    return result


@COMMON.tree(ast.Subscript)
def _subscript(session: Session, tree: ast.Subscript) -> Any:
    found = _named_outside(session, tree)
    if found is not MISSING:
        return found
    base = session.value(tree.value)
    return session.level.subscript_of(session, base, tree)


def element_of_container(session: Session, base: Any, tree: ast.Subscript) -> Any:
    """An element of a value; the base takes plain containers."""
    if isinstance(base, (tuple, list, dict, FrozenMap, range)) or (
        isinstance(base, np.ndarray) and session.unit.captured is not None
    ):
        key = slice_of(session, tree.slice)
        if isinstance(key, slice) and not isinstance(base, range):
            session.unit.charge(len(base), tree)
        return session.fold(lambda: plain_capture(base[key]), tree)  # type: ignore[index]
    raise session.fail("W115", f"{describe(base)} has no elements", tree)


@COMMON.tree(ast.JoinedStr)
def _joined_string(session: Session, tree: ast.JoinedStr) -> str:
    parts: list[str] = []
    length = 0
    for part in tree.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            value = session.constant(part.value)
            if part.format_spec is not None or not isinstance(value, (int, float, str)):
                raise session.fail("W115", "only plain numbers and strings can stand in a format string", part.value)
            parts.append(session.fold_known(str, (value,), part))
        length += len(parts[-1])
        if length > session.unit.limits.parts:
            raise session.too_many("characters", tree)
    return "".join(parts)
