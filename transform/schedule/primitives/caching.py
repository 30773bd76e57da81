"""Primitives that put copies between buffers and blocks.

cache_read        what a block reads is copied into a buffer of another scope first
cache_write       what a block writes goes into a buffer of another scope, and is copied from there after it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import WeftError
from weft.ir import replace, structural_equal, substitute
from weft.ir.kernel.index_map import index_map_text
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IterVar,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.loops.affine import Bindings, Value
from weft.transform.analysis.loops.points import Point
from weft.transform.analysis.loops.touched_ranges import Span, inside, iterated_box, stored_box, touched
from weft.transform.schedule.buffers import bindings_of, empty_cases, with_allocation, writers
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.queries import read_buffers, scope_blocks, written_buffers
from weft.transform.schedule.rebuild import nest_of_loops
from weft.transform.schedule.tree import (
    Tree,
    blocks_in,
    buffers_of,
    loads_in,
    sequence,
    stores_in,
)

__all__ = [
    "Caching",
    "Choice",
    "Where",
    "buffer_of",
    "cache_of",
    "index_dtype",
    "inserted",
    "nest_over",
    "read_map",
    "where_of",
    "word",
]

Choice = int | str
Where = tuple[str, int] | str


class Caching(ScheduleCore):
    """Copies of buffers."""

    @primitive
    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: Choice,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy what blocks read of a buffer into a buffer of another scope, and let them read that one.

        The buffer is given by its place among those that the block reads, or by its name; `consumer_blocks` None: all
        blocks of the scope that read it. Gives the block that copies. ScheduleError W604 no such buffer, W613 when the
        buffer changes while it is read.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, read_buffer_index, "read")
        order = scope_blocks(tree, found)
        readers = [item for item in order if buffer in buffers_of(item) and not stores_in(item, buffer)]
        if found not in readers:
            raise failure("W613", f"block {found.name!r} also writes {buffer.name!r}", tree, found)
        if consumer_blocks is not None:
            chosen = [self._block(item)[1] for item in consumer_blocks]
            readers = [item for item in readers if item in chosen or item is found]
        makers = [item for item in order if buffer in written_buffers(item)]
        places = {tree.place_of(item) for item in readers}
        first = tree.order(list(places))[0]
        shared = next((item for item in makers if tree.place_of(item) in places), None)
        late = next((item for item in makers if order.index(item) > min(map(order.index, readers))), shared)
        if late is not None:
            raise failure("W613", f"block {late.name!r} writes {buffer.name!r} where it is read", tree, late)
        point = Point.around(tree, first)
        spans = inside(touched(readers_with_loops(tree, readers), buffer, point), buffer, point)
        if spans is None:
            raise failure("W604", f"the sizes of {buffer.name!r} are no dimensions", tree, found)
        cache = cache_of(buffer, storage_scope)
        name = tree.fresh_block_name(cache.name)
        copy = _copy(name, buffer, cache, spans, point, index_dtype(found))
        changes: list[tuple[Stmt, Stmt]] = [(item, substitute(item, {buffer: cache})) for item in readers]
        self._set(tree, inserted(tree, first, copy, None, cache, changes))
        return self._block_handle(tree.name, name)

    @primitive
    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: Choice,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Let a block write into a buffer of another scope, and copy from there after it.

        `consumer_blocks` are those that read the new buffer instead of the old one (the ones in the same loops always
        do). Gives the block that copies. ScheduleError W604 no such buffer, W611 when not a whole box of it is written,
        W613 when the block goes on with what others have set, unless they do so in the same loops.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, write_buffer_index, "write")
        place = tree.place_of(found)
        point = Point.around(tree, place)
        spans = _written_box(tree, found, buffer, place, point)
        chosen = [self._block(item)[1] for item in consumer_blocks or ()]
        others = [item for item in scope_blocks(tree, found) if item is not found and buffer in buffers_of(item)]
        empty = empty_cases(tree, found, buffer)
        moved = [item for item in others if item in chosen or item in empty or tree.place_of(item) is place]
        cache = cache_of(buffer, storage_scope)
        name = tree.fresh_block_name(cache.name)
        copy = _copy(name, cache, buffer, spans, point, index_dtype(found))
        changes: list[tuple[Stmt, Stmt]] = [(item, substitute(item, {buffer: cache})) for item in (found, *moved)]
        self._set(tree, inserted(tree, place, None, copy, cache, changes))
        return self._block_handle(tree.name, name)


def _written_box(tree: Tree, block: Block, buffer: Buffer, place: Stmt, point: Point) -> list[Span]:
    """The box of elements that a block, and blocks beside it, set anew in a nest; else W611, W613 or W615."""
    stops = tree.conditions_around(block)
    if stops:
        raise failure("W615", f"the block {block.name!r} runs under a condition", tree, stops[0])
    beside = [item for item in blocks_in(place) if item is not block and stores_in(item, buffer)]
    known = {store for item in (block, *beside) for store in stores_in(item, buffer)}
    if _goes_on(tree, block, buffer, bool(beside)):
        raise failure(
            "W613",
            f"block {block.name!r} goes on with elements of {buffer.name!r} that others have set",
            tree,
            block,
            hint="cache_inplace copies them before and back",
        )
    if any(store not in known for store in stores_in(place, buffer)):
        raise failure("W613", f"{buffer.name!r} is also written by other code of these loops", tree, place)
    empty = empty_cases(tree, block, buffer)
    for item in beside:
        if item not in empty:
            _require_set_before(tree, item, block, buffer)
    bindings = bindings_of(tree, block)
    whole = bindings.is_affine and bindings.covers()
    spans = stored_box(block, buffer, point, tree.loops_around(block)) if whole else None
    if not stores_in(block, buffer):
        spans = _declared_box(tree, block, buffer, point)
    elif spans is None and _reaches_all_steps(bindings, block):
        spans = iterated_box(nest_of_loops(tree.loops_around(block), block), buffer, point)
    if spans is None:
        raise failure(
            "W611",
            f"the elements of {buffer.name!r} that block {block.name!r} writes are not one box, all of which it writes",
            tree,
            block,
            hint="cache_write before loops are split, or of a block over a whole box",
        )
    return spans


def _declared_box(tree: Tree, block: Block, buffer: Buffer, point: Point) -> list[Span] | None:
    """The box that a block declares to write by addresses that it takes, where nothing else writes the buffer."""
    others = [item for item in tree.blocks.values() if item is not block and not tree.is_above(block, item)]
    declared = [region for region in block.writes or () if region.buffer is buffer]
    if len(declared) != 1 or any(buffer in written_buffers(item) for item in others) or block.predicate is not None:
        return None
    loops = [
        For(PrimVar(f"r{i}", index_dtype(block)), 0, part.extent, block) for i, part in enumerate(declared[0].region)
    ]
    at = zip(declared[0].region, loops, strict=True)
    indices = tuple(binary("add", as_expr(part.start, loop.loop_var.dtype), loop.loop_var) for part, loop in at)
    store = BufferStore(buffer, const(0, buffer.dtype), indices)
    stored = replace(block, body=nest_of_loops(loops, store), init=None, alloc_buffers=(), match_buffers=())
    return iterated_box(nest_of_loops(tree.loops_around(block), stored), buffer, point)


def _goes_on(tree: Tree, block: Block, buffer: Buffer, is_set_beside: bool) -> bool:
    """Whether a block reads elements of a buffer that it writes as they were before its nest."""
    loads = _loads_of_old(block, buffer, is_set=is_set_beside)
    if tree.allocated_at(buffer) is not None and writers(tree, buffer) == [block]:
        return False
    return bool(loads)


def _loads_of_old(block: Block, buffer: Buffer, *, is_set: bool = False) -> list[BufferLoad]:
    """The loads of a buffer in a block that may be of what was there before: not those of what its inits set."""
    inner = list(blocks_in(block.body))
    found = [load for item in inner for load in _loads_of_old(item, buffer)]
    nested = {load for item in inner for load in loads_in(item, buffer)}
    own = [load for load in loads_in(block.body, buffer) if load not in nested]
    stored = stores_in(block.body, buffer)
    if block.init is not None or is_set:
        own = [load for load in own if not stored or not structural_equal(load.indices, stored[0].indices)]
    return [*found, *own] if stored else []


def _reaches_all_steps(bindings: Bindings, block: Block) -> bool:
    """Whether loops run over all steps of a block's reduction; without an init it has none."""
    if block.predicate is not None or any(item.init is not None for item in blocks_in(block.body, nested=True)):
        return False
    point = bindings.reader.point
    for item in block.iter_vars:
        value, size = bindings.values[item.var], bindings.extents[item.var]
        if item.kind == "spatial" or block.init is None:
            continue
        count = None if value is None else bindings.reader.extent_of(Value(value.terms))
        if value is None or count is None or not point.same(value.base, 0) or not point.same(count, size):
            return False
    return True


