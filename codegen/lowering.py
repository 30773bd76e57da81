"""What a compilation does that finds no program on the disk: phases, code generators, packages.

    plan -> phases (passes) -> code generators -> Executable | ArtifactSet

`weft.codegen.compile` loads this file, and with it the passes and the back ends, when it has something to compile.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

from weft import dtypes
from weft.codegen.asked import Asked
from weft.codegen.backends.base import Job
from weft.codegen.binding import bound
from weft.codegen.build import build, job_of, library
from weft.codegen.cache.lowered import lowered_module, lowered_text, on_constants, stands_for
from weft.codegen.cache.programs import keep
from weft.codegen.compiled import holds_program, is_compiled, linked, load_module
from weft.codegen.foreign import (
    check_externs,
    member_functions,
    refuse_absent_members,
    refuse_undeclared,
    refuse_untrusted,
)
from weft.codegen.generate import CODE, GenerateCode, code_passes
from weft.codegen.host.entry import only_entry
from weft.codegen.host.single_kernel import with_entry
from weft.codegen.plan import Plan, make_plan
from weft.errors import ArtifactError, PassError, RecursionDepthError, TargetError, described
from weft.ir.attrs import ARTIFACTS
from weft.ir.deduction.one_device import on_one_device
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.structure.recursion import is_deep
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.verify import refuse_ill_formed_kernels
from weft.ir.verify.spread import refuse_spread
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.executable import Executable, Program
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.graph.control_flow_to_kernels import ControlFlowToKernels
from weft.transform.graph.dead_code import DeadCodeElimination
from weft.transform.graph.inline_functions import InlinePrivateFunctions
from weft.transform.graph.lambda_lift import LambdaLift
from weft.transform.graph.unroll_loops import UnrollLoops
from weft.transform.infra.base import Pass, nested_too_deeply
from weft.transform.infra.context import PassContext
from weft.transform.infra.phases import Step, phases, phases_of, run_phases
from weft.transform.infra.pipeline import parse_pipeline

__all__ = ["as_compiled", "compiled_library", "compiled_program", "linkable", "linkable_of", "lowered"]

_log = logging.getLogger("weft.compile")


def as_compiled(
    module: IRModule, target: object, executor: str | None, start: str | None, trust: bool
) -> Executable | ArtifactSet | None:
    """What a compiled module is, None for another one that is to go through phases from `start`.

    Raises: TargetError W736 and W739 for another machine or executor than it was compiled for.
    """
    if not is_compiled(module) or not (start in CODE or (start is None and holds_program(module))):
        return None
    if not holds_program(module):
        return module.attrs[ARTIFACTS]
    if target is not None and not make_plan(module, target, None, 0).runs_here:
        raise TargetError(
            f"the module is compiled for this machine, and {target} is another one",
            code="W736",
            hint="compile what it was made of for that target",
        )
    made = load_module(module, trust=trust)
    if executor not in (None, made.executor):
        raise TargetError(
            f"the module is compiled for the executor {made.executor}, not for {executor}",
            code="W739",
            hint="leave the executor out, or compile what it was made of",
        )
    return made


def compiled_program(
    asked: Asked, key: str | None, *, pipeline: Any, start: str | None, trace: list[Step] | None
) -> Executable | ArtifactSet:
    """The program of a module, which is kept on the disk where it has a key there."""
    module, plan = _planned(asked)
    _refuse_vectors(module)
    module = on_one_device(module)
    refuse_spread(module.functions.values())
    refuse_absent_members(module)
    began = time.perf_counter()
    generate = GenerateCode.of(plan, member_functions(module))
    with _room(module):
        made = generate.loaded(_through(module, plan, generate, pipeline=pipeline, start=start, trace=trace))
    lowered = generate.made.get("lowered")
    if not isinstance(made, Executable) or lowered is None or not stands_for(lowered, module):
        lowered = None
    else:
        lowered = on_constants(lowered, made._program)
    if key is not None and isinstance(made, Executable) and plan.package == "archive":
        keep(key, made._program, "" if lowered is None else lowered_text(lowered, made._program))
    _log.info("%s for %s: %.2f s", ", ".join(module), plan.target, time.perf_counter() - began)
    if isinstance(made, Executable):
        made._linkable = _linkable_later(module, lowered, plan, pipeline, start)
    return _packaged(made, plan)


def _linkable_later(
    module: IRModule, lowered: IRModule | None, plan: Plan, pipeline: Any, start: str | None
) -> Callable[[], ArtifactSet]:
    """What makes the program for C to link, and holds no more of the module than it takes."""
    if lowered is None:
        return lambda: linkable(module, plan, pipeline, start)
    members = member_functions(module)
    return lambda: _library_of(lowered, plan, members)


def _planned(asked: Asked) -> tuple[IRModule, Plan]:
    """The module with its parameters bound, and the plan."""
    plan = make_plan(asked.module, asked.target, asked.executor, asked.opt)
    plan = with_fields(plan, externs=check_externs(asked.externs), workers=asked.workers)
    if not asked.trust:
        refuse_untrusted(asked.module)
    return bound(asked.module, asked.params), plan


def linkable_of(asked: Asked, text: str | None, program: Program) -> ArtifactSet:
    """The program for C to link of a program that was found on the disk.

    It is made of the text of its lowered module; where there is none, what was asked for has the module.
    Raises: ArtifactError W819 for a text that is damaged.
    """
    if text is None:
        return linkable(*_planned(asked))
    if not text:
        message = "the lowered module in the cache of compiled code is damaged, and the one it was made of is gone"
        raise ArtifactError(message, code="W819", hint="empty the cache (weft cache clear), and compile again")
    lowered = lowered_module(text, program)
    plan = make_plan(lowered, asked.target, asked.executor, asked.opt)
    return _library_of(lowered, with_fields(plan, workers=asked.workers), {})


def _packaged(made: Executable | ArtifactSet, plan: Plan) -> Executable | ArtifactSet:
    """What the package of a configuration asks for: files for C to link, or the shared object of them."""
    if plan.package == "archive":
        return made
    files = made.linkable() if isinstance(made, Executable) else made
    if plan.package == "tree":
        return files
    name = f"lib{plan.model}.so"
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        content = files.export(Path(folder, name)).read_bytes()
    provides = tuple(symbol for item in files.values() for symbol in item.provides)
    shared = Artifact("sharedlib", name, content, plan.target.to_json(), provides, codegen="weft", loader="cc")
    return ArtifactSet([shared, *(item for item in files.values() if item.kind == "header")])


def compiled_library(
    models: Mapping[str, IRModule],
    target: object,
    opt: int | Knobs,
    externs: Collection[str],
    executor: str | None,
    workers: int | None,
) -> ArtifactSet:
    """Several models in one library for C programs to link, each behind an entry of its name."""
    jobs: list[Job] = []
    for name, module in models.items():
        plan = make_plan(module, target, executor, opt)
        if plan.runs_here:
            plan = with_fields(plan, executor="aot")
        plan = with_fields(plan, externs=check_externs(externs), name=name, workers=workers)
        refuse_untrusted(module)
        _refuse_vectors(module)
        module = on_one_device(module)
        refuse_spread(module.functions.values())
        with _room(module):
            lowered = _through(module, plan, stop=PLANNED)
            refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=True)
            if not any(isinstance(function, Function) for function in lowered.functions.values()):
                lowered, _ = with_entry(lowered)
            jobs.append(job_of(lowered, plan, member_functions(module)))
    if not jobs:
        raise PassError("a library of no models", code="W511", hint='{"name": module, ...}')
    with _room(*models.values()):
        found = _packaged(library(jobs), with_fields(jobs[0].plan, name=""))
    assert isinstance(found, ArtifactSet)
    return found


def linkable(module: IRModule, plan: Plan, pipeline: Any = None, start: str | None = None) -> ArtifactSet:
    """The program for C to link of a module."""
    with _room(module):
        straight = with_fields(plan, executor="aot")
        straightened = _through(module, straight, pipeline=pipeline, start=start, stop=PLANNED)
        return _library_of(straightened, plan, member_functions(module))


def _library_of(lowered: IRModule, plan: Plan, members: Mapping[str, Callable[..., Any]]) -> ArtifactSet:
    """The program for C to link of a lowered module that is one straight line."""
    with _room(lowered):
        refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=True)
        if only_entry(lowered) is None:
            lowered, _ = with_entry(lowered)
        made = build(lowered, with_fields(plan, executor="aot"), members)
    assert isinstance(made, Executable)
    return ArtifactSet(item for item in made._program.artifacts.values() if item.loader == "cc")


@contextmanager
def _room(*modules: IRModule) -> Iterator[None]:
    """PassError W524 for programs that nest deeper than there is room for."""
    try:
        yield
    except RecursionDepthError:
        raise
    except RecursionError:
        if not any(map(is_deep, modules)):
            raise
        raise nested_too_deeply("to be compiled") from None


def _refuse_vectors(module: IRModule) -> None:
    """W740 at a vector whose length only the machine knows, and at a buffer of vectors, which has no layout."""
    for function in module.functions.values():
        for part in walk(function) if isinstance(function, PrimFunc) else ():
            if isinstance(part, (PrimExpr, Buffer)) and dtypes.is_scalable(part.dtype):
                raise TargetError(
                    f"scalable vectors (T.vscale) cannot be compiled: this is a {part.dtype}",
                    code="W740",
                    span=part.span,
                    hint="write a constant length",
                )
            if isinstance(part, Buffer) and dtypes.lanes(part.dtype) != 1:
                raise TargetError(
                    f"the buffer {part.name!r} is one of vectors, which cannot be compiled: {part.dtype}",
                    code="W740",
                    span=part.span,
                    hint="give a buffer of scalars one more dimension",
                )


def lowered(
    module: IRModule,
    target: object,
    opt: int | Knobs,
    params: Mapping[str, Any] | None,
    start: str | None,
    stop: str | None,
    trace: list[Step] | None,
    executor: str | None,
    externs: Collection[str],
    trust: bool,
) -> IRModule:
    """What `weft.lower` gives."""
    if stop in CODE and start in CODE and is_compiled(module):
        return linked(module) if stop == "link" else module
    if stop in CODE and not trust:
        refuse_untrusted(module)
    plan = with_fields(make_plan(module, target, executor, opt), externs=check_externs(externs))
    generate = GenerateCode.of(plan, member_functions(module))
    with _room(module):
        return _through(bound(module, params), plan, generate, start=start, stop=stop or PLANNED, trace=trace)


PLANNED = "plan"
"""The last phase that is passes on functions; `lower` goes on to make code when that is asked for."""


def _through(
    module: IRModule,
    plan: Plan,
    generate: GenerateCode | None = None,
    *,
    pipeline: Any = None,
    start: str | None = None,
    stop: str = CODE[-1],
    trace: list[Step] | None = None,
) -> IRModule:
    """The module after the phases of a plan from `start` to `stop`; a user's pipeline replaces the optional passes."""
    refuse_ill_formed_kernels(module)
    level, before = plan.opt, _STRAIGHTENED if plan.straight_line else {}
    if pipeline is not None:
        for item in before.get("import", ()) if start is None else ():
            module = item(module)
        module, start, level = *_piped(module, plan, pipeline, start, trace), 0
    more = {phase: code_passes(phase, generate) for phase in CODE}
    with PassContext(opt=level):
        return run_phases(
            module, plan.passes, start=start, stop=stop, trace=trace, knobs=plan.knobs, before=before, more=more
        )


