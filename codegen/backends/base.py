"""Back ends: what makes code for the parts of a target. The built-in ones and those of plug-ins are the same.

    back end ::= takes     a `Job`: the lowered functions of a module, and the `Plan` of what is asked for
                 returns   an `Executable`, or the `ArtifactSet` of what does not run in this process
                 drives    the executors in `executors`; a back end without any only works for others
                 beside    `generator`: artifacts for another back end that drives, called by the symbols that they
                           provide; `processor`: machine code of this machine, which is called directly
                 emits     `machine_code` of this machine, of which the executors are made; `linkable`, code for C
                 shows     `source` text in the `forms` that it has

    register_back_end("kind", MyBackEnd())        one for each kind of target

A kind that has only a code generator (`kind.codegen`) needs no back end of its own: its artifacts are linked into what
drives, or are the whole result. Everything that a target asks of a part is asked of the part's back end; no other code
looks at its kind.

Errors: TargetError W736 a part that nothing can make code for, or that the driving part cannot call; W739 an executor
that the driving part does not have; W752 a second back end for a kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from weft.codegen.backends.llvm.machine.host_target import HostTarget
from weft.codegen.executors import EXECUTORS
from weft.errors import ArtifactError, TargetError
from weft.ir.attrs import ARTIFACTS
from weft.ir.kernel.externs import Extern
from weft.ir.module import IRModule
from weft.ir.node import EMPTY
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.executable import Executable, Program
from weft.runtime.programs.bytecode import listing
from weft.runtime.programs.library_names import UNNAMED
from weft.support.providers import load
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.target.labels import owners

if TYPE_CHECKING:
    from weft.codegen.backends.generators import Generator
    from weft.codegen.host.entry import Entry

__all__ = [
    "BackEnd",
    "Job",
    "Plan",
    "back_end_of",
    "forms_of",
    "no_generator",
    "no_source",
    "register_back_end",
    "source_of",
    "unregister_back_end",
]


@dataclass(frozen=True)
class Plan:
    """What to build: the whole target, its leaf parts, the part that drives, the machines of parts that run here.

    `passes` is the target that the phases see: parts for this machine name the level of its processor. `externs` are
    the names of foreign code that the caller lets the program call, `knobs` those of the schedules, whose level is
    `opt`, `name` that of a model among several, `workers` how many kernels are compiled at once where the caller says
    so.
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
    name: str = ""
    workers: int | None = None

    @property
    def runs_here(self) -> bool:
        """Whether the driving part is machine code of this machine."""
        return self.driver in self.machines

    @property
    def straight_line(self) -> bool:
        """Whether the program becomes one straight line of steps, which has no place for calls of graph functions."""
        return EXECUTORS[self.executor].straight_line or back_end_of(self.parts[self.driver]).is_straight_line(self)

    @property
    def model(self) -> str:
        """The name of the compiled model, for symbols and files: its own, that of the package, else `model`."""
        return self.name or str(self._field("package").get("name", UNNAMED))

    @property
    def package(self) -> str:
        """What is to be written in the end: an archive, a tree of files, or a shared object."""
        return str(self._field("package").get("format", "archive"))

    @property
    def hosted(self) -> bool:
        """Whether there is an operating system: what the runtime says, else the triple of the part that drives."""
        stated, triple = self.runtime, self.parts[self.driver].triple
        return triple is not None and triple.os == "linux" if stated is None else stated == "host"

    @property
    def runtime(self) -> str | None:
        """The runtime that a configuration states."""
        return self._field("runtime").get("kind")

    def _field(self, name: str) -> Mapping[str, Any]:
        return dict(self.configuration.get(name) or {})

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
        from weft.codegen.backends.generators import generate_artifacts  # passes load with it

        left = generate_artifacts(self.module, self.plan.target, generators)
        owner = owners(left, self.plan.parts)
        for name in left:
            if not serves(owner[name]):
                raise no_generator(self.plan, owner[name], name, self.module if name in self.module else left)
        return left, owner

    def program(self) -> Program:
        """The program that the executor of the plan makes: machine code of this machine, artifacts of other parts."""
        remaining, owner = self.remaining(lambda label: label in self.plan.machines, self.generators)
        program = EXECUTORS[self.plan.executor].program(remaining, self.plan, owner)
        program.kind = self.plan.parts[self.plan.driver].kind.name
        others = remaining.attrs.get(ARTIFACTS, ArtifactSet()).values()
        program.artifacts = ArtifactSet(program.artifacts.values()).union(others)
        return program


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

    def library(self, jobs: Sequence[Job]) -> ArtifactSet:
        """Several models, each under the name of its plan, for C programs to link together."""
        made = [self.build(job) for job in jobs]
        sets = [item.artifacts if isinstance(item, Executable) else item for item in made]
        return ArtifactSet(item for each in sets for item in each.values() if item.loader == "cc")

    def machine_code(
        self, module: IRModule, plan: Plan, owner: Mapping[str, str], *, kernels_only: bool = False
    ) -> Program:
        """Code of this machine of the functions of a lowered module, for the executors to be made of.

        `owner` names the part of each function. With `kernels_only`, graph functions are left out and every kernel can
        be called. TargetError W739 where there is none.
        """
        raise TargetError(f"{plan.where(plan.driver)} has no machine code of this process", code="W739")

    def linkable(self, module: IRModule, entry: Entry, plan: Plan) -> list[Artifact]:
        """The straight-line program of an entry as code for C programs to link; nothing where there is none."""
        return []

    def source(self, program: Program, form: str) -> str:
        """The source text of a program that it drives; ArtifactError W806 for a form that there is none of."""
        raise no_source(form, forms_of(program))


