"""Primitives that keep what a loop works on in memory of its own.

read_at, write_at   what an iteration of a loop reads, or writes, in a buffer of another scope
cache_inplace       a block that changes a buffer works on a copy of it
compact_buffer      a buffer only as large as one iteration needs it, allocated there
rolling_buffer      a buffer for a window that moves: what it had before stays, what comes new is computed
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import ScheduleError
from weft.ir import replace, substitute, walk
from weft.ir.dim import Dim, as_dim, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.kernel.prim_dim import symbol_names
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IterVar,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.loops.loop_carried import loops_inside, own_box, users
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.analysis.loops.touched_ranges import Span, names_of, touched
from weft.transform.schedule.buffers import (
    reads_of,
    require_local,
    require_plain_uses,
    require_sole_writer,
    with_allocation,
    without_allocation,
)
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.caching import Choice, buffer_of, cache_of, index_dtype, inserted
from weft.transform.schedule.primitives.queries import written_buffers
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.tree import (
    Tree,
    buffers_of,
    loads_in,
    map_buffers,
    sequence,
    statements_of,
    stores_in,
    without_regions,
)

__all__ = ["Buffering"]


class Buffering(ScheduleCore):
    """Buffers of loops."""

    @primitive
    def read_at(self, loop: LoopRV, block: BlockRV | str, read_buffer_index: Choice, storage_scope: str) -> BlockRV:
        """Copy what a block reads of a buffer in an iteration of a loop into a buffer of another scope, before that.

        Gives the block that copies. ScheduleError W605 a loop that is not around the block, W604 no such buffer, W613
        when the loop writes the buffer.
        """
        tree, found, target = self._under(block, loop)
        buffer = buffer_of(tree, found, read_buffer_index, "read")
        require_plain_uses(tree, found, buffer)
        writer = next((item for item in users(target.body, buffer) if buffer in written_buffers(item)), None)
        if writer is not None or stores_in(target.body, buffer):
            raise failure(
                "W613",
                f"block {(writer or found).name!r} writes {buffer.name!r} in the loop {target.loop_var.name!r}",
                tree,
                writer or found,
            )
        point = Point.inside(tree, target)
        nest = nest_of_loops(loops_inside(tree, found, target), found)
        cache = cache_of(buffer, storage_scope)
        name = tree.fresh_block_name(cache.name)
        spans = touched([nest], buffer, point)
        copy = _copied(name, buffer, cache, _ranges(spans, buffer, point, tree, found), point, index_dtype(found))
        parts = statements_of(target.body)
        place = next(i for i, part in enumerate(parts) if part is found or tree.is_above(part, found))
        small = Tree("", replace(tree.function, body=target.body))
        body = small.replaced((found, without_regions(substitute(found, {buffer: cache})))).body
        parts = statements_of(body)
        new = replace(target, body=sequence((*parts[:place], copy, *parts[place:])))
        self._set(tree, with_allocation(tree.replaced((target, new)), tree.scope(target), cache))
        return self._block_handle(tree.name, name)

    @primitive
    def write_at(self, loop: LoopRV, block: BlockRV | str, write_buffer_index: Choice, storage_scope: str) -> BlockRV:
        """Let an iteration of a loop work on a buffer of another scope, and copy what it wrote after that.

        Gives the block that copies. ScheduleError W605 a loop that is not around the block, W604 no such buffer, W614
        when an iteration goes on with what another one has left, or not a whole box of the buffer is written.
        """
        tree, found, target = self._under(block, loop)
        buffer = buffer_of(tree, found, write_buffer_index, "write")
        require_plain_uses(tree, found, buffer)
        point = Point.inside(tree, target)
        box = own_box(tree, target, buffer)
        cache = cache_of(buffer, storage_scope)
        name = tree.fresh_block_name(cache.name)
        copy = _copied(name, cache, buffer, _ranges(box, buffer, point, tree, found), point, index_dtype(found))
        changes = [(item, without_regions(substitute(item, {buffer: cache}))) for item in users(target.body, buffer)]
        parts = statements_of(target.body)
        last = max(i for i, part in enumerate(parts) if buffer in buffers_of(part))
        small = Tree("", replace(tree.function, body=target.body))
        parts = statements_of(small.replaced(*changes).body)
        new = replace(target, body=sequence((*parts[: last + 1], copy, *parts[last + 1 :])))
        self._set(tree, with_allocation(tree.replaced((target, new)), tree.scope(target), cache))
        return self._block_handle(tree.name, name)

    @primitive
    def cache_inplace(self, block: BlockRV | str, read_buffer_index: Choice, storage_scope: str) -> list[BlockRV]:
        """Let a block that reads and writes a buffer do so in a buffer of another scope: copied before, and back after.

        What else stands in the block's loops uses the new buffer too. Gives the two blocks that copy. ScheduleError
        W604 a buffer that the block does not both read and write, W613 loops that start it anew.
        """
        tree, found = self._block(block)
        written = written_buffers(found)
        both = [buffer for buffer in written if loads_in(found.body, buffer) and found.init is None]
        if isinstance(read_buffer_index, int) and not 0 <= read_buffer_index < len(both):
            names = ", ".join(f"{i}: {buffer.name}" for i, buffer in enumerate(both)) or "nothing"
            raise failure(
                "W604",
                f"the block {found.name!r} reads and writes no buffer {read_buffer_index!r}",
                tree,
                found,
                hint=f"it reads and writes {names}",
            )
        buffer = both[read_buffer_index] if isinstance(read_buffer_index, int) else None
        buffer = buffer or buffer_of(tree, found, read_buffer_index, "write")
        if buffer not in both:
            hint = "cache_write: the block starts anew" if found.init is not None else None
            raise failure(
                "W604", f"the block {found.name!r} does not go on from {buffer.name!r}", tree, found, hint=hint
            )
        require_plain_uses(tree, found, buffer)
        place = tree.place_of(found)
        first = users(place, buffer)[0]
        if first.init is not None or not loads_in(first.body, buffer):
            raise failure(
                "W613",
                f"block {first.name!r} starts {buffer.name!r} anew: nothing is there to copy before it",
                tree,
                first,
                hint="cache_write it",
            )
        point = Point.around(tree, place)
        cache = cache_of(buffer, storage_scope)
        names = [tree.fresh_block_name(cache.name)]
        names.append(tree.fresh_block_name(f"{cache.name}_back"))
        spans = _ranges(touched([place], buffer, point), buffer, point, tree, found)
        before = _copied(names[0], buffer, cache, spans, point, index_dtype(found))
        after = _copied(names[1], cache, buffer, spans, point, index_dtype(found))
        changes = [(item, without_regions(substitute(item, {buffer: cache}))) for item in users(place, buffer)]
        left = Tree("", replace(tree.function, body=place)).replaced(*changes).body
        if buffer in buffers_of(left):
            raise failure(
                "W613", f"code that is in no block uses {buffer.name!r} beside block {found.name!r}", tree, found
            )
        self._set(tree, inserted(tree, place, before, after, cache, changes))
        return [self._block_handle(tree.name, name) for name in names]

    def _under(self, block: BlockRV | str, loop: LoopRV) -> tuple[Tree, Block, For]:
        tree, found = self._block(block)
        other, target = self._loop(loop)
        if other is not tree or target not in tree.loops_around(found):
            message = f"the loop {target.loop_var.name!r} is not around block {found.name!r}"
            raise failure("W605", message, other, target)
        return tree, found, target

    @primitive
    def compact_buffer(self, block: BlockRV | str, write_buffer_index: Choice) -> None:
        """Allocate a buffer that a block writes in the innermost loop that may have its own, as small as is needed.

        That is a loop of which each iteration writes all elements before it uses them: after `compute_at` the one that
        the block was moved to. Iterations then share nothing of the buffer, so that the loop may become parallel.
        ScheduleError W612 a parameter, W605 uses that are in no loop together, W614 iterations that use what others
        have left.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, write_buffer_index, "write")
        require_local(tree, found, buffer)
        require_plain_uses(tree, found, buffer)
        target, box = _home(tree, found, buffer)
        point = Point.inside(tree, target)
        fixed = {point.name(variable) for variable in symbol_names(tree.function)}
        shape: list[Extent] = []
        starts: list[Dim] = []
        for (low, high), extent in zip(box, buffer.shape, strict=True):
            count, size = high - low + 1, point.dim(extent)
            smaller = names_of(count) <= fixed and (isinstance(count, int) or point.at_most(count, size))
            whole = isinstance(count, int) and isinstance(size, int) and count >= size
            shape.append(point.extent(count, "int64") if smaller and not whole else extent)
            starts.append(low if smaller and not whole else 0)
        new = fresh_buffer(buffer, {}, shape=tuple(shape))

        def moved(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
            return tuple(_less(index, start, point) for index, start in zip(indices, starts, strict=True))

        body = map_buffers(
            target.body,
            load=lambda node: BufferLoad(new, moved(node.indices), span=node.span) if node.buffer is buffer else None,
            store=lambda node: (
                BufferStore(new, node.value, moved(node.indices), span=node.span) if node.buffer is buffer else None
            ),
            touched=[buffer],
        )
        inner = replace(target, body=sequence((AllocBuffer(new), body)))
        self._set(tree, without_allocation(tree.replaced((target, inner)), buffer))

    @primitive
    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: Choice) -> None:
        """Keep the part of a buffer that the next iteration of a loop reads again, and compute only what it lacks.

        The block stands under a loop (`compute_at`) of which an iteration reads a window of the buffer that moves
        along one dimension by less than its length. That dimension becomes as long as the window: elements have places
        by their remainder. ScheduleError W612 a parameter, W613 uses in the way, W614 no such window.
        """
        tree, found = self._block(block)
        buffer = buffer_of(tree, found, write_buffer_index, "write")
        require_local(tree, found, buffer)
        require_plain_uses(tree, found, buffer)
        require_sole_writer(tree, found, buffer)
        window = _window(tree, found, buffer)
        if window is None:
            raise failure(
                "W614",
                f"no loop around block {found.name!r} moves a window over {buffer.name!r} by less than its length",
                tree,
                found,
                hint="compute_at the loop that moves it first",
            )
        target, axis, last, step, length = window
        own_box(tree, target, buffer)
        _require_same_each_time(tree, found, target)
        store = stores_in(found.body, buffer)[0]
        variable = store.indices[axis]
        dtype = variable.dtype
        point = Point.inside(tree, target)
        before = point.expr(last - step, dtype)  # the last element that the iteration before has left
        begins = binary("eq", target.loop_var, as_expr(target.start, target.loop_var.dtype))
        values = {item.var: item.value for item in found.iter_vars if item.value is not None}
        fresh = binary("or", begins, binary("lt", before, substitute(variable, values)))
        shape = tuple(point.extent(length, "int64") if i == axis else extent for i, extent in enumerate(buffer.shape))
        new = fresh_buffer(buffer, {}, shape=shape)

        def wrapped(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
            place = binary("floormod", indices[axis], point.expr(length, indices[axis].dtype))
            return (*indices[:axis], place, *indices[axis + 1 :])

        changed = replace(found, predicate=all_of((found.predicate, fresh)))
        body = map_buffers(
            tree.replaced((found, changed)).body,
            load=lambda node: BufferLoad(new, wrapped(node.indices), span=node.span) if node.buffer is buffer else None,
            store=lambda node: (
                BufferStore(new, node.value, wrapped(node.indices), span=node.span) if node.buffer is buffer else None
            ),
            touched=[buffer],
        )
        self._set(tree, tree.with_body(substitute(body, {buffer: new})))


def _ranges(
    spans: Sequence[Span | None], buffer: Buffer, point: Point, tree: Tree, block: Block
) -> list[tuple[Span, Dim]]:
    """For each dimension the range to copy (all of it where none is known), and its size."""
    found: list[tuple[Span, Dim]] = []
    for span, extent in zip(spans, buffer.shape, strict=True):
        size = point.dim(extent)
        if size is None:
            raise failure("W604", f"the sizes of {buffer.name!r} are no dimensions", tree, block)
        found.append(((0, size - 1) if span is None else span, size))
    return found


def _copied(
    name: str, source: Buffer, target: Buffer, ranges: Sequence[tuple[Span, Dim]], point: Point, dtype: str
) -> Stmt:
    """Loops and a block that copy the part of a box that is inside of both buffers."""
    loops: list[For] = []
    items: list[IterVar] = []
    conditions: list[PrimExpr] = []
    for position, ((low, high), size) in enumerate(ranges):
        loop = For(PrimVar(f"ax{position}", dtype), 0, point.extent(high - low + 1, dtype), SeqStmt())
        zero = isinstance(low, int) and low == 0
        place = loop.loop_var if zero else binary("add", point.expr(low, dtype), loop.loop_var)
        loops.append(loop)
        items.append(IterVar(PrimVar(f"v{position}", dtype), 0, point.extent(size, dtype), "spatial", place))
        if not point.at_most(0, low):
            conditions.append(binary("le", as_expr(0, dtype), place))
        if not point.below(high, size):
            conditions.append(binary("lt", place, point.expr(size, dtype)))
    indices = tuple(item.var for item in items)
    store = BufferStore(target, BufferLoad(source, indices), indices)
    return nest_of_loops(loops, Block(name, store, tuple(items), all_of(conditions)))


def _less(index: PrimExpr, start: Dim, point: Point) -> PrimExpr:
    """An index counted from a start."""
    if isinstance(start, int) and start == 0:
        return index
    here = point.dim(index)
    if here is not None:
        return point.expr(here - start, index.dtype)
    return simplify(binary("sub", index, point.expr(start, index.dtype)))


def _home(tree: Tree, block: Block, buffer: Buffer) -> tuple[For, list[Span]]:
    """The innermost loop around all uses of a buffer of which each iteration can have its own, and its box."""
    every = users(tree.function.body, buffer)
    counted = sum(len(loads_in(item, buffer)) + len(stores_in(item, buffer)) for item in every)
    body = tree.function.body
    loops = [loop for loop in tree.loops_around(block) if all(tree.is_above(loop, item) for item in every)]
    if not loops or counted != len(loads_in(body, buffer)) + len(stores_in(body, buffer)):
        raise failure(
            "W605",
            f"no loop holds all that uses {buffer.name!r}",
            tree,
            block,
            hint="compute_at a loop of the block that reads it first",
        )
    refusal: ScheduleError | None = None
    for loop in reversed(loops):
        try:
            return loop, own_box(tree, loop, buffer)
        except ScheduleError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _window(tree: Tree, block: Block, buffer: Buffer) -> tuple[For, int, Dim, Dim, Dim] | None:
    """(loop, dimension, last element, step, length) of a window that a loop moves over a buffer."""
    every = users(tree.function.body, buffer)
    for loop in tree.loops_around(block):
        if not all(tree.is_above(loop, item) for item in every) or loop.kind != "serial" or loop.step not in (None, 1):
            continue
        point = Point.inside(tree, loop)
        spans = touched([loop.body], buffer, point)
        moving = [i for i, span in enumerate(spans) if span is None or point.name(loop.loop_var) in names_of(*span)]
        span = spans[moving[0]] if len(moving) == 1 else None
        step = None if span is None else _step(span, point, loop)
        if span is None or step is None:
            continue
        length = span[1] - span[0] + 1
        fixed = {point.name(variable) for variable in symbol_names(tree.function)}
        if point.at_most(1, step) and point.at_most(step + 1, length) and names_of(step, length) <= fixed:
            return loop, moving[0], span[1], step, length
    return None


def _step(span: Span, point: Point, loop: For) -> Dim | None:
    """How far a range moves from one iteration to the next, if it is as far for all of them and as long."""
    name = point.name(loop.loop_var)
    moved = [substitute_dim(as_dim(end), {name: symbol(name) + 1}) - end for end in span]
    same = point.same(moved[0], moved[1]) and name not in names_of(moved[0], span[1] - span[0])
    return moved[0] if same else None


def _require_same_each_time(tree: Tree, block: Block, loop: For, above: tuple[Block, ...] = ()) -> None:
    """W613 unless a block computes an element from what no iteration of a loop changes, the same in each of them."""
    buffer = written_buffers(block)[0]
    inner = {item.loop_var for item in loops_inside(tree, block, loop)}
    loops = {item.loop_var for item in tree.all_loops_around(block)}
    store = stores_in(block.body, buffer)[0]
    own = {item.var for item in block.iter_vars if item.kind == "spatial" and item.extent != 1}
    changes = block in above or len(written_buffers(block)) != 1 or not own <= set(store.indices)
    changes |= any(item.kind != "spatial" and variables_in(item.value) - inner for item in block.iter_vars)
    changes |= bool(loops & {part for part in walk(block.body) if isinstance(part, PrimVar)})
    changes |= block.init is None and bool(loads_in(block.body, buffer))
    if changes:
        raise failure(
            "W613",
            f"what block {block.name!r} computes for an element may change from one iteration of"
            f" {loop.loop_var.name!r} to the next",
            tree,
            block,
        )
    for read in reads_of(block):
        for writer in (item for item in users(loop.body, read) if stores_in(item, read)):
            _require_same_each_time(tree, writer, loop, (*above, block))
