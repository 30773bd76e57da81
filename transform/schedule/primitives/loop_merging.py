"""Primitives that join nests of loops, and that cut one loop into several: merge, loop_partition."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import replace, rewrite, substitute
from weft.ir.dim import Dim, as_dim
from weft.ir.node import Node
from weft.ir.tensor import Block, For, PrimVar, Stmt
from weft.transform.analysis.loops.dependence import loop_carried_dependence
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.copies import fresh_copy
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import LoopRV
from weft.transform.schedule.primitives.factors import Factor, factor_of, recorded
from weft.transform.schedule.primitives.loops import extent_text, refused, require_plain, require_terms, sizes_text
from weft.transform.schedule.tree import Tree, sequence, statements_of

__all__ = ["LoopMerging"]


class LoopMerging(ScheduleCore):
    """Several nests from one, and one from several."""

    @primitive
    def merge(self, *loops: LoopRV) -> LoopRV:
        """Loops that follow one another directly, of one extent, as one loop with all the bodies.

        Of loops inside of such loops, those around them are merged first, from the outside in. ScheduleError W605 when
        they do not follow one another, W606 when their ranges differ, W607 when an iteration needs what a later one of
        an earlier loop computes.
        """
        found = [self._loop(loop) for loop in loops]
        if len(found) < 2:
            raise failure("W604", "merging takes at least two loops")
        for group in _groups_around(found[0][0], [loop for _, loop in found]):
            self.merge(*(self._loop_handle(found[0][0].name, loop.loop_var) for loop in group))
        found = [self._loop(loop) for loop in loops]
        tree, first = found[0]
        nests = [loop for _, loop in found]
        parent = tree.parents[first]
        siblings = statements_of(parent) if parent is not None else (first,)
        places = [siblings.index(loop) if loop in siblings else -1 for loop in nests]
        if -1 in places or places != list(range(places[0], places[0] + len(places))):
            raise failure("W605", "the loops do not follow one another directly", tree, nests[-1])
        point = Point.around(tree, first)
        for loop in nests:
            require_plain(tree, loop, "merge")
            if not (point.equal(loop.extent, first.extent) and point.equal(loop.start, first.start)):
                raise failure(
                    "W606",
                    f"the loops {first.loop_var.name!r} and {loop.loop_var.name!r} have different ranges",
                    tree,
                    loop,
                )
        for loop in nests:
            require_terms(tree, loop, "merge")
        merged = [first.body]
        for loop in nests[1:]:
            body = substitute(loop.body, {loop.loop_var: first.loop_var})
            why = loop_carried_dependence(replace(first, body=sequence(merged)), body, point)
            if why is not None:
                raise refused(why, tree, loop, "merge")
            merged.append(body)
        variable = PrimVar(f"{first.loop_var.name}_m", first.loop_var.dtype)
        new = replace(first, loop_var=variable, body=substitute(sequence(merged), {first.loop_var: variable}))
        parent_new = [new if item is first else item for item in siblings if item is first or item not in nests]
        assert parent is not None
        tree = self._set(tree, tree.replaced((parent, sequence(parent_new))))
        return self._loop_handle(tree.name, variable)

    @primitive
    def loop_partition(self, loop: LoopRV, factors: Sequence[Factor], preserve_unit_iters: bool = True) -> list[LoopRV]:
        """One loop as several one after the other, of the given numbers of iterations; one may be None: the rest.

        A number may be a dimension over the function's symbols ("n // 16 * 16"), which may be 0. Where none is None and
        iterations are left over, they are one more loop at the end.

        ScheduleError W604 when the loop has not that many iterations, W606 a loop that is not a plain serial one.
        """
        tree, found = self._loop(loop)
        require_plain(tree, found, "loop_partition")
        point = Point.around(tree, found)
        extent = point.dim(found.extent)
        counts = [factor_of(self._number, tree, point, factor, 0) for factor in factors]
        self._record(factors=[recorded(factor) for factor in factors])
        if extent is None or not counts or counts.count(None) > 1 or any(isinstance(c, int) and c < 1 for c in counts):
            raise failure(
                "W604", f"the loop {found.loop_var.name!r} is not partitioned by {sizes_text(counts)}", tree, found
            )
        known = sum((count for count in counts if count is not None), 0)
        if not point.at_most(known, extent):
            raise failure(
                "W604",
                f"{sizes_text(counts)} iterations are not proved to be among the {extent_text(found.extent)} of"
                f" {found.loop_var.name!r}",
                tree,
                found,
                hint="parts whose sum is at most the extent; None, or what is left over, is the rest",
            )
        rest = extent - known
        if None not in counts and not point.same(rest, 0):
            counts.append(None)
        taken = set(tree.blocks)
        sizes = [rest if count is None else count for count in counts]
        later = _without_inits(tree, found, point, sizes)
        parts: list[Stmt] = []
        start: Dim = point.dim(found.start) or 0
        dtype = found.loop_var.dtype
        for position, size in enumerate(sizes):
            variable = PrimVar(f"{found.loop_var.name}_{position}", dtype)
            body = found.body if not position else fresh_copy(later, taken)
            body = substitute(body, {found.loop_var: variable})
            parts.append(For(variable, point.extent(start, dtype), point.extent(size, dtype), body, span=found.span))
            start = as_dim(start) + size
        tree = self._set(tree, tree.replaced((found, sequence(parts))))
        return [self._loop_handle(tree.name, part.loop_var) for part in parts if isinstance(part, For)]


def _groups_around(tree: Tree, loops: Sequence[For]) -> list[tuple[For, ...]]:
    """The loops to merge before some loops: those around them, of each depth below the loops that they share."""
    nests = [tree.loops_around(loop) for loop in loops]
    if len({len(nest) for nest in nests}) != 1:
        return []
    levels = list(zip(*nests, strict=True))
    return [level for level in levels if len(set(level)) == len(level)]


def _without_inits(tree: Tree, loop: For, point: Point, counts: Sequence[Dim]) -> Stmt:
    """The body of a part that is not the first: sums over the loop have been initialised, if there was a first one."""

    def post(node: Node) -> Node | None:
        if not isinstance(node, Block) or node.init is None:
            return None
        kinds = {item.kind for item in node.iter_vars if loop.loop_var in variables_in(item.value)}
        if "reduce" not in kinds:
            return None
        alone = kinds == {"reduce"}
        if not all(point.at_most(1, count) for count in (counts[:1] if alone else counts)):
            raise failure(
                "W604",
                f"a part of the sum {node.name!r} may be empty, and then its result would not be set as it is now",
                tree,
                loop,
                hint="decompose_reduction first",
            )
        return replace(node, init=None) if alone else None

    return rewrite(loop.body, post)
