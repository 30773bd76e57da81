"""Filling the forms of the syntax table, and writing pieces out as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.errors import ScriptError
from weft.ir.node import Node
from weft.ir.structure.visit import MANY_NODES, refuse_repetition
from weft.ir.tensor import FloatImm, IntImm, PrimExpr
from weft.script.forms.constants import float_text
from weft.script.forms.showing import SHOWN
from weft.script.forms.syntax import ATOM, BY_CLASS, REQUIRED, SCALARS, Form
from weft.script.printer.state import Piece, Printer, varies

__all__ = ["as_operand", "fill_form", "join", "node_values", "prim_pieces", "show_form", "show_immediate"]


def fill_form(printer: Printer, form: Form, values: Mapping[str, Any], *, skip: Sequence[str] = ()) -> list[Piece]:
    """The pieces of a form with its holes filled; what equals a default is left out."""
    pieces: list[Piece] = [printer.spelled(form.name), "("]
    first = True
    gap = False
    for hole in form.holes:
        if hole.star:
            for value in values.get(hole.name, ()):
                if not first:
                    pieces.append(", ")
                first = False
                _add(printer, pieces, hole.kind.show(printer, value))
            gap = True
            continue
        value = values.get(hole.name, hole.default)
        if value is REQUIRED or hole.name in skip:
            gap = gap or value is not REQUIRED
            continue
        if hole.default is not REQUIRED and _same(value, hole.default):
            gap = True
            continue
        if not first:
            pieces.append(", ")
        first = False
        if gap or hole.named:
            pieces.append(f"{printer.spelled(hole.name)}=")
        _add(printer, pieces, hole.kind.show(printer, value))
    pieces.append(")")
    return pieces


def _add(printer: Printer, pieces: list[Piece], shown: Any) -> None:
    if isinstance(shown, list):
        pieces.extend(shown)
    else:
        pieces.append(shown)


def join(printer: Printer, pieces: Iterable[Piece]) -> str:
    """Pieces as one string; nested expressions are written out without recursion."""
    out: list[str] = []
    stack: list[Piece] = list(pieces)[::-1]
    if len(stack) == 1 and isinstance(stack[0], str):
        return stack[0]
    _count(printer)
    pieces_of = printer.style.get(prim_pieces, prim_pieces.plain)
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        _count(printer)
        expr, minimum = piece
        parts, precedence = pieces_of(printer, expr)
        if precedence < minimum:
            stack.append(")")
            stack.extend(parts[::-1])
            stack.append("(")
        else:
            stack.extend(parts[::-1])
    return "".join(out)


def _count(printer: Printer) -> None:
    """Note one more part of the text; where they are many, a look at the whole tells whether they ever end."""
    printer.joined += 1
    if printer.joined == MANY_NODES:
        refuse_repetition(printer.root)


def show_form(printer: Printer, form: Form, values: Mapping[str, Any], **options: Any) -> str:
    """A filled form as a string."""
    return join(printer, fill_form(printer, form, values, **options))


def node_values(printer: Printer, form: Form, node: Node) -> dict[str, Any]:
    """The fields of a node by the names of the form's holes."""
    return {hole.name: getattr(node, hole.name) for hole in form.holes}


@varies
def prim_pieces(printer: Printer, expr: PrimExpr) -> tuple[list[Piece], int]:
    """The pieces of an expression and its precedence."""
    show = SHOWN.scalar.get(type(expr))
    if show is not None:
        return show(printer, expr)
    form = BY_CLASS.get(type(expr))
    if form is not None and form.name in SCALARS:
        return fill_form(printer, form, node_values(printer, form, expr)), ATOM
    raise ScriptError(f"a {type(expr).__name__} has no text form", code="W114")


@varies
def show_immediate(printer: Printer, value: IntImm | FloatImm) -> str:
    """A typed constant."""
    if isinstance(value, IntImm):
        number = str(bool(value.value)) if value.dtype == "bool" else str(value.value)
        return f"T.{value.dtype}({number})"
    text = float_text(value.value)
    text = {'float("inf")': '"inf"', 'float("-inf")': '"-inf"', 'float("nan")': '"nan"'}.get(text, text)
    return f"T.{value.dtype}({text})"


def as_operand(printer: Printer, value: PrimExpr) -> list[Piece]:
    """An expression where a bare number would take another dtype: only the usual integers are bare."""
    return [(value, 0)]


def _same(value: Any, default: Any) -> bool:
    """Whether a value equals the default of its hole."""
    if default is None or value is None:
        return value is default
    if isinstance(value, Node):
        return False
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return not value and not default
    return type(value) is type(default) and value == default
