"""Machine code of a module: its kernels, and its graph functions as one entry each.

Kernels that are structurally equal are generated once. Kernels are optimised; the graph functions, which only
allocate, check and call, go through the quick code generator, so that the time to compile grows linearly with the
length of a model. Functions of several parts of this machine are generated for the processor of their part.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from weft.codegen.backends.llvm.asm.equal_modules import EqualModules
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter, byte_text
from weft.codegen.backends.llvm.asm.program import Program as Emission
from weft.codegen.backends.llvm.asm.stack import emit_stack_guard
from weft.codegen.backends.llvm.host.fastcall import emit_fast_calls
from weft.codegen.backends.llvm.host.graph import emit_function
from weft.codegen.backends.llvm.host.heap import declare_heap, emit_heap
from weft.codegen.backends.llvm.kernel.explicit import is_explicit
from weft.codegen.backends.llvm.kernel.kernel import emit_kernel
from weft.codegen.backends.llvm.kernel.kernel_entry import emit_wrapper
from weft.codegen.backends.llvm.kernel.parallel import emit_chunk_runtime
from weft.codegen.backends.llvm.machine.host_target import HostTarget
from weft.codegen.backends.llvm.machine.machine import Compiler, Machine, compile_module
from weft.codegen.backends.llvm.sorting.library import emit_sorts
from weft.codegen.host.kernels import is_noalias
from weft.codegen.host.program import HostProgram
from weft.codegen.host.read import read_program
from weft.codegen.host.signature import graph_signature, kernel_abi
from weft.ir.graph import Function
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.structural import structural_equal, structural_hash
from weft.ir.tensor import Buffer, PrimFunc, PrimVar
from weft.runtime.abi.frame import BINDING
from weft.runtime.abi.types import Signature
from weft.runtime.device.guards import is_guarded
from weft.runtime.executable import Program
from weft.runtime.programs.fastcall import fast_arguments
from weft.transform.autoschedule.explain import explain
from weft.transform.infra.decisions import without_decisions
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

__all__ = ["generate"]


def generate(
    module: IRModule,
    machines: Mapping[str, HostTarget],
    owner: Mapping[str, str],
    driver: str,
    *,
    kernels_only: bool = False,
    c_functions: frozenset[str] = frozenset(),
    workers: int | None = None,
) -> Program:
    """The program of a lowered module: object code, signatures, sites, constants.

    `owner` names the part of each function, `machines` the processor of each part, `driver` the part whose processor
    runs what belongs to none. With `kernels_only`, graph functions are left out and every kernel can be called.
    `c_functions` are C functions that kernels may call beside those that are declared, `workers` how many modules LLVM
    compiles at once (`Compiler`).
    """
    functions, aliases = _deduplicated(module, owner)
    emission = Emission(functions, machines[driver].opt, aliases=aliases, c_functions=c_functions, guarded=is_guarded())
    processors = {label: Machine(target.cpu, target.features, target.opt) for label, target in machines.items()}
    with Compiler(workers) as compiler:
        graphs = ModuleWriter()
        loops = EqualModules()
        kernels = _kernels(functions, aliases, machines, owner, driver, emission, processors, compiler, graphs, loops)
        program = None if kernels_only else read_program(module)
        signatures = _graphs(graphs, functions, emission, program)
        shown = [signature for signature in signatures if not signature.private]
        python = [item.name for item in shown if fast_arguments(item) is not None]
        machine = processors[driver]
        text = loops.text_of(graphs, None) if graphs.has_functions else None
        if text is not None:
            kernels[driver].append(compiler.add(machine, text, quick=True))
    cpu, features = machines[driver].cpu, machines[driver].features
    shared = _runtime(cpu, features, is_guarded())
    made = [shared, *(job.result() for label in machines for job in kernels[label])]
    objects, texts = [code for code, _ in made], [text for _, text in made]
    objects += [_fast_calls(cpu, features)] if python else []
    return Program(
        functions=signatures,
        sites=emission.sites,
        constants=emission.constants,
        objects=objects,
        target=(machine.triple, machine.cpu, _needs(machines)),
        sources=texts,
        python=python,
        threads=emission.parallel,
        decisions=explain(module),
    )


@functools.lru_cache(maxsize=8)
def _runtime(cpu: str, features: str, guards: bool) -> tuple[bytes, str]:
    """Code of all programs, which follows from the processor alone: memory of graph functions, chunks of loops."""
    module = ModuleWriter()
    emit_heap(module, guarded=guards)
    emit_chunk_runtime(module)
    emit_stack_guard(module)
    module.add_global(f"@weft.binding = constant [{len(BINDING)} x i8] {byte_text(BINDING)}")
    return compile_module(Machine(cpu, features), str(module), quick=True)


@functools.lru_cache(maxsize=8)
def _fast_calls(cpu: str, features: str) -> bytes:
    """Code of calls from Python, which follows from the processor alone."""
    module = ModuleWriter()
    emit_fast_calls(module)
    return compile_module(Machine(cpu, features), str(module), explicit=True)[0]


@functools.lru_cache(maxsize=16)
def _sorts(cpu: str, features: str, opt: int, keys: KeyVector) -> tuple[bytes, str]:
    """Code that sorts keys of a width, which follows from the processor alone."""
    module = ModuleWriter()
    emit_sorts(module, keys)
    # Without optimization, LLVM has no code for copies of some masks.
    return compile_module(Machine(cpu, features, max(opt, 1)), str(module), explicit=True)


def _kernels(
    functions: Mapping[str, BaseFunc],
    aliases: Mapping[str, str],
    machines: Mapping[str, HostTarget],
    owner: Mapping[str, str],
    driver: str,
    emission: Emission,
    processors: Mapping[str, Machine],
    compiler: Compiler,
    graphs: ModuleWriter,
    loops: EqualModules,
) -> dict[str, list[Future[Any]]]:
    """Code of the kernels of each part, under way; what only hands their loops to threads is added to `graphs`."""
    jobs: dict[str, list[Future[Any]]] = {label: [] for label in machines}
    models = {label: target.described().machine for label, target in machines.items()}
    for name, function in functions.items():
        if not isinstance(function, PrimFunc) or name in aliases:
            continue
        label = owner[name] if owner[name] in machines else driver
        emission.fast_math, emission.strict_math = machines[label].fast_math, machines[label].strict_math
        emission.threads = machines[label].threads
        emission.features, emission.gathers = machines[label].names, models[label].gather
        emission.sorts = models[label].sort_bits
        lowered = lower_vector_loops(lower_blocks(function))

        def compile_apart(part: ModuleWriter, explicit: bool, label: str = label) -> None:
            text = loops.text_of(part, (label, explicit))
            if text is not None:
                jobs[label].append(compiler.add(processors[label], text, explicit=explicit))

        # A module for each, so that one that was compiled before is found again.
        writer = ModuleWriter(graphs, compile_apart)
        emit_kernel(writer, emission, name, lowered, noalias=is_noalias(function))
        if writer.has_functions:
            compile_apart(writer, is_explicit(lowered))
    for keys in sorted(emission.sorted_keys):
        machine = processors[driver]
        jobs[driver].append(compiler.call(_sorts, machine.cpu, machine.features, machine.opt, keys))
    return jobs


def _graphs(
    graphs: ModuleWriter, functions: Mapping[str, BaseFunc], emission: Emission, program: HostProgram | None
) -> list[Signature]:
    """Emit the graph functions, if any, and the entries of kernels that are called from outside; their signatures."""
    signatures = []
    for name, function in functions.items():
        if isinstance(function, PrimFunc) and (program is None or not function.private):
            emit_wrapper(graphs, emission, name, function)
            signatures.append(kernel_abi(name, function, functions))
        if isinstance(function, Function) and program is not None:
            written = emit_function(graphs, emission, program, program.functions[name])
            signatures.append(graph_signature(name, function, written))
    declare_heap(graphs)
    return signatures


def _needs(machines: Mapping[str, HostTarget]) -> str:
    """The features that all parts together need, as `+a,+b`."""
    return ",".join(dict.fromkeys(item for machine in machines.values() for item in machine.needs.split(",") if item))


def _deduplicated(module: IRModule, owner: Mapping[str, str]) -> tuple[dict[str, BaseFunc], dict[str, str]]:
    """The functions, and for each kernel that equals an earlier one of its part the name of that one."""
    kernels = {name: function for name, function in module.items() if isinstance(function, PrimFunc)}
    kinds = {name: (owner[name], *map(_size_of_param, function.params)) for name, function in kernels.items()}
    counts = Counter(kinds.values())
    seen: dict[Any, list[str]] = {}
    aliases: dict[str, str] = {}
    for name, function in kernels.items():
        if counts[kinds[name]] == 1:  # most: only what may be equal to another kernel is hashed
            continue
        plain = without_decisions(function)
        same = seen.setdefault((kinds[name], structural_hash(plain)), [])
        twin = next((other for other in same if structural_equal(without_decisions(kernels[other]), plain)), None)
        if twin is None:
            same.append(name)
        else:
            aliases[name] = twin
    return dict(module.items()), aliases


def _size_of_param(param: PrimVar | Buffer) -> tuple[object, ...]:
    """What equal kernels have in common of a parameter: its dtype, and the extents of a buffer that are known."""
    extents = param.shape if isinstance(param, Buffer) else None
    known = None if extents is None else tuple([extent if isinstance(extent, int) else None for extent in extents])
    return param.dtype, known
