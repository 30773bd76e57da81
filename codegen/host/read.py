"""The one reader of explicit-memory form: graph functions of a lowered module to a `HostProgram`.

    y = R.builtin.alloc_tensor(shape, ...)       alloc           cls.kernel(x, y)              launch
    s = R.memory.alloc_storage(bytes)            alloc block     y = cls.f(x)                  call
    y = R.memory.alloc_tensor(s, offset, ...)    view            y = R.call_packed("f", x)     extern
    y = R.memory.view(x, ...)                    view            y = R.make_closure(f, (x,))   closure
    R.memory.kill_tensor(y)                      free            y = R.invoke_closure(f, a)    invoke
    y = R.match_cast(x, type)                    match           y = if                        conditional
    y = R.loop(body, (x,), range=...)            loop

The `vm` spellings of these operators mean the same. What copies between devices of one address space is a name for
its argument. Every other operator is an `Operation`, which an executor knows or refuses.

Errors: BoundsError W911 for what is used after the text gave its memory back; VerifyError W438 for a kernel that writes
into a constant; TargetError W743 for what has no meaning for any executor: local functions (run `LambdaLift` first),
functions that are not there, external functions without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weft.codegen.host.liveness import TextMemory, last_uses
from weft.codegen.host.operands import expressions, plain_text, stated_dtype
from weft.codegen.host.program import (
    Alloc,
    Bind,
    Body,
    Call,
    Closure,
    Conditional,
    Extents,
    Extern,
    Free,
    FunctionName,
    Group,
    HostFunction,
    HostProgram,
    Invoke,
    Item,
    Launch,
    Loop,
    Match,
    Number,
    Operand,
    Operation,
    Size,
    Step,
    Text,
    View,
)
from weft.errors import Span, TargetError
from weft.ir import graph
from weft.ir.attrs import DPS
from weft.ir.dim import DimExpr
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import replace as with_fields
from weft.ir.op import get_op
from weft.ir.op.program.loop import carried_types, stacked_types
from weft.ir.structure.recursion import deeply
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import AnyType, FuncType, TupleType, Type

__all__ = ["read_function", "read_program"]


def read_program(module: IRModule) -> HostProgram:
    """The program of the graph functions of a module in explicit-memory form (`LowerToMemory`).

    >>> from weft.ir.module import IRModule
    >>> str(read_program(IRModule({})))
    ''
    """
    functions = {
        name: read_function(name, function, module.functions)
        for name, function in module.items()
        if isinstance(function, graph.Function)
    }
    kernels = {name: function for name, function in module.items() if isinstance(function, PrimFunc)}
    return HostProgram(MappingProxyType(functions), MappingProxyType(kernels))


def read_function(name: str, function: graph.Function, functions: Mapping[str, BaseFunc]) -> HostFunction:
    """One graph function; `functions` are those that it may call."""
    # Branches nest as deep as the user's program.
    body = deeply(function, lambda: _Reader(name, functions).sequence(function.body))
    return HostFunction(name, function.params, body, function.ret_type or AnyType(), function)


class _Reader:
    """Reads one function; `steps` are those of the body that is being read."""

    def __init__(self, name: str, functions: Mapping[str, BaseFunc]) -> None:
        self.name, self.functions = name, functions
        self.steps: list[Step] = []
        self.memory = TextMemory(functions)

    # Bindings

    def sequence(self, seq: graph.SeqExpr) -> Body:
        """A body of its own."""
        outer, self.steps = self.steps, []
        result = self.inline(seq)
        body = Body(tuple(self.steps), result, seq.body.span)
        self.steps = outer
        return body

    def inline(self, seq: graph.SeqExpr) -> Operand:
        """The steps of a sequence; gives what it stands for."""
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        ends = last_uses(bindings, seq.body, self.functions)
        for index, binding in enumerate(bindings):
            self.memory.enter(binding)
            self.binding(binding)
            self.memory.bound(binding)
            dead = tuple(var for var in ends.get(index, ()) if not _is_void(var.ty))
            if dead:
                self.steps.append(Free(dead))
        self.memory.use(seq.body, seq.body.span)
        return self.operand(seq.body)

    def binding(self, binding: graph.Binding) -> None:
        var, value, span = binding.var, binding.value, binding.value.span or binding.span
        if isinstance(binding, graph.MatchCast):
            self.steps.append(Match(var, self.operand(value), binding.ty, binding.span or span))
        elif isinstance(value, graph.If):
            condition = self.operand(value.cond)
            then, other = self.sequence(value.then_branch), self.sequence(value.else_branch)
            self.steps.append(Conditional(var, condition, then, other, span))
        elif isinstance(value, graph.Call):
            self.steps.append(self.call(value, var, span))
        else:
            self.steps.append(Bind(var, self.operand(value), span))

    # Operands

    def operand(self, expr: graph.Expr) -> Operand:
        """A leaf, a tuple, a field of one; the steps of a sequence that stands here come first."""
        if isinstance(expr, (graph.Var, graph.Constant)):
            return expr
        rule = _OPERANDS.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        if isinstance(expr, PrimExpr) and (dim := prim_to_dim(expr)) is not None:
            return Size(dim, span=expr.span)
        if isinstance(expr, graph.Function):
            hint = "run LambdaLift first: weft.transform.LambdaLift()(module)"
            raise TargetError("a local function has no compiled form", code="W743", span=expr.span, hint=hint)
        raise TargetError(
            f"a {type(expr).__name__} cannot be compiled in a graph function", code="W743", span=expr.span
        )

    def operands(self, exprs: tuple[graph.Expr, ...]) -> tuple[Operand, ...]:
        return tuple(map(self.operand, exprs))

    def prim(self, expr: graph.PrimValue) -> Operand:
        value = expr.value
        return Size(value, expr.dtype, expr.span) if isinstance(value, DimExpr) else Number(value, expr.dtype)

    def item(self, expr: graph.TupleGetItem) -> Operand:
        return Item(self.operand(expr.value), expr.index, expr.span)

    def spread(self, expr: graph.Expr | None) -> tuple[Operand, ...]:
        """What a tuple of arguments holds; something else is the only argument."""
        if expr is None:
            return ()
        if isinstance(expr, graph.Tuple):
            return self.operands(expr.fields)
        value = self.operand(expr)
        if isinstance(expr, graph.Var) and isinstance(expr.ty, TupleType):
            return tuple(Item(value, index, expr.span) for index in range(len(expr.ty.fields)))
        return (value,)

    # Calls

    def call(self, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
        callee = call.op
        if isinstance(callee, graph.Op):
            rule = _RULES.get(callee.name)
            return Operation(var, callee.name, (), span) if rule is None else rule(self, call, var, span)
        if isinstance(callee, graph.GlobalVar):
            return self.module_call(callee.name, call, var, span)
        if isinstance(callee, graph.ExternFunc):
            return self.extern(callee.name, self.operands(call.args), call, var, span)
        return Invoke(var, self.operand(callee), self.operands(call.args), span)

    def module_call(self, name: str, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
        function = self.functions.get(name)
        arguments = self.operands(call.args)
        if isinstance(function, PrimFunc):
            return Launch(var, name, arguments, span)
        if isinstance(function, graph.Function):
            return Call(var, name, arguments, span)
        if isinstance(function, graph.ExternFunc):
            if isinstance(function.ty, FuncType) and not call.ty_args:  # it says what the call gives
                call = with_fields(call, ty_args=() if var.ty is None else (var.ty,))
            return self.extern(function.name, arguments, call, var, span)
        raise TargetError(f"the module has no function {name!r}", code="W743", span=span)

    def extern(
        self, name: str, arguments: tuple[Operand, ...], call: graph.Call, var: graph.Var, span: Span | None
    ) -> Extern:
        result: Type | None = call.ty_args[0] if call.ty_args else AnyType()
        void = bool(call.attrs.get(DPS)) or _is_void(result)
        return Extern(var, name, arguments, None if void else result, span)

    def offset(self, given: Any) -> Operand:
        return self.operand(given) if isinstance(given, graph.Expr) else Number(int(given or 0), "int64")


# What the calls of operators become: a function for each row of `_RULES`.


def _packed(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    callee, args = call.args[0], call.args[1:]
    if not isinstance(callee, (graph.ExternFunc, graph.StringImm)):
        raise TargetError("the external function must be named", code="W743", span=span)
    if len(args) == 1 and isinstance(args[0], graph.Tuple):
        args = args[0].fields
    name = callee.name if isinstance(callee, graph.ExternFunc) else callee.value
    return reader.extern(name, reader.operands(args), call, var, span)


def _python_call(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    given = next(iter(call.args), None)
    step = reader.extern(str(call.attrs["func_name"]), reader.spread(given), call, var, span)
    return replace(step, python=True)


def _alloc_tensor(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    return Alloc(var, reader.operand(call.args[0]), stated_dtype(call, var), False, span)


def _alloc_storage(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    dtype = call.attrs.get("dtype")
    dtype = str(getattr(dtype, "value", dtype) or "uint8")
    return Alloc(var, reader.operand(call.args[0]), dtype, True, span)


def _tensor_in_storage(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    parts = _parts(call)
    source, shape = reader.operand(parts["storage"]), reader.operand(parts["shape"])
    return View(var, source, reader.offset(parts.get("offset")), shape, stated_dtype(call, var), True, span)


def _view(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    parts = _parts(call)
    shape, dtype = parts.get("shape"), parts.get("dtype")
    source, offset = reader.operand(call.args[0]), reader.offset(parts.get("relative_byte_offset"))
    sizes = reader.operand(shape) if isinstance(shape, graph.Expr) else None
    return View(var, source, offset, sizes, getattr(dtype, "value", dtype) or None, False, span)


def _kill(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    reader.memory.give_back(call)
    return Free(tuple(arg for arg in call.args if isinstance(arg, graph.Var)), True, span)


def _same(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    return Bind(var, reader.operand(call.args[0]), span)


def _plain(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    assert isinstance(call.op, graph.Op)
    return Operation(var, call.op.name, reader.operands(call.args), span)


def _print_values(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    parts = _parts(call)
    values = reader.operands(expressions(parts.get("values")))
    return Operation(var, "print", (Text(plain_text(parts.get("format"))), *values), span)


def _assertion(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    parts = _parts(call)
    values = reader.operands(expressions(parts.get("format_args")))
    said = Text(plain_text(parts.get("format")))
    return Operation(var, "assert_op", (reader.operand(parts["condition"]), said, *values), span)


def _make_closure(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    function, *fixed = reader.operands(call.args)
    return Closure(var, function, fixed[0] if fixed else Group(()), span)


def _invoke_closure(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    function, *rest = call.args
    return Invoke(var, reader.operand(function), reader.spread(rest[0] if rest else None), span)


def _loop(reader: _Reader, call: graph.Call, var: graph.Var, span: Span | None) -> Step:
    parts = _parts(call)
    bounds, condition = parts["range"], parts["condition"]
    return Loop(
        var,
        reader.operand(parts["body"]),
        reader.spread(parts["initial"]),
        carried_types(parts["out_ty"], parts["stacked"]),
        None if bounds is None else reader.spread(bounds),
        None if condition is None else reader.operand(condition),
        stacked_types(parts["out_ty"], parts["stacked"]),
        span,
    )


def _is_void(ty: Type | None) -> bool:
    return isinstance(ty, TupleType) and not ty.fields


def _parts(call: graph.Call) -> dict[str, Any]:
    """The arguments of an operator's call by parameter name."""
    assert isinstance(call.op, graph.Op)
    return get_op(call.op.name).values(call)


