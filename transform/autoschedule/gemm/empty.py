"""Sums without terms: what sets their results before is left out, since tiles store these in any case.

if k == 0: c[i, j] = 0                      left out
for i, j, k: c[i, j] += a[i, k] * b[k, j]   stores c[i, j], from accumulators that are zero at first
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir import structural_equal, walk
from weft.ir.kernel.prim import as_expr
from weft.ir.tensor import AllocBuffer, Binary, Buffer, Extent, IfThenElse, IntImm, PrimVar, Stmt
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.registry import Site, only_sets

__all__ = ["cases_without_terms"]


def cases_without_terms(site: Site) -> Iterator[Stmt]:
    """The statements before a contraction that set all of its result where it has no terms, and do nothing else."""
    nest = site.nest
    if nest is None or not _covers(nest):
        return
    buffer = nest.store.buffer
    for stmt in reversed(site.stmts[: site.position]):
        if isinstance(stmt, IfThenElse) and _is_empty(stmt, nest) and only_sets(stmt.then_body, {buffer}):
            yield stmt
        elif _uses(stmt, buffer) and not isinstance(stmt, AllocBuffer):
            return


def _covers(nest: Nest) -> bool:
    """Whether a nest stores every element of a buffer."""
    store = nest.store
    return all(
        isinstance(index, PrimVar) and index in nest.spatial and _equal(nest.extents[index], size)
        for index, size in zip(store.indices, store.buffer.shape, strict=True)
    ) and len(set(store.indices)) == len(store.indices)


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
