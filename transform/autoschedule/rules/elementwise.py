"""Nests that give every element once: vectors along the last axis.

    for i: for j: y[i, j] = f(x[i, j], b[j], ...)        every load even along j: in whole vectors, or one for all lanes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import substitute
from weft.ir.tensor import PrimExpr, PrimVar, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Cost, Nest, cost
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.loops import INDEX, nested, over_vectors, sequence
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, same_place, step_along

__all__ = ["vector_axis", "vector_map"]


Before = Callable[[dict[PrimVar, PrimVar]], Sequence[Stmt]]
"""new variables by those of the nest that they stand for -> what comes before the last axis"""


def vector_axis(nest: Nest) -> PrimVar | None:
    """The axis along which the elements that are written lie one after another: not the last where that has size 1."""
    return next((var for var in nest.spatial if step_along(nest.store, var) == 1), None)


def vector_map(nest: Nest, machine: MachineModel, knobs: Knobs, before: Before | None = None) -> Stmt | None:
    """The nest on vectors, where its last axis allows it."""
    store = nest.store
    own = [load for load in loads_in(store.value) if load.buffer is store.buffer]
    if nest.reduction or nest.init is not None or not all(same_place(load, store) for load in own):
        return None
    v = vector_axis(nest)
    kinds = kinds_in(store.value)
    if v is None or kinds is None or store.buffer.dtype not in kinds:
        return None
    if any(step_along(load, v) not in range(knobs.max_stride + 1) for load in loads_in(store.value)):
        return None
    lanes, extent = machine.lanes(kinds), nest.extents[v]
    if lanes < 2 or (isinstance(extent, int) and extent < 2):
        return None
    variables = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in nest.spatial if var is not v}

    def body(index: PrimExpr) -> Stmt:
        return substitute(store, {**variables, v: index})

    wide = cost(store.value) is Cost.EXPENSIVE
    unroll = machine.chains(lanes) if wide else knobs.map_vectors
    loops = [(variables[var], nest.extents[var]) for var in nest.spatial if var is not v]
    parts = over_vectors(v.name.removeprefix("v"), extent, lanes, unroll, body, machine.has_masks, wide=wide)
    return nested(loops, sequence((*(before(variables) if before is not None else ()), *parts)))
