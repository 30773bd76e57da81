"""compile: a module through its phases, the code generators of its target's parts, and the linker.

    module -> plan (what is asked for) -> phases (passes) -> code generators -> Executable | ArtifactSet

A program that was compiled before is loaded from the disk cache where nothing asks for more (`program_cache`).

The phases are the same for every executor and every kind of target. What drives the program decides what comes back:
machine code of this machine gives an `Executable`; code for another machine, or source text, gives its artifacts.
"""

from __future__ import annotations

import logging
import tempfile
import time
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any, overload

import numpy as np

import weft.transform as transform
from weft import dtypes
from weft.codegen.backends.base import Job
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.build import build, job_of, library
from weft.codegen.cache.programs import find, keep, key_of
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
from weft.errors import PassError, RecursionDepthError, TargetError, described
from weft.ir.deduction.one_device import on_one_device
from weft.ir.graph import Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.array_digests import digests_kept
from weft.ir.structure.malformed import explained_by
from weft.ir.structure.recursion import is_deep
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.verify import fault_of, refuse_ill_formed_kernels
from weft.ir.verify.spread import refuse_spread
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.executable import CompiledFunction, Executable
from weft.support.collection import rare_collections
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.base import nested_too_deeply
from weft.transform.infra.phases import Step, phases, phases_of, run_phases

__all__ = ["as_module", "call", "compile", "lower"]

_log = logging.getLogger("weft.compile")


@overload
def compile(
    module_or_function: IRModule | BaseFunc,
    target: None = None,
    *,
    opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None,
    pipeline: Any = None,
    externs: Collection[str] = (),
    trust: bool = False,
    workers: int | None = None,
    executor: str | None = None,
    start: str | None = None,
    trace: list[Step] | None = None,
) -> Executable: ...
@overload
def compile(
    module_or_function: Mapping[str, IRModule | BaseFunc],
    target: object = None,
    *,
    opt: int | Knobs = 2,
    params: None = None,
    pipeline: None = None,
    externs: Collection[str] = (),
    trust: bool = False,
    workers: int | None = None,
    executor: str | None = None,
    start: None = None,
    trace: None = None,
) -> ArtifactSet: ...
@overload
def compile(
    module_or_function: IRModule | BaseFunc,
    target: object,
    *,
    opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None,
    pipeline: Any = None,
    externs: Collection[str] = (),
    trust: bool = False,
    workers: int | None = None,
    executor: str | None = None,
    start: str | None = None,
    trace: list[Step] | None = None,
) -> Any: ...
@explained_by(fault_of)
@digests_kept()
@rare_collections()
def compile(
    module_or_function: IRModule | BaseFunc | Mapping[str, IRModule | BaseFunc],
    target: object = None,
    *,
    opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None,
    pipeline: Any = None,
    externs: Collection[str] = (),
    trust: bool = False,
    workers: int | None = None,
    executor: str | None = None,
    start: str | None = None,
    trace: list[Step] | None = None,
) -> Any:
    """Compile a module or a single function: an `Executable` where this machine can run it, else its `ArtifactSet`.

    Several models by name become one library for C to link: {"digits": Digits, "words": Words} has `digits_run` and
    `words_run`. The package of a configuration says whether files are asked for: a tree, or a shared object.

    `target` is a target in any form; by default the one that the module carries, else this machine. `opt` is 0
    (quickest compile) to 3 (float sums reassociated), or the `weft.transform.Knobs` of a schedule; `params` are arrays
    bound to the parameters of `main`; `pipeline` (or its text) replaces the optional passes; `workers` says how many
    kernels LLVM compiles at once (by default one for each core, at most 8), which changes nothing of the result;
    `executor` is "native", "vm", "graph" or "aot"; `start` names the first phase to run, for a module that went through
    those before; a list as `trace` gets one `Step` for each pass. What drives a target of several parts (`host`, else
    the first) decides where it runs.

    A program calls C functions that are declared: mathematics, those of plug-ins (`weft.declare_extern`), and those
    named by `externs`. Machine code that the module carries is data, unless `trust` says to load it.
    Raises: TargetError for a target or construct that cannot be compiled (W760 and W761 for foreign code that nobody
    declared), ArtifactError W830 for code that nobody trusts, PassError W547 for a number of workers that is none, and
    what the passes raise.

    >>> import numpy as np
    >>> from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimFunc, PrimVar
    >>> n, i = PrimVar("n", "int64"), PrimVar("i", "int64")
    >>> x, y = Buffer("x", (n,)), Buffer("y", (n,))
    >>> exe = compile(PrimFunc((x, y), For(i, 0, n, BufferStore(y, BufferLoad(x, (i,)) * 2, (i,))), name="double"))
    >>> out = np.zeros(3, "float32")
    >>> exe["double"](np.ones(3, "float32"), out)
    >>> out
    array([2., 2., 2.], dtype=float32)
    """
    if isinstance(module_or_function, Mapping) and not isinstance(module_or_function, IRModule):
        given = {"params": params, "pipeline": pipeline, "start": start, "trace": trace}
        refused = [name for name, value in given.items() if value is not None]
        if refused:
            raise PassError(f"several models at once take no `{refused[0]}`", code="W543", hint="lower each by itself")
        return _library(module_or_function, target, opt, externs, executor, _checked_workers(workers))
    module = as_module(module_or_function)
    if is_compiled(module) and (start in CODE or (start is None and holds_program(module))):
        return _as_compiled(module, target, executor, trust)
    plan = with_fields(
        make_plan(module, target, executor, opt), externs=check_externs(externs), workers=_checked_workers(workers)
    )
    if not trust:
        refuse_untrusted(module)
    module = _bound(module, params)
    key = key_of(module, plan) if pipeline is None and start is None and trace is None else None
    if plan.package == "archive":
        kept = None if key is None else find(key)
    else:
        kept = key = None
    if kept is not None:
        _log.info("%s for %s: from the disk", ", ".join(module), plan.target)
        return _exporting(Executable(kept), module, plan, pipeline, start)
    _refuse_vectors(module)
    module = on_one_device(module)
    refuse_spread(module.functions.values())
    refuse_absent_members(module)
    began = time.perf_counter()
    generate = GenerateCode.of(plan, member_functions(module))
    with _room(module):
        made = generate.loaded(_through(module, plan, generate, pipeline=pipeline, start=start, trace=trace))
    if key is not None and isinstance(made, Executable):
        keep(key, made._program)
    _log.info("%s for %s: %.2f s", ", ".join(module), plan.target, time.perf_counter() - began)
    if isinstance(made, Executable):
        made = _exporting(made, module, plan, pipeline, start)
    return _packaged(made, plan)


