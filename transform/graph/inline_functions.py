"""InlinePrivateFunctions: calls of private graph functions are replaced by their bodies.

    y = cls.f(x)      the bindings of f over x with fresh variables; y = its result

The callee's symbols stand for what the argument types say; its other symbols get names that are free in the caller.
What the boundary of the call would check at run time (an argument or result of which less is known than declared) is
checked by a `match_cast`. Recursive functions, and those with attributes (a label, an external code generator), stay;
so do functions that are used as values. A dataflow block into which control flow is inlined becomes a plain block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from weft.errors import ResourceError, Span
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    MatchCast,
    Tuple,
    Type,
    Var,
    VarBinding,
    replace,
    substitute_symbols,
)
from weft.ir.deduction.infer import TypeContext, exact_type, infer_type, is_base_of
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import Dim, fresh_name, symbol
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.visit import nodes_of
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.analysis.value_numbering import same_type
from weft.transform.graph.dead_code import remove_unreachable
from weft.transform.graph.to_non_dataflow import PlainBlocks
from weft.transform.infra.base import Pass
from weft.transform.infra.rewriting import FunctionRewriter, bindings_of, derived

__all__ = ["InlinePrivateFunctions"]

_MOST_REPEATED = 1 << 14
"""Bindings that a function may have, with its calls written out, over those of the whole module: what is written once
is no repetition, however long."""


@dataclass(frozen=True)
class InlinePrivateFunctions(Pass):
    """Inline private graph functions where they are called, and remove those that nothing refers to any more.

    `functions` restricts the pass to the named ones. Raises: PassError W510 for a name that the module lacks;
    ResourceError W952 where functions call each other so often that a body would have over 16,384 bindings more than
    the module has.
    """

    aliases: ClassVar[tuple[str, ...]] = ("inline",)
    functions: tuple[str, ...] = ()

    def run(self, module: IRModule) -> IRModule:
        """Inline callees first, so that one round is enough."""
        for name in self.functions:
            module[name]
        calls = {name: referenced_functions(function) for name, function in module.items()}
        inlined = {
            name
            for name, function in module.items()
            if isinstance(function, Function) and function.private and not function.attrs
            if (not self.functions or name in self.functions) and name not in _reached(calls, calls[name])
        }
        if not inlined:
            return module
        order, new = _callees_first(calls), module
        _refuse_repetition(module, order, inlined)
        for name in order:
            function = new[name]
            if isinstance(function, Function) and not calls[name].isdisjoint(inlined):
                new = new.with_function(name, _Inliner(new, inlined, function, self.text_name).run(function))
        if new is module:
            return module
        unused = set(new) - set(remove_unreachable(new))
        gone = sorted(unused & inlined)
        return new.without(*gone) if gone else new


def _refuse_repetition(module: IRModule, order: Iterable[str], inlined: set[str]) -> None:
    """W952 for calls that would bring more copies of bindings than anybody waits for."""
    bindings = {name: len(nodes_of(f, VarBinding)) for name, f in module.items() if isinstance(f, Function)}
    most = sum(bindings.values()) + _MOST_REPEATED
    for name in (name for name in order if name in bindings):
        for call in nodes_of(module[name], Call):
            if isinstance(call.op, GlobalVar) and call.op.name in inlined:
                bindings[name] += bindings[call.op.name]
                if bindings[name] > most:
                    raise ResourceError(
                        f"with its calls written out {name} has over {_MOST_REPEATED:,} bindings more than the module",
                        code="W952",
                        span=call.span,
                        hint="fewer calls of functions that call others, or a target that calls them",
                    )


def _reached(calls: dict[str, set[str]], start: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = [name for name in start if name in calls]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(callee for callee in calls[name] if callee in calls)
    return found


def _callees_first(calls: dict[str, set[str]]) -> list[str]:
    """The functions in an order in which callees come before callers (as far as there are no cycles)."""
    done: dict[str, None] = {}
    for root in calls:
        stack = [(root, False)]
        entered: set[str] = set()
        while stack:
            name, finished = stack.pop()
            if finished:
                done.setdefault(name)
            elif name not in done and name not in entered:
                entered.add(name)
                stack.append((name, True))
                stack.extend((callee, False) for callee in sorted(calls[name]) if callee in calls)
    return list(done)


class _Inliner(FunctionRewriter):
    def __init__(self, module: IRModule, inlined: set[str], caller: Function, origin: str) -> None:
        super().__init__()
        self.module = module
        self.inlined = inlined
        self.origin = origin
        self.context = TypeContext(module.functions)
        self.symbols = symbols_of(caller)

    def _block(self, block: BindingBlock) -> BindingBlock:
        if isinstance(block, DataflowBlock) and any(map(self._brings_control_flow, block.bindings)):
            block = PlainBlocks().plain(block)
        return super()._block(block)

    def _callee(self, binding: Binding) -> Function | None:
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
            return None
        function = self.module[value.op.name] if value.op.name in self.inlined else None
        return function if isinstance(function, Function) and not value.attrs else None

    def _brings_control_flow(self, binding: Binding) -> bool:
        callee = self._callee(binding)
        return callee is not None and any(isinstance(inner.value, (If, Function)) for inner in bindings_of(callee.body))

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        callee = self._callee(binding)
        if callee is None or not isinstance(binding, VarBinding) or not isinstance(binding.value, Call):
            return binding
        return self.expand(binding, binding.value.args, callee)

    def expand(self, binding: VarBinding, args: Sequence[Expr], callee: Function) -> list[Binding]:
        """The bindings that stand for one call."""
        span = derived(binding.span, self.origin)
        callee = self.with_symbols(callee, [exact_type(arg, self.context) for arg in args])
        new: list[Binding] = []
        copier = _Copier(self.in_dataflow, self.origin)
        for param, arg in zip(callee.params, args, strict=True):
            copier.replaced[param] = self.cast(arg, param.ty, param.name, span, new)
        body = copier.sequence(callee.body)
        new.extend(bindings_of(body))
        return [*new, *self.result(binding, body.body, callee.ret_type, span)]

    def with_symbols(self, callee: Function, given: Sequence[Type]) -> Function:
        """The callee over the caller's symbols."""
        values: dict[str, Dim] = dict(match_types([param.ty for param in callee.params], given).symbols)
        for name in sorted(symbols_of(callee) - set(values)):
            fresh = fresh_name(name, self.symbols)
            self.symbols.add(fresh)
            values[name] = symbol(fresh)
        return substitute_symbols(callee, values)

    def cast(self, arg: Expr, ty: Type, name: str, span: Span | None, new: list[Binding]) -> Expr:
        """The argument under the parameter's type, checked at run time where its own does not say that it fits."""
        given = exact_type(arg, self.context)
        if same_type(ty, given):
            return arg
        var = self.fresh(name, ty, span)
        fits = is_base_of(ty, given) is True
        new.append(VarBinding(var, arg, span=span) if fits else MatchCast(var, arg, ty, span=span))
        return var

    def result(self, binding: VarBinding, value: Expr, declared: Type, span: Span | None) -> list[Binding]:
        """The binding of the result, or none where the variable can be replaced by it."""
        var, given = binding.var, infer_type(value, self.context)
        if is_base_of(declared, given) is not True:
            return [MatchCast(var, value, declared, span=span)]
        if isinstance(value, Tuple) and not value.fields:
            return []
        visible = isinstance(var, DataflowVar) or not isinstance(value, DataflowVar)
        if isinstance(value, Var) and visible and same_type(var.ty, given):
            self.replaced[var] = value
            return []
        return [replace(binding, value=value, span=span)]


class _Copier(FunctionRewriter):
    """Copies a body with new variables: dataflow ones or plain ones, as the place it goes to asks."""

    def __init__(self, dataflow: bool, origin: str) -> None:
        super().__init__()
        self.dataflow = dataflow
        self.origin = origin

    def rewrite_parameter(self, param: Var) -> Var:
        """A new parameter for a copied local function."""
        new = self.replaced[param] = replace(param, ty=self.map_type(param.ty))
        if new is param:
            new = self.replaced[param] = Var(param.name, param.ty, span=param.span)
        return new

    def rewrite_binding(self, binding: Binding) -> Binding:
        kind = DataflowVar if self.dataflow else Var
        span = derived(binding.var.span, self.origin)
        new = self.replaced[binding.var] = kind(binding.var.name, binding.var.ty, span=span)
        return replace(binding, var=new, span=derived(binding.span, self.origin))