def _require_set_before(tree: Tree, setter: Block, block: Block, buffer: Buffer) -> None:
    """W613 unless a block sets what another one goes on with, in the same iterations of the loops that they share."""
    own, others = tree.loops_around(block), tree.loops_around(setter)
    shared = [loop for loop in own if loop in others]
    sets = not loads_in(setter, buffer) and setter.predicate is None and not tree.conditions_around(setter)
    before = tree.order([setter, block])[0] is setter
    point = Point.around(tree, block).copy() if not shared else Point.inside(tree, shared[-1])
    boxes = [
        iterated_box(nest_of_loops(around[len(shared) :], replace(item, init=None)), buffer, point)
        for item, around in ((setter, others), (block, own))
    ]
    if not (sets and before and boxes[0] is not None and boxes[0] == boxes[1]):
        raise failure(
            "W613",
            f"{buffer.name!r} is also written by block {setter.name!r} in the same loops",
            tree,
            block,
            hint="compute_at, or loops of their own, take the blocks apart",
        )


def inserted(
    tree: Tree,
    place: Stmt,
    before: Stmt | None,
    after: Stmt | None,
    buffer: Buffer,
    changes: Sequence[tuple[Stmt, Stmt]],
) -> PrimFunc:
    """The function with statements around one of a scope's sequence, a buffer allocated in the scope, and changes."""
    scope = tree.scope(place)
    inner = [pair for pair in changes if pair[0] is place or tree.is_above(place, pair[0])]
    outer = [pair for pair in changes if pair not in inner]
    small = Tree("", replace(tree.function, body=place))
    changed = small.replaced(*inner).body if inner else place
    new = sequence([part for part in (before, changed, after) if part is not None])
    function = tree.replaced((place, new), *outer)
    return with_allocation(function, scope, buffer)


