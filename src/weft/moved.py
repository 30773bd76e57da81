"""Modules under a second name: one of version 0.1 (`from weft.ir import dtype`), or the short one that
`weft` gives them (`import weft.te`, beside `from weft import te`).

A finder at the head of `sys.meta_path` gives the module that stands elsewhere now: one object under both names
(behind the finder by path, modules of a package that moved as a whole would be loaded twice). `MOVED` has a row for
each pair of packages; `old>new` renames.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "MovedModules", "install", "new_name"]

MOVED: tuple[tuple[str, str, str], ...] = (
    (
        "weft.transform.autoschedule.rules",
        "weft.transform.autoschedule.attention",
        "attention>build",
    ),
    ("weft.transform.rules", "weft.transform.autoschedule.attention", "attention>build"),
    (
        "weft.transform",
        "weft.transform.infra",
        "base checks context instruments options phases pipeline registry rewriting sampling>comparison retype>reinfer",
    ),
    (
        "weft.transform",
        "weft.transform.analysis",
        "accesses index_facts>index_analyzer nests>access_pattern lifetimes purity keys>value_numbering "
        "symbols>free_symbols",
    ),
    ("weft.transform.analysis", "weft.transform.analysis.indices", "facts exactness"),
    (
        "weft.transform.analysis",
        "weft.transform.analysis.loops",
        "affine dependence inverted_indices iteration_space loop_carried points touched_ranges",
    ),
    ("weft.transform.analysis", "weft.ir.kernel", "views"),
    (
        "weft.ir.interpret",
        "weft.ir.interpret.closures",
        "compiled expressions indices intrinsics statements",
    ),
    (
        "weft.transform.schedule",
        "weft.transform.analysis.loops",
        "affine dependence points spans>touched_ranges iterations>loop_carried inverse>inverted_indices",
    ),
    (
        "weft.transform",
        "weft.transform.graph",
        "bind_params bind_symbolic_vars canonicalize common_subexpressions convert_to_dataflow "
        "to_non_dataflow dead_code fold_constant inline_functions lambda_lift legalize name_unknown_sizes "
        "normalize remove_unused_parameters",
    ),
    (
        "weft.transform",
        "weft.transform.fusion",
        "annotate_pattern combine_parallel_matmul fuse_ops fuse_ops_by_pattern fuse_tir inline_blocks",
    ),
    (
        "weft.transform",
        "weft.transform.kernel",
        "check_bounds lower_blocks lower_vector_loops pack_constants scheduled wide_indices>widen_indices",
    ),
    (
        "weft.transform",
        "weft.transform.memory",
        "check_memory_plan hoist_scratch lower_to_entry lower_to_memory memory_places>storage_map pack_memory "
        "plan_memory share_memory",
    ),
    ("weft.transform.memory", "weft.transform.memory.in_place", "dataflow_use_inplace_calls update_in_place"),
    (
        "weft.transform",
        "weft.transform.target",
        "assign assign_by_cost partition_calls place_copies target_hooks>hooks target_parts>parts",
    ),
    (
        "weft.transform",
        "weft.transform.autoschedule",
        "tile_contractions vectorize_nests parallelize_outer_loops rules contractions>gemm",
    ),
    (
        "weft.transform.rules",
        "weft.transform.autoschedule.rules",
        "access>strides axes chains>block_fusion extremes>argreduce gathers>gather loops "
        "maps>elementwise partial>split_reduction reductions rows>row_fusion transposes",
    ),
    ("weft.transform.rules", "weft.transform.autoschedule", "streams>nontemporal"),
    ("weft.transform.autoschedule.rules", "weft.transform.autoschedule", "nontemporal"),
    ("weft.transform.autoschedule.rules", "weft.transform.autoschedule.rules.gather", "assertions"),
    (
        "weft.transform.contractions",
        "weft.transform.autoschedule.gemm",
        "direct epilogue joined_rows>collapse_rows packed planning>tiling recognition>match tiles",
    ),
    ("weft.transform.contractions", "weft.transform.autoschedule.gemm.convolutions", "windows>implicit_gemm"),
    (
        "weft.transform.autoschedule.gemm",
        "weft.transform.autoschedule.gemm.convolutions",
        "implicit_gemm",
    ),
    (
        "weft.transform.schedule",
        "weft.transform.schedule.primitives",
        "declared>annotations blocks caching epilogues inlining layouts loops marks>loop_kinds padding "
        "placing>compute_at queries reductions sampling staging>buffering",
    ),
    ("weft.transform.schedule", "weft.transform.schedule", "folds>reducer"),
    ("weft.ir.target", "weft.target", "builtin config cpus>processors kinds schema syntax triple value"),
    ("weft.ir", "weft", "target dtype>dtypes"),
    ("weft", "weft.support", "late>providers aligned>array_memory dlpack excepthook guards isolation logs"),
    ("weft", "weft.support", "plugins providers"),
    ("weft.support", "weft.ir.kernel", "layered_map"),
    ("weft.script", "weft.support", "excepthook"),
    ("weft.script.source", "weft.support", "excepthook"),
    ("weft.command", "weft.command.inputs", "arrays entry_points files targets"),
    ("weft", "weft.ir", "te"),
    ("weft.te", "weft.ir.te", "emit_te functions reductions scalars sizes tensors"),
    ("weft.ir", "weft.ir.structure", "visit structural fingerprint portable recursion merge"),
    ("weft.ir", "weft.ir.kernel", "prim prim_dim intrinsics externs simplify regions extents index_map"),
    ("weft.ir", "weft.ir.deduction", "relations>subtyping subtyping infer device_mesh"),
    ("weft.ir", "weft.ir.dim", "upper_bounds"),
    ("weft.ir", "weft.ir.te", "formula>emit_te emit_te"),
    ("weft.ir", "weft.ir.op", "sugar"),
    ("weft.ir.dim", "weft.ir.dim", "points>samples notation>formatting"),
    (
        "weft.ir.op",
        "weft.ir.op.nn",
        "nn_attention>attention nn_conv>conv nn_conv_phases>conv_phases nn_loss>loss nn_norm>norm "
        "nn_pool>pool nn_window>window",
    ),
    ("weft.ir.op", "weft.ir.op.vision", "detection image suppression>nms"),
    ("weft.ir.op", "weft.ir.op", "gradient>grad loops>kernel_builder"),
    ("weft.ir.op", "weft.ir.op.linalg", "linear_algebra>products"),
    ("weft.ir.op", "weft.ir.op.elementwise", "binary unary datatype quantize"),
    ("weft.ir.op", "weft.ir.op.indexing", "index selection scatter search sorting row_sort>merge_sort merge_sort"),
    (
        "weft.ir.op.indexing",
        "weft.ir.op.indexing.vectors",
        "vector_sort>sort vector_values>values vector_leading>leading",
    ),
    ("weft.ir.op", "weft.ir.op.reductions", "reduction statistical"),
    ("weft.ir.op", "weft.ir.op.program", "call memory inspection base>shape_ops shape_ops distributed"),
    ("weft.runtime", "weft.runtime.abi", "frame signature symbols values failures"),
    ("weft.runtime", "weft.runtime.programs", "bytecode vm entry c_kernels fastcall"),
    ("weft.runtime", "weft.runtime.device", "linker threads"),
    ("weft.runtime", "weft.runtime", "sealed>safe_archive program>program_artifacts"),
    ("weft.codegen.cache", "weft.runtime.device", "code>code_cache"),
    ("weft.script", "weft.script.forms", "syntax kinds>holes defaults unread>unsupported constants"),
    ("weft.script", "weft.script.reader", "macros scope read_device>device"),
    ("weft.script", "weft.script.reader.expression", "read_expression>values read_call>call read_static>static"),
    ("weft.script", "weft.script.reader.module", "read_module>unit read_metadata>metadata"),
    (
        "weft.script",
        "weft.script.reader.graph",
        "read_value>bindings read_assign>assign read_region>branches read_graph>function",
    ),
    ("weft.script", "weft.script.reader.graph.expressions", "read_index>index read_formula>emit_te"),
    (
        "weft.script.reader.graph",
        "weft.script.reader.graph.expressions",
        "call elements emit_te forms index operators",
    ),
    (
        "weft.script",
        "weft.script.reader.tensor",
        "read_scalar>scalar read_intrinsic>intrinsic read_buffer>buffer read_block>block "
        "read_declaration>declaration read_thread>thread read_store>store read_binding>binding "
        "read_tensor>function",
    ),
    ("weft.script", "weft.script.reader.tvm", "read_early>tvm_legacy read_recent>tvm_next"),
    (
        "weft.script",
        "weft.script.printer",
        "print_base>state print_graph>graph print_scalar>scalars print_tensor>statements show locate>access_path",
    ),
    ("weft.script", "weft.script.printer.tvm", "print_peer>module print_peer_tensor>statements print_dim>dim"),
    (
        "weft.script",
        "weft.script.source",
        "live_source>source_lookup blobs outside>namespace_guard diagnostics underline>annotate python_member units",
    ),
)
"""Old package, new package, modules."""


@cache
def _names() -> dict[str, str]:
    """Every old name with its new one."""
    found = {}
    for old, new, modules in MOVED:
        for name in modules.split():
            before, _, after = name.partition(">")
            found[f"{old}.{before}"] = f"{new}.{after or before}"
    return found


def new_name(name: str) -> str | None:
    """Where the module of an old name stands now; None for other names.

    >>> new_name("weft.ir.dtype")
    'weft.dtypes'
    """
    return _names().get(name)


class _Alias(Loader):
    """Gives a module that is there already."""

    def __init__(self, name: str) -> None:
        self.module = importlib.import_module(name)
        self.spec = self.module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module under its new name."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """The import system has written the old name into the module; it keeps its own."""
        module.__spec__ = self.spec


class MovedModules(MetaPathFinder):
    """The finder of old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of an old name; None for names that were never there."""
        name = new_name(fullname)
        return ModuleSpec(fullname, _Alias(name)) if name else None


def install() -> None:
    """Make the old names importable, once."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
