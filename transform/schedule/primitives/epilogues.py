"""Primitives that put what comes after a reduction into it.

fuse_reduction_epilogue    s[i] += x[i, k] from 0, then y[i] = s[i] + b[i]    becomes y[i] += x[i, k] from b[i]
                           s[i] += x[i, k], then y[i] = f(s[i])     becomes y[i] += x[i, k], at the end y[i] = f(y[i])
"""

from __future__ import annotations

from weft.ir import replace, structural_equal, substitute
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    IfThenElse,
    IntImm,
    IterVar,
    PrimExpr,
    PrimVar,
    SeqStmt,
)
from weft.transform.analysis.loops.affine import Bindings
from weft.transform.analysis.loops.dependence import update_of
from weft.transform.analysis.loops.points import Point, conjuncts, variables_in
from weft.transform.schedule.buffers import (
    empty_cases,
    reads_of,
    require_complete,
    require_covering,
    require_local,
    require_sole_writer,
    require_unchanged,
    without_allocation,
)
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.inlining import one_load, only_store, require_free_between
from weft.transform.schedule.primitives.queries import written_buffers
from weft.transform.schedule.rebuild import all_of
from weft.transform.schedule.reducer import is_identity
from weft.transform.schedule.state import INDEPENDENT
from weft.transform.schedule.tree import (
    Tree,
    buffers_of,
    loads_in,
    map_buffers,
    sequence,
    stores_in,
    without_regions,
)

__all__ = ["Epilogues"]


class Epilogues(ScheduleCore):
    """What comes after a reduction."""

    @primitive
    def fuse_reduction_epilogue(self, reduction_block: BlockRV | str, epilogue_block: BlockRV | str) -> None:
        """Let a reduction write the result of a block that goes on with its own result, which is kept no more.

        A block that applies the reduction's operation (adding, for a sum) to the result and to something else becomes
        the reduction's start. Any other is applied once, where the last term has come; applied to every part of a sum,
        as peers do with limits, it would be another value. Several blocks are fused one after the other. Sums of
        floats change by the order of additions. ScheduleError W610 no reduction of one result, W609 an epilogue of
        another form, W607 loops in which the last term may not come last, W612 a result that is a parameter, W613
        other readers of it.
        """
        tree, found = self._block(reduction_block)
        _, epilogue = self._block(epilogue_block)
        _require_one_result(tree, found)
        (buffer,) = written_buffers(found)
        require_local(tree, found, buffer)
        bindings = require_covering(tree, found)
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
        load, store = one_load(tree, epilogue, buffer), only_store(tree, epilogue)
        if output in buffers_of(found):
            raise failure("W613", f"the block {found.name!r} reads {output.name!r}", tree, found)
        own = len(loads_in(found, buffer)) + len(loads_in(epilogue, buffer))
        if len(loads_in(tree.function.body, buffer)) != own:
            raise failure("W613", f"{buffer.name!r} is also read by others than block {epilogue.name!r}", tree, found)
        require_unchanged(tree, epilogue, reads_of(epilogue) - {buffer})
        require_free_between(tree, found, epilogue, output)
        values = _values(tree, found, epilogue, load, stores_in(found, buffer)[0])
        start = _start(found, store, buffer)
        if start is not None:
            first = BufferStore(buffer, substitute(start, values), load.indices)
            new = replace(found, init=first)
        else:
            last = _last_term(tree, found, epilogue, bindings, output)
            rest = BufferStore(buffer, substitute(store.value, values), load.indices)
            new = replace(found, body=sequence((found.body, rest if last is None else IfThenElse(last, rest))))
        where = tuple(substitute(index, values) for index in store.indices)
        function = tree.replaced((found, _moved(new, buffer, output, where)), (epilogue, SeqStmt()))
        self._set(tree, without_allocation(function, buffer))


