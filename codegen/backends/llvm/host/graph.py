"""A `HostProgram` to LLVM functions: one machine-code entry for each graph function, nothing of Python between kernels.

    entry ::= int32 weft.entry.<name>(frame, argument words, result words)

Memory: an allocation is a reference-counted block, held by a slot of the function and released after its last use or on
the way out (`weft.codegen.backends.llvm.host.heap`); results carry a reference of their own. Arguments are borrowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.codegen.backends.llvm.asm.instructions import alloca, call, icmp, load
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.host import calls, loops, operations
from weft.codegen.backends.llvm.host.checks import is_void
from weft.codegen.backends.llvm.host.operands import OperandEmitter
from weft.codegen.backends.llvm.host.values import Items, Tensor, Value, load_value, owners, store_value, width
from weft.codegen.host import program as host
from weft.ir.dim.upper_bounds import upper_bounds
from weft.ir.structure.recursion import room_for
from weft.ir.types import AnyType, TensorType, Type

__all__ = ["emit_function"]


def emit_function(
    module: ModuleWriter, program: Program, host_program: host.HostProgram, function: host.HostFunction
) -> set[int]:
    """Emit one graph function into a module; gives the positions of the parameters that it writes in place."""
    with room_for(function.source):  # branches nest as deep as the user's program
        emitter = OperandEmitter(module, program, host_program, function)
        _emit(emitter, function)
        return emitter.written


def _emit(emitter: OperandEmitter, function: host.HostFunction) -> None:
    _parameters(emitter)
    value = _body(emitter, function.body)
    value = emitter.fitted(value, function.result, f"the result of {function.name}", function.body.span)
    for owner in owners(emitter.w, value):
        emitter.w.do(call("void", "@weft.retain", [("i64", owner)]))
    store_value(emitter.w, value, function.result, "%results")
    emitter.leave("0")
    _leave_block(emitter)
    emitter.w.finish()


def _parameters(emitter: OperandEmitter) -> None:
    function, index = emitter.function, 0
    given: list[tuple[Value, Type, str]] = []
    for position, param in enumerate(function.params, 1):
        ty = param.ty or AnyType()
        value, index = load_value(emitter.w, ty, "%arguments", index)
        if isinstance(value, Tensor):
            value.param = position - 1
        emitter.variables[param] = value
        given.append((value, ty, f"argument {position} `{param.name}`"))
    emitter.check(given, None)  # what is wrong is the call, whose place the caller notes
    for value, ty, _ in given:  # from here on sizes that the type states are numbers
        if isinstance(value, Tensor) and isinstance(ty, TensorType) and ty.dims is not None:
            stated = zip(ty.dims, value.sizes, strict=True)
            value.sizes = [dim if isinstance(dim, int) else size for dim, size in stated]
    for name, bound in upper_bounds(function.source).items():
        value = emitter.symbols.get(name)
        if value is not None:
            parts = [f"{name} is ", 0, f" in {function.name}, which states that it is at most {bound}"]
            fine = emitter.w.emit(icmp("sle", "i64", value, bound))
            emitter.unless(fine, "ShapeError", parts, [value], function.source.span, "W229")


def _leave_block(emitter: OperandEmitter) -> None:
    """Release what the slots hold and return."""
    w = emitter.w
    w.open(emitter.exit)
    if emitter.slots:
        emitter.module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1 immarg"))
        w.at_entry(alloca(f"[{emitter.slots} x i64]", 8), "%slots")
        size = ("i64", emitter.slots * 8)
        w.at_entry(call("void", "@llvm.memset.p0.i64", [("ptr", "%slots"), ("i8", 0), size, ("i1", "false")]))
        w.do(call("void", "@weft.release_all", [("ptr", "%slots"), ("i64", emitter.slots)]))
    w.ret("i32", w.emit(load("i32", emitter.status)))


# Steps


def _body(emitter: OperandEmitter, body: host.Body) -> Value:
    """Emit steps in order; gives the value of the result."""
    for step in body.steps:
        if isinstance(step, host.Free):
            for var in step.variables:
                emitter.drop(var)
        else:
            emitter.variables[step.into] = _STEPS[type(step)](emitter, step)
    return emitter.value(body.result)


def _bind(emitter: OperandEmitter, step: host.Bind) -> Value:
    return emitter.value(step.value)


def _match(emitter: OperandEmitter, step: host.Match) -> Value:
    return emitter.fitted(emitter.value(step.value), step.type, f"match_cast of {step.into.name}", step.span)


def _conditional(emitter: OperandEmitter, step: host.Conditional) -> Value:
    """The values of the branches meet in a block of words."""
    w, ty = emitter.w, step.into.ty
    condition = emitter.truth(emitter.value(step.condition), step.span)
    count = 0 if ty is None or is_void(ty) else width(ty)
    block = w.alloca("i64", max(1, count))
    then, other, done = w.label("then"), w.label("else"), w.label("endif")
    w.branch(condition, then, other)
    for label, branch in ((then, step.then), (other, step.other)):
        w.open(label)
        _branch(emitter, branch, ty if count else None, block)
        if not w.terminated:
            w.jump(done)
    w.open(done)
    return load_value(w, ty, block)[0] if ty is not None and count else Items()


def _branch(emitter: OperandEmitter, branch: host.Body, ty: Type | None, block: str) -> None:
    """What is bound or computed in a branch is not there after it; its value is stored with the type stated."""
    outer = emitter.known()
    value = _body(emitter, branch)
    if ty is not None:
        store_value(emitter.w, emitter.shaped(value, ty, "the value of a branch", branch.span), ty, block)
    emitter.forget_all_but(outer)


_STEPS: Mapping[type, Callable[[OperandEmitter, Any], Value]] = {
    host.Alloc: operations.alloc,
    host.View: operations.view,
    host.Operation: operations.operation,
    host.Launch: calls.launch,
    host.Call: calls.call_function,
    host.Extern: calls.extern,
    host.Closure: calls.closure,
    host.Invoke: calls.invoke,
    host.Bind: _bind,
    host.Match: _match,
    host.Conditional: _conditional,
    host.Loop: loops.loop,
}
