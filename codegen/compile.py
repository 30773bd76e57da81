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
from weft.codegen.backends.base import Job, back_end_of
from weft.codegen.backends.generators import ARTIFACTS, provenance
from weft.codegen.build import build, job_of
from weft.codegen.cache.programs import find, keep, key_of
from weft.codegen.compiled import (
    compiled_module,
    declared_module,
    holds_program,
    is_compiled,
    linked,
    load_module,
)
from weft.codegen.foreign import (
    check_externs,
    member_functions,
    refuse_absent_members,
    refuse_undeclared,
    refuse_untrusted,
)
from weft.codegen.host.entry import only_entry
from weft.codegen.host.single_kernel import with_entry
from weft.codegen.plan import Plan, make_plan
from weft.errors import PassError, RecursionDepthError, TargetError, described
from weft.ir.graph import Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.malformed import explained_by
from weft.ir.structure.recursion import deep_recursion
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimExpr, PrimFunc
from weft.ir.verify import fault_of
from weft.ir.verify.spread import refuse_spread
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.executable import CompiledFunction, Executable
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.base import nested_too_deeply
from weft.transform.infra.decisions import without_decisions
from weft.transform.infra.phases import Step, phases, phases_of, run_phases

__all__ = ["as_module", "call", "compile", "lower"]

_log = logging.getLogger("weft.compile")


