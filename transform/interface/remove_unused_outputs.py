"""RemoveUnusedOutputs: private functions give only those fields of a tuple that some caller takes.

    t = pair(x)                              ->        t = pair(x)
    y = t[1]                                           y = t                pair returns what was its second field

A function whose result is used as a whole, or that is used as a value, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.support.records import dataclass
from weft.transform.graph.dead_code import without_dead_bindings
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter
from weft.transform.pattern.matching import bindings_of_function

__all__ = ["RemoveUnusedOutputs"]


@dataclass(frozen=True)
class RemoveUnusedOutputs(Pass):
    """Remove fields of the results of private functions that no caller takes."""

    def run(self, module: IRModule) -> IRModule:
        """Remove until every field is taken: what gave a field may have been the last use of another."""
        while True:
            kept = _kept(module)
            if not kept:
                return module
            module = map_functions(module, lambda name, function, kept=kept: _Calls(kept, function).run(function))
            for name, fields in kept.items():
                module = module.with_function(name, _shortened(module[name], fields, module))


def _kept(module: IRModule) -> dict[str, tuple[int, ...]]:
    """The functions that lose fields, and the fields that they keep."""
    used: dict[str, set[int]] = {}
    whole: set[str] = set()
    for function in module.functions.values():
        if isinstance(function, Function):
            _look(function, used, whole)
        else:
            whole.update(node.name for node in walk(function) if isinstance(node, GlobalVar))
    found: dict[str, tuple[int, ...]] = {}
    for name, fields in used.items():
        function = module.functions.get(name)
        if name in whole or not isinstance(function, Function) or not function.private or not _is_bound(function):
            continue
        if isinstance(function.ret_type, TupleType) and 0 < len(fields) < len(function.ret_type.fields):
            found[name] = tuple(sorted(fields))
    return found


def _look(function: Function, used: dict[str, set[int]], whole: set[str]) -> None:
    """Note which fields of calls a function takes, and which it uses whole."""
    calls = {
        var: value.op.name
        for var, value in bindings_of_function(function).items()
        if isinstance(value, Call) and isinstance(value.op, GlobalVar)
    }
    callees = {id(value) for value in bindings_of_function(function).values() if isinstance(value, Call)}
    for node in walk(function):
        if isinstance(node, TupleGetItem) and isinstance(node.value, Var) and node.value in calls:
            used.setdefault(calls[node.value], set()).add(node.index)
    counts: dict[Var, int] = {}
    for node in walk(function):
        if isinstance(node, Var) and node in calls:
            counts[node] = counts.get(node, 0) + 1
        elif isinstance(node, Call):
            if id(node) not in callees and isinstance(node.op, GlobalVar):
                whole.add(node.op.name)
            whole.update(arg.name for arg in node.args if isinstance(arg, GlobalVar))
    taken: dict[Var, int] = {}
    for node in walk(function):
        if isinstance(node, TupleGetItem) and isinstance(node.value, Var):
            taken[node.value] = taken.get(node.value, 0) + 1
    for var, name in calls.items():
        used.setdefault(name, set())
        if counts.get(var, 0) - 1 > taken.get(var, 0):
            whole.add(name)


class _Calls(FunctionRewriter):
    """Takes the fields of results that have fewer."""

    def __init__(self, kept: Mapping[str, tuple[int, ...]], function: Function) -> None:
        super().__init__()
        self.kept = kept
        self.calls: dict[Var, tuple[int, ...]] = {}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        if not isinstance(binding, VarBinding):
            return binding
        value: Expr = binding.value
        if isinstance(value, Call) and isinstance(value.op, GlobalVar) and value.op.name in self.kept:
            fields = self.kept[value.op.name]
            var: Any = replace(binding.var, ty=_type(binding.var.ty, fields))
            self.replaced[binding.var] = var
            self.calls[var] = fields
            return replace(binding, var=var)
        if isinstance(value, TupleGetItem) and isinstance(value.value, Var) and value.value in self.calls:
            fields = self.calls[value.value]
            place = fields.index(value.index)
            return replace(binding, value=value.value if len(fields) == 1 else TupleGetItem(value.value, place))
        return binding


def _type(ty: Any, fields: tuple[int, ...]) -> Any:
    return ty.fields[fields[0]] if len(fields) == 1 else TupleType(tuple(ty.fields[place] for place in fields))


def _is_bound(function: Function) -> bool:
    """Whether the result of a function is a tuple that is written out, or bound as one."""
    result = function.body.body
    value = bindings_of_function(function).get(result) if isinstance(result, Var) else result
    return isinstance(value, Tuple)


class _Results(FunctionRewriter):
    """Gives some fields of a result, where the result is bound."""

    def __init__(self, result: Expr, fields: tuple[int, ...]) -> None:
        super().__init__()
        self.result, self.fields = result, fields

    def rewrite_binding(self, binding: Binding) -> Binding:
        if binding.var is not self.result or not isinstance(binding, VarBinding):
            return binding
        assert isinstance(binding.value, Tuple), "it is bound as a tuple"
        var = self.replaced[binding.var] = replace(binding.var, ty=_type(binding.var.ty, self.fields))
        return replace(binding, var=var, value=_picked(binding.value, self.fields))


def _picked(value: Tuple, fields: tuple[int, ...]) -> Expr:
    picked = tuple(value.fields[place] for place in fields)
    return picked[0] if len(picked) == 1 else Tuple(picked)


def _shortened(function: Any, fields: tuple[int, ...], module: IRModule) -> Function:
    """The function that gives these fields only."""
    result, ty = function.body.body, _type(function.ret_type, fields)
    if isinstance(result, Tuple):
        function = replace(function, body=replace(function.body, body=_picked(result, fields)))
    else:
        function = _Results(result, fields).run(function)
    return without_dead_bindings(replace(function, ret_type=ty), module)
