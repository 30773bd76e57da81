"""Primitives that mark: how loops run, and annotations.

A loop that is marked parallel, vectorized or bound to a thread must have nothing in common between its iterations. That
is proved when it is marked, and again after every later step that touches its function. The threads of one block
(threadIdx) may also work on one reduction together: each of them on some elements, which come in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import ScheduleError
from weft.ir import replace
from weft.ir.kernel.nests import perfect_nest
from weft.ir.tensor import Block, For
from weft.transform.analysis.loops.dependence import Nest, has_index_of_its_own, shared
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, ExprRV, LoopRV
from weft.transform.schedule.reducer import fold_of
from weft.transform.schedule.state import INDEPENDENT, Proven
from weft.transform.schedule.tree import Tree, blocks_in

__all__ = ["LoopKinds", "require_separate"]

THREADS = (
    *(f"{kind}Idx.{axis}" for kind in ("block", "thread") for axis in "xyz"),
    *("vthread", "vthread.x", "vthread.y", "vthread.z"),
)


def require_separate(tree: Tree, loop: For, kind: str, thread: str | None = None) -> None:
    """Refuse a loop whose iterations touch the same elements: W608. A single one shares nothing."""
    if loop.extent == 1:
        return
    if kind == "thread_binding" and str(thread).startswith("threadIdx.") and _is_shared_reduction(tree, loop):
        return
    chain, body = perfect_nest(loop)
    if has_index_of_its_own(chain):
        return
    why = shared(Nest(tuple(chain), body, Point.around(tree, loop)))
    if why is not None:
        hint = None
        if why.buffer is not None and why.buffer not in tree.function.params:
            hint = f"allocate {why.buffer.name!r} inside the loop, or mark a loop further in"
        raise failure(
            "W608", f"the loop {loop.loop_var.name!r} cannot {INDEPENDENT[kind]}: {why.reason}", tree, loop, hint=hint
        )


def _is_shared_reduction(tree: Tree, loop: For) -> bool:
    """Whether the iterations of a loop are elements of one reduction, in any order, and share nothing else."""
    blocks = list(blocks_in(loop))
    touching = [item for block in blocks for item in block.iter_vars if loop.loop_var in variables_in(item.value)]
    if len(blocks) != 1 or not touching or any(item.kind != "reduce" for item in touching):
        return False
    try:
        fold = fold_of(tree, blocks[0])
    except ScheduleError:
        return False
    chain, body = perfect_nest(loop)
    nest = Nest(tuple(chain), body, Point.around(tree, loop))
    results = {part.buffer for part in fold.parts}
    alone = all(buffer in results or loop in nest.independent(buffer) for buffer in nest.written())
    return fold.any_order and alone and not tree.conditions_around(blocks[0])


class LoopKinds(ScheduleCore):
    """How loops run, and what is written on loops and blocks."""

    @primitive
    def parallel(self, loop: LoopRV) -> None:
        """Run the iterations of a loop at once; ScheduleError W608 when they touch the same elements."""
        self._mark(loop, "parallel")

    @primitive
    def vectorize(self, loop: LoopRV) -> None:
        """Make the iterations of a loop the lanes of vectors; ScheduleError W608 when they touch the same elements."""
        self._mark(loop, "vectorized")

    @primitive
    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Give each iteration of a loop to a thread of an axis ("blockIdx.x", "threadIdx.y", "vthread", ...).

        Threads of one block ("threadIdx.x") may share a reduction. ScheduleError W604 for no such axis, W608 when
        iterations touch the same elements in another way.
        """
        if thread_axis not in THREADS:
            raise failure("W604", f"there is no thread axis {thread_axis!r}", hint=f"one of {', '.join(THREADS)}")
        self._mark(loop, "thread_binding", thread_axis)

    @primitive
    def unroll(self, loop: LoopRV) -> None:
        """Write the iterations of a loop one after the other when code is made."""
        tree, found = self._loop(loop)
        self._set(tree, tree.replaced((found, replace(found, kind="unrolled", thread=None))))

    def _mark(self, loop: LoopRV, kind: str, thread: str | None = None) -> None:
        tree, found = self._loop(loop)
        require_separate(tree, found, kind, thread)
        new = replace(found, kind=kind, thread=thread)
        tree = self._set(tree, tree.replaced((found, new)))
        self._separate = {**self._separate, found.loop_var: Proven.of(tree, new)}

    def _recheck(self, tree: Tree) -> None:
        """Marked loops after a step: their iterations must still be separate."""
        for variable, proven in self._separate.items():
            loop = tree.loop(variable)
            if loop is None or loop.kind not in INDEPENDENT:
                continue
            now = Proven.of(tree, loop)
            if proven is None or not proven.holds_for(now):
                require_separate(tree, loop, loop.kind, loop.thread)
                self._separate = {**self._separate, variable: now}

    @primitive
    def annotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str, ann_val: Any) -> None:
        """Write a value (text, number, truth value, list or dictionary of them) under a key on a block or a loop."""
        tree, found = self._annotated(block_or_loop)
        value = self._number(ann_val) if isinstance(ann_val, ExprRV) else ann_val
        if not _is_plain(value):
            raise failure(
                "W604",
                f"{value!r} cannot be an annotation",
                tree,
                found,
                hint="text, numbers, lists and dictionaries of them",
            )
        self._set(tree, tree.replaced((found, replace(found, annotations=found.annotations.set(ann_key, value)))))

    @primitive
    def unannotate(self, block_or_loop: BlockRV | LoopRV | str, ann_key: str) -> None:
        """Remove what is written under a key; ScheduleError W604 when nothing is."""
        tree, found = self._annotated(block_or_loop)
        if ann_key not in found.annotations:
            known = ", ".join(found.annotations) or "none"
            raise failure("W604", f"there is no annotation {ann_key!r}", tree, found, hint=f"there are: {known}")
        self._set(tree, tree.replaced((found, replace(found, annotations=found.annotations.without(ann_key)))))

    def _annotated(self, handle: BlockRV | LoopRV | str) -> tuple[Tree, Block | For]:
        return self._loop(handle) if isinstance(handle, LoopRV) else self._block(handle)

    @primitive
    def enter_postproc(self) -> None:
        """Mark the start of what comes after the search for a schedule; changes nothing."""


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return isinstance(value, (str, int, float, bool))
