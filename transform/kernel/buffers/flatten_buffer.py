"""FlattenBuffer: accesses of several dimensions become accesses of one.

    y[i, j] = x[i, j]           x_flat = T.decl_buffer((128,), data=T.address_of(x[0, 0]))
                                y_flat[i * 16 + j] = x_flat[i * 16 + j]

A buffer that the kernel allocates or declares becomes flat itself; one that it is given, or that is passed on whole,
gets a flat view. Axis separators keep that many dimensions apart. Functions with blocks are left alone
(`LowerOpaqueBlock`), and so are strides or sizes of which it is not known how much memory they span.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import ClassVar

from weft import dtypes
from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, extent_product
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["FlattenBuffer"]


@dataclass(frozen=True)
class FlattenBuffer(FunctionPass):
    """Access memory by one index."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function whose accesses have one index; the same object when they have."""
        if any(isinstance(part, Block) for part in walk(function.body)):
            return function
        for buffer in _accessed(function):
            shape = _flat_shape(buffer)
            if shape is not None:
                function = _flattened(function, buffer, shape)
        return function


def _accessed(function: PrimFunc) -> list[Buffer]:
    """The buffers with loads and stores of other than one index, and those with strides."""
    found: dict[Buffer, None] = {}
    for part in walk(function.body):
        if isinstance(part, (BufferLoad, BufferStore)) and (part.buffer.ndim != 1 or part.buffer.strides is not None):
            if len(_groups(part.buffer)) < part.buffer.ndim or part.buffer.ndim == 0 or part.buffer.strides is not None:
                found[part.buffer] = None
    return [buffer for buffer in found if not _is_address_only(function, buffer)]


def _is_address_only(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether a buffer only gives its address, as one with a flat view does."""
    inside = {
        id(arg)
        for part in walk(function.body)
        if isinstance(part, PrimCall) and part.op == "address_of"
        for arg in part.args
    }
    uses = [part for part in walk(function.body) if isinstance(part, (BufferLoad, BufferStore))]
    return all(id(part) in inside for part in uses if part.buffer is buffer)


def _groups(buffer: Buffer) -> list[tuple[int, int]]:
    """The dimensions that become one each, as ranges."""
    ends = [0, *buffer.axis_separators, buffer.ndim]
    return [(low, high) for low, high in itertools.pairwise(ends) if low < high or buffer.ndim == 0]


def _flat_shape(buffer: Buffer) -> tuple[Extent, ...] | None:
    """The sizes of the flat buffer; None where it is not known what its strides span."""
    if buffer.strides is None:
        return tuple(extent_product(buffer.shape[low:high]) for low, high in _groups(buffer))
    if buffer.axis_separators or not all(isinstance(x, int) for x in (*buffer.shape, *buffer.strides)):
        return None
    if 0 in buffer.shape:
        return None
    return (1 + sum((size - 1) * step for size, step in zip(buffer.shape, buffer.strides, strict=True)),)  # type: ignore[operator]


def _flattened(function: PrimFunc, buffer: Buffer, shape: tuple[Extent, ...]) -> PrimFunc:
    separators = tuple(range(1, len(shape)))
    given = buffer in function.params
    if given or _is_passed_on(function, buffer):
        start = BufferLoad(buffer, (as_expr(0),) * buffer.ndim)
        address = PrimCall("address_of", (start,), "handle")
        name = f"{buffer.name}_flat"
        flat = Buffer(name, shape, buffer.dtype, buffer.scope, data=address, axis_separators=separators)
        body = rewrite(function.body, lambda node: _access(node, buffer, flat))
        view = DeclBuffer(flat)
        if given:
            return replace(function, body=SeqStmt((view, body), span=function.body.span))
        return replace(function, body=rewrite(body, lambda node: _after(node, buffer, view)))
    flat = replace(buffer, shape=shape, strides=None, axis_separators=separators)
    return rewrite(
        function,
        lambda node: _access(node, flat, flat, old=buffer),
        pre=lambda node: flat if node is buffer else None,
    )


def _after(node: Node, buffer: Buffer, view: DeclBuffer) -> Stmt | None:
    made = isinstance(node, (AllocBuffer, DeclBuffer)) and node.buffer is buffer
    return SeqStmt((node, view)) if made else None  # type: ignore[arg-type]


def _access(node: Node, buffer: Buffer, flat: Buffer, old: Buffer | None = None) -> Node | None:
    """An access of a buffer as one of the flat buffer."""
    if isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer:
        return replace(node, buffer=flat, indices=tuple(_indices(old or buffer, node.indices)))
    return None


def _indices(buffer: Buffer, indices: Sequence[PrimExpr]) -> Iterator[PrimExpr]:
    if buffer.ndim == 0:
        yield as_expr(0)
        return
    for low, high in _groups(buffer):
        strides = buffer.strides[low:high] if buffer.strides else None
        part = replace(buffer, shape=buffer.shape[low:high], strides=strides, axis_separators=())
        yield _offset(indices[low:high], buffer_strides(part))


def _offset(indices: Sequence[PrimExpr], strides: Sequence[Extent]) -> PrimExpr:
    """The sum of indices times strides; a vector of places in a row stays one."""
    last = indices[-1]
    if isinstance(last, Ramp):
        others = [index.value if isinstance(index, Broadcast) else index for index in indices[:-1]]
        if all(dtypes.lanes(index.dtype) == 1 for index in others):
            base = _offset([*others, last.base], strides)
            stride = simplify(binary("mul", last.stride, strides[-1]))
            return Ramp(base, stride, last.lanes, span=last.span)
    terms = [index if step == 1 else binary("mul", index, step) for index, step in zip(indices, strides, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = binary("add", total, term)
    return simplify(total)


def _is_passed_on(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether a buffer is an argument of a call as a whole."""
    calls = (part for part in walk(function.body) if isinstance(part, PrimCall))
    return any(arg is buffer for call in calls for arg in call.args)
