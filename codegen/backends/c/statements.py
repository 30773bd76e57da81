"""Statements of tensor-level functions as lines of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft import dtypes
from weft.codegen.backends.c.expressions import EXACT, exact_condition, expression, offset, unsupported
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.kernel import Helpers, KernelWriter, align, check_dtype
from weft.codegen.backends.c.names import identifier
from weft.codegen.backends.c.profile import PROFILE_CALLS, profile_call
from weft.ir.graph import GlobalVar
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Break,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Return,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["write_kernel"]

_LOCAL_BYTES = 256


def write_kernel(name: str, function: PrimFunc, helpers: Helpers, callees: dict[str, KernelWriter]) -> KernelWriter:
    """The C function of a tensor-level one; `callees` are those that it calls, written already."""
    writer = KernelWriter(name, function, helpers, callees)
    statement(writer, function.body)
    return writer


def statement(writer: KernelWriter, stmt: Stmt) -> None:
    """Write one statement."""
    rule = _STATEMENTS.get(type(stmt))
    if rule is None:
        raise unsupported(type(stmt).__name__, stmt.span)
    rule(writer, stmt)


def _sequence(writer: KernelWriter, stmt: SeqStmt) -> None:
    """Statements in order."""
    for part in stmt.stmts:
        statement(writer, part)


def _loop(writer: KernelWriter, stmt: For) -> None:
    """Every kind of loop but a thread's is a plain one."""
    if stmt.kind == "thread_binding":
        raise unsupported(f"a loop bound to {stmt.thread}", stmt.span)
    var = writer.declared(stmt.loop_var)
    kind = c_type(stmt.loop_var.dtype)
    start, extent = _bound(writer, stmt.start), _bound(writer, stmt.extent)
    if isinstance(stmt.start, int) and isinstance(stmt.extent, int):
        writer.ranges[stmt.loop_var] = stmt.start, max(stmt.start, stmt.start + stmt.extent - 1)
        stop = extent if start == "0" else f"{start} + {extent}"
    else:
        stop = extent if start == "0" else f"(int64_t)((uint64_t){start} + (uint64_t){extent})"
    amount = None if stmt.step is None else _bound(writer, stmt.step)
    if not _reads_memory(stmt):
        return _counted(writer, stmt, (kind, var, start, stop, amount))
    with writer.block(""):  # the iterations are those that there are when the loop begins
        end, more = identifier("end", writer.taken), identifier("step", writer.taken)
        writer.line(f"const int64_t {end} = {stop};")
        if amount is not None:
            writer.line(f"const int64_t {more} = {amount};")
        _counted(writer, stmt, (kind, var, start, end, None if amount is None else more))


def _counted(writer: KernelWriter, stmt: For, parts: tuple[str, str, str, str, str | None]) -> None:
    """The loop itself, of (type, variable, start, end, step)."""
    kind, var, start, stop, amount = parts
    step = f"++{var}" if amount is None else f"{var} = ({kind})({var} + {amount})"
    with writer.block(f"for ({kind} {var} = {start}; {var} < {stop}; {step})"):
        statement(writer, stmt.body)


def _reads_memory(loop: For) -> bool:
    parts = (part for part in (loop.start, loop.extent, loop.step) if isinstance(part, PrimExpr))
    return any(isinstance(node, BufferLoad) for part in parts for node in walk(part))


def _while_loop(writer: KernelWriter, stmt: While) -> None:
    """A loop on a condition."""
    with writer.block(f"while ({expression(writer, stmt.condition)})"):
        statement(writer, stmt.body)


def _conditional(writer: KernelWriter, stmt: IfThenElse) -> None:
    """if, else."""
    with writer.block(f"if ({expression(writer, stmt.condition)})"):
        statement(writer, stmt.then_body)
    if stmt.else_body is not None:
        with writer.block("else"):
            statement(writer, stmt.else_body)


def _store(writer: KernelWriter, stmt: BufferStore) -> None:
    """A store of a scalar, or of a vector lane by lane: all lanes are computed before the first is stored."""
    pointer = writer.pointer(stmt.buffer)
    check_dtype(stmt.buffer.dtype, stmt.span)
    lanes = dtypes.lanes(stmt.value.dtype)
    if lanes == 1:
        place = f"{pointer}[{offset(writer, stmt.buffer, stmt.indices, None)}]"
        guard = "" if stmt.predicate is None else f"if ({expression(writer, stmt.predicate)}) "
        writer.line(f"{guard}{place} = {expression(writer, stmt.value)};")
        return
    values, (lane, every) = identifier("lanes", writer.taken), _lanes(writer, lanes)
    kind = c_type(stmt.buffer.dtype)
    with writer.block(""):
        writer.line(f"{kind} {values}[{lanes}];")
        writer.line(f"{every} {values}[{lane}] = {expression(writer, stmt.value, lane)};")
        guard = "" if stmt.predicate is None else f"if ({expression(writer, stmt.predicate, lane)}) "
        place = f"{pointer}[{offset(writer, stmt.buffer, stmt.indices, lane)}]"
        writer.line(f"{every} {guard}{place} = {values}[{lane}];")


def _lanes(writer: KernelWriter, count: int) -> tuple[str, str]:
    """The number of a lane, and the loop over all of them."""
    lane = identifier("lane", writer.taken)
    return lane, f"for (int {lane} = 0; {lane} < {count}; ++{lane})"


