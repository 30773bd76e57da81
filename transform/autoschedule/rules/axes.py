"""Axes that nests share, and nests on a part of them.

    for b, s, t: c[b, s, t] = f(a[b, s, t])        b is a loop outside; s: 64 of them from x on:
    for b, s, t: m[b, s] = max(m[b, s], c[b, s, t])
                                                   for s, t: c'[s, t] = f(a[b, x + s, t])
                                                   for s, t: m'[s] = max(m'[s], c'[s, t])

An axis is shared when every nest has one variable for it and uses it alone, in one place of each buffer that the nests
hand on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ir import FrozenMap, Node, replace, rewrite, substitute, walk
from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Extent, For, PrimExpr, PrimVar, Stmt
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, same_extents
from weft.transform.autoschedule.gemm.tiling import Capacity, tile_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.loops import CHAIN, INDEX, nested, plus, times
from weft.transform.autoschedule.rules.row_fusion import member_of
from weft.transform.autoschedule.rules.strides import loads_in
from weft.transform.fusion.fuse_tir import copied

__all__ = [
    "Axis",
    "Chains",
    "Cut",
    "accesses",
    "in_part",
    "in_place",
    "over_rows",
    "shared_axes",
    "small_buffer",
]


_TILE_ROWS = 8
"""Enough sums on their way with two vectors of each, and what lengths are often a multiple of."""


@dataclass(frozen=True)
class Chains:
    """What chains go by."""

    machine: MachineModel
    knobs: Knobs

    def tile(self, dtype: str) -> tuple[int, int]:
        """The rows and columns of the tiles that products of an unknown number of rows go in."""
        rows, columns = tile_of(Capacity(self.machine, self.knobs, dtype))
        return min(rows, _TILE_ROWS), columns

    @property
    def rows(self) -> int:
        """The maximum of rows of a block."""
        return self.knobs.row_block

    @property
    def keys(self) -> int:
        """The maximum of keys of a block."""
        return self.knobs.key_block


@dataclass(frozen=True)
class Axis:
    """The variable of each nest (in order), and the place in each buffer."""

    variables: tuple[PrimVar, ...]
    places: dict[Buffer, int]
    extent: Extent


def accesses(nest: Nest) -> list[BufferLoad | BufferStore]:
    """All loads and stores of a nest."""
    return [part for part in walk(nest.stmt) if isinstance(part, (BufferLoad, BufferStore))]


def shared_axes(nests: Sequence[Nest], used: set[Buffer]) -> list[Axis]:
    """The axes that all nests share, named by the variables of the last one; `used` is what they hand on."""
    found = (_axis(var, nests, used) for var in nests[-1].spatial)
    return [axis for axis in found if axis is not None]


def _axis(var: PrimVar, nests: Sequence[Nest], used: set[Buffer]) -> Axis | None:
    variables: dict[int, PrimVar] = {len(nests) - 1: var}
    places: dict[Buffer, int] = {}
    changed = True
    while changed:  # from variables to places in buffers and back
        changed = False
        for number, nest in enumerate(nests):
            for access in accesses(nest):
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
        for access in accesses(nest):
            if access.buffer in used and access.indices[places[access.buffer]] is not variables[number]:
                return None
    extent = nests[-1].extents[var]
    alike = all(same_extents((extent,), (nest.extents[variables[n]],)) for n, nest in enumerate(nests))
    return Axis(tuple(variables[n] for n in range(len(nests))), places, extent) if alike else None


@dataclass(frozen=True)
class Cut:
    """Of an axis, `count` places from `start` on.

    `var` is its variable in a nest, `places` say where buffers that nests share have it.
    """

    var: PrimVar
    places: Mapping[Buffer, int]
    start: PrimExpr
    count: Extent


def in_part(
    nest: Nest,
    gone: Mapping[PrimVar, PrimExpr],
    cuts: Sequence[Cut],
    small: Mapping[Buffer, Buffer],
    left_out: Sequence[Axis],
) -> Stmt:
    """The nest on a part of some axes, over buffers that have only that part.

    `gone` are the variables that loops outside stand for; `small` gives for a buffer that the nests share the one of
    the part, which lacks the axes `left_out`. Where the nest stores to another buffer, loops around it go over the
    part, so that what is left of it stores at its own variables and is a nest again.
    """
    block = nest.block
    assert block is not None
    outside = nest.store.buffer not in small and not nest.reduction
    loops = {cut.var: PrimVar(cut.var.name.removeprefix("v"), INDEX) for cut in cuts if outside}
    if loops and len(nest.spatial) == len(gone) + len(loops):
        loops.popitem()
    missing = {buffer: {axis.places[buffer] for axis in left_out} for buffer in small}

    def changed(node: Node) -> Node | None:
        if not isinstance(node, (BufferLoad, BufferStore)) or node.buffer not in small:
            return None
        indices = dict(enumerate(node.indices))
        for cut in cuts:
            if node.buffer in cut.places:
                indices[cut.places[node.buffer]] = loops.get(cut.var, cut.var)
        kept = tuple(index for k, index in indices.items() if k not in missing[node.buffer])
        return replace(node, buffer=small[node.buffer], indices=kept)

    moved = {cut.var: plus(cut.start, loops.get(cut.var, cut.var)) for cut in cuts}

    def inside(stmt: Stmt) -> Stmt:
        return rewrite(substitute(stmt, {**gone, **moved}), changed)

    counts = {cut.var: cut.count for cut in cuts}
    left = [var for var in nest.extents if var not in gone and var not in loops]
    kept = {var: counts.get(var, nest.extents[var]) for var in left}
    items = tuple(replace(item, extent=kept[item.var]) for item in block.iter_vars if item.var in kept)
    init = None if block.init is None else inside(block.init)
    new = replace(block, iter_vars=items, body=inside(block.body), init=init, reads=None, writes=None)
    values = {item.var: item.value for item in items}
    inner = [(value, kept[var]) for var in kept if isinstance(value := values[var], PrimVar)]
    stmt = nested(inner, new)
    for var, loop in reversed(loops.items()):
        stmt = For(loop, 0, counts[var], stmt, annotations=FrozenMap({CHAIN: True}))
    return stmt


def small_buffer(buffer: Buffer, left_out: Sequence[Axis], sizes: Sequence[tuple[int, Extent]]) -> Buffer:
    """What a part needs of a buffer: `sizes` are the places of axes with what the part has of them."""
    gone = {axis.places[buffer] for axis in left_out}
    shape = {**dict(enumerate(buffer.shape)), **dict(sizes)}
    return Buffer(buffer.name, tuple(extent for k, extent in shape.items() if k not in gone), buffer.dtype)


def in_place(body: list[Stmt], buffers: Sequence[Buffer]) -> list[Stmt]:
    """The statements with elements in place of those that they are made of, where nothing else needs these."""
    for old in buffers:
        new = _successor(old, body)
        while new is not None and new in buffers:
            body = [substitute(stmt, {new: old}) for stmt in body]
            new = _successor(old, body)
    return body


def _successor(old: Buffer, body: Sequence[Stmt]) -> Buffer | None:
    """The buffer whose elements the last statement that uses another one makes of those, each of its own."""
    users = [at for at, stmt in enumerate(body) if any(part is old for part in walk(stmt))]
    member = member_of(body[users[-1]]) if users else None
    if member is None or member.condition is not None or member.nest.reduction or len(users) < 2:
        return None
    nest = member.nest
    new = nest.store.buffer
    earlier = any(part is new for stmt in body[: users[-1]] for part in walk(stmt))
    loads = [load for load in loads_in(nest.store.value) if load.buffer is old]
    alike = old.dtype == new.dtype and same_extents(old.shape, new.shape)
    same = alike and all(x is y for load in loads for x, y in zip(load.indices, nest.store.indices, strict=True))
    return new if new is not old and same and not earlier else None


def over_rows(axis: Axis, rows: int, body: Callable[[PrimExpr, Extent, int], Stmt]) -> list[Stmt]:
    """Loops over blocks of at most `rows` places of an axis: `body(start, count, size)`; the remainder separately.

    The size is what each block has at most; a known extent is cut evenly where that is possible.
    """
    name = f"{axis.variables[-1].name.removeprefix('v')}_rows"

    def blocks(first: int, number: Extent, size: int, count: Callable[[PrimExpr], Extent]) -> Stmt:
        index = PrimVar(name, INDEX)
        start = plus(first, times(index, size))
        return For(index, 0, number, body(start, count(start), size), annotations=FrozenMap({CHAIN: True}))

    extent = axis.extent
    if not isinstance(extent, int):
        number = binary("floordiv", plus(extent, rows - 1), const(rows, INDEX))
        limit = const(rows, INDEX)
        return [blocks(0, number, rows, lambda start: binary("min", binary("sub", extent, start), limit))]
    limit = min(rows, extent)
    size = next((x for x in range(limit, limit // 2, -1) if extent % x == 0), limit)
    whole, rest = divmod(extent, size)
    parts = [blocks(0, whole, size, lambda start: size)]
    if rest:
        parts.append(copied(blocks(whole * size, 1, rest, lambda start: rest), {}, lambda name: name))
    return parts
