"""Primitives that put copies between buffers and blocks, and those that change buffers as they are.

cache_read        what a block reads is copied into a buffer of another scope first
cache_write       what a block writes goes into a buffer of another scope, and is copied from there after it
reindex           the same with a buffer that has the block's own variables as indices
reindex_cache_read, reindex_cache_write    the same with indices that are given
set_scope, storage_align, unsafe_set_dtype   the scope, the strides, the dtype of a buffer
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.dtypes import check_dtype, is_float, is_integer
from weft.errors import WeftError
from weft.ir import replace, rewrite, structural_equal, substitute
from weft.ir.dim import Dim, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.index_map import IndexMap, index_map_text, read_index_map
from weft.ir.node import Node
from weft.ir.prim import binary, cast
from weft.ir.prim_dim import symbol_names
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IterVar,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.inverted_indices import solved
from weft.transform.analysis.points import Point, variables_in
from weft.transform.analysis.touched_ranges import Span, inside, stored_box, touched
from weft.transform.schedule.buffers import (
    empty_cases,
    require_covering,
    require_local,
    require_sole_writer,
    with_allocation,
    writers,
)
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.inlining import one_load
from weft.transform.schedule.loops import times
from weft.transform.schedule.queries import read_buffers, scope_blocks, written_buffers
from weft.transform.schedule.rebuild import nest_of_loops
from weft.transform.schedule.tree import (
    Tree,
    buffers_of,
    map_buffers,
    sequence,
    stores_in,
    without_regions,
)

__all__ = [
    "Caching", "Choice", "Where", "buffer_of", "index_dtype", "nest_over", "read_map", "where_of",
    "word",
]  # fmt: skip

Choice = int | str
Where = tuple[str, int] | str


class Caching(ScheduleCore):
    """Copies of buffers, and changes of them."""

    @primitive
    def cache_read(
        self, block: BlockRV, read_buffer_index: Choice, storage_scope: str,
        consumer_blocks: Sequence[BlockRV] | None = None,
    ) -> BlockRV:  # fmt: skip
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
        cache = fresh_buffer(buffer, {}, name=f"{buffer.name}_{word(storage_scope)}", scope=storage_scope, data=None,
                             strides=None, elem_offset=None)  # fmt: skip
        name = tree.fresh_block_name(cache.name)
        copy = _copy(name, buffer, cache, spans, point, index_dtype(found))
        changes: list[tuple[Stmt, Stmt]] = [(item, substitute(item, {buffer: cache})) for item in readers]
        self._insert(tree, first, copy, None, cache, changes)
        return self._block_handle(tree.name, name)

    @primitive
    def cache_write(
        self, block: BlockRV, write_buffer_index: Choice, storage_scope: str,
        consumer_blocks: Sequence[BlockRV] | None = None,
    ) -> BlockRV:  # fmt: skip
        """Let a block write into a buffer of another scope, and copy from there after it.

        `consumer_blocks` are those that read the new buffer instead of the old one (the ones in the same loops always
        do). Gives the block that copies. ScheduleError W604 no such buffer, W611 when not a whole box of it is written.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, write_buffer_index, "write")
        require_sole_writer(tree, found, buffer)
        require_covering(tree, found)
        place = tree.place_of(found)
        point = Point.around(tree, place)
        spans = stored_box(found, buffer, point, tree.loops_around(found))
        if spans is None:
            raise failure("W611", f"the elements of {buffer.name!r} that block {found.name!r} writes are not one box",
                          tree, found)  # fmt: skip
        chosen = [self._block(item)[1] for item in consumer_blocks or ()]
        others = [item for item in scope_blocks(tree, found) if item is not found and buffer in buffers_of(item)]
        empty = empty_cases(tree, found, buffer)
        moved = [item for item in others if item in chosen or item in empty or tree.place_of(item) is place]
        cache = fresh_buffer(buffer, {}, name=f"{buffer.name}_{word(storage_scope)}", scope=storage_scope, data=None,
                             strides=None, elem_offset=None)  # fmt: skip
        name = tree.fresh_block_name(cache.name)
        copy = _copy(name, cache, buffer, spans, point, index_dtype(found))
        changes: list[tuple[Stmt, Stmt]] = [(item, substitute(item, {buffer: cache})) for item in (found, *moved)]
        self._insert(tree, place, None, copy, cache, changes)
        return self._block_handle(tree.name, name)

    @primitive
    def reindex(self, block: BlockRV, buffer: Where) -> BlockRV:
        """Put a buffer between a block and one that it accesses, whose indices are the block's variables there.

        The buffer is ("read", i), ("write", i) or a name. Gives the block that copies. ScheduleError W613 several ways
        to access it, W611 accesses that may be outside, W616 stores that are not one to one.
        """
        tree, found = self._block(block)
        kind, target = where_of(tree, found, buffer)
        return self._reindexed(tree, found, kind, target, None, target.scope, f"{target.name}_reindex")

    @primitive
    def reindex_cache_read(
        self, block: BlockRV, read_buffer_index: Choice, storage_scope: str, index_map: Any
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
        self, block: BlockRV, write_buffer_index: Choice, storage_scope: str, index_map: Any
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
                raise failure("W613", f"{buffer.name!r} is also written where the sum has no terms", tree, block,
                              hint="decompose_reduction first")  # fmt: skip
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
            raise failure("W609", f"the indices of {buffer.name!r} are not over the variables of block {block.name!r}",
                          tree, block)  # fmt: skip
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
        if solved(targets, sizes, targets, point) is None:
            raise failure("W616", "the new indices do not tell the variables apart", tree, block)
        if kind == "write" and solved(indices, sizes, indices, point) is None:
            raise failure("W616", f"different instances of block {block.name!r} may store the same element of"
                          f" {buffer.name!r}", tree, block)  # fmt: skip
        cache = fresh_buffer(buffer, {}, name=base, shape=tuple(shape), scope=scope, data=None, strides=None,
                             elem_offset=None)  # fmt: skip
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
        self._insert(tree, place, before, after, cache, [(block, without_regions(new))])
        return self._block_handle(tree.name, name)

    def _insert(
        self, tree: Tree, place: Stmt, before: Stmt | None, after: Stmt | None, buffer: Buffer,
        changes: Sequence[tuple[Stmt, Stmt]],
    ) -> None:  # fmt: skip
        """Put statements around one of the scope's sequence, allocate a buffer in the scope, and make other changes."""
        scope = tree.scope(place)
        inner = [pair for pair in changes if pair[0] is place or tree.is_above(place, pair[0])]
        outer = [pair for pair in changes if pair not in inner]
        small = Tree("", replace(tree.function, body=place))
        changed = small.replaced(*inner).body if inner else place
        new = sequence([part for part in (before, changed, after) if part is not None])
        function = tree.replaced((place, new), *outer)
        self._set(tree, with_allocation(function, scope, buffer))

    # Buffers as they are ----------------------------------------------------------------------------------------------

    @primitive
    def set_scope(self, block: BlockRV, buffer_index: Choice, storage_scope: str) -> None:
        """Keep a buffer that a block writes in another kind of memory; W612 for parameters."""
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, buffer_index, "write")
        self._changed(tree, found, buffer, scope=storage_scope)

    @primitive
    def storage_align(self, block: BlockRV, buffer_index: Choice, axis: int, factor: int, offset: int) -> None:
        """Lay a buffer that a block writes out so that the stride of an axis is k * factor + offset for some k.

        ScheduleError W604 an axis or factor that makes no sense, W612 a parameter.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, buffer_index, "write")
        factor, offset = self._number(factor), self._number(offset)
        place = axis + buffer.ndim if axis < 0 else axis
        if not 0 <= place < buffer.ndim or factor < 1 or not 0 <= offset < factor:
            raise failure("W604", f"axis {axis}, factor {factor} and offset {offset} do not fit {buffer.name!r} of"
                          f" {buffer.ndim} dimensions", tree, found)  # fmt: skip
        strides: list[Extent] = [1] * buffer.ndim
        for position in range(buffer.ndim - 1, -1, -1):
            if position + 1 < buffer.ndim:
                strides[position] = times(buffer.shape[position + 1], strides[position + 1])
            if position == place:
                old = strides[position]
                strides[position] = old + (offset - old) % factor
        self._changed(tree, found, buffer, strides=tuple(strides))

    @primitive
    def unsafe_set_dtype(self, block: BlockRV, buffer_index: Choice, dtype: str) -> None:
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
        require_local(tree, found, buffer)
        new = fresh_buffer(buffer, {}, **fields)

        def post(node: Node) -> Node | None:
            if isinstance(node, BufferStore) and node.buffer is buffer:
                return BufferStore(new, cast(new.dtype, node.value), node.indices, node.predicate, span=node.span)
            if isinstance(node, BufferLoad) and node.buffer is buffer:
                return cast(buffer.dtype, BufferLoad(new, node.indices, node.predicate, span=node.span))
            return None

        body = tree.function.body if new.dtype == buffer.dtype else rewrite(tree.function.body, post)
        self._set(tree, tree.with_body(substitute(body, {buffer: new})))


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
    raise failure("W604", f"the block {block.name!r} {kind}s no buffer {choice!r}", tree, block,
                  hint=f"it {kind}s {names}")  # fmt: skip


def where_of(tree: Tree, block: Block, where: Where) -> tuple[str, Buffer]:
    """("read" or "write", the buffer) that a user means; W604 when there is none."""
    if isinstance(where, str):
        kinds = [kind for kind in ("read", "write") if any(
            b.name == where for b in (read_buffers(block) if kind == "read" else written_buffers(block))
        )]  # fmt: skip
        return (kinds or ["read"])[-1], buffer_of(tree, block, where, (kinds or ["read"])[-1])
    if isinstance(where, (tuple, list)) and len(where) == 2 and where[0] in ("read", "write"):
        return where[0], buffer_of(tree, block, where[1], where[0])
    raise failure("W604", f"{where!r} names no buffer of block {block.name!r}", tree, block,
                  hint='("read", 0), ("write", 0) or a name')  # fmt: skip


def readers_with_loops(tree: Tree, blocks: Sequence[Block]) -> list[Stmt]:
    """Each block in the loops of its scope."""
    return [nest_of_loops(tree.loops_around(block), block) for block in blocks]


def word(scope: str) -> str:
    """The name of a scope as a part of a name."""
    return "".join(char if char.isalnum() else "_" for char in scope)


def index_dtype(block: Block) -> str:
    """The dtype of the variables of a block."""
    return block.iter_vars[0].var.dtype if block.iter_vars else "int32"


def _differs(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return not structural_equal(tuple(a), tuple(b))


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


def _require_inside(tree: Tree, block: Block, buffer: Buffer, indices: Sequence[PrimExpr], point: Point) -> None:
    """W611 unless indices are in range for the whole domain of a block, whatever conditions guard the access."""
    bounds = point.bounds()
    for item in block.iter_vars:
        bounds = bounds.with_range(item.var, item.start, item.extent)
    for index, extent in zip(indices, buffer.shape, strict=True):
        span, size = bounds.of(index), point.dim(extent)
        if span is None or not point.at_most(0, span.low) or not point.below(span.high, size):
            raise failure("W611", f"the index {index.script()} of {buffer.name!r} may be outside of it where the block"
                          " reads nothing", tree, block)  # fmt: skip


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
    targets = [point.expr(substitute_dim(target, names) if not isinstance(target, int) else target, dtype)
               for target in known.targets]  # fmt: skip
    return targets, [point.extent(size, dtype) for size in shape]
