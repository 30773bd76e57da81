"""The executor `vm`: graph functions in explicit-memory form to bytecode (`weft.runtime.programs.bytecode`).

Each variable gets a register. Kernels stay machine code; everything else is one of four instructions: call, ret, if,
goto. What machine code checks by itself (sizes, declared types of results, match_cast) becomes calls of `match`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.program import span_json
from weft.codegen.backends.llvm.host.liveness import last_uses
from weft.codegen.backends.llvm.kernel.kernel import written_buffers
from weft.codegen.host.operands import expressions, plain_text, stated_dtype
from weft.codegen.host.signature import dim_data, type_data
from weft.errors import Span, TargetError
from weft.ir.dim import DimExpr
from weft.ir.graph import (
    Binding,
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Op,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.module import IRModule
from weft.ir.op import get_op
from weft.ir.prim_dim import prim_to_dim
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import AnyType, FuncType, TupleType, Type
from weft.runtime.executable import Program
from weft.runtime.programs.bytecode import FORMAT, VERSION
from weft.transform.analysis.value_numbering import same_type

__all__ = ["emit_program"]

Operand = list[Any]


def emit_program(module: IRModule, kernels: Program) -> dict[str, Any]:
    """The bytecode of the graph functions of a module; constants join those of the kernels' program."""
    spans: list[Any] = []
    constants: dict[int, int] = {id(array): index for index, (array, _) in enumerate(kernels.constants)}
    functions = [
        _Emitter(module, name, function, kernels, constants, spans).run()
        for name, function in module.items()
        if isinstance(function, Function)
    ]
    return {"executor": "vm", "format": FORMAT, "functions": functions, "spans": spans, "version": VERSION}


def vm_type(ty: Type | None) -> list[Any]:
    """A type as data; functions are objects here."""
    if ty is None or isinstance(ty, FuncType):
        return ["object"]
    if isinstance(ty, TupleType):
        return ["tuple", *map(vm_type, ty.fields)]
    return type_data(ty)


