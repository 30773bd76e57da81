"""The rule of scans: vectors along the rows where joins may be grouped, else rows side by side; or down the columns."""

from __future__ import annotations

from weft.ir.kernel.nests import perfect_nest
from weft.ir.tensor import Block, PrimVar, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Cost, cost
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.autoschedule.scans.chains import rows_side_by_side
from weft.transform.autoschedule.scans.columns import down_columns
from weft.transform.autoschedule.scans.match import Scan, join_of, scan_of
from weft.transform.autoschedule.scans.rows import along_rows
from weft.transform.infra.decisions import Decision

__all__ = ["ScanRule"]

_FEW = 4
"""Elements of a row that are not worth a vector."""


class ScanRule(Rule):
    """Running sums, minima, maxima and the like: vectors along the rows or down the columns."""

    name = "scan"
    order = 230
    pins = frozenset(("lanes", "rows"))

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """A block with an axis that is gone through in order."""
        if site.nest is not None:
            return False
        _, block = perfect_nest(site.stmt)
        return isinstance(block, Block) and any(item.kind == "scan" for item in block.iter_vars)

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Vectors along the axis that memory goes along."""
        found = site.once(scan_of, site.stmt)
        var = None if found is None else _vector_axis(found, knobs)
        if found is None or var is None:
            return None
        lanes = machine.lanes(found.kinds)
        if lanes < 2 or _is_few(found, var, lanes):
            return None
        if var is not found.axis:
            values = {"form": "columns", "axis": var.name, "lanes": lanes}
            return Decision(site.name, self.name, values, "each row of vectors follows from the one before it")
        if join_of(found) is None:
            return self._side_by_side(site, found, knobs)
        values = {"form": "rows", "axis": var.name, "lanes": lanes}
        return Decision(
            site.name, self.name, values, "prefixes within a vector, so that few operations wait for another"
        )

    def _side_by_side(self, site: Site, found: Scan, knobs: Knobs) -> Decision | None:
        """As many rows as hide how long a join takes, where there are several."""
        count = found.extents[found.spatial[-1]] if found.spatial else 1
        rows = min(knobs.scan_rows, count) if isinstance(count, int) else knobs.scan_rows
        if rows < 2:
            return None
        values = {"form": "chains", "axis": found.axis.name, "rows": rows}
        return Decision(site.name, self.name, values, "joins in order, each of which waits for one of its own row only")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops."""
        found = site.once(scan_of, site.stmt)
        var = None if found is None else _vector_axis(found, knobs)
        assert found is not None
        assert var is not None
        if decision.values["form"] == "chains":
            return rows_side_by_side(found, checked(decision, "rows", 1, 64, "rows side by side"))
        lanes = checked(decision, "lanes", 2, 64, "lanes of a vector", power=True)
        if var is not found.axis:
            wide = cost(found.later) is Cost.EXPENSIVE
            vectors = machine.chains(lanes) if wide else knobs.map_vectors
            return down_columns(found, var, lanes, vectors, masks=machine.has_masks, wide=wide)
        join = join_of(found)
        assert join is not None
        return along_rows(found, join, lanes, masks=machine.has_masks)


def _vector_axis(found: Scan, knobs: Knobs) -> PrimVar | None:
    """The variable that what is stored lies along, where what is read goes along it evenly."""
    axis = next((var for var in found.extents if step_along(found.store, var) == 1), None)
    if axis is None:
        return None
    even = all(step_along(load, axis) in range(knobs.max_stride + 1) for load in found.loads)
    return axis if even else None


def _is_few(found: Scan, var: PrimVar, lanes: int) -> bool:
    """Whether vectors would be mostly empty, or no element follows from another."""
    extent, length = found.extents[var], found.extents[found.axis]
    if var is found.axis:
        least = min(_FEW, lanes)
    else:  # LLVM has short rows of sums in registers
        least = 2 if cost(found.later) is Cost.EXPENSIVE else lanes
    return (isinstance(extent, int) and extent < least) or (isinstance(length, int) and length < 2)
