"""Primitives on reductions: the init apart from the updates, partial results.

decompose_reduction   the init of a sum as a block of its own, before a loop
rfactor               sums over one loop each, then their sum

Source: Suriana, Adams and Kamil, Parallel associative reductions in Halide, 2017 (rfactor).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir import replace, substitute
from weft.ir.kernel.prim import cast
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    For,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.loops.points import conjuncts, variables_in
from weft.transform.schedule.buffers import require_covering, with_allocation
from weft.transform.schedule.copies import fresh_buffer, fresh_variable
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.loops import chain_between
from weft.transform.schedule.primitives.queries import written_buffers
from weft.transform.schedule.rebuild import all_of, nest_of_loops
from weft.transform.schedule.reducer import Fold, fold_of, stores
from weft.transform.schedule.tree import Tree, blocks_in, buffers_of, sequence, without_regions

__all__ = ["Reductions"]


class Reductions(ScheduleCore):
    """Steps on blocks with an init."""

    @primitive
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Give the init of a reduction a block and loops of its own before a loop; the reduction only updates then.

        No loop further out may be one of the reduction's steps. Loops of the init keep kinds and annotations, and its
        block those of the reduction. Gives the block that initialises (`C_init`); the block
        itself is called `C_update` then, and its handle stands for that. ScheduleError W610
        no reduction, W605 a loop that is not around it or too far in.
        """
        tree, found = self._block(block)
        _, target = self._loop(loop)
        around = tree.loops_around(found)
        if target not in around:
            raise failure("W605", f"the loop {target.loop_var.name!r} is not around block {found.name!r}", tree, target)
        if found.init is None:
            raise failure("W610", f"the block {found.name!r} has no init", tree, found)
        steps = {v for item in found.iter_vars if item.kind != "spatial" for v in variables_in(item.value)}
        place = around.index(target)
        outer = next((item for item in around[:place] if item.loop_var in steps), None)
        if outer is not None:
            raise failure(
                "W605",
                f"the loop {outer.loop_var.name!r} of the sum is outside of {target.loop_var.name!r}",
                tree,
                outer,
                hint="decompose at it",
            )
        stops = tree.conditions_around(found)
        if stops:
            raise failure("W615", f"the block {found.name!r} runs under a condition", tree, stops[0])
        written = set(written_buffers(found))
        other = next((i for i in blocks_in(target) if i is not found and written & set(buffers_of(i))), None)
        if other is not None:
            raise failure(
                "W613",
                f"block {other.name!r} uses the result of block {found.name!r} under the loop {target.loop_var.name!r}",
                tree,
                other,
            )
        wanted = {v for item in found.iter_vars if item.kind == "spatial" for v in variables_in(item.value)}
        mixed = next((item for item in around if item.loop_var in steps & wanted), None)
        if mixed is not None:
            raise failure("W611", f"the loop {mixed.loop_var.name!r} is both of the sum and of its result", tree, mixed)
        conditions = _about_the_result(tree, found, steps)
        wanted |= {v for part in conditions for v in variables_in(part)}
        inner = [item for item in around[place:] if item.loop_var in wanted]
        _require_free(tree, inner, steps)
        spatial = [item for item in found.iter_vars if item.kind == "spatial"]
        fresh = {item.var: fresh_variable(item.var) for item in spatial}
        loops = {item.loop_var: fresh_variable(item.loop_var, f"{item.loop_var.name}_init") for item in inner}
        new_items = tuple(
            replace(item, var=fresh[item.var], value=None if item.value is None else substitute(item.value, loops))
            for item in spatial
        )
        name = tree.fresh_block_name(f"{found.name}_init")
        predicate = all_of(substitute(part, loops) for part in conditions)
        body = substitute(found.init, fresh)
        init = Block(name, body, new_items, predicate, annotations=found.annotations, span=found.init.span)
        nest = nest_of_loops(
            [replace(item, loop_var=loops[item.loop_var], extent=_substituted(item.extent, loops)) for item in inner],
            init,
        )
        updating = tree.fresh_block_name(f"{found.name}_update")
        update = without_regions(replace(found, init=None, name=updating))
        small = Tree("", replace(tree.function, body=target)).replaced((found, update)).body
        self._rename(tree.name, found.name, updating)
        self._keep_separate(nest)
        tree = self._set(tree, tree.replaced((target, sequence((nest, small)))))
        return self._block_handle(tree.name, name)

    @primitive
    def rfactor(self, loop: LoopRV, factor_axis: int = 0) -> BlockRV:
        """Compute the part of a sum in each iteration of a loop apart, into a new axis of a new buffer, then add them.

        `factor_axis` is the place of the new axis; negative ones count from the end. Gives the block of the partial
        sums; the old handle is the block that adds them. A reduction may have several results, each with a new buffer:
        sums, or an index and a value that are chosen together. Annotations and kinds of loops are kept. ScheduleError
        W610 no reduction that can be done in pieces, W611 a loop that is not one of its steps alone, W604 no such axis,
        W607 a choice that depends on the order, which would change. Sums of floats change by the order of additions;
        comparisons that do not mind elements that are no numbers may choose another one of those.
        """
        tree, target = self._loop(loop)
        blocks = list(blocks_in(target))
        if len(blocks) != 1:
            raise failure("W605", f"there is more than one block under the loop {target.loop_var.name!r}", tree, target)
        block = blocks[0]
        fold = fold_of(tree, block)
        require_covering(tree, block)
        _about_the_result(
            tree, block, {v for i in block.iter_vars if i.kind != "spatial" for v in variables_in(i.value)}
        )
        touched = [item for item in block.iter_vars if target.loop_var in variables_in(item.value)]
        if not touched or any(item.kind != "reduce" for item in touched):
            raise failure(
                "W611", f"the loop {target.loop_var.name!r} is not one of the sum {block.name!r} alone", tree, target
            )
        ndim = min(part.buffer.ndim for part in fold.parts)
        axis = factor_axis + ndim + 1 if factor_axis < 0 else factor_axis
        if not 0 <= axis <= ndim:
            raise failure("W604", f"the new axis {factor_axis} is none of {ndim + 1}", tree, target)
        around = tree.loops_around(block)
        steps = {v for item in block.iter_vars if item.kind == "reduce" for v in variables_in(item.value)}
        first = next(loop for loop in around if loop.loop_var in steps and (loop is target or loop.extent != 1))
        if not fold.any_order and first is not target:
            raise failure(
                "W607",
                f"what block {block.name!r} chooses depends on the order of its elements: only its"
                f" outermost loop {first.loop_var.name!r} can be factored",
                tree,
                target,
                hint="any loop can where equal values are told apart by their index: a > b or (a == b and i < j)",
            )
        chain = chain_between(tree, around)
        if chain != around or chain[0] is not tree.place_of(block) or target.start != 0:
            raise failure("W605", f"the loops around block {block.name!r} are not a nest of their own", tree, chain[0])
        if variables_in(*(part for item in around for part in (item.start, item.extent))) & {
            item.loop_var for item in around
        }:
            raise failure("W606", "the ranges of the loops depend on one another", tree, chain[0])
        partials = [_partial(part.buffer, target, axis) for part in fold.parts]
        name = tree.fresh_block_name(f"{block.name}_rf")
        pieces = _partial_sums(block, fold, name, target, around, partials, axis)
        whole = _sum_of_parts(block, fold, target, around, partials, axis)
        function = tree.replaced((chain[0], sequence((nest_of_loops(around, pieces), whole))))
        self._keep_separate(whole)
        for partial in reversed(partials):
            function = with_allocation(function, tree.scope(block), partial)
        tree = self._set(tree, function)
        return self._block_handle(tree.name, name)