def _bind(writer: KernelWriter, stmt: Bind) -> None:
    """A local constant; a vector is an array of its lanes."""
    lanes = dtypes.lanes(stmt.var.dtype)
    if lanes > 1:
        lane, every = _lanes(writer, lanes)
        value, name = expression(writer, stmt.value, lane), writer.declared(stmt.var)
        writer.line(f"{c_type(dtypes.element(stmt.var.dtype))} {name}[{lanes}];")
        writer.line(f"{every} {name}[{lane}] = {value};")
        return
    value = expression(writer, stmt.value)
    if stmt.var.dtype == "handle":
        raise unsupported("a variable that holds an address", stmt.span)
    name = writer.declared(stmt.var)
    writer.line(f"const {c_type(stmt.var.dtype)} {name} = {value};")
    writer.line(f"(void){name};")


def _allocate(writer: KernelWriter, stmt: AllocBuffer) -> None:
    """A small buffer is a local array, a larger one an offset into the workspace."""
    buffer = stmt.buffer
    check_dtype(buffer.dtype, stmt.span)
    count = 1
    for extent in buffer.shape:
        extent = extent.value if isinstance(extent, IntImm) else extent
        if not isinstance(extent, int):
            raise unsupported(f"memory of unknown size for {buffer.name!r}", stmt.span)
        count *= extent
    size = count * max(1, dtypes.bits(buffer.dtype) // 8)
    name, kind = writer.declared(buffer), c_type(buffer.dtype)
    if size <= _LOCAL_BYTES:
        writer.line(f"{kind} {name}[{max(1, count)}];")
        writer.line(f"(void){name};")  # what is never read may be there
        return
    writer.line(f"{kind} *{name} = ({kind} *)(void *)(workspace + {writer.used});")
    writer.line(f"(void){name};")
    writer.used += align(size)
    writer.workspace_bytes = max(writer.workspace_bytes, writer.used)


def _declare(writer: KernelWriter, stmt: DeclBuffer) -> None:
    """A view of memory at an address."""
    buffer = stmt.buffer
    if buffer.data is None:
        raise unsupported("a view without memory", stmt.span)
    check_dtype(buffer.dtype, stmt.span)
    address, kind, name = expression(writer, buffer.data), c_type(buffer.dtype), writer.declared(buffer)
    writer.line(f"{kind} *{name} = ({kind} *)(void *){address};")
    writer.line(f"(void){name};")


def _check(writer: KernelWriter, stmt: AssertStmt) -> None:
    """An assertion: its number is the result when it fails."""
    number = writer.helpers.message(stmt.kind, stmt.message)
    if stmt.kind == "BoundsError" and (text := exact_condition(writer, stmt.condition)) is not None:
        with writer.block(""):
            writer.line(f"int {EXACT} = 1;")
            writer.line(f"if (!{text}) return {number};")
        return
    writer.line(f"if (!{expression(writer, stmt.condition)}) return {number};")


def _attribute(writer: KernelWriter, stmt: AttrStmt) -> None:
    """Attributes do not change what portable C does."""
    statement(writer, stmt.body)


def _evaluate(writer: KernelWriter, stmt: Evaluate) -> None:
    """A call for its effect; failures of functions of the module are handed on."""
    if isinstance(stmt.value, PrimCall) and isinstance(stmt.value.op, GlobalVar):
        result = identifier("failed", writer.taken)
        with writer.block(""):
            writer.line(f"const int32_t {result} = {writer.call_function(stmt.value)};")
            writer.line(f"if ({result}) return {result};")
    elif isinstance(stmt.value, PrimCall) and stmt.value.op in ("call_extern", "call_pure_extern"):
        writer.line(f"{'(void)' if stmt.value.dtype != 'void' else ''}{writer.call_extern(stmt.value)};")
    elif isinstance(stmt.value, PrimCall) and stmt.value.op == "assume":
        return
    elif isinstance(stmt.value, PrimCall) and stmt.value.op in PROFILE_CALLS:
        writer.line(f"{profile_call(writer, stmt.value)};")
    elif isinstance(stmt.value, PrimExpr) and (lanes := dtypes.lanes(stmt.value.dtype)) > 1:
        lane, every = _lanes(writer, lanes)
        writer.line(f"{every} (void){expression(writer, stmt.value, lane)};")
    else:
        writer.line(f"(void){expression(writer, stmt.value)};")


def _leave(writer: KernelWriter, stmt: Return) -> None:
    """Leave the function."""
    if stmt.value is not None:
        raise unsupported("a scalar result", stmt.span)
    writer.line("return 0;")


def _bound(writer: KernelWriter, extent: Extent) -> str:
    return str(extent) if isinstance(extent, int) and abs(extent) < 2**31 else expression(writer, extent)


_STATEMENTS: Mapping[type, Callable[[KernelWriter, Any], None]] = {
    SeqStmt: _sequence,
    For: _loop,
    While: _while_loop,
    IfThenElse: _conditional,
    BufferStore: _store,
    Bind: _bind,
    AllocBuffer: _allocate,
    DeclBuffer: _declare,
    AssertStmt: _check,
    AttrStmt: _attribute,
    Evaluate: _evaluate,
    Return: _leave,
    Break: lambda writer, stmt: writer.line("break;"),
    Continue: lambda writer, stmt: writer.line("continue;"),
}
