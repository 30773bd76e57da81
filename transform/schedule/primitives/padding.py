"""Primitives on padding: sums of products over whole tiles, paddings as a fill and a copy.

pad_einsum           the operands of a sum of products copied into larger buffers, with zeros beside them
decompose_padding    t[i] = x[i - 1] if inside else 0      becomes t[i] = 0, then t[i] = x[i - 1] where inside
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import ScheduleError
from weft.ir import replace, substitute
from weft.ir.dim import ceildiv
from weft.ir.kernel.prim import as_expr, binary, cast, const
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    Extent,
    FloatImm,
    For,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.loops.dependence import update_of
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.buffers import (
    empty_cases,
    require_complete,
    require_covering,
    require_reduction,
    with_allocation,
)
from weft.transform.schedule.copies import fresh_buffer, fresh_variable
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.caching import nest_over
from weft.transform.schedule.primitives.inlining import only_store
from weft.transform.schedule.primitives.loops import chain_between
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.tree import Tree, loads_in, map_buffers, sequence, without_regions

__all__ = ["Padding"]


class Padding(ScheduleCore):
    """Steps that add or divide padding."""

    @primitive
    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Let a sum of products run over extents that are multiples of the given numbers, one for each variable.

        Operands are copied into larger buffers with zeros beside them, results out of one. ScheduleError W604 numbers
        that do not fit, W610 anything else than a sum of products of elements at the block's own variables, W605 a
        block that shares its loops or has been divided.
        """
        tree, found = self._block(block)
        sizes = [self._number(item) for item in padding]
        if len(sizes) != len(found.iter_vars) or any(size < 1 for size in sizes):
            raise failure(
                "W604",
                f"{sizes} does not give a positive number for each of the {len(found.iter_vars)}"
                f" variables of block {found.name!r}",
                tree,
                found,
            )
        buffer = require_reduction(tree, found)
        operands = _operands(tree, found)
        chain = _own_loops(tree, found)
        require_covering(tree, found)
        if empty_cases(tree, found, buffer):
            raise failure("W613", f"{buffer.name!r} is also written where the sum has no terms", tree, found)
        point = Point.around(tree, chain[0])
        items, larger = _padded(tree, found, sizes, point)
        if not larger:
            return
        for item in found.iter_vars:  # zero times what is not padded may be no zero
            if item.kind == "reduce" and item.var in larger and any(item.var not in x.indices for x in operands):
                raise failure("W610", f"the variable {item.var.name!r} of the sum is not in every operand", tree, found)
        loops = [
            replace(loop, extent=next(item.extent for item in items if item.value is loop.loop_var)) for loop in chain
        ]
        extents = {item.var: item.extent for item in items}
        before: list[Stmt] = []
        after: list[Stmt] = []
        renamed: dict[Buffer, Buffer] = {}
        for load in operands:
            if load.buffer not in renamed and larger & set(load.indices):
                new = _enlarged(load.buffer, load.indices, extents)
                renamed[load.buffer] = new
                before.append(_filled(tree.fresh_block_name(new.name), load.buffer, new))
        update = update_of(found)
        assert update is not None
        if larger & set(update.store.indices):
            new = _enlarged(buffer, update.store.indices, extents)
            renamed[buffer] = new
            after.append(_taken(tree.fresh_block_name(new.name), new, buffer))
        core = map_buffers(
            replace(found, iter_vars=tuple(items)),
            load=lambda node: replace(node, buffer=renamed[node.buffer]) if node.buffer in renamed else None,
            store=lambda node: replace(node, buffer=renamed[node.buffer]) if node.buffer in renamed else None,
        )
        assert isinstance(core, Block)
        nest = nest_of_loops(loops, without_regions(core))
        scope = tree.scope(found)
        function = tree.replaced((chain[0], sequence((*before, nest, *after))))
        for new in renamed.values():
            function = with_allocation(function, scope, new)
        self._set(tree, function)

    @primitive
    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Fill what a padding stores with its constant before a loop; the block copies the elements inside only.

        The block stores `T.if_then_else(inside, element, constant)`. Gives the block that fills. ScheduleError W609 a
        block that stores anything else, W605 a loop that is not around it, or has more under it.
        """
        tree, found = self._block(block)
        _, target = self._loop(loop)
        require_complete(tree, found)
        store = only_store(tree, found)
        value = store.value
        if not (isinstance(value, PrimCall) and value.op == "if_then_else" and _is_constant(value.args[2])):
            raise failure(
                "W609",
                f"the block {found.name!r} is no padding: T.if_then_else(inside, element, constant)",
                tree,
                found,
            )
        require_covering(tree, found)
        around = tree.loops_around(found)
        if target not in around:
            raise failure("W605", f"the loop {target.loop_var.name!r} is not around block {found.name!r}", tree, target)
        inner = around[around.index(target) :]
        if chain_between(tree, inner) != inner or inner[-1].body is not found:
            raise failure("W605", f"there is more than block {found.name!r} under the loop", tree, target)
        inside, element, constant = value.args
        assert isinstance(inside, PrimExpr)
        assert isinstance(element, PrimExpr)
        assert isinstance(constant, PrimExpr)
        fresh = {item.var: fresh_variable(item.var) for item in found.iter_vars}
        loops = {item.loop_var: fresh_variable(item.loop_var, f"{item.loop_var.name}_pad") for item in inner}
        items = tuple(
            replace(item, var=fresh[item.var], value=None if item.value is None else substitute(item.value, loops))
            for item in found.iter_vars
        )
        name = tree.fresh_block_name(f"{found.name}_pad")
        predicate = None if found.predicate is None else substitute(found.predicate, loops)
        fill = Block(name, substitute(replace(store, value=constant), fresh), items, predicate, span=found.span)
        filling = nest_of_loops([_plain(item, loops[item.loop_var]) for item in inner], fill)
        own = {item.var: cast(item.var.dtype, item.value) for item in found.iter_vars if item.value is not None}
        copy = without_regions(
            replace(
                found, body=replace(store, value=element), predicate=all_of((found.predicate, substitute(inside, own)))
            )
        )
        copying = nest_of_loops(inner, copy)
        self._set(tree, tree.replaced((target, sequence((filling, copying)))))
        return self._block_handle(tree.name, name)

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether `decompose_padding` applies; changes nothing."""
        try:
            self.copy().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True


