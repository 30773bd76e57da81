"""Which part of a composite target each function and call belongs to.

    label of a call site (`target="npu"`)  >  of the function called  >  of the function around it  >  automatic

Automatic is the part of the function that the call stands in (`weft.transform.target.labels`), unless a policy says
otherwise, or what the compiler knows of the parts does (`weft.transform.target.assign_by_cost`). Neither is asked about
the calls of a function that has a label. `Assign` asks the policy, and marks the functions that it was asked about
(`ASSIGNED`); `SpecialiseByLabel` gives each part a function of
its own where parts share one, so that afterwards the label of every kernel is that of its calls; `VerifyTargets`
refuses what cannot be honoured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from dataclasses import replace as copied_node
from typing import Any, ClassVar

from weft.errors import Span, TargetError
from weft.ir.attrs import ASSIGNED, GLOBAL_SYMBOL, LABEL, PRIMITIVE, attribute
from weft.ir.graph import Binding, Call, ExternFunc, Function, GlobalVar, Op, Var, VarBinding
from weft.ir.module import BaseFunc, IRModule, fresh_name
from weft.ir.node import FrozenMap, Node, replace
from weft.ir.op import get_op
from weft.ir.structure.visit import rewrite, walk
from weft.ir.tensor import Buffer, PrimCall, PrimFunc, PrimVar
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.target.labels import labelled_calls, leaf_parts, owned_parts, owners, refuse_labels
from weft.transform.target.partition_calls import outlined_function

__all__ = [
    "ASSIGNED",
    "Assign",
    "OutlineLabelled",
    "Policy",
    "SpecialiseByLabel",
    "VerifyTargets",
    "assignment",
    "refuse_labels",
]

Policy = Callable[[Call, str, Target], str]
"""A policy: (a call, the label of the function it stands in, the whole target) -> the label of the call."""


def callee_of(call: Call) -> str | None:
    """The function of the module that a call runs, directly or through the `call_tir` family."""
    if isinstance(call.op, GlobalVar):
        return call.op.name
    first = call.args[0] if isinstance(call.op, Op) and call.args else None
    return first.name if isinstance(first, GlobalVar) else None


def assignment(module: IRModule, target: Target | str) -> list[tuple[str, str, str]]:
    """Every call of the module that does work: (function it stands in, variable it is bound to, label of its part).

    >>> assignment(IRModule({}), "a: c; b: c")
    []
    """
    parts = dict(leaf_parts(Target(target)))
    owner = owners(module, parts)
    found = []
    for name, function in module.items():
        for binding, call in labelled_calls(function):
            callee = callee_of(call)
            label = call.attrs.get(LABEL) or (owner[callee] if callee in owner else owner[name])
            found.append((name, binding.var.name, label))
    return found


@dataclass(frozen=True)
class Assign(Pass):
    """Give every call that names no part the one that the policy chooses; without a policy, that of its function.

    Calls in a function that has a label stay there, and so do calls of functions that have one.
    Raises: TargetError W707 for a label that the target lacks.
    """

    target: str
    policy: Policy | None = field(default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Ask the policy for each call of each graph function."""
        if self.policy is None:
            return module
        target = Target(self.target)
        parts = dict(leaf_parts(target))
        owner = owners(module, parts)

        def assign(name: str, function: Function) -> Function:
            if LABEL in function.attrs:
                return function
            new = _Assigner(module, self.policy, owner[name], target, tuple(parts)).run(function)  # type: ignore[arg-type]
            return new if ASSIGNED in new.attrs else replace(new, attrs=new.attrs.set(ASSIGNED, True))

        return map_functions(module, assign)


