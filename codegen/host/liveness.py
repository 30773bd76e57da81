"""Where the memory of variables is used for the last time within a sequence of bindings.

Variables that may share memory (`weft.transform.analysis.lifetimes.may_share`) form one group, which lives until the
last use of any of them. The result of the sequence lives on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.graph import Binding, Expr, Var
from weft.ir.module import BaseFunc
from weft.transform.analysis.lifetimes import Groups, may_share, variables

__all__ = ["last_uses"]


def last_uses(bindings: Sequence[Binding], result: Expr, functions: Mapping[str, BaseFunc]) -> dict[int, list[Var]]:
    """For each position the variables bound in the sequence whose memory is not used after it."""
    groups = Groups()
    last: dict[Var, int] = {}
    for index, binding in enumerate(bindings):
        used = list(variables(binding.value))
        for var in used:
            last[var] = index
        last.setdefault(binding.var, index)
        if may_share(binding.value, binding.var, functions):
            for var in used:
                groups.join(binding.var, var)
    kept = {groups.root(var) for var in variables(result)}
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
