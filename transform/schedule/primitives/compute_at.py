"""Primitives that move a block under a loop of another one: compute_at, reverse_compute_at.

The loops of the moved block are made anew: they run over what is needed, or has been computed, in one iteration of the
loop that it moves to. What is needed comes from the accesses there; a variable whose range is not known from them runs
over its whole domain, so that too much may be computed, never too little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import ScheduleError
from weft.ir import replace, structural_equal, walk
from weft.ir.dim import Dim, as_dim
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.tensor import Bind, Block, Buffer, For, IterVar, Let, PrimExpr, PrimVar, SeqStmt, Stmt
from weft.transform.analysis.loops.affine import Reader, Value
from weft.transform.analysis.loops.dependence import update_of, without_bindings
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.analysis.loops.touched_ranges import Span, touched
from weft.transform.schedule.buffers import (
    nest_blocks,
    reads_of,
    require_complete,
    require_covering,
    require_local,
    require_reduction,
    require_unchanged,
    sets_result_when_empty,
)
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.digits import Digits, Stride
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.inlining import certain_load, require_readers_after
from weft.transform.schedule.primitives.queries import scope_blocks, written_buffers
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.tree import Tree, blocks_in, buffers_of, sequence, statements_of, stores_in

__all__ = ["INLINE", "ROOT", "ComputeAt", "can_compute_at", "can_reverse_compute_at"]

ROOT, INLINE = PrimVar("root"), PrimVar("inline")
"""What the loop handles of sampled places stand for that are no loops."""


class ComputeAt(ScheduleCore):
    """Blocks moved under loops of others."""

    @primitive
    def compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Compute what each iteration of a loop reads of a block's buffer inside of that loop, before it is read.

        All readers of the buffer are under the loop. `index` is the place among the statements of the loop's body; -1
        is just before the first reader, -2 the first place that is possible. ScheduleError W605 a loop elsewhere,
        W609-W615 a block that cannot move there.
        """
        _, place_key = self._key(loop, LoopRV, "loop")
        if place_key is ROOT:
            return
        if place_key is INLINE:
            self.compute_inline(block)
            return
        tree, found, target = self._pair(block, loop)
        buffer = _require_computed(tree, found)
        require_local(tree, found, buffer)
        require_covering(tree, found)
        readers = require_readers_after(tree, found, buffer)
        outside = next((item for item in readers if not tree.is_above(target, item)), None)
        if outside is not None:
            raise failure("W613", f"block {outside.name!r} reads {buffer.name!r} outside of the loop", tree, outside)
        require_unchanged(tree, found, reads_of(found))
        _require_inits(tree, target)
        parts = list(statements_of(target.body))
        first = min(i for i, part in enumerate(parts) if any(item in readers for item in blocks_in(part)))
        makers = [i for i, part in enumerate(parts[:first]) if reads_of(found) & {s.buffer for s in stores_in(part)}]
        place = self._place(index, first, max(makers, default=-1) + 1, tree, target)
        point = Point.inside(tree, target)
        moved = _regenerated(found, buffer, touched([target.body], buffer, point), point, preserve_unit_loops)
        new = replace(target, body=sequence((*parts[:place], moved, *parts[place:])))
        self._set(tree, tree.replaced((found, SeqStmt()), (target, new)))

    @primitive
    def reverse_compute_at(
        self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Do what a block does with the elements of its input inside of the loop that computes them, after that.

        `index` is the place among the statements of the loop's body; -1 is the end, -2 the first place that is
        possible. ScheduleError W605 a loop elsewhere, W609-W616 a block that cannot move there.
        """
        tree, found, target = self._pair(block, loop)
        output = _require_computed(tree, found)
        require_covering(tree, found)
        makers = [item for item in blocks_in(target.body) if set(written_buffers(item)) & reads_of(found)]
        sources = list(dict.fromkeys(b for item in makers for b in written_buffers(item) if b in reads_of(found)))
        if not sources:
            raise failure(
                "W613",
                f"nothing under the loop {target.loop_var.name!r} computes what block {found.name!r} reads",
                tree,
                target,
            )
        _require_available(tree, found, target, sources, output)
        _require_inits(tree, target)
        point = Point.inside(tree, target)
        ranges: dict[PrimVar, Span] = {}
        digits = Digits(found, point)
        for buffer in sources:
            _narrow(tree, found, ranges, _reached(tree, found, target, buffer, digits), point)
        strides = _strides(tree, found, ranges, digits)
        parts = list(statements_of(target.body))
        last = max(i for i, part in enumerate(parts) if any(item in makers for item in blocks_in(part)))
        place = self._place(index, len(parts), last + 1, tree, target)
        moved = _nest(found, ranges, point, preserve_unit_loops, strides)
        new = replace(target, body=sequence((*parts[:place], moved, *parts[place:])))
        self._set(tree, tree.replaced((found, SeqStmt()), (target, new)))

    def _pair(self, block: BlockRV | str, loop: LoopRV) -> tuple[Tree, Block, For]:
        tree, found = self._block(block)
        other, target = self._loop(loop)
        if other is not tree or tree.scope(found) is not tree.scope(target):
            raise failure(
                "W605", f"the loop {target.loop_var.name!r} is not in the scope of block {found.name!r}", other, target
            )
        if tree.is_above(target, found):
            raise failure(
                "W605", f"the block {found.name!r} is under the loop {target.loop_var.name!r} already", tree, target
            )
        stops = tree.conditions_around(target)
        if stops:
            raise failure("W615", f"the loop {target.loop_var.name!r} runs under a condition", tree, stops[0])
        return tree, found, target

    def _place(self, index: int, default: int, least: int, tree: Tree, loop: For) -> int:
        place = default if index == -1 else least if index == -2 else index
        if not isinstance(index, int) or index < -2 or place > default or place < least:
            raise failure(
                "W604",
                f"{index!r} is no place in the loop {loop.loop_var.name!r} for the block",
                tree,
                loop,
                hint=f"from {least} to {default}, or -1",
            )
        return place


def _require_computed(tree: Tree, block: Block) -> Buffer:
    """The output of a block that computes each of its elements by itself: complete, or a whole reduction."""
    return require_reduction(tree, block) if update_of(block) is not None else require_complete(tree, block)


def _require_inits(tree: Tree, target: For) -> None:
    """W610 where a sum over nothing would no longer be initialised: its loop may be empty and gets a second statement.

    A reduction over no iterations has its init as result as long as only loops are between it and its block.
    """
    point = Point.around(tree, target)
    loops = [*tree.loops_around(target), target]
    for block in blocks_in(target.body):
        if block.init is None or sets_result_when_empty(tree, block):
            continue
        used = {v for item in block.iter_vars if item.kind == "reduce" for v in variables_in(item.value)}
        for loop in loops:
            if loop.loop_var in used and not point.at_most(1, point.dim(loop.extent)):
                raise failure(
                    "W610",
                    f"the loop {loop.loop_var.name!r} of the sum {block.name!r} may be empty, and then nothing"
                    " would set its result",
                    tree,
                    loop,
                    hint="decompose_reduction first",
                )


# What is needed -----------------------------------------------------------------------------------------------------


def _regenerated(
    block: Block, buffer: Buffer, needed: Sequence[Span | None], point: Point, preserve_unit_loops: bool
) -> Stmt:
    """A producer over the instances that store the needed elements."""
    ranges: dict[PrimVar, Span] = {}
    stores = stores_in(without_bindings(block.body), buffer)
    own = {item.var for item in block.iter_vars if item.kind == "spatial"}
    for position, span in enumerate(needed):
        index = stores[0].indices[position]
        if span is None or any(not structural_equal(store.indices[position], index) for store in stores[1:]):
            continue
        variable, offset = _shifted(index, own, block, point)
        if variable is not None and variable not in ranges:
            ranges[variable] = (span[0] - offset, span[1] - offset)
    return _nest(block, ranges, point, preserve_unit_loops)


def _shifted(index: PrimExpr, own: set[PrimVar], block: Block, point: Point) -> tuple[PrimVar | None, Dim]:
    """(v, c) of an index v + c of a block; (None, 0) for any other."""
    every = {item.var for item in block.iter_vars}
    used = variables_in(index) & every
    if len(used) != 1 or not used <= own:
        return None, 0
    (variable,) = used
    inner = point.copy()
    inner.enter_block(block)
    whole, alone = inner.dim(index), inner.dim(variable)
    if whole is None or alone is None:
        return None, 0
    offset = whole - alone
    left = set() if isinstance(offset, int) else set(offset.names)
    hidden = every | {part.loop_var for part in walk(block) if isinstance(part, For)}
    hidden |= {part.var for part in walk(block) if isinstance(part, (Bind, IterVar, Let))}
    return (None, 0) if left & {inner.name(var) for var in hidden} else (variable, offset)


def _nest(
    block: Block,
    ranges: dict[PrimVar, Span],
    point: Point,
    preserve_unit_loops: bool,
    strides: Mapping[PrimVar, Sequence[Stride]] | None = None,
) -> Stmt:
    """A block in new loops: its variables over the given ranges or strides where they are inside their domains."""
    loops: list[For] = []
    strides = {} if strides is None else strides
    items: list[IterVar] = []
    conditions: list[PrimExpr | None] = []
    for item in block.iter_vars:
        dtype = item.var.dtype
        start, size = point.dim(item.start), point.dim(item.extent)
        low, high = ranges.get(item.var, (None, None))
        apart = strides.get(item.var)
        if apart is not None:
            parts = [
                For(PrimVar(f"ax{len(items)}_{i}", dtype), 0, point.extent(part.count, dtype), block)
                for i, part in enumerate(apart)
            ]
            loops.extend(parts)
            value = _sum_of(apart, parts, point, dtype)
            top = sum((part.lower * (part.low + as_dim(part.count) - 1) for part in apart), as_dim(0))
            if not point.below(top, size):
                conditions.append(binary("lt", value, as_expr(item.extent, dtype)))
            items.append(replace(item, value=value))
            continue
        if low is None or high is None or start is None or size is None:
            loop: For | None = For(PrimVar(f"ax{len(items)}", dtype), item.start, item.extent, block)
            value: PrimExpr = loop.loop_var  # type: ignore[union-attr]
        else:
            count = high - low + 1
            if point.at_most(size, count) and point.at_most(low, start) and point.at_most(start + size - 1, high):
                low, high, count = start, start + size - 1, size
            first = point.expr(low, dtype)
            loop = For(PrimVar(f"ax{len(items)}", dtype), 0, point.extent(count, dtype), block)
            value = loop.loop_var if isinstance(low, int) and low == 0 else binary("add", first, loop.loop_var)
            if not preserve_unit_loops and point.same(count, 1):
                loop, value = None, first
            if not point.at_most(start, low):
                conditions.append(binary("le", as_expr(item.start, dtype), value))
            if not point.below(high, start + size):
                end = (
                    binary("add", as_expr(item.start, dtype), as_expr(item.extent, dtype))
                    if item.start != 0
                    else (as_expr(item.extent, dtype))
                )
                conditions.append(binary("lt", value, end))
        if loop is not None:
            loops.append(loop)
        items.append(replace(item, value=value))
    new = replace(block, iter_vars=tuple(items), predicate=all_of(conditions))
    return nest_of_loops(loops, new)


def _span(stride: Stride) -> Span:
    return stride.low, stride.low + as_dim(stride.count) - 1


def _sum_of(strides: Sequence[Stride], loops: Sequence[For], point: Point, dtype: str) -> PrimExpr:
    """The value of a variable in the loops over its digits."""
    total: PrimExpr = point.expr(sum((as_dim(part.lower) * part.low for part in strides), as_dim(0)), dtype)
    for part, loop in zip(strides, loops, strict=True):
        total = binary("add", total, binary("mul", loop.loop_var, as_expr(part.lower, dtype)))
    return total


# What has been computed ---------------------------------------------------------------------------------------------


def _require_available(tree: Tree, block: Block, target: For, sources: Sequence[Buffer], output: Buffer) -> None:
    """W613 when an iteration of the loop cannot give a block all that it reads, or others are in the way."""
    order = scope_blocks(tree, block)
    here = next(i for i, item in enumerate(order) if item is block)
    under = list(blocks_in(target.body))
    nest = tree.loops_around(target)
    inside = list(blocks_in(nest[0] if nest else target))
    start = min(order.index(item) for item in inside)
    if start > here:
        raise failure("W613", f"the loop {target.loop_var.name!r} comes after block {block.name!r}", tree, target)
    reads = reads_of(block)
    outer = {loop.loop_var for loop in (*nest, target)}
    for item in order:
        if item is block:
            continue
        if item in under and set(written_buffers(item)) & set(sources):
            partial = next(
                (it for it in item.iter_vars if it.kind != "spatial" and variables_in(it.value) & outer), None
            )
            if partial is not None:
                raise failure(
                    "W613",
                    f"block {item.name!r} is not done with an element in one iteration of {target.loop_var.name!r}",
                    tree,
                    item,
                )
            if any(it.kind not in ("spatial", "reduce") for it in item.iter_vars):
                raise failure("W613", f"block {item.name!r} is neither complete nor a reduction", tree, item)
        elif set(written_buffers(item)) & reads and order.index(item) >= start:
            name = next(iter(set(written_buffers(item)) & reads)).name
            raise failure(
                "W613",
                f"block {item.name!r} computes {name!r}, which block {block.name!r} reads, outside of the loop",
                tree,
                item,
            )
        elif set(written_buffers(item)) & set(sources):
            raise failure("W613", f"block {item.name!r} writes what the loop computes, outside of it", tree, item)
        if output in buffers_of(item) and start <= order.index(item) < here:
            raise failure(
                "W613", f"block {item.name!r} uses {output.name!r} before block {block.name!r} is done", tree, item
            )
    require_unchanged(tree, block, reads)
    beside = [item for item in nest_blocks(tree, block) if item in inside]
    if beside:
        raise failure("W605", f"the block {block.name!r} shares loops with {beside[0].name!r}", tree, block)


def _reached(tree: Tree, block: Block, target: For, buffer: Buffer, digits: Digits) -> dict[PrimVar, Span]:
    """The ranges of a reader's variables for which an iteration of the loop has computed the elements.

    Of variables that are in the indices by their digits, these are noted.
    """
    point = digits.point
    load = certain_load(tree, block, buffer)
    spans = _computed(target, buffer, point, tree, block)
    own = {item.var for item in block.iter_vars if item.kind == "spatial"}
    every = {item.var for item in block.iter_vars}
    found: dict[PrimVar, Span] = {}
    for position, (index, span) in enumerate(zip(load.indices, spans, strict=True)):
        variable, offset = _shifted(index, own, block, point)
        if variable is not None and variable not in found and span is not None:
            found[variable] = (span[0] - offset, span[1] - offset)
            continue
        size = point.dim(buffer.shape[position])
        if span is not None and size is not None and point.at_most(span[0], 0) and point.at_most(size - 1, span[1]):
            continue  # everything along this dimension is there
        fixed = not variables_in(index) & every and span is not None
        here = point.dim(index) if fixed else None
        if here is not None and span is not None and point.at_most(span[0], here) and point.at_most(here, span[1]):
            continue
        if span is not None and digits.add(index, span):
            continue
        window = None if span is None else digits.window(index, span)
        if window is not None:
            _narrow(tree, block, found, dict([window]), point)
            continue
        raise failure(
            "W616",
            f"the index {index.script()} of {buffer.name!r} in block {block.name!r} is not told by"
            f" what an iteration of {target.loop_var.name!r} computes",
            tree,
            block,
            hint="indices are variables of the block, or digits of one (v // 16 and v % 16)",
        )
    return found


def _narrow(tree: Tree, block: Block, ranges: dict[PrimVar, Span], more: Mapping[PrimVar, Span], point: Point) -> None:
    """Note ranges of a block's variables; W616 where others are known that are not the same."""
    for variable, span in more.items():
        known = ranges.setdefault(variable, span)
        if not (point.same(known[0], span[0]) and point.same(known[1], span[1])):
            raise _two_ranges(tree, block, variable)


def _strides(tree: Tree, block: Block, ranges: dict[PrimVar, Span], digits: Digits) -> dict[PrimVar, Sequence[Stride]]:
    """The values of the variables whose digits are known, apart from those that are a range: these are noted as one."""
    found: dict[PrimVar, Sequence[Stride]] = {}
    for variable, strides in digits.strides().items():
        if strides is None or (len(strides) > 1 and variable in ranges):
            raise _two_ranges(tree, block, variable)
        if len(strides) > 1:
            found[variable] = strides
        else:
            _narrow(tree, block, ranges, {variable: _span(strides[0])}, digits.point)
    return found


def _two_ranges(tree: Tree, block: Block, variable: PrimVar) -> Exception:
    return failure(
        "W616",
        f"the elements that block {block.name!r} reads are computed for different values of {variable.name!r}",
        tree,
        block,
        hint="compute_at the producers under one loop first",
    )


def _computed(target: For, buffer: Buffer, point: Point, tree: Tree, block: Block) -> list[Span | None]:
    """The range of each index that an iteration stores to, without gaps in it; None where that is not known."""
    inner = point.copy()
    body = without_bindings(target.body)
    loops = [part for part in walk(body) if isinstance(part, For)]
    for loop in loops:
        inner.enter(loop)
    extents: dict[str, Dim] = {}
    for loop in loops:
        size = inner.dim(loop.extent)
        if loop.start == 0 and size is not None:
            extents[inner.name(loop.loop_var)] = size
    if len(extents) != len(loops):
        return [None] * buffer.ndim
    found: list[Span | None] | None = None
    for store in stores_in(body, buffer):
        spans: list[Span | None] = []
        for index in store.indices:
            dim = inner.dim(index)
            reader = Reader(inner, extents, {}, [] if dim is None else [dim])
            value = None if dim is None else reader.read(dim)
            count = None if value is None else reader.extent_of(Value(value.terms))
            spans.append(None if value is None or count is None else (value.base, value.base + count - 1))
        if found is not None and any(
            a is None or b is None or not (point.same(a[0], b[0]) and point.same(a[1], b[1]))
            for a, b in zip(found, spans, strict=True)
        ):
            raise failure("W613", f"different parts of {buffer.name!r} are stored under the loop", tree, block)
        found = spans
    return [None] * buffer.ndim if found is None else found


def can_compute_at(schedule: Any, block: BlockRV | str, loop: LoopRV) -> bool:
    """Whether a block can be computed at a loop: tried on a copy."""
    return _works(lambda: schedule.copy().compute_at(block, loop))


def can_reverse_compute_at(schedule: Any, block: BlockRV | str, loop: LoopRV) -> bool:
    """Whether a block can be moved under the loop of its producer: tried on a copy."""
    return _works(lambda: schedule.copy().reverse_compute_at(block, loop))


def _works(run: Any) -> bool:
    try:
        run()
    except ScheduleError:
        return False
    return True
