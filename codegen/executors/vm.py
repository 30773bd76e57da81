"""The executor `vm`: a `HostProgram` to bytecode (`weft.runtime.programs.bytecode`).

Each variable gets a register, and each size that is computed. Kernels stay machine code; everything else is one of
five instructions: call, size, ret, if, goto. What machine code checks by itself (sizes, declared types of results,
match_cast) becomes calls of `match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.codegen.backends.base import Plan, back_end_of
from weft.codegen.executors.bytecode import (
    BytecodeBuilder,
    Operand,
    OperandEmitter,
    handed_type,
    handed_types,
    type_of,
    vm_type,
)
from weft.codegen.host import program as host
from weft.codegen.host.kernels import written_positions
from weft.codegen.host.operands import no_kernel
from weft.codegen.host.read import read_program
from weft.codegen.host.relations import relations
from weft.codegen.host.signature import span_json
from weft.errors import Span
from weft.ir.graph import Var
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.ir.types import Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.json_form import parameter_to_json, type_to_json
from weft.runtime.executable import Program
from weft.runtime.programs.bytecode import FORMAT, VERSION
from weft.transform.analysis.value_numbering import same_type

__all__ = ["emit_program", "vm"]


def vm(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """The executor: bytecode of graph functions, machine code of kernels."""
    program = back_end_of(plan.parts[plan.driver]).machine_code(module, plan, owner, kernels_only=True)
    program.driver = emit_program(read_program(module), program)
    return program


def emit_program(program: host.HostProgram, kernels: Program) -> dict[str, Any]:
    """The bytecode of the graph functions of a program; constants join those of the kernels' program."""
    spans: list[Any] = []
    constants: dict[int, int] = {id(array): index for index, (array, _) in enumerate(kernels.constants)}
    functions = [
        _Emitter(function, program.kernels, kernels, constants, spans).run() for function in program.functions.values()
    ]
    return {"executor": "vm", "format": FORMAT, "functions": functions, "spans": spans, "version": VERSION}


