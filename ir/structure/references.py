"""Which functions of a module a function refers to, by name.

referenced_functions(function) -> names        directly
reached_from(module, names)    -> names        directly or not, the given ones among them
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.graph import GlobalVar
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.visit import walk

__all__ = ["reached_from", "referenced_functions"]


def referenced_functions(function: BaseFunc) -> set[str]:
    """The names of the functions of the module that a function refers to."""
    return {node.name for node in walk(function) if isinstance(node, GlobalVar)}


def reached_from(module: IRModule, names: Iterable[str]) -> set[str]:
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
