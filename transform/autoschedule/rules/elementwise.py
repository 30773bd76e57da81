"""Nests that give every element once: vectors along the last axis.

for i: for j: y[i, j] = f(x[i, j], b[j], ...)        every load even along j: in whole vectors, or one for all lanes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from weft.ir import Node, rewrite, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.tensor import Binary, Buffer, For, IntImm, PrimVar, Stmt
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Cost, Nest, cost, statements_of
from weft.transform.analysis.loops.points import variables_in
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.primitives import Arranged, arrange, obeying, pinned_steps
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.loops import INDEX, nested, sequence
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, same_place, step_along
from weft.transform.autoschedule.rules.vector_steps import along_vectors
from weft.transform.infra.decisions import Decision, refused
from weft.transform.schedule import LoopRV, Schedule, Trace

__all__ = ["ElementwiseRule", "Map", "map_of", "pinned_map", "reason_of", "values_of", "vector_axis"]


Before = Callable[[dict[PrimVar, PrimVar]], Sequence[Stmt]]
"""new variables by those of the nest that they stand for -> what comes before the last axis"""


def vector_axis(nest: Nest) -> PrimVar | None:
    """The axis along which the elements that are written lie one after another: not the last where that has size 1."""
    return next((var for var in nest.spatial if step_along(nest.store, var) == 1), None)


@dataclass(frozen=True)
class Map:
    """A nest that gives every element once, on vectors of `lanes` along v, `vectors` of them at a time.

    `side_by_side` makes these one long vector, so that chains of operations hide each other's latency. Where steps of
    a schedule are pinned, these are done instead.
    """

    nest: Nest
    v: PrimVar
    lanes: int
    vectors: int
    masks: bool
    side_by_side: bool
    pinned: Trace | None = None

    @cached_property
    def arranged(self) -> Arranged:
        """The loops, and the steps of a schedule that make them."""
        nest, v = self.nest, self.v
        loops, sizes = [], {}
        for var in nest.spatial:
            extent, dim = nest.extents[var], prim_to_dim(nest.extents[var], self._names)
            if dim is None:
                extent = PrimVar(f"{self.variables[var].name}_size", INDEX)
                sizes[extent] = as_expr(nest.extents[var], INDEX)
            loops.append((self.variables[var], extent))
        plain = nested(loops, substitute(nest.store, self.variables))
        assert isinstance(plain, For)
        at = nest.spatial.index(v)

        def steps(sch: Schedule, loops: list[LoopRV]) -> None:
            if at < len(loops) - 1:
                sch.reorder(*loops[at + 1 :], loops[at])
            along_vectors(sch, loops[at], self.lanes, self.vectors, masks=self.masks, wide=self.side_by_side)

        own = self.pinned
        if own is None:
            return arrange(plain, steps, sizes=sizes, verify=False)
        return arrange(plain, lambda sch, loops: own.apply_to(sch), sizes=sizes)

    @cached_property
    def variables(self) -> dict[PrimVar, PrimVar]:
        """The variables of loops."""
        return {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in self.nest.spatial}

    @cached_property
    def _names(self) -> dict[PrimVar, str]:
        """The sizes of buffers: symbols, of which extents are dimensions."""
        found = variables_in(*(x for part in walk(self.nest.store) if isinstance(part, Buffer) for x in part.shape))
        return {x: f"x{number}" for number, x in enumerate(found)}

    def build(self, before: Before | None = None) -> Stmt:
        """The loops; `before` gives what comes before the last axis."""
        stmt = self.arranged.stmt
        if before is None:
            return stmt
        outer = []
        while len(outer) < len(self.nest.spatial) - 1:
            assert isinstance(stmt, For)
            outer.append((stmt.loop_var, stmt.extent))
            stmt = stmt.body
        return nested(outer, sequence((*before(self.variables), *statements_of(stmt))))


def _in_groups(nest: Nest, v: PrimVar) -> tuple[Nest, PrimVar]:
    """The nest with v as groups and places in them, (group, place), where it occurs as v // size; v is the place then.

    y[v] = x[v] * s[v // 32]        y[g * 32 + v] = x[g * 32 + v] * s[g]
    """
    sizes = {
        part.b.value
        for part in walk(nest.store.value)
        if isinstance(part, Binary) and part.kind == "floordiv" and part.a is v and isinstance(part.b, IntImm)
    }
    extent = nest.extents[v]
    size = min(sizes, default=0)
    if size < 2 or len(sizes) > 1 or not isinstance(extent, int) or extent % size:
        return nest, v
    group, place = PrimVar(f"{v.name}_group", INDEX), PrimVar(v.name, INDEX)
    number = binary("add", binary("mul", group, const(size, INDEX)), place)

    def split(node: Node) -> Node | None:
        if node is v:
            return number
        divided = isinstance(node, Binary) and node.a is v and isinstance(node.b, IntImm) and node.b.value == size
        if divided and node.kind in ("floordiv", "floormod"):  # type: ignore[attr-defined]
            return group if node.kind == "floordiv" else place  # type: ignore[attr-defined]
        return None

    spatial = tuple(x for var in nest.spatial for x in ((group, place) if var is v else (var,)))
    extents = {x: size if x is place else extent // size if x is group else nest.extents[x] for x in spatial}
    return replace(nest, store=rewrite(nest.store, pre=split), spatial=spatial, extents=extents), place


def map_of(nest: Nest, machine: MachineModel, knobs: Knobs) -> Map | None:
    """The nest as one whose last axis vectors go along; None where it is none."""
    first = vector_axis(nest)
    nest, v = (nest, None) if first is None else _in_groups(nest, first)
    store = nest.store
    own = [load for load in loads_in(store.value) if load.buffer is store.buffer]
    if nest.reduction or nest.init is not None or not all(same_place(load, store) for load in own):
        return None
    kinds = kinds_in(store.value)
    if v is None or kinds is None or store.buffer.dtype not in kinds:
        return None
    if any(step_along(load, v) not in range(knobs.max_stride + 1) for load in loads_in(store.value)):
        return None
    lanes, extent = machine.lanes(kinds), nest.extents[v]
    if lanes < 2 or (isinstance(extent, int) and extent < 2):
        return None
    wide = cost(store.value) is Cost.EXPENSIVE
    return Map(nest, v, lanes, machine.chains(lanes) if wide else knobs.map_vectors, machine.has_masks, wide)


class ElementwiseRule(Rule):
    """Every element once: vectors along the last axis."""

    name = "elementwise"
    order = 300
    pins = frozenset(("lanes", "vectors", "schedule"))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Lanes that fill a register, vectors as the value costs."""
        found = None if site.nest is None else site.once(map_of, site.nest, machine, knobs)
        if found is None:
            return None
        values = {**values_of(found), "schedule": found.arranged.trace.steps()}
        return Decision(site.name, self.name, values, reason_of(found))

    def completed(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Decision:
        """The decision with the steps of the schedule that it stands for, or that somebody chose."""
        return decision.with_values(schedule=self._map(site, decision, machine, knobs).arranged.trace.steps())

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """Loops over vectors."""
        return self._map(site, decision, machine, knobs).build()

    def _map(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Map:
        found = None if site.nest is None else site.once(map_of, site.nest, machine, knobs)
        assert found is not None
        return site.once(_with_steps, found, decision)


def values_of(found: Map) -> dict[str, Any]:
    """What a record says of a map."""
    remainder = "mask" if found.masks else "loop"
    return {"axis": found.v.name, "lanes": found.lanes, "vectors": found.vectors, "remainder": remainder}


def reason_of(found: Map) -> str:
    """Why it has so many vectors at a time."""
    return "long chains side by side" if found.side_by_side else "cheap values, memory sets the pace"


def pinned_map(found: Map, decision: Decision) -> Map:
    """The map with what a decision says."""
    lanes = checked(decision, "lanes", 2, 64, "lanes of a vector", power=True)
    vectors = checked(decision, "vectors", 1, 64, "vectors at a time")
    if (lanes, vectors) == (found.lanes, found.vectors):
        return found
    return replace(found, lanes=lanes, vectors=vectors)


def _with_steps(found: Map, decision: Decision) -> Map:
    """The map with what a decision says, its steps among it; PassError W528 for steps that do not apply."""
    new, steps = pinned_map(found, decision), decision.values["schedule"]
    if steps == found.arranged.trace.steps():
        return new
    trace = pinned_steps(decision)
    if new is not found:
        raise refused(f"{decision.kind} of {decision.about!r}: schedule says what lanes and vectors say")
    own = replace(found, pinned=trace)
    with obeying(decision):
        own.arranged  # noqa: B018
    return own
