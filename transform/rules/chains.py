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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir import FrozenMap, Node, replace, rewrite, substitute, walk
from weft.ir.prim import binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.fuse_tir import copied
from weft.transform.nests import Nest, same_extents
from weft.transform.rules.access import loads_in, uses
from weft.transform.rules.loops import INDEX, PARTS, SHARED, nested, plus, sequence, times
from weft.transform.rules.rows import Member, member_of

__all__ = ["CHAIN", "blocked_chains", "is_chain"]

CHAIN = "weft.chain"
"""The annotation of the loop whose body is a chain for one block of rows."""


def is_chain(loop: For) -> bool:
    """Whether a loop is one of those around a chain."""
    inner: Stmt = loop
    while isinstance(inner, For):
        if CHAIN in inner.annotations:
            return True
        inner = inner.body
        if isinstance(inner, SeqStmt) and inner.stmts:  # whole blocks, and a shorter one
            inner = inner.stmts[0]
    return False


def blocked_chains(stmts: Sequence[Stmt], rows: int) -> list[Stmt] | None:
    """The statements with one chain in blocks of `rows` rows; None when they are no chain."""
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
        made = _blocked(chain, allocated, [*rest[:first], *rest[first + len(chain) :]], rows)
        if made is not None:
            own, loop = made
            kept = [stmt for stmt in stmts if isinstance(stmt, AllocBuffer) and stmt.buffer not in own]
            return [*kept, *rest[:first], loop, *rest[first + len(chain) :]]
        chain.pop()
    return None


@dataclass(frozen=True)
class _Axis:
    """The variable of each nest (in order), and the place in each buffer."""

    variables: tuple[PrimVar, ...]
    places: dict[Buffer, int]
    extent: Extent


def _blocked(
    chain: Sequence[Member], allocated: dict[Buffer, AllocBuffer], outside: Sequence[Stmt], rows: int
) -> tuple[set[Buffer], Stmt] | None:
    nests = [member.nest for member in chain]
    if any(nest.block is None for nest in nests):
        return None
    elsewhere = {part for stmt in outside for part in walk(stmt) if isinstance(part, Buffer)}
    written = {nest.store.buffer for nest in nests}
    own = {buffer for buffer in allocated if buffer in written and buffer not in elsewhere}
    used = {buffer for buffer in written if buffer in own or _readers(buffer, nests)}
    axes = _axes(nests, used)
    outer = [axis for axis in axes if _in_all_operands(axis, nests)]
    others = [axis for axis in axes if axis not in outer]
    if not others or not own:
        return None
    row = max(others, key=lambda axis: axis.extent if isinstance(axis.extent, int) else 1 << 30)
    if isinstance(row.extent, int) and row.extent <= rows and not outer:
        return None
    return own, _build(chain, own, outer, row, rows)


def _readers(buffer: Buffer, nests: Sequence[Nest]) -> bool:
    return any(load.buffer is buffer for nest in nests for load in _accesses(nest) if isinstance(load, BufferLoad))


def _accesses(nest: Nest) -> list[BufferLoad | BufferStore]:
    return [part for part in walk(nest.stmt) if isinstance(part, (BufferLoad, BufferStore))]


def _axes(nests: Sequence[Nest], used: set[Buffer]) -> list[_Axis]:
    """The axes that all nests share, told from the variables of the last one."""
    found = (_axis(var, nests, used) for var in nests[-1].spatial)
    return [axis for axis in found if axis is not None]


def _axis(var: PrimVar, nests: Sequence[Nest], used: set[Buffer]) -> _Axis | None:
    variables: dict[int, PrimVar] = {len(nests) - 1: var}
    places: dict[Buffer, int] = {}
    changed = True
    while changed:  # from variables to places in buffers and back
        changed = False
        for number, nest in enumerate(nests):
            for access in _accesses(nest):
                if access.buffer not in used:
                    continue
                place = places.get(access.buffer)
                if place is None and number in variables:
                    at = [k for k, index in enumerate(access.indices) if index is variables[number]]
                    if len(at) == 1:
                        places[access.buffer], changed = at[0], True
                elif place is not None and number not in variables:
                    index = access.indices[place]
                    if not isinstance(index, PrimVar) or index not in nest.spatial:
                        return None
                    variables[number], changed = index, True
    if len(variables) != len(nests) or set(places) != used:
        return None
    for number, nest in enumerate(nests):
        for access in _accesses(nest):
            if access.buffer in used and access.indices[places[access.buffer]] is not variables[number]:
                return None
    extent = nests[-1].extents[var]
    alike = all(same_extents((extent,), (nest.extents[variables[n]],)) for n, nest in enumerate(nests))
    return _Axis(tuple(variables[n] for n in range(len(nests))), places, extent) if alike else None


