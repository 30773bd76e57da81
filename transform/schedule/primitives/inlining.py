"""Primitives that put one block into another: a producer into its readers, a reader into its producer.

compute_inline           y[i] = x[i] + 1; z[i] = y[i] * 2        becomes z[i] = (x[i] + 1) * 2
reverse_compute_inline   the same from the side of the reader
"""

from __future__ import annotations

from weft.ir import replace, rewrite, structural_equal, substitute, walk
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.kernel.regions import Bounds, accesses
from weft.ir.node import Node
from weft.ir.tensor import Block, Buffer, BufferLoad, BufferStore, PrimCall, PrimExpr, PrimVar, SeqStmt
from weft.transform.analysis.loops.inverted_indices import inverted
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.buffers import (
    nest_blocks,
    reads_of,
    require_complete,
    require_covering,
    require_local,
    require_unchanged,
    without_allocation,
)
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.queries import scope_blocks, written_buffers
from weft.transform.schedule.rebuild import all_of
from weft.transform.schedule.tree import Tree, buffers_of, loads_in, map_buffers, without_regions

__all__ = ["Inlining", "certain_load", "one_load", "only_store", "require_free_between", "require_readers_after"]


class Inlining(ScheduleCore):
    """Blocks put into one another."""

    @primitive
    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute the values of a block where they are read, and remove the block and its buffer.

        The block stores one value at its own variables, each in an index of its own. ScheduleError W609 a block that
        computes anything else, W612 a parameter, W613 readers that the value cannot move to.
        """
        tree, found = self._block(block)
        buffer = require_complete(tree, found)
        require_local(tree, found, buffer)
        store = only_store(tree, found)
        places = _bare_indices(tree, found, store)
        require_covering(tree, found)
        require_readers_after(tree, found, buffer)
        require_unchanged(tree, found, reads_of(found))
        rest = {item.var: as_expr(item.start, item.var.dtype) for item in found.iter_vars}

        def inlined(load: BufferLoad) -> PrimExpr | None:
            if load.buffer is not buffer:
                return None
            values = {**rest, **{var: load.indices[position] for position, var in places.items()}}
            return substitute(store.value, {var: cast(var.dtype, value) for var, value in values.items()})

        function = tree.replaced((found, SeqStmt()))
        function = replace(function, body=map_buffers(function.body, load=inlined, touched=[buffer]))
        self._set(tree, without_allocation(function, buffer))

    @primitive
    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Do what a block does with each element of its input where that element is computed.

        The block reads one element of a buffer that one complete block computes; its indices determine the variables of
        the block. The producer gets a condition where it computes more elements than are read. ScheduleError W609,
        W612, W613 for blocks that do not fit, W616 when the indices cannot be turned round.
        """
        tree, found = self._block(block)
        output = require_complete(tree, found)
        store = only_store(tree, found)
        require_covering(tree, found)
        producer, source = _only_producer(tree, found)
        require_local(tree, found, source)
        require_complete(tree, producer)
        _require_only_reader(tree, found, source)
        require_covering(tree, producer)
        target = only_store(tree, producer)
        load = certain_load(tree, found, source)
        require_free_between(tree, producer, found, output)
        sizes = {item.var: (item.start, item.extent) for item in found.iter_vars}
        answer = inverted(load.indices, sizes, target.indices, Point.inside(tree, producer))
        if answer is None:
            raise failure(
                "W616",
                f"the indices of {source.name!r} in block {found.name!r} cannot be turned round",
                tree,
                found,
                hint="each variable of the block stands in one index, as it is or as digits of it",
            )
        values, conditions = answer

        def loaded(node: Node) -> Node | None:
            return target.value if isinstance(node, BufferLoad) and node.buffer is source else None

        moved = substitute(rewrite(store, pre=loaded), values)
        own = {item.var: cast(item.var.dtype, item.value) for item in producer.iter_vars if item.value is not None}
        predicate = all_of((producer.predicate, *(substitute(part, own) for part in conditions)))
        new = without_regions(replace(producer, body=moved, predicate=predicate))
        function = tree.replaced((producer, new), (found, SeqStmt()))
        self._set(tree, without_allocation(function, source))


def only_store(tree: Tree, block: Block) -> BufferStore:
    """The store that a block's body is; else W609."""
    store = block.body
    if not isinstance(store, BufferStore) or store.predicate is not None:
        raise failure("W609", f"the block {block.name!r} is more than one store", tree, block)
    return store


def one_load(tree: Tree, block: Block, buffer: Buffer) -> BufferLoad:
    """The one element of a buffer that a block reads; else W613."""
    loads = loads_in(block.body, buffer)
    if not loads or any(not structural_equal(load.indices, loads[0].indices) for load in loads[1:]):
        raise failure("W613", f"the block {block.name!r} reads several elements of {buffer.name!r}", tree, block)
    return loads[0]