class _Assigner(FunctionRewriter):
    def __init__(self, module: IRModule, policy: Policy, label: str, target: Target, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.policy, self.label, self.target, self.labels = module, policy, label, target, labels

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        call = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(call, Call) or LABEL in call.attrs:
            return binding
        callee = self.module.functions.get(callee_of(call) or "")
        if isinstance(call.op, ExternFunc) or LABEL in getattr(callee, "attrs", {}):
            return binding
        label = self.policy(call, self.label, self.target)
        check_label(label, self.labels, f"the policy's choice for {binding.var.name!r}", call.span or binding.span)
        if label == self.label:
            return binding
        return replace(binding, value=replace(call, attrs=call.attrs.set(LABEL, label)))


def check_label(label: Any, labels: Sequence[str], what: str, span: Span | None) -> None:
    """TargetError W707 unless a label is one of the target's."""
    if label not in labels:
        raise TargetError(
            f"{what} is labelled {str(label)!r}, which is no part of the target",
            code="W707",
            span=span,
            hint=f"labels: {', '.join(labels)}",
        )


@dataclass(frozen=True)
class VerifyTargets(Pass):
    """Refuse labels that cannot be honoured: unknown ones, and groups made for one kernel that span parts.

    Raises: TargetError W707 for a label that the target lacks, W737 for a `primitive` function with calls of several
    labels.
    """

    target: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Check every function and call; the module stays."""
        parts, owner = owned_parts(self.target, module)
        for name, function in module.items():
            used: dict[str, Span | None] = {}
            for binding, call in labelled_calls(function):
                span = call.span or binding.span
                if LABEL in call.attrs:
                    check_label(call.attrs[LABEL], tuple(parts), f"the call bound to {binding.var.name!r}", span)
                callee = module.functions.get(callee_of(call) or "")
                own = getattr(callee, "attrs", {}).get(LABEL, owner[name])
                used.setdefault(call.attrs.get(LABEL, own), span)
            if len(used) > 1 and attribute(getattr(function, "attrs", {}), PRIMITIVE):
                raise TargetError(
                    f"function {name!r} is one kernel, but its calls belong to several parts: {', '.join(used)}",
                    code="W737",
                    span=list(used.values())[1],
                    hint="split the group, or give its calls one label",
                )
        return module


@dataclass(frozen=True)
class OutlineLabelled(Pass):
    """Operators labelled for a part that lowers functions itself become functions of it, which its hook may take.

    y = R.exp(x, target="npu")   becomes   y = cls.npu_exp(x)      with a private function of the part
    """

    text_name: ClassVar[str] = "outline-labelled"
    target: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Rewrite the graph functions of other parts."""
        parts = dict(leaf_parts(Target(self.target)))
        hooked = {label for label, part in parts.items() if part.kind.lowering_hook is not None}
        if not hooked:
            return module
        owner = owners(module, parts)
        made: dict[str, BaseFunc] = {}
        for name, function in module.items():
            if isinstance(function, Function):
                rewriter = _LabelledOutliner(hooked - {owner[name]}, {*module, *made})
                made[name] = rewriter.run(function)
                made.update(rewriter.made)
            else:
                made[name] = function
        unchanged = len(made) == len(module) and all(made[name] is function for name, function in module.items())
        return module if unchanged else module.with_functions(made)


class _LabelledOutliner(FunctionRewriter):
    def __init__(self, labels: set[str], used: set[str]) -> None:
        super().__init__()
        self.labels, self.used = labels, used
        self.made: dict[str, BaseFunc] = {}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        call = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op):
            return binding
        label = call.attrs.get(LABEL)
        if label not in self.labels or not get_op(call.op.name).is_computed:
            return binding
        function, args = outlined_function((binding,), {LABEL: str(label)}, each=True)
        name = fresh_name("".join(char if char.isalnum() else "_" for char in f"{label}_{call.op.name}"), self.used)
        self.used.add(name)
        self.made[name] = replace(function, name=name)
        return replace(binding, value=Call(GlobalVar(name), args, span=call.span))


@dataclass(frozen=True)
class SpecialiseByLabel(Pass):
    """Give each part its own copy of a function that calls under several labels share, named after the part.

    A copy is private and labelled. A private function that nothing calls under its own name any more is left out.
    Raises: TargetError W707 for a label that the target lacks.
    """

    text_name: ClassVar[str] = "specialise-by-label"
    target: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target).to_str())

    def run(self, module: IRModule) -> IRModule:
        """Follow the calls from every public or labelled function, with the label each is made under."""
        return _Specialiser(module, tuple(dict(leaf_parts(Target(self.target))))).run()