def cache_of(buffer: Buffer, scope: str) -> Buffer:
    """A new buffer in another scope with the elements of a buffer."""
    return fresh_buffer(
        buffer, {}, name=f"{buffer.name}_{word(scope)}", scope=scope, data=None, strides=None, elem_offset=None
    )


def read_map(index_map: Any) -> str:
    """The text of an index map given as text or function; W604 when it is none."""
    try:
        return index_map_text(index_map)
    except WeftError as error:
        raise failure("W604", error.message, hint=error.hint) from None


def buffer_of(tree: Tree, block: Block, choice: Choice, kind: str) -> Buffer:
    """A buffer that a block reads or writes, by place or by name; W604 when there is none."""
    found = read_buffers(block) if kind == "read" else written_buffers(block)
    if isinstance(choice, int) and not isinstance(choice, bool) and 0 <= choice < len(found):
        return found[choice]
    named = [buffer for buffer in found if buffer.name == choice]
    if len(named) == 1:
        return named[0]
    names = ", ".join(f"{i}: {buffer.name}" for i, buffer in enumerate(found)) or "nothing"
    raise failure(
        "W604", f"the block {block.name!r} {kind}s no buffer {choice!r}", tree, block, hint=f"it {kind}s {names}"
    )


def where_of(tree: Tree, block: Block, where: Where) -> tuple[str, Buffer]:
    """("read" or "write", the buffer) that a user means; W604 when there is none."""
    if isinstance(where, str):
        kinds = [
            kind
            for kind in ("read", "write")
            if any(b.name == where for b in (read_buffers(block) if kind == "read" else written_buffers(block)))
        ]
        return (kinds or ["read"])[-1], buffer_of(tree, block, where, (kinds or ["read"])[-1])
    if isinstance(where, (tuple, list)) and len(where) == 2 and where[0] in ("read", "write"):
        return where[0], buffer_of(tree, block, where[1], where[0])
    raise failure(
        "W604",
        f"{where!r} names no buffer of block {block.name!r}",
        tree,
        block,
        hint='("read", 0), ("write", 0) or a name',
    )


def readers_with_loops(tree: Tree, blocks: Sequence[Block]) -> list[Stmt]:
    """Each block in the loops of its scope."""
    return [nest_of_loops(tree.loops_around(block), block) for block in blocks]


def word(scope: str) -> str:
    """The name of a scope as a part of a name."""
    return "".join(char if char.isalnum() else "_" for char in scope)


def index_dtype(block: Block) -> str:
    """The dtype of the variables of a block."""
    return block.iter_vars[0].var.dtype if block.iter_vars else "int32"


def _copy(name: str, source: Buffer, target: Buffer, spans: Sequence[Span], point: Point, dtype: str) -> Stmt:
    """Loops and a block that copy a box of one buffer to the same place of another."""
    items: list[IterVar] = []
    indices: list[PrimExpr] = []
    for position, (low, high) in enumerate(spans):
        variable = PrimVar(f"v{position}", dtype)
        items.append(IterVar(variable, 0, point.extent(high - low + 1, dtype), "spatial"))
        at_zero = isinstance(low, int) and low == 0
        indices.append(variable if at_zero else binary("add", point.expr(low, dtype), variable))
    return nest_over(name, items, BufferStore(target, BufferLoad(source, tuple(indices)), tuple(indices)))


def nest_over(name: str, items: Sequence[IterVar], body: Stmt) -> Stmt:
    """A block over the domains of its variables, each in a loop."""
    loops = [For(PrimVar(f"ax{i}", item.var.dtype), item.start, item.extent, body) for i, item in enumerate(items)]
    own = tuple(replace(item, value=loop.loop_var) for item, loop in zip(items, loops, strict=True))
    return nest_of_loops(loops, Block(name, body, own))
