"""compile: a module through its pipeline, the code generator and the linker.

    module -> pipeline (passes) -> kernels and graph functions as LLVM modules -> object code -> Executable

Kernels that are structurally equal are generated once. Kernels are optimised; the graph functions, which only
allocate, check and call, go through the quick code generator, so that the time to compile grows linearly with the
length of a model.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

import weft.transform as transform
from weft.codegen.llvm.graph import emit_function, emit_runtime
from weft.codegen.llvm.kernel import emit_kernel, is_explicit
from weft.codegen.llvm.machine import Machine, compile_module
from weft.codegen.llvm.program import Program as Emission
from weft.codegen.llvm.text import ModuleWriter
from weft.codegen.llvm.wrapper import emit_wrapper
from weft.codegen.signature import graph_signature, kernel_data
from weft.codegen.target import HostTarget, host_target
from weft.errors import PassError
from weft.ir.graph import Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structural import structural_equal, structural_hash
from weft.ir.tensor import PrimFunc
from weft.runtime.executable import CompiledFunction, Executable, Program
from weft.transform.check_bounds import CheckBounds
from weft.transform.lower_blocks import lower_blocks
from weft.transform.lower_vector_loops import lower_vector_loops

__all__ = ["call", "compile"]


def compile(
    module_or_function: IRModule | BaseFunc, target: object = None, *, opt: int = 2, params: Mapping[str, Any] | None
    = None, pipeline: Any = None,
) -> Executable:  # fmt: skip
    """Compile a module or a single function to machine code of this machine.

    `target` is None or text such as "llvm -mcpu=x86-64-v3"; `opt` is 0 (quickest compile) to 3 (float sums
    reassociated); `params` are arrays bound to the parameters of `main`; `pipeline` replaces the default passes.
    Raises: TargetError for a target or construct that cannot be compiled, and what the passes raise.

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
    wanted = host_target(target, opt)
    module = _prepared(as_module(module_or_function), wanted, params, pipeline)
    return Executable(generate(module, wanted))


def as_module(value: object) -> IRModule:
    """A module as it is, a function as the only one of a module."""
    if isinstance(value, IRModule):
        return value
    if isinstance(value, (Function, PrimFunc)):
        return IRModule({value.name or "main": value})
    raise PassError(f"cannot compile a {type(value).__name__}", code="W511", hint="pass an IRModule or a function")


def _prepared(module: IRModule, target: HostTarget, params: Mapping[str, Any] | None, pipeline: Any) -> IRModule:
    if params is None and pipeline is None and not any(isinstance(f, Function) for _, f in module.items()):
        return CheckBounds()(module)  # tensor-level functions alone need no graph passes
    if params:
        name = "main" if "main" in module else next(iter(module.functions))
        module = transform.BindParams(name, {key: np.asarray(value) for key, value in params.items()})(module)
    if pipeline is None:
        # Level 0 leaves loops as they were written: the quickest to compile, the easiest to read.
        described = target.described() if target.opt else None
        return transform.default_pipeline(described)(transform.LambdaLift()(module))
    return CheckBounds()(transform.LowerToMemory()(pipeline(module)))


def generate(module: IRModule, target: HostTarget) -> Program:
    """The program of a lowered module: object code, signatures, sites, constants."""
    functions, aliases = _deduplicated(module)
    emission = Emission(functions, target.opt, aliases=aliases, fast_math=target.fast_math)
    kernels, explicit, graphs = ModuleWriter(), ModuleWriter(), ModuleWriter()
    signatures = []
    for name, function in functions.items():
        if isinstance(function, PrimFunc) and name not in aliases:
            lowered = lower_vector_loops(lower_blocks(function))
            writer = explicit if is_explicit(lowered) else kernels
            emit_kernel(writer, emission, name, lowered, noalias=is_noalias(function))
        if isinstance(function, PrimFunc) and not function.private:
            emit_wrapper(graphs, emission, name, function)
            signatures.append(kernel_data(name, function))
        if isinstance(function, Function):
            written = emit_function(graphs, emission, name, function)
            signatures.append(graph_signature(name, function, written))
    emit_runtime(graphs)
    machine = Machine(target.cpu, target.features, target.opt)
    objects, texts = [], []
    for writer in (kernels, explicit, graphs):
        if not writer.has_functions:
            continue
        code, text = compile_module(machine, str(writer), quick=writer is graphs, explicit=writer is explicit)
        objects.append(code)
        texts.append(text)
    return Program(
        functions=signatures, sites=emission.sites, constants=emission.constants, objects=objects,
        target=(machine.triple, machine.cpu, target.needs), sources=texts,
    )  # fmt: skip


def is_noalias(function: PrimFunc) -> bool:
    """Whether the code may assume that a buffer it writes overlaps no other one (callers see to it unless told not to).

    Graph functions pass fresh outputs, or copies; the runtime copies arrays that overlap.
    """
    for key in ("tir.noalias", "tirx.noalias", "noalias"):
        if key in function.attrs:
            return isinstance(function.attrs[key], (bool, int)) and bool(function.attrs[key])
    return True


def _deduplicated(module: IRModule) -> tuple[dict[str, BaseFunc], dict[str, str]]:
    """The functions, and for each kernel that equals an earlier one the name of that one."""
    seen: dict[Any, list[str]] = {}
    aliases: dict[str, str] = {}
    for name, function in module.items():
        if not isinstance(function, PrimFunc):
            continue
        same = seen.setdefault(structural_hash(function), [])
        twin = next((other for other in same if structural_equal(module[other], function)), None)
        if twin is None:
            same.append(name)
        else:
            aliases[name] = twin
    return dict(module.items()), aliases


_cache: weakref.WeakKeyDictionary[Any, CompiledFunction] = weakref.WeakKeyDictionary()


def call(module_or_function: IRModule | BaseFunc, *args: Any, **options: Any) -> Any:
    """Compile on first use (kept as long as the module or function lives), then run."""
    found = _cache.get(module_or_function)
    if found is None:
        found = _cache[module_or_function] = compile(module_or_function)["main"]
    return found(*args, **options)
