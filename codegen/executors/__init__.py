"""Executors: how the graph functions of a lowered module run. All read the same explicit-memory form.

native   one machine-code entry for each graph function
vm       bytecode over registers: control flow, closures, profiles and traces
graph    a list of nodes with storage planned ahead: straight-line code of static or bounded sizes
aot      a shared object with a C header, and C source for machines without anything else

An executor makes a program of a module (`build`: module, plan, owner of each function -> `weft.runtime.Program`), whose
`driver` is data that its runner makes functions of (`weft.runtime.programs`). Machine code it asks of the back end that
drives (`weft.codegen.backends.base`), so that every back end with machine code has all of them. One of a plug-in is
added by `register_executor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.errors import TargetError
from weft.runtime.executable import Program
from weft.runtime.programs import RUNNERS, Runner
from weft.support.providers import load
from weft.support.records import dataclass, record
from weft.target.builtin import EXECUTORS as NAMES

__all__ = ["EXECUTORS", "Build", "Executor", "register_executor", "unregister_executor"]

Build = Callable[..., Program]
"""(module, plan, owner of each function) -> the program."""


@record
class Executor:
    """What makes programs, or its place, and whether they are straight lines of steps that call no functions."""

    name: str
    build: Build | str
    straight_line: bool = False

    def program(self, *job: Any) -> Program:
        """The program of a job; that of a plug-in is run by the runner of its name."""
        build: Build = load(self.build) if isinstance(self.build, str) else self.build
        made = build(*job)
        if made.driver is None or self.name not in RUNNERS:
            return made
        return replace(made, driver={**made.driver, "executor": self.name, "format": self.name})


EXECUTORS: dict[str, Executor] = {
    row.name: row
    for row in (
        Executor("native", "weft.codegen.executors.native:native"),
        Executor("vm", "weft.codegen.executors.vm:vm"),
        Executor("graph", "weft.codegen.executors.entry:graph", straight_line=True),
        Executor("aot", "weft.codegen.executors.entry:aot", straight_line=True),
    )
}
"""The executors by name; what they are made by is imported when it is first asked for."""
_BUILT_IN = tuple(EXECUTORS)


def register_executor(name: str, build: Build, run: Runner | None = None, *, straight_line: bool = False) -> None:
    """Add an executor: what makes programs, and what makes functions of their `driver` where they have one.

    Raises: TargetError W755 for a name that is taken.
    """
    if name in EXECUTORS or name in RUNNERS:
        raise TargetError(f"there is an executor {name!r} already", code="W755")
    EXECUTORS[name] = Executor(name, build, straight_line)
    NAMES.append(name)
    if run is not None:
        RUNNERS[name] = run


def unregister_executor(name: str) -> None:
    """Forget an executor that was added."""
    if name in EXECUTORS and name not in _BUILT_IN:
        del EXECUTORS[name]
        NAMES.remove(name)
        RUNNERS.pop(name, None)
