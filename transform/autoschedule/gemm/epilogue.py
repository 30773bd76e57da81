"""Epilogues: what is done to every result of a contraction, done while it is still in a register.

c[i, j] = c[i, j] + a[i, k] * b[k, j]        tiles of c
y[i, j] = T.max(c[i, j] + bias[j], 0.0)      as each tile is stored; y may be c

c[i, j] = c[i, j] + a[i, k] * b[k, j]        j: columns of all parts, as of a gate and what it multiplies
y[i, j] = silu(c[i, j]) * c[i, j + n]        j: columns of one part

Panels have the columns of both parts side by side, so that a tile ends with all sums that a result needs: c, which is
as wide as all parts, is nowhere in memory. B is packed in that order, or read from as many places at once.

What sets results before where a sum has no terms is left out: tiles store them in any case, from accumulators of zero.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from weft.dtypes import bits
from weft.ir import Node, replace, rewrite, structural_equal, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const, extent_product
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.access_pattern import (
    Cost,
    Nest,
    Reading,
    cost,
    nest_of,
    part_of,
    reading,
    same_extents,
    writes_whole,
)
from weft.transform.autoschedule.gemm.match import Contraction, Epilogue, Parts
from weft.transform.autoschedule.gemm.tiles import Ends, Panel, flat_view, plus
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity
from weft.transform.autoschedule.registry import Site, only_sets
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, step_along, uses

__all__ = [
    "Vectors",
    "cases_without_terms",
    "chosen_parts",
    "ends_of",
    "has_far_results",
    "operands_of",
    "unrolls",
    "with_epilogue",
    "with_parts",
]

_FEWEST_ROWS, _FEWEST_TERMS, _FEWEST_SPREAD_TERMS = 4, 32, 24
"""Of tiles that last long enough for what they prefetch, at once or spread over their steps."""
_LINE_BITS = 512
"""Of a cache line. Where vectors are shorter, pieces of rows that are copied into panels are parts of lines, which
takes longer than a pass over results of the type of the sums: narrower ones are worth it for the memory of sums."""

_MAX_UNROLLED, _DIVISIONS = 8, frozenset(("div", "floordiv", "floormod", "truncdiv", "truncmod"))
"""Operations that are written out for each vector of sums in registers, and those that are not."""


def with_epilogue(found: Contraction, stmt: Stmt, later: Sequence[Stmt]) -> Contraction | None:
    """The contraction with the next statement as its epilogue; None where that cannot be.

    `later` are the statements after that one.
    """
    nest = nest_of(stmt)
    result = found.result
    if result is None:
        return None
    if nest is None or nest.reduction or not _covers(nest, found) or kinds_in(nest.store.value) is None:
        return None
    store = nest.store
    own = [load for load in loads_in(store.value) if load.buffer is result]
    if not own or any(reading(nest, load) is not Reading.SAME for load in own):
        return None
    if not same_extents(store.buffer.shape, result.shape) or not _is_free(found, store):
        return None
    if store.buffer is not result:
        if found.accumulates:  # what is there already is read from where it is
            return None
        if any(load.buffer is store.buffer for load in loads_in(store.value)) or _mentioned(later, result):
            return None
    return _attached(found, nest)


def _covers(nest: Nest, found: Contraction) -> bool:
    """Whether a nest goes once over the elements that the contraction gives."""
    store, result = nest.store, found.result
    own = len(set(store.indices)) == len(store.indices) and set(store.indices) == set(nest.spatial)
    if not own or nest.init is not None or result is None:
        return False
    if found.store.buffer is not result:  # through a view of the whole
        return writes_whole(nest)
    pairs = zip(store.indices, found.store.indices, strict=True)
    return all(
        isinstance(x, PrimVar) and isinstance(y, PrimVar) and same_extents((nest.extents[x],), (found.extents[y],))
        for x, y in pairs
    )


def _is_free(found: Contraction, store: BufferStore) -> bool:
    """Whether the result of the epilogue is no operand of the contraction."""
    return store.buffer not in (found.scalar.buffer, found.vector.buffer)


def _mentioned(stmts: Sequence[Stmt], buffer: Buffer) -> bool:
    return any(part is buffer for stmt in stmts for part in walk(stmt))


def _attached(found: Contraction, nest: Nest) -> Contraction | None:
    """The epilogue in the variables of the contraction, over flat views where its columns are several axes."""
    assert found.result is not None
    store, place = nest.store, found.store.indices
    count = store.buffer.ndim - len(place) + 1  # axes that the columns are
    axes = store.indices[len(place) - 1 :] if count > 1 else ()
    flat: dict[Buffer, Buffer] = {}
    total = PrimVar("total", found.result.dtype)
    names = {x: y for x, y in zip(store.indices, place, strict=False) if isinstance(x, PrimVar) and x not in axes}

    def changed(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is found.result:
            return total
        if isinstance(node, BufferLoad) and _has_axes(node, axes):
            return BufferLoad(flat[node.buffer], (*node.indices[:-count], found.v), span=node.span)
        return None

    for load in loads_in(store.value):
        if load.buffer is found.result or not _has_axes(load, axes):
            continue
        last = load.indices[-count:]
        whole = same_extents(load.buffer.shape[-count:], store.buffer.shape[-count:])
        alike = len(load.indices) >= count and all(x is y for x, y in zip(last, axes, strict=True))
        lead = any(uses(index, x) for index in load.indices[:-count] for x in axes if isinstance(x, PrimVar))
        if not (alike and whole) or lead or load.buffer.strides is not None:
            return None
        if load.buffer not in flat:
            flat[load.buffer] = flat_view(load.buffer, count)
    value = substitute(rewrite(store.value, changed), names)
    if any(uses(value, x) for x in axes if isinstance(x, PrimVar)):
        return None
    if any(step_along(load, found.v) not in range(5) for load in loads_in(value)):
        return None
    views = tuple(DeclBuffer(view) for view in flat.values())
    result = found.store.buffer
    if store.buffer is not found.result:
        result = flat_view(store.buffer, count) if axes else store.buffer
        kept = found.views
        before = None
        if store.buffer.dtype == found.result.dtype:
            kept = tuple(view for view in kept if view.buffer is not found.store.buffer)
        else:  # partial sums have another type
            before = found.store
        views = (*(() if not axes else (DeclBuffer(result),)), *kept, *views)
        found = dataclasses.replace(found, store=replace(found.store, buffer=result), partial_sums=before)
    else:
        views = (*found.views, *views)
    return dataclasses.replace(found, views=views, epilogue=Epilogue(total, value, cost(value) is Cost.EXPENSIVE))


def with_parts(
    found: Contraction, stmt: Stmt, later: Sequence[Stmt], capacity: Capacity, constants: frozenset[Buffer]
) -> Contraction | None:
    """The contraction with the next statement, which puts parts of its columns together, as its epilogue; None where
    that cannot be.

    `later` are the statements after that one.
    """
    nest, result = nest_of(stmt), found.result
    if nest is None or result is None or not _takes_place(found, nest, later):
        return None
    columns, whole = nest.store.buffer.shape[-1], result.shape[-1]
    if not isinstance(columns, int) or not isinstance(whole, int) or columns % capacity.lanes:
        return None
    own = [load for load in loads_in(nest.store.value) if load.buffer is result]
    places = [part_of(nest, load) for load in own]
    if not own or None in places:
        return None
    pieces = capacity.lanes * bits(found.vector.dtype) < _LINE_BITS and found.vector.buffer not in constants
    if pieces and nest.store.buffer.dtype == result.dtype:
        return None
    totals = tuple(PrimVar(f"total{part}", result.dtype) for part in range(whole // columns))
    of = dict(zip(own, places, strict=True))
    place = dict(zip(nest.store.indices, found.store.indices, strict=True))

    def changed(node: Node) -> Node | None:
        return totals[of[node] or 0] if isinstance(node, BufferLoad) and node in of else None

    names = {x: y for x, y in place.items() if isinstance(x, PrimVar)}
    value = substitute(rewrite(nest.store.value, changed), names)
    if any(step_along(load, found.v) not in range(5) for load in loads_in(value)):
        return None
    return dataclasses.replace(
        found,
        store=replace(found.store, buffer=nest.store.buffer),
        partial_sums=found.store,
        epilogue=Epilogue(totals[0], value, cost(value) is Cost.EXPENSIVE),
        parts=Parts(columns, totals),
    )


def _takes_place(found: Contraction, nest: Nest, later: Sequence[Stmt]) -> bool:
    """Whether a nest goes once over the elements of a buffer that nothing else needs, as does the contraction."""
    store, result = nest.store, found.result
    is_plain = found.store.buffer is result and not found.views and found.window is None and len(found.reduction) == 1
    if not is_plain or found.accumulates or found.filling is not None or result is None:
        return False
    rows = tuple(found.store.indices[:-1])
    ends = found.store.indices[-1] is found.v and all(isinstance(x, PrimVar) for x in rows)
    if not ends or nest.reduction or nest.init is not None or not writes_whole(nest):
        return False
    if len(store.indices) != len(found.store.indices) or not all(isinstance(x, PrimVar) for x in store.indices):
        return False
    if not same_extents(store.buffer.shape[:-1], result.shape[:-1]) or kinds_in(store.value) is None:
        return False
    operands = (found.scalar.buffer, found.vector.buffer, result)
    is_read = any(load.buffer is store.buffer for load in loads_in(store.value))
    return store.buffer not in operands and not is_read and not _mentioned(later, result)


def _has_axes(load: BufferLoad, axes: Sequence[PrimExpr]) -> bool:
    return any(uses(index, x) for index in load.indices for x in axes if isinstance(x, PrimVar))


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors of complete sums along v: one for each of `count` values of `var`, `total` in lane `lane`.

    `places` are the variables of the contraction there; `used` lanes are there, of vectors for which `is_there` holds
    (None: of all).
    """

    var: PrimVar
    count: int
    lane: PrimVar
    lanes: int
    total: BufferLoad
    places: Mapping[PrimVar, PrimExpr]
    used: Extent
    is_there: PrimExpr | None = None

    def stored(self, found: Contraction) -> Stmt:
        """What becomes of the sums, stored.

        Long arithmetic fills a buffer first, in all lanes: loads that follow a store whose value takes long wait for
        it where they seem to overlap, and arithmetic under a mask takes longer.
        """
        epilogue, value = found.epilogue, self._value(found)
        indices = tuple(substitute(index, self.places) for index in found.store.indices)
        store = BufferStore(found.store.buffer, value, indices, span=found.store.span)
        if epilogue is None or not epilogue.is_long or _reads_along(epilogue.value, found.v):
            return self._loop(self._masked(store))
        results = Buffer("results", (self.count, self.lanes), store.buffer.dtype)
        computed = self._loop(BufferStore(results, value, (self.var, self.lane)))
        own = {self.var: PrimVar(self.var.name, self.var.dtype), self.lane: PrimVar("lane", self.lane.dtype)}
        place = replace(store, value=BufferLoad(results, (self.var, self.lane)))
        kept = _with_loops_of(self._loop(self._masked(place)), own)
        return SeqStmt((AllocBuffer(results), computed, kept))

    def unrolled(self, found: Contraction) -> Stmt:
        """The same of sums in registers: all lanes are computed, and those stored that are there."""
        none = const(0, self.lane.dtype)
        result = Buffer("result", (self.lanes,), found.store.buffer.dtype, "local")
        computed = BufferStore(result, self._value(found), (self.lane,))
        ramp = Ramp(none, const(1, self.lane.dtype), self.lanes)
        mask = None if self.used == self.lanes else binary("lt", ramp, Broadcast(self._used, self.lanes))
        first = substitute(self.places[found.v], {self.lane: none})
        places = {**self.places, found.v: replace(ramp, base=first)}
        indices = tuple(substitute(index, places) for index in found.store.indices)
        kept = BufferStore(found.store.buffer, BufferLoad(result, (ramp,)), indices, mask, span=found.store.span)
        body = SeqStmt((AllocBuffer(result), For(self.lane, 0, self.lanes, computed, "vectorized"), kept))
        return For(self.var, 0, self.count, body, "unrolled")

    def _value(self, found: Contraction) -> PrimExpr:
        """What becomes of a sum."""
        epilogue = found.epilogue
        if epilogue is None:
            return self.total
        return substitute(epilogue.value, {**self.places, epilogue.total: self.total})

    @property
    def _used(self) -> PrimExpr:
        return as_expr(self.used, self.lane.dtype)

    def _masked(self, store: BufferStore) -> Stmt:
        if isinstance(self.used, int) and self.used == self.lanes:
            return store
        return IfThenElse(binary("lt", self.lane, self._used), store, None)

    def _loop(self, stmt: Stmt) -> Stmt:
        stmt = For(self.lane, 0, self.lanes, stmt, "vectorized")
        return For(self.var, 0, self.count, stmt if self.is_there is None else IfThenElse(self.is_there, stmt, None))