def _about_the_result(tree: Tree, block: Block, steps: set[PrimVar]) -> list[PrimExpr]:
    """The parts of a predicate that are not about the steps of a sum; W615 for those about both."""
    loops = {item.loop_var for item in tree.loops_around(block)}
    for part in conjuncts(block.predicate):
        used = variables_in(part) & loops
        if used & steps and not used <= steps:
            raise failure("W615", f"the condition {part.script()} is about the sum and its result at once", tree, block)
    return [part for part in conjuncts(block.predicate) if not variables_in(part) & steps]


def _require_free(tree: Tree, loops: list[For], steps: set[PrimVar]) -> None:
    for loop in loops:
        if variables_in(loop.start, loop.extent) & steps:
            raise failure("W606", f"the range of {loop.loop_var.name!r} depends on a loop of the sum", tree, loop)


def _substituted(extent: object, mapping: dict[PrimVar, PrimVar]) -> object:
    return substitute(extent, mapping) if isinstance(extent, PrimExpr) else extent


def _partial(buffer: Buffer, target: For, axis: int) -> Buffer:
    """The buffer of the results of each iteration of a loop."""
    shape = (*buffer.shape[:axis], target.extent, *buffer.shape[axis:])
    return fresh_buffer(
        buffer, {}, name=f"{buffer.name}_rf", shape=shape, scope="global", data=None, strides=None, elem_offset=None
    )


