"""LowerMatchBuffer: buffers that stand for a region are replaced by accesses of what they are a region of.

    sub = T.match_buffer(x[i * 4:i * 4 + 4, j], (4,))       x[i * 4 + k, j]
    sub[k]

What is passed on as a whole, or asked for its address, becomes a declared view of the region's memory. Sizes, strides
and offsets that the match gives a name get their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, buffer_strides, cast
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Extent,
    MatchBufferRegion,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["LowerMatchBuffer", "view_of"]


@dataclass(frozen=True)
class LowerMatchBuffer(FunctionPass):
    """Replace the buffers that stand for regions of others."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without matched buffers; the same object when it has none."""
        return rewrite(function, _without_matches)


def _without_matches(node: Node) -> Node | None:
    if not isinstance(node, Block) or not node.match_buffers:
        return None
    block = replace(node, match_buffers=())
    for match in reversed(node.match_buffers):
        block = _without(block, match)
    return block


def _without(block: Block, match: MatchBufferRegion) -> Block:
    """The block with accesses of a matched buffer as accesses of its source."""
    parts = block.body if block.init is None else SeqStmt((block.init, block.body))
    if _is_passed_on(parts, match.buffer):
        sizes, placed = view_of(match)
        front = (*sizes, DeclBuffer(placed, span=match.span))
        body = SeqStmt((*front, substitute(block.body, {match.buffer: placed})), span=block.body.span)
        return replace(block, body=body)

    def accessed(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is match.buffer:
            return replace(node, buffer=match.source.buffer, indices=_indices(match, node.indices))
        if isinstance(node, BufferStore) and node.buffer is match.buffer:
            return replace(node, buffer=match.source.buffer, indices=_indices(match, node.indices))
        if isinstance(node, BufferRegion) and node.buffer is match.buffer:
            return _region(match, node)
        return None

    sizes, _ = view_of(match)
    values = {bind.var: bind.value for bind in sizes if isinstance(bind, Bind)}
    new = {name: _rewritten(getattr(block, name), accessed, values) for name in ("body", "init")}
    return replace(block, **new)


def _rewritten(stmt: Stmt | None, accessed: object, values: dict[PrimVar, PrimExpr]) -> Stmt | None:
    return None if stmt is None else substitute(rewrite(stmt, accessed), values)  # type: ignore[arg-type]


def _is_passed_on(root: Node, buffer: Buffer) -> bool:
    """Whether a buffer is an argument, has its address taken, or is matched with strides that vectors need."""
    for part in walk(root):
        if isinstance(part, PrimCall):
            if any(arg is buffer for arg in part.args):
                return True
            if part.op == "address_of" and any(isinstance(a, BufferLoad) and a.buffer is buffer for a in part.args):
                return True
        if isinstance(part, DeclBuffer) and any(inner is buffer for inner in walk(part.buffer)):
            return True
        if isinstance(part, (BufferLoad, BufferStore)) and part.buffer is buffer:
            if any(isinstance(index, Ramp) for index in part.indices[:-1]):
                return True
    return False


def _indices(match: MatchBufferRegion, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The place in the source of a place in the buffer."""
    region = match.source.region
    front = len(region) - len(indices)
    starts = [as_expr(axis.start) for axis in region]
    moved = [binary("add", start, index) for start, index in zip(starts[front:], indices, strict=True)]
    return tuple(simplify(index) for index in (*starts[:front], *moved))


def _region(match: MatchBufferRegion, inner: BufferRegion) -> BufferRegion:
    region = match.source.region
    front = len(region) - len(inner.region)
    moved = [
        Range(_plain(binary("add", as_expr(outer.start), as_expr(part.start))), part.extent)
        for outer, part in zip(region[front:], inner.region, strict=True)
    ]
    return BufferRegion(match.source.buffer, (*region[:front], *moved), span=inner.span)


def _plain(value: PrimExpr) -> PrimExpr:
    return simplify(value)


def view_of(match: MatchBufferRegion) -> tuple[list[Stmt], Buffer]:
    """Values for symbolic sizes, strides and offset of a matched buffer, and it as a view of the region's memory."""
    source, buffer = match.source.buffer, match.buffer
    start = BufferLoad(source, tuple(as_expr(axis.start) for axis in match.source.region))
    region = [axis.extent for axis in match.source.region]
    strides = buffer_strides(source)[source.ndim - buffer.ndim :]
    parts = _solve(buffer.shape, region[source.ndim - buffer.ndim :], match)
    parts += _solve(buffer.strides or (), strides, match)
    if isinstance(buffer.elem_offset, PrimVar):  # the view's pointer is that of the region's first element
        parts.append(Bind(buffer.elem_offset, as_expr(0, buffer.elem_offset.dtype), span=match.span))
    address = PrimCall("address_of", (start,), "handle", span=match.span)
    return parts, replace(buffer, data=address, strides=buffer.strides or tuple(strides), elem_offset=None)


def _solve(wanted: Sequence[Extent], given: Sequence[Extent], match: MatchBufferRegion) -> list[Stmt]:
    """Give the variables among `wanted` the sizes in `given`."""
    known: set[PrimVar] = set()
    parts: list[Stmt] = []
    for variable, value in zip(wanted, given, strict=False):
        if isinstance(variable, PrimVar) and variable is not value and variable not in known:
            known.add(variable)
            parts.append(Bind(variable, cast(variable.dtype, as_expr(value, variable.dtype)), span=match.span))
    return parts
