"""build: what comes after the phases. The back end of the part that drives makes the program.

    part that drives            its back end builds the whole (`weft.codegen.backends.base`)
    part beside it              machine code of this machine, or the artifacts of its back end
    configuration beside it     compiled by itself, as its own target says
    anything else               refused, with the label, the kind and a function named

Errors: TargetError W736 a part that nothing can make code for, or that the driving part cannot call; W739 an executor
or an entry that the back end of the driving part does not have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as with_fields
from typing import Any

from weft.codegen.backends.base import Job, Plan, back_end_of
from weft.codegen.backends.generators import ARTIFACTS, Generator, provenance
from weft.codegen.backends.llvm.machine.host_target import HostTarget
from weft.codegen.plan import CARRIED, make_plan
from weft.errors import TargetError
from weft.ir.attrs import LABEL
from weft.ir.graph import ExternFunc, Function, GlobalVar, StringImm
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import EMPTY, replace
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.visit import walk
from weft.ir.tensor import PrimFunc
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.executable import Executable
from weft.runtime.program_artifacts import EXECUTABLE, Program, programs_of, public_signatures
from weft.runtime.programs.library_names import LIBRARY
from weft.target import Target
from weft.transform.infra.context import PassContext
from weft.transform.infra.decisions import numbers, without_decisions
from weft.transform.infra.phases import run_phases
from weft.transform.target.labels import owners

__all__ = ["build", "job_of", "library"]


def build(module: IRModule, plan: Plan, members: Mapping[str, Callable[..., Any]] = EMPTY) -> Executable | ArtifactSet:
    """The executable of a lowered module, or its artifacts where they do not run here; `members` are its Python.

    Every artifact says what it was made from and by. Programs that the module carries stand beside the new one, which
    may call their functions.
    """
    module, programs = _without_programs(module, plan)
    made = back_end_of(plan.parts[plan.driver]).build(job_of(module, plan, members))
    facts = _facts(module, plan)
    if not isinstance(made, Executable):
        return ArtifactSet(_completed(item, facts, plan.model) for item in made.values())
    program, carried = made._program, module.attrs.get(ARTIFACTS, ArtifactSet())
    program.provenance |= {**facts, **_parts(module, plan)}
    others = program.artifacts.values()
    program.artifacts = ArtifactSet(
        item if item.name in carried else _completed(item, facts, plan.model) for item in others
    )
    if not programs:
        return made
    program.beside = programs
    public = {name: (item, own) for item in programs for name, own in _public_names(item).items()}
    program.uses = {name: public[name] for name in sorted(public.keys() & _called_symbols(module))}
    return Executable(program, members)


def _public_names(program: Program) -> dict[str, str]:
    """The name in the program of each function that callers see."""
    public = {item.name: item.name for item in public_signatures(with_fields(program, names=None))}
    return program.seen(public)


def _called_symbols(module: IRModule) -> set[str]:
    """The names of outside functions in the functions of a module."""
    bodies = [function for function in module.functions.values() if not isinstance(function, ExternFunc)]
    nodes = [node for function in bodies for node in walk(function)]
    declared = (module.functions.get(node.name) for node in nodes if isinstance(node, GlobalVar))
    symbols = (node.name for node in (*nodes, *declared) if isinstance(node, ExternFunc))
    return {*symbols, *(str(node.value) for node in nodes if isinstance(node, StringImm))}


def _without_programs(module: IRModule, plan: Plan) -> tuple[IRModule, list[Program]]:
    """The module without the programs among its artifacts, and these; W736 for a target that cannot call them."""
    if ARTIFACTS not in module.attrs:
        return module, []
    programs, alone = programs_of(module.attrs[ARTIFACTS])
    if programs and not plan.runs_here:
        names = ", ".join(item.name for program in programs.values() for item in public_signatures(program))
        raise TargetError(
            f"the module carries code of this process ({names}), which {plan.where(plan.driver)} cannot call",
            code="W736",
            hint="compile what it was made of for that target",
        )
    return (module.with_attr(ARTIFACTS, alone), list(programs.values())) if programs else (module, [])


def library(jobs: Sequence[Job]) -> ArtifactSet:
    """Several models for C programs to link together, with what they were made from and by."""
    made = back_end_of(jobs[0].plan.parts[jobs[0].plan.driver]).library(jobs)
    each = {job.plan.name: _facts(job.module, job.plan) for job in jobs}
    functions = {name: facts["functions"] for name, facts in each.items()}
    facts = {**each[jobs[0].plan.name], "functions": functions}
    return ArtifactSet(_completed(item, facts) for item in made.values())


def _facts(module: IRModule, plan: Plan) -> dict[str, Any]:
    """What a lowered module was compiled from and by: hashes of its functions, versions, options, decisions."""
    kernels = {name: without_decisions(f) if isinstance(f, PrimFunc) else f for name, f in module.items()}
    asked = {"target": plan.target.to_str(), "opt": plan.opt, "executor": plan.executor}
    return {**provenance(module.with_functions(kernels)), **asked, "decisions": numbers(module)}


def _parts(module: IRModule, plan: Plan) -> dict[str, Any]:
    """The target of each part in full, which one drives, and the part of each function where there are several."""
    parts = {label: _expanded(part, plan.machines.get(label)) for label, part in plan.parts.items()}
    labels = {"labels": owners(module, plan.parts)} if len(parts) > 1 else {}
    return {"parts": parts, "driver": plan.driver, **labels}


def _expanded(part: Target, machine: HostTarget | None) -> str:
    """The JSON of the target of a part, with the level of processor that this machine stands for."""
    return part.to_json() if machine is None else _on_machine(part, machine)


@functools.lru_cache(maxsize=64)
def _on_machine(part: Target, machine: HostTarget) -> str:
    found = machine.described().to_dict()
    flags = dict.fromkeys([*part.options.get("mattr", ()), *found.get("mattr", ())])
    return Target({**part.to_dict(), **found, **({"mattr": list(flags)} if flags else {})}).complete().to_json()


def _completed(item: Artifact, facts: Mapping[str, Any], model: str = "") -> Artifact:
    """The artifact with what it was made from and by, and the library that C programs link it with."""
    library = {LIBRARY: model} if model and item.loader == "cc" else {}
    return with_fields(item, provenance={**facts, **library, **item.provenance})


def job_of(module: IRModule, plan: Plan, members: Mapping[str, Callable[..., Any]] = EMPTY) -> Job:
    """What the back end that drives has to build; TargetError W739 for an executor that it does not have."""
    back_end = back_end_of(plan.parts[plan.driver])
    served = back_end.served(plan)
    if plan.executor not in served:
        raise TargetError(
            f"executor {plan.executor!r} cannot be had with {plan.where(plan.driver)}, which has no code of it",
            code="W739",
            hint=f"leave the executor out, or say one of: {', '.join(served)}",
        )
    return Job(module, plan, _generators(plan), members)


def _generators(plan: Plan) -> dict[str, Generator]:
    """The code generators of parts that work for the one that drives."""
    found = _configurations(plan)
    for label, part in plan.parts.items():
        generator = None if part.parts or label in plan.machines else back_end_of(part).generator(label, part)
        if generator is not None:
            found[label] = generator
    return found


def _configurations(plan: Plan) -> dict[str, Generator]:
    """Code generators of the parts that are configurations of their own: each compiles its functions by itself."""
    nested = {label: part for label, part in plan.parts.items() if part.parts}

    def generator(label: str) -> Generator:
        def generate(module: IRModule, part: Target) -> Artifact:
            inner = build_nested(module, label, part, plan)
            provides = tuple(Symbol(name) for name in inner)
            return Artifact(EXECUTABLE, f"{label}.weft", inner.to_bytes(), part.to_json(), provides, codegen="weft")

        return generate

    return {label: generator(label) for label in nested}


def build_nested(module: IRModule, label: str, part: Target, outer: Plan) -> Executable:
    """The executable of the functions of a part, lowered already, by the part's own target."""
    functions: dict[str, BaseFunc] = {}
    called = {callee for _, f in module.items() for callee in referenced_functions(f)}
    for name, function in module.items():
        if isinstance(function, (Function, PrimFunc)):
            attrs = function.attrs.without(LABEL) if function.attrs.get(LABEL) == label else function.attrs
            private = function.private and (name in called or isinstance(function, PrimFunc))
            function = replace(function, attrs=attrs, private=private)
        functions[name] = function
    alone = module.with_functions(functions)
    for key in (CARRIED, ARTIFACTS):
        alone = alone.without_attr(key) if key in alone.attrs else alone
    plan = with_fields(make_plan(alone, part, None, outer.opt), externs=outer.externs, workers=outer.workers)
    if not plan.runs_here:
        raise TargetError(
            f"part {label!r} is a configuration of its own, and {plan.where(plan.driver)} cannot run beside this one",
            code="W736",
        )
    with PassContext(opt=0):  # what its own kinds ask for; the rest was done with the whole
        lowered = run_phases(alone, plan.passes)
    made = build(lowered, plan)
    assert isinstance(made, Executable)
    return made