def _places(
    fold: Fold, partials: Sequence[Buffer], part: PrimVar, axis: int, values: Mapping[PrimVar, PrimExpr]
) -> list[BufferLoad]:
    """The elements of the partial results for an iteration."""
    found: list[BufferLoad] = []
    for item, partial in zip(fold.parts, partials, strict=True):
        indices = tuple(substitute(index, values) for index in item.indices)
        found.append(BufferLoad(partial, (*indices[:axis], part, *indices[axis:])))
    return found


def _partial_sums(
    block: Block, fold: Fold, name: str, target: For, around: list[For], partials: list[Buffer], axis: int
) -> Block:
    """The reduction over all steps but those of the factored loop, which becomes an index of the result."""
    part = PrimVar(f"v{target.loop_var.name}", target.loop_var.dtype)
    items: list[IterVar] = []
    values: dict[PrimVar, PrimExpr] = {}
    made: dict[PrimVar, PrimVar] = {target.loop_var: part}
    by_loop = {loop.loop_var: loop for loop in around}
    extra: list[IterVar] = []
    for item in block.iter_vars:
        used = variables_in(item.value)
        if target.loop_var not in used:
            fresh = fresh_variable(item.var)
            values[item.var] = fresh
            items.append(replace(item, var=fresh))
            continue
        for loop in around:
            if loop.loop_var in used and loop.loop_var not in made:
                made[loop.loop_var] = PrimVar(f"v{loop.loop_var.name}", loop.loop_var.dtype)
                extra.append(
                    IterVar(made[loop.loop_var], loop.start, by_loop[loop.loop_var].extent, "reduce", loop.loop_var)
                )
        assert item.value is not None
        values[item.var] = cast(item.var.dtype, substitute(item.value, made))
    items.append(IterVar(part, 0, target.extent, "spatial", target.loop_var))
    items.extend(extra)
    places = _places(fold, partials, part, axis, values)
    terms = [substitute(item.term, values) for item in fold.parts]
    starts = [item.start for item in fold.parts]
    guards = [item for item in conjuncts(block.predicate) if target.loop_var in variables_in(item)]
    if guards:  # a part without any steps has the neutral value
        inside = all_of(substitute(item, made) for item in guards)
        assert inside is not None
        terms = [
            PrimCall("if_then_else", (inside, term, start), term.dtype)
            for term, start in zip(terms, starts, strict=True)
        ]
    predicate = all_of(item for item in conjuncts(block.predicate) if item not in guards)
    has_steps = any(item.kind == "reduce" for item in items)
    init = stores(places, starts) if has_steps else None
    body = fold.step(places, terms) if has_steps else stores(places, terms)
    return Block(name, body, tuple(items), predicate, init=init, annotations=block.annotations, span=block.span)


def _sum_of_parts(block: Block, fold: Fold, target: For, around: list[For], partials: list[Buffer], axis: int) -> Stmt:
    """The block that adds the parts, over the spatial variables of the old one."""
    spatial = [item for item in block.iter_vars if item.kind == "spatial"]
    wanted = {v for item in spatial for v in variables_in(item.value)}
    steps = {v for item in block.iter_vars if item.kind == "reduce" for v in variables_in(item.value)}
    conditions = [part for part in conjuncts(block.predicate) if not variables_in(part) & steps]
    wanted |= {v for part in conditions for v in variables_in(part)}
    kept = [loop for loop in around if loop.loop_var in wanted]
    names = {loop.loop_var: fresh_variable(loop.loop_var) for loop in kept}
    loops = [replace(loop, loop_var=names[loop.loop_var]) for loop in kept]
    step = For(fresh_variable(target.loop_var), 0, target.extent, block)
    part = PrimVar(f"v{target.loop_var.name}", target.loop_var.dtype)
    items = [replace(item, value=None if item.value is None else substitute(item.value, names)) for item in spatial]
    items.append(IterVar(part, 0, target.extent, "reduce", step.loop_var))
    own = [BufferLoad(item.buffer, item.indices) for item in fold.parts]
    body = fold.step(own, _places(fold, partials, part, axis, {}))
    predicate = all_of(substitute(item, names) for item in conditions)
    new = Block(
        block.name, body, tuple(items), predicate, init=block.init, annotations=block.annotations, span=block.span
    )
    return nest_of_loops([*loops, step], new)
