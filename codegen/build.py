"""build: what comes after the phases. Each part's functions go to its code generator, and what drives is linked.

    part of this machine        machine code in the executable
    kind with a code generator  artifacts, linked by the loaders of their kinds
    anything else               refused, with the label, the kind and a function named

Errors: TargetError W736 a part that nothing can make code for, or that the driving part cannot call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.codegen.executors import native
from weft.codegen.generators import ARTIFACTS, generate_artifacts
from weft.codegen.plan import Plan
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable, Program
from weft.transform.target_parts import owners

__all__ = ["EMITTERS", "build"]

Emitter = Callable[[IRModule, Plan, Mapping[str, str]], Program]


def _native(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    return native.generate(module, plan.machines, owner, plan.driver)


EMITTERS: dict[str, Emitter] = {"native": _native}
"""For each executor, what makes a program of a lowered module whose other parts are artifacts."""


def build(module: IRModule, plan: Plan) -> Executable | ArtifactSet:
    """The executable of a lowered module, or its artifacts where they do not run here."""
    if plan.runs_here:
        return Executable(link(module, plan))
    raise _no_generator(plan, plan.driver, "")


def link(module: IRModule, plan: Plan) -> Program:
    """The program of a module that this machine drives."""
    remaining = generate_artifacts(module, plan.target)
    owner = owners(remaining, plan.parts)
    for name in remaining:
        if owner[name] not in plan.machines:
            raise _no_generator(plan, owner[name], name, module)
    program = EMITTERS[plan.executor](remaining, plan, owner)
    program.artifacts = remaining.attrs.get(ARTIFACTS, ArtifactSet())
    return program


def _no_generator(plan: Plan, label: str, name: str, module: IRModule | None = None) -> TargetError:
    kind = plan.parts[label].kind.name
    subject = f"function {name!r} belongs to {plan.where(label)}, and" if name else f"{plan.where(label)}:"
    return TargetError(
        f"{subject} nothing here makes code of kind {kind!r} that {plan.where(plan.driver)} can call",
        code="W736",
        span=module[name].span if module is not None and name else None,
        hint=f"give kind {kind!r} a code generator (kind.codegen), or a lowering hook",
    )
