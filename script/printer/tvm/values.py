"""Leaves of graph functions and attribute data in text for TVM."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.ir.dim import DimExpr, free_symbols, parse_dim
from weft.ir.graph import Constant, Expr, GlobalVar, PrimValue, ShapeExpr
from weft.ir.node import FrozenMap
from weft.script.forms.constants import constant_lists
from weft.script.forms.holes import string_text
from weft.script.printer.literals import show_literal, show_literal_node
from weft.script.printer.tvm.dim import tvm_dim
from weft.script.printer.tvm.style import TVM, TvmPrinter
from weft.script.printer.types import show_dim
from weft.script.printer.values import (
    show_callee,
    show_constant,
    show_global,
    show_known_shape,
    show_leaf,
    show_prim_value,
    show_scalar,
    show_sizes,
)
from weft.target import Target

__all__ = ["typed_number"]


@TVM(show_known_shape)
def _known_shape(printer: TvmPrinter, value: ShapeExpr) -> str:
    return show_leaf(printer, value)


@TVM(show_sizes)
def _shape(printer: TvmPrinter, value: ShapeExpr) -> str:
    """Sizes as their text spelt them, where they are still the same: other readers compare expressions."""
    texts = value.written if len(value.written) == len(value.dims) else ("",) * len(value.dims)
    shown = (
        text if isinstance(dim, DimExpr) and _means(text, dim) else show_dim(printer, dim)
        for text, dim in zip(texts, value.dims, strict=True)
    )
    return f"R.shape([{', '.join(shown)}])"


@TVM(show_constant)
def _constant(printer: TvmPrinter, value: Constant) -> str:
    text = constant_lists(value)
    if text is None or value.dtype in ("int4", "uint4"):
        what = "shape" if value.data.size == 0 else "elements"
        raise printer.refuse(f"a constant of {value.dtype} with these {what}", value)
    return f'R.const({text}, "{value.dtype}")'


@TVM(show_prim_value)
def _prim_value(printer: TvmPrinter, value: PrimValue) -> str:
    return f"R.prim_value({typed_number(printer, value)})"


@TVM(show_scalar)
def _scalar(printer: TvmPrinter, value: PrimValue) -> str:
    return typed_number(printer, value)


def typed_number(printer: TvmPrinter, value: PrimValue) -> str:
    """A number whose text says its dtype: bare ones are int64 and bool."""
    number = value.value
    if isinstance(number, DimExpr):
        if value.dtype != "int64":
            return f'T.Cast("{value.dtype}", {show_dim(printer, number)})'
        return show_dim(printer, number)
    if value.dtype == "int64" or value.dtype == "bool":
        return show_literal(printer, number)
    if isinstance(number, float) and not np.isfinite(number):
        return f'T.{value.dtype}("{number}")'
    return f"T.{value.dtype}({show_literal(printer, number)})"


@TVM(show_global)
def _global_name(printer: TvmPrinter, value: GlobalVar) -> str:
    """A function of the module."""
    if value.name in printer.external:
        raise printer.refuse(f"a use of the external function '{value.name}' of the module", value)
    return f"cls.{value.name}"


@TVM(show_literal_node)
def _literal_node(printer: TvmPrinter, value: Any) -> str:
    """A node in attribute data."""
    if isinstance(value, Target):
        return f"T.target({show_literal(printer, FrozenMap(value.to_dict()))})"
    return show_literal_node.plain(printer, value)


@TVM(show_literal)
def _show_literal(printer: TvmPrinter, value: Any) -> str:
    """Attribute data; the description of a target is one."""
    if isinstance(value, (FrozenMap, dict)):
        items = (f"{string_text(key)}: {_attribute(printer, key, item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, DimExpr):
        if not set(free_symbols(value)) <= printer.symbols:
            raise printer.refuse(f"attribute data with the size '{value}'")
        return tvm_dim(value, printer.order)
    return show_literal.plain(printer, value)


def _attribute(printer: TvmPrinter, key: str, value: Any) -> str:
    text = show_literal(printer, value)
    return f"T.target({text})" if key == "target" and isinstance(value, FrozenMap) and "kind" in value else text


@TVM(show_callee)
def _show_callee(printer: TvmPrinter, value: Expr) -> str:
    """The function of a call: some operators take a string for a string."""
    by_name = printer.operator not in ("vm.call_tir_dyn", "make_closure")
    return show_callee.plain(printer, value) if by_name else show_leaf(printer, value)


def _means(text: str, dim: DimExpr) -> bool:
    """Whether a text over symbols, numbers and operators is a dimension."""
    try:
        return bool(text) and parse_dim(text) == dim
    except WeftError:
        return False
