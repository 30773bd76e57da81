"""Copies of all elements in their order, which only change the shape: loops as they were written.

    for i: for j: y[i, j] = x[i * 4 + j]            y is a view of x where the memory allows it (`ShareMemory`)

That a kernel copies in order is read from its loops, so they stay plain. Where a copy is needed after all, they
run over memory from one end to the other, which needs no vectors written out.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import replace, substitute
from weft.ir.dim import joined_axes, product, same
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.tensor import BufferLoad, BufferStore, Extent, PrimExpr, PrimVar, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.analysis.accesses import copies_in_order, is_plain
from weft.transform.analysis.loops.points import variables_in
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site
from weft.transform.autoschedule.rules.loops import INDEX, nested, plus
from weft.transform.infra.decisions import Decision

__all__ = ["CopyRule"]


class CopyRule(Rule):
    """What only changes the shape: views where that may be."""

    name = "copy"
    order = 202

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Elements of one buffer are stored to another, both in plain memory."""
        nest = site.nest
        if nest is None or nest.reduction or site.in_chain:
            return False
        if not isinstance(nest.store.value, BufferLoad):
            return False
        return is_plain(nest.store.buffer) and is_plain(nest.store.value.buffer)

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Where all elements are copied in their order."""
        nest = site.nest
        assert nest is not None
        assert isinstance(nest.store.value, BufferLoad)
        if not copies_in_order(_loops(nest), nest.store.value.buffer, nest.store.buffer):
            return None
        return Decision(site.name, self.name, {}, "only the shape changes: a view of the input where memory allows it")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops without their block, over the parts of axes where one buffer has them joined."""
        assert site.nest is not None
        return _over_parts(site.nest) or _loops(site.nest)


def _loops(nest: Nest) -> Stmt:
    """The store in its loops."""
    fresh = {var: PrimVar(var.name.removeprefix("v"), var.dtype) for var in nest.spatial}
    return nested([(fresh[var], nest.extents[var]) for var in nest.spatial], substitute(nest.store, fresh))


def _over_parts(nest: Nest) -> Stmt | None:
    """The copy by sums of products alone, no quotients; None where axes are not whole products of others, or empty.

    y[v] = x[v // m, v % m]         for i: for j: y[i * m + j] = x[i, j]
    """
    load, output = nest.store.value, nest.store.buffer
    assert isinstance(load, BufferLoad)
    shapes = load.buffer.shape, output.shape
    names = {var: f"x{number}" for number, var in enumerate(variables_in(*shapes[0], *shapes[1]))}
    given, wanted = ([prim_to_dim(extent, names) for extent in shape] for shape in shapes)
    sizes = [dim for dim in given if dim is not None], [dim for dim in wanted if dim is not None]
    if None in given or None in wanted or not same(product(sizes[0]), product(sizes[1])):  # the start of a longer one
        return None
    if 0 in (*sizes[0], *sizes[1]):  # any parts have the same product
        return None
    loops: list[tuple[PrimVar, Extent]] = []
    places: tuple[list[PrimExpr], list[PrimExpr]] = [], []
    for group in joined_axes(*sizes):
        if min(map(len, group)) > 1:
            return None
        finer = int(len(group[1]) > len(group[0]))
        own = [(PrimVar(f"i{len(loops) + k}", INDEX), shapes[finer][axis]) for k, axis in enumerate(group[finer])]
        places[finer].extend(var for var, _ in own)
        places[1 - finer].extend([_joined(own)] if group[1 - finer] else [])
        loops += own
    return nested(loops, BufferStore(output, replace(load, indices=tuple(places[0])), tuple(places[1])))


def _joined(axes: Sequence[tuple[PrimVar, Extent]]) -> PrimExpr:
    """The place in the product of axes in row-major order."""
    place: PrimExpr = axes[0][0]
    for var, extent in axes[1:]:
        place = plus(binary("mul", place, as_expr(extent, INDEX)), var)
    return place
