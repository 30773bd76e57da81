"""What a script leaves unsaid: the dtypes of loop variables, block variables and calls that do not state one.

The reader fills these in and the printer leaves them out, so both ask here.
"""

from __future__ import annotations

from weft.ir.tensor import Extent, PrimExpr

__all__ = ["DTYPE_FIRST", "RESULT_DTYPES", "axis_dtype", "is_device_name", "loop_dtype"]

# Calls whose first argument is the dtype of the result, as the field writes them; then the usual dtypes of others.
DTYPE_FIRST = ("call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret")

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
    "print_buffer": "void",
}

_DEVICE_PREFIXES = (
    "tvm_",
    "ptx",
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
)


def is_device_name(name: str) -> bool:
    """Whether an unknown intrinsic is one of a device (read as an opaque call)."""
    return name.startswith(_DEVICE_PREFIXES)


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
