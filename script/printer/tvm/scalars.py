"""Tensor-level expressions in text for TVM."""

from __future__ import annotations

import math
from typing import Any

from weft import dtypes
from weft.ir.graph import GlobalVar
from weft.ir.tensor import (
    Binary,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Range,
)
from weft.script.forms.constants import float_text
from weft.script.forms.defaults import (
    DTYPE_LAST,
    DTYPE_MAYBE_FIRST,
    DTYPE_OF_ARGUMENT,
    OPERATORS_ONLY,
    RENAMED_OPERATORS,
    RESULT_DTYPES,
    is_device_name,
)
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import ATOM, BINARY, SCALARS
from weft.script.printer.forms import fill_form, show_immediate
from weft.script.printer.literals import show_literal
from weft.script.printer.scalars import (
    show_binary,
    show_box,
    show_call_argument,
    show_call_intrin,
    show_int,
    show_let,
    show_load,
    show_prim_call,
    show_range,
    show_side,
)
from weft.script.printer.state import Piece, separated
from weft.script.printer.tvm.style import TVM, USUAL_WIDTH, TvmPrinter
from weft.script.printer.types import show_declaration

__all__ = ["check_vector", "width_of"]

# What makes the nodes of Python's operators.
_CONSTRUCTORS = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "floordiv": "FloorDiv",
    "floormod": "FloorMod",
    "min": "Min",
    "max": "Max",
    "eq": "EQ",
    "ne": "NE",
    "lt": "LT",
    "le": "LE",
    "gt": "GT",
    "ge": "GE",
    "and": "And",
    "or": "Or",
    "truncmod": "Mod",
}
# Operands with which readers compute operators.
_FOLDED = {
    "add": (0,),
    "sub": (0,),
    "mul": (0, 1),
    "div": (0, 1),
    "floordiv": (0, 1),
    "floormod": (0, 1),
    "truncmod": (0, 1),
    "and": (0, 1),
    "or": (0, 1),
}


def width_of(printer: TvmPrinter, buffer: Buffer, axis: int) -> str:
    """The dtype in which a dimension of a buffer is counted."""
    dtypes_of = buffer.size_dtypes
    return dtypes_of[axis] if len(dtypes_of) == buffer.ndim and axis < buffer.ndim else USUAL_WIDTH


@TVM(show_box)
def _region(printer: TvmPrinter, region: BufferRegion) -> list[Piece]:
    """A box: single elements and `start:stop` slices."""
    if not region.region:
        return [f"{printer.name(region.buffer)}[()]"]
    # An element among others has their dtype: what wrote the numbers counted in it.
    counted = {item.start.dtype for item in region.region if isinstance(item.start, PrimExpr)}
    of_elements = counted.pop() if len(counted) == 1 else None
    parts = (
        _side_of(printer, item, (of_elements if item.extent == 1 else None) or width_of(printer, region.buffer, axis))
        for axis, item in enumerate(region.region)
    )
    return [f"{printer.name(region.buffer)}[", *separated(parts), "]"]


def _side_of(printer: TvmPrinter, item: Range, width: str) -> list[Piece]:
    start, extent = item.start, item.extent
    if isinstance(start, int) and isinstance(extent, PrimExpr):
        width = extent.dtype
    if width == USUAL_WIDTH or not isinstance(start, int):
        return show_range(printer, item)
    first = show_immediate(printer, IntImm(start, width))
    if isinstance(extent, int):
        return [first] if extent == 1 else [first, ":", show_immediate(printer, IntImm(start + extent, width))]
    offset: list[Piece] = [] if start == 0 else [first, " + "]
    return [first, ":", *offset, (extent, BINARY["add"].precedence + 1 if offset else 0)]


@TVM(show_let)
def _let(printer: TvmPrinter, expr: Let) -> tuple[list[Piece], int]:
    if expr.var not in printer.names:
        printer.pending.append(f"{printer.name(expr.var)} = {show_declaration(printer, expr.var)}")
    return show_let.plain(printer, expr)


