"""Lowering hooks: what kinds of targets make of the graph functions of their parts, in the phase `lower`.

    lowering hook   (module, function) -> (IRModule, GlobalVar)       before memory is made explicit

A lowering hook gets each graph function of its part that other parts call (or that is public), and the whole module
to look at; `Target.current()` is its part. A part is never given what it cannot do: a hook that does not take a
function raises `Declined` with the reason, and kernels of the part are those that the hook made. It returns functions
of its own and the one to call instead: a graph function of the same signature, or a kernel over the same tensors
followed by the results. They join the module under fresh names where names conflict. Kernels belong to the part; a
graph function that the hook returns is run by whoever calls it, who plans its memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.errors import PassError, TargetError, described
from weft.ir import (
    BaseFunc,
    BindingBlock,
    Call,
    FrozenMap,
    Function,
    GlobalVar,
    IRModule,
    Node,
    Op,
    PrimFunc,
    SeqExpr,
    TensorType,
    Tuple,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    rewrite,
    walk,
)
from weft.ir.attrs import LABEL
from weft.ir.deduction.infer import type_text
from weft.ir.deduction.subtyping import is_base_of, match_types, substitute_type
from weft.ir.dim import prove_equal
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.op import get_op
from weft.ir.structure.merge import merge
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.graph.inline_functions import InlinePrivateFunctions
from weft.transform.infra.base import Pass, failing_in
from weft.transform.target.labels import leaf_parts, owned_parts
from weft.transform.target.origins import is_origin_of
from weft.transform.target.partition_calls import Declined
from weft.transform.target.parts import OnParts

__all__ = ["RunLoweringHooks", "has_lowering_hooks", "on_host_parts"]


def has_lowering_hooks(target: Target | None) -> bool:
    """Whether some part of a target lowers functions itself."""
    return target is not None and any(part.kind.lowering_hook for _, part in leaf_parts(target))


def on_host_parts(target: Target | None, item: Pass) -> tuple[Pass, ...]:
    """A pass on the functions that no lowering hook takes over: whole operators are left for the hooks."""
    if target is None or not has_lowering_hooks(target):
        return (item,)
    parts = leaf_parts(target)
    hosts = tuple(label for label, part in parts if part.kind.lowering_hook is None)
    return (OnParts(hosts, tuple(label for label, _ in parts), item),) if hosts else ()


@dataclass(frozen=True)
class RunLoweringHooks(Pass):
    """Give functions to the lowering hooks of their parts, and merge what they return.

    `target` is the text of a target, or a Target.

    Raises: PassError W562 for a hook that breaks its contract (result, name, signature, operators left), W530 for a
    public name that is taken.
    """

    target: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Replace the functions of parts with lowering hooks, in order."""
        parts, owner = owned_parts(self.target, module)
        before = set(module)
        hooked = {label for label, part in parts.items() if part.kind.lowering_hook is not None}
        _refuse_foreign_kernels(module, owner, {label: parts[label] for label in hooked})
        for name in _entries(module, owner):
            part = parts[owner[name]]
            function = module[name]
            if part.kind.lowering_hook is not None and isinstance(function, Function):
                module = _Contract(module, name, function, owner[name], part).run()
        module = _without_unused(module, owner, hooked)
        # Graph functions of hooks become part of their callers: straight-line programs hold no calls of graph
        # functions, and the memory of both is planned as one.
        made = tuple(name for name, f in module.items() if name not in before and isinstance(f, Function) and f.private)
        return InlinePrivateFunctions(made)(module) if made else module


def _refuse_foreign_kernels(module: IRModule, owner: dict[str, str], parts: dict[str, Target]) -> None:
    """W753 for a kernel that is given to a part whose lowering hook has not made it."""
    for name, function in module.items():
        part = parts.get(owner[name])
        if part is not None and part.kind.code_generator is not None and isinstance(function, PrimFunc):
            raise TargetError(
                f"kernel {name!r} is labelled for part {owner[name]!r} ({part}), which takes graph functions only: its "
                "kernels are those that its lowering hook makes",
                code="W753",
                span=function.span,
                hint="leave the label out, or label the operator that it computes",
            )


def _entries(module: IRModule, owner: dict[str, str]) -> Iterator[str]:
    """The functions that are labelled, public, or referred to by functions of another part."""
    called = {
        callee
        for name, function in module.items()
        for callee in referenced_functions(function)
        if callee in owner and owner[callee] != owner[name]
    }
    for name, function in module.items():
        labelled = getattr(function, "attrs", {}).get(LABEL) is not None
        if labelled or name in called or not getattr(function, "private", False):
            yield name


def _without_unused(module: IRModule, owner: dict[str, str], labels: set[str]) -> IRModule:
    """The module without private functions of the lowered parts that nothing refers to any more."""
    while True:
        used = {callee for name, function in module.items() for callee in referenced_functions(function) - {name}}
        gone = [
            name
            for name, function in module.items()
            if name not in used and owner.get(name) in labels and getattr(function, "private", False)
        ]
        if not gone:
            return module
        module = module.without(*gone)


