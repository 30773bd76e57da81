"""Showing tensor-level expressions, with the parentheses and typed constants that reading them back needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.kernel.intrinsics import INTRINSICS, result_dtype
from weft.ir.kernel.prim import never_defined
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    Cast,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Range,
    Select,
    Unary,
)
from weft.script.forms.defaults import DTYPE_FIRST, RESULT_DTYPES
from weft.script.forms.holes import string_text
from weft.script.forms.showing import SHOWN
from weft.script.forms.syntax import ATOM, BINARY, BINARY_CALLS, SCALARS, UNARY
from weft.script.printer.forms import as_operand, fill_form, node_values, show_immediate
from weft.script.printer.literals import show_literal
from weft.script.printer.state import Piece, Printer, raised, separated, varies
from weft.script.printer.types import show_extent, show_lanes
from weft.script.printer.values import show_global, show_leaf

__all__ = [
    "show_binary",
    "show_box",
    "show_call_argument",
    "show_call_intrin",
    "show_element",
    "show_int",
    "show_let",
    "show_load",
    "show_position",
    "show_prim_call",
    "show_range",
    "show_region",
    "show_regions",
    "show_side",
]


@SHOWN.scalar(IntImm)
def show_int(printer: Printer, expr: IntImm) -> tuple[list[Piece], int]:
    """An integer: bare where it is one of the usual width."""
    if expr.dtype == "bool" and expr.value in (0, 1):
        return [str(bool(expr.value))], ATOM
    if expr.dtype == "int32" and -(2**31) <= expr.value < 2**31:
        return [str(expr.value)], ATOM if expr.value >= 0 else UNARY["neg"].precedence
    return [show_immediate(printer, expr)], ATOM


@SHOWN.scalar(Binary)
@varies
def show_binary(printer: Printer, expr: Binary) -> tuple[list[Piece], int]:
    """A binary operation."""
    row = BINARY.get(expr.kind)
    # `/` is an operator of floats, `//` and `%` are operators of integers: the rest are calls.
    of_floats = dtypes.is_float(dtypes.element(expr.a.dtype))
    called = expr.kind in (("floordiv", "floormod") if of_floats else ("div",))
    left, right = _sides(printer, expr)
    if row is None or called or never_defined(expr.kind, expr.a, expr.b):
        return [f"{BINARY_CALLS[expr.kind]}(", *left, ", ", *right, ")"], ATOM
    low = row.precedence + (0 if row.associative else 1)
    return [*raised(left, low), f" {row.text} ", *raised(right, row.precedence + 1)], row.precedence


def _sides(printer: Printer, expr: Binary) -> tuple[list[Piece], list[Piece]]:
    """Both operands: an integer constant is bare where the other side gives it its dtype."""
    a, b = expr.a, expr.b
    immediate_a, immediate_b = isinstance(a, (IntImm, FloatImm)), isinstance(b, (IntImm, FloatImm))
    if immediate_a and immediate_b:
        return [show_immediate(printer, a)], [show_immediate(printer, b)]  # type: ignore[arg-type]
    if immediate_a and expr.kind in ("and", "or"):  # a bare one on the left decides before the rest is read
        return [show_immediate(printer, a)], [(b, 0)]  # type: ignore[arg-type]
    left = show_side(printer, a, b) if immediate_a else [(a, 0)]
    right = show_side(printer, b, a) if immediate_b else [(b, 0)]
    return left, right


@varies
def show_side(printer: Printer, value: Any, other: PrimExpr) -> list[Piece]:
    """A constant operand: bare where the other side gives it its dtype."""
    if isinstance(value, IntImm) and value.dtype == other.dtype and dtypes.is_integer(value.dtype):
        if dtypes.can_hold(value.dtype, value.value):
            return [str(value.value)] if value.value >= 0 else [f"({value.value})"]
    if isinstance(value, IntImm) and value.dtype == "bool" == other.dtype and value.value in (0, 1):
        return [str(bool(value.value))]
    return [show_immediate(printer, value)]


@SHOWN.scalar(Unary)
def _unary(printer: Printer, expr: Unary) -> tuple[list[Piece], int]:
    row = UNARY[expr.kind]
    if isinstance(expr.a, (IntImm, FloatImm)):
        return [row.text, show_immediate(printer, expr.a)], row.precedence
    return [row.text, (expr.a, row.precedence)], row.precedence


@SHOWN.scalar(Select)
def _select(printer: Printer, expr: Select) -> tuple[list[Piece], int]:
    return fill_form(printer, SCALARS["T.Select"], node_values(printer, SCALARS["T.Select"], expr)), ATOM


@SHOWN.scalar(BufferLoad)
@varies
def show_load(printer: Printer, expr: BufferLoad) -> tuple[list[Piece], int]:
    """An element of a buffer."""
    if expr.predicate is not None:
        position = show_position(printer, expr.indices)
        return [f"{printer.name(expr.buffer)}.vload(", *position, ", predicate=", (expr.predicate, 0), ")"], ATOM
    return show_element(printer, expr.buffer, expr.indices), ATOM


def show_position(printer: Printer, indices: Sequence[PrimExpr]) -> list[Piece]:
    """Indices as a list."""
    return ["[", *separated([(index, 0)] for index in indices), "]"]


def show_element(printer: Printer, buffer: Buffer, indices: Sequence[PrimExpr]) -> list[Piece]:
    """A buffer with its indices."""
    if not indices:
        return [f"{printer.name(buffer)}[()]"]
    return [f"{printer.name(buffer)}[", *separated([(index, 0)] for index in indices), "]"]


@SHOWN.scalar(Let)
@varies
def show_let(printer: Printer, expr: Let) -> tuple[list[Piece], int]:
    """An expression with a variable for a value."""
    name = printer.name(expr.var)
    return ["T.Let(", (expr.body, 0), f", where={{{name}: ", (expr.value, 0), "})"], ATOM


@SHOWN.scalar(Cast)
def _cast(printer: Printer, expr: Cast) -> tuple[list[Piece], int]:
    if isinstance(expr.value, (IntImm, FloatImm)):
        return [f'T.Cast("{expr.dtype}", {show_immediate(printer, expr.value)})'], ATOM
    return [f'T.Cast("{expr.dtype}", ', (expr.value, 0), ")"], ATOM


@SHOWN.scalar(Broadcast)
def _broadcast(printer: Printer, expr: Broadcast) -> tuple[list[Piece], int]:
    return ["T.Broadcast(", *as_operand(printer, expr.value), f", {show_lanes(printer, expr.lanes)})"], ATOM


@SHOWN.scalar(PrimCall)
@varies
def show_prim_call(printer: Printer, expr: PrimCall) -> tuple[list[Piece], int]:
    """A call inside an expression."""
    args = separated([show_call_argument(printer, argument)] for argument in expr.args)
    if isinstance(expr.op, GlobalVar):
        dtype = [] if expr.dtype == "void" else [f'{", " if expr.args else ""}dtype="{expr.dtype}"']
        return [f"{show_global(printer, expr.op)}(", *args, *dtype, ")"], ATOM
    name = str(expr.op)
    entry = INTRINSICS.get(name)
    if name == "if_then_else" and len(expr.args) == 3 and not expr.attrs:
        return ["T.if_then_else(", *args, ")"], ATOM
    if name == "comm_reducer" and expr.args and isinstance(expr.args[0], StringImm) and not expr.attrs:
        rest = separated([show_call_argument(printer, argument)] for argument in expr.args[1:])
        return [f"T.comm_reducer({expr.args[0].value}, [", *rest, "])"], ATOM
    if entry is None or (entry.rule != "given" and not _is_regular(entry, expr)):
        return show_call_intrin(printer, name, expr)
    if entry.rule != "given":
        return [f"T.{name}(", *args, ")"], ATOM
    if name in DTYPE_FIRST:
        first = f'T.{name}("{expr.dtype}"'
        tail = [", ", *args] if expr.args else []
    else:
        first, tail = f"T.{name}(", list(args)
        if expr.dtype != RESULT_DTYPES.get(name, "void"):
            tail.append(f'{", " if expr.args else ""}dtype="{expr.dtype}"')
    if expr.attrs:
        tail.append(f"{', ' if expr.args or name in DTYPE_FIRST else ''}attrs={show_literal(printer, expr.attrs)}")
    return [first, *tail, ")"], ATOM


def _is_regular(entry: Any, expr: PrimCall) -> bool:
    """Whether reading the plain call gives the same node."""
    if expr.attrs or not all(isinstance(argument, PrimExpr) for argument in expr.args):
        return False
    operands = [argument.dtype for argument in expr.args]  # type: ignore[union-attr]
    if entry.promotes and len(set(operands)) > 1:
        return False
    try:
        return result_dtype(entry, operands) == expr.dtype
    except Exception:  # a call that the table would refuse keeps its plain form
        return False


@varies
def show_call_intrin(printer: Printer, name: str, expr: PrimCall) -> tuple[list[Piece], int]:
    """A call by the name of its operator."""
    values = {"dtype": expr.dtype, "op": name, "args": expr.args, "attrs": dict(expr.attrs)}
    return fill_form(printer, SCALARS["T.call_intrin"], values), ATOM


def show_call_argument(printer: Printer, value: Expr) -> Piece:
    """An argument of a call inside an expression."""
    if isinstance(value, StringImm):
        return string_text(value.value)
    if isinstance(value, PrimExpr):
        return (value, 0)
    return show_leaf(printer, value)


@varies
def show_box(printer: Printer, region: BufferRegion) -> list[Piece]:
    """A box: single elements and `start:stop` slices."""
    if not region.region:
        return [f"{printer.name(region.buffer)}[()]"]
    return [f"{printer.name(region.buffer)}[", *separated(show_range(printer, item) for item in region.region), "]"]


def show_range(printer: Printer, item: Range) -> list[Piece]:
    """One dimension of a box."""
    start, extent = item.start, item.extent
    if isinstance(extent, int) and extent == 1:
        return show_extent(printer, start)
    if isinstance(start, int):
        if isinstance(extent, int):
            return [f"{start}:{start + extent}"]
        if start == 0:
            return ["0:", (extent, 0)]
        return [f"{start}:{start} + ", (extent, BINARY["add"].precedence + 1)]
    stop: list[Piece] = [str(extent)] if isinstance(extent, int) else [(extent, BINARY["add"].precedence + 1)]
    return [(start, 0), ":", (start, BINARY["add"].precedence), " + ", *stop]


@SHOWN.hole("region")
def show_region(printer: Printer, value: Any) -> Any:
    """A box of a buffer, or the handle that a buffer is matched with."""
    if isinstance(value, BufferRegion):
        return show_box(printer, value)
    return [(value, 0)]


@SHOWN.hole("regions")
def show_regions(printer: Printer, value: BufferRegion) -> list[Piece]:
    """A box of a buffer."""
    return show_box(printer, value)


@SHOWN.scalar(PrimVar)
def _variable(printer: Printer, expr: PrimVar) -> tuple[list[Piece], int]:
    return [printer.name(expr)], ATOM


@SHOWN.scalar(FloatImm)
def _float(printer: Printer, expr: FloatImm) -> tuple[list[Piece], int]:
    return [show_immediate(printer, expr)], ATOM


@SHOWN.scalar(StringImm)
def _string(printer: Printer, expr: StringImm) -> tuple[list[Piece], int]:
    return [string_text(expr.value)], ATOM
