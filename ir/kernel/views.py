"""Whether what looks at memory stays inside: declared views of buffers, and the buffers that calls of kernels take.

    T.decl_buffer((n,), "float32", data=A.data, elem_offset=4)        elements 4 .. 4 + n of A's memory are there
    M.k(T.address_of(A[8]))                                           so are those that k's buffer has, from A[8] on

Claims in bytes, so that a view may be of another dtype. Each view is held against the buffer that it is taken from,
which is held against its own memory. Behind a bare handle (`h: T.handle`) there is memory of any size: what a kernel
looks at there has to be a known number of bytes (`handle_bytes`), which callers give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft import dtypes
from weft.errors import Span, VerifyError
from weft.ir.attrs import HANDLE_BYTES
from weft.ir.dim import Dim, product
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim import buffer_strides, cast
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.module import BaseFunc
from weft.ir.node import replace
from weft.ir.structure.visit import children, substitute, walk
from weft.ir.tensor import Buffer, BufferLoad, DeclBuffer, Extent, PrimCall, PrimExpr, PrimFunc, PrimVar
from weft.support.records import dataclass

__all__ = [
    "ADDRESSES",
    "HANDLE_BYTES",
    "Within",
    "call_views",
    "handle_bytes",
    "handles_of",
    "place_of",
    "span_within",
    "unknown_memory",
]

ADDRESSES = ("address_of", "access_ptr", "tvm_access_ptr")
"""Intrinsics that take the address of an element."""
Evaluate = Callable[[Extent], Dim]


@dataclass(frozen=True)
class Within:
    """What must not be negative for a view to lie in a buffer's memory."""

    memory: Buffer
    needs: tuple[Dim, ...]


def place_of(pointer: Any) -> tuple[Buffer, tuple[PrimExpr, ...]] | None:
    """The buffer and the indices that a pointer is the address of; None when that cannot be told."""
    if isinstance(pointer, Buffer):
        return pointer, ()
    if isinstance(pointer, PrimCall) and pointer.op in ADDRESSES and pointer.args:
        pointer = pointer.args[0]
    if not isinstance(pointer, BufferLoad) or any(dtypes.lanes(index.dtype) != 1 for index in pointer.indices):
        return None
    return pointer.buffer, pointer.indices


def span_within(view: Buffer, pointer: Any, dim: Evaluate) -> Within | None:
    """The claims for a view of the memory from a pointer on; None when the pointer is not that of a buffer."""
    place = place_of(pointer)
    if place is None:
        return None
    memory, indices = place
    strides = [dim(stride) for stride in buffer_strides(memory)]
    first: Dim = 0
    for index, stride in zip(indices, strides, strict=False):
        first = first + dim(index) * stride
    offset = 0 if view.elem_offset is None or view.data is None else dim(view.elem_offset)
    room = (_elements(memory, dim) - first) * _bytes(memory)
    needs = [room - (offset + _elements(view, dim)) * _bytes(view), offset]
    needs += [dim(size) for size in (*view.shape, *(view.strides or ()))]
    if _bytes(memory) % _bytes(view):  # an element of the view begins where one of its size may
        needs.append(-(first * _bytes(memory) % _bytes(view)))
    return Within(memory, tuple(needs))


def _bytes(buffer: Buffer) -> int:
    return dtypes.item_bytes(buffer.dtype)


def _elements(buffer: Buffer, dim: Evaluate) -> Dim:
    """The elements from the first of a buffer to its last."""
    if buffer.strides is None:
        return product(dim(extent) for extent in buffer.shape)
    steps = zip(buffer.shape, buffer.strides, strict=True)
    return sum(((dim(extent) - 1) * dim(stride) for extent, stride in steps), start=1)


def call_views(call: PrimCall, functions: Mapping[str, BaseFunc]) -> Iterator[tuple[Buffer, Any]]:
    """The buffers that a kernel takes, in the sizes of the call, each with the pointer that it is given."""
    callee = functions.get(call.op.name) if isinstance(call.op, GlobalVar) else None
    if not isinstance(callee, PrimFunc) or len(callee.params) != len(call.args):
        return
    pairs = list(zip(callee.params, call.args, strict=True))
    values: dict[Any, Any] = {
        param: cast(param.dtype, arg)
        for param, arg in pairs
        if isinstance(param, PrimVar) and param.dtype != "handle" and isinstance(arg, PrimExpr)
    }
    for param, arg in pairs:
        place = place_of(arg) if isinstance(param, Buffer) else None
        if place is None or not isinstance(param, Buffer) or place[0].ndim != param.ndim:
            continue
        steps = buffer_strides(place[0]) if param.strides is not None else ()
        layout = (*zip(param.shape, place[0].shape, strict=True), *zip(param.strides or (), steps, strict=True))
        for symbol, extent in layout:
            if isinstance(symbol, PrimVar):
                values.setdefault(symbol, extent)
    for param, arg in pairs:
        if isinstance(param, Buffer):
            yield _in_sizes(param, values), arg
        elif param.dtype == "handle":
            yield Buffer(param.name, (handle_bytes(callee, param, functions),), "uint8"), arg