_STRAIGHTENED: Mapping[str, tuple[Pass, ...]] = {
    "import": (
        UnrollLoops(),
        DeadCodeElimination(),  # loops too, while their bodies are seen beside them
        LambdaLift(),
        InlinePrivateFunctions(),
    ),
    "lower": (LambdaLift(), ControlFlowToKernels()),
}
"""What comes before phases for programs without control flow: short loops are written out, others become kernels."""


def _piped(
    module: IRModule, plan: Plan, pipeline: Any, start: str | None, trace: list[Step] | None
) -> tuple[IRModule, str | None]:
    """The module after a user's pipeline, and the phase to go on with.

    A phase that the pipeline names is not run again: what is mandatory before its first one runs before it.
    """
    pipeline = _checked_pipeline(pipeline, plan)
    names, named = phases(), phases_of(pipeline)
    first = 0 if start is None else names.index(start)
    if named and (before := names.index(named[0])) > first:
        with PassContext(opt=0):
            module = run_phases(module, plan.passes, start=start, stop=names[before - 1], trace=trace, knobs=plan.knobs)
    with plan.passes, PassContext(config={"knobs": plan.knobs}):
        module = pipeline(module)
    return module, names[max(first, names.index(named[-1]) + 1) if named else first]


def _checked_pipeline(pipeline: Any, plan: Plan) -> Pass:
    """The pipeline of a user, or of its text; PassError W511 for what is none, W543 for phases that come after it."""
    if isinstance(pipeline, str):
        with plan.passes:
            pipeline = parse_pipeline(pipeline)
    if not isinstance(pipeline, Pass):
        raise PassError(
            f"pipeline= takes a pass, a pipeline or the text of one, got {described(pipeline)}",
            code="W511",
            hint="declare a function of modules as a pass: @weft.transform.module_pass" if callable(pipeline) else None,
        )
    late = [name for name in phases_of(pipeline) if name in CODE]
    if late:
        hint = f'leave {" and ".join(late)} out; weft.lower(module, stop="{late[-1]}") gives the module after it'
        raise PassError(f"pipeline= names {late[0]}, which weft.compile runs itself", code="W543", hint=hint)
    return pipeline