class _Emitter:
    def __init__(
        self, module: IRModule, name: str, function: Function, kernels: Program, constants: dict[int, int],
        spans: list[Any],
    ) -> None:  # fmt: skip
        self.module, self.name, self.function = module, name, function
        self.kernels, self.constants, self.spans = kernels, constants, spans
        self.registers: dict[Var, int] = {}
        self.aliases: dict[Var, Var] = {}
        self.written: set[Var] = set()
        self.code: list[Any] = []
        self.count = 0

    def run(self) -> dict[str, Any]:
        """The function as data."""
        function = self.function
        for param in function.params:
            self.register(param)
        result = self.sequence(function.body)
        leaf = function.body.body
        if not same_type(leaf.ty if isinstance(leaf, Var) else None, function.ret_type):
            self.match(result, function.ret_type, f"the result of {self.name}", leaf.span)
        self.code.append(["ret", result])
        params = []
        for index, param in enumerate(function.params):
            ty = vm_type(param.ty)
            if param in self.written and ty[0] == "tensor":
                ty.append("copied" if function.pure else "written")
            params.append({"name": param.name or f"arg{index}", "type": ty, "span": span_json(param.span)})
        return {
            "name": self.name, "kind": "graph", "params": params, "result": vm_type(function.ret_type),
            "registers": self.count, "code": self.code, "private": function.private, "span": span_json(function.span),
        }  # fmt: skip

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
        self.call(-1, "builtin", "match", [operand, ["ty", vm_type(ty)], ["s", what]], span)

    # Bindings

    def sequence(self, seq: SeqExpr) -> Operand:
        """Emit bindings; gives the operand of the body."""
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        ends = last_uses(bindings, seq.body, self.module.functions)
        for index, binding in enumerate(bindings):
            self.binding(binding)
            dead = [["i", self.registers[var]] for var in ends.get(index, ()) if self.holds_memory(var)]
            if dead:
                self.call(-1, "builtin", "kill", dead, None)
        return self.operand(seq.body)

    def holds_memory(self, var: Var) -> bool:
        """Whether dropping the value of a variable gives memory back."""
        return var in self.registers and not (isinstance(var.ty, TupleType) and not var.ty.fields)

    def binding(self, binding: Binding) -> None:
        """Emit one binding."""
        var, span = binding.var, binding.value.span or binding.span
        into = self.register(var)
        if isinstance(binding, MatchCast):
            span = binding.span or span
            self.call(into, "builtin", "same", [self.operand(binding.value)], span)
            self.match(["r", into], binding.ty, f"match_cast of {var.name}", span)
            return
        value = binding.value
        if isinstance(value, If):
            self.branches(value, into)
        elif isinstance(value, Call):
            self.value_call(value, var, into, span)
        elif isinstance(value, SeqExpr):
            self.call(into, "builtin", "same", [self.sequence(value)], span)
        else:
            if isinstance(value, Var):
                self.aliases[var] = value
            self.call(into, "builtin", "same", [self.operand(value)], span)

    def branches(self, value: If, into: int) -> None:
        """Emit a conditional; symbols that a branch binds end with it."""
        condition = self.operand(value.cond)
        start = len(self.code)
        self.code.append(["if", condition, 0])
        self.branch(value.then_branch, into)
        end = len(self.code)
        self.code.append(["goto", 0])
        self.code[start][2] = len(self.code) - start - 1
        self.branch(value.else_branch, into)
        self.code[end][1] = len(self.code) - end - 1

    def branch(self, branch: SeqExpr, into: int) -> None:
        self.call(-1, "builtin", "enter", [], None)
        result = self.sequence(branch)
        self.call(into, "builtin", "same", [result], None)
        self.call(-1, "builtin", "leave", [], None)

    # Operands

    def operand(self, expr: Expr) -> Operand:
        """A leaf as an operand."""
        if isinstance(expr, Var):
            if expr not in self.registers:
                raise TargetError(f"vm: the variable {expr.name!r} has no value here", code="W744", span=expr.span)
            return ["r", self.registers[expr]]
        found = _OPERANDS.get(type(expr))
        if found is not None:
            return found(self, expr)
        if isinstance(expr, SeqExpr):
            return self.sequence(expr)
        if isinstance(expr, PrimExpr) and (dim := prim_to_dim(expr)) is not None:
            return ["d", dim_data(dim)]
        hint = "run weft.transform.LambdaLift() first" if isinstance(expr, Function) else None
        raise TargetError(
            f"vm: a {type(expr).__name__} cannot stand in a graph function", code="W743", span=expr.span, hint=hint
        )

    def constant(self, expr: Constant) -> Operand:
        index = self.constants.get(id(expr.data))
        if index is None:
            index = self.constants[id(expr.data)] = len(self.kernels.constants)
            self.kernels.constants.append((expr.data, expr.dtype))
        return ["k", index]

    def prim(self, expr: PrimValue) -> Operand:
        if isinstance(expr.value, DimExpr):
            return ["d", dim_data(expr.value)]
        if dtypes.is_float(expr.dtype):
            return ["x", float(expr.value).hex()]
        return ["i", bool(expr.value) if dtypes.is_bool(expr.dtype) else int(expr.value)]

    def item(self, expr: TupleGetItem) -> Operand:
        into = self.count
        self.count += 1
        self.call(into, "builtin", "item", [self.operand(expr.value), ["i", expr.index]], expr.span)
        return ["r", into]

    # Calls

    def value_call(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        """Emit a call that is bound to a variable."""
        callee = call.op
        if isinstance(callee, Op):
            rule = _RULES.get(callee.name)
            if rule is None:
                raise TargetError(
                    f"vm: R.{callee.name} has no kernel in {self.name}", code="W745", span=span,
                    hint="run weft.transform.LegalizeOps() before; where a shape is unknown, name it with R.match_cast",
                )  # fmt: skip
            rule(self, call, var, into, span)
            return
        args = [self.operand(arg) for arg in call.args]
        if isinstance(callee, GlobalVar):
            self.module_call(callee.name, args, call, var, into, span)
        elif isinstance(callee, ExternFunc):
            self.packed(callee.name, args, call, into, span)
        else:
            self.call(into, "value", self.operand(callee), args, span)
            self.match(["r", into], var.ty, var.name or "a value", span)

    def module_call(
        self, name: str, args: list[Operand], call: Call, var: Var, into: int, span: Span | None
    ) -> None:  # fmt: skip
        function = self.module.functions.get(name)
        if isinstance(function, PrimFunc):
            for position in written_buffers(function):
                if position < len(call.args) and isinstance(call.args[position], Var):
                    self.written.add(self.origin(call.args[position]))
            self.call(into, "kernel", name, args, span)
        elif isinstance(function, Function):
            self.call(into, "function", name, args, span)
            self.match(["r", into], var.ty, var.name or "a value", span)
        elif isinstance(function, ExternFunc):
            self.packed(function.name, args, call, into, span)
        else:
            raise TargetError(f"vm: the module has no function {name!r}", code="W743", span=span)

    def origin(self, var: Any) -> Var:
        """The variable that another one is a name of."""
        while var in self.aliases:
            var = self.aliases[var]
        return var

    def packed(self, name: str, args: list[Operand], call: Call, into: int, span: Span | None) -> None:
        """A call of a registered function; the last operand is the type of what it returns."""
        returns: Type = call.ty_args[0] if call.ty_args else AnyType()
        void = bool(call.attrs.get("dps")) or (isinstance(returns, TupleType) and not returns.fields)
        self.call(into, "packed", name, [*args, ["ty", [] if void else vm_type(returns)]], span)

    def alloc_tensor(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        dtype = stated_dtype(call, var)
        self.call(into, "builtin", "alloc_tensor", [self.operand(call.args[0]), ["s", dtype]], span)

    def alloc_storage(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        dtype = str(getattr(call.attrs.get("dtype"), "value", call.attrs.get("dtype")) or "uint8")
        self.call(into, "builtin", "alloc_storage", [self.operand(call.args[0]), ["s", dtype]], span)

    def tensor_in_storage(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        parts = get_op(_name(call)).values(call)
        storage, offset, shape = parts["storage"], parts.get("offset"), parts["shape"]
        place = self.operand(offset) if isinstance(offset, Expr) else ["i", int(offset or 0)]
        operands = [self.operand(storage), place, self.operand(shape), ["s", stated_dtype(call, var)]]
        self.call(into, "builtin", "tensor_in_storage", operands, span)

    def view(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        parts = get_op(_name(call)).values(call)
        shape, offset, dtype = parts.get("shape"), parts.get("relative_byte_offset"), parts.get("dtype")
        wanted = dtype.value if isinstance(dtype, DataTypeImm) else dtype
        operands = [
            self.operand(call.args[0]),
            self.operand(offset) if isinstance(offset, Expr) else ["i", int(offset or 0)],
            self.operand(shape) if isinstance(shape, Expr) else ["s", None],
            ["s", wanted],
        ]
        if isinstance(call.args[0], Var):
            self.aliases[var] = call.args[0]
        self.call(into, "builtin", "view", operands, span)

    def kill(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        dead = [["i", self.registers[arg]] for arg in call.args if isinstance(arg, Var) and arg in self.registers]
        self.call(into, "builtin", "kill", dead, span)

    def same(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        if isinstance(call.args[0], Var):
            self.aliases[var] = call.args[0]
        self.call(into, "builtin", "same", [self.operand(call.args[0])], span)

    def plain(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        self.call(into, "builtin", _name(call).rpartition(".")[2], [self.operand(arg) for arg in call.args], span)
        self.match(["r", into], var.ty, var.name or "a value", span)

    def null(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        self.call(into, "builtin", "null", [], span)

    def print_values(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        parts = get_op(_name(call)).values(call)
        values = [self.operand(item) for item in expressions(parts.get("values"))]
        self.call(into, "builtin", "print", [["s", plain_text(parts.get("format"))], *values], span)

    def assertion(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        parts = get_op(_name(call)).values(call)
        values = [self.operand(item) for item in expressions(parts.get("format_args"))]
        condition = self.operand(parts["condition"])
        self.call(into, "builtin", "assert", [condition, ["s", plain_text(parts.get("format"))], *values], span)

    def make_closure(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        function, *fixed = map(self.operand, call.args)
        self.call(into, "builtin", "make_closure", [function, fixed[0] if fixed else ["t", []]], span)

    def invoke_closure(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        function, *rest = call.args
        given = rest[0] if rest else Tuple(())
        if not isinstance(given, Tuple):
            raise TargetError("vm: the arguments of a closure are written as a tuple", code="W743", span=span)
        self.call(into, "value", self.operand(function), [self.operand(item) for item in given.fields], span)
        self.match(["r", into], var.ty, var.name or "a value", span)

    def packed_operator(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        callee, args = call.args[0], list(call.args[1:])
        if not isinstance(callee, (ExternFunc, StringImm)):
            raise TargetError("vm: the external function must be named", code="W743", span=span)
        if len(args) == 1 and isinstance(args[0], Tuple):
            args = list(args[0].fields)
        name = callee.name if isinstance(callee, ExternFunc) else callee.value
        self.packed(name, [self.operand(arg) for arg in args], call, into, span)

    def python_call(self, call: Call, var: Var, into: int, span: Span | None) -> None:
        given = next(iter(call.args), Tuple(()))
        args = list(given.fields) if isinstance(given, Tuple) else [given]
        self.packed(str(call.attrs["func_name"]), [self.operand(arg) for arg in args], call, into, span)


def _name(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


_OPERANDS: Mapping[type, Callable[[_Emitter, Any], Operand]] = {
    Constant: _Emitter.constant,
    PrimValue: _Emitter.prim,
    TupleGetItem: _Emitter.item,
    ShapeExpr: lambda emitter, expr: ["shape", [dim_data(dim) for dim in expr.dims]],
    Tuple: lambda emitter, expr: ["t", [emitter.operand(item) for item in expr.fields]],
    StringImm: lambda emitter, expr: ["s", expr.value],
    DataTypeImm: lambda emitter, expr: ["s", expr.value],
    GlobalVar: lambda emitter, expr: ["f", expr.name],
}
_RULES: Mapping[str, Callable[[_Emitter, Call, Var, int, Span | None], None]] = {
    "builtin.alloc_tensor": _Emitter.alloc_tensor,
    "memory.alloc_storage": _Emitter.alloc_storage,
    "vm.alloc_storage": _Emitter.alloc_storage,
    "memory.alloc_tensor": _Emitter.tensor_in_storage,
    "vm.alloc_tensor": _Emitter.tensor_in_storage,
    "memory.view": _Emitter.view,
    "memory.kill_storage": _Emitter.kill,
    "memory.kill_tensor": _Emitter.kill,
    "vm.kill_object": _Emitter.kill,
    "to_vdevice": _Emitter.same,
    "hint_on_device": _Emitter.same,
    "builtin.stop_lift_params": _Emitter.same,
    "memory.ensure_zero_offset": _Emitter.same,
    "null_value": _Emitter.null,
    "shape_of": _Emitter.plain,
    "tensor_to_shape": _Emitter.plain,
    "shape_to_tensor": _Emitter.plain,
    "print": _Emitter.print_values,
    "assert_op": _Emitter.assertion,
    "make_closure": _Emitter.make_closure,
    "invoke_closure": _Emitter.invoke_closure,
    "invoke_pure_closure": _Emitter.invoke_closure,
    "call_packed": _Emitter.packed_operator,
    "call_pure_packed": _Emitter.packed_operator,
    "call_inplace_packed": _Emitter.packed_operator,
    "call_builtin_with_ctx": _Emitter.packed_operator,
    "call_py_func": _Emitter.python_call,
}
