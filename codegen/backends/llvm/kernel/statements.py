"""Statements without loops: stores, bindings, branches, checks."""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, call
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.kernel.allocation import allocate, declare
from weft.codegen.backends.llvm.kernel.conditions import exact_condition
from weft.codegen.backends.llvm.kernel.emitter import WARM, KernelEmitter, StatementForm
from weft.codegen.backends.llvm.kernel.failure_values import integers_seen
from weft.codegen.backends.llvm.matrices.tiles import emit_matrix_tiles
from weft.codegen.backends.llvm.values.expressions import dtype_of, is_cheap
from weft.codegen.backends.llvm.values.lanes import broadcast
from weft.codegen.host.kernels import result_dtype
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    MATRIX_TILES,
    NEAREST,
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Return,
    SeqStmt,
)
from weft.runtime.abi.frame import VALUE_COUNT

__all__ = ["PLAIN_STATEMENTS"]


def _is_index(expr: PrimExpr) -> bool:
    """Whether the value is index arithmetic, whose exact 64-bit form is worth having next to the narrow one."""
    return dtypes.bits(expr.dtype) < 64 and is_cheap(expr)


def _bind(emitter: KernelEmitter, stmt: Bind) -> None:
    wide = (
        emitter.size(stmt.value)
        if dtypes.is_signed(stmt.var.dtype) and dtypes.lanes(stmt.var.dtype) == 1 and _is_index(stmt.value)
        else None
    )
    emitter.bind(stmt.var, emitter.value(stmt.value), wide)


def _store(emitter: KernelEmitter, stmt: BufferStore) -> None:
    emitter.stores = True
    view = emitter.view(stmt.buffer)
    value = _running_sum(emitter, stmt) or emitter.value(stmt.value)
    dtype = stmt.value.dtype
    if dtype != stmt.buffer.dtype and dtypes.element(dtype) != dtypes.element(stmt.buffer.dtype):
        target = dtypes.with_lanes(dtypes.element(stmt.buffer.dtype), dtypes.lanes(dtype))
        value, dtype = emitter.arith.cast(dtype, target, value), target
    where = emitter.index.offset(view, stmt.indices)
    if where.lanes > 1 and dtypes.lanes(dtype) == 1:
        value, dtype = broadcast(emitter.w, value, dtype, where.lanes), dtypes.with_lanes(dtype, where.lanes)
    mask = None if stmt.predicate is None else emitter.condition_for(stmt.predicate, dtype)
    if emitter.streams is not None and stmt.buffer is emitter.streams.result and mask is None:
        if emitter.streams.hold(emitter.memory, view, where, dtype, value):
            return
    emitter.memory.store(view, where, dtype, value, mask)


def _running_sum(emitter: KernelEmitter, stmt: BufferStore) -> str | None:
    """`x[i] = x[i] + term` of floats with leave to sum in another order, which vector code needs (from opt 2)."""
    update = stmt.value
    if emitter.program.opt < 2 or not isinstance(update, Binary) or update.kind != "add":
        return None
    old = update.a
    if not isinstance(old, BufferLoad) or old.buffer is not stmt.buffer or update.dtype not in ("float32", "float64"):
        return None
    if not all(a is b or structural_equal(a, b) for a, b in zip(old.indices, stmt.indices, strict=True)):
        return None
    before = emitter.value(old)
    term = emitter.value(update.b)
    return emitter.w.emit(binary("fadd", value_type(update.dtype), before, term, "reassoc contract"))


def _if(emitter: KernelEmitter, stmt: IfThenElse) -> None:
    w = emitter.w
    then, other, done = w.label("then"), w.label("else"), w.label("endif")
    w.branch(emitter.value(stmt.condition), then, other if stmt.else_body is not None else done)
    w.open(then)
    emitter.scoped(stmt.then_body)
    if stmt.else_body is not None:
        if not w.terminated:
            w.jump(done)
        w.open(other)
        emitter.scoped(stmt.else_body)
    w.open(done)


def _return(emitter: KernelEmitter, stmt: Return) -> None:
    dtype = result_dtype(emitter.function)
    if stmt.value is not None and dtype:
        value = emitter.arith.cast(stmt.value.dtype, dtype, emitter.value(stmt.value))
        emitter.memory.write(dtype, "%result", value)
    elif stmt.value is not None:
        emitter.value(stmt.value)
    emitter.leave(0)


def _assert(emitter: KernelEmitter, stmt: AssertStmt) -> None:
    bad, good = emitter.w.label("assert"), emitter.w.label("ok")
    is_check = stmt.kind == "BoundsError"
    condition = exact_condition(emitter, stmt.condition) if is_check else emitter.value(stmt.condition)
    emitter.w.branch(condition, good, bad, WARM)
    emitter.w.open(bad)
    note, values = _witness(emitter, stmt.condition)
    emitter.program.fail(emitter.w, stmt.kind, stmt.message, values, span=stmt.span, note=note)
    emitter.leave(1)
    emitter.w.open(good)


def _witness(emitter: KernelEmitter, condition: PrimExpr) -> tuple[list[str | int], list[Size]]:
    """The parts of a note that says which integers a condition saw, and these integers."""
    note: list[str | int] = []
    values: list[Size] = []
    for part in integers_seen(condition, VALUE_COUNT):
        name = part.name if isinstance(part, PrimVar) else f"a value of {part.buffer.name}"
        note += [f"{', ' if note else 'with '}{name}=", len(values)]
        values.append(emitter.arith.cast(dtype_of(part), "int64", emitter.value(part)))
    return note, values


def _attr(emitter: KernelEmitter, stmt: AttrStmt) -> None:
    if stmt.key == PREFETCH and isinstance(stmt.value, BufferLoad):
        _prefetch(emitter, stmt.value, 3 if stmt.node == NEAREST else 2)
    if stmt.key == MATRIX_TILES and emit_matrix_tiles(emitter, stmt):
        return
    emitter.statement(stmt.body)


def _prefetch(emitter: KernelEmitter, place: BufferLoad, locality: int) -> None:
    """Ask for an element to be brought near, 3 being nearest; nothing happens where there is none."""
    view = emitter.view(place.buffer)
    address = emitter.memory.lane_address(view, emitter.index.offset(view, place.indices), 0)
    emitter.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32 immarg", "i32 immarg", "i32 immarg"))
    emitter.w.do(
        call("void", "@llvm.prefetch.p0", [("ptr", address), ("i32", "0"), ("i32", str(locality)), ("i32", "1")])
    )


def _evaluate(emitter: KernelEmitter, stmt: Evaluate) -> None:
    emitter.value(stmt.value)


PLAIN_STATEMENTS: Mapping[type, StatementForm] = {
    SeqStmt: KernelEmitter.scoped,
    BufferStore: _store,
    IfThenElse: _if,
    Bind: _bind,
    AllocBuffer: allocate,
    DeclBuffer: declare,
    AssertStmt: _assert,
    AttrStmt: _attr,
    Evaluate: _evaluate,
    Return: _return,
}
