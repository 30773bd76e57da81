"""Large reductions to few results in chunks, which threads can share.

    for j, k: y[j] = y[j] + f(x[k, j])       for c, j, k: partial[c, j] = partial[c, j] + f(x[c * step + k, j])
                                             for j, k:    partial[16, j] = ...      (the remainder of 16 chunks)
                                             for j, c:    y[j] = y[j] + partial[c, j]

The number of chunks is fixed, so results do not depend on the number of threads; a sum of partial sums loses fewer
digits than one long sum (pairwise summation: Higham, 1993). Reductions whose results are many enough to be shared out
stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir import substitute
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, most_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.loops import INDEX, block_nest, minus, plus, times
from weft.transform.autoschedule.rules.reductions import Reduction, reduction_axis, reduction_of
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.infra.decisions import Decision

__all__ = ["SplitReductionRule"]


class SplitReductionRule(Rule):
    """Reductions of much to few results in chunks that threads can share; the nests go to the rules once more."""

    name = "split_reduction"
    order = 290
    again = True
    pins = frozenset(("chunks",))

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """A nest that reduces something: threads share the loops around those of a chain."""
        return not site.in_chain and site.nest is not None and bool(site.nest.reduction)

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Chunks along the longest axis that is reduced."""
        found = None if site.nest is None else site.once(_split_of, site.nest, site.shared, machine, knobs)
        if found is None:
            return None
        values = {"axis": found[1].name, "chunks": knobs.chunks}
        return Decision(site.name, self.name, values, "much to reduce, and too few results for threads to share")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """One nest that reduces each chunk, one for the remainder, one that combines the partial results."""
        found = None if site.nest is None else site.once(_split_of, site.nest, site.shared, machine, knobs)
        assert found is not None
        chunks = checked(decision, "chunks", 2, 1024, "chunks of the reduction")
        return SeqStmt(tuple(_chunked(*found, chunks)))


def _split_of(
    nest: Nest, shared: Sequence[Extent], machine: MachineModel, knobs: Knobs
) -> tuple[Reduction, PrimVar] | None:
    """The reduction and the axis to split, where there is much to reduce to few results.

    A nest in loops that it shares with others has its results in each of their iterations.
    """
    found = reduction_of(nest, machine, knobs)
    if found is None:
        return None
    results = 1
    for extent in (*shared, *(nest.extents[var] for var in nest.spatial)):
        if not isinstance(extent, int):
            return None
        results *= extent
    across = any(step_along(nest.store, var) == 1 and found.is_even(var) for var in nest.spatial)
    if not 0 < results <= (knobs.split_results if across else knobs.chunks - 1):
        return None
    row = max(nest.reduction, key=lambda var: _size(nest.extents[var]))
    elements = math.prod(_size(nest.extents[var]) for var in nest.reduction)
    if elements * results < knobs.split_from or _size(nest.extents[row]) < 8 * knobs.chunks:
        return None
    return None if reduction_axis(found) is None else (found, row)


def _size(extent: Extent) -> int:
    """The upper bound of a size, or what one that is not known counts as."""
    upper = most_of(extent)
    return 1 << 20 if upper is None else upper


def _chunked(found: Reduction, row: PrimVar, chunks: int) -> list[Stmt]:
    nest, store = found.nest, found.nest.store
    name = store.buffer.name or "y"
    shape = [nest.extents[var] for var in nest.spatial]
    partial = Buffer(f"{name}_partial", (chunks + 1, *shape), found.dtype)
    done = nest.extents[row]
    step: Extent = done // chunks if isinstance(done, int) else binary("floordiv", done, const(chunks, INDEX))
    start: Extent = chunks * step if isinstance(step, int) else binary("mul", step, const(chunks, INDEX))
    left = minus(done, start)

    def combining(number: PrimExpr, several: bool, first: Extent, count: Extent) -> Stmt:
        """Elements from `first` on combined into a partial result."""
        spatial = {var: PrimVar(var.name, INDEX) for var in nest.spatial}
        reduction = {var: PrimVar(var.name, INDEX) for var in nest.reduction}
        place = (number, *spatial.values())
        term = substitute(found.term, {**spatial, **reduction, row: plus(first, reduction[row])})
        value = found.combine(BufferLoad(partial, place), term)
        extents = [(new, count if old is row else nest.extents[old]) for old, new in reduction.items()]
        kept = [(new, nest.extents[old]) for old, new in spatial.items()]
        if several:
            assert isinstance(number, PrimVar)
            kept.insert(0, (number, chunks))
        init = BufferStore(partial, found.identity, place)
        return block_nest(name, kept, extents, BufferStore(partial, value, place), init)

    number = PrimVar("chunk", INDEX)
    first = binary("mul", number, step) if not isinstance(step, int) else plus(0, times(number, step))
    stmts: list[Stmt] = [AllocBuffer(partial), combining(number, True, first, step)]
    count = chunks
    if not (isinstance(left, int) and left == 0):
        stmts.append(combining(const(chunks, INDEX), False, start, left))
        count += 1
    again = PrimVar("chunk", INDEX)
    spatial = {var: PrimVar(var.name, INDEX) for var in nest.spatial}
    indices = tuple(substitute(index, spatial) for index in store.indices)
    value = found.combine(BufferLoad(store.buffer, indices), BufferLoad(partial, (again, *spatial.values())))
    begin = BufferStore(store.buffer, substitute(found.start, spatial), indices, span=store.span)
    kept = [(new, nest.extents[old]) for old, new in spatial.items()]
    last = BufferStore(store.buffer, value, indices, span=store.span)
    return [*stmts, block_nest(name, kept, [(again, count)], last, begin)]
