"""Memory that a kernel declares: on its stack where it is small and of known size, else on the heap; views."""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, icmp
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.asm.types import element_bytes
from weft.codegen.backends.llvm.kernel.emitter import COLD, KernelEmitter
from weft.codegen.backends.llvm.values.views import BufferView
from weft.errors import TargetError
from weft.ir.tensor import AllocBuffer, Buffer, DeclBuffer
from weft.target.machine_model import STACK_BYTES, STACK_TOTAL

__all__ = ["allocate", "declare"]

_LARGEST_LOCAL, _LOCAL_TOTAL = 4 << 10, 64 << 10
"""Of buffers that are to be in registers: one, and all of a function."""


def allocate(emitter: KernelEmitter, stmt: AllocBuffer) -> None:
    """Emit memory of the kernel's own."""
    buffer = stmt.buffer
    view = emitter.describe(buffer, "")
    itemsize = element_bytes(buffer.dtype) * dtypes.lanes(buffer.dtype)
    exact = Exact(emitter.w)
    for extent in (*buffer.shape, *(buffer.strides or ())):
        emitter.index.exact_size(extent, exact)
    if buffer.strides is None:
        size = exact.bytes_of((_nonnegative(emitter, extent) for extent in view.shape), itemsize)
    else:
        size = exact.bytes_of([_span_of(emitter, view, exact)], itemsize)
    if isinstance(size, int) and _takes_stack(emitter, buffer, size):
        emitter.buffers[buffer] = emitter.describe(buffer, emitter.w.alloca("i8", max(1, size), align=64))
        emitter.buffers[buffer].room = size // itemsize
    else:
        emitter.buffers[buffer] = emitter.describe(buffer, _heap(emitter, stmt, size))


def _takes_stack(emitter: KernelEmitter, buffer: Buffer, size: int) -> bool:
    """Take so many bytes of the stack, where it has room for them.

    What is to be in registers has room of its own: on the heap it would be in memory.
    """
    scope = "local" if buffer.scope == "local" and size <= _LARGEST_LOCAL else "global"
    taken = emitter.stack_bytes.get(scope, 0) + size
    if size > STACK_BYTES or taken > (_LOCAL_TOTAL if scope == "local" else STACK_TOTAL):
        return False
    emitter.stack_bytes[scope] = taken
    return True


def _nonnegative(emitter: KernelEmitter, extent: Size) -> Size:
    return max(0, extent) if isinstance(extent, int) else emitter.arith.binary("max", "int64", extent, "0")


def _span_of(emitter: KernelEmitter, view: BufferView, exact: Exact) -> Size:
    """Elements from the first to the last that a strided buffer has."""
    count: Size = 1
    for extent, stride in zip(view.shape, view.strides, strict=True):
        count = exact.add(count, exact.mul(exact.sub(extent, 1), stride))
    return _nonnegative(emitter, count)


def _heap(emitter: KernelEmitter, stmt: AllocBuffer, size: Size) -> str:
    bytes_ = size
    emitter.module.declare("aligned_alloc", "noalias ptr", ("i64", "i64"), "allocsize(1)")
    if not emitter.program.guarded:
        size = emitter.w.emit(binary("and", "i64", emitter.w.emit(binary("add", "i64", size, "64")), "-64"))
    pointer = emitter.w.emit(call("ptr", "@aligned_alloc", [("i64", "64"), ("i64", size)]))
    bad, good = emitter.w.label("no_memory"), emitter.w.label("ok")
    emitter.w.branch(emitter.w.emit(icmp("eq", "ptr", pointer, "null")), bad, good, COLD)
    emitter.w.open(bad)
    name = stmt.buffer.name or "_"
    emitter.program.fail(
        emitter.w, "MemoryError", [f"no memory for the buffer {name}: ", 0, " bytes"], [bytes_], span=stmt.span
    )
    emitter.leave(1)
    emitter.w.open(good)
    emitter.scopes[-1].append(pointer)
    return pointer


def declare(emitter: KernelEmitter, stmt: DeclBuffer) -> None:
    """Emit a view."""
    if stmt.buffer.data is None:
        raise TargetError(f"llvm: the declared buffer {stmt.buffer.name} has no data", code="W740", span=stmt.span)
    emitter.buffers[stmt.buffer] = emitter.describe(stmt.buffer, emitter.value(stmt.buffer.data))
