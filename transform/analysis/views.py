"""Whether what looks at memory stays inside: declared views of buffers, and the buffers that calls of kernels take.

    T.decl_buffer((n,), "float32", data=A.data, elem_offset=4)        elements 4 .. 4 + n of A's memory are there
    M.k(T.address_of(A[8]))                                           so are those that k's buffer has, from A[8] on

Claims in bytes, so that a view may be of another dtype. Each view is held against the buffer that it is taken from,
which is held against its own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from weft import dtypes
from weft.ir import IRModule, replace, substitute
from weft.ir.dim import Dim, product
from weft.ir.graph import GlobalVar
from weft.ir.kernel.prim import buffer_strides
from weft.ir.tensor import Buffer, BufferLoad, Extent, PrimCall, PrimExpr, PrimFunc, PrimVar

__all__ = ["Within", "call_views", "span_within"]

_ADDRESSES = ("address_of", "access_ptr", "tvm_access_ptr")
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
    if isinstance(pointer, PrimCall) and pointer.op in _ADDRESSES and pointer.args:
        pointer = pointer.args[0]
    return (pointer.buffer, pointer.indices) if isinstance(pointer, BufferLoad) else None


def span_within(view: Buffer, pointer: Any, dim: Evaluate) -> Within | None:
    """The claims for a view of the memory from a pointer on; None when the pointer is not that of a buffer."""
    place = place_of(pointer)
    if place is None:
        return None
    memory, indices = place
    strides = [dim(stride) for stride in buffer_strides(memory)]
    first: Dim = 0
    for index, stride in zip(indices, strides, strict=False):
        if dtypes.lanes(index.dtype) == 1:
            first = first + dim(index) * stride
    offset = 0 if view.elem_offset is None or view.data is None else dim(view.elem_offset)
    room = (_elements(memory, dim) - first) * _bytes(memory)
    needs = [room - (offset + _elements(view, dim)) * _bytes(view), offset]
    needs += [dim(stride) for stride in view.strides or ()]
    return Within(memory, tuple(needs))


def _bytes(buffer: Buffer) -> int:
    return dtypes.storage(buffer.dtype).itemsize


def _elements(buffer: Buffer, dim: Evaluate) -> Dim:
    """The elements from the first of a buffer to its last."""
    if buffer.strides is None:
        return product(dim(extent) for extent in buffer.shape)
    steps = zip(buffer.shape, buffer.strides, strict=True)
    return sum(((dim(extent) - 1) * dim(stride) for extent, stride in steps), start=1)


def call_views(call: PrimCall, module: IRModule | None) -> Iterator[tuple[Buffer, Any]]:
    """The buffers that a kernel takes, in the sizes of the call, each with the pointer that it is given."""
    callee = module.functions.get(call.op.name) if module is not None and isinstance(call.op, GlobalVar) else None
    if not isinstance(callee, PrimFunc) or len(callee.params) != len(call.args):
        return
    values: dict[Any, Any] = {}
    for param, arg in zip(callee.params, call.args, strict=True):
        if isinstance(param, PrimVar):
            values.setdefault(param, arg)
            continue
        place = place_of(arg)
        if place is None or place[0].ndim != param.ndim:
            continue
        steps = buffer_strides(place[0]) if param.strides is not None else ()
        layout = (*zip(param.shape, place[0].shape, strict=True), *zip(param.strides or (), steps, strict=True))
        for symbol, extent in layout:
            if isinstance(symbol, PrimVar):
                values.setdefault(symbol, extent)
    for param, arg in zip(callee.params, call.args, strict=True):
        if isinstance(param, Buffer):
            yield _in_sizes(param, values), arg


def _in_sizes(buffer: Buffer, values: dict[Any, Any]) -> Buffer:
    def sized(extent: Extent) -> Extent:
        if isinstance(extent, PrimVar):
            return values.get(extent, extent)
        return substitute(extent, values) if isinstance(extent, PrimExpr) else extent

    strides = None if buffer.strides is None else tuple(map(sized, buffer.strides))
    return replace(buffer, shape=tuple(map(sized, buffer.shape)), strides=strides, elem_offset=None)
