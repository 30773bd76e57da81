"""What a program calls outside itself: Python functions of its module, and foreign code by declared names.

member    @I.pyfunc of a module, which compiled and interpreted programs call by name
extern    a C function or LLVM intrinsic: declared beside the text, or refused (`weft.ir.verify.externs`)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from weft.errors import ArgumentError, ArtifactError
from weft.ir.attrs import ARTIFACTS
from weft.ir.graph import Function, PythonFunc
from weft.ir.module import IRModule
from weft.ir.verify.externs import refuse_undeclared_kernels, refuse_undeclared_symbols
from weft.runtime.artifact import ArtifactSet
from weft.runtime.loaded import LoadedModule
from weft.runtime.registry import find_func
from weft.target import Target
from weft.transform.target.labels import owners

__all__ = [
    "check_externs",
    "member_functions",
    "refuse_absent_members",
    "refuse_undeclared",
    "refuse_untrusted",
]


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
                code="W861",
                span=member.span,
                hint=f"weft.register_func({member.name!r}, {member.name})",
            )


def check_externs(externs: Collection[str]) -> frozenset[str]:
    """The names of foreign code that a caller gives; ArgumentError W859 for what is no collection of names."""
    if isinstance(externs, str) or not all(isinstance(name, str) and name for name in externs):
        raise ArgumentError(f"externs are names of C functions, got {externs!r}", code="W859", hint='externs=("name",)')
    return frozenset(externs)


def refuse_undeclared(
    module: IRModule, parts: Mapping[str, Target], externs: Collection[str], *, c_calls: bool
) -> None:
    """Refuse a lowered module that calls foreign code by a name that nobody declared.

    `externs` are the names that the caller gives. With `c_calls` calls of outside functions in graph functions become
    calls of C functions. Kernels of parts whose kind has a code generator of its own are its to read.
    Raises: TargetError W760 an undeclared name, W761 other types than were declared.
    """
    declared = {name: extern for part in parts.values() for name, extern in part.kind.externs.items()}
    provided = {symbol.name for artifact in _carried(module).values() for symbol in artifact.provides}

    def known(name: str) -> bool:
        return name in externs or name in provided or find_func(name) is not None

    owner = owners(module, dict(parts))
    generated = {label for label, part in parts.items() if part.kind.code_generator is not None}
    refuse_undeclared_kernels((f for name, f in module.items() if owner[name] not in generated), declared, known)
    if c_calls:
        graphs = [f for name, f in module.items() if isinstance(f, Function) and owner[name] not in generated]
        refuse_undeclared_symbols(graphs, lambda name: known(name) or name in declared)


def refuse_untrusted(module: IRModule) -> None:
    """ArtifactError W830 for a module that carries code of others: it is data until the caller trusts it.

    What a loaded module stands behind (`weft.runtime.loading.in_memory`) was loaded by the caller already.
    """
    foreign = [item.name for item in _carried(module).values() if not isinstance(item.memory, LoadedModule)]
    if foreign:
        more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
        raise ArtifactError(
            f"the module carries compiled code ({', '.join(foreign[:3])}{more}), which is not run unless it is trusted",
            code="W830",
            hint="if you trust it: weft.compile(..., trust=True), or --trust on the command line",
        )


def _carried(module: IRModule) -> ArtifactSet:
    found = module.attrs.get(ARTIFACTS)
    return found if isinstance(found, ArtifactSet) else ArtifactSet()
