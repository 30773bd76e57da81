"""Primitives that change how a buffer is stored: its scope, its strides, its dtype.

set_scope, storage_align, unsafe_set_dtype
"""

from __future__ import annotations

from typing import Any

from weft.dtypes import check_dtype, is_float, is_integer
from weft.errors import WeftError
from weft.ir import rewrite, substitute, walk
from weft.ir.kernel.prim import cast
from weft.ir.node import Node
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    PrimCall,
)
from weft.transform.schedule.buffers import (
    require_local,
)
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.caching import Choice, buffer_of
from weft.transform.schedule.primitives.loops import times
from weft.transform.schedule.tree import (
    Tree,
)

__all__ = ["Storage"]


class Storage(ScheduleCore):
    """Changes of buffers as they are."""

    @primitive
    def set_scope(self, block: BlockRV | str, buffer_index: Choice, storage_scope: str) -> None:
        """Keep a buffer that a block writes in another kind of memory; W612 for parameters."""
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, buffer_index, "write")
        self._changed(tree, found, buffer, scope=storage_scope)

    @primitive
    def storage_align(self, block: BlockRV | str, buffer_index: Choice, axis: int, factor: int, offset: int) -> None:
        """Lay a buffer that a block writes out so that the stride of an axis is k * factor + offset for some k.

        ScheduleError W604 an axis or factor that makes no sense, W612 a parameter.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, buffer_index, "write")
        factor, offset = self._number(factor), self._number(offset)
        place = axis + buffer.ndim if axis < 0 else axis
        if not 0 <= place < buffer.ndim or factor < 1 or not 0 <= offset < factor:
            raise failure(
                "W604",
                f"axis {axis}, factor {factor} and offset {offset} do not fit {buffer.name!r} of"
                f" {buffer.ndim} dimensions",
                tree,
                found,
            )
        strides: list[Extent] = [1] * buffer.ndim
        for position in range(buffer.ndim - 1, -1, -1):
            if position + 1 < buffer.ndim:
                strides[position] = times(buffer.shape[position + 1], strides[position + 1])
            if position == place:
                old = strides[position]
                strides[position] = old + (offset - old) % factor
        self._changed(tree, found, buffer, strides=tuple(strides))

    @primitive
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: Choice, dtype: str) -> None:
        """Keep a buffer that a block writes in another dtype: values are cast when stored and when loaded.

        Unsafe: results change by what the dtype cannot hold.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, buffer_index, "write")
        try:
            check_dtype(dtype)
        except WeftError as error:
            raise failure("W604", error.message, tree, found) from None
        if not (is_float(dtype) or is_integer(dtype)):
            raise failure("W604", f"{dtype!r} is no dtype of numbers", tree, found)
        self._changed(tree, found, buffer, dtype=dtype)

    def _changed(self, tree: Tree, found: Block, buffer: Buffer, **fields: Any) -> None:
        """Store a buffer, and the parts of it that blocks match, in another way."""
        parts = _matched(tree, buffer)
        if not parts or "strides" in fields:
            require_local(tree, found, buffer)
        elif buffer in tree.function.params or tree.allocated_at(buffer) is None or buffer.data is not None:
            raise failure("W612", f"{buffer.name!r} is no buffer that the function allocates", tree, found)
        mapping: dict[Node, Node] = {buffer: fresh_buffer(buffer, {}, **fields)}
        for part in parts:
            mapping[part] = fresh_buffer(part, mapping, **fields)

        def post(node: Node) -> Node | None:
            new = mapping.get(node.buffer) if isinstance(node, (BufferStore, BufferLoad)) else None
            if not isinstance(new, Buffer):
                return None
            if isinstance(node, BufferStore):
                return BufferStore(new, cast(new.dtype, node.value), node.indices, node.predicate, span=node.span)
            assert isinstance(node, BufferLoad)
            return cast(node.dtype, BufferLoad(new, node.indices, node.predicate, span=node.span))

        body = tree.function.body
        if fields.get("dtype", buffer.dtype) != buffer.dtype:
            _require_no_address(tree, found, {buffer, *parts})
            body = rewrite(body, post)
        self._set(tree, tree.with_body(substitute(body, mapping)))


def _matched(tree: Tree, buffer: Buffer) -> list[Buffer]:
    """The parts of a buffer that blocks match, and parts of those."""
    matches = [match for block in tree.blocks.values() for match in block.match_buffers]
    found: list[Buffer] = []
    for match in matches:  # outer blocks come first
        if match.source.buffer is buffer or match.source.buffer in found:
            found.append(match.buffer)
    return found


def _require_no_address(tree: Tree, block: Block, buffers: set[Buffer]) -> None:
    """W612 where code gets the address of a buffer, and would read it in its present dtype."""
    for node in walk(tree.function.body):
        if isinstance(node, PrimCall):
            taken = [
                arg.buffer if isinstance(arg, BufferLoad) and node.op == "address_of" else arg for arg in node.args
            ]
            name = next((arg.name for arg in taken if isinstance(arg, Buffer) and arg in buffers), None)
            if name is not None:
                raise failure("W612", f"the address of {name!r} is taken", tree, block)