class _Specialiser:
    def __init__(self, module: IRModule, labels: tuple[str, ...]) -> None:
        self.module, self.labels = module, labels
        self.names: dict[tuple[str, str], str] = {}
        self.owner = owners(module, labels)

    def run(self) -> IRModule:
        reached = self.reached()
        if all(list(labels) == [self.own(name) or self.owner[name]] for name, labels in reached.items()):
            return self.module
        used = set(self.module.functions)
        for name, labels in reached.items():
            kept = self.kept(name, labels)
            for label in labels:
                new = name if label == kept else fresh_name(f"{name}__{label}", used)
                used.add(new)
                self.names[name, label] = new
        functions: dict[str, BaseFunc] = {}
        for name, function in self.module.items():
            labels = reached.get(name)
            if labels is None:  # nothing calls it: it stays as it is
                functions[name] = function
                continue
            for label in labels:
                new = self.names[name, label]
                several = len(labels) > 1 or self.owner[name] != label
                functions[new] = self.variant(function, label, new, copy=new != name, several=several)
        return self.module.with_functions(functions)

    def own(self, name: str) -> str | None:
        """The label of a function: its own, or the first part's for a public one without."""
        function = self.module[name]
        label = getattr(function, "attrs", {}).get(LABEL)
        if label is not None:
            check_label(label, self.labels, f"function {name!r}", function.span)
            return label
        return None if getattr(function, "private", False) else self.labels[0]

    def kept(self, name: str, labels: dict[str, None]) -> str:
        """The label under which a function keeps its name."""
        own = self.own(name)
        if own in labels:
            return own or ""
        if own is not None and not getattr(self.module[name], "private", False):
            return own
        return next(label for label in self.labels if label in labels)

    def reached(self) -> dict[str, dict[str, None]]:
        """For each function the labels it is called under, in order."""
        found: dict[str, dict[str, None]] = {}
        pending: list[tuple[str, str]] = []

        def reach(name: str, label: str) -> None:
            if label not in found.setdefault(name, {}):
                found[name][label] = None
                pending.append((name, label))

        for name, function in self.module.items():
            label = self.own(name)
            if label is not None and not getattr(function, "private", False):
                reach(name, label)
        while pending:
            name, label = pending.pop(0)
            for callee, given in self.references(self.module[name]):
                reach(callee, given or self.explicit(callee) or label)
        return found

    def explicit(self, name: str) -> str | None:
        """The label that a function states, or that of a public function: what calls without a label follow."""
        return self.own(name)

    def references(self, function: BaseFunc) -> Iterator[tuple[str, str | None]]:
        """The functions that a function refers to, each with the label of the call site if it has one."""
        labelled: set[int] = set()
        for node in walk(function):
            if isinstance(node, Call) and (callee := callee_of(node)) in self.module:
                place = node.op if isinstance(node.op, GlobalVar) else node.args[0]
                labelled.add(id(place))
                label = node.attrs.get(LABEL)
                if label is not None:
                    check_label(label, self.labels, f"a call of {callee!r}", node.span)
                yield callee or "", label
            elif isinstance(node, PrimCall) and isinstance(node.op, GlobalVar) and node.op.name in self.module:
                labelled.add(id(node.op))
                yield node.op.name, None
        for node in walk(function):
            if isinstance(node, GlobalVar) and id(node) not in labelled and node.name in self.module:
                yield node.name, None

    def variant(self, function: BaseFunc, label: str, name: str, *, copy: bool, several: bool) -> BaseFunc:
        """The function as one part has it."""

        def renamed(place: Any, given: str | None) -> GlobalVar:
            wanted = given or self.explicit(place.name) or label
            new = self.names.get((place.name, wanted), place.name)
            return place if new == place.name else replace(place, name=new)

        def follow(node: Node) -> Node | None:
            if isinstance(node, Call) and callee_of(node) in self.module:
                given = node.attrs.get(LABEL)
                if isinstance(node.op, GlobalVar):
                    return replace(node, op=renamed(node.op, given))
                return replace(node, args=(renamed(node.args[0], given), *node.args[1:]))
            if isinstance(node, PrimCall) and isinstance(node.op, GlobalVar):
                return replace(node, op=renamed(node.op, None))
            return None

        new: Any = rewrite(function, follow)
        if not isinstance(new, (Function, PrimFunc)):
            return new
        if copy or several or new.attrs.get(LABEL, label) != label:
            attrs = FrozenMap({key: value for key, value in new.attrs.items() if key != GLOBAL_SYMBOL or not copy})
            new = replace(new, attrs=attrs.set(LABEL, label), private=new.private or copy, name=name)
        if copy:  # variables of its own
            new = rewrite(new, lambda node: copied_node(node) if isinstance(node, (Var, PrimVar, Buffer)) else None)
        return new