def certain_load(tree: Tree, block: Block, buffer: Buffer) -> BufferLoad:
    """The one element of a buffer that each instance of a block reads, whatever conditions hold; else W613.

    An instance that need not read would be lost where only those run whose elements are computed.
    """
    load = one_load(tree, block, buffer)
    if not any(x.buffer is buffer and x.kind == "read" and x.certain for x in accesses(block.body, Bounds())):
        raise failure("W613", f"the block {block.name!r} reads {buffer.name!r} under a condition", tree, block)
    return load


def _bare_indices(tree: Tree, block: Block, store: BufferStore) -> dict[int, PrimVar]:
    """The block variable that each index of a store is; W609 when one is anything else, or a variable is missing."""
    found: dict[int, PrimVar] = {}
    names = {item.var for item in block.iter_vars}
    for position, index in enumerate(store.indices):
        single = store.buffer.shape[position] == 1
        if isinstance(index, PrimVar) and index in names and index not in found.values():
            found[position] = index
        elif not single:
            raise failure(
                "W609",
                f"the index {index.script()} of {store.buffer.name!r} is not a variable of block"
                f" {block.name!r} of its own",
                tree,
                block,
            )
    missing = [item for item in block.iter_vars if item.var not in found.values() and item.extent != 1]
    if missing:
        raise failure(
            "W609", f"the variable {missing[0].var.name!r} is in no index of {store.buffer.name!r}", tree, block
        )
    return found


def require_readers_after(tree: Tree, block: Block, buffer: Buffer) -> list[Block]:
    """The blocks that read a buffer, all of them after its block and by plain loads; else W613."""
    others = scope_blocks(tree, block)
    after = others[next(i for i, item in enumerate(others) if item is block) + 1 :]
    readers = [item for item in after if buffer in buffers_of(item)]
    counted = sum(len(loads_in(item, buffer)) for item in (block, *readers))
    if counted != len(loads_in(tree.function.body, buffer)):
        early = next(
            (item for item in others if item not in after and item is not block and loads_in(item, buffer)), None
        )
        where = f"block {early.name!r}" if early is not None else "code outside of the blocks of its scope"
        raise failure("W613", f"{buffer.name!r} is read by {where}", tree, early or block)
    if not readers:
        raise failure("W613", f"nothing reads {buffer.name!r}", tree, block)
    for item in readers:
        if _passes_on(item, buffer):
            raise failure("W613", f"block {item.name!r} uses {buffer.name!r} by its address", tree, item)
    return readers


def _passes_on(block: Block, buffer: Buffer) -> bool:
    for part in walk(block):
        if isinstance(part, PrimCall):
            taken = part.args[0] if part.op == "address_of" and part.args else None
            if buffer in part.args or (isinstance(taken, BufferLoad) and taken.buffer is buffer):
                return True
        elif isinstance(part, Block) and any(match.source.buffer is buffer for match in part.match_buffers):
            return True
    return False


def _only_producer(tree: Tree, block: Block) -> tuple[Block, Buffer]:
    """The one block of the scope that computes what a block reads, and the buffer; else W613."""
    others = scope_blocks(tree, block)
    before = others[: next(i for i, item in enumerate(others) if item is block)]
    reads = reads_of(block)
    pairs = [(item, buffer) for item in before for buffer in written_buffers(item) if buffer in reads]
    local = [(item, buffer) for item, buffer in pairs if buffer not in tree.function.params]
    if len(local) != 1:
        names = ", ".join(repr(item.name) for item, _ in local) or "no block"
        raise failure("W613", f"what block {block.name!r} reads is computed by {names}, not by one block", tree, block)
    return local[0]


def _require_only_reader(tree: Tree, block: Block, buffer: Buffer) -> None:
    own = set(loads_in(block, buffer))
    for item in tree.blocks.values():
        if item is not block and set(loads_in(item, buffer)) - own:
            raise failure("W613", f"{buffer.name!r} is also read by block {item.name!r}", tree, item)
    if _passes_on(block, buffer) or len(own) != len(set(loads_in(tree.function.body, buffer))):
        raise failure("W613", f"{buffer.name!r} is also used outside of block {block.name!r}", tree, block)


def require_free_between(tree: Tree, producer: Block, block: Block, output: Buffer) -> None:
    """W613 when something beside two blocks, from the nest of the first on, touches what the second one needs."""
    others = scope_blocks(tree, block)
    ends = [next(i for i, item in enumerate(others) if item is each) for each in (producer, block)]
    between = [*others[ends[0] + 1 : ends[1]], *nest_blocks(tree, producer), *nest_blocks(tree, block)]
    needed = reads_of(block)
    for item in between:
        if item is producer or item is block:
            continue
        if output in buffers_of(item):
            raise failure(
                "W613", f"block {item.name!r} uses {output.name!r} before block {block.name!r} is done", tree, item
            )
        changed = needed & set(written_buffers(item))
        if changed:
            raise failure(
                "W613",
                f"block {item.name!r} computes {next(iter(changed)).name!r}, which block {block.name!r} reads",
                tree,
                item,
            )