class _Emitter:
    def __init__(
        self,
        function: host.HostFunction,
        functions: Mapping[str, PrimFunc],
        kernels: Program,
        constants: dict[int, int],
        spans: list[Any],
    ) -> None:
        self.function, self.functions = function, functions
        self.out = BytecodeBuilder(spans)
        self.operand = OperandEmitter(self.out, kernels, constants).operand
        self.aliases: dict[Var, Var] = {}
        self.written: set[Var] = set()
        self.sizes: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """The function as data."""
        function, source = self.function, self.function.source
        for param in function.params:
            self.out.register(param)
        result = self.body(function.body)
        given = function.body.result
        if not same_type(given.ty if isinstance(given, Var) else None, function.result):
            self.out.match(result, function.result, f"the result of {function.name}", function.body.span)
        self.out.code.append(["ret", result])
        params = []
        for index, param in enumerate(function.params):
            ty = vm_type(param.ty)
            if param in self.written and isinstance(ty, abi.Tensor):
                ty = replace(ty, use="copied" if source.pure else "written")
            params.append(parameter_to_json(abi.Parameter(param.name or f"arg{index}", ty, span_json(param.span))))
        return {
            "name": function.name,
            "kind": "graph",
            "params": params,
            "result": type_to_json(vm_type(function.result)),
            "registers": self.out.count,
            "code": self.out.code,
            "private": source.private,
            "span": span_json(source.span),
            "sizes": self.sizes,
        }

    def returned(self, var: Var, into: int, span: Span | None) -> None:
        """Append the check of what a call gave."""
        self.out.match(["r", into], var.ty, var.name or "a value", span)

    # Steps

    def body(self, body: host.Body) -> Operand:
        """Emit steps; gives the operand of the result."""
        for step in body.steps:
            self.out.here = step.span
            _STEPS[type(step)](self, step)
        return self.operand(body.result)

    def alloc(self, step: host.Alloc) -> None:
        into = self.out.register(step.into)
        name = "alloc_storage" if step.block else "alloc_tensor"
        self.out.call(into, "builtin", name, [self.operand(step.shape), ["s", step.dtype]], step.span)

    def view(self, step: host.View) -> None:
        into = self.out.register(step.into)
        shape = ["s", None] if step.shape is None else self.operand(step.shape)
        operands = [self.operand(step.source), self.operand(step.offset), shape, ["s", step.dtype]]
        if isinstance(step.source, Var):
            self.aliases[step.into] = step.source
        self.out.call(into, "builtin", "tensor_in_storage" if step.block else "view", operands, step.span)

    def free(self, step: host.Free) -> None:
        dead = [["i", self.out.registers[var]] for var in step.variables if var in self.out.registers]
        self.out.call(-1, "builtin", "kill", dead, step.span)

    def launch(self, step: host.Launch) -> None:
        into = self.out.register(step.into)
        args = [self.operand(arg) for arg in step.arguments]
        for position in written_positions(self.functions[step.kernel], self.functions):
            if position < len(args) and isinstance(arg := step.arguments[position], Var):
                self.written.add(self.origin(arg))
        rows = relations(self.functions[step.kernel], step.arguments)
        if any(rows):
            self.sizes[str(len(self.out.code))] = [[item.parts(step.kernel) for item in row] for row in rows]
        self.out.call(into, "kernel", step.kernel, args, step.span)

    def extern(self, step: host.Extern) -> None:
        """A call of a registered function; the last operands are the types of its arguments and of what it returns."""
        into = self.out.register(step.into)
        result = ["ty", [] if step.result is None else type_to_json(vm_type(step.result))]
        types = ["ty", handed_types(step.arguments)]
        self.out.call(into, "packed", step.name, [*map(self.operand, step.arguments), types, result], step.span)

    def match_value(self, step: host.Match) -> None:
        into = self.out.register(step.into)
        self.out.call(into, "builtin", "same", [self.operand(step.value)], step.span)
        self.out.match(["r", into], step.type, f"match_cast of {step.into.name}", step.span)

    def conditional(self, step: host.Conditional) -> None:
        """Emit a conditional; symbols that a branch binds end with it."""
        into = self.out.register(step.into)
        condition = self.operand(step.condition)
        start = len(self.out.code)
        self.out.code.append(["if", condition, 0])
        self.branch(step.then, into)
        end = len(self.out.code)
        self.out.code.append(["goto", 0])
        self.out.code[start][2] = len(self.out.code) - start - 1
        self.branch(step.other, into)
        self.out.code[end][1] = len(self.out.code) - end - 1

    def branch(self, branch: host.Body, into: int) -> None:
        outside = dict(self.out.computed)
        self.out.call(-1, "builtin", "enter", [], None)
        result = self.body(branch)
        self.out.call(into, "builtin", "same", [result], None)
        self.out.call(-1, "builtin", "leave", [], None)
        self.out.computed = outside

    def loop(self, step: host.Loop) -> None:
        """Emit a loop: a register for each carried value, a jump back to what asks whether to go on."""
        into, state = self.out.register(step.into), [self.out.new_register() for _ in step.initial]
        for register, initial, ty in zip(state, step.initial, step.types, strict=True):
            self.out.call(register, "builtin", "same", [self.operand(initial)], step.span)
            self.out.match(["r", register], ty, "an initial value of the loop", step.span)
        carried: list[Operand] = [["r", register] for register in state]
        indices, place, result = self.out.new_register(), self.out.new_register(), self.out.new_register()
        if step.bounds is not None:
            self.out.call(indices, "builtin", "range", [self.operand(bound) for bound in step.bounds], step.span)
            self.out.call(place, "builtin", "same", [["i", 0]], step.span)
        rows = [self.out.new_register() for _ in step.stacked]
        for register, ty in zip(rows, step.stacked, strict=True):
            shape = self.operand(host.Extents(tuple(ty.dims or ()), step.span))
            self.out.call(register, "builtin", "alloc_tensor", [shape, ["s", ty.dtype]], step.span)
        head, exits, outside = len(self.out.code), list[int](), dict(self.out.computed)
        given: list[Operand] = []
        if step.bounds is not None:
            self.out.call(result, "builtin", "more", [["r", indices], ["r", place]], step.span)
            self.out.leave_unless(["r", result], exits)
            given = [["r", self.out.new_register()]]
            self.out.call(given[0][1], "builtin", "index", [["r", indices], ["r", place]], step.span)
            self.out.call(place, "builtin", "increment", [["r", place]], step.span)
        types = list(step.types)
        if step.condition is not None:
            self.call_value(result, step.condition, carried, types, step.span)
            self.out.leave_unless(["r", result], exits)
        self.call_value(result, step.body, [*given, *carried], [None] * len(given) + types, step.span)
        for number, register in enumerate(state):
            self.out.call(register, "builtin", "item", [["r", result], ["i", number]], step.span)
        row = self.out.new_register() if rows else -1
        for number, register in enumerate(rows, len(state)):
            self.out.call(row, "builtin", "item", [["r", result], ["i", number]], step.span)
            self.out.call(-1, "builtin", "set_row", [["r", register], ["r", place], ["r", row]], step.span)
        self.out.code.append(["goto", head - len(self.out.code) - 1])
        self.out.computed = outside  # a loop may have no iteration
        for place_ in exits:
            self.out.code[place_][2] = len(self.out.code) - place_ - 1
        self.out.call(into, "builtin", "same", [["t", [*carried, *(["r", register] for register in rows)]]], step.span)

    def call_function(self, step: host.Call) -> None:
        into = self.out.register(step.into)
        self.out.call(into, "function", step.function, [self.operand(arg) for arg in step.arguments], step.span)
        self.returned(step.into, into, step.span)

    def invoke(self, step: host.Invoke) -> None:
        into = self.out.register(step.into)
        args = [self.operand(arg) for arg in step.arguments]
        self.call_value(into, step.callee, args, list(map(type_of, step.arguments)), step.span, step.into.ty)
        self.returned(step.into, into, step.span)

    def call_value(
        self,
        into: int,
        callee: host.Operand,
        operands: Sequence[Operand],
        types: Sequence[Type | None],
        span: Span | None,
        result: Type | None = None,
    ) -> None:
        """Append a call of a function that is a value, maybe one of the caller's."""
        handed = type_to_json(abi.Tuple(tuple(map(handed_type, types))))
        given = [] if result is None else type_to_json(vm_type(result))
        called = ["value", self.operand(callee), handed, given]
        self.out.code.append(["call", into, called, list(operands), self.out.span(span)])

    def closure(self, step: host.Closure) -> None:
        into = self.out.register(step.into)
        self.out.call(into, "builtin", "make_closure", [self.operand(step.callee), self.operand(step.fixed)], step.span)

    def bind(self, step: host.Bind) -> None:
        into = self.out.register(step.into)
        if isinstance(step.value, Var):
            self.aliases[step.into] = step.value
        self.out.call(into, "builtin", "same", [self.operand(step.value)], step.span)

    def operation(self, step: host.Operation) -> None:
        into = self.out.register(step.into)
        name = _OPERATIONS.get(step.name)
        if name is None:
            raise no_kernel("vm", step, self.function.name)
        operands = [self.operand(arg) for arg in step.arguments]
        if name in _SHOWING:
            operands.append(["ty", handed_types(step.arguments[_SHOWING[name] :])])
        self.out.call(into, "builtin", name, operands, step.span)
        if name in _CHECKED:
            self.returned(step.into, into, step.span)

    def origin(self, var: Var) -> Var:
        """The variable that another one is a name of."""
        while var in self.aliases:
            var = self.aliases[var]
        return var


_STEPS: Mapping[type, Callable[[_Emitter, Any], None]] = {
    host.Alloc: _Emitter.alloc,
    host.View: _Emitter.view,
    host.Free: _Emitter.free,
    host.Launch: _Emitter.launch,
    host.Extern: _Emitter.extern,
    host.Match: _Emitter.match_value,
    host.Conditional: _Emitter.conditional,
    host.Loop: _Emitter.loop,
    host.Call: _Emitter.call_function,
    host.Invoke: _Emitter.invoke,
    host.Closure: _Emitter.closure,
    host.Bind: _Emitter.bind,
    host.Operation: _Emitter.operation,
}
_OPERATIONS = {
    "null_value": "null",
    "shape_of": "shape_of",
    "tensor_to_shape": "tensor_to_shape",
    "shape_to_tensor": "shape_to_tensor",
    "print": "print",
    "assert_op": "assert",
}
_CHECKED = ("shape_of", "tensor_to_shape", "shape_to_tensor")
_SHOWING = {"print": 1, "assert": 2}
"""Operations that show values -> how many arguments stand before these."""