_OPERANDS: Mapping[type, Callable[[_Reader, Any], Operand]] = {
    graph.PrimValue: _Reader.prim,
    graph.TupleGetItem: _Reader.item,
    graph.SeqExpr: _Reader.inline,
    graph.ShapeExpr: lambda reader, expr: Extents(tuple(expr.dims), expr.span),
    graph.Tuple: lambda reader, expr: Group(reader.operands(expr.fields)),
    graph.StringImm: lambda reader, expr: Text(expr.value),
    graph.DataTypeImm: lambda reader, expr: Text(expr.value),
    graph.GlobalVar: lambda reader, expr: FunctionName(expr.name),
}
_RULES: Mapping[str, Callable[[_Reader, graph.Call, graph.Var, Span | None], Step]] = {
    "builtin.alloc_tensor": _alloc_tensor,
    "memory.alloc_storage": _alloc_storage,
    "vm.alloc_storage": _alloc_storage,
    "memory.alloc_tensor": _tensor_in_storage,
    "vm.alloc_tensor": _tensor_in_storage,
    "memory.view": _view,
    "memory.kill_storage": _kill,
    "memory.kill_tensor": _kill,
    "vm.kill_object": _kill,
    "to_vdevice": _same,
    "hint_on_device": _same,
    "builtin.stop_lift_params": _same,
    "memory.ensure_zero_offset": _same,
    "null_value": _plain,
    "shape_of": _plain,
    "tensor_to_shape": _plain,
    "shape_to_tensor": _plain,
    "print": _print_values,
    "assert_op": _assertion,
    "make_closure": _make_closure,
    "loop": _loop,
    "loop_with_effects": _loop,
    "invoke_closure": _invoke_closure,
    "invoke_pure_closure": _invoke_closure,
    "call_packed": _packed,
    "call_pure_packed": _packed,
    "call_inplace_packed": _packed,
    "call_builtin_with_ctx": _packed,
    "call_py": _python_call,
}
