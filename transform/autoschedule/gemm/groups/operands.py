"""What tiles of a contraction with weights of few bits read: copies of constants in their order, and sums of A."""

from __future__ import annotations

from collections.abc import Iterator

from weft.dtypes import bits, is_signed
from weft.ir import replace, substitute
from weft.ir.kernel.prim import binary, cast, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.groups.arrangement import FLOAT, Grouped
from weft.transform.autoschedule.gemm.groups.match import Scaled
from weft.transform.autoschedule.gemm.tiles import plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import block_nest, nested

__all__ = ["Operand", "Operands", "at_group", "copies", "operands_of", "sums_of_a"]


@dataclass(frozen=True)
class Operand:
    """What B is made of, and its copy in the order of tiles, with a row for each panel (None: it has none)."""

    source: BufferLoad
    packed: Buffer | None


@dataclass(frozen=True)
class Operands:
    """The weights, scales and zero points (None: a number), and the sums of A where something is taken off them."""

    form: Grouped
    weights: Operand
    scales: Operand
    zeros: Operand | None
    sums: Buffer | None
    a: Scaled

    @property
    def offset(self) -> int:
        """What is added to elements of B, so that they have no sign."""
        return _offset(self.form)

    @property
    def axes(self) -> list[PrimVar]:
        """The variables of A that k is not."""
        return self.form.axes


def operands_of(form: Grouped) -> Operands:
    """The operands of an arrangement."""
    b, along = form.found.b, form.groups * form.width
    assert b.scale is not None
    zeros = _operand(form, b.zero, along, "zeros") if isinstance(b.zero, BufferLoad) else None
    sums = _sums(form) if b.zero is not None or _offset(form) else None
    weights = _operand(form, b.load, form.found.size * form.width, "weights")
    return Operands(form, weights, _operand(form, b.scale, along, "scales"), zeros, sums, form.found.a)


def _offset(form: Grouped) -> int:
    dtype = form.found.b.load.buffer.dtype
    return 1 << (bits(dtype) - 1) if form.dot and is_signed(dtype) else 0


def _operand(form: Grouped, source: BufferLoad, size: int, name: str) -> Operand:
    buffer = Buffer(f"{source.buffer.name}_{name}", (form.panels, size), source.buffer.dtype)
    return Operand(source, buffer if form.is_packed else None)


def _sums(form: Grouped) -> Buffer:
    shape = tuple(form.found.plain.extents[var] for var in form.axes)
    return Buffer("sums_of_a", (*shape, form.groups), FLOAT if form.dot is None else "int32")


# Constants ------------------------------------------------------------------------------------------------------------


def copies(operands: Operands) -> list[Stmt]:
    """The copies of constants in the order of tiles, those of all buffers declared first."""
    scaled = [x for x in (operands.scales, operands.zeros) if x is not None]
    packed = [x.packed for x in (operands.weights, *scaled) if x.packed is not None]
    if not packed:
        return []
    parts = [*_copies_of_weights(operands), *(stmt for x in scaled for stmt in _copies_by_group(operands.form, x))]
    return [*map(AllocBuffer, packed), *parts]


def _copies_of_weights(operands: Operands) -> Iterator[Stmt]:
    """B with its elements in the order of vectors; columns that are not there are zeros."""
    form, found, weights = operands.form, operands.form.found, operands.weights
    buffer = weights.packed
    assert buffer is not None
    yield from _cleared(form, buffer)
    steps = found.size // (form.per * form.terms)
    for panel, vector, lane, loops in _columns(form):
        q, t, h = (PrimVar(name, INDEX) for name in ("q", "t", "h"))
        k = plus(times(plus(times(q, form.per), h), form.terms), t)
        inner: list[tuple[PrimVar, Extent]] = [(q, steps), (t, form.terms), (h, form.per)]
        place = plus(times(plus(times(q, form.vectors), vector), form.lanes), lane)
        place = plus(times(plus(times(place, form.terms), t), form.per), h)
        value = substitute(weights.source, {found.k: k, found.plain.v: _column(form, panel, vector, lane)})
        yield nested([*loops, *inner], BufferStore(buffer, value, (panel, place)))


def _copies_by_group(form: Grouped, operand: Operand) -> Iterator[Stmt]:
    """Scales or zero points, those of a group side by side."""
    found = form.found
    assert operand.packed is not None
    yield from _cleared(form, operand.packed)
    for panel, vector, lane, loops in _columns(form):
        g = PrimVar("g", INDEX)
        place = plus(times(plus(times(g, form.vectors), vector), form.lanes), lane)
        value = at_group(operand.source, found.k, g)
        value = substitute(value, {found.plain.v: _column(form, panel, vector, lane)})
        yield nested([*loops, (g, form.groups)], BufferStore(operand.packed, value, (panel, place)))


def at_group(load: BufferLoad, k: PrimVar, g: PrimExpr) -> BufferLoad:
    """A load of a scale for a group in place of k."""

    def at(index: PrimExpr) -> PrimExpr:
        return g if substitute(index, {k: const(0, INDEX)}) is not index else index

    return replace(load, indices=tuple(at(index) for index in load.indices))


def _columns(form: Grouped) -> Iterator[tuple[PrimExpr, PrimExpr, PrimExpr, list[tuple[PrimVar, Extent]]]]:
    """(panel, vector, lane, loops) for all columns: of whole panels, whole vectors, and the rest."""
    whole, left = divmod(form.columns, form.width)
    vectors, rest = divmod(left, form.lanes)
    last = const(whole, INDEX)
    if whole:
        panel, vector, lane = (PrimVar(name, INDEX) for name in ("panel", "vector", "lane"))
        yield panel, vector, lane, [(panel, whole), (vector, form.vectors), (lane, form.lanes)]
    if vectors:
        vector, lane = PrimVar("vector", INDEX), PrimVar("lane", INDEX)
        yield last, vector, lane, [(vector, vectors), (lane, form.lanes)]
    if rest:
        lane = PrimVar("lane", INDEX)
        yield last, const(vectors, INDEX), lane, [(lane, rest)]


def _column(form: Grouped, panel: PrimExpr, vector: PrimExpr, lane: PrimExpr) -> PrimExpr:
    return plus(times(plus(times(panel, form.vectors), vector), form.lanes), lane)


def _cleared(form: Grouped, buffer: Buffer) -> Iterator[Stmt]:
    """The last row of a packed constant as zeros, where not all of its columns are there."""
    if form.columns % form.width:
        i = PrimVar("i", INDEX)
        store = BufferStore(buffer, const(0, buffer.dtype), (const(form.panels - 1, INDEX), i))
        yield For(i, 0, buffer.shape[1], store)


# Sums of A ------------------------------------------------------------------------------------------------------------


def sums_of_a(operands: Operands) -> list[Stmt]:
    """The sum of each group of A, where a zero point multiplies it."""
    form, sums = operands.form, operands.sums
    if sums is None:
        return []
    found, axes = form.found, operands.axes
    g, t = PrimVar("vg", INDEX), PrimVar("vt", INDEX)
    place = (*axes, g)
    value = substitute(found.a.load, {found.k: plus(times(g, found.group), t)})
    store = BufferStore(sums, binary("add", BufferLoad(sums, place), cast(sums.dtype, value)), place)
    spatial = [*((var, found.plain.extents[var]) for var in axes), (g, form.groups)]
    init = BufferStore(sums, const(0, sums.dtype), place)
    return [AllocBuffer(sums), block_nest("sums_of_a", spatial, [(t, found.group)], store, init)]
