"""Gathers of rows: whole rows on vectors, with the assertions about a row before it.

    for i: for j: assert 0 <= index[i] < n; y[i, j] = x[index[i], j]

    for i: assert 0 <= index[i] < n; prefetch x[index[i + 2], ...]; for j: y[i, j] = x[index[i], j] on vectors

The processor cannot guess where the next row lies, so that its first cache lines are prefetched. Rows of less than a
line are not: the processor is many of them ahead by itself, and finding a place takes as long as a row. Of rows of a
few lines at most, the assertions about all indices that stand before go along, in blocks (`checked_blocks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace as replace_fields

from weft import dtypes
from weft.ir import replace, substitute, walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    PREFETCH,
    AssertStmt,
    AttrStmt,
    Block,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, nest_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, Taken, checked
from weft.transform.autoschedule.rules.elementwise import Map, map_of, pinned_map, values_of, vector_axis
from weft.transform.autoschedule.rules.gather.checked_blocks import Checked, checks_before, without_choices
from weft.transform.autoschedule.rules.loops import INDEX, minus, plus
from weft.transform.autoschedule.rules.strides import loads_in, step_along, uses
from weft.transform.infra.decisions import Decision, refused

__all__ = ["GatherRule", "taken_checks"]

_MOST_LINES = 4
"""Cache lines of a row beside which reading its index twice does not count."""


@dataclass(frozen=True)
class _Gather:
    """A nest whose rows are chosen by indices that it loads: elementwise, assertions and prefetches before each row."""

    found: Map
    gathered: Sequence[BufferLoad]
    asserts: Sequence[AssertStmt]
    checked: Checked | None = None

    def lines(self, machine: MachineModel) -> float:
        """How many cache lines a row is long, as far as that is known."""
        length = self.found.nest.extents[self.found.nest.spatial[-1]]
        bits = max(dtypes.bits(load.buffer.dtype) for load in self.gathered)
        return length * bits / (machine.line_bytes * 8) if isinstance(length, int) else math.inf

    def in_blocks(self, machine: MachineModel, size: int, ahead: int, lines: int) -> Stmt:
        """Blocks of rows, which are checked before; in most of them no index counts from the end."""
        assert self.checked is not None
        nest = self.found.nest
        value, choices = without_choices(nest, self.checked.rows)
        store = replace(nest.store, value=value)
        plain = replace_fields(self.found, nest=replace_fields(nest, store=store))
        gathered = [load for load in loads_in(value) if _is_row(load, nest.spatial[-1])]
        fast = replace_fields(self, found=plain, gathered=gathered).build(machine, ahead, lines)
        return self.checked.blocks(size, choices, fast, self.build(machine, ahead, lines))

    def build(self, machine: MachineModel, ahead: int, lines: int) -> Stmt:
        nest = self.found.nest
        *_, row, last = nest.spatial

        def before(variables: dict[PrimVar, PrimVar]) -> list[Stmt]:
            checks = [_for_rows(part, nest.extents[last]) for part in self.asserts]
            loads = self.gathered if ahead else ()
            places = [x for load in loads for x in _places(load, row, last, nest, machine, ahead, lines)]
            return [substitute(part, variables) for part in (*checks, *(_prefetch(place) for place in places))]

        return self.found.build(before)


def _gather_of(site: Site, machine: MachineModel, knobs: Knobs) -> _Gather | None:
    found = _checked_nest(site.stmt)
    if found is None:
        return None
    nest, asserts = found
    *outer, last = nest.spatial
    gathered = [load for load in loads_in(nest.store.value) if _is_row(load, last)]
    if vector_axis(nest) is not last or not outer or not gathered:
        return None
    if any(uses(part.condition, last) for part in asserts):
        return None
    if any(load.buffer is nest.store.buffer for part in asserts for load in loads_in(part.condition)):
        return None
    along = map_of(nest, machine, knobs)
    if along is None or along.nest is not nest:
        return None
    before = site.stmts[: site.position]
    return _Gather(along, gathered, asserts, None if asserts else checks_before(before, nest))


def taken_checks(site: Site, machine: MachineModel, knobs: Knobs) -> tuple[Stmt, ...]:
    """The assertions before a nest that it takes along, where it is a gather in blocks."""
    found = site.once(_gather_of, site, machine, knobs)
    if found is None or found.checked is None or not _block(found, machine, knobs):
        return ()
    return found.checked.stmts


def _block(found: _Gather, machine: MachineModel, knobs: Knobs) -> int:
    """Iterations of the outermost loop in a block: 0 where rows are long, or few."""
    if found.checked is None or not knobs.gather_block or found.lines(machine) > _MOST_LINES:
        return 0
    return found.checked.block_of(knobs.gather_block)


class GatherRule(Rule):
    """Gathered rows: prefetched, and checked once each."""

    name = "gather"
    order = 210
    pins = frozenset(("lanes", "vectors", "prefetch_rows", "prefetch_lines", "block"))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """As an elementwise nest, with some lines of a later row prefetched."""
        found = site.once(_gather_of, site, machine, knobs)
        if found is None:
            return None
        short, block = found.lines(machine) < 1, _block(found, machine, knobs)
        ahead = {"prefetch_rows": 0 if short else knobs.gather_ahead, "prefetch_lines": knobs.gather_lines}
        reason = "rows at indices from memory" + (", shorter than a cache line" if short else "")
        reason += ", checked a block at a time" if block else ""
        return Decision(site.name, self.name, {**values_of(found.found), **ahead, "block": block}, reason)

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops."""
        found = site.once(_gather_of, site, machine, knobs)
        assert found is not None
        ahead = checked(decision, "prefetch_rows", 0, 64, "rows ahead, 0 for none")
        lines = checked(decision, "prefetch_lines", 1, 64, "cache lines of a row")
        block = checked(
            decision, "block", 0, 1 << 20, "iterations of the outermost loop that are checked at once, 0: all"
        )
        found = replace_fields(found, found=pinned_map(found.found, decision))
        if block and found.checked is None:
            raise refused(f"{self.name} of {decision.about!r}: nothing before the nest asserts what its indices are")
        return found.in_blocks(machine, block, ahead, lines) if block else found.build(machine, ahead, lines)

    def takes(self, site: Site, decision: Decision) -> Taken:
        """The assertions before the nest."""
        found = site.once(_gather_of, site)
        own = None if found is None else found.checked
        return Taken() if own is None or not decision.values["block"] else Taken(earlier=frozenset(own.stmts))


