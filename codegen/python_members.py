"""The Python functions of a module: `@I.pyfunc` members, which compiled and interpreted programs call by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from weft.errors import ArgumentError
from weft.ir.graph import PythonFunc
from weft.ir.module import IRModule
from weft.runtime.registry import find_func

__all__ = ["member_functions", "refuse_absent_members"]


def _members(module: IRModule) -> Iterator[PythonFunc]:
    return (function for function in module.functions.values() if isinstance(function, PythonFunc))


def member_functions(module: IRModule) -> dict[str, Callable[..., Any]]:
    """The functions that a decorator has read, by name; a first parameter called `self` is bound to the module."""
    return {
        member.name: functools.partial(member.function, module) if _takes_module(member.function) else member.function
        for member in _members(module)
        if member.function is not None
    }


def _takes_module(function: Callable[..., Any]) -> bool:
    return next(iter(inspect.signature(function).parameters), "") == "self"


def refuse_absent_members(module: IRModule) -> None:
    """ArgumentError W861 for a member of which the module holds only the text, and that is not registered either."""
    for member in _members(module):
        if member.function is None and find_func(member.name) is None:
            raise ArgumentError(
                f"of the Python function {member.name!r} the module holds the text, which is never run",
                code="W861", span=member.span, hint=f"weft.register_func({member.name!r}, {member.name})",
            )  # fmt: skip