def _plain(loop: For, variable: PrimVar) -> For:
    return For(variable, loop.start, loop.extent, loop.body)


def _is_constant(value: object) -> bool:
    return isinstance(value, (FloatImm, IntImm)) or (isinstance(value, Cast) and _is_constant(value.value))


def _operands(tree: Tree, block: Block) -> list[BufferLoad]:
    """The elements whose product a reduction adds, all of them at variables of the block; else W610."""
    update = update_of(block)
    assert update is not None
    own = {item.var for item in block.iter_vars}
    found: list[BufferLoad] = []
    stack = [update.value]
    while stack:
        part = stack.pop()
        if isinstance(part, Binary) and part.kind == "mul":
            stack.extend((part.a, part.b))
        elif isinstance(part, Cast):
            stack.append(part.value)
        elif isinstance(part, BufferLoad):
            found.append(part)
        else:
            update = None
            break
    accesses = [*loads_in(block.body), block.body]
    bare = all(
        len(set(node.indices)) == len(node.indices) and set(node.indices) <= own
        for node in accesses
        if isinstance(node, (BufferLoad, BufferStore))
    )
    starts = isinstance(block.init, BufferStore) and _is_zero(block.init.value)
    if update is None or update.kind != "add" or not bare or not starts:
        raise failure(
            "W610", f"the block {block.name!r} is no sum of products of elements at its own variables", tree, block
        )
    found.reverse()  # in the order in which they are written
    once: dict[Buffer, BufferLoad] = {}
    for load in found:
        if once.setdefault(load.buffer, load).indices != load.indices:
            raise failure("W610", f"the block {block.name!r} reads {load.buffer.name!r} in two ways", tree, block)
    return found


def _is_zero(value: PrimExpr) -> bool:
    return isinstance(value, (FloatImm, IntImm)) and value.value == 0


def _own_loops(tree: Tree, block: Block) -> list[For]:
    """The loops of a block that are one for each variable and nothing else's; else W605."""
    around = tree.loops_around(block)
    values = [item.value for item in block.iter_vars]
    alone = bool(around) and chain_between(tree, around) == around and around[-1].body is block
    plain = alone and len(values) == len(around) and set(values) == {loop.loop_var for loop in around}
    if not plain or around[0] is not tree.place_of(block) or any(loop.kind != "serial" for loop in around):
        raise failure(
            "W605", f"the block {block.name!r} has not one serial loop of its own for each variable", tree, block
        )
    return around


def _padded(tree: Tree, block: Block, sizes: Sequence[int], point: Point) -> tuple[list[IterVar], set[PrimVar]]:
    """The variables with extents that are multiples, and those whose extent grows."""
    items: list[IterVar] = []
    larger: set[PrimVar] = set()
    for item, size in zip(block.iter_vars, sizes, strict=True):
        extent = point.dim(item.extent)
        if extent is None or item.start != 0:
            raise failure("W604", f"the domain of {item.var.name!r} is no dimension", tree, block)
        new = ceildiv(extent, size) * size
        if point.same(new, extent):
            items.append(item)
        else:
            larger.add(item.var)
            items.append(replace(item, extent=point.extent(new, item.var.dtype)))
    return items, larger


def _enlarged(buffer: Buffer, indices: Sequence[PrimExpr], extents: dict[PrimVar, Extent]) -> Buffer:
    """A buffer for all values of the variables that index it."""
    shape = tuple(extents[index] for index in indices if isinstance(index, PrimVar))
    return fresh_buffer(
        buffer, {}, name=f"{buffer.name}_pad", shape=shape, data=None, strides=None, elem_offset=None, scope="global"
    )


def _variables(shape: Sequence[Extent]) -> list[IterVar]:
    return [IterVar(PrimVar(f"v{i}", "int64"), 0, extent, "spatial") for i, extent in enumerate(shape)]


def _filled(name: str, source: Buffer, target: Buffer) -> Stmt:
    """The elements of a buffer in a larger one, zeros beside them."""
    items = _variables(target.shape)
    places = tuple(item.var for item in items)
    inside = all_of(
        binary("lt", var, as_expr(old, var.dtype))
        for var, old, new in zip(places, source.shape, target.shape, strict=True)
        if not (old is new or (isinstance(old, int) and old == new))
    )
    load: PrimExpr = BufferLoad(source, places)
    if inside is not None:
        load = PrimCall("if_then_else", (inside, load, const(0, source.dtype)), source.dtype)
    return nest_over(name, items, BufferStore(target, load, places))


def _taken(name: str, source: Buffer, target: Buffer) -> Stmt:
    """The elements of a larger buffer that a smaller one has place for."""
    items = _variables(target.shape)
    places = tuple(item.var for item in items)
    return nest_over(name, items, BufferStore(target, BufferLoad(source, places), places))