def unrolls(found: Contraction) -> bool:
    """Whether what becomes of sums is short, and has lanes without results nothing to read."""
    if found.epilogue is None:
        return True
    parts = list(walk(found.epilogue.value))
    kinds = [part.kind for part in parts if isinstance(part, Binary)]
    is_short = not any(isinstance(part, PrimCall) for part in parts) and _DIVISIONS.isdisjoint(kinds)
    return is_short and len(kinds) <= _MAX_UNROLLED and not _reads_along(found.epilogue.value, found.v)


def _with_loops_of(stmt: Stmt, own: Mapping[PrimVar, PrimVar]) -> Stmt:
    """Loops over variables of their own."""

    def renamed(node: Node) -> Node | None:
        return replace(node, loop_var=own[node.loop_var]) if isinstance(node, For) and node.loop_var in own else None

    return substitute(rewrite(stmt, renamed), own)


def _reads_along(value: PrimExpr, v: PrimVar) -> bool:
    return any(uses(index, v) for load in loads_in(value) for index in load.indices)


def ends_of(
    found: Contraction,
    capacity: Capacity,
    panel: Panel,
    rows: int,
    row: Callable[[PrimExpr], PrimExpr] | None,
    is_last: PrimExpr | None,
    at_once: bool = False,
) -> Ends | None:
    """Where results of a tile are, if a far cache has them, and what they are put together with, as a sum that is
    added: prefetched while the tile sums. With `at_once` only the latter are, before it.

    Only where there are many products, as of images, or a part of a large array is chosen: what else a single one is
    put together with was near in what was measured (512x64x512 took 5 % longer).
    """
    r, terms = found.r, extent_product([found.extents[x] for x in found.reduction])
    loads = list(operands_of(found) if found.outer else chosen_parts(found, capacity))
    if r is None or row is None or rows < _FEWEST_ROWS or found.parts or not (found.outer or loads):
        return None
    are_far = not at_once and (not found.outer or has_far_results(found, capacity))
    if not are_far and isinstance(terms, int) and terms < _FEWEST_TERMS:
        return None
    if are_far and found.outer:
        loads.insert(0, BufferLoad(found.store.buffer, found.store.indices))

    def places(i: PrimExpr) -> Sequence[BufferLoad]:
        columns = [plus(panel.start, const(j * panel.lanes, INDEX)) for j in range(panel.vectors)]
        return [substitute(load, {r: row(i), found.v: column}) for column in columns for load in loads]

    return Ends(rows, places, are_far, is_last) if loads else None


