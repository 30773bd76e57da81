"""What a script leaves unsaid: the dtypes of loop variables, block variables and calls that do not state one.

The reader fills these in and the printer leaves them out, so both ask here.
"""

from __future__ import annotations

from typing import Any

from weft.ir.attrs import HINT
from weft.ir.tensor import Extent, PrimExpr

__all__ = [
    "DEVICE_KINDS",
    "DTYPE_FIRST",
    "DTYPE_LAST",
    "DTYPE_MAYBE_FIRST",
    "DTYPE_OF_ARGUMENT",
    "HINT",
    "OLD_OPERATORS",
    "OPERATORS_ONLY",
    "RENAMED_OPERATORS",
    "RESULT_DTYPES",
    "SCOPE_IDS",
    "axis_dtype",
    "is_device_name",
    "loop_dtype",
]

# Calls whose first argument is the dtype of the result, as TVM writes them; then the usual dtypes of others.
DTYPE_FIRST = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret")

# Calls of devices that may state the dtype of their result first.
DTYPE_MAYBE_FIRST = frozenset(
    "vectorlow vectorhigh vectorcombine ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk mma_store "
    "ptx_ldg32 mma_fill undef get_active_lane_mask ptx_cp_async_mbarrier masked_load".split()
)

# Calls whose result has the dtype of one of their arguments, by its position.
DTYPE_OF_ARGUMENT = {
    "tvm_thread_invariant": 0,
    "ptx_ldg32": 0,
    "tvm_warp_shuffle": 1,
    "tvm_warp_shuffle_up": 1,
    "tvm_warp_shuffle_down": 1,
    "tvm_warp_shuffle_xor": 1,
}

# Where the dtype of the result stands among the arguments.
DTYPE_LAST = {"tvm_struct_get": 3}

RESULT_DTYPES = {
    "call_packed": "int32",
    "call_cpacked": "int32",
    "tvm_call_packed": "int32",
    "address_of": "handle",
    "access_ptr": "handle",
    "handle_add_byte_offset": "handle",
    "q_multiply_shift": "int32",
    "vscale": "int32",
    "assume": "bool",
    "has_intrinsic": "bool",
    "sort_keys": "void",
    "select_key": "void",
    "sort_pairs": "void",
    "select_pair": "void",
    "keep_keys": "void",
    "keep_positions": "void",
    "sort_values": "void",
    "sort_positions": "void",
    "print_buffer": "void",
    "isnullptr": "bool",
    "call_cpacked_lowered": "int32",
    "call_packed_lowered": "int32",
    "TVMBackendAllocWorkspace": "handle",
    "TVMBackendFreeWorkspace": "int32",
    "dp4a": "int32",
    "q_multiply_shift_per_axis": "int32",
    "ptr_byte_offset": "handle",
    "lookup_param": "handle",
    "tvm_warp_activemask": "uint32",
    "tvm_stack_alloca": "handle",
    "tvm_stack_make_shape": "handle",
    "tvm_stack_make_array": "handle",
    "tvm_access_ptr": "handle",
    "tvm_call_cpacked": "int32",
    "tvm_call_packed_lowered": "int32",
    "tvm_call_cpacked_lowered": "int32",
    "tvm_struct_set": "int32",
    "tvm_throw_last_error": "int32",
    "tvm_check_return": "int32",
    "tvm_static_handle": "handle",
    "get_active_lane_mask": "bool",
    "cuda.__activemask": "uint32",
}

# Kinds of devices by the numbers that DLPack gives them.
DEVICE_KINDS: dict[Any, str] = {
    1: "cpu",
    2: "cuda",
    3: "cuda_host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "rocm_host",
    12: "ext_dev",
    13: "cuda_managed",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
}

# Device intrinsics that TVM's readers know as operators only (`T.call_intrin`), and those that 0.27 renamed.
OPERATORS_ONLY = frozenset(
    "dma_copy dma_wait dma_start_group dma_end_group make_filled_simdgroup_matrix simdgroup_load simdgroup_store "
    "simdgroup_multiply_accumulate texture2d_load texture2d_store tvm_static_handle mma_fill mma_store prefetch".split()
)
RENAMED_OPERATORS = {
    "ptx_mma": "ptx_legacy.mma",
    "ptx_ldmatrix": "ptx_legacy.ldmatrix",
    "ptx_cp_async": "s_tir.cp_async_raw",
    "ptx_ldg32": "s_tir.ldg32",
    "ptx_commit_group": "ptx.cp_async_commit_group",
    "ptx_wait_group": "ptx.cp_async_wait_group",
}
OLD_OPERATORS = {new: old for old, new in RENAMED_OPERATORS.items()}


# Places of a thread in the hierarchy of a device, with the arguments of the calls that give them.
SCOPE_IDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "cluster_id warpgroup_id warp_id warp_id_in_wg lane_id thread_id thread_id_in_wg".split(), ("extents", "dtype")
    ),
    **dict.fromkeys(("cta_id", "cta_id_in_cluster"), ("extents", "preferred", "dtype")),
    "cta_id_in_pair": ("dtype",),
}

_RUNTIME_NAMES = frozenset(
    f"tvm_{name}"
    for name in (
        "access_ptr bmma_sync call_cpacked call_cpacked_lowered call_packed call_packed_lowered call_trace_packed "
        "call_trace_packed_lowered check_return context_id fill_fragment global_barrier_kinit handle_is_null "
        "kernel_replace_point load_matrix_sync mma_sync stack_alloca stack_make_array stack_make_shape static_handle "
        "storage_sync store_matrix_sync struct_get struct_set thread_allreduce thread_context thread_invariant "
        "throw_last_error tuple warp_activemask warp_shuffle warp_shuffle_down warp_shuffle_up warp_shuffle_xor"
    ).split()
)
_DEVICE_PREFIXES = (
    "ptx",
    "s_tir.",
    "cuda",
    "mma_",
    "simdgroup",
    "make_filled",
    "nvshmem",
    "metal",
    "webgpu",
    "nki",
    "dma_",
    "start_profile",
    "end_profile",
    "texture2d",
    "mem_copy",
    "create_barriers",
    "thread_return",
    "anylist",
    "prefetch",
    "type_annotation",
    "cooperative_tensor",
)


def is_device_name(name: str) -> bool:
    """Whether an unknown intrinsic is one of a device (read as an opaque call)."""
    return name.startswith(_DEVICE_PREFIXES) or name in _RUNTIME_NAMES or name in SCOPE_IDS


def loop_dtype(start: Extent, extent: Extent) -> str:
    """The dtype of a loop variable: that of its extent or start, int32 for plain numbers."""
    for value in (extent, start):
        if isinstance(value, PrimExpr):
            return value.dtype
    return "int32"


def axis_dtype(extent: Extent, value: PrimExpr | None) -> str:
    """The dtype of a block variable: that of its extent, else of what it is bound to."""
    if isinstance(extent, PrimExpr):
        return extent.dtype
    return value.dtype if value is not None else "int32"