def _checked_workers(workers: int | None) -> int | None:
    """PassError W547 for what is no number of threads."""
    if workers is not None and (type(workers) is not int or workers < 1):
        got = workers if type(workers) is int else described(workers)
        raise PassError(
            f"`workers` is how many kernels are compiled at once, at least 1, got {got}",
            code="W547",
            hint="leave it out for one on each core",
        )
    return workers


def _as_compiled(module: IRModule, target: object, executor: str | None, trust: bool) -> Executable | ArtifactSet:
    """What a compiled module is; TargetError W736 and W739 for another machine or executor than it was compiled for."""
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


def _library(
    models: Mapping[str, Any],
    target: object,
    opt: int | Knobs,
    externs: Collection[str],
    executor: str | None,
    workers: int | None,
) -> ArtifactSet:
    """Several models in one library for C programs to link, each behind an entry of its name."""
    jobs: list[Job] = []
    for name, value in models.items():
        module = as_module(value)
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
    with _room(*map(as_module, models.values())):
        found = _packaged(library(jobs), with_fields(jobs[0].plan, name=""))
    assert isinstance(found, ArtifactSet)
    return found


def _exporting(made: Executable, module: IRModule, plan: Plan, pipeline: Any, start: str | None) -> Executable:
    """The executable, which can make the program for C to link of its module when that is asked for."""

    def linkable() -> ArtifactSet:
        straight = with_fields(plan, executor="aot")
        with _room(module):
            lowered = _through(module, straight, pipeline=pipeline, start=start, stop=PLANNED)
            refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=True)
            if only_entry(lowered) is None:
                lowered, _ = with_entry(lowered)
            made = build(lowered, straight, member_functions(module))
        assert isinstance(made, Executable)
        return ArtifactSet(item for item in made._program.artifacts.values() if item.loader == "cc")

    made._linkable = linkable
    return made


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