def _checked_nest(stmt: For) -> tuple[Nest, Sequence[AssertStmt]] | None:
    """A nest and the assertions about its elements, if any, in terms of its variables."""
    loops, inner = perfect_nest(stmt)
    body = inner.body if isinstance(inner, Block) else inner
    if isinstance(body, BufferStore):
        body = SeqStmt((body,))
    if not isinstance(body, SeqStmt) or not body.stmts or not isinstance(body.stmts[-1], BufferStore):
        return None
    asserts = [part for part in body.stmts[:-1] if isinstance(part, AssertStmt)]
    if len(asserts) < len(body.stmts) - 1:
        return None
    plain: Stmt = replace(inner, body=body.stmts[-1]) if isinstance(inner, Block) else body.stmts[-1]
    for loop in reversed(loops):
        plain = replace(loop, body=plain)
    nest = nest_of(plain)
    if nest is None or nest.reduction or nest.init is not None:
        return None
    names = {} if nest.block is None else {item.value: item.var for item in nest.block.iter_vars}
    return nest, [substitute(part, names) for part in asserts]


def _is_row(load: BufferLoad, last: PrimVar) -> bool:
    """Whether elements are read one after another, from a place that other loads give."""
    indirect = any(isinstance(part, BufferLoad) for index in load.indices for part in walk(index))
    return indirect and load.indices[-1] is last and step_along(load, last) == 1


def _for_rows(part: AssertStmt, length: Extent) -> AssertStmt:
    """The assertion before a row: rows without elements have nothing to hold for."""
    if isinstance(length, int) and length > 0:
        return part
    empty = binary("le", as_expr(length, INDEX), const(0, INDEX))
    return replace(part, condition=binary("or", empty, part.condition))


def _places(
    load: BufferLoad, row: PrimVar, last: PrimVar, nest: Nest, machine: MachineModel, ahead: int, lines: int
) -> Iterator[BufferLoad]:
    """The first element of each of the first lines of a later row; the last row for those after it.

    After some lines the processor has seen that they are read in order.
    """
    end = as_expr(minus(nest.extents[row], 1), INDEX)
    later = binary("min", plus(row, ahead), end)
    step = max(1, machine.line_bytes * 8 // dtypes.bits(load.buffer.dtype))
    length = nest.extents[last]
    for line in range(lines):
        if not isinstance(length, int) or line * step < length:
            yield substitute(load, {row: later, last: const(line * step, INDEX)})


def _prefetch(place: BufferLoad) -> Stmt:
    return AttrStmt(None, PREFETCH, place, SeqStmt(()))
