"""Statements of tensor-level functions in text for TVM."""

from __future__ import annotations

from typing import Any

from weft.ir.node import FrozenMap
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Break,
    Buffer,
    BufferStore,
    Continue,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    Return,
    SeqStmt,
)
from weft.script.forms.defaults import HINT, SCOPE_IDS
from weft.script.forms.holes import string_text
from weft.script.forms.syntax import BUFFERS, CLAUSES, LOOPS
from weft.script.printer.forms import as_operand, join, show_form, show_immediate
from weft.script.printer.literals import show_anything, show_literal
from weft.script.printer.scalars import show_call_argument
from weft.script.printer.state import Piece, Ready, separated
from weft.script.printer.statements import (
    buffer_values,
    show_condition,
    show_loop_head,
    show_loop_text,
    write_alloc,
    write_assert,
    write_attr,
    write_axis,
    write_bind,
    write_for,
    write_if_statement,
    write_inner,
    write_jump,
    write_loop,
    write_return,
    write_seq,
    write_statement,
    write_store,
)
from weft.script.printer.tvm.scalars import check_vector, width_of
from weft.script.printer.tvm.style import TVM, USUAL_WIDTH, TvmPrinter
from weft.script.printer.types import show_extent, show_variable_type

__all__ = []

_POINTER_CALLS = ("tvm_struct_get", "tvm_stack_alloca", "TVMBackendAllocWorkspace", "reinterpret")


def _sized(printer: TvmPrinter, value: Any, dtype: str) -> Any:
    """A size as a constant of a dtype."""
    return IntImm(value, dtype) if isinstance(value, int) and dtype != USUAL_WIDTH else value


@TVM(buffer_values)
def _buffer_values(printer: TvmPrinter, buffer: Buffer) -> dict[str, Any]:
    if buffer.axis_separators and not printer.older:
        raise printer.refuse(f"the buffer '{buffer.name}' with axis_separators", buffer)
    values = buffer_values.plain(printer, buffer)
    for field in ("shape", "strides"):
        if values[field] is not None:
            values[field] = tuple(
                _sized(printer, size, width_of(printer, buffer, axis)) for axis, size in enumerate(values[field])
            )
    return values


@TVM(write_for)
def _for(printer: TvmPrinter, stmt: For) -> None:
    plain = isinstance(stmt.start, int) and stmt.start == 0 and stmt.step is None and not stmt.annotations
    if stmt.launched and plain and stmt.kind == "thread_binding" and stmt.loop_var not in printer.threads:
        extent = _sized(printer, stmt.extent, stmt.loop_var.dtype)
        text = show_form(printer, LOOPS["T.launch_thread"], {"thread": stmt.thread, "extent": extent})
        write_loop(printer, [stmt], f"with {text} as {printer.name(stmt.loop_var)}:")
        return
    write_for.plain(printer, stmt)


@TVM(show_loop_head)
def _loop_head(printer: TvmPrinter, stmt: For) -> str:
    dtype = stmt.loop_var.dtype
    start, extent = (_sized(printer, side, dtype) for side in (stmt.start, stmt.extent))
    if printer.older and stmt.step is not None:
        raise printer.refuse(f"the step of the loop over '{stmt.loop_var.name}'", stmt)
    values: dict[str, Any] = {"step": stmt.step, "annotations": dict(stmt.annotations), "thread": stmt.thread or ""}
    for side in (start, extent):
        if isinstance(side, PrimExpr) and side.dtype != dtype:
            raise printer.refuse(f"the loop over '{stmt.loop_var.name}' counts in {dtype} up to a {side.dtype}", stmt)
    if isinstance(stmt.start, int) and stmt.start == 0:
        values["start"] = extent
    else:
        values.update(start=start, stop=_sum(start, extent, dtype))
    return show_loop_text(printer, stmt, values)


def _sum(start: Any, extent: Any, dtype: str) -> Any:
    """The end of a loop, a constant where both are."""
    plain = [side.value if isinstance(side, IntImm) else side for side in (start, extent)]
    if isinstance(plain[0], int) and isinstance(plain[1], int):
        total = plain[0] + plain[1]
        return total if dtype == USUAL_WIDTH else IntImm(total, dtype)
    left, right = (IntImm(side, dtype) if isinstance(side, int) else side for side in plain)
    return Binary("add", left, right)


@TVM(write_axis)
def _axis(printer: TvmPrinter, item: IterVar) -> None:
    dtype = item.var.dtype
    start, extent = (_sized(printer, side, dtype) for side in (item.start, item.extent))
    if isinstance(extent, PrimExpr) and extent.dtype != dtype:
        raise printer.refuse(f"the block variable '{item.var.name}' is {dtype}, its extent {extent.dtype}", item)
    if item.value is None:
        raise printer.refuse(f"the block variable '{item.var.name}', which is bound to nothing,", item)
    text = join(printer, show_extent(printer, extent))
    if not (isinstance(item.start, int) and item.start == 0):
        stop = _sum(start, extent, dtype)
        text = f"({join(printer, show_extent(printer, start))}, {join(printer, show_extent(printer, stop))})"
    values = {"extent": Ready(text), "value": item.value}
    printer.line(f"{printer.name(item.var)} = {show_form(printer, CLAUSES[f'T.axis.{item.kind}'], values)}")


@TVM(write_if_statement)
def _if_statement(printer: TvmPrinter, stmt: IfThenElse) -> None:
    """Branches; a condition with a `T.Let` stands in an `if` of its own, after the declaration of its variable."""
    inner = stmt.else_body
    if isinstance(inner, IfThenElse) and any(isinstance(item, Let) for item in walk(inner.condition)):
        write_inner(printer, f"if {join(printer, show_condition(printer, stmt.condition))}:", stmt.then_body)
        write_inner(printer, "else:", inner)
        return
    write_if_statement.plain(printer, stmt)