@dataclass(frozen=True)
class _Contract:
    """One call of a lowering hook: what is checked, and how its result joins the module."""

    module: IRModule
    name: str
    function: Function
    label: str
    target: Target

    def run(self) -> IRModule:
        hook = self.target.kind.lowering_hook
        assert hook is not None
        where = f" in the lowering hook of {self.target} (part {self.label!r}) for {self.name!r}"
        with self.target, failing_in(where):  # `Target.current()` is the part that the function is for
            try:
                result = hook(self.module, self.function)
            except Declined as error:
                raise self.declined(error.message) from None
        made, top = self.checked_result(result)
        made = self.with_own(made)
        if made[top] is self.function:
            return self.module
        self.check_signature(made[top])
        new = {name: f for name, f in made.items() if self.module.functions.get(name) is not f}
        self.check_lowered(new)
        labelled = {name: self.labelled(function) for name, function in new.items()}
        merged = merge(self.module, replace(made, functions=FrozenMap(labelled)))
        return self.redirected(merged.module, merged.mapping.get(top, top))

    def declined(self, reason: str) -> TargetError:
        """W753: the hook does not take the function."""
        calls = [node for node in walk(self.function) if isinstance(node, Call) and isinstance(node.op, Op)]
        named = ", ".join(dict.fromkeys(f"R.{call.op.name}" for call in calls if isinstance(call.op, Op)))
        span = next((call.span for call in calls if call.span is not None), self.function.span)
        part = f"part {self.label!r} ({self.target})" if self.label else f"the target {self.target}"
        return TargetError(
            f"{part} does not take {named or 'a function without operators'}: {reason}",
            code="W753",
            span=span,
            hint="leave its label out" if self.label else f"let another part drive: host: llvm; device: {self.target}",
        )

    def broken(self, message: str, hint: str | None = None) -> PassError:
        return PassError(
            f"the lowering hook of {self.target} for function {self.name!r} {message}",
            code="W562",
            span=self.function.span,
            hint=hint,
        )

    def checked_result(self, result: Any) -> tuple[IRModule, str]:
        form = isinstance(result, tuple) and len(result) == 2
        if not form or not isinstance(result[0], IRModule) or not isinstance(result[1], GlobalVar):
            kinds = ", ".join(map(described, result)) if isinstance(result, tuple) else described(result)
            raise self.broken(f"must return (IRModule, GlobalVar), it returned {kinds}")
        made, top = result[0], result[1].name
        if top not in made:
            hint = f"it has: {', '.join(made)}"
            raise self.broken(f"names {top!r}, which is not in the module that it returned", hint)
        return made, top

    def with_own(self, made: IRModule) -> IRModule:
        """What a hook returned, with the module's function for each that was written like it."""
        own = self.module.functions
        functions = {n: own[n] if n in own and is_origin_of(f, own[n]) else f for n, f in made.items()}
        return replace(made, functions=FrozenMap(functions))

    def check_signature(self, top: BaseFunc) -> None:
        wanted = [param.ty for param in self.function.params]
        if isinstance(top, Function):
            wanted, given = [*wanted, self.function.ret_type], [*(param.ty for param in top.params), top.ret_type]
        elif isinstance(top, PrimFunc):
            wanted, given = [*wanted, *self.results()], list(kernel_signature(top))
        else:
            raise self.broken("must return a graph function or a kernel, it names an extern function")
        if len(wanted) != len(given):
            raise self.broken(f"returned a function of {len(given)} tensors in place of {len(wanted)}")
        match = match_types(given, wanted)
        if match.answer is not True:
            raise self.broken(f"returned a function of another signature: {match.reason}")
        for mine, theirs in match.pairs:
            if prove_equal(mine, theirs) is not True:
                raise self.broken(f"returned a function of another signature: size {mine} in place of {theirs}")
        if isinstance(top, Function):
            expected, actual = self.function.ret_type, substitute_type(top.ret_type, match.symbols)
            if is_base_of(expected, actual) is not True:
                raise self.broken(f"returned a function that gives {type_text(actual)}, not {type_text(expected)}")

    def results(self) -> list[Type]:
        """The tensors that a kernel writes."""
        ret = self.function.ret_type
        fields = list(ret.fields) if isinstance(ret, TupleType) else [ret]
        if not all(isinstance(item, TensorType) for item in fields):
            raise self.broken("returned a kernel, but the function gives something else than tensors")
        return fields

    def check_lowered(self, functions: dict[str, BaseFunc]) -> None:
        for name, function in functions.items():
            named = {node.name for node in walk(function) if isinstance(node, Op)}
            left = sorted(name for name in named if get_op(name).is_computed)
            if left:
                raise self.broken(f"left operators in {name!r}: {', '.join(left)}")

    def labelled(self, function: BaseFunc) -> BaseFunc:
        """A kernel, labelled for its part when the part generates its own code; graph functions are for the host."""
        if self.target.kind.code_generator is None or not isinstance(function, PrimFunc) or not self.label:
            return function
        return function if LABEL in function.attrs else function.with_attr(LABEL, self.label)

    def redirected(self, module: IRModule, top: str) -> IRModule:
        """Callers of the function call what the hook returned; a public function stays and calls it as well."""

        def follow(item: Node) -> Node | None:
            if isinstance(item, Call) and isinstance(item.op, GlobalVar) and item.op.name == self.name:
                return self.call(module, top, item)
            return None

        functions = {}
        for name, function in module.items():
            functions[name] = function if name == self.name else rewrite(function, follow)
        module = module.with_functions(functions)
        used = any(self.name in referenced_functions(f) for name, f in module.items() if name != self.name)
        if self.function.private and not used:
            return module.without(self.name)
        var = Var("result", self.function.ret_type)
        binding = VarBinding(var, self.call(module, top, Call(GlobalVar(self.name), self.function.params)))
        body = SeqExpr((BindingBlock((binding,)),), var)
        attrs = self.function.attrs.without(LABEL) if LABEL in self.function.attrs else self.function.attrs
        return module.with_function(self.name, replace(self.function, body=body, attrs=attrs))

    def call(self, module: IRModule, top: str, call: Call) -> Call:
        if isinstance(module[top], Function):
            return replace(call, op=GlobalVar(top))
        ret = self.function.ret_type
        return Call(Op("call_tir"), (GlobalVar(top), Tuple(call.args)), ty_args=(ret,), span=call.span)
