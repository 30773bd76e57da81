"""Nests that hand on values row by row share the loops over the rows.

    for i, j: t[i, j] = f(x[i, j])               for i:
    for i, j: s[i] = s[i] + t[i, j]                  for j: t[j] = f(x[i, j])        a row stays in the nearest cache
    for i, j: y[i, j] = t[i, j] / s[i]               for j: s[0] = s[0] + t[j]
                                                     for j: y[i, j] = t[j] / s[0]

Whatever one nest of the group writes and another one uses must be indexed by the shared variables first, in the same
places. Buffers that nothing else uses lose those axes. What one iteration of the shared loops does is independent of
the others, as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from weft.ir import Node, replace, rewrite, substitute, walk
from weft.ir.kernel.prim import const
from weft.ir.structure.visit import nodes_of
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Nest, nest_of, same_extents
from weft.transform.analysis.accesses import is_plain
from weft.transform.autoschedule.rules.loops import INDEX, nested, sequence
from weft.transform.autoschedule.rules.strides import loads_in, step_along, values_read

__all__ = ["Member", "Rows", "member_of", "shared_rows"]

_MAX_STRIDE = 4
"""The most elements that windows move by, for which vectors are gathered from whole loads."""


@dataclass(frozen=True)
class Rows:
    """Nests under shared loops: (variable, extent) of each loop, and the statements of one row."""

    loops: tuple[tuple[PrimVar, Extent], ...]
    stmts: tuple[Stmt, ...]

    def build(self) -> Stmt:
        """The loops."""
        return nested(self.loops, sequence(self.stmts))


@dataclass(frozen=True)
class Member:
    """A nest, under a condition on sizes where it has one (the result of a sum of nothing)."""

    nest: Nest
    condition: PrimExpr | None = None


def member_of(stmt: Stmt) -> Member | None:
    """A nest, or a nest under a condition on sizes; None for anything else."""
    if isinstance(stmt, IfThenElse) and stmt.else_body is None:
        loads = any(isinstance(part, BufferLoad) for part in walk(stmt.condition))
        nest = nest_of(stmt.then_body)
        return None if nest is None or loads else Member(nest, stmt.condition)
    nest = nest_of(stmt)
    return None if nest is None else Member(nest)


def shared_rows(stmts: Sequence[Stmt]) -> list[Stmt | Rows]:
    """The statements of a sequence, with groups of nests that can share loops as `Rows`."""
    groups = _groups([stmt for stmt in stmts if not isinstance(stmt, AllocBuffer)])
    users = Counter(part for group in groups for part in _buffers(group))
    allocated = [stmt.buffer for stmt in stmts if isinstance(stmt, AllocBuffer)]
    last = {id(group[-1]): group for group in groups}
    grouped = {id(stmt) for group in groups if len(group) > 1 for stmt in group}
    result: list[Stmt | Rows] = []
    small: set[Buffer] = set()
    for stmt in stmts:  # a group stands where its last nest stood, after all allocations before that
        group = last.get(id(stmt), [])
        if len(group) > 1:
            members = _members(group)
            written = _written([member.nest for member in members])
            own = [x for x in allocated if x in written and users[x] == 1 and is_plain(x)]
            small.update(own)
            result.append(_rows(members, own))
        elif id(stmt) not in grouped:
            result.append(stmt)
    return [part for part in result if not (isinstance(part, AllocBuffer) and part.buffer in small)]


def _groups(stmts: Sequence[Stmt]) -> list[list[Stmt]]:
    """The statements, with neighbours that can share loops together."""
    groups: list[list[Stmt]] = []
    shared: _SharedLoops | None = None
    for stmt in stmts:
        member = member_of(stmt)
        if member is not None and shared is not None and shared.add(member.nest):
            groups[-1].append(stmt)
            continue
        groups.append([stmt])
        shared = None
        if member is not None:
            shared = _SharedLoops(member.nest)
    return groups


def _buffers(stmts: Sequence[Stmt]) -> set[Buffer]:
    return {part for stmt in stmts for part in nodes_of(stmt, Buffer)}


def _members(stmts: Sequence[Stmt]) -> list[Member]:
    return [member for member in map(member_of, stmts) if member is not None]


def _rows(members: Sequence[Member], own: Sequence[Buffer]) -> Rows:
    nests = [member.nest for member in members]
    count, first = _count(nests), nests[0]
    loops = tuple((PrimVar(x.name.removeprefix("v"), INDEX), first.extents[x]) for x in first.spatial[:count])
    small = {buffer: Buffer(buffer.name, buffer.shape[count:] or (1,), buffer.dtype) for buffer in own}
    body: list[Stmt] = [AllocBuffer(buffer) for buffer in small.values()]
    for member in members:
        row = _in_row(member.nest, [var for var, _ in loops], small)
        body.append(row if member.condition is None else IfThenElse(member.condition, row, None))
    return Rows(loops, tuple(body))


def _written(nests: Sequence[Nest]) -> set[Buffer]:
    return {nest.store.buffer for nest in nests}


class _SharedLoops:
    """How many leading loops nests can share, found nest by nest: `count`, 0 when they cannot."""

    def __init__(self, first: Nest) -> None:
        self.first = first
        self.most = len(first.spatial)
        self.deepest = 0
        self.written: set[Buffer] = set()
        self.own_row: dict[Buffer, int] = {}  # how many leading indices of all accesses are the shared variables
        self.add(first)

    @property
    def count(self) -> int:
        """The number of loops."""
        return max(0, min(self.most, self.deepest - 1))

    def add(self, nest: Nest) -> int:
        """The number of loops with one more nest."""
        if nest.block is None or set(nest.extents) - set(nest.spatial) - set(nest.reduction):
            self.most = 0
            return 0
        self.deepest = max(self.deepest, len(nest.spatial) + len(nest.reduction))
        self.most = min(self.most, len(nest.spatial) - _goes_down(nest))
        while self.most > 0 and not _alike(self.first, nest, self.most):
            self.most -= 1
        self.written.add(nest.store.buffer)
        touched = {nest.store.buffer}
        for part in walk(nest.stmt):
            if isinstance(part, (BufferLoad, BufferStore)):
                known = self.own_row.get(part.buffer, len(nest.spatial))
                self.own_row[part.buffer] = min(known, _own_indices(part, nest))
                touched.add(part.buffer)
        self.most = min(self.most, *(self.own_row[buffer] for buffer in touched & self.written))
        return self.count


def _own_indices(access: BufferLoad | BufferStore, nest: Nest) -> int:
    """How many leading indices of an access are the leading variables of the nest."""
    pairs = zip(access.indices, nest.spatial, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))


def _count(nests: Sequence[Nest]) -> int:
    """How many leading loops the nests can share; 0 when they cannot."""
    shared = _SharedLoops(nests[0])
    for nest in nests[1:]:
        shared.add(nest)
    return shared.count


def _goes_down(nest: Nest) -> bool:
    """Whether neighbours in memory belong to different results of a reduction, which vectors then compute together:
    no sum goes along memory, or windows do that move along it from one result to the next."""
    loads = list(values_read(nest.store.value))
    along = [any(step_along(load, var) == 1 for load in loads) for var in nest.reduction]
    return bool(nest.reduction) and (not any(along) or _has_windows(nest))


def _has_windows(nest: Nest) -> bool:
    """Whether what a reduction reads along memory moves by a few elements from one result to the next."""
    if not nest.spatial or step_along(nest.store, nest.spatial[-1]) != 1:
        return False
    read = [load for load in loads_in(nest.store.value) if any(step_along(load, var) == 1 for var in nest.reduction)]
    return all(step_along(load, nest.spatial[-1]) in range(1, _MAX_STRIDE + 1) for load in read)


def _alike(a: Nest, b: Nest, count: int) -> bool:
    left = [a.extents[x] for x in a.spatial[:count]]
    return same_extents(left, [b.extents[x] for x in b.spatial[:count]])


def _in_row(nest: Nest, row: Sequence[PrimVar], small: dict[Buffer, Buffer]) -> Stmt:
    """The nest without its leading loops, over buffers of one row."""
    block = nest.block
    assert block is not None
    count = len(row)
    gone = dict(zip(nest.spatial, row, strict=False))
    values = {item.var: item.value for item in block.iter_vars}
    kept = tuple(item for item in block.iter_vars if item.var not in gone)

    def changed(node: Node) -> Node | None:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in small:
            indices = node.indices[count:] or (const(0, INDEX),)
            return replace(node, buffer=small[node.buffer], indices=indices)
        return None

    inner: Block = substitute(rewrite(replace(block, iter_vars=kept, reads=None, writes=None), changed), gone)
    body = inner if kept else inner.body
    loops = [(values[x], nest.extents[x]) for x in nest.extents if x not in gone]
    return nested([(var, extent) for var, extent in loops if isinstance(var, PrimVar)], body)
