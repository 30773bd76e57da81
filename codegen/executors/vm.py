"""The executor `vm`: a `HostProgram` to bytecode (`weft.runtime.programs.bytecode`).

Each variable gets a register, and each size that is computed. Kernels stay machine code; everything else is one of
five instructions: call, size, ret, if, goto. What machine code checks by itself (sizes, declared types of results,
match_cast) becomes calls of `match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft import dtypes
from weft.codegen.backends.base import Plan, back_end_of
from weft.codegen.host import program as host
from weft.codegen.host.kernels import written_positions
from weft.codegen.host.read import read_program
from weft.codegen.host.relations import relations
from weft.codegen.host.signature import abi_dim, abi_type, span_json
from weft.errors import Span, TargetError
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Var
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc
from weft.ir.types import AnyType, FuncType, TensorType, TupleType, Type
from weft.runtime.abi import types as abi
from weft.runtime.abi.dims import Expression, Operation
from weft.runtime.abi.json_form import parameter_to_json, type_to_json
from weft.runtime.executable import Program
from weft.runtime.programs.bytecode import FORMAT, VERSION
from weft.transform.analysis.value_numbering import same_type

__all__ = ["emit_program", "vm"]

Operand = list[Any]


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


def vm_type(ty: Type | None) -> abi.Type:
    """A type as the runtime knows it; functions are objects here."""
    if ty is None or isinstance(ty, FuncType):
        return abi.Object()
    if isinstance(ty, TupleType):
        return abi.Tuple(tuple(map(vm_type, ty.fields)))
    return abi_type(ty)


def handed_type(ty: Type | None) -> abi.Type:
    """What a function outside has to know of a value's type: the dtypes of its tensors."""
    if isinstance(ty, TupleType):
        return abi.Tuple(tuple(map(handed_type, ty.fields)))
    return abi.Tensor(ty.dtype, None, -1) if isinstance(ty, TensorType) and ty.dtype is not None else abi.Object()


def type_of(operand: host.Operand) -> Type | None:
    """The type of an operand as far as it holds tensors."""
    if isinstance(operand, Var):
        return operand.ty
    if isinstance(operand, Constant):
        return TensorType(tuple(operand.data.shape), operand.dtype)
    if isinstance(operand, host.Group):
        return TupleType(tuple(type_of(item) or AnyType() for item in operand.fields))
    if isinstance(operand, host.Item):
        whole = type_of(operand.value)
        return whole.fields[operand.index] if isinstance(whole, TupleType) else None
    return None