def _in_all_operands(axis: _Axis, nests: Sequence[Nest]) -> bool:
    """Whether every factor of every contraction has the axis: each of its values is a product of its own."""
    for var, nest in zip(axis.variables, nests, strict=True):
        if nest.is_contraction:
            loads = [x for x in loads_in(nest.store.value) if x.buffer is not nest.store.buffer]
            if not all(any(uses(index, var) for index in load.indices) for load in loads):
                return False
    return True


def _build(chain: Sequence[Member], own: set[Buffer], outer: Sequence[_Axis], row: _Axis, rows: int) -> Stmt:
    loops = [PrimVar(axis.variables[-1].name.removeprefix("v"), INDEX) for axis in outer]
    name = f"{row.variables[-1].name.removeprefix('v')}_rows"

    def blocks(first: int, number: Extent, size: int, count: Callable[[PrimExpr], Extent]) -> Stmt:
        index = PrimVar(name, INDEX)
        start = plus(first, times(index, size))
        body = _block_of_rows(chain, own, outer, row, loops, start, count(start), size)
        return For(index, 0, number, body, annotations=FrozenMap({CHAIN: True}))

    if isinstance(row.extent, int):
        most = min(rows, row.extent)
        size = next((x for x in range(most, most // 2, -1) if row.extent % x == 0), most)
        whole, rest = divmod(row.extent, size)
        parts = [blocks(0, whole, size, lambda start: size)]
        if rest:
            parts.append(copied(blocks(whole * size, 1, rest, lambda start: rest), {}, lambda name: name))
    else:
        extent = row.extent
        number = binary("floordiv", plus(extent, rows - 1), const(rows, INDEX))
        limit = const(rows, INDEX)
        parts = [blocks(0, number, rows, lambda start: binary("min", binary("sub", extent, start), limit))]
    return _shared([(loop, axis.extent) for loop, axis in zip(loops, outer, strict=True)], sequence(parts))


def _shared(loops: Sequence[tuple[PrimVar, Extent]], body: Stmt) -> Stmt:
    """The loops around the blocks of rows; the one with the most iterations in parts that threads may share."""
    known = [(loop, extent) for loop, extent in loops if isinstance(extent, int) and extent >= _ENOUGH]
    symbolic = [(loop, extent) for loop, extent in loops if not isinstance(extent, int)]
    chosen = max(known, key=lambda pair: pair[1], default=symbolic[0] if symbolic else None)
    if chosen is None:
        return nested(loops, body)
    loop, extent = chosen
    inner = nested([pair for pair in loops if pair[0] is not loop], body)
    marked = FrozenMap({SHARED: True})
    part, own = PrimVar("part", INDEX), PrimVar(loop.name, INDEX)
    if isinstance(extent, int):
        parts = next((n for n in range(min(PARTS, extent), _ENOUGH - 1, -1) if extent % n == 0), extent)
        if parts == extent:
            return For(loop, 0, extent, inner, annotations=marked)
        at = plus(times(part, extent // parts), own)
        inner = For(own, 0, extent // parts, substitute(inner, {loop: at}))
        return For(part, 0, parts, inner, annotations=marked)
    size = binary("max", binary("floordiv", plus(extent, PARTS - 1), const(PARTS, INDEX)), const(1, INDEX))
    first = binary("mul", part, size)
    count = binary("min", binary("sub", extent, first), size)
    inner = For(own, 0, count, substitute(inner, {loop: plus(first, own)}))
    return For(part, 0, PARTS, inner, annotations=marked)


_ENOUGH = 4
"""The least iterations that threads share well."""


def _block_of_rows(
    chain: Sequence[Member], own: set[Buffer], outer: Sequence[_Axis], row: _Axis, loops: Sequence[PrimVar],
    start: PrimExpr, count: Extent, size: int,
) -> Stmt:  # fmt: skip
    """The chain for `count` rows from `start` on, at most `size`: memory of one size can be kept between blocks."""
    small = {buffer: _small(buffer, outer, row, size) for buffer in own}
    body: list[Stmt] = []
    for number, member in enumerate(chain):
        gone = {axis.variables[number]: loop for axis, loop in zip(outer, loops, strict=True)}
        stmt = _in_block(member.nest, gone, row.variables[number], start, count, small, outer, row)
        body.append(stmt if member.condition is None else IfThenElse(member.condition, stmt, None))
    buffers = sorted(small.values(), key=lambda buffer: buffer.name)
    body = _in_place(body, buffers)
    used = {part for stmt in body for part in walk(stmt) if isinstance(part, Buffer)}
    return SeqStmt((*(AllocBuffer(buffer) for buffer in buffers if buffer in used), *body))


def _in_place(body: list[Stmt], buffers: Sequence[Buffer]) -> list[Stmt]:
    """The statements with elements in place of those that they are made of, where nothing else needs these."""
    for old in buffers:
        users = [at for at, stmt in enumerate(body) if any(part is old for part in walk(stmt))]
        member = member_of(body[users[-1]]) if users else None
        if member is None or member.condition is not None or member.nest.reduction or len(users) < 2:
            continue
        nest = member.nest
        new = nest.store.buffer
        earlier = any(part is new for stmt in body[: users[-1]] for part in walk(stmt))
        loads = [load for load in loads_in(nest.store.value) if load.buffer is old]
        alike = old.dtype == new.dtype and same_extents(old.shape, new.shape)
        same = alike and all(x is y for load in loads for x, y in zip(load.indices, nest.store.indices, strict=True))
        if new in buffers and new is not old and same and not earlier:
            body = [substitute(stmt, {new: old}) for stmt in body]
    return body


def _small(buffer: Buffer, outer: Sequence[_Axis], row: _Axis, count: Extent) -> Buffer:
    """What one block of rows needs of a buffer."""
    gone = {axis.places[buffer] for axis in outer}
    shape = [count if k == row.places[buffer] else extent for k, extent in enumerate(buffer.shape) if k not in gone]
    return Buffer(buffer.name, tuple(shape), buffer.dtype)


def _in_block(
    nest: Nest, gone: dict[PrimVar, PrimVar], row: PrimVar, start: PrimExpr, count: Extent,
    small: dict[Buffer, Buffer], outer: Sequence[_Axis], axis: _Axis,
) -> Stmt:  # fmt: skip
    """The nest for one block of rows, over buffers of that size."""
    block = nest.block
    assert block is not None
    left = {buffer: {x.places[buffer] for x in outer} for buffer in small}

    def changed(node: Node) -> Node | None:
        if not isinstance(node, (BufferLoad, BufferStore)) or node.buffer not in small:
            return None
        place = axis.places[node.buffer]
        indices = [row if k == place else index for k, index in enumerate(node.indices)]
        kept = tuple(index for k, index in enumerate(indices) if k not in left[node.buffer])
        return replace(node, buffer=small[node.buffer], indices=kept)

    def inside(stmt: Stmt) -> Stmt:
        return rewrite(substitute(stmt, {**gone, row: plus(start, row)}), changed)

    items = tuple(
        replace(item, extent=count) if item.var is row else item for item in block.iter_vars if item.var not in gone
    )
    init = None if block.init is None else inside(block.init)
    new = replace(block, iter_vars=items, body=inside(block.body), init=init, reads=None, writes=None)
    values = {item.var: item.value for item in block.iter_vars}
    loops: list[tuple[PrimVar, Extent]] = []
    for var, extent in nest.extents.items():
        value = values[var]
        if var not in gone and isinstance(value, PrimVar):
            loops.append((value, count if var is row else extent))
    return nested(loops, new)