def as_module(value: object) -> IRModule:
    """A module as it is, a function as the only one of a module."""
    if isinstance(value, IRModule):
        return value
    if isinstance(value, (Function, PrimFunc)):
        return IRModule({value.name or "main": value})
    hint = "give an IRModule, or a function under @R.function or @T.prim_func"
    if isinstance(value, str):
        hint = "weft.parse(text) reads a module from its text, weft.load(path) a saved executable"
    raise PassError(f"cannot compile {described(value)}", code="W511", hint=hint)


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


@digests_kept()
@rare_collections()
def lower(
    module_or_function: IRModule | BaseFunc,
    target: object = None,
    *,
    opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None,
    start: str | None = None,
    stop: str | None = None,
    trace: list[Step] | None = None,
    executor: str | None = None,
    externs: Collection[str] = (),
) -> IRModule:
    """The module after the phases from `start` to `stop`, both included; by default those that are passes.

    After `codegen` and `link` its functions are declarations, and artifacts do what they did (`weft.codegen.compiled`).

    `compile` is this and then code generators; `compile(lower(module, stop="fuse"), start="schedule")` gives the same,
    also when the module went through text and another process in between.
    Raises: PassError W507 for an unknown phase, and what `compile` raises.

    >>> lower(IRModule({}), stop="legalize").functions
    FrozenMap({})
    """
    module = as_module(module_or_function)
    if stop in CODE and start in CODE and is_compiled(module):
        return linked(module) if stop == "link" else module
    plan = with_fields(make_plan(module, target, executor, opt), externs=check_externs(externs))
    generate = GenerateCode.of(plan, member_functions(module))
    with _room(module):
        return _through(_bound(module, params), plan, generate, start=start, stop=stop or PLANNED, trace=trace)


PLANNED = "plan"
"""The last phase that is passes on functions; `lower` goes on to make code when that is asked for."""


def _bound(module: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    if params is not None and not isinstance(params, Mapping):
        hint = 'params={"w": array} gives the parameter `w` of the function its value'
        raise PassError(f"params maps names to arrays, got {described(params)}", code="W543", hint=hint)
    if not params:
        return module
    name = "main" if "main" in module else next(iter(module.functions))
    return transform.BindParams(name, {key: np.asarray(value) for key, value in params.items()})(module)


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
    with transform.PassContext(opt=level):
        return run_phases(
            module, plan.passes, start=start, stop=stop, trace=trace, knobs=plan.knobs, before=before, more=more
        )


_STRAIGHTENED: Mapping[str, tuple[transform.Pass, ...]] = {
    "import": (
        transform.UnrollLoops(),
        transform.DeadCodeElimination(),  # loops too, while their bodies are seen beside them
        transform.LambdaLift(),
        transform.InlinePrivateFunctions(),
    ),
    "lower": (transform.LambdaLift(), transform.ControlFlowToKernels()),
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
        with transform.PassContext(opt=0):
            module = run_phases(module, plan.passes, start=start, stop=names[before - 1], trace=trace, knobs=plan.knobs)
    with plan.passes, transform.PassContext(config={"knobs": plan.knobs}):
        module = pipeline(module)
    return module, names[max(first, names.index(named[-1]) + 1) if named else first]


def _checked_pipeline(pipeline: Any, plan: Plan) -> transform.Pass:
    """The pipeline of a user, or of its text; PassError W511 for what is none, W543 for phases that come after it."""
    if isinstance(pipeline, str):
        with plan.passes:
            pipeline = transform.parse_pipeline(pipeline)
    if not isinstance(pipeline, transform.Pass):
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


_cache: weakref.WeakKeyDictionary[Any, CompiledFunction] = weakref.WeakKeyDictionary()


def call(
    module_or_function: IRModule | BaseFunc,
    *args: Any,
    externs: Collection[str] = (),
    trust: bool = False,
    **options: Any,
) -> Any:
    """Compile on first use (kept as long as the module or function lives), then run; `externs`, `trust` as there."""
    found = _cache.get(module_or_function)
    if found is None:
        found = compile(module_or_function, externs=externs, trust=trust)["main"]
        _cache[module_or_function] = found
    return found(*args, **options)
