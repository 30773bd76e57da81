"""Showing tensor-level functions as TVM's readers of this language want them.

The same module, with what those readers need said: symbols are declared before they are used and buffers with
symbolic sizes are matched with a handle, sizes are typed constants (see `print_widths`), the variable of a `T.Let`
exists before it, block variables that do not start at zero have a range, and device intrinsics go by the name of their
operator.
"""

from __future__ import annotations

from typing import Any

from weft.ir.tensor import AllocBuffer, Buffer, PrimExpr, PrimFunc, PrimVar, SeqStmt
from weft.script.forms.syntax import BUFFERS
from weft.script.printer.forms import show_form
from weft.script.printer.statements import buffer_values, write_statement
from weft.script.printer.tensor import (
    has_blocks,
    says_s_tir,
    show_parameter,
    show_signature,
    write_function_body,
    write_prim_function,
)
from weft.script.printer.tvm.style import TVM, TvmPrinter
from weft.script.printer.types import show_declaration, show_variable_type

__all__ = []


@TVM(write_prim_function)
def _prim_function(printer: TvmPrinter, written: str, name: str, function: PrimFunc) -> None:
    """`@T.prim_func def ...`."""
    printer.blocks_inside = has_blocks(function)
    write_prim_function.plain(printer, written, name, function)


@TVM(says_s_tir)
def _says_s_tir(printer: TvmPrinter, function: PrimFunc) -> bool:
    """Whether the function is of the dialect that has blocks, which the newer reader is told."""
    return not printer.older and (function.s_tir or printer.blocks_inside)


@TVM(show_variable_type)
def _variable_type(printer: TvmPrinter, variable: PrimVar) -> str:
    if variable.pointee == "handle" and not printer.older:
        raise printer.refuse(f"the pointer to pointers '{variable.name}'", variable)
    return show_variable_type.plain(printer, variable)


@TVM(show_signature)
def _signature(printer: TvmPrinter, function: PrimFunc) -> tuple[str, list[str]]:
    """The parameters as text, and the lines that declare symbols and match buffers of symbolic sizes."""
    texts: list[str] = []
    matched: list[tuple[Buffer, PrimVar]] = []
    for param in function.params:
        if isinstance(param, Buffer) and _is_symbolic(param):
            handle = PrimVar(f"var_{param.name}", "handle")
            matched.append((param, handle))
            texts.append(f"{printer.name(handle)}: T.handle")
        else:
            texts.append(show_parameter(printer, param))
    known = set(printer.names)
    lines = []
    for buffer, handle in matched:
        text = show_form(printer, BUFFERS["T.match_buffer"], {**buffer_values(printer, buffer), "source": handle})
        lines.append(f"{printer.name(buffer)} = {text}")
    symbols = [item for item in printer.names if isinstance(item, PrimVar) and item not in known]
    return ", ".join(texts), [
        *(f"{printer.name(item)} = {show_declaration(printer, item)}" for item in symbols),
        *lines,
    ]


@TVM(write_function_body)
def _function_body(printer: TvmPrinter, function: PrimFunc) -> None:
    """The statements; buffers that come first belong to the block around a function that has blocks."""
    body = function.body
    items = list(body.stmts) if isinstance(body, SeqStmt) else [body]
    first = 0
    while printer.blocks_inside and first < len(items) and isinstance(items[first], AllocBuffer):
        stmt: Any = items[first]
        values = {**buffer_values(printer, stmt.buffer), "annotations": dict(stmt.annotations)}
        printer.line(f"{printer.name(stmt.buffer)} = {show_form(printer, printer.block_buffer, values)}")
        first += 1
    for item in items[first:]:
        write_statement(printer, item)
    if not items:
        printer.line("pass")


def _is_symbolic(buffer: Buffer) -> bool:
    """Whether a size, stride or offset of a buffer is more than a number."""
    parts = (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset)
    return any(isinstance(part, PrimExpr) for part in parts)