@TVM(write_store)
def _store(printer: TvmPrinter, stmt: BufferStore) -> None:
    if stmt.predicate is None or printer.older:
        write_store.plain(printer, stmt)
        return
    check_vector(printer, stmt, f"a store to '{stmt.buffer.name}' with a predicate")
    rest = [[(part, 0)] for part in (stmt.value, *stmt.indices, stmt.predicate)]
    printer.line(join(printer, ["T.masked_store(", *separated([[printer.name(stmt.buffer)], *rest]), ")"]))


@TVM(write_alloc)
def _alloc(printer: TvmPrinter, stmt: AllocBuffer, in_block: bool = False) -> None:
    name, values = stmt.buffer.name, buffer_values(printer, stmt.buffer)
    if printer.older:
        if stmt.annotations:
            raise printer.refuse(f"the allocation '{name}' with annotations", stmt)
        printer.line(f"{printer.name(stmt.buffer)} = {show_form(printer, BUFFERS['T.decl_buffer'], values)}")
        return
    write_alloc.plain(printer, stmt)


@TVM(write_attr)
def _attr(printer: TvmPrinter, stmt: AttrStmt) -> None:
    if stmt.value is None:
        raise printer.refuse(f"the attribute '{stmt.key}' without a value", stmt)
    if stmt.key == HINT and isinstance(stmt.node, str) and isinstance(stmt.value, FrozenMap):
        if printer.older or not all(key.isidentifier() for key in stmt.value):
            raise printer.refuse("a hint", stmt)
        told = [f"{key}={show_literal(printer, item)}" for key, item in stmt.value.items()]
        write_inner(printer, f"with T.hint({', '.join([string_text(stmt.node), *told])}):", stmt.body)
        return
    if stmt.node is not None:
        write_attr.plain(printer, stmt)
        return
    value = show_immediate(printer, stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
    text = value or join(printer, _as_pieces(show_anything(printer, stmt.value)))
    key = string_text(stmt.key)
    write_inner(
        printer, f"with T.attr(0, {key}, {text}):" if printer.older else f"with T.attr({{{key}: {text}}}):", stmt.body
    )


@TVM(write_bind)
def _bind(printer: TvmPrinter, stmt: Bind) -> None:
    if isinstance(stmt.value, PrimCall) and stmt.value.op in SCOPE_IDS:
        _scope_id(printer, stmt, stmt.value)
        return
    if not printer.older and _is_pointer_call(stmt):
        kind = show_variable_type(printer, stmt.var)
        op = f'"{printer.operators}.{stmt.value.op}"'  # type: ignore[union-attr]
        args = [[show_call_argument(printer, argument)] for argument in stmt.value.args]  # type: ignore[union-attr]
        text = join(printer, [f"T.call_intrin({kind}.ty, ", *separated([[op], *args]), ")"])
        printer.line(f"{printer.name(stmt.var)}: T.let[{kind}] = {text}")
        return
    if not printer.older:
        write_bind.plain(printer, stmt)
        return
    value = show_immediate(printer, stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
    text = value or join(printer, as_operand(printer, stmt.value))
    printer.line(f"{printer.name(stmt.var)}: {show_variable_type(printer, stmt.var)} = {text}")


def _scope_id(printer: TvmPrinter, stmt: Bind, call: PrimCall) -> None:
    if printer.older or call.attrs or call.dtype != "int32":
        raise printer.refuse(f"T.{call.op} of several extents, or of another dtype than int32", stmt)
    extents = ", ".join(
        join(printer, as_operand(printer, extent)) for extent in call.args if isinstance(extent, PrimExpr)
    )
    printer.line(f"{printer.name(stmt.var)} = T.{call.op}({f'[{extents}]' if call.args else ''})")


def _is_pointer_call(stmt: Bind) -> bool:
    """Whether a call gives a pointer to elements of a dtype, which the call has to say."""
    call, var = stmt.value, stmt.var
    typed = var.dtype == "handle" and (var.pointee is not None or var.scope != "global")
    return typed and isinstance(call, PrimCall) and call.op in _POINTER_CALLS and not call.attrs


@TVM(write_return)
def _return(printer: TvmPrinter, stmt: Return) -> None:
    if not printer.older:
        write_return.plain(printer, stmt)
        return
    if stmt.value is None:
        raise printer.refuse("a return without a value", stmt)
    value = show_immediate(printer, stmt.value) if isinstance(stmt.value, (IntImm, FloatImm)) else None
    printer.line(f"T.ret({value or join(printer, as_operand(printer, stmt.value))})")


@TVM(write_jump)
def _leave(printer: TvmPrinter, stmt: Break | Continue) -> None:
    word = "break" if isinstance(stmt, Break) else "continue"
    if printer.older:
        raise printer.refuse(f"`{word}`", stmt)
    printer.line(word)


@TVM(write_assert)
def _assert(printer: TvmPrinter, stmt: AssertStmt) -> None:
    if printer.older and stmt.kind != "AssertionError":
        raise printer.refuse(f"an assertion that raises {stmt.kind}", stmt)
    if printer.older and stmt.parts:
        raise printer.refuse("an assertion with a message of parts", stmt, "give it one message")
    write_assert.plain(printer, stmt)


@TVM(write_seq)
def _seq(printer: TvmPrinter, stmt: SeqStmt) -> None:
    for item in stmt.stmts:
        write_statement(printer, item)
    if not stmt.stmts:
        printer.line("pass")


def _as_pieces(shown: Any) -> list[Piece]:
    return shown if isinstance(shown, list) else [shown]