def has_far_results(found: Contraction, capacity: Capacity) -> bool:
    """Whether tiles of many products last long enough to ask for where they end, which is in a far cache.

    So it is where results and what they are put together with are twice what the second cache holds, as far as sizes
    are known. Half as much gained nothing in networks, though it did alone.
    """
    terms = extent_product([found.extents[var] for var in found.reduction])
    if found.r is None or not found.outer or found.parts or not isinstance(terms, int) or terms < _FEWEST_SPREAD_TERMS:
        return False
    sizes = [found.extents[var] for var in (found.r, found.v, *found.outer)]
    results = extent_product([*sizes[:2], *(size for size in sizes[2:] if isinstance(size, int))])
    arrays = (1 + len(operands_of(found))) * bits(found.store.buffer.dtype) // 8
    return isinstance(results, int) and results * arrays > 2 * capacity.machine.l2_bytes


def operands_of(found: Contraction) -> Sequence[BufferLoad]:
    """What results are put together with that memory holds for each of them."""
    r, epilogue = found.r, found.epilogue
    if r is None or epilogue is None:
        return ()
    return [load for load in loads_in(epilogue.value) if _is_matrix(load, r, found.v)]


def chosen_parts(found: Contraction, capacity: Capacity) -> Sequence[BufferLoad]:
    """Those of them that are parts of arrays which no near cache holds, at an index that the call chooses: as what all
    steps of a loop are given, of which each meets its own."""
    terms = extent_product([found.extents[x] for x in found.reduction])
    if not isinstance(terms, int) or terms < _FEWEST_SPREAD_TERMS:
        return ()
    near, loads = 2 * capacity.machine.l2_bytes, operands_of(found)
    return [x for x in loads if not _is_within(x.buffer, near) and any(_is_chosen(index, found) for index in x.indices)]