def _in_sizes(buffer: Buffer, values: dict[Any, Any]) -> Buffer:
    def sized(extent: Extent) -> Extent:
        if isinstance(extent, PrimVar):
            return values.get(extent, extent)
        return substitute(extent, values) if isinstance(extent, PrimExpr) else extent

    strides = None if buffer.strides is None else tuple(map(sized, buffer.strides))
    return replace(buffer, shape=tuple(map(sized, buffer.shape)), strides=strides, elem_offset=None)


# Bare handles -------------------------------------------------------------------------------------------------------

_FOREIGN = ("call_extern", "call_pure_extern", "call_llvm_intrin", "tvm_call_packed", "call_packed", "call_cpacked")


def handles_of(function: PrimFunc) -> list[PrimVar]:
    """The parameters that are bare handles.

    >>> from weft.ir.tensor import SeqStmt
    >>> h = PrimVar("h", "handle")
    >>> [found is h for found in handles_of(PrimFunc((h, PrimVar("n", "int64")), SeqStmt()))]
    [True]
    """
    return [param for param in function.params if isinstance(param, PrimVar) and param.dtype == "handle"]


def handle_bytes(
    function: PrimFunc, handle: PrimVar, functions: Mapping[str, BaseFunc], seen: tuple[PrimFunc, ...] = ()
) -> int:
    """How many bytes a kernel looks at behind a handle; VerifyError W478 where that is no number.

    Foreign code that is given the handle is trusted with it: somebody declared it.

    >>> h = PrimVar("h", "handle")
    >>> view = DeclBuffer(Buffer("A", (4, 8), "float32", data=h))
    >>> handle_bytes(PrimFunc((h,), view), h, {})
    128
    """
    if function in seen:
        return 0  # what the calls before say
    needed = 0
    for node in walk(function.body):
        if isinstance(node, DeclBuffer) and node.buffer.data is handle:
            needed = max(needed, _known_bytes(node.buffer, handle, node.span))
        elif isinstance(node, PrimCall):
            positions = [position for position, arg in enumerate(node.args) if arg is handle]
            needed = max([needed, *(_passed_bytes(node, at, handle, functions, (*seen, function)) for at in positions)])
        elif not isinstance(node, Buffer) and any(child is handle for child in children(node, types=False)):
            raise _unknown(handle, "it is computed with", node.span)
    return needed


def _known_bytes(view: Buffer, handle: PrimVar, span: Span | None) -> int:
    def constant(extent: Extent) -> Dim:
        found = prim_to_dim(extent)
        if not isinstance(found, int):
            raise _unknown(handle, f"the sizes of {view.name!r} are no numbers", span)
        return found

    offset = 0 if view.elem_offset is None else constant(view.elem_offset)
    total = (offset + _elements(view, constant)) * _bytes(view)
    if not isinstance(total, int) or not isinstance(offset, int) or offset < 0:
        raise _unknown(handle, f"{view.name!r} begins before it", span)
    return total


def _passed_bytes(
    call: PrimCall, position: int, handle: PrimVar, functions: Mapping[str, BaseFunc], seen: tuple[PrimFunc, ...]
) -> int:
    if not isinstance(call.op, GlobalVar):
        if call.op in _FOREIGN:
            return 0
        raise _unknown(handle, f"{call.op} computes with it", call.span)
    callee = functions.get(call.op.name)
    if not isinstance(callee, PrimFunc) or position >= len(callee.params):
        return 0  # the verifier's to report
    param = callee.params[position]
    if isinstance(param, PrimVar):
        return handle_bytes(callee, param, functions, seen)
    return _known_bytes(param, handle, call.span)


def _unknown(handle: PrimVar, why: str, span: Span | None) -> VerifyError:
    hint = f"give it a shape: {handle.name}: T.Buffer((...), dtype), or sizes that are numbers"
    return unknown_memory(f"the handle {handle.name!r}", why, span or handle.span, hint)


def unknown_memory(what: str, why: str, span: Span | None, hint: str | None = None) -> VerifyError:
    """The error for a pointer of which nobody can tell how much memory is there.

    >>> unknown_memory("this pointer", "it is computed from a number", None).code
    'W478'
    """
    return VerifyError(f"how much memory is behind {what} is not known: {why}", code="W478", span=span, hint=hint)
