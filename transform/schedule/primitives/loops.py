"""Primitives on loops: split, fuse, reorder, merge, partition, unit loops.

split       one loop as several inside one another
fuse        several loops directly inside one another as one
reorder     loops of one nest in another order
merge       loops one after the other as one loop
partition   one loop as several one after the other
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir import substitute
from weft.ir.dim import Dim, ceildiv, product
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.tensor import Block, Extent, For, PrimExpr, PrimVar, Stmt
from weft.transform.analysis.loops.dependence import Conflict, Nest, conflict
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.buffers import sets_result_when_empty
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, LoopRV
from weft.transform.schedule.primitives.factors import Factor, factor_of, recorded
from weft.transform.schedule.rebuild import guarded, nest_of_loops, tidied
from weft.transform.schedule.tree import Tree, blocks_in

__all__ = ["LoopPrimitives", "chain_between", "require_plain", "times"]


def require_plain(tree: Tree, loop: For, what: str) -> None:
    """Refuse loops that carry more than their range: W606."""
    if loop.kind == "thread_binding" or loop.annotations:
        held = "bound to a thread" if loop.kind == "thread_binding" else "annotated"
        raise failure(
            "W606",
            f"{what} of the loop {loop.loop_var.name!r}, which is {held}",
            tree,
            loop,
            hint=f"{what} before that",
        )
    if loop.kind != "serial":
        raise failure(
            "W606",
            f"{what} of the {loop.kind} loop {loop.loop_var.name!r}",
            tree,
            loop,
            hint=f"{what} first, then mark the loops",
        )
    if loop.step not in (None, 1):
        raise failure("W606", f"{what} of the loop {loop.loop_var.name!r}, which has a step", tree, loop)


def chain_between(tree: Tree, loops: Sequence[For]) -> list[For]:
    """The loops from the outermost of some to the innermost, each the whole body of the one before: else W605."""
    depth = {loop: len(list(tree.above(loop))) for loop in loops}
    ordered = sorted(loops, key=lambda loop: depth[loop])
    chain: list[For] = []
    current: Stmt = ordered[0]
    while True:
        if not isinstance(current, For):
            missing = next(loop for loop in ordered if loop not in chain)
            names = " and ".join(repr(loop.loop_var.name) for loop in (chain[-1], missing))
            raise failure(
                "W605",
                f"the loops {names} are not directly inside one another",
                tree,
                missing,
                hint="only loops without anything beside them between them",
            )
        chain.append(current)
        if all(loop in chain for loop in ordered):
            return chain
        current = current.body


class LoopPrimitives(ScheduleCore):
    """Splitting, fusing, reordering and merging of loops."""

    @primitive
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[Factor],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """One loop as several inside one another, of the given extents; one of them may be None: what is needed.

        A factor is a number, the handle of one, or a dimension over the function's symbols ("n"). Where the product
        is more than the loop's extent, blocks below get a predicate; with `disable_predication` it must not be.
        ScheduleError W604 wrong factors, W606 a loop that is not a plain serial one.
        """
        tree, found = self._loop(loop)
        require_plain(tree, found, "split")
        point = Point.around(tree, found)
        sizes = [factor_of(self._number, tree, point, factor) for factor in factors]
        self._record(factors=[recorded(factor) for factor in factors])
        whole = self._whole(tree, found, point, sizes)
        variable = found.loop_var
        names = [PrimVar(f"{variable.name}_{i}", variable.dtype) for i in range(len(whole))]
        loops = [
            For(name, 0, point.extent(size, variable.dtype), found.body)
            for name, size in zip(names, whole, strict=True)
        ]
        value: PrimExpr | None = None
        for name, size in zip(names, whole, strict=True):
            if not preserve_unit_iters and point.same(size, 1):
                continue
            if value is None:
                value = name
                continue
            scaled = value if point.same(size, 1) else binary("mul", value, point.expr(size, variable.dtype))
            value = binary("add", scaled, name)
        value = as_expr(0, variable.dtype) if value is None else value
        index = value if found.start == 0 else binary("add", as_expr(found.start, variable.dtype), value)
        body = substitute(found.body, {variable: index})
        extent = point.dim(found.extent)
        exact = extent is not None and point.at_most(product(whole), extent)
        if not exact:
            if disable_predication:
                raise failure(
                    "W604",
                    f"the factors {sizes_text(sizes)} do not divide the extent of {variable.name!r}",
                    tree,
                    found,
                    hint="without disable_predication the rest is guarded",
                )
            require_terms(tree, found, "split")
            body = guarded(body, binary("lt", value, as_expr(found.extent, variable.dtype)))
        new = self._tidied(tree, found, nest_of_loops(loops, body))
        tree = self._set(tree, tree.replaced((found, new)))
        return [self._loop_handle(tree.name, name) for name in names]

    def _whole(self, tree: Tree, loop: For, point: Point, sizes: list[Dim | None]) -> list[Dim]:
        """The factors with the open one filled in; W604 when they are too few or too small."""
        extent = point.dim(loop.extent)
        if not sizes or sizes.count(None) > 1:
            raise failure(
                "W604",
                f"the factors {sizes_text(sizes)} leave more than one extent open"
                if sizes
                else "a loop is split by at least one factor",
                tree,
                loop,
            )
        known = product(size for size in sizes if size is not None)
        if None in sizes:
            if extent is None:
                raise failure("W604", f"the extent of {loop.loop_var.name!r} is no dimension", tree, loop)
            return [ceildiv(extent, known) if size is None else size for size in sizes]
        if extent is None or not point.at_most(extent, known):
            raise failure(
                "W604",
                f"the factors {sizes_text(sizes)} do not cover the extent"
                f" {extent_text(loop.extent)} of {loop.loop_var.name!r}",
                tree,
                loop,
                hint="leave one of them open: None",
            )
        return [size for size in sizes if size is not None]

    def _tidied(self, tree: Tree, old: Stmt, new: Stmt) -> Stmt:
        """A statement that is to stand for an old one, with simple bindings."""
        around = tree.loops_around(old)
        point = Point.around(tree, around[0] if around else old)
        return tidied(new, around, point)

    @primitive
    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Several loops directly inside one another, given from the outside in, as one over all their iterations.

        ScheduleError W605 when they are not, W606 for loops that do not start at 0, are marked, or whose extents
        depend on one another.
        """
        if not loops:
            raise failure("W604", "there is nothing to fuse")
        found = [self._loop(loop) for loop in loops]
        tree = found[0][0]
        chain = [loop for _, loop in found]
        for (other, inner), outer in zip(found[1:], chain, strict=False):
            if other is not tree or outer.body is not inner:
                names = (inner.loop_var.name, outer.loop_var.name)
                raise failure(
                    "W605",
                    f"the loop {names[0]!r} is not directly inside {names[1]!r}",
                    tree,
                    inner,
                    hint="give the loops from the outside in",
                )
        for position, loop in enumerate(chain):
            require_plain(tree, loop, "fuse")
            if loop.start != 0:
                raise failure("W606", f"the loop {loop.loop_var.name!r} does not start at 0", tree, loop)
            if variables_in(loop.extent) & {item.loop_var for item in chain[:position]}:
                raise failure(
                    "W606", f"the extent of {loop.loop_var.name!r} depends on the loops around it", tree, loop
                )
        if len(chain) == 1:
            return loops[0]
        if any(_takes_part(block, loop) for block in blocks_in(chain[-1].body) for loop in chain if block.init):
            for loop in chain:
                require_terms(tree, loop, "fuse", always=True)
        dtype = "int64" if any(loop.loop_var.dtype == "int64" for loop in chain) else chain[0].loop_var.dtype
        fused = PrimVar("_".join([*(loop.loop_var.name for loop in chain), "fused"]), dtype)
        values: dict[PrimVar, PrimExpr] = {}
        extent: Extent = 1
        for position, loop in reversed(list(enumerate(chain))):
            value: PrimExpr = fused if _is_one(extent) else binary("floordiv", fused, as_expr(extent, dtype))
            if position:
                value = binary("floormod", value, as_expr(loop.extent, dtype))
            if not preserve_unit_iters and loop.extent == 1:
                value = as_expr(0, dtype)
            values[loop.loop_var] = cast(loop.loop_var.dtype, value)
            extent = times(loop.extent, extent, dtype)
        body = substitute(chain[-1].body, values)
        new = self._tidied(tree, chain[0], For(fused, 0, extent, body, span=chain[0].span))
        tree = self._set(tree, tree.replaced((chain[0], new)))
        return self._loop_handle(tree.name, fused)

    @primitive
    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Loops of one nest in the given order, from the outside in; others of the nest stay in their places.

        ScheduleError W605 when something stands beside the loops, W606 when an extent depends on a loop that would be
        further in, W607 when the order of accesses matters.
        """
        found = [self._loop(loop) for loop in ordered_loops]
        if len({id(loop) for _, loop in found}) != len(found):
            raise failure("W604", "a loop is given twice")
        if len(found) < 2:
            return
        tree = found[0][0]
        loops = [loop for _, loop in found]
        if any(other is not tree for other, _ in found):
            raise failure("W605", "the loops are of different functions")
        chain = chain_between(tree, loops)
        wanted = iter(loops)
        order = [next(wanted) if loop in loops else loop for loop in chain]
        for position, loop in enumerate(order):
            inner = {item.loop_var for item in order[position + 1 :]}
            if variables_in(loop.start, loop.extent, loop.step) & inner:
                raise failure(
                    "W606",
                    f"the range of {loop.loop_var.name!r} depends on a loop that would be inside of it",
                    tree,
                    loop,
                )
        why = conflict(Nest(tuple(chain), chain[-1].body, Point.around(tree, chain[0])), order)
        if why is not None:
            raise refused(why, tree, loops[0], "reorder")
        new = nest_of_loops(order, chain[-1].body)
        self._set(tree, tree.replaced((chain[0], new)))

    @primitive
    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """A loop of one iteration around a block or a loop."""
        if isinstance(block_or_loop, LoopRV):
            tree, found = self._loop(block_or_loop)
        else:
            tree, found = self._block(block_or_loop)
        inner = found.loop_var if isinstance(found, For) else next((item.var for item in found.iter_vars), None)
        variable = PrimVar("u", "int32" if inner is None else inner.dtype)
        tree = self._set(tree, tree.replaced((found, For(variable, 0, 1, found))))
        return self._loop_handle(tree.name, variable)


def _takes_part(block: Block, loop: For) -> bool:
    """Whether a loop is one of the result of a block."""
    return any(item.kind == "spatial" and loop.loop_var in variables_in(item.value) for item in block.iter_vars)


def require_terms(tree: Tree, loop: For, what: str, *, always: bool = False) -> None:
    """W610 where a sum may have no terms and its init would no longer be found then.

    The result of a sum without terms is its init as long as only loops are around its block. With `always` it has to
    have some, even where its result is set apart.
    """
    point = Point.around(tree, loop)
    for block in blocks_in(loop):
        steps = [
            item for item in block.iter_vars if item.kind == "reduce" and loop.loop_var in variables_in(item.value)
        ]
        if block.init is None or not steps:
            continue
        some = point.at_most(1, point.dim(loop.extent)) and all(point.at_most(1, point.dim(i.extent)) for i in steps)
        if not some and (always or not sets_result_when_empty(tree, block)):
            raise failure(
                "W610",
                f"cannot {what} the loop {loop.loop_var.name!r} of the sum {block.name!r}: it may"
                " have no terms, and then nothing would set its result",
                tree,
                loop,
                hint="decompose_reduction first",
            )


def refused(why: Conflict, tree: Tree, loop: For, what: str) -> Exception:
    return failure("W607", f"cannot {what} the loop {loop.loop_var.name!r}: {why.reason}", tree, loop)


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def times(a: Extent, b: Extent, dtype: str | None = None) -> Extent:
    """The product of two sizes, a plain number where both are; a factor of one is left out."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if _is_one(a) or _is_one(b):
        return b if _is_one(a) else a
    return binary("mul", as_expr(a, dtype), b) if isinstance(b, int) else binary("mul", a, as_expr(b, dtype))


def extent_text(extent: Extent) -> str:
    return str(extent) if isinstance(extent, int) else extent.script()


def sizes_text(sizes: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