@TVM(show_immediate)
def _immediate(printer: TvmPrinter, value: IntImm | FloatImm) -> str:
    """A typed constant."""
    dtype, number = value.dtype, value.value
    if isinstance(value, FloatImm):
        if math.isfinite(number) and abs(number) > dtypes.max_value(dtype):
            raise printer.refuse(f"the {dtype} constant {number}", value)
        if math.isfinite(number) and abs(number) > dtypes.max_value("float32"):
            return f'T.FloatImm("{dtype}", {float_text(number)})'  # T.float64 refuses them
    elif number >= 2**63 or (number < 0 and dtypes.is_unsigned(dtype)):
        raise printer.refuse(f"the {dtype} constant {number}", value)
    elif dtype != "bool" and dtypes.bits(dtype) < 8:
        return f'T.IntImm("{dtype}", {number})'
    return show_immediate.plain(printer, value)


@TVM(show_binary)
def _binary(printer: TvmPrinter, expr: Binary) -> tuple[list[Piece], int]:
    constants = [side for side in (expr.a, expr.b) if isinstance(side, (IntImm, FloatImm))]
    computed = len(constants) == 2 or any(side.value in _FOLDED.get(expr.kind, ()) for side in constants)
    floating = dtypes.is_float(dtypes.element(expr.a.dtype))
    if floating and expr.kind in ("floordiv", "floormod", "truncdiv"):
        raise printer.refuse(f"{expr.kind} of {expr.a.dtype}", expr, "compute it: T.floor(a / b), T.fmod(a, b)")
    integral = expr.kind == "div" and not floating
    name = _CONSTRUCTORS.get(expr.kind)
    if name is None or not (integral or computed):
        return show_binary.plain(printer, expr)
    # Readers compute what they can (`x + 0`); what makes the node computes nothing, and converts no numbers.
    sides = [
        [show_immediate(printer, side)] if isinstance(side, (IntImm, FloatImm)) else [(side, 0)]
        for side in (expr.a, expr.b)
    ]
    return [f"T.{name}(", *separated(sides), ")"], ATOM


@TVM(show_side)
def _side(printer: TvmPrinter, value: Any, other: PrimExpr) -> list[Piece]:
    return [show_int(printer, value)[0][0]] if isinstance(value, IntImm) else [show_immediate(printer, value)]


@TVM(show_load)
def _load(printer: TvmPrinter, expr: BufferLoad) -> tuple[list[Piece], int]:
    if expr.predicate is None or printer.older:
        return show_load.plain(printer, expr)
    check_vector(printer, expr, f"a load from '{expr.buffer.name}' with a predicate")
    parts = [[(part, 0)] for part in (*expr.indices, expr.predicate)]
    head = [string_text(expr.dtype)], [printer.name(expr.buffer)]
    return ["T.masked_load(", *separated([*head, *parts]), ")"], ATOM


def check_vector(printer: TvmPrinter, node: BufferLoad | BufferStore, what: str) -> None:
    """W116 for a predicate of one element: readers know it for vectors only."""
    if not node.indices or dtypes.lanes(node.indices[-1].dtype) == 1:
        raise printer.refuse(what, node)


@TVM(show_prim_call)
def _prim_call(printer: TvmPrinter, expr: PrimCall) -> tuple[list[Piece], int]:
    if isinstance(expr.op, GlobalVar) and printer.module_class:
        args = separated([piece] for piece in _arguments_of(printer, expr.op, expr))
        return [f"{printer.module_class}.{expr.op.name}(", *args, ")"], ATOM
    if expr.op == "if_then_else" and expr.dtype == "handle" and not printer.older:
        raise printer.refuse("a choice between pointers", expr, "make it with an `if`")
    moved = _moved_pointer(expr)
    pointer, offset = moved if moved is not None else (expr, None)
    if pointer.op == "access_ptr" and pointer.args and _is_first_data(pointer.args[0]):
        name = printer.name(pointer.args[0].args[0].buffer)  # type: ignore[union-attr]
        rest: list[list[Piece]] = [[show_call_argument(printer, item)] for item in pointer.args[1:]]
        rest += [[f"{key}={show_literal(printer, item)}"] for key, item in pointer.attrs.items()]
        if offset is not None:
            rest.append(["offset=", str(offset) if isinstance(offset, int) else (offset, 0)])
        return [f"{name}.access_ptr(", *separated(rest), ")"], ATOM
    if expr.op == "start_profile_intrinsic" and len(expr.args) > 1:  # its own form has no name
        values = {"dtype": expr.dtype, "op": f"{printer.operators}.{expr.op}", "args": expr.args, "attrs": {}}
        return fill_form(printer, SCALARS["T.call_intrin"], values), ATOM
    if expr.op == "address_of" and len(expr.args) == 1 and _is_first_element(expr.args[0]):
        return [f"{printer.name(expr.args[0].buffer)}.data"], ATOM  # type: ignore[union-attr]
    return show_prim_call.plain(printer, expr)


