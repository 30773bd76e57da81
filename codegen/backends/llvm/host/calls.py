"""Calls from a graph function: kernels, other graph functions, function values, functions outside the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from weft.codegen.backends.llvm.asm.instructions import call
from weft.codegen.backends.llvm.asm.stack import stack_is_enough
from weft.codegen.backends.llvm.host.checks import is_void
from weft.codegen.backends.llvm.host.direct_outputs import result_words
from weft.codegen.backends.llvm.host.launches import call_kernel
from weft.codegen.backends.llvm.host.operands import OperandEmitter
from weft.codegen.backends.llvm.host.values import (
    Callable_,
    Items,
    Tensor,
    Value,
    load_value,
    owners,
    store_value,
    width,
    write,
)
from weft.codegen.host import program as host
from weft.codegen.host.signature import graph_symbol
from weft.errors import Span, TargetError
from weft.ir.graph import Var
from weft.ir.types import TupleType
from weft.runtime.abi.failures import GRAPH_CALL

__all__ = ["Wanted", "call_function", "call_value", "closure", "extern", "invoke", "launch"]

Wanted = Mapping[int, Tensor]
"""Where a caller wants results, by the word of the results that they begin at."""
EMPTY: Wanted = MappingProxyType({})


def launch(emitter: OperandEmitter, step: host.Launch) -> Value:
    """A kernel; gives its scalar result."""
    values = [emitter.value(arg) for arg in step.arguments]
    return _call_module(emitter, step.kernel, values, step.arguments, step.into, step.span)


def call_function(emitter: OperandEmitter, step: host.Call) -> Value:
    """Another graph function, or this one."""
    values = [emitter.value(arg) for arg in step.arguments]
    return _call_module(emitter, step.function, values, step.arguments, step.into, step.span)


def extern(emitter: OperandEmitter, step: host.Extern) -> Value:
    """A registered Python function; its result has the stated type."""
    values = [emitter.value(arg) for arg in step.arguments]
    return emitter.call_out(step.name, values, step.result or TupleType(()), step.span)


def closure(emitter: OperandEmitter, step: host.Closure) -> Value:
    """A function of the module with its first arguments fixed."""
    function, fixed = emitter.value(step.callee), emitter.value(step.fixed)
    if not isinstance(function, Callable_):
        message = "llvm: a closure of a function that is not known when compiling"
        raise TargetError(message, code="W743", span=step.span)
    return Callable_(function.name, [*function.fixed, *(fixed.fields if isinstance(fixed, Items) else [fixed])])


def invoke(emitter: OperandEmitter, step: host.Invoke) -> Value:
    """A function value, which the compiler must know."""
    function = emitter.value(step.callee)
    if not isinstance(function, Callable_):
        hint = "run LambdaLift first; weft.interpret runs functions that are chosen while the program runs"
        message = "llvm: the function called is not known when compiling"
        raise TargetError(message, code="W743", span=step.span, hint=hint)
    return call_value(emitter, function, [emitter.value(arg) for arg in step.arguments], step.into, step.span)


def call_value(
    emitter: OperandEmitter,
    function: Callable_,
    values: Sequence[Value],
    var: Var,
    span: Span | None,
    wanted: Wanted = EMPTY,
) -> Value:
    """Call a function value on the rest of its arguments."""
    return _call_module(emitter, function.name, [*function.fixed, *values], (), var, span, wanted)


def _call_module(
    emitter: OperandEmitter,
    name: str,
    values: list[Value],
    given: Sequence[host.Operand],
    var: Var,
    span: Span | None,
    wanted: Wanted = EMPTY,
) -> Value:
    """A function of the module by name; `given` are the operands of the values, where these are all of them."""
    kernel, function = emitter.host.kernels.get(name), emitter.host.functions.get(name)
    if kernel is not None:
        return call_kernel(emitter, name, kernel, values, given, span)
    if function is not None:
        return _call_graph(emitter, function, values, var, span, wanted)
    raise TargetError(f"llvm: the module has no function {name!r}", code="W743", span=span)


def _call_graph(
    emitter: OperandEmitter, function: host.HostFunction, args: list[Value], var: Var, span: Span | None, wanted: Wanted
) -> Value:
    """A call of a graph function: words in, words out; the results' references are ours."""
    w, name = emitter.w, function.name
    if len(args) != len(function.params):
        message = f"llvm: {name} takes {len(function.params)} arguments, got {len(args)}"
        raise TargetError(message, code="W743", span=span)
    values = [
        emitter.shaped(arg, param.ty, f"argument {i} `{param.name}` of {name}", span)
        for i, (arg, param) in enumerate(zip(args, function.params, strict=True), 1)
    ]
    _check_stack(emitter, name, span)
    given = w.alloca("i64", max(1, sum(width(param.ty) for param in function.params)))
    index = 0
    for value, param in zip(values, function.params, strict=True):
        index = store_value(w, value, param.ty, given, index)
    results = w.alloca("i64", max(1, width(function.result)))
    for word, ty in result_words(function.result):
        place = wanted.get(word)  # what we want is not what our caller wants
        write(w, results, word, 0 if place is None else place.data)
        if place is not None and ty.dims is not None:
            write(w, results, word + 1, place.owner)
            for axis, size in enumerate(place.sizes):
                write(w, results, word + 2 + axis, size)
    spelled = emitter.module.declare(graph_symbol(name), "i32", ("ptr", "ptr", "ptr"))
    emitter.pass_on(
        w.emit(call("i32", spelled, [("ptr", "%frame"), ("ptr", given), ("ptr", results)])), span, placed=GRAPH_CALL
    )
    result, _ = load_value(w, function.result, results)
    for owner in owners(w, result):
        emitter.hold(owner, var)
    return emitter.fitted(result, var.ty, var.name or "a value", span) if not is_void(var.ty) else result


def _check_stack(emitter: OperandEmitter, name: str, span: Span | None) -> None:
    """W951 where calls of graph functions are nested so deep that the stack would run out."""
    if not emitter.program.nests_deeply(name):
        return
    fine = stack_is_enough(emitter.w, emitter.module)
    emitter.unless(fine, "RecursionError", [f"calls of {name} are nested too deep"], [], span)
