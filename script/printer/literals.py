"""Showing attribute data, and arguments of forms that hold several kinds of things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ScriptError
from weft.ir.deduction.device_mesh import DeviceMesh
from weft.ir.dim import DimExpr, format_dim, free_symbols
from weft.ir.graph import Expr, StringImm
from weft.ir.kernel.index_map import MappedLayout
from weft.ir.module import DummyGlobalInfo
from weft.ir.node import FrozenMap
from weft.ir.tensor import Buffer, FloatImm, IntImm, PrimExpr
from weft.ir.types import Type, VDevice
from weft.script.forms.constants import number_text
from weft.script.forms.holes import string_text
from weft.script.forms.showing import SHOWN
from weft.script.printer.forms import as_operand, join, show_immediate
from weft.script.printer.state import RESERVED, Piece, Printer, Ready, separated, varies
from weft.script.printer.types import show_type, show_vdevice, show_whole_mesh
from weft.script.printer.values import show_leaf
from weft.target import Target

__all__ = [
    "show_anything",
    "show_buffer",
    "show_leaf",
    "show_literal",
    "show_literal_node",
    "show_operand",
    "show_pointer",
    "show_prim",
    "show_prims",
    "show_where",
    "write_decorator",
]


def write_decorator(printer: Printer, form: str, options: Mapping[str, tuple[Any, Any]]) -> None:
    """A decorator with the options (value, default) that differ from their defaults."""
    given = [f"{key}={show_literal(printer, value)}" for key, (value, default) in options.items() if value != default]
    if printer.unchecked:
        given.append("check_well_formed=False")
    printer.line(f"@{form}({', '.join(given)})" if given else f"@{form}")


@SHOWN.hole("anything")
def show_anything(printer: Printer, value: Any) -> Any:
    """A value whose form decides itself: ready text, an expression, or data."""
    if isinstance(value, Ready):
        return value.text
    if isinstance(value, (IntImm, FloatImm)):
        return show_immediate(printer, value)
    if isinstance(value, PrimExpr):
        return as_operand(printer, value)
    if isinstance(value, Buffer):
        return printer.name(value)
    return show_literal(printer, value)


@SHOWN.hole("prim")
def show_prim(printer: Printer, value: Any) -> list[Piece]:
    """A tensor-level expression; a string stands as it is."""
    if isinstance(value, StringImm):
        return [string_text(value.value)]
    return [(value, 0)] if isinstance(value, PrimExpr) else [show_literal(printer, value)]


@SHOWN.hole("operand")
def show_operand(printer: Printer, value: Any) -> list[Piece]:
    """An argument of a tensor-level call."""
    return show_prim(printer, value)


@SHOWN.hole("pointer")
def show_pointer(printer: Printer, value: Any) -> list[Piece]:
    """The data of a buffer."""
    return show_prim(printer, value)


@SHOWN.hole("prims")
def show_prims(printer: Printer, values: Sequence[PrimExpr]) -> list[Piece]:
    """A list of tensor-level expressions."""
    return ["[", *separated([(value, 0)] for value in values), "]"]


@SHOWN.hole("buffer")
def show_buffer(printer: Printer, value: Buffer) -> str:
    """The name of a buffer."""
    return printer.name(value)


@SHOWN.hole("where")
def show_where(printer: Printer, value: Ready) -> Any:
    """The bindings of T.Let."""
    return value.text


@SHOWN.hole("literal")
@varies
def show_literal(printer: Printer, value: Any) -> str:
    """Attribute data."""
    if value is None or isinstance(value, int):
        return str(value)
    if isinstance(value, (float, complex)):
        return number_text(value)
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(show_literal(printer, item) for item in value)}]"
    if isinstance(value, (FrozenMap, dict)):
        return f"{{{', '.join(f'{string_text(key)}: {show_literal(printer, item)}' for key, item in value.items())}}}"
    if isinstance(value, DimExpr):
        known = all(name in printer.symbols and name not in RESERVED for name in free_symbols(value))
        return format_dim(value) if known and not printer.quoted else f"I.dim({string_text(format_dim(value))})"
    return show_literal_node(printer, value)


@varies
def show_literal_node(printer: Printer, value: Any) -> str:
    """A node in attribute data."""
    if isinstance(value, (IntImm, FloatImm)):
        return show_immediate(printer, value)
    if isinstance(value, PrimExpr):
        return join(printer, [(value, 0)])
    if isinstance(value, DummyGlobalInfo):
        return "I.dummy_global_info()"
    if isinstance(value, VDevice):
        return show_vdevice(printer, value)
    if isinstance(value, DeviceMesh):
        return show_whole_mesh(printer, value)
    if isinstance(value, MappedLayout):
        inverse = f", inverse_index_map={value.inverse}" if value.inverse else ""
        return f"T.index_map({value.text}{inverse})"
    if isinstance(value, Type):
        return show_type(printer, value)
    if isinstance(value, Buffer):
        return printer.name(value)
    if isinstance(value, Expr):
        return show_leaf(printer, value)
    if isinstance(value, Target):
        return f"I.target({string_text(str(value))})"
    if hasattr(value, "content_hash") and hasattr(value, "to_text_data"):  # artifacts, which are the runtime's
        return f"I.artifacts({show_literal(printer, value.to_text_data())})"
    if isinstance(value, np.generic):
        return show_literal(printer, value.item())
    raise ScriptError(f"attribute data of type {type(value).__name__} has no text form", code="W114")