_BACK_ENDS: dict[str, BackEnd | str] = {
    "llvm": "weft.codegen.backends.llvm.backend:BACK_END",
    "c": "weft.codegen.backends.c.backend:BACK_END",
}
"""By kind of target: the back end, or the place of one that is imported when a target first asks for it."""
_GENERATORS = BackEnd()
_TEXTS = ("header",)
"""Kinds of artifacts that are text, beside the forms of back ends."""


def register_back_end(kind: str, back_end: BackEnd) -> None:
    """Let a back end make the code for parts of a kind; TargetError W752 when another one does."""
    if _BACK_ENDS.setdefault(kind, back_end) is not back_end:
        raise TargetError(f"kind {kind!r} has a back end already", code="W752")


def unregister_back_end(kind: str) -> None:
    """Forget the back end of a kind."""
    _BACK_ENDS.pop(kind, None)


def back_end_of(part: Target) -> BackEnd:
    """The back end of a part."""
    return _of_kind(part.kind.name)


def _of_kind(kind: str) -> BackEnd:
    found = _BACK_ENDS.get(kind, _GENERATORS)
    if isinstance(found, str):
        found = _BACK_ENDS[kind] = load(found)
        assert isinstance(found, BackEnd)
    return found


def forms_of(program: Program) -> tuple[str, ...]:
    """The forms of source text that a program and those beside it have: of back ends, executors, and other parts."""
    return tuple(dict.fromkeys(form for item in (*program.beside, program) for form in _forms_alone(item)))


def _forms_alone(program: Program) -> tuple[str, ...]:
    own = _of_kind(program.kind).forms
    driver = () if program.driver is None else (str(program.driver["executor"]),)
    written = {form for kind in _BACK_ENDS for form in _of_kind(kind).forms}
    others = sorted({artifact.kind for artifact in program.artifacts.values()} & written.union(_TEXTS))
    return tuple(dict.fromkeys([*own, *driver, *others]))


def source_of(program: Program, form: str | None = None) -> str:
    """The source text of a program, and of those beside it before it, in a form, by default the first that it has.

    ArtifactError W806 names the forms that there are.
    """
    forms = forms_of(program)
    form = forms[0] if form is None and forms else form
    if form is None or form not in forms:
        raise no_source(str(form), forms)
    together = (*program.beside, program)
    texts = [_source_alone(item, form) for item in together if form in _forms_alone(item)]
    if not any(texts):
        raise ArtifactError(
            f"no {form!r} source: a compiled module holds code, not the text that it was made from",
            code="W806",
            hint="ask the executable that was compiled, or one that was saved and loaded",
        )
    return "\n".join(filter(None, texts))


def _source_alone(program: Program, form: str) -> str:
    back_end = _of_kind(program.kind)
    if form in back_end.forms:
        return back_end.source(program, form)
    if program.driver is not None and form == program.driver["executor"]:
        return listing(program.driver) if form == "vm" else json.dumps(program.driver, indent=1)
    return "\n".join(item.data.decode() for item in program.artifacts.values() if item.kind == form)


def no_source(form: str, forms: Collection[str]) -> ArtifactError:
    """W806: a form of source text that a program does not have."""
    return ArtifactError(f"no {form!r} source", code="W806", hint=f"choose one of: {', '.join(forms) or 'none'}")


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
