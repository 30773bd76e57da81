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
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.attention.build import build_attention
from weft.transform.autoschedule.attention.match import attention_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.axes import (
    CHAIN,
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
from weft.transform.autoschedule.rules.loops import INDEX, SHARED, nested, plus, sequence, times
from weft.transform.autoschedule.rules.row_fusion import Member, member_of
from weft.transform.autoschedule.rules.strides import loads_in, uses
from weft.transform.infra.decisions import Decision

__all__ = ["ATTENTION", "CHAIN", "CHAIN_RULE", "blocked_chains", "is_chain"]

def is_chain(loop: For) -> bool:
    """Whether a loop is one of those around a chain."""
    if CHAIN in loop.annotations:
        return True
    body = loop.body
    inner = body.stmts if isinstance(body, SeqStmt) else (body,)
    return any(isinstance(stmt, For) and is_chain(stmt) for stmt in inner)


def blocked_chains(stmts: Sequence[Stmt], size: Chains) -> list[Stmt] | None:
    """The statements with one chain in blocks; None when they are no chain."""
    allocated = {stmt.buffer: stmt for stmt in stmts if isinstance(stmt, AllocBuffer)}
    rest = [stmt for stmt in stmts if not isinstance(stmt, AllocBuffer)]
    members = [member_of(stmt) for stmt in rest]
    first = next((at for at, member in enumerate(members) if member is not None and member.nest.is_contraction), None)
    if first is None:
        return None
    chain: list[Member] = []
    for member in members[first:]:
        if member is None:
            break
        chain.append(member)
    while sum(member.nest.is_contraction for member in chain) > 1:
        made = _blocked(chain, allocated, [*rest[:first], *rest[first + len(chain) :]], size)
        if made is not None:
            own, loop = made
            kept = [stmt for stmt in stmts if isinstance(stmt, AllocBuffer) and stmt.buffer not in own]
            return [*kept, *rest[:first], loop, *rest[first + len(chain) :]]
        chain.pop()
    return None


def _blocked(
    chain: Sequence[Member], allocated: dict[Buffer, AllocBuffer], outside: Sequence[Stmt], size: Chains
) -> tuple[set[Buffer], Stmt] | None:
    nests = [member.nest for member in chain]
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
    return own, _build(chain, own, outer, row, size)


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


def _build(
    chain: Sequence[Member], own: set[Buffer], outer: Sequence[Axis], row: Axis, size: Chains
) -> Stmt:
    loops = [PrimVar(axis.variables[-1].name.removeprefix("v"), INDEX) for axis in outer]
    attention = attention_of(chain, own, outer, row)
    pays = attention is not None and attention.pays(size)
    size = _decided(chain, outer, row, size, is_attention=pays)
    if attention is not None and pays:
        body = build_attention(attention, loops, size)
    else:
        body = sequence(over_rows(row, size.rows, lambda start, count, most: _block_of_rows(
            chain, own, outer, row, loops, start, count, most
        )))  # fmt: skip
    return _shared([(loop, axis.extent) for loop, axis in zip(loops, outer, strict=True)], body, size.knobs)


def _decided(
    chain: Sequence[Member], outer: Sequence[Axis], row: Axis, size: Chains, *, is_attention: bool
) -> Chains:
    """The sizes of blocks as they are decided, in a record about the last nest of the chain."""
    last = chain[-1].nest
    rule = ATTENTION if is_attention else CHAIN_RULE
    names = tuple(axis.variables[-1].name for axis in outer)
    values = {"outer": names, "rows": row.variables[-1].name, "nests": len(chain), "row_block": size.rows}
    if is_attention:
        values["key_block"] = size.keys
    reason = "scores are never stored for more than a block" if is_attention else "contractions hand on rows"
    about = last.block.name if last.block is not None else last.store.buffer.name
    site = Site(last.stmt) if isinstance(last.stmt, For) else None
    assert site is not None
    decision = size.ledger.settle(rule, site, Decision(about, rule.name, values, reason))
    rows = checked(decision, "row_block", 1, 1 << 16, "rows of a block")
    keys = checked(decision, "key_block", 1, 1 << 20, "keys of a block") if is_attention else size.keys
    size.ledger.record(decision)
    return replace(size, knobs=replace(size.knobs, row_block=rows, key_block=keys))


class _ChainRule(Rule):
    """Contractions that hand on rows, a block of rows at a time; `TileContractions` decides it for whole kernels."""

    def __init__(self, name: str, order: int, *pins: str) -> None:
        self.name, self.order, self.pins = name, order, frozenset(pins)

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Never by itself."""
        return False


ATTENTION = _ChainRule("attention", 80, "row_block", "key_block")
CHAIN_RULE = _ChainRule("chain", 90, "row_block")


def _shared(loops: Sequence[tuple[PrimVar, Extent]], body: Stmt, knobs: Knobs) -> Stmt:
    """The loops around the blocks of rows; the one with the most iterations in parts that threads may share."""
    chunks, enough = knobs.chunks, knobs.min_chunks
    known = [(loop, extent) for loop, extent in loops if isinstance(extent, int) and extent >= enough]
    symbolic = [(loop, extent) for loop, extent in loops if not isinstance(extent, int)]
    chosen = max(known, key=lambda pair: pair[1], default=symbolic[0] if symbolic else None)
    if chosen is None:
        return nested(loops, body)
    loop, extent = chosen
    inner = nested([pair for pair in loops if pair[0] is not loop], body)
    marked = FrozenMap({SHARED: True})
    part, own = PrimVar("part", INDEX), PrimVar(loop.name, INDEX)
    if isinstance(extent, int):
        parts = next((n for n in range(min(chunks, extent), enough - 1, -1) if extent % n == 0), extent)
        if parts == extent:
            return For(loop, 0, extent, inner, annotations=marked)
        at = plus(times(part, extent // parts), own)
        inner = For(own, 0, extent // parts, substitute(inner, {loop: at}))
        return For(part, 0, parts, inner, annotations=marked)
    size = binary("max", binary("floordiv", plus(extent, chunks - 1), const(chunks, INDEX)), const(1, INDEX))
    first = binary("mul", part, size)
    count = binary("min", binary("sub", extent, first), size)
    inner = For(own, 0, count, substitute(inner, {loop: plus(first, own)}))
    return For(part, 0, chunks, inner, annotations=marked)


def _block_of_rows(
    chain: Sequence[Member], own: set[Buffer], outer: Sequence[Axis], row: Axis, loops: Sequence[PrimVar],
    start: PrimExpr, count: Extent, size: int,
) -> Stmt:  # fmt: skip
    """The chain for `count` rows from `start` on, at most `size`: memory of one size can be kept between blocks."""
    small = {buffer: small_buffer(buffer, outer, [(row.places[buffer], size)]) for buffer in own}
    body: list[Stmt] = []
    for number, member in enumerate(chain):
        gone = {axis.variables[number]: loop for axis, loop in zip(outer, loops, strict=True)}
        stmt = in_part(member.nest, gone, [Cut(row.variables[number], row.places, start, count)], small, outer)
        body.append(stmt if member.condition is None else IfThenElse(member.condition, stmt, None))
    buffers = sorted(small.values(), key=lambda buffer: buffer.name)
    body = in_place(body, buffers)
    used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
    return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))
