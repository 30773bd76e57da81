"""Primitives that put what comes after a reduction into it.

fuse_reduction_epilogue    s[i] += x[i, k] from 0, then y[i] = s[i] + b[i]      becomes y[i] += x[i, k] from b[i]
"""

from __future__ import annotations

from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    IntImm,
    IterVar,
    PrimExpr,
    PrimVar,
    SeqStmt,
)
from weft.transform.analysis.loops.dependence import update_of
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.buffers import (
    empty_cases,
    reads_of,
    require_complete,
    require_covering,
    require_local,
    require_unchanged,
    without_allocation,
)
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.inlining import one_load, only_store, require_free_between
from weft.transform.schedule.primitives.queries import written_buffers
from weft.transform.schedule.reducer import fold_of, is_identity
from weft.transform.schedule.tree import Tree, buffers_of, loads_in, map_buffers, without_regions

__all__ = ["Epilogues"]


class Epilogues(ScheduleCore):
    """What comes after a reduction."""

    @primitive
    def fuse_reduction_epilogue(self, reduction_block: BlockRV, epilogue_block: BlockRV) -> None:
        """Let a reduction start with what another block adds to its result, and write that block's result.

        The epilogue applies the reduction's own operation (adding, for a sum) to each element of its result and to
        something else; it goes away, and the reduction's buffer with it. Sums of floats change by the order of
        additions. ScheduleError W610 no reduction from a neutral start, W609 an epilogue of another form, W612 a
        result that is a parameter, W613 other readers of it.
        """
        tree, found = self._block(reduction_block)
        _, epilogue = self._block(epilogue_block)
        fold_of(tree, found)
        update = update_of(found)
        init = found.init
        if update is None or not isinstance(init, BufferStore) or not is_identity(update.kind, init.value):
            raise failure("W610", f"the block {found.name!r} has several results", tree, found)
        (buffer,) = written_buffers(found)
        require_local(tree, found, buffer)
        require_covering(tree, found)
        if empty_cases(tree, found, buffer):
            raise failure(
                "W613",
                f"{buffer.name!r} is also written where the sum has no terms",
                tree,
                found,
                hint="decompose_reduction first",
            )
        if tree.scope(epilogue) is not tree.scope(found):
            message = f"block {epilogue.name!r} is not in the scope of block {found.name!r}"
            raise failure("W605", message, tree, epilogue)
        output = require_complete(tree, epilogue)
        require_covering(tree, epilogue)
        load, other, store = _added(tree, epilogue, buffer, update.kind)
        if output in buffers_of(found):
            raise failure("W613", f"the block {found.name!r} reads {output.name!r}", tree, found)
        if len(loads_in(tree.function.body, buffer)) != len(loads_in(found, buffer)) + 1:
            raise failure("W613", f"{buffer.name!r} is also read by others than block {epilogue.name!r}", tree, found)
        require_unchanged(tree, epilogue, reads_of(epilogue) - {buffer})
        require_free_between(tree, found, epilogue, output)
        values = _values(tree, found, epilogue, load, update.store)
        where = tuple(substitute(index, values) for index in store.indices)

        def loaded(node: BufferLoad) -> BufferLoad | None:
            return BufferLoad(output, where, span=node.span) if node.buffer is buffer else None

        def stored(node: BufferStore) -> BufferStore | None:
            if node.buffer is not buffer:
                return None
            return BufferStore(output, node.value, where, span=node.span)

        body = map_buffers(found.body, load=loaded, store=stored, touched=[buffer])
        start = BufferStore(output, substitute(other, values), where, span=init.span)
        new = without_regions(replace(found, body=body, init=start))
        function = tree.replaced((found, new), (epilogue, SeqStmt()))
        self._set(tree, without_allocation(function, buffer))


def _added(tree: Tree, block: Block, buffer: Buffer, kind: str) -> tuple[BufferLoad, PrimExpr, BufferStore]:
    """The element of a buffer that a block adds something to, what it adds, and its store; else W609."""
    store = only_store(tree, block)
    load = one_load(tree, block, buffer)
    value = store.value
    if isinstance(value, Binary) and value.kind == kind:
        for own, other in ((value.a, value.b), (value.b, value.a)):
            if isinstance(own, BufferLoad) and own.buffer is buffer and not loads_in(other, buffer):
                return load, other, store
    raise failure(
        "W609",
        f"the block {block.name!r} does more than to {_WORDS.get(kind, kind)} something and its"
        f" element of {buffer.name!r}",
        tree,
        block,
        hint="reverse_compute_at moves it",
    )


_WORDS = {"add": "add", "mul": "multiply"}


def _values(tree: Tree, block: Block, epilogue: Block, load: BufferLoad, store: BufferStore) -> dict[PrimVar, PrimExpr]:
    """The variables of an epilogue in terms of those of the reduction: each is one index of the element; else W609."""
    own = {item.var: item for item in epilogue.iter_vars}
    made = {item.var: item for item in block.iter_vars if item.kind == "spatial"}
    point = Point(tree.function)
    found: dict[PrimVar, PrimExpr] = {}
    for index, place in zip(load.indices, store.indices, strict=True):
        bare = isinstance(index, PrimVar) and isinstance(place, PrimVar) and index in own and place in made
        if bare and index not in found and _same_domain(own[index], made[place], point):  # type: ignore[index]
            found[index] = cast(index.dtype, place)  # type: ignore[index]
        elif not (isinstance(index, IntImm) and isinstance(place, IntImm) and index.value == place.value):
            raise failure(
                "W609",
                f"the index {index.script()} is not a variable of block {epilogue.name!r} of its own,"
                " over all of the result",
                tree,
                epilogue,
            )
    missing = next((item for item in epilogue.iter_vars if item.var not in found and item.extent != 1), None)
    if missing is not None:
        raise failure("W609", f"the variable {missing.var.name!r} is in no index of the result", tree, epilogue)
    rest = {item.var: as_expr(item.start, item.var.dtype) for item in epilogue.iter_vars}
    return {**rest, **found}


def _same_domain(a: IterVar, b: IterVar, point: Point) -> bool:
    return point.equal(a.start, b.start) and point.equal(a.extent, b.extent)
