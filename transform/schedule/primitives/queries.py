"""Primitives that look: blocks by name, the loops around them, what is in a scope, who computes and who reads."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.kernel.regions import block_accesses
from weft.ir.structure.visit import inner_statements
from weft.ir.tensor import Block, Buffer, BufferRegion, Stmt
from weft.transform.analysis.loops.dependence import private_buffers
from weft.transform.infra.registry import nearest
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.tree import Tree, blocks_in, buffers_of, loads_in, stores_in

__all__ = [
    "Queries",
    "consumers",
    "producers",
    "read_buffers",
    "regions_of",
    "scope_blocks",
    "written_buffers",
]


def written_buffers(block: Block) -> list[Buffer]:
    """The buffers that a block writes, in order: the declared ones, else those of its stores."""
    if block.writes is not None:
        return list(dict.fromkeys(region.buffer for region in block.writes))
    own = {*block.alloc_buffers}
    views = {match.buffer: match.source.buffer for match in block.match_buffers}
    for inner in blocks_in(block.body, nested=True):
        own.update(inner.alloc_buffers)
        views.update((match.buffer, match.source.buffer) for match in inner.match_buffers)
    found: dict[Buffer, None] = {}
    for store in stores_in(block.body):
        buffer = store.buffer
        while buffer in views:
            buffer = views[buffer]
        if buffer not in own:
            found[buffer] = None
    return list(found)


def read_buffers(block: Block) -> list[Buffer]:
    """The buffers that a block reads, in order; what a reduction reads of its own result is left out."""
    if block.reads is not None:
        return list(dict.fromkeys(region.buffer for region in block.reads))
    from_regions, _ = regions_of(block)
    return [region.buffer for region in from_regions]


def regions_of(block: Block) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """(reads, writes) of a block: as declared, else as its body does."""
    reads, writes = block_accesses(block)
    return (reads if block.reads is None else block.reads), (writes if block.writes is None else block.writes)


def scope_blocks(tree: Tree, stmt: Stmt) -> list[Block]:
    """The blocks of the scope that a statement is in, in order."""
    return list(blocks_in(tree.scope_body(stmt)))


def producers(tree: Tree, block: Block) -> list[Block]:
    """The blocks of the same scope that write what a block reads, before it."""
    wanted = set(buffers_of(block))
    others = scope_blocks(tree, block)
    before = others[: next(i for i, item in enumerate(others) if item is block)]
    return [item for item in before if wanted & set(written_buffers(item))]


def consumers(tree: Tree, block: Block) -> list[Block]:
    """The blocks of the same scope that read what a block writes, after it."""
    wanted = set(written_buffers(block))
    others = scope_blocks(tree, block)
    after = others[next(i for i, item in enumerate(others) if item is block) + 1 :]
    return [item for item in after if wanted & _loaded(item)]


def _loaded(block: Block) -> set[Buffer]:
    return {*read_buffers(block), *_updated(block)}


def _updated(block: Block) -> Iterable[Buffer]:
    """What a block without an init goes on from: it reads what it writes."""
    written = set(written_buffers(block))
    return (load.buffer for load in loads_in(block.body) if load.buffer in written) if block.init is None else ()


class Queries(ScheduleCore):
    """What a schedule tells about its functions."""

    @primitive
    def work_on(self, func_name: str) -> None:
        """Choose the function that names of blocks refer to; ScheduleError W601 when there is none of the name."""
        self._function = self._name_of_function(func_name)

    @primitive
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name; ScheduleError W602 when there is none. Equal names are told apart by numbers.

        "root" is the function itself where no block has the name: what `get_child_blocks` and `get_output_blocks` take.
        """
        if not isinstance(name, str):
            raise failure("W604", f"the name of a block is text, not {name!r}")
        return self._block_handle(*self._named(name, func_name))

    @primitive
    def get_sblock(self, name: str, func_name: str | None = None) -> BlockRV:
        """As `get_block`: the name that newer peers give it."""
        return self.get_block(name, func_name)

    @primitive
    def get_loop(self, name: str, func_name: str | None = None, number: int | None = None) -> LoopRV:
        """The loop whose variable has a name, for loops without blocks; ScheduleError W602 for none, or several.

        Of several loops of one name `number` says which, counted from 0 as the function is read.
        """
        function = self._name_of_function(func_name)
        found = [variable for variable in self._tree(function).loops if variable.name == name]
        if number is not None:
            found = found[number : number + 1] if type(number) is int and number >= 0 else []
        if len(found) != 1:
            known = sorted({variable.name for variable in self._tree(function).loops})
            count = "several loops" if found else "no loop"
            raise failure(
                "W602",
                f"function {function!r} has {count} {name!r}",
                hint="number=0 is the first; get_loops of a block tells them apart" if found else nearest(name, known),
            )
        return self._loop_handle(function, found[0])

    @primitive
    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block in its scope, from the outside in."""
        tree, found = self._block(block)
        return [self._loop_handle(tree.name, loop.loop_var) for loop in tree.loops_around(found)]

    @primitive
    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV | str) -> list[BlockRV]:
        """The blocks directly inside a block or a loop, in order."""
        tree, roots = self._inside(block_or_loop)
        return [self._block_handle(tree.name, block.name) for root in roots for block in blocks_in(root)]

    @primitive
    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of its scope that write what a block reads."""
        tree, found = self._block(block)
        return [self._block_handle(tree.name, item.name) for item in producers(tree, found)]

    @primitive
    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks of its scope that read what a block writes."""
        tree, found = self._block(block)
        return [self._block_handle(tree.name, item.name) for item in consumers(tree, found)]

    @primitive
    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks in a scope that write something which outlives it."""
        tree, roots = self._inside(scope_block)
        block = tree.block(scope_block if isinstance(scope_block, str) else self._keys[scope_block][1])
        local = {buffer for root in roots for buffer in private_buffers(root)}
        local |= set() if block is None else {*block.alloc_buffers}
        found = [item for root in roots for item in blocks_in(root)]
        return [self._block_handle(tree.name, b.name) for b in found if set(written_buffers(b)) - local]

    def _inside(self, handle: BlockRV | LoopRV | str) -> tuple[Tree, tuple[Stmt, ...]]:
        """The statements directly in a block or loop; those of the function for the root."""
        if isinstance(handle, LoopRV):
            tree, loop = self._loop(handle)
            return tree, (loop.body,)
        name, key = self._named(handle) if isinstance(handle, str) else self._key(handle, BlockRV, "block")
        tree = self._tree(name)
        if key == "root" and key not in tree.blocks:
            return tree, (tree.function.body,)
        tree, block = self._block(handle)
        return tree, inner_statements(block)
