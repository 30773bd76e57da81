"""Which functions of a module a function refers to, by name.

referenced_functions(function) -> names        directly
reached_from(module, names)    -> names        directly or not, the given ones among them
call_graph(module)             -> names by name, of every function
recursive_groups(module)       -> sets of functions that call each other, or one that calls itself
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.ir.graph import GlobalVar
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.visit import nodes_of

__all__ = ["call_graph", "reached_from", "recursive_groups", "referenced_functions"]


def referenced_functions(function: BaseFunc) -> set[str]:
    """The names of the functions of the module that a function refers to."""
    return {node.name for node in nodes_of(function, GlobalVar)}


def reached_from(module: IRModule | Mapping[str, BaseFunc], names: Iterable[str]) -> set[str]:
    """The names of functions of the module that those given refer to, directly or not, and their own.

    >>> reached_from(IRModule({}), [])
    set()
    """
    reached = set(names)
    pending = sorted(reached)
    while pending:
        for name in referenced_functions(module[pending.pop()]):
            if name in module and name not in reached:
                reached.add(name)
                pending.append(name)
    return reached


def call_graph(module: IRModule) -> Mapping[str, tuple[str, ...]]:
    """The functions of the module that each function refers to, in the order of the module.

    >>> call_graph(IRModule({}))
    {}
    """
    names = list(module)
    found = {name: referenced_functions(function) for name, function in module.items()}
    return {name: tuple(other for other in names if other in found[name]) for name in names}


def recursive_groups(module: IRModule) -> list[tuple[str, ...]]:
    """The functions that may call themselves: alone, or round by others; each group in the order of the module.

    >>> recursive_groups(IRModule({}))
    []
    """
    graph = call_graph(module)
    reached = {name: reached_from(module, others) if others else set[str]() for name, others in graph.items()}
    groups: list[tuple[str, ...]] = []
    for name in graph:
        if name in reached[name] and not any(name in group for group in groups):
            groups.append(tuple(other for other in graph if other in reached[name] and name in reached[other]))
    return groups
