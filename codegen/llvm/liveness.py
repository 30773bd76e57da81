"""Where the memory of variables is used for the last time within a sequence of bindings.

Variables that may share memory (tuples and their fields, renamings, results of calls of graph functions and of branches
with what went in) form one group, which lives until the last use of any of them. The result of the sequence lives on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.ir.graph import Binding, Call, Expr, Function, GlobalVar, Op, Var
from weft.ir.module import BaseFunc
from weft.ir.types import TupleType
from weft.ir.visit import walk

__all__ = ["last_uses"]

_FRESH = ("builtin.alloc_tensor", "memory.alloc_storage", "vm.alloc_storage", "shape_of", "shape_to_tensor")


def last_uses(bindings: Sequence[Binding], result: Expr, functions: Mapping[str, BaseFunc]) -> dict[int, list[Var]]:
    """For each position the variables bound in the sequence whose memory is not used after it."""
    groups = _Groups()
    last: dict[Var, int] = {}
    for index, binding in enumerate(bindings):
        used = list(_variables(binding.value))
        for var in used:
            last[var] = index
        last.setdefault(binding.var, index)
        if _may_share(binding.value, binding.var, functions):
            for var in used:
                groups.join(binding.var, var)
    kept = {groups.root(var) for var in _variables(result)}
    ends: dict[Var, int] = {}
    for var, index in last.items():
        root = groups.root(var)
        ends[root] = max(ends.get(root, -1), index)
    found: dict[int, list[Var]] = {}
    for binding in bindings:
        root = groups.root(binding.var)
        if root not in kept:
            found.setdefault(ends[root], []).append(binding.var)
    return found


def _variables(expr: Expr) -> Iterator[Var]:
    return (node for node in walk(expr) if isinstance(node, Var))


def _may_share(value: Expr, var: Var, functions: Mapping[str, BaseFunc]) -> bool:
    """Whether a binding's variable may refer to memory of the variables in its value."""
    if isinstance(var.ty, TupleType) and not var.ty.fields:
        return False
    if isinstance(value, Call):
        if isinstance(value.op, Op) and value.op.name in _FRESH:
            return False
        return not isinstance(value.op, GlobalVar) or isinstance(functions.get(value.op.name), Function)
    return True


class _Groups:
    """Disjoint sets of variables."""

    def __init__(self) -> None:
        self._parent: dict[Var, Var] = {}

    def root(self, var: Var) -> Var:
        while (parent := self._parent.get(var, var)) is not var:
            self._parent[var] = var = self._parent.get(parent, parent)
        return var

    def join(self, a: Var, b: Var) -> None:
        self._parent[self.root(a)] = self.root(b)