def handed_types(operands: Sequence[host.Operand]) -> list[Any]:
    """The types of what is handed to a function outside, as JSON."""
    return type_to_json(abi.Tuple(tuple(handed_type(type_of(operand)) for operand in operands)))


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
        self.kernels, self.constants, self.spans = kernels, constants, spans
        self.registers: dict[Var, int] = {}
        self.aliases: dict[Var, Var] = {}
        self.written: set[Var] = set()
        self.code: list[Any] = []
        self.sizes: dict[str, Any] = {}
        self.computed: dict[Operation, int] = {}
        """Sizes that have been computed on every way to here -> their registers."""
        self.here: Span | None = None
        """The place of the step that is emitted."""
        self.count = 0

    def run(self) -> dict[str, Any]:
        """The function as data."""
        function, source = self.function, self.function.source
        for param in function.params:
            self.register(param)
        result = self.body(function.body)
        given = function.body.result
        if not same_type(given.ty if isinstance(given, Var) else None, function.result):
            self.match(result, function.result, f"the result of {function.name}", function.body.span)
        self.code.append(["ret", result])
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
            "registers": self.count,
            "code": self.code,
            "private": source.private,
            "span": span_json(source.span),
            "sizes": self.sizes,
        }

    def register(self, var: Var) -> int:
        """The register of a variable."""
        if var not in self.registers:
            self.registers[var] = self.count
            self.count += 1
        return self.registers[var]

    def span(self, span: Span | None) -> int:
        """The number of a place in the source text."""
        if span is None:
            return -1
        self.spans.append(span_json(span))
        return len(self.spans) - 1

    def call(self, into: int, kind: str, name: Any, operands: Sequence[Operand], span: Span | None) -> None:
        """Append a call."""
        self.code.append(["call", into, [kind, name], list(operands), self.span(span)])

    def match(self, operand: Operand, ty: Type | None, what: str, span: Span | None) -> None:
        """Append the check that a value has a type."""
        if ty is None or isinstance(ty, (AnyType, FuncType)) or (isinstance(ty, TupleType) and not ty.fields):
            return
        self.call(-1, "builtin", "match", [operand, ["ty", type_to_json(vm_type(ty))], ["s", what]], span)

    def returned(self, var: Var, into: int, span: Span | None) -> None:
        """Append the check of what a call gave."""
        self.match(["r", into], var.ty, var.name or "a value", span)

    # Steps

    def body(self, body: host.Body) -> Operand:
        """Emit steps; gives the operand of the result."""
        for step in body.steps:
            self.here = step.span
            _STEPS[type(step)](self, step)
        return self.operand(body.result)

    def alloc(self, step: host.Alloc) -> None:
        into = self.register(step.into)
        name = "alloc_storage" if step.block else "alloc_tensor"
        self.call(into, "builtin", name, [self.operand(step.shape), ["s", step.dtype]], step.span)

    def view(self, step: host.View) -> None:
        into = self.register(step.into)
        shape = ["s", None] if step.shape is None else self.operand(step.shape)
        operands = [self.operand(step.source), self.operand(step.offset), shape, ["s", step.dtype]]
        if isinstance(step.source, Var):
            self.aliases[step.into] = step.source
        self.call(into, "builtin", "tensor_in_storage" if step.block else "view", operands, step.span)

    def free(self, step: host.Free) -> None:
        dead = [["i", self.registers[var]] for var in step.variables if var in self.registers]
        self.call(-1, "builtin", "kill", dead, step.span)

    def launch(self, step: host.Launch) -> None:
        into = self.register(step.into)
        args = [self.operand(arg) for arg in step.arguments]
        for position in written_positions(self.functions[step.kernel], self.functions):
            if position < len(args) and isinstance(arg := step.arguments[position], Var):
                self.written.add(self.origin(arg))
        rows = relations(self.functions[step.kernel], step.arguments)
        if any(rows):
            self.sizes[str(len(self.code))] = [[item.parts(step.kernel) for item in row] for row in rows]
        self.call(into, "kernel", step.kernel, args, step.span)

    def extern(self, step: host.Extern) -> None:
        """A call of a registered function; the last operands are the types of its arguments and of what it returns."""
        into = self.register(step.into)
        result = ["ty", [] if step.result is None else type_to_json(vm_type(step.result))]
        types = ["ty", handed_types(step.arguments)]
        self.call(into, "packed", step.name, [*map(self.operand, step.arguments), types, result], step.span)

    def match_value(self, step: host.Match) -> None:
        into = self.register(step.into)
        self.call(into, "builtin", "same", [self.operand(step.value)], step.span)
        self.match(["r", into], step.type, f"match_cast of {step.into.name}", step.span)

    def conditional(self, step: host.Conditional) -> None:
        """Emit a conditional; symbols that a branch binds end with it."""
        into = self.register(step.into)
        condition = self.operand(step.condition)
        start = len(self.code)
        self.code.append(["if", condition, 0])
        self.branch(step.then, into)
        end = len(self.code)
        self.code.append(["goto", 0])
        self.code[start][2] = len(self.code) - start - 1
        self.branch(step.other, into)
        self.code[end][1] = len(self.code) - end - 1

    def branch(self, branch: host.Body, into: int) -> None:
        outside = dict(self.computed)
        self.call(-1, "builtin", "enter", [], None)
        result = self.body(branch)
        self.call(into, "builtin", "same", [result], None)
        self.call(-1, "builtin", "leave", [], None)
        self.computed = outside

    def loop(self, step: host.Loop) -> None:
        """Emit a loop: a register for each carried value, a jump back to what asks whether to go on."""
        into, state = self.register(step.into), [self.new_register() for _ in step.initial]
        for register, initial, ty in zip(state, step.initial, step.types, strict=True):
            self.call(register, "builtin", "same", [self.operand(initial)], step.span)
            self.match(["r", register], ty, "an initial value of the loop", step.span)
        carried: list[Operand] = [["r", register] for register in state]
        indices, place, result = self.new_register(), self.new_register(), self.new_register()
        if step.bounds is not None:
            self.call(indices, "builtin", "range", [self.operand(bound) for bound in step.bounds], step.span)
            self.call(place, "builtin", "same", [["i", 0]], step.span)
        rows = [self.new_register() for _ in step.stacked]
        for register, ty in zip(rows, step.stacked, strict=True):
            shape = self.operand(host.Extents(tuple(ty.dims or ()), step.span))
            self.call(register, "builtin", "alloc_tensor", [shape, ["s", ty.dtype]], step.span)
        head, exits, outside = len(self.code), list[int](), dict(self.computed)
        given: list[Operand] = []
        if step.bounds is not None:
            self.call(result, "builtin", "more", [["r", indices], ["r", place]], step.span)
            self.leave_unless(["r", result], exits)
            given = [["r", self.new_register()]]
            self.call(given[0][1], "builtin", "index", [["r", indices], ["r", place]], step.span)
            self.call(place, "builtin", "increment", [["r", place]], step.span)
        types = list(step.types)
        if step.condition is not None:
            self.call_value(result, step.condition, carried, types, step.span)
            self.leave_unless(["r", result], exits)
        self.call_value(result, step.body, [*given, *carried], [None] * len(given) + types, step.span)
        for number, register in enumerate(state):
            self.call(register, "builtin", "item", [["r", result], ["i", number]], step.span)
        row = self.new_register() if rows else -1
        for number, register in enumerate(rows, len(state)):
            self.call(row, "builtin", "item", [["r", result], ["i", number]], step.span)
            self.call(-1, "builtin", "set_row", [["r", register], ["r", place], ["r", row]], step.span)
        self.code.append(["goto", head - len(self.code) - 1])
        self.computed = outside  # a loop may have no iteration
        for place_ in exits:
            self.code[place_][2] = len(self.code) - place_ - 1
        self.call(into, "builtin", "same", [["t", [*carried, *(["r", register] for register in rows)]]], step.span)

    def leave_unless(self, condition: Operand, exits: list[int]) -> None:
        """Append a jump whose target is set later, taken unless the condition holds."""
        exits.append(len(self.code))
        self.code.append(["if", condition, 0])

    def new_register(self) -> int:
        """A register of no variable."""
        self.count += 1
        return self.count - 1

    def call_function(self, step: host.Call) -> None:
        into = self.register(step.into)
        self.call(into, "function", step.function, [self.operand(arg) for arg in step.arguments], step.span)
        self.returned(step.into, into, step.span)

    def invoke(self, step: host.Invoke) -> None:
        into = self.register(step.into)
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
        self.code.append(["call", into, called, list(operands), self.span(span)])

    def closure(self, step: host.Closure) -> None:
        into = self.register(step.into)
        self.call(into, "builtin", "make_closure", [self.operand(step.callee), self.operand(step.fixed)], step.span)

    def bind(self, step: host.Bind) -> None:
        into = self.register(step.into)
        if isinstance(step.value, Var):
            self.aliases[step.into] = step.value
        self.call(into, "builtin", "same", [self.operand(step.value)], step.span)

    def operation(self, step: host.Operation) -> None:
        into = self.register(step.into)
        name = _OPERATIONS.get(step.name)
        if name is None:
            raise TargetError(
                f"vm: R.{step.name} has no kernel in {self.function.name}",
                code="W745",
                span=step.span,
                hint="run weft.transform.LegalizeOps() before; where a shape is unknown, name it with R.match_cast",
            )
        operands = [self.operand(arg) for arg in step.arguments]
        if name in _SHOWING:
            operands.append(["ty", handed_types(step.arguments[_SHOWING[name] :])])
        self.call(into, "builtin", name, operands, step.span)
        if name in _CHECKED:
            self.returned(step.into, into, step.span)

    def origin(self, var: Var) -> Var:
        """The variable that another one is a name of."""
        while var in self.aliases:
            var = self.aliases[var]
        return var

    # Operands

    def operand(self, operand: host.Operand) -> Operand:
        """An operand as data; sizes in it are computed first."""
        if isinstance(operand, Var):
            return self.variable(operand)
        if isinstance(operand, host.Size):
            return ["d", self.size(operand.dim)]
        if isinstance(operand, host.Extents):
            return ["shape", list(map(self.size, operand.dims))]
        return _OPERANDS[type(operand)](self, operand)

    def size(self, dim: Dim) -> Any:
        """A size as data: a number, a symbol, or the register that holds what is computed of them."""
        found = abi_dim(dim)
        if not isinstance(found, Expression):
            return found
        tree = found.tree
        assert isinstance(tree, Operation)
        return [self.compute(tree, found.text), found.text]

    def compute(self, tree: Operation, text: str) -> int:
        """The register of an operation on sizes, computed where it was not yet."""
        if tree not in self.computed:
            operands = [
                [self.compute(operand, text), text] if isinstance(operand, Operation) else operand
                for operand in tree.operands
            ]
            register = self.new_register()
            self.code.append(["size", register, tree.name, operands, text, self.span(self.here)])
            self.computed[tree] = register
        return self.computed[tree]

    def variable(self, var: Var) -> Operand:
        if var not in self.registers:
            raise TargetError(f"vm: the variable {var.name!r} has no value here", code="W744", span=var.span)
        return ["r", self.registers[var]]

    def constant(self, constant: Constant) -> Operand:
        index = self.constants.get(id(constant.data))
        if index is None:
            index = self.constants[id(constant.data)] = len(self.kernels.constants)
            self.kernels.constants.append((constant.data, constant.dtype))
        return ["k", index]

    def item(self, item: host.Item) -> Operand:
        into = self.new_register()
        self.call(into, "builtin", "item", [self.operand(item.value), ["i", item.index]], item.span)
        return ["r", into]


def _number(number: host.Number) -> Operand:
    if dtypes.is_float(number.dtype):
        return ["x", float(number.value).hex()]
    return ["i", bool(number.value) if dtypes.is_bool(number.dtype) else int(number.value)]


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
_OPERANDS: Mapping[type, Callable[[_Emitter, Any], Operand]] = {
    Constant: _Emitter.constant,
    host.Item: _Emitter.item,
    host.Number: lambda emitter, operand: _number(operand),
    host.Group: lambda emitter, operand: ["t", [emitter.operand(item) for item in operand.fields]],
    host.Text: lambda emitter, operand: ["s", operand.text],
    host.FunctionName: lambda emitter, operand: ["f", operand.name],
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
