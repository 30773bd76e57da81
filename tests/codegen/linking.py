"""What compiled code needs from outside, read from its objects: run as a program, in a process of its own.

    python tests/codegen/linking.py quick | whole

quick   one example of every operator, every cast and every intrinsic as scalars and as vectors, for each level of
        x86-64, for AArch64, and with features switched off: all kernels of a level in one module
whole   every example through the phases of the level, optimised as `weft.compile` does

Prints one line for each symbol that is in no table of `weft.runtime.device.object_symbols`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.codegen.executors.test_every_operator import COMPUTED, module_of

import weft
from weft import dtypes
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.kernel.kernel import emit_kernel
from weft.codegen.backends.llvm.machine.cross import CrossMachine, emit_object
from weft.codegen.backends.llvm.math.intrinsics import is_math
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.module import IRModule
from weft.ir.tensor import BINARY_KINDS, Buffer, BufferLoad, BufferStore, PrimExpr, PrimFunc, Ramp
from weft.runtime.device.object_symbols import HOST_SYMBOLS, PROCESS_SYMBOLS, defined, needed
from weft.transform import LegalizeOps, LowerComplex, Pipeline
from weft.transform.infra.phases import default_pipeline
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

NUMBERS = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)
LANES = (1, 16)
MODEL = """
from weft.script import relax as R

@R.function
def main(x: R.Tensor((4, 8), "float64"), w: R.Tensor((8, 8), "float16")) -> R.Tensor((4, 8), "bfloat16"):
    with R.dataflow():
        a = R.matmul(R.astype(x, "float16"), w)
        b = R.nn.softmax(R.astype(R.power(R.astype(a, "float32"), R.astype(a, "float32")), "float64"))
        y = R.astype(b, "bfloat16")
        R.output(y)
    return y
"""
X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"


@dataclass(frozen=True)
class Level:
    """A processor, and the vectors that loops over arrays are written with."""

    triple: str
    cpu: str
    flags: str = ""
    bits: int = 128


LEVELS = (
    Level(X86, "x86-64"),
    Level(X86, "x86-64-v2"),
    Level(X86, "x86-64-v3", bits=256),
    Level(X86, "x86-64-v4", bits=512),
    Level(X86, "x86-64-v4", "-avx512f", 256),
    Level(X86, "x86-64-v3", "-f16c", 256),
    Level(ARM, "generic"),
)


def single(expr: PrimExpr, inputs: list[Buffer], index: PrimExpr) -> PrimFunc:
    """A kernel of one store."""
    out = Buffer("out", (64,), dtypes.element(expr.dtype))
    return PrimFunc((*inputs, out), BufferStore(out, expr, (index,)))


def values() -> Iterator[tuple[str, PrimFunc]]:
    """Every cast, every operation of two operands and every intrinsic on every dtype, of one lane and of many."""
    for lanes, dtype in itertools.product(LANES, NUMBERS):
        zero = const(0, "int64")
        index = zero if lanes == 1 else Ramp(zero, const(1, "int64"), lanes)
        inputs = [Buffer(f"x{k}", (64,), dtype) for k in range(3)]
        loads = [BufferLoad(buffer, (index,)) for buffer in inputs]

        def kernel(expr: PrimExpr, count: int, inputs: list[Buffer] = inputs, index: PrimExpr = index) -> PrimFunc:
            return single(expr, inputs[:count], index)

        for target in NUMBERS:
            if target != dtype:
                made = cast(dtypes.with_lanes(target, lanes), loads[0])
                yield f"{dtype}_to_{target}_{lanes}", kernel(made, 1)
        for kind in BINARY_KINDS:
            try:
                yield f"{kind}_{dtype}_{lanes}", kernel(binary(kind, loads[0], loads[1]), 2)
            except weft.DTypeError:
                continue
        for name, entry in INTRINSICS.items():
            if not is_math(name) or entry.rule not in ("float", "same", "bool", "integer"):
                continue
            try:
                yield f"{name}_{dtype}_{lanes}", kernel(intrinsic(name, *loads[: entry.arity]), entry.arity)
            except weft.DTypeError:
                continue


def kernels_of(examples: slice, change: Callable[[IRModule], IRModule]) -> dict[str, PrimFunc]:
    """The kernels of every operator, of some of its examples, after a change."""
    found: dict[str, PrimFunc] = {}
    for definition in COMPUTED:
        for name, function in change(module_of(definition, examples)).items():
            if isinstance(function, PrimFunc):
                found[f"{definition.name}.{name}"] = function
    return found


def object_of(level: Level, kernels: Mapping[str, PrimFunc], opt: int) -> bytes:
    """The object code of kernels, in one module."""
    machine = CrossMachine(level.triple, level.cpu, level.flags, level=opt)
    program = Program(kernels, opt, serial=True, features=machine.names)
    writer = ModuleWriter()
    for name, function in kernels.items():
        emit_kernel(writer, program, name, lower_vector_loops(lower_blocks(function)), noalias=True)
    return emit_object(machine, str(writer))


def unlinked(level: Level, kernels: Mapping[str, PrimFunc], opt: int) -> Iterator[str]:
    """What nothing gives the kernels of a level."""
    for name in sorted(needed(object_of(level, kernels, opt)) - HOST_SYMBOLS):
        yield f"{level}: {name}"


def in_process(module: IRModule, executor: str) -> Iterator[str]:
    """What nothing gives the code of a module in this process; its objects give each other what they can."""
    executable = weft.compile(module, executor=executor)
    objects = [item.data for item in executable.artifacts.values() if item.kind == "object"]
    given = HOST_SYMBOLS.union(PROCESS_SYMBOLS, *map(defined, objects))
    for name in sorted(frozenset().union(*map(needed, objects)) - given):
        yield f"{executor}: {name}"


def quick() -> Iterator[str]:
    """One example of each operator as plain loops, everything else as it is written."""
    vectors, loops = dict(values()), kernels_of(slice(1), Pipeline([LegalizeOps(), LowerComplex()]))
    for level in LEVELS:
        yield from unlinked(level, vectors | loops, 0)
    casts = {name: kernel for name, kernel in vectors.items() if "float16" in name and "_to_" in name}
    for level in LEVELS:
        yield from unlinked(level, casts, 2)
    for executor in ("native", "vm", "graph", "aot"):
        yield from in_process(weft.parse(MODEL), executor)


def whole() -> Iterator[str]:
    """Every example, as `weft.compile` compiles it."""
    vectors = dict(values())
    for level in LEVELS:
        yield from unlinked(level, vectors, 2)
        cpu = level.cpu if level.triple is X86 else "generic-aarch64"
        described = cpu if not level.flags else "x86-64-v3"
        yield from unlinked(level, kernels_of(slice(None), default_pipeline(f"llvm -mcpu={described}")), 2)


if __name__ == "__main__":
    print("\n".join({"quick": quick, "whole": whole}[sys.argv[1]]()))