def _moved(block: Block, buffer: Buffer, output: Buffer, where: tuple[PrimExpr, ...]) -> Block:
    """A block that works on an element of another buffer."""

    def loaded(node: BufferLoad) -> BufferLoad | None:
        return BufferLoad(output, where, span=node.span) if node.buffer is buffer else None

    def stored(node: BufferStore) -> BufferStore | None:
        return BufferStore(output, node.value, where, span=node.span) if node.buffer is buffer else None

    new = map_buffers(block, load=loaded, store=stored, touched=[buffer])
    assert isinstance(new, Block)
    return without_regions(new)


def _require_one_result(tree: Tree, block: Block) -> None:
    """W610 unless a block sets one element first, and each instance goes on with it."""
    written = written_buffers(block)
    if isinstance(block.init, BufferStore) and len(written) == 1:
        stores = stores_in(block, written[0])
        places = [part.indices for part in (*stores, *loads_in(block, written[0]))]
        own = {item.var for item in block.iter_vars if item.kind == "spatial"}
        bare = all(isinstance(index, IntImm) or index in own for index in places[0])
        kinds = {item.kind for item in block.iter_vars} <= {"spatial", "reduce"}
        if bare and kinds and all(structural_equal(place, places[0]) for place in places[1:]):
            require_sole_writer(tree, block, written[0])
            return
    raise failure("W610", f"the block {block.name!r} is no reduction of one result", tree, block)


def _start(block: Block, store: BufferStore, buffer: Buffer) -> PrimExpr | None:
    """What a store adds to an element of a sum that starts with nothing; None for any other epilogue."""
    update, init, value = update_of(block), block.init, store.value
    if update is None or not isinstance(init, BufferStore) or not is_identity(update.kind, init.value):
        return None
    if isinstance(value, Binary) and value.kind == update.kind:
        for own, other in ((value.a, value.b), (value.b, value.a)):
            if isinstance(own, BufferLoad) and own.buffer is buffer and not loads_in(other, buffer):
                return other
    return None


def _last_term(tree: Tree, block: Block, epilogue: Block, bindings: Bindings, output: Buffer) -> PrimExpr | None:
    """The condition that an instance is the last one for its element, None where each is; W607 unless it comes last."""
    (buffer,) = written_buffers(block)
    if buffer.dtype != output.dtype:
        raise failure(
            "W609",
            f"{output.name!r} is of dtype {output.dtype}: the sum in {buffer.dtype} cannot be kept there",
            tree,
            epilogue,
            hint="fuse what comes before the cast, and move the cast by reverse_compute_at",
        )
    steps = [item for item in block.iter_vars if item.kind == "reduce"]
    over = {var for item in steps for var in variables_in(item.value)}
    guarded = next((part for part in conjuncts(block.predicate) if variables_in(part) & over), None)
    point = bindings.reader.point
    values = [bindings.values[item.var] for item in steps]
    rising = all(v is not None and all(point.at_most(1, term.scale) for term in v.terms) for v in values)
    apart = next(
        (loop for loop in tree.loops_around(block) if loop.loop_var in over and loop.kind in INDEPENDENT), None
    )
    if guarded is not None or not rising or apart is not None:
        raise failure(
            "W607",
            f"the last term of block {block.name!r} is not known to come last, and what block {epilogue.name!r} does"
            " can only be done then",
            tree,
            block if apart is None else apart,
            hint="fuse the epilogue before the loops of the sum are split, reordered or bound",
        )
    ends = [binary("eq", item.var, _last(item)) for item in steps if item.extent != 1]
    return all_of(ends)


def _last(item: IterVar) -> PrimExpr:
    """The last value of a variable of a block."""
    if isinstance(item.start, int) and isinstance(item.extent, int):
        return as_expr(item.start + item.extent - 1, item.var.dtype)
    end = binary("add", as_expr(item.start, item.var.dtype), as_expr(item.extent, item.var.dtype))
    return binary("sub", end if item.start != 0 else as_expr(item.extent, item.var.dtype), as_expr(1, item.var.dtype))


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
