"""Back ends: what makes code for the parts of a target. The built-in ones and those of plug-ins are the same.

    back end ::= takes     a `Job`: the lowered functions of a module, and the `Plan` of what is asked for
                 returns   an `Executable`, or the `ArtifactSet` of what does not run in this process
                 drives    the executors in `executors`; a back end without any only works for others
                 beside    `generator`: artifacts for another back end that drives, called by the symbols that they
                           provide; `processor`: machine code of this machine, which is called directly
                 shows     the forms of source text in `forms`

    register_back_end("kind", MyBackEnd())        one for each kind of target

A kind that has only a code generator (`kind.codegen`) needs no back end of its own: its artifacts are linked into what
drives, or are the whole result. Everything that a target asks of a part is asked of the part's back end; no other code
looks at its kind.

Errors: TargetError W736 a part that nothing can make code for, or that the driving part cannot call; W739 an executor
that the driving part does not have; W752 a second back end for a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.codegen.backends.generators import ARTIFACTS, Generator, generate_artifacts
from weft.codegen.backends.llvm.machine.host_target import HostTarget
from weft.errors import TargetError
from weft.ir.kernel.externs import Extern
from weft.ir.module import IRModule
from weft.ir.node import EMPTY
from weft.providers import load
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable
from weft.target import Target
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.target.parts import owners

__all__ = [
    "BackEnd", "Job", "Plan", "back_end_of", "no_generator", "register_back_end", "unregister_back_end",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What to build: the whole target, its leaf parts, the part that drives, the machines of parts that run here.

    `passes` is the target that the phases see: parts for this machine name the level of its processor. `externs` are
    the names of foreign code that the caller lets the program call, `knobs` those of the schedules, whose level is
    `opt`.
    """

    target: Target
    parts: Mapping[str, Target]
    driver: str
    machines: Mapping[str, HostTarget]
    passes: Target
    executor: str
    opt: int
    externs: frozenset[str] = frozenset()
    knobs: Knobs = field(default=Knobs())

    @property
    def runs_here(self) -> bool:
        """Whether the driving part is machine code of this machine."""
        return self.driver in self.machines

    @property
    def straight_line(self) -> bool:
        """Whether the program becomes one straight line of steps, which has no place for calls of graph functions."""
        return self.executor in ("graph", "aot") or back_end_of(self.parts[self.driver]).is_straight_line(self)

    @property
    def model(self) -> str:
        """The name of the compiled model, for symbols and files: that of the package, else `model`."""
        package = self.configuration.get("package")
        return str(package.get("name", "model")) if package else "model"

    @property
    def configuration(self) -> Mapping[str, Any]:
        """What a configuration says beside its parts: executor, runtime, memory, package."""
        return {} if self.target.is_leaf else self.target.options

    @property
    def declared(self) -> dict[str, Extern]:
        """The C functions that the kinds of the parts declare."""
        return {name: extern for part in self.parts.values() for name, extern in part.kind.externs.items()}

    @property
    def c_functions(self) -> frozenset[str]:
        """The names of C functions that kernels may call beside those that are declared for every program."""
        return self.externs.union(self.declared)

    def where(self, label: str) -> str:
        """A part, in words."""
        return f"part {label!r} ({self.parts[label]})" if label else f"the target {self.parts[label]}"


@dataclass(frozen=True)
class Job:
    """What a back end that drives has to build: the lowered module, its plan, the generators of parts beside it.

    `members` are the Python functions of the module.
    """

    module: IRModule
    plan: Plan
    generators: Mapping[str, Generator] = EMPTY
    members: Mapping[str, Callable[..., Any]] = EMPTY

    def remaining(
        self, serves: Callable[[str], bool], generators: Mapping[str, Generator] | None = None
    ) -> tuple[IRModule, Mapping[str, str]]:
        """The functions that the driving back end has to make code of, with the label of each.

        Code generators have made artifacts of the others, those of `generators` among them; a function that is left
        and whose part is not served is refused.
        """
        left = generate_artifacts(self.module, self.plan.target, generators)
        owner = owners(left, self.plan.parts)
        for name in left:
            if not serves(owner[name]):
                raise no_generator(self.plan, owner[name], name, self.module if name in self.module else left)
        return left, owner


class BackEnd:
    """A back end with nothing of its own: the functions of its parts go to the code generator of their kind."""

    executors: tuple[str, ...] = ("native", "aot")
    """The executors of programs that a part of this kind drives."""
    forms: tuple[str, ...] = ()
    """The forms of source text that it can show."""

    def processor(self, part: Target, opt: int) -> HostTarget | None:
        """The processor of this machine that the code of a part runs on; None when it does not run in this process."""
        return None

    def served(self, plan: Plan) -> tuple[str, ...]:
        """The executors that it has for a plan in which it drives."""
        return self.executors

    def is_straight_line(self, plan: Plan) -> bool:
        """Whether programs that it drives are straight lines of steps, so that calls must have been inlined."""
        return False

    def generator(self, label: str, part: Target) -> Generator | None:
        """What makes artifacts of the functions of a part beside another back end; None when it cannot."""
        return part.kind.code_generator

    def build(self, job: Job) -> Executable | ArtifactSet:
        """The program of a module in which a part of this kind drives."""
        module, _ = job.remaining(lambda label: False)
        return module.attrs.get(ARTIFACTS, ArtifactSet())


_BACK_ENDS: dict[str, BackEnd | str] = {
    "llvm": "weft.codegen.backends.llvm.backend:BACK_END",
    "c": "weft.codegen.backends.c.backend:BACK_END",
}
"""By kind of target: the back end, or the place of one that is imported when a target first asks for it."""
_GENERATORS = BackEnd()


def register_back_end(kind: str, back_end: BackEnd) -> None:
    """Let a back end make the code for parts of a kind; TargetError W752 when another one does."""
    if _BACK_ENDS.setdefault(kind, back_end) is not back_end:
        raise TargetError(f"kind {kind!r} has a back end already", code="W752")


def unregister_back_end(kind: str) -> None:
    """Forget the back end of a kind."""
    _BACK_ENDS.pop(kind, None)


def back_end_of(part: Target) -> BackEnd:
    """The back end of a part."""
    found = _BACK_ENDS.get(part.kind.name, _GENERATORS)
    if isinstance(found, str):
        found = _BACK_ENDS[part.kind.name] = load(found)
        assert isinstance(found, BackEnd)
    return found


def no_generator(plan: Plan, label: str, name: str, module: IRModule | None = None) -> TargetError:
    """W736: nothing makes code of a part that the driving part can call."""
    kind = plan.parts[label].kind.name
    subject = f"function {name!r} belongs to {plan.where(label)}, and" if name else f"{plan.where(label)}:"
    return TargetError(
        f"{subject} nothing here makes code of kind {kind!r} that {plan.where(plan.driver)} can call",
        code="W736",
        span=module[name].span if module is not None and name else None,
        hint=f"give kind {kind!r} a code generator (kind.codegen), or a lowering hook",
    )
