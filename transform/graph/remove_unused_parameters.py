"""RemoveUnusedParameters: private functions lose the parameters that they do not use, and their calls the arguments.

A parameter stays when the function is used as a value, when a symbol is bound by this parameter only, and when some
call leaves to run time whether the argument fits (removing it would remove that check).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from weft.ir import (
    Binding,
    Call,
    Function,
    GlobalVar,
    IRModule,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.ir.deduction.infer import TypeContext, infer_type, is_base_of
from weft.ir.deduction.subtyping import match_types, substitute_type
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import bare_symbols, symbols_of
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["RemoveUnusedParameters"]


@dataclass(frozen=True)
class RemoveUnusedParameters(Pass):
    """Remove parameters of private graph functions that their bodies do not use."""

    aliases: ClassVar[tuple[str, ...]] = ("remove-unused-params",)

    def run(self, module: IRModule) -> IRModule:
        """Remove until nothing is unused: an argument that goes may have been the last use of a caller's parameter."""
        while True:
            unused = _unused(module)
            if not unused:
                return module
            module = map_functions(module, lambda name, function, found=unused: _shorten(name, function, found))


def _shorten(name: str, function: Function, unused: Mapping[str, frozenset[int]]) -> Function:
    gone = unused.get(name, frozenset())
    params = tuple(param for index, param in enumerate(function.params) if index not in gone)
    return _Calls(unused).run(replace(function, params=params) if gone else function)


class _Calls(FunctionRewriter):
    """Drops the arguments of parameters that are gone."""

    def __init__(self, unused: Mapping[str, frozenset[int]]) -> None:
        super().__init__()
        self.unused = unused

    def rewrite_binding(self, binding: Binding) -> Binding:
        call = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return binding
        gone = self.unused.get(call.op.name)
        if gone is None:
            return binding
        args = tuple(arg for index, arg in enumerate(call.args) if index not in gone)
        return replace(binding, value=replace(call, args=args))


def _unused(module: IRModule) -> dict[str, frozenset[int]]:
    """The positions of the parameters to remove, by function."""
    candidates = {
        name: function
        for name, function in module.items()
        if isinstance(function, Function) and function.private and not function.attrs
    }
    calls: dict[str, list[Call]] = {name: [] for name in candidates}
    for _, function in module.items():
        called: set[int] = set()
        for node in walk(function):
            if isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op.name in calls:
                calls[node.op.name].append(node)
                called.add(id(node.op))
            elif isinstance(node, GlobalVar) and node.name in candidates and id(node) not in called:
                candidates.pop(node.name)  # used as a value: its signature stays
    context = TypeContext(module.functions)
    found = {name: _of_function(function, calls[name], context) for name, function in candidates.items()}
    return {name: positions for name, positions in found.items() if positions}


def _of_function(function: Function, calls: Sequence[Call], context: TypeContext) -> frozenset[int]:
    used = {node for node in walk(function.body, types=True) if isinstance(node, Var)}
    used |= {node for node in walk(function.ret_type, types=True) if isinstance(node, Var)}
    used |= {node for param in function.params for node in walk(param.ty, types=True) if isinstance(node, Var)}
    gone: set[int] = set()
    for index, param in enumerate(function.params):
        if param in used or not all(_fits(function, index, call, context) for call in calls):
            continue
        rest = tuple(other for i, other in enumerate(function.params) if i != index and i not in gone)
        bound = {name for other in rest for name in bare_symbols(other.ty)}
        needed = symbols_of(replace(function, params=rest))
        if not (needed & bare_symbols(param.ty)) - bound:
            gone.add(index)
    return frozenset(gone)


def _fits(function: Function, index: int, call: Call, context: TypeContext) -> bool:
    given = [infer_type(arg, context) for arg in call.args]
    symbols = match_types([param.ty for param in function.params], given).symbols
    return is_base_of(substitute_type(function.params[index].ty, symbols), given[index]) is True
