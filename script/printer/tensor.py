"""Showing tensor-level functions: their signatures, what their bodies mention, what they declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.structure.visit import children, walk
from weft.ir.tensor import Bind, Block, Buffer, For, IterVar, Let, PrimFunc, PrimVar, Stmt
from weft.ir.types import PrimType, Type
from weft.script.forms.syntax import ALL_FORMS, BUFFERS
from weft.script.printer.forms import show_form
from weft.script.printer.graph import write_alias
from weft.script.printer.literals import write_decorator
from weft.script.printer.state import Printer, varies
from weft.script.printer.statements import buffer_values, write_statements
from weft.script.printer.types import show_declaration, show_type, show_variable_type

__all__ = ["has_blocks", "says_s_tir", "show_parameter", "show_signature", "write_function_body", "write_prim_function"]


@varies
def write_prim_function(printer: Printer, written: str, name: str, function: PrimFunc) -> None:
    """`@T.prim_func def ...`."""
    write_decorator(
        printer,
        "T.prim_func",
        {
            "private": (function.private, False),
            "name": (name, name if printer.foreign else written),
            "s_tir": (says_s_tir(printer, function), False),
        },
    )
    for param in function.params:
        if isinstance(param, PrimVar):
            printer.name(param)
    params, declared = show_signature(printer, function)
    result = f" -> {_scalar_type(printer, function.ret_type)}" if function.ret_type is not None else ""
    printer.line(f"def {written}({params}){result}:")
    outer = printer.indent
    printer.indent += "    "
    if function.attrs:
        printer.line(show_form(printer, ALL_FORMS["T.func_attr"], {"attrs": function.attrs}))
    write_alias(printer, function)
    for text in declared:
        printer.line(text)
    free = [variable for variable in _free_variables(function.body) if variable not in printer.names]
    printer.threads = _threads(function.body, free) if free else {}
    for variable in free:
        printer.line(f"{printer.name(variable)} = {show_declaration(printer, variable)}")
    write_function_body(printer, function)
    printer.indent = outer


@varies
def says_s_tir(printer: Printer, function: PrimFunc) -> bool:
    """Whether the text says so: blocks say it anyway."""
    return function.s_tir and not has_blocks(function)


@varies
def show_signature(printer: Printer, function: PrimFunc) -> tuple[str, list[str]]:
    """The parameters as text, and the lines that declare what they mention."""
    before, printer.quoted = printer.quoted, True
    known = set(printer.names)
    params = ", ".join(show_parameter(printer, param) for param in function.params)
    declared = [v for v in printer.names if isinstance(v, PrimVar) and v not in known and v.dtype != "int64"]
    printer.quoted = before
    return params, [f"{printer.name(variable)} = T.{variable.dtype}()" for variable in declared]


@varies
def write_function_body(printer: Printer, function: PrimFunc) -> None:
    """The statements of a function."""
    write_statements(printer, function.body)


def _scalar_type(printer: Printer, ty: Type) -> str:
    return f"T.{ty.dtype}" if isinstance(ty, PrimType) else show_type(printer, ty)


def show_parameter(printer: Printer, param: Buffer | PrimVar) -> str:
    """A parameter with its type."""
    if isinstance(param, Buffer):
        return f"{printer.name(param)}: {show_form(printer, BUFFERS['T.Buffer'], buffer_values(printer, param))}"
    return f"{printer.name(param)}: {show_variable_type(printer, param)}"


def _free_variables(body: Stmt) -> list[PrimVar]:
    """The variables that occur where nothing of the body binds them, in the order of their occurrence."""
    free: dict[PrimVar, None] = {}
    bound: set[Any] = set()
    stack: list[tuple[Any, Any]] = [(body, None)]
    while stack:
        current, leaving = stack.pop()
        if leaving is not None:
            bound.difference_update(leaving)
            continue
        if isinstance(current, PrimVar):
            if current not in bound:
                free[current] = None
            continue
        if isinstance(current, Buffer) and current in bound:
            continue
        own = [variable for variable in _binds(current) if variable not in bound]
        bound.update(own)
        if own and not isinstance(current, (Bind, Buffer)):
            stack.append((None, own))  # what a sequence introduces stays for its rest, all else for its inside
        stack.extend((child, None) for child in reversed(list(children(current, types=False))))
    return list(free)


def _threads(body: Stmt, variables: Sequence[PrimVar]) -> dict[PrimVar, str]:
    """Those of the variables that a thread axis binds somewhere, and its name."""
    found: dict[PrimVar, str] = {}
    for node in walk(body):
        if isinstance(node, For) and node.thread and node.loop_var in variables and node.step is None:
            if node.kind == "thread_binding" and node.start == 0 and not node.annotations:
                found[node.loop_var] = node.thread
    return found


def _binds(node: Any) -> list[Any]:
    if isinstance(node, (For, Block)):
        return [node.loop_var] if isinstance(node, For) else [item.var for item in node.iter_vars]
    if isinstance(node, (Bind, Let, IterVar)):
        return [node.var]
    return [node] if isinstance(node, Buffer) else []


def has_blocks(function: PrimFunc) -> bool:
    """Whether a function holds a block."""
    return any(isinstance(item, Block) for item in walk(function))
