"""Primitives that put a buffer between a block and one that it accesses, with indices of its own.

reindex                                    the block's own variables are the indices
reindex_cache_read, reindex_cache_write    the same with indices that are given
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import WeftError
from weft.ir import replace, structural_equal, substitute
from weft.ir.dim import Dim, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.index_map import IndexMap, read_index_map
from weft.ir.kernel.prim_dim import symbol_names
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    PrimExpr,
    PrimVar,
)
from weft.transform.analysis.loops.inverted_indices import inverted
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.buffers import (
    empty_cases,
    require_covering,
    require_sole_writer,
    writers,
)
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.caching import (
    Choice,
    Where,
    buffer_of,
    index_dtype,
    inserted,
    nest_over,
    read_map,
    where_of,
    word,
)
from weft.transform.schedule.primitives.inlining import one_load
from weft.transform.schedule.tree import (
    Tree,
    map_buffers,
    stores_in,
    without_regions,
)

__all__ = ["Reindexing"]


class Reindexing(ScheduleCore):
    """Buffers in the order of a block's variables."""

    @primitive
    def reindex(self, block: BlockRV | str, buffer: Where) -> BlockRV:
        """Put a buffer between a block and one that it accesses, whose indices are the block's variables there.

        The buffer is ("read", i), ("write", i) or a name. Gives the block that copies. ScheduleError W613 several ways
        to access it, W611 accesses that may be outside, W616 stores that are not one to one.
        """
        tree, found = self._block(block)
        kind, target = where_of(tree, found, buffer)
        return self._reindexed(tree, found, kind, target, None, target.scope, f"{target.name}_reindex")

    @primitive
    def reindex_cache_read(
        self, block: BlockRV | str, read_buffer_index: Choice, storage_scope: str, index_map: Any
    ) -> BlockRV:
        """As `reindex` of what a block reads, with a scope, and with indices that a map makes of the block's variables.

        The map has one parameter for each variable of the block.
        """
        tree, found = self._block(block)
        target = buffer_of(tree, found, read_buffer_index, "read")
        known = self._mapped(index_map, len(found.iter_vars), tree, found)
        return self._reindexed(
            tree, found, "read", target, known, storage_scope, f"{target.name}_{word(storage_scope)}"
        )

    @primitive
    def reindex_cache_write(
        self, block: BlockRV | str, write_buffer_index: Choice, storage_scope: str, index_map: Any
    ) -> BlockRV:
        """As `reindex_cache_read`, of what a block writes."""
        tree, found = self._block(block)
        target = buffer_of(tree, found, write_buffer_index, "write")
        known = self._mapped(index_map, len(found.iter_vars), tree, found)
        return self._reindexed(
            tree, found, "write", target, known, storage_scope, f"{target.name}_{word(storage_scope)}"
        )

    def _mapped(self, index_map: Any, count: int, tree: Tree, block: Block) -> IndexMap:
        """An index map, which the trace keeps as text."""
        text = read_map(index_map)
        self._record(index_map=text)
        known = read_index_map(text)
        if len(known.names) != count:
            raise failure("W604", f"the index map {text} has {len(known.names)} indices, not {count}", tree, block)
        return known

    def _reindexed(
        self, tree: Tree, block: Block, kind: str, buffer: Buffer, known: IndexMap | None, scope: str, base: str
    ) -> BlockRV:
        place = tree.place_of(block)
        point = Point.inside(tree, block)
        if kind == "write":
            require_sole_writer(tree, block, buffer)
            if empty_cases(tree, block, buffer):
                raise failure(
                    "W613",
                    f"{buffer.name!r} is also written where the sum has no terms",
                    tree,
                    block,
                    hint="decompose_reduction first",
                )
            require_covering(tree, block)
            indices = stores_in(block.body, buffer)[0].indices
            if any(_differs(store.indices, indices) for store in stores_in(block.body, buffer)):
                raise failure(
                    "W613", f"the block {block.name!r} writes several elements of {buffer.name!r}", tree, block
                )
        else:
            indices = one_load(tree, block, buffer).indices
            _require_inside(tree, block, buffer, indices, point)
            late = next((item for item in writers(tree, buffer) if tree.place_of(item) is place), None)
            if late is not None:
                raise failure("W613", f"block {late.name!r} writes {buffer.name!r} where it is read", tree, late)
        own = {item.var for item in block.iter_vars}
        loops = {loop.loop_var for loop in tree.all_loops_around(block)}
        if not variables_in(*indices) - own <= set(symbol_names(tree.function)) | loops:
            raise failure(
                "W609",
                f"the indices of {buffer.name!r} are not over the variables of block {block.name!r}",
                tree,
                block,
            )
        names = {item.var for index in indices for item in block.iter_vars if item.var in variables_in(index)}
        items = [item for item in block.iter_vars if item.var in names]
        if known is None:
            targets: list[PrimExpr] = [item.var for item in items]
            shape: list[Extent] = [item.extent for item in items]
        else:
            targets, shape = _places(tree, block, known, point)
            used = {var for target in targets for var in variables_in(target)}
            items = [item for item in block.iter_vars if item.var in used | names]
        sizes = {item.var: (item.start, item.extent) for item in items}
        if inverted(targets, sizes, targets, point) is None:
            raise failure("W616", "the new indices do not tell the variables apart", tree, block)
        if kind == "write" and inverted(indices, sizes, indices, point) is None:
            raise failure(
                "W616",
                f"different instances of block {block.name!r} may store the same element of {buffer.name!r}",
                tree,
                block,
            )
        cache = fresh_buffer(
            buffer, {}, name=base, shape=tuple(shape), scope=scope, data=None, strides=None, elem_offset=None
        )
        name = tree.fresh_block_name(cache.name)
        fresh = [replace(item, var=PrimVar(f"v{i}", item.var.dtype), kind="spatial") for i, item in enumerate(items)]
        own = {old.var: new.var for old, new in zip(items, fresh, strict=True)}
        there = tuple(substitute(index, own) for index in indices)
        here = tuple(substitute(target, own) for target in targets)
        store = (
            BufferStore(cache, BufferLoad(buffer, there), here)
            if kind == "read"
            else BufferStore(buffer, BufferLoad(cache, here), there)
        )
        copy = nest_over(name, fresh, store)

        def load(node: BufferLoad) -> BufferLoad | None:
            return BufferLoad(cache, tuple(targets), span=node.span) if node.buffer is buffer else None

        def stored(node: BufferStore) -> BufferStore | None:
            return BufferStore(cache, node.value, tuple(targets), span=node.span) if node.buffer is buffer else None

        new = map_buffers(block, load=load, store=stored if kind == "write" else None, touched=[buffer])
        assert isinstance(new, Block)
        before, after = (copy, None) if kind == "read" else (None, copy)
        self._set(tree, inserted(tree, place, before, after, cache, [(block, without_regions(new))]))
        return self._block_handle(tree.name, name)


