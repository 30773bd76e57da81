"""What obeys each field of the built-in kinds of targets, and of configurations: the function where it has its effect.

    (kind, field) -> module:qualified.name

A field that stands in a kind and not here, or the other way round, fails the tests, which change each field and see the
effect or the refusal.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OBEYED"]

_CROSS = "weft.codegen.backends.llvm.machine.cross:cross_machine"
_HOST = "weft.codegen.backends.llvm.machine.host_target:host_target"
_GCC = "weft.target.derived:gcc_flags_of"
_TILING = "weft.transform.autoschedule.gemm.tiling:Capacity"
_PLANNERS = "weft.transform.memory.planners:find_planner"

OBEYED: Mapping[tuple[str, str], str] = {
    ("llvm", "mtriple"): _CROSS,
    ("llvm", "mcpu"): _HOST,
    ("llvm", "mattr"): _HOST,
    ("llvm", "mfpu"): "weft.target.float_units:llvm_features",
    ("llvm", "mfloat_abi"): "weft.target.derived:triple_of",
    ("llvm", "fast_math"): "weft.codegen.backends.llvm.kernel.emitter:KernelEmitter.__init__",
    ("llvm", "strict_math"): "weft.codegen.backends.llvm.values.expressions:ExpressionEmitter.__init__",
    ("llvm", "threads"): "weft.codegen.backends.llvm.kernel.parallel:emit_parallel",
    ("llvm", "planner"): _PLANNERS,
    ("llvm", "vector_bits"): f"{_TILING}.lanes",
    ("llvm", "vector_registers"): f"{_TILING}.max_mr",
    ("llvm", "masks"): f"{_TILING}.masks",
    ("llvm", "gather"): "weft.codegen.backends.llvm.values.memory:MemoryEmitter._lanes_load",
    ("llvm", "l1_cache"): "weft.transform.autoschedule.rules.reductions:_down_columns",
    ("llvm", "l2_cache"): f"{_TILING}.mc",
    ("llvm", "l3_cache"): f"{_TILING}.nc",
    ("llvm", "cores"): f"{_TILING}.chunks",
    ("llvm", "streaming_bytes"): "weft.transform.autoschedule.vectorize_nests:VectorizeNests.run_function",
    ("llvm", "stack_bytes"): "weft.transform.memory.hoist_scratch:HoistScratch.run",
    ("c", "mtriple"): _GCC,
    ("c", "mcpu"): _GCC,
    ("c", "mattr"): "weft.target.builtin:_canonical_c",
    ("c", "mfpu"): _GCC,
    ("c", "mfloat_abi"): _GCC,
    ("c", "std"): "weft.codegen.backends.c.library:_standard",
    ("c", "planner"): _PLANNERS,
    ("config", "executor.kind"): "weft.codegen.plan:_executor",
    ("config", "executor.entry"): "weft.target.schema:typed",
    ("config", "runtime.kind"): "weft.codegen.plan:_check_fields",
    ("config", "runtime.alloc"): "weft.target.schema:typed",
    ("config", "package.format"): "weft.codegen.lowering:_packaged",
    ("config", "package.name"): "weft.codegen.backends.base:Plan.model",
    ("config", "memory.bytes"): "weft.codegen.backends.c.memory:place",
    ("config", "memory.rw"): "weft.codegen.backends.c.memory:Pool.serves",
    ("config", "memory.ro"): "weft.codegen.backends.c.memory:Pool.serves",
}
"""The table."""
