"""Primitives on index spaces: where elements of a buffer are, what the variables of a block mean.

transform_layout         the elements of a buffer at other indices
transform_block_layout   a block over other variables
reorder_block_iter_var   its variables in another order
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ScheduleError, WeftError
from weft.ir import replace, substitute, walk
from weft.ir.dim import Dim, prove_equal, symbol
from weft.ir.dim import product as product_of
from weft.ir.dim import substitute as substitute_dim
from weft.ir.graph import GlobalVar
from weft.ir.kernel.index_map import IndexMap, read_index_map
from weft.ir.kernel.prim import as_expr, cast, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IntImm,
    IterVar,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.loops.dependence import Nest, shared, update_of
from weft.transform.analysis.loops.inverted_indices import inverted
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.buffers import (
    require_covering,
    require_dividing,
    require_local,
    require_plain_uses,
    writers,
)
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.caching import Where, nest_over, read_map, where_of
from weft.transform.schedule.primitives.loops import chain_between
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.reducer import fold_of
from weft.transform.schedule.tree import Tree, map_buffers, sequence, without_regions

__all__ = ["Layouts"]


class Layouts(ScheduleCore):
    """Index maps applied to buffers and blocks."""

    @primitive
    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: Where,
        index_map: Any,
        pad_value: float | int | None = None,
        axis_separators: Sequence[int] = (),
    ) -> None:
        """Keep the elements of a buffer at other indices: `index_map` gives the new ones of the old ones.

        Elements that the new shape has more than the old one are set to `pad_value` where it is given;
        `axis_separators` are the new dimensions before which another axis of memory begins. Parameters change the
        function's signature. ScheduleError W616 when elements would share a place, W612 a buffer that is also used by
        its address, or a parameter of a function that others call or that would have more elements, W604 separators
        that do not grow.
        """
        tree, found = self._block(block)
        _, target = where_of(tree, found, buffer)
        text = read_map(index_map)
        self._record(index_map=text)
        known = read_index_map(text)
        point = Point(tree.function)
        shape, targets, places = _transformed(tree, found, target, known, point)
        separators = tuple(self._number(item) for item in axis_separators)
        require_dividing(tree, found, target.name, len(shape), separators)
        require_plain_uses(tree, found, target)
        exact = _same_count(target, shape, point)
        if target in tree.function.params:
            self._require_alone(tree, found)
            if not exact and pad_value is None:
                raise failure("W612", f"the parameter {target.name!r} would have more elements", tree, found)
        else:
            require_local(tree, found, target)
        sizes = tuple(point.extent(size, "int64") for size in shape)
        new = fresh_buffer(target, {}, shape=sizes, strides=None, axis_separators=separators)

        def moved(indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
            values = {place: cast("int64", index) for place, index in zip(places, indices, strict=True)}
            dtype = indices[0].dtype if indices else "int64"
            return tuple(simplify(cast(dtype, substitute(part, values))) for part in targets)

        body = map_buffers(
            tree.function.body,
            load=lambda node: BufferLoad(new, moved(node.indices), span=node.span) if node.buffer is target else None,
            store=lambda node: (
                BufferStore(new, node.value, moved(node.indices), span=node.span) if node.buffer is target else None
            ),
            touched=[target],
        )
        body = substitute(body, {target: new})
        params = tuple(new if param is target else param for param in tree.function.params)
        tree = self._set(tree, replace(tree.function, params=params, body=body))
        if pad_value is not None and not exact and writers(tree, new):
            self._fill(tree, new, pad_value)

    def _require_alone(self, tree: Tree, block: Block) -> None:
        others = (function for name, function in self._module.items() if name != tree.name)
        if any(isinstance(part, GlobalVar) and part.name == tree.name for f in others for part in walk(f)):
            raise failure("W612", f"others call {tree.name!r}, whose parameters would change", tree, block)

    def _fill(self, tree: Tree, buffer: Buffer, value: float | int) -> None:
        """Set a whole buffer before the first block that writes it."""
        place = tree.order([tree.place_of(item) for item in writers(tree, buffer)])[0]
        items = [IterVar(PrimVar(f"v{i}", "int64"), 0, size, "spatial") for i, size in enumerate(buffer.shape)]
        try:
            element = const(value, buffer.dtype)
        except WeftError as error:
            raise failure("W604", f"{value!r} is no {buffer.dtype}: {error.message}") from None
        store = BufferStore(buffer, element, tuple(item.var for item in items))
        fill = nest_over(tree.fresh_block_name(f"{buffer.name}_pad"), items, store)
        self._set(tree, tree.replaced((place, sequence((fill, place)))))

    @primitive
    def transform_block_layout(self, block: BlockRV | str, index_map: Any) -> None:
        """Let a block run over other variables, which `index_map` makes of its own ones; its loops are made anew.

        ScheduleError W605 when other blocks share its loops, W616 a map that cannot be turned round, W604 one that
        mixes variables of a sum with others, W607 one that lets instances come in another order that matters.
        """
        tree, found = self._block(block)
        text = read_map(index_map)
        self._record(index_map=text)
        known = read_index_map(text)
        if len(known.names) != len(found.iter_vars):
            raise failure(
                "W604",
                f"the index map {text} has {len(known.names)} indices, and block {found.name!r}"
                f" {len(found.iter_vars)} variables",
                tree,
                found,
            )
        around = tree.loops_around(found)
        place = around[0] if around else found
        if around and (chain_between(tree, around) != around or around[-1].body is not found):
            raise failure("W605", f"block {found.name!r} shares its loops", tree, around[0])
        marked = next((loop for loop in around if loop.kind != "serial" or loop.annotations), None)
        if marked is not None:
            raise failure("W606", f"the loop {marked.loop_var.name!r} is marked or annotated", tree, marked)
        require_covering(tree, found)
        point = Point.around(tree, place)
        new = _over_other_variables(tree, found, known, point)
        _require_order_kept(tree, found, known)
        self._set(tree, tree.replaced((place, new)))

    @primitive
    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """The variables of a block in another order, given by their present places."""
        tree, found = self._block(block)
        order = [self._number(place) for place in new_order]
        if sorted(order) != list(range(len(found.iter_vars))):
            count = len(found.iter_vars)
            raise failure("W604", f"{order} is no order of the {count} variables of block {found.name!r}", tree, found)
        items = tuple(found.iter_vars[place] for place in order)
        self._set(tree, tree.replaced((found, replace(found, iter_vars=items))))


def _require_order_kept(tree: Tree, block: Block, known: IndexMap) -> None:
    """W607 where instances whose order matters would come in another one: those variables stay as they are."""
    if update_of(block) is not None:
        return
    around = tree.loops_around(block)
    ordered = {loop.loop_var: loop for loop in around if not _runs_in_any_order(tree, block, loop)}
    items = [(name, item) for name, item in zip(known.names, block.iter_vars, strict=True)]
    kept = [(name, item) for name, item in items if variables_in(item.value) & set(ordered)]
    bare = [item.value for _, item in kept] == list(ordered)
    moved = [t for t in known.targets if not isinstance(t, int) and set(t.names) & {name for name, _ in kept}]
    if not bare or moved != [symbol(name) for name, _ in kept]:
        loop = next(iter(ordered.values()))
        raise failure(
            "W607",
            f"the iterations of {loop.loop_var.name!r} would come in another order, and touch the same elements",
            tree,
            loop,
            hint="a map that leaves the variables of such loops as they are, in their order",
        )


def _runs_in_any_order(tree: Tree, block: Block, loop: For) -> bool:
    around = tree.loops_around(block)
    inner = around[around.index(loop) :]
    if shared(Nest(tuple(inner), block, Point.around(tree, loop))) is None:
        return True
    try:
        return fold_of(tree, block).any_order
    except ScheduleError:
        return False


def _sizes(tree: Tree, block: Block, extents: Sequence[Extent], point: Point) -> list[Dim]:
    sizes = [point.dim(extent) for extent in extents]
    if any(size is None for size in sizes):
        raise failure("W604", "sizes that are no dimensions have no index map", tree, block)
    return [size for size in sizes if size is not None]


def _transformed(
    tree: Tree, block: Block, buffer: Buffer, known: IndexMap, point: Point
) -> tuple[tuple[Dim, ...], list[PrimExpr], list[PrimVar]]:
    """(new shape, new indices over variables that stand for the old ones, those variables)."""
    if len(known.names) != buffer.ndim:
        raise failure(
            "W604",
            f"the index map {known} has {len(known.names)} indices, and {buffer.name!r} {buffer.ndim} dimensions",
            tree,
            block,
        )
    places = [PrimVar(name, "int64") for name in known.names]
    sizes = _sizes(tree, block, buffer.shape, point)
    try:
        shape = known.sizes(tuple(sizes))
    except WeftError as error:
        raise failure("W604", error.message, tree, block, hint=error.hint) from None
    names = {name: symbol(point.name(var)) for name, var in zip(known.names, places, strict=True)}
    targets = [point.expr(substitute_dim(target, names), "int64") for target in known.targets]
    ranges: dict[PrimVar, tuple[Extent, Extent]] = {
        var: (0, extent) for var, extent in zip(places, buffer.shape, strict=True)
    }
    if inverted(targets, ranges, targets, point) is None:
        raise failure(
            "W616",
            f"the index map {known} is not known to give each element of {buffer.name!r} a place of its own",
            tree,
            block,
        )
    return shape, targets, places


def _same_count(buffer: Buffer, shape: Sequence[Dim], point: Point) -> bool:
    old = product_of(size for extent in buffer.shape if (size := point.dim(extent)) is not None)
    return prove_equal(old, product_of(shape)) is True


def _over_other_variables(tree: Tree, block: Block, known: IndexMap, point: Point) -> Stmt:
    """The block and its loops over the variables that an index map gives."""
    inner = point.copy()
    inner.enter_block(block)
    sizes = _sizes(tree, block, [item.extent for item in block.iter_vars], point)
    try:
        extents = known.sizes(tuple(sizes))
    except WeftError as error:
        raise failure("W604", error.message, tree, block, hint=error.hint) from None
    names = {name: symbol(inner.name(item.var)) for name, item in zip(known.names, block.iter_vars, strict=True)}
    dtype = "int64" if any(item.var.dtype == "int64" for item in block.iter_vars) else "int32"
    targets = [inner.expr(substitute_dim(target, names), dtype) for target in known.targets]
    items: list[IterVar] = []
    loops: list[For] = []
    kinds = {item.var: item.kind for item in block.iter_vars}
    for position, (target, size) in enumerate(zip(targets, extents, strict=True)):
        used = {kinds[var] for var in variables_in(target) if var in kinds}
        if len(used) > 1:
            mixed = " and ".join(sorted(used))
            raise failure("W604", f"the new variable {target.script()} mixes {mixed} variables", tree, block)
        loop = For(PrimVar(f"ax{position}", dtype), 0, point.extent(size, dtype), block)
        kind = used.pop() if used else "spatial"
        items.append(IterVar(PrimVar(f"v{position}", dtype), 0, loop.extent, kind, loop.loop_var))
        loops.append(loop)
    ranges: dict[PrimVar, tuple[Extent, Extent]] = {item.var: (item.start, item.extent) for item in block.iter_vars}
    outside = point.copy(loops)
    for item in items:
        outside.range(item.var, item.start, item.extent)
    answer = inverted(targets, ranges, [item.var for item in items], outside)
    if answer is None:
        raise failure("W616", f"the index map {known} cannot be turned round for block {block.name!r}", tree, block)
    values, conditions = answer
    zeros = {item.var: as_expr(0, dtype) for item in items}
    for item in block.iter_vars:
        first = simplify(substitute(values[item.var], zeros))
        if item.kind != "spatial" and not (isinstance(first, IntImm) and first.value == 0):
            raise failure("W616", f"the sum over {item.var.name!r} would not start where it does", tree, block)
    own = {item.var: loop.loop_var for item, loop in zip(items, loops, strict=True)}
    new = without_regions(
        replace(
            block,
            iter_vars=tuple(items),
            predicate=all_of(substitute(part, own) for part in conditions),
            init=None if block.init is None else substitute(block.init, values),
            body=substitute(block.body, values),
            alloc_buffers=block.alloc_buffers,
        )
    )
    return nest_of_loops(loops, new)
