"""CompactBufferAllocation: buffers of a kernel's own are as large as what is used of them.

    for i in range(64):                             for i in range(64):
        t = T.alloc_buffer((64, 8))                     t = T.alloc_buffer((1, 8))
        for j in range(8): t[i, j] = x[i, j]            for j in range(8): t[0, j] = x[i, j]

The box of all accesses, over the loops inside of the allocation, is what is left; indices are moved by its start. A
buffer whose address is taken, or that is passed on or matched, keeps its size, and so does one with strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft import dtypes
from weft.ir import IRModule, Node, replace, rewrite, structural_equal, walk
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.regions import block_accesses
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Extent,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.scalars.rewrite_unsafe_select import may_fail

__all__ = ["CompactBufferAllocation", "is_passed_on"]


@dataclass(frozen=True)
class CompactBufferAllocation(FunctionPass):
    """Make the buffers of kernels as small as their accesses."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    is_strict: bool = True

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with smaller buffers; the same object when none is larger than needed."""
        for buffer, body in _allocations(function):
            function = _compacted(function, buffer, body)
        return function


def _allocations(function: PrimFunc) -> list[tuple[Buffer, Stmt]]:
    """The buffers that a function allocates, with what they live in."""
    found: list[tuple[Buffer, Stmt]] = []
    for part in walk(function.body):
        if isinstance(part, Block):
            found += [(buffer, part) for buffer in part.alloc_buffers]
        elif isinstance(part, SeqStmt):
            found += [(stmt.buffer, part) for stmt in part.stmts if isinstance(stmt, AllocBuffer)]
    return found


def _compacted(function: PrimFunc, buffer: Buffer, owner: Stmt) -> PrimFunc:
    if buffer.strides is not None or buffer.data is not None or buffer.elem_offset is not None or not buffer.shape:
        return function
    if buffer.axis_separators or is_passed_on(function, buffer):
        return function
    now = next((stmt for found, stmt in _allocations(function) if found is buffer), None)
    box = None if now is None else _box(now, buffer)
    if box is None or all(_is_whole(part, extent) for part, extent in zip(box, buffer.shape, strict=True)):
        return function
    starts = [part.start for part in box]
    small = replace(buffer, shape=tuple(part.extent for part in box))
    return rewrite(
        function, lambda node: _moved(node, small, starts), pre=lambda node: small if node is buffer else None
    )


def _box(owner: Stmt, buffer: Buffer) -> list[Range] | None:
    """The box of a buffer that what it lives in touches; None where it depends on what is bound inside."""
    parts = _lived_in(owner, buffer)
    reads, writes = block_accesses(Block("", parts))
    regions = [region for region in (*reads, *writes) if region.buffer is buffer]
    if not regions:
        return None
    box = list(regions[0].region)
    for region in regions[1:]:
        box = [_union(a, b) for a, b in zip(box, region.region, strict=True)]
    bound = {part for part in _bound(parts)}
    if any(not bound.isdisjoint(walk(x)) for part in box for x in (part.start, part.extent) if isinstance(x, PrimExpr)):
        return None
    if any(may_fail(x) for part in box for x in (part.start, part.extent) if isinstance(x, PrimExpr)):
        return None
    return [_within(part, extent) for part, extent in zip(box, buffer.shape, strict=True)]


def _lived_in(owner: Stmt, buffer: Buffer) -> Stmt:
    """The statements in which a buffer lives, without its allocation."""
    if isinstance(owner, Block):
        return owner.body if owner.init is None else SeqStmt((owner.init, owner.body))
    assert isinstance(owner, SeqStmt)
    return SeqStmt(tuple(x for x in owner.stmts if not (isinstance(x, AllocBuffer) and x.buffer is buffer)))


def _bound(root: Node) -> set[Node]:
    found: set[Node] = set()
    for part in walk(root):
        for name in ("loop_var", "var"):
            value = getattr(part, name, None)
            if isinstance(value, PrimVar):
                found.add(value)
    return found


def _union(a: Range, b: Range) -> Range:
    if structural_equal(a.start, b.start) and structural_equal(a.extent, b.extent):
        return a
    low = _folded("min", a.start, b.start)
    high = _folded("max", _folded("add", a.start, a.extent), _folded("add", b.start, b.extent))
    return Range(low, _folded("sub", high, low))


def _folded(kind: str, a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return {"min": min(a, b), "max": max(a, b), "add": a + b, "sub": a - b}[kind]
    return simplify(binary(kind, a, b))


def _within(part: Range, extent: Extent) -> Range:
    """The part of a range that lies in a buffer of constant size; the range where the size is not constant."""
    if isinstance(part.start, int) and isinstance(part.extent, int) and isinstance(extent, int):
        low, high = max(0, part.start), min(extent, part.start + part.extent)
        return Range(low, high - low) if low < high else Range(0, extent)
    return part


def _is_whole(part: Range, extent: Extent) -> bool:
    """Whether a range is all of a dimension, or not known to be less."""
    if part.start == 0 and structural_equal(part.extent, extent):
        return True
    return isinstance(extent, int) and not isinstance(part.extent, int)


def is_passed_on(function: PrimFunc, buffer: Buffer) -> bool:
    """Whether something but loads and stores uses a buffer."""
    for part in walk(function.body):
        if isinstance(part, PrimCall) and any(arg is buffer for arg in part.args):
            return True
        if isinstance(part, PrimCall) and part.op == "address_of":
            if any(isinstance(arg, BufferLoad) and arg.buffer is buffer for arg in part.args):
                return True
        if isinstance(part, DeclBuffer) and buffer in walk(part.buffer):
            return True
        if isinstance(part, Block) and any(match.source.buffer is buffer for match in part.match_buffers):
            return True
    return False


def _moved(node: Node, buffer: Buffer, starts: Sequence[Extent]) -> Node | None:
    """An access of the buffer that is smaller now."""
    if isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer:
        return replace(node, indices=tuple(map(_less, node.indices, starts)))
    if isinstance(node, BufferRegion) and node.buffer is buffer:
        moved = zip(node.region, starts, strict=True)
        region = tuple(Range(_folded("sub", part.start, start), part.extent) for part, start in moved)
        return replace(node, region=region)
    return None


def _less(index: PrimExpr, start: Extent) -> PrimExpr:
    if start == 0:
        return index
    scalar = dtypes.element(index.dtype)
    return simplify(binary("sub", index, cast(scalar, as_expr(start, scalar))))