def _differs(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return not structural_equal(tuple(a), tuple(b))


def _require_inside(tree: Tree, block: Block, buffer: Buffer, indices: Sequence[PrimExpr], point: Point) -> None:
    """W611 unless indices are in range for the whole domain of a block, whatever conditions guard the access."""
    bounds = point.bounds()
    for item in block.iter_vars:
        bounds = bounds.with_range(item.var, item.start, item.extent)
    for index, extent in zip(indices, buffer.shape, strict=True):
        span, size = bounds.of(index), point.dim(extent)
        if span is None or not point.at_most(0, span.low) or not point.below(span.high, size):
            raise failure(
                "W611",
                f"the index {index.script()} of {buffer.name!r} may be outside of it where the block reads nothing",
                tree,
                block,
            )


def _places(tree: Tree, block: Block, known: IndexMap, point: Point) -> tuple[list[PrimExpr], list[Extent]]:
    """The indices that a map makes of the variables of a block, and the shape that they need."""
    names = {name: symbol(point.name(item.var)) for name, item in zip(known.names, block.iter_vars, strict=True)}
    sizes: list[Dim] = []
    for item in block.iter_vars:
        size = point.dim(item.extent)
        if size is None or item.start != 0:
            raise failure("W604", f"the domain of {item.var.name!r} is no dimension", tree, block)
        sizes.append(size)
    try:
        shape = known.sizes(tuple(sizes))
    except WeftError as error:
        raise failure("W604", error.message, tree, block, hint=error.hint) from None
    dtype = index_dtype(block)
    targets = [
        point.expr(substitute_dim(target, names) if not isinstance(target, int) else target, dtype)
        for target in known.targets
    ]
    return targets, [point.extent(size, dtype) for size in shape]
