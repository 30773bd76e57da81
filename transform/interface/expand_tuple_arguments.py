"""ExpandTupleArguments: private functions take the fields of tuples as parameters of their own.

    layer(t: R.Tuple(A, B))  called as layer((x, y))       ->        layer(t_0: A, t_1: B)  called as layer(x, y)

Tuples in tuples become their leaves. A function that is used as a value stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.support.records import dataclass
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter, merge_blocks

__all__ = ["ExpandTupleArguments", "with_expanded_tuples"]


@dataclass(frozen=True)
class ExpandTupleArguments(Pass):
    """Give private functions the leaves of tuples as parameters instead of tuples."""

    def run(self, module: IRModule) -> IRModule:
        """Expand the parameters, then the arguments of all calls."""
        return with_expanded_tuples(module, set(module))


def with_expanded_tuples(module: IRModule, names: Set[str]) -> IRModule:
    """The module whose private functions of some names have leaves as parameters, in place of tuples."""
    values = _used_as_values(module)
    expanded = {
        name: function
        for name, function in module.items()
        if isinstance(function, Function)
        and function.private
        and name in names - values
        and any(isinstance(param.ty, TupleType) for param in function.params)
    }
    if not expanded:
        return module
    types = {name: tuple(param.ty for param in function.params) for name, function in expanded.items()}
    for name, function in expanded.items():
        module = module.with_function(name, _with_leaves(function))
    return map_functions(module, lambda _, function: _Calls(types).run(function))


def _used_as_values(module: IRModule) -> set[str]:
    """The functions that something else than a direct call refers to."""
    found: set[str] = set()
    for function in module.functions.values():
        direct = {id(node.op) for node in walk(function) if isinstance(node, Call) and isinstance(node.op, GlobalVar)}
        found.update(node.name for node in walk(function) if isinstance(node, GlobalVar) and id(node) not in direct)
    return found


def _with_leaves(function: Function) -> Function:
    params: list[Var] = []
    built: list[VarBinding] = []
    for param in function.params:
        if isinstance(param.ty, TupleType):
            built.append(VarBinding(param, _gathered(param.name, param.ty, params)))
        else:
            params.append(param)
    blocks = merge_blocks((BindingBlock(tuple(built)), *function.body.blocks))
    return replace(function, params=tuple(params), body=replace(function.body, blocks=blocks))


def _gathered(name: str, ty: Type, params: list[Var]) -> Expr:
    """The tuple of new parameters, which are noted in order."""
    if isinstance(ty, TupleType):
        return Tuple(tuple(_gathered(f"{name}_{place}", field, params) for place, field in enumerate(ty.fields)))
    params.append(Var(name, ty))
    return params[-1]


class _Calls(FunctionRewriter):
    """Passes the leaves of tuples."""

    def __init__(self, types: Mapping[str, tuple[Type | None, ...]]) -> None:
        super().__init__()
        self.types = types

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = binding.value
        if not isinstance(value, Call) or not isinstance(value.op, GlobalVar) or value.op.name not in self.types:
            return binding
        before: list[Binding] = []
        args: list[Expr] = []
        for arg, ty in zip(value.args, self.types[value.op.name], strict=True):
            args += self.leaves(arg, ty, before)
        return [*before, replace(binding, value=replace(value, args=tuple(args)))]

    def leaves(self, arg: Expr, ty: Type | None, before: list[Binding]) -> list[Expr]:
        """The leaves of an argument; fields that have no name yet are bound before the call."""
        if not isinstance(ty, TupleType):
            return [arg]
        found: list[Expr] = []
        for place, field in enumerate(ty.fields):
            if isinstance(arg, Tuple):
                part: Expr = arg.fields[place]
            else:
                name = f"{arg.name}_{place}" if isinstance(arg, Var) else f"field_{place}"
                part = self.fresh(name, field)
                before.append(VarBinding(part, TupleGetItem(arg, place)))
            found += self.leaves(part, field, before)
        return found