def _is_within(buffer: Buffer, size: int) -> bool:
    """Whether a buffer is known to have at most so many bytes."""
    elements = extent_product(list(buffer.shape))
    return isinstance(elements, int) and elements * bits(buffer.dtype) // 8 <= size


def _is_chosen(index: PrimExpr, found: Contraction) -> bool:
    """Whether an index is none of the contraction, and no constant."""
    variables = [part for part in walk(index) if isinstance(part, PrimVar)]
    return bool(variables) and not any(x in found.extents for x in variables)


def _is_matrix(load: BufferLoad, r: PrimVar, v: PrimVar) -> bool:
    """Whether an access meets other memory in each row and along it."""
    return all(any(uses(index, x) for index in load.indices) for x in (r, v)) and step_along(load, v) == 1


def cases_without_terms(site: Site) -> Iterator[Stmt]:
    """The statements before a contraction that set all of its result where it has no terms, and do nothing else."""
    nest = site.nest
    if nest is None or not writes_whole(dataclasses.replace(nest, reduction=(), init=None)):
        return
    buffer = nest.store.buffer
    for stmt in reversed(site.stmts[: site.position]):
        if isinstance(stmt, IfThenElse) and _is_empty(stmt, nest) and only_sets(stmt.then_body, {buffer}):
            yield stmt
        elif _uses(stmt, buffer) and not isinstance(stmt, AllocBuffer):
            return


def _is_empty(stmt: IfThenElse, nest: Nest) -> bool:
    """Whether a statement is run where a reduction has no terms, and in no other case."""
    condition = stmt.condition
    if stmt.else_body is not None or not isinstance(condition, Binary) or condition.kind != "eq":
        return False
    zero = isinstance(condition.b, IntImm) and condition.b.value == 0
    return zero and any(_equal(nest.extents[var], condition.a) for var in nest.reduction)


def _equal(a: Extent, b: Extent) -> bool:
    return a is b or structural_equal(as_expr(a, "int64"), as_expr(b, "int64"))


def _uses(stmt: Stmt, buffer: Buffer) -> bool:
    return any(part is buffer for part in walk(stmt))
