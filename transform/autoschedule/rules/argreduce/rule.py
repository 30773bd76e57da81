"""Reductions that keep the position of the maximum or minimum: argmax and argmin.

    along rows      vectors along k in groups, with the group that each lane's best value came from
    down columns    vectors along i, where neighbours of x in memory belong to different results

Steps grow, so a lane keeps what it has unless the new value is better, or is the first nan: of equal values the first
counts, as in the nest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft import dtypes
from weft.ir.tensor import BufferLoad, Extent, PrimVar, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.argreduce.columns import down_columns
from weft.transform.autoschedule.rules.argreduce.match import ArgReduction, arg_reduction
from weft.transform.autoschedule.rules.argreduce.rows import Rows
from weft.transform.autoschedule.rules.loops import INDEX
from weft.transform.autoschedule.rules.strides import loads_in, step_along
from weft.transform.infra.decisions import Decision

__all__ = ["ArgReduceRule"]

_SHORT = 1 << 30
"""Positions up to which 32 bits hold the numbers of rows."""


class ArgReduceRule(Rule):
    """Positions of minima and maxima: vectors along the rows or down the columns."""

    name = "argreduce"
    order = 220
    pins = frozenset(("vectors", "group", "chunks"))

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Two values are stored, so that it is no nest around one store."""
        return site.nest is None

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Down the columns where the results lie along one, else along the rows."""
        found = site.once(arg_reduction, site.stmt, machine, knobs)
        axis = None if found is None else _axis(found)
        if axis is None:
            return None
        found, var, down = axis
        values: dict[str, Any] = {"form": "columns" if down else "rows", "axis": var.name, "lanes": found.lanes}
        if down:
            return Decision(site.name, self.name, {**values, "vectors": 1}, "values and the numbers of their rows")
        group = _group(found, var)
        values |= {"vectors": 1 if group > 1 else _vectors(found, var), "group": group, "chunks": _chunks(found, var)}
        return Decision(site.name, self.name, values, "values and the numbers of their groups side by side")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops."""
        found = site.once(arg_reduction, site.stmt, machine, knobs)
        axis = None if found is None else _axis(found)
        assert axis is not None
        found, var, down = axis
        max_vectors = 1 if down else 16
        vectors = checked(decision, "vectors", 1, max_vectors, "vectors that are combined by halves", power=True)
        if down:
            return down_columns(found, var)
        group = checked(decision, "group", 1, 64 if _is_plain(found) else 1, "vectors whose best value is compared")
        chunks = checked(decision, "chunks", 1, 1024, "chunks of a row")
        return Rows(found, var, vectors, group, chunks, knobs.split_from).build()


def _axis(found: ArgReduction) -> tuple[ArgReduction, PrimVar, bool] | None:
    """The variable that vectors go along evenly, and whether it is one of the results (down the columns)."""
    nest, bits = found.nest, dtypes.bits(found.value.dtype)
    if len(nest.reduction) == 1 and found.position is nest.reduction[0]:
        short = bits <= 32 and _is_short(nest.extents[nest.reduction[0]])
        down = replace(found, step_dtype="int32" if short else INDEX)
        for var in reversed(nest.spatial):
            if step_along(nest.store, var) == 1 and found.is_even(var) and _is_long(nest, var):
                return (down, var, True) if down.lanes > 1 else None
    along = replace(found, step_dtype=f"int{max(8, bits)}")
    for var in reversed(nest.reduction):
        if any(step_along(load, var) == 1 for load in loads_in(found.value)) and found.is_even(var):
            return (along, var, False) if along.lanes > 1 and _is_long(nest, var) else None
    return None


def _is_plain(found: ArgReduction) -> bool:
    """Whether a value can be read again, to be found: it is what memory holds."""
    return isinstance(found.value, BufferLoad)


def _group(found: ArgReduction, var: PrimVar) -> int:
    """How many vectors are compared as one: rows that are shorter than that have no groups."""
    extent, group = found.nest.extents[var], found.knobs.argreduce_group
    if not _is_plain(found) or (isinstance(extent, int) and extent < group * found.lanes):
        return 1
    return group


def _vectors(found: ArgReduction, var: PrimVar) -> int:
    """In how many vectors a row is looked through: fewer where it is short."""
    extent, count = found.nest.extents[var], found.knobs.argreduce_vectors
    if not isinstance(extent, int):
        return count
    return 1 << max(1, min(count, extent // found.lanes)).bit_length() - 1


def _chunks(found: ArgReduction, var: PrimVar) -> int:
    """How many chunks a long row is cut into: those of many rows are not."""
    results = 1
    for spatial in found.nest.spatial:
        extent = found.nest.extents[spatial]
        if not isinstance(extent, int):
            return 1
        results *= extent
    extent = found.nest.extents[var]
    short = isinstance(extent, int) and extent < found.knobs.split_from
    return 1 if short or results >= found.knobs.chunks else found.knobs.chunks


def _is_short(extent: Extent) -> bool:
    """Whether any position fits the numbers of rows."""
    return isinstance(extent, int) and extent <= _SHORT


def _is_long(nest: Nest, var: PrimVar) -> bool:
    extent = nest.extents[var]
    return not isinstance(extent, int) or extent >= 2
