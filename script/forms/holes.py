"""Hole kinds: how one argument of a form is read from a Python syntax tree and shown as text.

    kind ::= name, read(reader, tree) -> value, show(printer, value) -> text

A kind owns both directions, so that a form (see `syntax`) never says the same thing twice. Self-contained kinds
(numbers, strings, dtypes) convert here; the others name the method of the reader and of the printer that walks
their part of the language.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Protocol

from weft.dtypes import check_dtype
from weft.errors import DTypeError, Span
from weft.script.forms.reading import COMMON
from weft.script.forms.showing import SHOWN
from weft.script.source.diagnostics import fail

__all__ = ["KINDS", "Kind", "ReaderLike", "string_text"]


class ReaderLike(Protocol):
    """What kinds need of a reader."""

    def constant(self, tree: ast.expr) -> Any:
        """The Python value of a constant expression."""
        ...

    def span(self, tree: ast.AST) -> Span:
        """The place of a syntax tree."""
        ...


class Kind:
    """A kind that the functions registered for its name read (see `reading`) and show (see `showing`)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, reader: Any, tree: ast.expr) -> Any:
        """The value that the tree stands for."""
        return (reader.level.readers.hole.get(self.name) or COMMON.hole[self.name])(reader, tree)

    def show(self, printer: Any, value: Any) -> Any:
        """The text of a value (or pieces of text, see the printer)."""
        return SHOWN.hole[self.name](printer, value)


class Plain(Kind):
    """A Python constant of given types."""

    def __init__(self, name: str, what: str, types: tuple[type, ...], text: Callable[[Any], str] = repr) -> None:
        super().__init__(name)
        self.what = what
        self.types = types
        self.text = text

    def read(self, reader: ReaderLike, tree: ast.expr) -> Any:
        """The constant; W114 when it has another type."""
        value = reader.constant(tree)
        right = isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))
        if not right:
            raise fail("W114", f"expected {self.what}, got {value!r}", reader.span(tree))
        return value

    def show(self, printer: Any, value: Any) -> str:
        """Its Python text."""
        return self.text(value)


class DType(Kind):
    """A dtype: a string, `T.float32`, or a captured NumPy dtype."""

    def read(self, reader: ReaderLike, tree: ast.expr) -> str:
        """The canonical name."""
        value = reader.constant(tree)
        try:
            return check_dtype(value)
        except DTypeError as error:
            raise error.at(reader.span(tree)) from None

    def show(self, printer: Any, value: str) -> str:
        """The name in quotes."""
        return f'"{value}"'


class Optional(Kind):
    """Another kind, or None."""

    def __init__(self, inner: Kind) -> None:
        super().__init__(f"{inner.name}?")
        self.inner = inner

    def read(self, reader: Any, tree: ast.expr) -> Any:
        """None, or what the inner kind reads."""
        if isinstance(tree, ast.Constant) and tree.value is None:
            return None
        return self.inner.read(reader, tree)

    def show(self, printer: Any, value: Any) -> Any:
        """None, or what the inner kind shows."""
        return "None" if value is None else self.inner.show(printer, value)


def string_text(value: str) -> str:
    """A string as a Python literal in double quotes."""
    text = repr(value)
    if text[0] == "'" and '"' not in text:
        return f'"{text[1:-1]}"'
    return text


_DELEGATED = (
    "anything",
    "buffer",
    "callee",
    "dim",
    "dims",
    "extent",
    "extents",
    "lanes",
    "leaf",
    "literal",
    "mesh",
    "operand",
    "placement",
    "pointer",
    "prim",
    "prims",
    "region",
    "regions",
    "scalar_value",
    "shape",
    "type",
    "types",
    "vdevice",
    "where",
)

KINDS: dict[str, Kind] = {
    "text": Plain("text", "a string", (str,), string_text),
    "integer": Plain("integer", "an integer", (int,)),
    "boolean": Plain("boolean", "True or False", (bool,)),
    "dtype": DType("dtype"),
    **{name: Kind(name) for name in _DELEGATED},
}
KINDS.update({f"{name}_or_none": Optional(kind) for name, kind in list(KINDS.items())})