def _arguments_of(printer: TvmPrinter, callee: GlobalVar, expr: PrimCall) -> list[Piece]:
    """The arguments of a call of a function of the module: the buffer itself where that is what it takes."""
    function = printer.functions.get(callee.name)
    params = function.params if isinstance(function, PrimFunc) else ()
    made: list[Piece] = []
    for place, argument in enumerate(expr.args):
        whole = place < len(params) and isinstance(params[place], Buffer) and _is_first_data(argument)
        made.append(printer.name(argument.args[0].buffer) if whole else show_call_argument(printer, argument))  # type: ignore[union-attr]
    return made


@TVM(show_call_intrin)
def _call_intrin(printer: TvmPrinter, name: str, expr: PrimCall) -> tuple[list[Piece], int]:
    renamed = None if printer.older else RENAMED_OPERATORS.get(name)
    if name.startswith("ptx_") and not printer.older and renamed is None:
        raise printer.refuse(f"T.{name}", expr, hint="that version spells it T.ptx... with other arguments")
    if expr.attrs:
        raise printer.refuse(f"attributes of a call of '{name}'", expr)
    args = [[show_call_argument(printer, argument)] for argument in expr.args]
    stated: list[Piece] = [string_text(expr.dtype)]
    values = {"dtype": expr.dtype, "op": f"{printer.operators}.{renamed or name}", "args": expr.args, "attrs": {}}
    if renamed is not None or name in OPERATORS_ONLY:
        return fill_form(printer, SCALARS["T.call_intrin"], values), ATOM
    if name in DTYPE_MAYBE_FIRST and expr.dtype != "void":
        return [f"T.{name}(", *separated([stated, *args]), ")"], ATOM
    if name in DTYPE_LAST and len(args) == DTYPE_LAST[name]:
        return [f"T.{name}(", *separated([*args, stated]), ")"], ATOM
    if is_device_name(name) and expr.dtype == _device_dtype(name, expr):
        return [f"T.{name}(", *separated(args), ")"], ATOM
    return fill_form(printer, SCALARS["T.call_intrin"], values), ATOM


def _is_first_element(value: Any) -> bool:
    """Whether an expression is the first element of a buffer, whose address is that of its data."""
    if not isinstance(value, BufferLoad) or value.predicate is not None:
        return False
    return all(isinstance(index, IntImm) and index.value == 0 for index in value.indices)


def _device_dtype(name: str, expr: PrimCall) -> str:
    """The dtype of a call of a device that states none."""
    position = DTYPE_OF_ARGUMENT.get(name)
    if position is not None and position < len(expr.args):
        return expr.args[position].dtype  # type: ignore[union-attr]
    return RESULT_DTYPES.get(name, "void")


def _moved_pointer(expr: PrimCall) -> tuple[PrimCall, Any] | None:
    """The pointer and the number of elements of `A.access_ptr("r", offset=n)`, which is read as a number of bytes."""
    if expr.op != "handle_add_byte_offset" or len(expr.args) != 2:
        return None
    pointer, moved = expr.args
    if not isinstance(pointer, PrimCall) or pointer.op != "access_ptr" or not _is_first_data(pointer.args[0]):
        return None
    dtype = pointer.args[0].args[0].buffer.dtype  # type: ignore[union-attr]
    size = dtypes.bits(dtype) * dtypes.lanes(dtype) // 8
    if isinstance(moved, IntImm) and moved.dtype == USUAL_WIDTH and size and moved.value % size == 0:
        return pointer, moved.value // size
    if isinstance(moved, Binary) and moved.kind == "mul" and isinstance(moved.b, IntImm) and moved.b.value == size:
        return pointer, moved.a
    return (pointer, moved) if size == 1 else None


def _is_first_data(value: Any) -> bool:
    """Whether an expression is the data of a buffer."""
    return isinstance(value, PrimCall) and value.op == "address_of" and _is_first_element(value.args[0])
