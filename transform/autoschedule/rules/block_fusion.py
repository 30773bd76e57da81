"""Chains of nests with contractions among them, a block of rows at a time.

    for b, n, s, t: c[b, n, s, t] += q[b, s, n, k] * x[b, t, n, k]       for b, n: for blocks of s:
    for b, n, s, t: p[b, n, s, t] = exp(c[b, n, s, t] - m[b, n, s])          c[s, t] += ...;  p[s, t] = ...
    for b, s, n, d: y[b, s, n, d] += p[b, n, s, t] * v[b, t, n, d]           y[b, s, n, d] += ...

This is attention, whatever stands between the products: scores are never stored for more than a block of rows, so
that memory grows with the length of a sequence and not with its square. An axis is shared when every nest has one
variable for it and uses it alone, in one place of each buffer that the nests hand on. Axes that all operands of the
contractions have become loops; the longest of the others is cut in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.ir import FrozenMap, substitute, walk
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.attention.build import build_attention
from weft.transform.autoschedule.attention.key_blocks import narrow_type
from weft.transform.autoschedule.attention.mask_bounds import mask_bounds_of
from weft.transform.autoschedule.attention.match import Attention, attention_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, Taken, checked
from weft.transform.autoschedule.rules.axes import (
    Axis,
    Chains,
    Cut,
    accesses,
    in_part,
    in_place,
    over_rows,
    shared_axes,
    small_buffer,
)
from weft.transform.autoschedule.rules.loops import CHAIN, INDEX, SHARED, nested, plus, sequence, times
from weft.transform.autoschedule.rules.row_fusion import Member, member_of
from weft.transform.autoschedule.rules.strides import loads_in, uses
from weft.transform.fusion.fuse_tir import copied
from weft.transform.infra.decisions import Decision

__all__ = ["AttentionRule", "ChainRule"]

_ROWS_OF_MATRICES = 32
"""The rows of the largest tile of matrices, two of them."""


@dataclass(frozen=True)
class Chain:
    """A chain that was found: its nests, the buffers that nothing else uses, its outer axes and that of its rows."""

    members: Sequence[Member]
    own: set[Buffer]
    outer: Sequence[Axis]
    row: Axis

    @cached_property
    def attention(self) -> Attention | None:
        """The chain as attention, where it is that."""
        return attention_of(self.members, self.own, self.outer, self.row)

    def is_attention(self, size: Chains) -> bool:
        """Whether it is attention that is worth blocks of keys."""
        return self.attention is not None and self.attention.pays(size)


def chain_of(site: Site, size: Chains) -> Chain | None:
    """The chain that starts with a nest, the first contraction of a kernel; None where there is none."""
    if not site.is_outermost or not _is_contraction(site.stmt):
        return None
    if any(map(_is_contraction, site.stmts[: site.position])):
        return None
    members: list[Member] = []
    for stmt in (site.stmt, *site.following):
        member = member_of(stmt)
        if member is None:
            break
        members.append(member)
    allocated = {stmt.buffer for stmt in site.stmts if isinstance(stmt, AllocBuffer)}
    before = [stmt for stmt in site.stmts[: site.position] if not isinstance(stmt, AllocBuffer)]
    while sum(member.nest.is_contraction for member in members) > 1:
        found = _blocked(members, allocated, [*before, *site.following[len(members) - 1 :]], size)
        if found is not None:
            return found
        members.pop()
    return None


def _is_contraction(stmt: Stmt) -> bool:
    member = member_of(stmt)
    return member is not None and member.nest.is_contraction


def _blocked(members: Sequence[Member], allocated: set[Buffer], outside: Sequence[Stmt], size: Chains) -> Chain | None:
    nests = [member.nest for member in members]
    if any(nest.block is None for nest in nests):
        return None
    elsewhere = {part for stmt in outside for part in walk(stmt) if isinstance(part, Buffer)}
    written = {nest.store.buffer for nest in nests}
    own = {buffer for buffer in allocated if buffer in written and buffer not in elsewhere}
    used = {buffer for buffer in written if buffer in own or _readers(buffer, nests)}
    axes = shared_axes(nests, used)
    outer = [axis for axis in axes if _in_all_operands(axis, nests)]
    others = [axis for axis in axes if axis not in outer]
    if not others or not own:
        return None
    row = max(others, key=lambda axis: axis.extent if isinstance(axis.extent, int) else 1 << 30)
    if isinstance(row.extent, int) and row.extent <= size.rows and not outer:
        return None
    return Chain(tuple(members), own, outer, row)


def _readers(buffer: Buffer, nests: Sequence[Nest]) -> bool:
    return any(load.buffer is buffer for nest in nests for load in accesses(nest) if isinstance(load, BufferLoad))


def _in_all_operands(axis: Axis, nests: Sequence[Nest]) -> bool:
    """Whether every factor of every contraction has the axis: each of its values is a product of its own."""
    for var, nest in zip(axis.variables, nests, strict=True):
        if nest.is_contraction:
            loads = [x for x in loads_in(nest.store.value) if x.buffer is not nest.store.buffer]
            if not all(any(uses(index, var) for index in load.indices) for load in loads):
                return False
    return True


class _ChainRule(Rule):
    """Contractions that hand on rows, a block of rows at a time; the decision is about the last nest of the chain."""

    again = True
    is_attention = False
    reason = "contractions hand on rows"

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """The size of blocks."""
        size = Chains(machine, knobs)
        found = site.once(chain_of, site, size)
        if found is None or found.is_attention(size) != self.is_attention:
            return None
        last = found.members[-1].nest
        names = tuple(axis.variables[-1].name for axis in found.outer)
        rows = found.row.variables[-1].name
        values = {"outer": names, "rows": rows, "nests": len(found.members), **self.values(found, size)}
        about = last.block.name if last.block is not None else last.store.buffer.name
        return Decision(about, self.name, values, self.reason)

    def values(self, found: Chain, size: Chains) -> dict[str, int | str]:
        """The sizes of blocks, and what else is decided."""
        return {"row_block": size.rows}

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops over the outer axes and the blocks."""
        found = site.once(chain_of, site, Chains(machine, knobs))
        assert found is not None
        rows = checked(decision, "row_block", 1, 1 << 16, "rows of a block")
        size = Chains(machine, replace(knobs, row_block=rows))
        loops = _loops_of(found)
        return _around(found, loops, self.blocks(found, decision, loops, size), knobs)

    def blocks(self, found: Chain, decision: Decision, loops: Sequence[PrimVar], size: Chains) -> Stmt:
        """What is done for one value of the outer loops."""
        return sequence(
            over_rows(
                found.row, size.rows, lambda start, count, limit: _block_of_rows(found, loops, start, count, limit)
            )
        )

    def takes(self, site: Site, decision: Decision) -> Taken:
        """All nests of the chain, and the buffers that are kept for a block only."""
        found = site.once(chain_of, site)
        assert found is not None
        return Taken(len(found.members) - 1, frozenset(found.own))


