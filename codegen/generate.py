"""The phases `codegen` and `link` as passes: lowered functions become declarations, and artifacts do what they did.

    GenerateCode     the back end of the part that drives makes the program; other parts make theirs (`build`)
    LinkArtifacts    what is loaded stays, with libraries for C, and every symbol that some artifact needs is there

What the program is asked to be stands in their options; `weft.compile` hands over the plan that it made of its
arguments. Hooks of the two phases see the whole module, since artifacts are the module's.

Errors: those of `weft.codegen.plan`, `weft.codegen.build` and `weft.codegen.compiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar

from weft.codegen.backends.base import Plan
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.build import build
from weft.codegen.compiled import compiled_module, declared_module, is_compiled, linked, linked_artifacts, load_module
from weft.codegen.foreign import check_externs, member_functions, refuse_undeclared, refuse_untrusted
from weft.codegen.plan import make_plan
from weft.ir.module import IRModule
from weft.ir.node import EMPTY
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.infra.base import Pass
from weft.transform.infra.options import AtLeast

__all__ = ["CODE", "GenerateCode", "LinkArtifacts", "code_passes", "phase_passes"]

CODE = ("codegen", "link")
"""The phases that make and link code."""


@dataclass(frozen=True)
class GenerateCode(Pass):
    """Make the code of every part of a target, by default of this machine; a compiled module stays as it is.

    `plan` is what `target`, `executor`, `opt` and `externs` ask for, `members` are the Python functions of the module;
    both are found where they are not given. Code that the module carries is loaded beside what is made, so that the
    caller has to `trust` it (ArtifactError W830); who gives a plan has asked for that before.
    """

    keeps_meaning: ClassVar[bool] = False
    names_itself: ClassVar[bool] = False
    target: str | None = None
    executor: str | None = None
    opt: Annotated[int, AtLeast(0)] = 2
    externs: tuple[str, ...] = ()
    trust: bool = False
    plan: Plan | None = field(default=None, repr=False, compare=False)
    members: Mapping[str, Callable[..., Any]] | None = field(default=None, repr=False, compare=False)
    made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, plan: Plan, members: Mapping[str, Callable[..., Any]] = EMPTY) -> GenerateCode:
        """The pass for a plan."""
        externs = tuple(sorted(plan.externs))
        return cls(plan.target.to_str(), plan.executor, plan.opt, externs, plan=plan, members=members)

    def __str__(self) -> str:
        return Pass.__str__(GenerateCode(self.target, self.executor, self.opt, self.externs))

    def run(self, module: IRModule) -> IRModule:
        """Generate code of the lowered functions."""
        if is_compiled(module):
            return module
        plan, members = self.plan, self.members
        if plan is None:
            if not self.trust:
                refuse_untrusted(module)
            plan = replace(make_plan(module, self.target, self.executor, self.opt), externs=check_externs(self.externs))
        members = member_functions(module) if members is None else members
        # Code that C links has no process to look a name up in.
        refuse_undeclared(module, plan.parts, plan.externs, c_calls=not plan.runs_here or plan.executor == "aot")
        made = build(module, plan, members)
        if not isinstance(made, Executable):
            return declared_module(module, made)
        compiled = compiled_module(made._program, link=False)
        self.made.update(executable=made, artifacts=compiled.attrs[ARTIFACTS], lowered=module)
        return compiled

    def loaded(self, module: IRModule) -> Executable | ArtifactSet:
        """What a module that this pass made does: its executable, or the artifacts that do not run here.

        Where nothing changed an artifact since, the code is loaded already.
        """
        kept, artifacts = self.made.get("artifacts"), module.attrs.get(ARTIFACTS, ArtifactSet())
        if kept is None:
            return artifacts
        names = linked_artifacts(kept).names
        if artifacts.names == names and all(kept[name] is artifacts[name] for name in names):
            return self.made["executable"]
        return load_module(module, trust=True)


@dataclass(frozen=True)
class LinkArtifacts(Pass):
    """Keep the artifacts that are loaded, and check that each symbol is there; libraries for C stay as they are.

    Raises: ArtifactError W815 for symbols that nothing provides.
    """

    keeps_meaning: ClassVar[bool] = False
    names_itself: ClassVar[bool] = False

    def run(self, module: IRModule) -> IRModule:
        """Link a compiled module; any other one stays as it is."""
        return linked(module) if is_compiled(module) else module


def code_passes(phase: str, generate: GenerateCode | None = None) -> tuple[Pass, ...]:
    """What is built in for one of the two phases."""
    return ((generate or GenerateCode(),) if phase == CODE[0] else (LinkArtifacts(),)) if phase in CODE else ()


def phase_passes(phase: str, target: Target | str | None) -> tuple[Pass, ...]:
    """What a pipeline that names one of the two phases runs for a target."""
    return code_passes(phase, GenerateCode(None if target is None else Target(target).to_str()))