@overload
def compile(
    module_or_function: IRModule | BaseFunc, target: None = None, *, opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None, pipeline: Any = None, externs: Collection[str] = (), trust: bool = False,
    executor: str | None = None, start: str | None = None, trace: list[Step] | None = None,
) -> Executable: ...  # fmt: skip
@overload
def compile(
    module_or_function: Mapping[str, IRModule | BaseFunc], target: object = None, *, opt: int | Knobs = 2,
    params: None = None, pipeline: None = None, externs: Collection[str] = (), trust: bool = False,
    executor: str | None = None, start: None = None, trace: None = None,
) -> ArtifactSet: ...  # fmt: skip
@overload
def compile(
    module_or_function: IRModule | BaseFunc, target: object, *, opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None, pipeline: Any = None, externs: Collection[str] = (), trust: bool = False,
    executor: str | None = None, start: str | None = None, trace: list[Step] | None = None,
) -> Any: ...  # fmt: skip
@explained_by(fault_of)
def compile(
    module_or_function: IRModule | BaseFunc | Mapping[str, IRModule | BaseFunc], target: object = None, *,
    opt: int | Knobs = 2, params: Mapping[str, Any] | None = None, pipeline: Any = None, externs: Collection[str] = (),
    trust: bool = False, executor: str | None = None, start: str | None = None, trace: list[Step] | None = None,
) -> Any:  # fmt: skip
    """Compile a module or a single function: an `Executable` where this machine can run it, else its `ArtifactSet`.

    Several models by name become one library for C to link: {"digits": Digits, "words": Words} has `digits_run` and
    `words_run`. The package of a configuration says whether files are asked for: a tree, or a shared object.

    `target` is a target in any form; by default the one that the module carries, else this machine. `opt` is 0
    (quickest compile) to 3 (float sums reassociated), or the `weft.transform.Knobs` of a schedule; `params` are arrays
    bound to the parameters of `main`; `pipeline` (or its text) replaces the optional passes; `executor` is "native",
    "vm", "graph" or "aot"; `start` names the first phase to run, for a module that went through those before; a list as
    `trace` gets one `Step` for each pass. What drives a target of several parts (`host`, else the first) decides where
    it runs.

    A program calls C functions that are declared: mathematics, those of plug-ins (`weft.declare_extern`), and those
    named by `externs`. Machine code that the module carries is data, unless `trust` says to load it.
    Raises: TargetError for a target or construct that cannot be compiled (W760 and W761 for foreign code that nobody
    declared), ArtifactError W830 for code that nobody trusts, and what the passes raise.

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
        return _library(module_or_function, target, opt, externs, executor)
    module = as_module(module_or_function)
    if start in CODE and is_compiled(module):
        return load_module(module, trust=trust) if holds_program(module) else module.attrs[ARTIFACTS]
    plan = with_fields(make_plan(module, target, executor, opt), externs=check_externs(externs))
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
    _refuse_scalable(module)
    refuse_spread(module.functions.values())
    refuse_absent_members(module)
    began = time.perf_counter()
    with _room():
        lowered = _lowered(module, plan, pipeline, start, trace)
        refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=not plan.runs_here or plan.executor == "aot")
        made = _built(module, lowered, plan)
    if key is not None and isinstance(made, Executable):
        keep(key, made._program)
    _log.info("%s for %s: %.2f s", ", ".join(module), plan.target, time.perf_counter() - began)
    if isinstance(made, Executable):
        made = _exporting(made, module, plan, pipeline, start)
    return _packaged(made, plan)


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
    models: Mapping[str, Any], target: object, opt: int | Knobs, externs: Collection[str], executor: str | None
) -> ArtifactSet:  # fmt: skip
    """Several models in one library for C programs to link, each behind an entry of its name."""
    jobs: list[Job] = []
    for name, value in models.items():
        module = as_module(value)
        plan = make_plan(module, target, executor, opt)
        if plan.runs_here:
            plan = with_fields(plan, executor="aot")
        plan = with_fields(plan, externs=check_externs(externs), name=name)
        refuse_untrusted(module)
        _refuse_scalable(module)
        refuse_spread(module.functions.values())
        with _room():
            lowered = _lowered(module, plan, None, None, None)
            refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=True)
            if not any(isinstance(function, Function) for function in lowered.functions.values()):
                lowered, _ = with_entry(lowered)
            jobs.append(job_of(lowered, plan, member_functions(module)))
    if not jobs:
        raise PassError("a library of no models", code="W511", hint='{"name": module, ...}')
    with _room():
        made = back_end_of(jobs[0].plan.parts[jobs[0].plan.driver]).library(jobs)
    found = _packaged(made, with_fields(jobs[0].plan, name=""))
    assert isinstance(found, ArtifactSet)
    return found


def _exporting(made: Executable, module: IRModule, plan: Plan, pipeline: Any, start: str | None) -> Executable:
    """The executable, which can make the program for C to link of its module when that is asked for."""

    def linkable() -> ArtifactSet:
        straight = with_fields(plan, executor="aot")
        with _room():
            lowered = _lowered(module, straight, pipeline, start, None)
            refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=True)
            if only_entry(lowered) is None:
                lowered, _ = with_entry(lowered)
            made = build(lowered, straight, member_functions(module))
        assert isinstance(made, Executable)
        return ArtifactSet(item for item in made._program.artifacts.values() if item.loader == "cc")

    made._linkable = linkable
    return made


@contextmanager
def _room() -> Iterator[None]:
    """Room for programs that nest deeply; PassError W524 for those that nest deeper than there is."""
    try:
        with deep_recursion():
            yield
    except RecursionDepthError:
        raise
    except RecursionError:
        raise nested_too_deeply("to be compiled") from None


def as_module(value: object) -> IRModule:
    """A module as it is, a function as the only one of a module."""
    if isinstance(value, IRModule):
        return value
    if isinstance(value, (Function, PrimFunc)):
        return IRModule({value.name or "main": value})
    hint = "give an IRModule, or a function under @R.function or @T.prim_func"
    raise PassError(f"cannot compile {described(value)}", code="W511", hint=hint)


def _refuse_scalable(module: IRModule) -> None:
    """W740 at a vector whose length only the machine knows: no code generator has an instruction for it."""
    for function in module.functions.values():
        for part in walk(function) if isinstance(function, PrimFunc) else ():
            if isinstance(part, (PrimExpr, Buffer)) and dtypes.is_scalable(part.dtype):
                raise TargetError(
                    f"scalable vectors (T.vscale) cannot be compiled: this is a {part.dtype}",
                    code="W740", span=part.span, hint="write a constant length",
                )  # fmt: skip


def lower(
    module_or_function: IRModule | BaseFunc, target: object = None, *, opt: int | Knobs = 2,
    params: Mapping[str, Any] | None = None, start: str | None = None, stop: str | None = None,
    trace: list[Step] | None = None, executor: str | None = None, externs: Collection[str] = (),
) -> IRModule:  # fmt: skip
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
    names = phases()
    last = names[names.index(CODE[0]) - 1] if stop in CODE else stop
    with transform.PassContext(opt=plan.opt):
        bound = _bound(module, params)
        if start not in CODE:
            bound = run_phases(bound, plan.passes, start=start, stop=last, trace=trace, knobs=plan.knobs)
    return _generated(module, bound, plan, stop == "link") if stop in CODE else bound


CODE = ("codegen", "link")
"""The phases that make and link code; `lower` does them when they are named."""


def _built(module: IRModule, lowered: IRModule, plan: Plan) -> Any:
    """What the back end makes of a lowered module, with what it was made from and by, from whatever phase on."""
    made = build(lowered, plan, member_functions(module))
    if isinstance(made, Executable):
        asked = {"target": plan.target.to_str(), "opt": plan.opt, "executor": plan.executor}
        made._program.provenance |= {**provenance(_plain(lowered)), **asked}
    return made


def _plain(module: IRModule) -> IRModule:
    """The module without what was decided about its kernels, which names variables."""
    kernels = {n: without_decisions(f) if isinstance(f, PrimFunc) else f for n, f in module.items()}
    return module.with_functions(kernels)


def _generated(module: IRModule, lowered: IRModule, plan: Plan, link: bool) -> IRModule:
    """The compiled module of a lowered one."""
    with _room():
        refuse_undeclared(lowered, plan.parts, plan.externs, c_calls=not plan.runs_here or plan.executor == "aot")
        made = _built(module, lowered, plan)
    if not isinstance(made, Executable):
        return declared_module(module, made)
    return compiled_module(made._program, link=link)


def _bound(module: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    if params is not None and not isinstance(params, Mapping):
        hint = 'params={"w": array} gives the parameter `w` of the function its value'
        raise PassError(f"params maps names to arrays, got {described(params)}", code="W543", hint=hint)
    if not params:
        return module
    name = "main" if "main" in module else next(iter(module.functions))
    return transform.BindParams(name, {key: np.asarray(value) for key, value in params.items()})(module)


def _lowered(
    module: IRModule, plan: Plan, pipeline: Any, start: str | None, trace: list[Step] | None
) -> IRModule:  # fmt: skip
    """The module after the phases of a plan, ready for code generators."""
    level = plan.opt
    if plan.straight_line and start is None:
        for item in (transform.UnrollLoops(), transform.LambdaLift(), transform.InlinePrivateFunctions()):
            module = item(module)
    if pipeline is not None:
        module, start, level = *_piped(module, plan, pipeline, start, trace), 0
        if start is None:
            return module
    with transform.PassContext(opt=level):
        return run_phases(module, plan.passes, start=start, trace=trace, knobs=plan.knobs)


def _piped(
    module: IRModule, plan: Plan, pipeline: Any, start: str | None, trace: list[Step] | None
) -> tuple[IRModule, str | None]:  # fmt: skip
    """The module after a user's pipeline, and the phase to go on with (None: it ran the last one).

    A phase that the pipeline names is not run again: what is mandatory before its first one runs before it.
    """
    if isinstance(pipeline, str):
        with plan.passes:
            pipeline = transform.parse_pipeline(pipeline)
    names, named = phases(), phases_of(pipeline)
    first = 0 if start is None else names.index(start)
    if named and (before := names.index(named[0])) > first:
        with transform.PassContext(opt=0):
            module = run_phases(
                module, plan.passes, start=start, stop=names[before - 1], trace=trace, knobs=plan.knobs
            )  # fmt: skip
    with plan.passes, transform.PassContext(config={"knobs": plan.knobs}):
        module = pipeline(module)
    following = max(first, names.index(named[-1]) + 1) if named else first
    return module, names[following] if following < len(names) else None


_cache: weakref.WeakKeyDictionary[Any, CompiledFunction] = weakref.WeakKeyDictionary()


def call(
    module_or_function: IRModule | BaseFunc, *args: Any, externs: Collection[str] = (), trust: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """Compile on first use (kept as long as the module or function lives), then run; `externs`, `trust` as there."""
    found = _cache.get(module_or_function)
    if found is None:
        found = compile(module_or_function, externs=externs, trust=trust)["main"]
        _cache[module_or_function] = found
    return found(*args, **options)
