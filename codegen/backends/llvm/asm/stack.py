"""The stack of the thread that runs compiled code: calls that nest too deeply end with an error (W951), not a crash.

    i1 weft.stack.enough(frame)      whether the calling thread has stack left for another call

It compares its own place with the lowest address that calls may reach, which the word STACK of the frame holds from the
first question on: MARGIN bytes (at most half of the stack) above the end of the thread's stack, as the system tells it,
and more where the program's frames are larger than that: the word `weft.stack.need`, set when it is loaded. Where the
system does not tell, that is UNKNOWN bytes below the first question.

Only calls that can nest deeply ask: of functions that reach themselves, or that begin a chain of more than CHAIN calls.
Their code has no tail calls (`NO_TAIL_CALLS`): those would take no stack, and a recursion without end would not end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import call
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.ir.graph import GlobalVar
from weft.ir.module import BaseFunc
from weft.ir.structure.visit import nodes_of
from weft.runtime.abi.frame import STACK
from weft.runtime.device.stack import ENOUGH, NEED

__all__ = ["NO_TAIL_CALLS", "deep_calls", "emit_stack_guard", "recursive_calls", "stack_is_enough"]

MARGIN = 160 << 10
UNKNOWN = 128 << 10
CHAIN = 16
NO_TAIL_CALLS = '"disable-tail-calls"="true"'
"""The attribute of functions whose calls may nest deeply."""
_ATTRIBUTES = 128  # bytes, more than a pthread_attr_t takes anywhere

_ASK = f"""ask:
  %self = call ptr @pthread_self()
  %found = call i32 @pthread_getattr_np(ptr %self, ptr %attributes)
  %told = icmp eq i32 %found, 0
  br i1 %told, label %known, label %unknown
known:
  %got = call i32 @pthread_attr_getstack(ptr %attributes, ptr %start, ptr %size)
  %dropped = call i32 @pthread_attr_destroy(ptr %attributes)
  %bottom = load i64, ptr %start
  %bytes = load i64, ptr %size
  %half = lshr i64 %bytes, 1
  %small = icmp ult i64 %half, {MARGIN}
  %usual = select i1 %small, i64 %half, i64 {MARGIN}
  %need = load i64, ptr @{NEED}
  %large = icmp ugt i64 %need, %usual
  %margin = select i1 %large, i64 %need, i64 %usual
  %reach = add i64 %bottom, %margin
  br label %note"""

_GUARD = f"""define i1 @{ENOUGH}(ptr %frame) noinline nounwind {{{{
  %attributes = alloca [{_ATTRIBUTES} x i8], align 16
  %start = alloca i64
  %size = alloca i64
  %here = ptrtoint ptr %attributes to i64
  %word = getelementptr i64, ptr %frame, i64 {STACK}
  %before = load i64, ptr %word
  %first = icmp eq i64 %before, 0
  br i1 %first, label %ask, label %compare
{{ask}}
unknown:
  %below = sub i64 %here, {UNKNOWN}
  br label %note
note:
  %lowest = phi i64 {{reaches}}
  store i64 %lowest, ptr %word
  br label %compare
compare:
  %end = phi i64 [ %before, %0 ], [ %lowest, %note ]
  %enough = icmp ugt i64 %here, %end
  ret i1 %enough
}}}}
"""


def emit_stack_guard(module: ModuleWriter) -> None:
    """Emit the function that asks."""
    module.add_global(f"@{NEED} = global i64 0")
    if sys.platform != "linux":
        ask, reaches = "ask:\n  br label %unknown", "[ %below, %unknown ]"
    else:
        ask, reaches = _ASK, "[ %reach, %known ], [ %below, %unknown ]"
        module.declare("pthread_self", "ptr", ())
        module.declare("pthread_getattr_np", "i32", ("ptr", "ptr"))
        module.declare("pthread_attr_getstack", "i32", ("ptr", "ptr", "ptr"))
        module.declare("pthread_attr_destroy", "i32", ("ptr",))
    module.define(ENOUGH, _GUARD.format(ask=ask, reaches=reaches))


def stack_is_enough(w: FunctionWriter, module: ModuleWriter) -> str:
    """Emit the question; gives the condition."""
    return w.emit(call("i1", module.declare(ENOUGH, "i1", ("ptr",)), [("ptr", "%frame")]))


def deep_calls(functions: Mapping[str, BaseFunc]) -> frozenset[str]:
    """The functions whose calls may nest deeply."""
    heights = _heights(functions)
    return frozenset(name for name in functions if heights.get(name, CHAIN + 1) > CHAIN)


def recursive_calls(functions: Mapping[str, BaseFunc]) -> frozenset[str]:
    """The functions that reach themselves, or one that does."""
    return frozenset(functions) - frozenset(_heights(functions))


def _heights(functions: Mapping[str, BaseFunc]) -> dict[str, int]:
    """How many calls nest in a function, itself counted, of those where the number has a bound."""
    callees = {name: _called(function, functions) for name, function in functions.items()}
    waiting = {name: len(called) for name, called in callees.items()}
    callers: dict[str, list[str]] = {name: [] for name in functions}
    for name, called in callees.items():
        for callee in called:
            callers[callee].append(name)
    heights = {name: 1 for name, count in waiting.items() if count == 0}
    ready = list(heights)
    for name in ready:
        for caller in callers[name]:
            waiting[caller] -= 1
            if not waiting[caller]:
                heights[caller] = 1 + max(heights[callee] for callee in callees[caller])
                ready.append(caller)
    return heights


def _called(function: BaseFunc, functions: Mapping[str, BaseFunc]) -> set[str]:
    names = {node.name for node in nodes_of(function, GlobalVar)}
    return {name for name in names if name in functions}
