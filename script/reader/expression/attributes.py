"""Attribute data: what `attrs=` and annotations hold, and what is said of one thing in several places."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from weft.ir.attrs import GLOBAL_SYMBOL
from weft.ir.dim import DimExpr
from weft.ir.node import FrozenMap, Node, freeze
from weft.ir.structure.structural import structural_equal
from weft.script.forms.reading import COMMON
from weft.script.reader.scope import describe
from weft.script.reader.session import Session
from weft.target import Target

__all__ = ["attribute_value", "check_private", "joined_attributes", "read_anything", "read_literal"]


@COMMON.hole("anything")
def read_anything(session: Session, tree: ast.expr) -> ast.expr:
    """The tree itself: the form's own method reads it."""
    return tree


@COMMON.hole("literal")
def read_literal(session: Session, tree: ast.expr) -> Any:
    """Attribute data."""
    return attribute_value(session, session.value(tree), tree)


def attribute_value(session: Session, value: Any, tree: ast.expr) -> Any:
    """Attribute data in frozen form; W114 for what cannot be one."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise session.fail("W114", "the keys of attributes are strings", tree)
        return FrozenMap({key: attribute_value(session, item, tree) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(attribute_value(session, item, tree) for item in value)
    if value is None or isinstance(value, (bool, int, float, str, FrozenMap, DimExpr, Node)):
        return freeze(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Target) or hasattr(value, "content_hash"):
        return value
    raise session.fail("W114", f"{describe(value)} cannot be attribute data", tree)


def joined_attributes(session: Session, known: FrozenMap, new: FrozenMap, what: str, tree: ast.AST) -> FrozenMap:
    """Attributes said in several places: dictionaries are joined, W118 where two values contradict."""
    result: dict[str, Any] = dict(known)
    for key, value in new.items():
        before = result.get(key)
        if isinstance(before, FrozenMap) and isinstance(value, FrozenMap):
            result[key] = joined_attributes(session, before, value, what, tree)
        elif key in result and not structural_equal(before, value):
            raise session.fail("W118", f"the {what} has the attribute {key!r} already, with another value", tree)
        else:
            result[key] = value
    return FrozenMap(result)


def check_private(session: Session, attrs: FrozenMap, tree: ast.AST) -> None:
    """W113 where a private function says what it is called outside."""
    if session.private and GLOBAL_SYMBOL in attrs:
        hint = "leave out private=True, or the attribute"
        raise session.fail("W113", "a private function has no global_symbol: nothing outside can name it", tree, hint)
