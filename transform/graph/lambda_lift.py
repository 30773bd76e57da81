"""LambdaLift: local functions become private functions of the module.

    inner = a local function that uses w, called only      main_inner(w, x); calls pass w first
    inner used as a value, with captured w                 inner = R.make_closure(cls.main_inner, (w,)); calls through
                                                           R.invoke_pure_closure (R.invoke_closure when impure)
    inner used as a value, capturing nothing               cls.main_inner in its place

A symbol of the enclosing function that no captured variable carries is captured as a shape. Local functions may be
recursive and nested.

Source: Johnsson, Lambda lifting: transforming programs to recursive equations, 1985.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from weft.ir import (
    AnyType,
    BaseFunc,
    Binding,
    BindingBlock,
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    MatchCast,
    Op,
    SeqExpr,
    ShapeExpr,
    ShapeType,
    Tuple,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
)
from weft.ir.deduction.infer import TypeContext, infer_type, is_base_of
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.dim import symbol
from weft.ir.structure.variables import free_variables
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import (
    FunctionRewriter,
    bindings_of,
    derived,
    merge_blocks,
    operands,
)

__all__ = ["LambdaLift"]


@dataclass(frozen=True)
class LambdaLift(Pass):
    """Lift local functions to the module, with what they capture as leading parameters."""

    aliases: ClassVar[tuple[str, ...]] = ("lift-lambdas",)

    def run(self, module: IRModule) -> IRModule:
        """Lift out of every graph function."""
        lifted: dict[str, BaseFunc] = {}
        new = map_functions(module, lambda name, function: _lift(name, function, module, lifted, self.text_name))
        return new.with_functions({**new.functions, **lifted}) if lifted else new


def _lift(name: str, function: Function, module: IRModule, lifted: dict[str, BaseFunc], origin: str) -> Function:
    uses = _FunctionUses(function)
    if not uses.local:
        return function
    return _Lifter(name, function, uses.values, module, lifted, origin).run(function)


class _FunctionUses:
    """The variables that local functions are bound to (`local`), and those used as values, not just called."""

    def __init__(self, function: Function) -> None:
        self.local: set[Var] = set()
        self.values: set[Var] = set()
        for value in _all_values(function, self.local):
            used = list(operands(value))
            self.values.update(leaf for leaf in used[isinstance(value, Call) :] if isinstance(leaf, Var))


def _all_values(function: Function, local: set[Var]) -> Iterator[Expr]:
    """Every bound value and result in a function, local functions and branches included."""
    stack: list[Expr] = [function]
    while stack:
        current = stack.pop()
        if isinstance(current, Function):
            stack.append(current.body)
        elif isinstance(current, SeqExpr):
            yield current.body
            for binding in bindings_of(current):
                if isinstance(binding.value, Function):
                    local.add(binding.var)
                stack.append(binding.value)
        else:
            yield current
            if isinstance(current, If):
                stack.extend((current.then_branch, current.else_branch))


@dataclass(frozen=True)
class _Local:
    """A local function that was lifted: its new name, and what it captured (variables, then symbols)."""

    name: str
    captured: tuple[Var, ...]
    symbols: tuple[str, ...]
    shape: Var | None


def _holds_function(ty: Type) -> bool:
    return isinstance(ty, FuncType) or (isinstance(ty, TupleType) and any(map(_holds_function, ty.fields)))


class _Lifter(FunctionRewriter):
    def __init__(
        self,
        name: str,
        function: Function,
        values: set[Var],
        module: IRModule,
        lifted: dict[str, BaseFunc],
        origin: str,
    ) -> None:
        super().__init__()
        self.name = name
        self.values = values
        self.module = module
        self.lifted = lifted
        self.origin = origin
        self.local: dict[Var, _Local] = {}
        self.closures: dict[Var, bool] = {}  # variables that hold closures, and whether calling them is pure
        self.scope: set[str] = set()  # symbols defined so far

    def run(self, function: Function) -> Function:
        """A function; the symbols of its parameters are in scope in it."""
        outer = set(self.scope)
        for param in function.params:
            self.scope |= type_symbols(param.ty)
        new = super().run(function)
        self.scope = outer
        return new

    def mapped_binding(self, binding: Binding) -> Binding:
        """The binding; a local function is left for `rewrite_binding`."""
        if isinstance(binding.value, Function):
            return binding
        if isinstance(binding, MatchCast):
            self.scope |= type_symbols(binding.ty)
        return super().mapped_binding(binding)

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if isinstance(binding, VarBinding) and isinstance(value, Function):
            return self.lift(binding, value)
        if isinstance(value, Call) and isinstance(value.op, Var):
            return self.call(binding, value, value.op)
        return self.weakened(binding) if isinstance(binding, VarBinding) else binding

    def weakened(self, binding: VarBinding) -> Binding:
        """A binding of a value that holds closures: its type claims no more than is known of those."""
        declared = binding.var.ty
        if not _holds_function(declared) or isinstance(binding.value, Call):
            return binding
        ty = infer_type(binding.value, TypeContext({**self.module.functions, **self.lifted}))
        if is_base_of(declared, ty) is True:
            return binding
        var = self.replaced[binding.var] = replace(binding.var, ty=ty)
        if isinstance(declared, FuncType):
            self.closures[var] = declared.pure
        return replace(binding, var=var)

    def lift(self, binding: VarBinding, function: Function) -> Binding | Sequence[Binding]:
        """Move a local function to the module."""
        span = derived(binding.span, self.origin)
        captured = self.captured_by(binding.var, function)
        symbols = self.captured_symbols(function, captured)
        shape = Var("sizes", ShapeType(tuple(map(symbol, symbols)))) if symbols else None
        local = self.local[binding.var] = _Local(self._fresh(binding.var.name), captured, symbols, shape)
        escapes = binding.var in self.values
        pure = function.pure
        self.lifted[local.name] = Function((), function.body, function.ret_type)  # keeps the name taken
        self.lifted[local.name] = self.lifted_function(local, binding.var, function)
        if not escapes:
            return ()
        callee = GlobalVar(local.name, span=span)
        values = self.captured_values(local)
        if not values:
            self.replaced[binding.var] = callee
            return ()
        closure = Call(Op("make_closure"), (callee, Tuple(tuple(values))), span=span)
        del self.local[binding.var]  # from here on it is called through the closure
        return self.closure(binding, closure, pure)

    def closure(self, binding: VarBinding, value: Expr, pure: bool) -> Binding:
        """A binding of a closure: of its type nothing is known but that it can be invoked."""
        var = self.replaced[binding.var] = replace(binding.var, ty=AnyType())
        self.closures[var] = pure
        return replace(binding, var=var, value=value, span=derived(binding.span, self.origin))

    def lifted_function(self, local: _Local, var: Var, function: Function) -> Function:
        """The function with what it captures as leading parameters."""
        outer = dict(self.replaced)
        params = []
        for captured in local.captured:
            param = self.replaced[captured] = Var(captured.name, self.map_type(captured.ty), span=captured.span)
            params.append(param)
        if local.shape is not None:
            params.append(local.shape)
        outer_closures, outer_local = dict(self.closures), dict(self.local)
        for captured, param in zip(local.captured, params, strict=False):
            current = outer.get(captured, captured)
            if isinstance(current, Var) and current in outer_closures:
                new = self.replaced[captured] = replace(param, ty=AnyType())
                params[params.index(param)] = new
                self.closures[new] = outer_closures[current]
        own = self.bind_itself(local, var, function)
        body = self.run(function)
        if own is not None:
            blocks = merge_blocks((BindingBlock((own,)), *body.body.blocks))
            body = replace(body, body=replace(body.body, blocks=blocks))
        self.replaced, self.closures, self.local = outer, outer_closures, outer_local
        return replace(body, params=(*params, *body.params), private=True, name=local.name)

    def bind_itself(self, local: _Local, var: Var, function: Function) -> Binding | None:
        """A binding for the body of a function that uses itself as a value, where its name alone will not do."""
        if var not in _FunctionUses(function).values:
            return None
        values = self.captured_values(local)
        if not values:
            self.replaced[var] = GlobalVar(local.name)
            return None
        closure = Call(Op("make_closure"), (GlobalVar(local.name), Tuple(tuple(values))))
        own = self.replaced[var] = Var(var.name, AnyType())
        self.closures[own] = function.pure
        return VarBinding(own, closure)

    def captured_by(self, var: Var, function: Function) -> tuple[Var, ...]:
        """The variables whose values a local function needs; those of local functions that it calls included."""
        found: dict[Var, None] = {}
        for used in free_variables(function):
            if used is var or isinstance(self.replaced.get(used), GlobalVar):
                continue
            local = self.local.get(used)
            found.update(dict.fromkeys((used,) if local is None else local.captured))
        return tuple(found)

    def captured_symbols(self, function: Function, captured: Sequence[Var]) -> tuple[str, ...]:
        """The symbols of the enclosing function that the local one uses and no captured variable carries."""
        needed = symbols_of(function) & self.scope
        for used in free_variables(function):
            if used in self.local:
                needed |= set(self.local[used].symbols)
        carried = {name for var in captured for name in bare_symbols(var.ty)}
        return tuple(sorted(needed - carried))

    def captured_values(self, local: _Local) -> list[Expr]:
        """What a call of the lifted function passes first."""
        values: list[Expr] = [self.replaced.get(var, var) for var in local.captured]
        if local.symbols:
            values.append(ShapeExpr(tuple(map(symbol, local.symbols))))
        return values

    def call(self, binding: Binding, call: Call, callee: Var) -> Binding:
        """A call of a lifted function or of a closure."""
        span = derived(call.span, self.origin)
        local = self.local.get(callee)
        if local is not None:
            target = GlobalVar(local.name, span=span)
            new = replace(call, op=target, args=(*self.captured_values(local), *call.args), span=span)
            return replace(binding, value=new)
        if callee not in self.closures:
            return binding
        operator = "invoke_pure_closure" if self.closures[callee] else "invoke_closure"
        ty_args = call.ty_args or (binding.var.ty,)
        return replace(binding, value=Call(Op(operator), (callee, Tuple(call.args)), ty_args=ty_args, span=span))

    def _fresh(self, base: str) -> str:
        name, count = f"{self.name}_{base}", 0
        while name in self.module or name in self.lifted:
            count += 1
            name = f"{self.name}_{base}_{count}"
        return name
