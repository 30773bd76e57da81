"""What one iteration of a loop does with a buffer: whether it needs anything of other iterations.

own_box(tree, loop, buffer)    the box of elements that each iteration writes before it uses them, and uses no others

The first block of the iteration that touches the buffer writes the whole box; what comes after it stays inside.
"""

from __future__ import annotations

from weft.errors import ScheduleError
from weft.ir.dim import Dim
from weft.ir.tensor import Block, Buffer, BufferStore, For, Stmt
from weft.transform.analysis.loops.dependence import update_of, without_bindings
from weft.transform.analysis.loops.points import Point, conjuncts, strict_limit, variables_in
from weft.transform.analysis.loops.touched_ranges import Span, box_of, touched
from weft.transform.schedule.failure import failure
from weft.transform.schedule.rebuild import nest_of_loops
from weft.transform.schedule.tree import Tree, blocks_in, buffers_of, loads_in, statements_of, stores_in

__all__ = ["loops_inside", "own_box", "users"]


def users(stmt: Stmt, buffer: Buffer) -> list[Block]:
    """The blocks (not those inside of others) below a statement that touch a buffer, in order."""
    return [block for block in blocks_in(stmt) if buffer in buffers_of(block)]


def loops_inside(tree: Tree, block: Block, loop: For) -> list[For]:
    """The loops around a block that are inside of another loop."""
    around = tree.loops_around(block)
    return around[around.index(loop) + 1 :]


def own_box(tree: Tree, loop: For, buffer: Buffer) -> list[Span]:
    """The range of each index, at the point inside of the loop, that an iteration uses of what it wrote itself.

    W614 where an element may be read that the iteration has not written before.
    """
    point = Point.inside(tree, loop)
    parts = [part for part in statements_of(loop.body) if buffer in buffers_of(part)]
    inside = users(loop.body, buffer)
    counted = sum(len(loads_in(block, buffer)) + len(stores_in(block, buffer)) for block in inside)
    if counted != len(loads_in(loop.body, buffer)) + len(stores_in(loop.body, buffer)):
        raise _unknown(tree, loop, buffer, "code that is in no block uses it")
    if len(parts) == 1 and len(inside) > 1 and isinstance(parts[0], For):
        own_box(tree, parts[0], buffer)
        return _known(touched(parts, buffer, point), tree, loop, buffer)
    first = inside[0]
    box = _written(tree, loop, first, buffer, point)
    for block in inside[1:]:
        if any(part is block or tree.is_above(part, block) for part in parts[:1]):
            raise _unknown(tree, block, buffer, f"block {block.name!r} stands beside block {first.name!r}")
        nest = nest_of_loops(loops_inside(tree, block, loop), block)
        _require_within(_known(touched([nest], buffer, point), tree, block, buffer), box, tree, block, buffer, point)
    return box


def _written(tree: Tree, loop: For, block: Block, buffer: Buffer, point: Point) -> list[Span]:
    """The box that a block writes in an iteration of a loop, none of it left out, without having read it."""
    update = update_of(block)
    own_reads = len(loads_in(block.body, buffer))
    if not stores_in(block, buffer) or (own_reads and (update is None or block.init is None)):
        raise _unknown(tree, block, buffer, f"block {block.name!r} reads it first")
    if tree.conditions_around(block) and any(tree.is_above(loop, item) for item in tree.conditions_around(block)):
        raise _unknown(tree, block, buffer, f"block {block.name!r} runs under a condition")
    inner = loops_inside(tree, block, loop)
    variables = {item.loop_var for item in inner}
    here = point.copy(inner)
    for item in block.iter_vars:
        if item.kind == "spatial":
            continue
        around = variables_in(item.value) - variables
        empty = any(not here.at_most(1, here.dim(x.extent)) for x in inner if x.loop_var in variables_in(item.value))
        if around or empty or item.kind != "reduce":
            raise _unknown(tree, block, buffer, f"block {block.name!r} may not start its sum there")
    body = without_bindings(block)
    assert isinstance(body, Block)
    extents: dict[str, Dim] = {}
    for item in inner:
        size = here.dim(item.extent)
        if item.start == 0 and item.step in (None, 1) and size is not None:
            extents[here.name(item.loop_var)] = size
    hidden = {here.name(variable) for variable in variables} - set(extents)
    store = body.body
    found = box_of(store.indices, here, extents, hidden) if isinstance(store, BufferStore) else None
    if found is None or not _holds_in_range(body, buffer, here):
        raise _unknown(tree, block, buffer, f"block {block.name!r} may leave elements out")
    return found


def _holds_in_range(block: Block, buffer: Buffer, point: Point) -> bool:
    """Whether the predicate of a block leaves out nothing but places outside of the buffer."""
    store = stores_in(block.body, buffer)[0]
    for part in conjuncts(block.predicate):
        found = strict_limit(part, point)
        if found is None:
            return False
        value, limit = found
        upper = any(
            point.same(point.dim(index), value) and point.at_most(point.dim(size), limit)
            for index, size in zip(store.indices, buffer.shape, strict=True)
        )
        lower = any(  # value < index + below holds for every index from 0 up
            point.same(point.dim(index), limit - below) and point.at_most(value, below - 1)
            for index in store.indices
            for below in (0, 1)
        )
        if not (upper or lower):
            return False
    return True


def _known(spans: list[Span | None], tree: Tree, stmt: Stmt, buffer: Buffer) -> list[Span]:
    found = [span for span in spans if span is not None]
    if len(found) != len(spans):
        raise _unknown(tree, stmt, buffer, "its indices are not known to be in a range")
    return found


def _require_within(spans: list[Span], box: list[Span], tree: Tree, block: Block, buffer: Buffer, point: Point) -> None:
    for (low, high), (first, last), extent in zip(spans, box, buffer.shape, strict=True):
        size = point.dim(extent)
        end = None if size is None else size - 1
        below = point.at_most(first, low) or point.at_most(first, 0)
        above = point.at_most(high, last) or point.at_most(end, last)
        if not (below and above):
            raise _unknown(tree, block, buffer, f"block {block.name!r} may use elements that are not written there")


def _unknown(tree: Tree, stmt: Stmt, buffer: Buffer, why: str) -> ScheduleError:
    return failure("W614", f"an iteration may use what another one has left in {buffer.name!r}: {why}", tree, stmt)