class ChainRule(_ChainRule):
    """Contractions that hand on rows, a block of rows at a time."""

    name = "chain"
    order = 90
    pins = frozenset(("row_block",))


class AttentionRule(_ChainRule):
    """A softmax between two products, over blocks of rows and of keys."""

    name = "attention"
    order = 80
    pins = frozenset(("row_block", "key_block", "single_rows"))
    is_attention = True
    reason = "scores are never stored for more than a block"

    def values(self, found: Chain, size: Chains) -> dict[str, int | str]:
        """The sizes of blocks; of an unknown number of rows whole tiles, and up to which number each goes alone. Tiles
        of matrices take less time for a row, beside which each block brings keys and values into their order: blocks
        are larger then, but less so where a mask hides keys from all rows of a block."""
        sizes: dict[str, int | str] = {"row_block": size.rows, "key_block": size.keys}
        narrow = None if found.attention is None else narrow_type(found.attention, size)
        if found.attention is not None and narrow is not None:
            rows = 3 * size.rows // (1 if mask_bounds_of(found.attention) is None else 2)
            return {**sizes, "row_block": -(-rows // _ROWS_OF_MATRICES) * _ROWS_OF_MATRICES, "products": narrow}
        if isinstance(found.row.extent, int):
            return sizes
        rows, _ = size.tile(found.members[0].nest.store.buffer.dtype)
        return {**sizes, "row_block": max(1, size.rows // rows) * rows, "single_rows": size.knobs.attention_single_rows}

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops over the outer axes and the blocks; a few rows of an unknown number go alone."""
        several = super().apply(site, decision, machine, knobs)
        found = site.once(chain_of, site, Chains(machine, knobs))
        assert found is not None
        rows = found.row.extent
        if isinstance(rows, int):
            return several
        single = checked(decision, "single_rows", 0, 1 << 16, "rows up to which each goes alone")
        alone = binary("le", rows, const(single, INDEX))
        return IfThenElse(alone, _rows_alone(found, knobs), several) if single else several

    def blocks(self, found: Chain, decision: Decision, loops: Sequence[PrimVar], size: Chains) -> Stmt:
        """Copies of keys and values, then the blocks of rows over them."""
        keys = checked(decision, "key_block", 1, 1 << 20, "keys of a block")
        assert found.attention is not None
        return build_attention(found.attention, loops, Chains(size.machine, replace(size.knobs, key_block=keys)))


def _loops_of(chain: Chain) -> list[PrimVar]:
    """Variables of loops over the outer axes."""
    return [PrimVar(axis.variables[-1].name.removeprefix("v"), INDEX) for axis in chain.outer]


def _around(chain: Chain, loops: Sequence[PrimVar], body: Stmt, knobs: Knobs) -> Stmt:
    """The loops over the outer axes."""
    return _shared([(loop, axis.extent) for loop, axis in zip(loops, chain.outer, strict=True)], body, knobs)


def _rows_alone(chain: Chain, knobs: Knobs) -> Stmt:
    """The chain one row at a time: each reads keys and values where they are."""
    loops, index = _loops_of(chain), PrimVar("row", INDEX)
    row = _block_of_rows(chain, loops, index, 1, 1)
    rows = For(index, 0, chain.row.extent, row, annotations=FrozenMap({CHAIN: True}))
    return copied(_around(chain, loops, rows, knobs), {}, lambda name: name)


def _shared(loops: Sequence[tuple[PrimVar, Extent]], body: Stmt, knobs: Knobs) -> Stmt:
    """The loops around the blocks of rows; the one with the most iterations in chunks that threads may share."""
    chunks, enough = knobs.chunks, knobs.min_chunks
    known = [(loop, extent) for loop, extent in loops if isinstance(extent, int) and extent >= enough]
    symbolic = [(loop, extent) for loop, extent in loops if not isinstance(extent, int)]
    chosen = max(known, key=lambda pair: pair[1], default=symbolic[0] if symbolic else None)
    if chosen is None:
        return nested(loops, body)
    loop, extent = chosen
    inner = nested([pair for pair in loops if pair[0] is not loop], body)
    marked = FrozenMap({SHARED: True})
    chunk, own = PrimVar("chunk", INDEX), PrimVar(loop.name, INDEX)
    if isinstance(extent, int):
        count = next((n for n in range(min(chunks, extent), enough - 1, -1) if extent % n == 0), extent)
        if count == extent:
            return For(loop, 0, extent, inner, annotations=marked)
        at = plus(times(chunk, extent // count), own)
        inner = For(own, 0, extent // count, substitute(inner, {loop: at}))
        return For(chunk, 0, count, inner, annotations=marked)
    size = binary("max", binary("floordiv", plus(extent, chunks - 1), const(chunks, INDEX)), const(1, INDEX))
    first = binary("mul", chunk, size)
    count = binary("min", binary("sub", extent, first), size)
    inner = For(own, 0, count, substitute(inner, {loop: plus(first, own)}))
    return For(chunk, 0, chunks, inner, annotations=marked)


def _block_of_rows(chain: Chain, loops: Sequence[PrimVar], start: PrimExpr, count: Extent, size: int) -> Stmt:
    """The chain for `count` rows from `start` on, at most `size`: memory of one size can be kept between blocks."""
    outer, row = chain.outer, chain.row
    small = {buffer: small_buffer(buffer, outer, [(row.places[buffer], size)]) for buffer in chain.own}
    body: list[Stmt] = []
    for number, member in enumerate(chain.members):
        gone = {axis.variables[number]: loop for axis, loop in zip(outer, loops, strict=True)}
        stmt = in_part(member.nest, gone, [Cut(row.variables[number], row.places, start, count)], small, outer)
        body.append(stmt if member.condition is None else IfThenElse(member.condition, stmt, None))
    buffers = sorted(small.values(), key=lambda buffer: buffer.name)
    body = in_place(body, buffers)
    used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
    return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))
