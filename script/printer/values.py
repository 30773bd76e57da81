"""Showing what is bound in graph functions: leaves and calls."""

from __future__ import annotations

import keyword
from typing import Any

from weft.ir.attrs import ABSENT, LABEL
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.graph import (
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    GlobalVar,
    Op,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.op import OPS
from weft.ir.op.declare import FIXED, RUN_TIME, ParamKind
from weft.ir.tensor import PrimExpr
from weft.ir.types import TupleType
from weft.script.forms.constants import constant_parts
from weft.script.forms.holes import string_text
from weft.script.forms.showing import SHOWN
from weft.script.forms.syntax import VALUES
from weft.script.printer.forms import fill_form, join
from weft.script.printer.state import RESERVED, Printer, Ready, varies
from weft.script.printer.types import (
    show_dim,
    show_dims,
    show_mesh,
    show_placement,
    show_shape,
    show_type_value,
    show_types,
)

__all__ = [
    "is_declared",
    "show_argument",
    "show_call",
    "show_callee",
    "show_constant",
    "show_global",
    "show_known_shape",
    "show_leaf",
    "show_operator",
    "show_prim_value",
    "show_scalar",
    "show_value",
]


@varies
def show_value(printer: Printer, value: Expr) -> str:
    """What stands on the right of a binding."""
    if isinstance(value, Call):
        return show_call(printer, value)
    if isinstance(value, TupleGetItem):
        return f"{show_leaf(printer, value.value)}[{value.index}]"
    return show_leaf(printer, value)


@SHOWN.hole("leaf")
@varies
def show_leaf(printer: Printer, value: Expr) -> str:
    """A leaf (or, in a module that is not in normal form, any expression)."""
    if isinstance(value, Var):
        return printer.name(value)
    show = SHOWN.leaf.get(type(value))
    if show is not None:
        return show(printer, value)
    if isinstance(value, (Call, TupleGetItem)):
        return show_value(printer, value)
    if isinstance(value, PrimExpr):
        return join(printer, [(value, 0)])
    return repr(value)


@SHOWN.leaf(Constant)
@varies
def show_constant(printer: Printer, value: Constant) -> str:
    """An array."""
    parts = constant_parts(value, printer.blobs)
    parts["data"] = Ready(parts["data"])
    return join(printer, fill_form(printer, VALUES["R.const"], {**parts, "dtype": value.dtype}))


@SHOWN.leaf(GlobalVar)
@varies
def show_global(printer: Printer, value: GlobalVar) -> str:
    """A function of the module."""
    plain = value.name.isidentifier() and not keyword.iskeyword(value.name)
    return f"cls.{value.name}" if plain else f"cls[{string_text(value.name)}]"


@SHOWN.leaf(Tuple)
def _tuple(printer: Printer, value: Tuple) -> str:
    if not value.fields:
        return "R.tuple()"
    inner = ", ".join(show_leaf(printer, item) for item in value.fields)
    return f"({inner},)" if len(value.fields) == 1 else f"({inner})"


@SHOWN.leaf(PrimValue)
@varies
def show_prim_value(printer: Printer, value: PrimValue) -> str:
    """A scalar as a value."""
    return f"R.prim_value({show_scalar(printer, value)})"


@varies
def show_scalar(printer: Printer, value: PrimValue) -> str:
    """A scalar as a number, typed when its dtype is not the usual one."""
    usual = PrimValue(value.value).dtype
    number = value.value
    text = show_dim(printer, number) if isinstance(number, DimExpr) else _show_literal(printer, number)
    if usual == value.dtype:
        return text
    if isinstance(number, DimExpr):
        return f'{text}, "{value.dtype}"'
    return f"T.{value.dtype}({text})"


@SHOWN.leaf(ExternFunc)
def _extern(printer: Printer, value: ExternFunc) -> str:
    return join(printer, fill_form(printer, VALUES["R.ExternFunc"], {"name": value.name, "ty": value.ty}))


@SHOWN.leaf(ShapeExpr)
@varies
def show_sizes(printer: Printer, value: ShapeExpr) -> str:
    """A shape as a value."""
    return f"R.shape({show_dims(printer, value.dims)})"


@SHOWN.leaf(StringImm)
def _string(printer: Printer, value: StringImm) -> str:
    return f"R.str({string_text(value.value)})"


@SHOWN.leaf(DataTypeImm)
def _dtype(printer: Printer, value: DataTypeImm) -> str:
    return f'R.dtype("{value.value}")'


@SHOWN.leaf(Op)
def _op(printer: Printer, value: Op) -> str:
    return f"R.{value.name}"


@varies
def show_call(printer: Printer, call: Call) -> str:
    """A call."""
    op = call.op
    if isinstance(op, Op):
        definition = OPS.get(op.name)
        if definition is not None and is_declared(definition, call):
            return show_operator(printer, op.name, definition, call)
        return join(
            printer,
            fill_form(
                printer,
                VALUES["R.call_op"],
                {
                    "name": op.name,
                    "args": call.args,
                    "attrs": dict(call.attrs),
                    "ty_args": call.ty_args,
                },
            ),
        )
    if isinstance(op, ExternFunc):
        return join(
            printer,
            fill_form(
                printer,
                VALUES["R.call_packed"],
                {
                    "func": op,
                    "args": call.args,
                    "attrs": dict(call.attrs),
                    "ty_args": call.ty_args,
                },
            ),
        )
    parts = [show_leaf(printer, argument) for argument in call.args]
    if call.attrs:
        parts.append(f"attrs={_show_literal(printer, call.attrs)}")
    if call.ty_args:
        parts.append(f"{printer.spelled('ty_args')}={show_types(printer, call.ty_args)}")
    return f"{show_leaf(printer, op)}({', '.join(parts)})"


def is_declared(definition: Any, call: Call) -> bool:
    """Whether the declaration covers everything the call holds."""
    names = {param.name for param in definition.params if param.kind in FIXED}
    label = call.attrs.get(LABEL, "")
    if any(key not in names and key not in (ABSENT, LABEL) for key in call.attrs):
        return False
    if "target" not in names and not (isinstance(label, str) and (not label or label.isidentifier())):
        return False
    typed = any(param.kind == ParamKind.TYPES for param in definition.params)
    return len(call.ty_args) <= (1 if typed else 0)


@varies
def show_operator(printer: Printer, name: str, definition: Any, call: Call) -> str:
    """A call as the operator's declaration says it is called."""
    parts: list[str] = []
    expected = iter(definition.params)
    in_order = True
    for param, value in definition.unbind(call):
        if in_order:
            in_order = next(expected, None) is param and param.kind in RUN_TIME
        if param.kind == ParamKind.VARIADIC:
            parts.extend(show_leaf(printer, item) for item in value)
            in_order = False
            continue
        text = show_argument(printer, param, value)
        parts.append(text if in_order else f"{printer.spelled(param.name)}={text}")
    if "target" in call.attrs and all(param.name != "target" for param in definition.params):
        parts.append(f"target={string_text(call.attrs[LABEL])}")  # the label of the call site
    return f"R.{name}({', '.join(parts)})"


@varies
def show_argument(printer: Printer, param: Any, value: Any) -> str:
    """An argument of an operator by the kind of its parameter."""
    kind = param.kind
    if kind == "expr":
        return show_leaf(printer, value)
    if kind == "shape" and isinstance(value, ShapeExpr):
        return show_known_shape(printer, value)
    if kind == "prim" and isinstance(value, PrimValue):
        # A bare name that a parameter shares is the parameter.
        bare = PrimValue(value.value).dtype == value.dtype and str(value.value) not in printer.shared
        return show_scalar(printer, value) if bare else show_prim_value(printer, value)
    if kind == "callee":
        return show_callee(printer, value)
    if kind == "types":
        return _type_argument(printer, value)
    if param.of == "placement":
        return show_placement(printer, value)
    if param.of == "mesh":
        return show_mesh(printer, value)
    if kind in ("attr", "dtype"):
        return _show_literal(printer, value)
    return show_leaf(printer, value)


@varies
def show_known_shape(printer: Printer, value: ShapeExpr) -> str:
    """A shape whose symbols are names already, as an argument."""
    if all(
        isinstance(dim, int) or all(name in printer.symbols and name not in RESERVED for name in free_symbols(dim))
        for dim in value.dims
    ):
        return show_shape(printer, value.dims)
    return show_leaf(printer, value)


def _type_argument(printer: Printer, value: Any) -> str:
    if isinstance(value, TupleType) and len(value.fields) > 1:
        return f"[{', '.join(show_type_value(printer, item) for item in value.fields)}]"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(show_type_value(printer, item) for item in value)}]"
    return show_type_value(printer, value)


@SHOWN.hole("callee")
@varies
def show_callee(printer: Printer, value: Expr) -> str:
    """The function of a packed call."""
    if isinstance(value, ExternFunc) and value.ty is None:
        return string_text(value.name)
    return show_leaf(printer, value)


def _show_literal(printer: Printer, value: Any) -> str:
    """Attribute data, whose functions stand above this one."""
    return SHOWN.hole["literal"](printer, value)
