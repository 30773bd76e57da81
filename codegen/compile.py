"""compile: a module through its phases, the code generators of its target's parts, and the linker.

    module -> plan (what is asked for) -> phases (passes) -> code generators -> Executable | ArtifactSet

A program that was compiled before is loaded from the disk cache where nothing asks for more (`program_cache`).

The phases are the same for every executor and every kind of target. What drives the program decides what comes back:
machine code of this machine gives an `Executable`; code for another machine, or source text, gives its artifacts.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from weft.codegen.asked import Asked
from weft.codegen.cache.programs import find, key_of, lowered_of
from weft.errors import PassError, described
from weft.ir.attrs import ARTIFACTS
from weft.ir.graph import Constant, Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.array_digests import digests_kept
from weft.ir.structure.malformed import explained_by
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import PrimFunc
from weft.ir.verify import fault_of
from weft.runtime.executable import Executable, Program
from weft.support.array_memory import forget_pages
from weft.support.collection import rare_collections
from weft.support.stack import frames_in_one_piece

if TYPE_CHECKING:
    from weft.runtime.artifact import ArtifactSet
    from weft.runtime.executable import CompiledFunction
    from weft.transform.autoschedule.knobs import Knobs
    from weft.transform.infra.phases import Step

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
@frames_in_one_piece
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
        from weft.codegen.lowering import compiled_library  # heavy: see below

        models = {name: as_module(value) for name, value in module_or_function.items()}
        return compiled_library(models, target, opt, externs, executor, _checked_workers(workers))
    module = as_module(module_or_function)
    if ARTIFACTS in module.attrs:
        from weft.codegen.lowering import as_compiled

        if (made := as_compiled(module, target, executor, start, trust)) is not None:
            return made
    asked = Asked(module, target, opt, params, executor, externs, trust, _checked_workers(workers))
    made = _compiled(asked, pipeline, start, trace)
    forget_pages(_arrays(asked))  # weights of files were read once
    return made


def _compiled(asked: Asked, pipeline: Any, start: str | None, trace: list[Step] | None) -> Executable | ArtifactSet:
    """The program of a module, from the disk where it is there."""
    altered = pipeline is not None or start is not None or trace is not None or asked.externs != ()
    key = None if altered else key_of(*asked[:2], asked.executor, asked.opt, asked.params, trust=asked.trust)
    kept = None if key is None else find(key)
    if kept is None:
        # The passes and the back ends, which nothing else needs and which take longer to load than most programs.
        from weft.codegen.lowering import compiled_program

        return compiled_program(asked, key, pipeline=pipeline, start=start, trace=trace)
    _log.info("%s for %s: from the disk", ", ".join(asked.module), kept.kind)
    made = Executable(kept)
    made._linkable = _linkable_later(asked, kept)
    return made


def _arrays(asked: Asked) -> Iterator[np.ndarray]:
    """The weights that a module holds and its parameters are bound to."""
    for function in asked.module.functions.values():
        if isinstance(function, Function):
            yield from (node.data for node in nodes_of(function, Constant))
    yield from (array for array in (asked.params or {}).values() if isinstance(array, np.ndarray))


def _linkable_later(asked: Asked, program: Program) -> Callable[[], ArtifactSet]:
    """What makes the program for C to link; it does not hold the module where its lowered form is on the disk."""
    lowered = lowered_of(program)
    asked = asked if lowered is None else asked._replace(module=IRModule({}), params=None)

    def make() -> ArtifactSet:
        from weft.codegen.lowering import linkable_of

        return linkable_of(asked, None if lowered is None else lowered(), program)

    return make


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


def as_module(value: object) -> IRModule:
    """A module as it is, a function as the only one of a module."""
    if isinstance(value, IRModule):
        return value
    if isinstance(value, (Function, PrimFunc)):
        return IRModule({value.name or "main": value})
    hint = "give an IRModule, or a function under @R.function or @T.prim_func"
    if isinstance(value, str):
        hint = "weft.parse(text) reads a module from its text, weft.load(path) a saved executable"
    elif isinstance(value, type):
        hint = "@I.ir_module above the class makes a module of it"
    raise PassError(f"cannot compile {described(value)}", code="W511", hint=hint)


@frames_in_one_piece
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
    trust: bool = False,
) -> IRModule:
    """The module after the phases from `start` to `stop`, both included; by default those that are passes.

    After `codegen` and `link` its functions are declarations, and artifacts do what they did (`weft.codegen.compiled`).

    `compile` is this and then code generators; `compile(lower(module, stop="fuse"), start="schedule")` gives the same,
    also when the module went through text and another process in between. Code that the module carries is loaded where
    more is made beside it, so that `codegen` needs the `trust` that `compile` needs.
    Raises: PassError W507 for an unknown phase, and what `compile` raises.

    >>> lower(IRModule({}), stop="legalize").functions
    FrozenMap({})
    """
    from weft.codegen.lowering import lowered  # heavy: see `compile`

    module = as_module(module_or_function)
    return lowered(module, target, opt, params, start, stop, trace, executor, externs, trust)


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
