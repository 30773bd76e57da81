"""The tile of a contraction with weights of few bits: a few rows of a panel of columns, groups along k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.dtypes import is_float, with_lanes
from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, cast, const
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Shuffle,
    Stmt,
)
from weft.transform.autoschedule.gemm.groups.arrangement import FLOAT, Grouped
from weft.transform.autoschedule.gemm.groups.operands import Operand, Operands, at_group
from weft.transform.autoschedule.gemm.tiles import (
    Panel,
    epilogue_of,
    plus,
    prefetch,
    times,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["Elements", "Row", "Tile", "stored"]

Row = Callable[[int], PrimExpr | None]
"""Where the i-th row of a tile is (None: there are no rows)."""


class Elements:
    """What a tile reads: vectors of B, of scales and of zero points in a panel, elements of A in a row."""

    def __init__(self, operands: Operands, panel: PrimExpr, row: Row) -> None:
        self.all, self.form, self.found = operands, operands.form, operands.form.found
        self.panel, self.row = panel, row

    def weights(self, g: PrimExpr, q: PrimExpr, h: int, j: int) -> BufferLoad:
        """The vector of B at a step of a group."""
        form, count = self.form, self.form.lanes * self.form.terms
        if self.all.weights.packed is None:
            k = plus(times(g, self.found.group), q)
            return self._in_place(substitute(self.all.weights.source, {self.found.k: k}), const(j, INDEX))
        steps = self.found.group // (form.per * form.terms)
        place = plus(times(plus(times(g, steps), q), form.vectors), const(j, INDEX))
        index = vector_index(plus(times(place, count * form.per), const(h, INDEX)), count)
        if form.per > 1:
            index = replace(index, stride=const(form.per, INDEX))
        return BufferLoad(self.all.weights.packed, (self.panel, index))

    def scale(self, g: PrimExpr, j: int | PrimExpr) -> PrimExpr:
        """The scales of a vector."""
        return cast(with_lanes(FLOAT, self.form.lanes), self._of_group(self.all.scales, g, j))

    def zero(self, g: PrimExpr, j: int, dtype: str) -> PrimExpr:
        """The zero points of a vector, with what B is offset by."""
        lanes, zero, offset = self.form.lanes, self.found.b.zero, self.all.offset
        kind = with_lanes(dtype, lanes)
        if self.all.zeros is None:
            value = (zero.value if isinstance(zero, IntImm) else 0) + offset
            return const(float(value) if is_float(dtype) else value, kind)
        loaded = cast(with_lanes("int32", lanes), self._of_group(self.all.zeros, g, j))
        if offset:
            loaded = binary("add", loaded, const(offset, loaded.dtype))
        return cast(kind, loaded)

    def of_a(self, g: PrimVar, q: PrimVar, h: int, i: int) -> PrimExpr:
        """The element of A in a row, or those that a lane has."""
        step = plus(times(q, self.form.per), const(h, INDEX))
        k = plus(times(g, self.found.group), times(step, self.form.terms))
        return vector_at(self.of_row(self.all.a.load, i), self.found.k, k, self.form.terms)

    def scale_of_a(self, g: PrimVar, i: int) -> PrimExpr | None:
        """The scale of A in a row; None where A holds floats."""
        own = self.all.a.scale
        return None if own is None else cast(FLOAT, self.of_row(at_group(own, self.found.k, g), i))

    def sum_of_a(self, g: PrimVar, i: int) -> PrimExpr | None:
        """The sum of a group of A, where a zero point multiplies it."""
        return None if self.all.sums is None else self.of_row(BufferLoad(self.all.sums, (*self.all.axes, g)), i)

    def of_row(self, load: BufferLoad, i: int) -> BufferLoad:
        """What is loaded, in a row of the tile."""
        row, r = self.row(i), self.found.plain.r
        return load if row is None or r is None else substitute(load, {r: row})

    def _of_group(self, operand: Operand, g: PrimExpr, j: int | PrimExpr) -> BufferLoad:
        vector = as_expr(j, INDEX)
        if operand.packed is None:
            return self._in_place(at_group(operand.source, self.found.k, g), vector)
        place = times(plus(times(g, self.form.vectors), vector), self.form.lanes)
        return BufferLoad(operand.packed, (self.panel, vector_index(place, self.form.lanes)))

    def _in_place(self, load: BufferLoad, j: PrimExpr) -> BufferLoad:
        """Vector j of the panel, of what is not packed."""
        form = self.form
        first = plus(times(self.panel, form.width), times(j, form.lanes))
        vector = vector_at(load, self.found.plain.v, first, form.lanes)
        if not form.columns % form.width:
            return vector
        columns = Ramp(first, const(1, INDEX), form.lanes)
        return replace(vector, predicate=binary("lt", columns, Broadcast(const(form.columns, INDEX), form.lanes)))


class Tile:
    """The sums of `rows` rows in a panel."""

    def __init__(self, operands: Operands, panel: PrimVar, rows: int, row: Row) -> None:
        self.form, self.found, self.plain = operands.form, operands.form.found, operands.form.found.plain
        self.panel, self.rows, self.row = panel, rows, row
        self.elements, self.offset = Elements(operands, panel, row), operands.offset
        self.has_shift = operands.sums is not None
        size, dot = rows * self.form.width, self.form.dot is not None
        self.total = Buffer("total", (size,), FLOAT, "local")
        self.chains = self.form.per if rows <= 2 else 1  # sums that do not wait for each other
        self.part = Buffer("part", (size * self.chains,), "int32" if dot else FLOAT, "local")
        self.line = Buffer("line", (self.form.width * self.form.terms,), "uint8" if dot else FLOAT, "local")
        self.scales_elements = not dot and rows > 2

    def build(self) -> Stmt:
        """Clear, groups, store."""
        g = PrimVar("g", INDEX)
        clear = self._each(lambda i, j: self._put(self.total, i, j, const(0.0, with_lanes(FLOAT, self.form.lanes))))
        group = self._scaled_group(g) if self.scales_elements else self._group(g)
        own = [self.total, self.line] if self.scales_elements else [self.total, self.line, self.part]
        write = self._each(self._store)
        return sequence([*map(AllocBuffer, own), *clear, For(g, 0, self.form.groups, group), *write])

    # Groups whose sums are scaled

    def _group(self, g: PrimVar) -> Stmt:
        """The sums of a group, then those of all."""
        q, per = PrimVar("q", INDEX), self.form.per
        steps = self.found.group // (per * self.form.terms)
        start = [
            stmt
            for chain in range(self.chains)
            for stmt in self._each(lambda i, j, c=chain: self._put(self.part, i, j, self._start(i, j, g, c), c))
        ]
        step = self._prefetches(g, q)
        for h in range(per):
            step += [self._load(g, q, h, j) for j in range(self.form.vectors)]
            chain = h % self.chains
            step += self._each(lambda i, j, h=h, chain=chain: self._add(g, q, h, i, j, chain))  # type: ignore[misc]
        return sequence([*start, For(q, 0, steps, sequence(step)), *self._finish(g)])

    def _finish(self, g: PrimVar) -> list[Stmt]:
        """The sums of a group, scaled, added to those of all."""
        return self._each(lambda i, j: self._put(self.total, i, j, self._scaled_sum(i, j, g)))

    def _prefetches(self, g: PrimVar, q: PrimVar) -> list[Stmt]:
        """The lines of B that a later step reads, prefetched: few rows wait for them alone."""
        if not self.form.prefetched or (self.rows > 2 and not self.form.has_digits):
            return []
        later = plus(q, const(self.form.prefetched, INDEX))
        first_of_lines = range(0, self.form.vectors, self.form.vectors_per_line)
        return [prefetch(self.elements.weights(g, later, 0, j)) for j in first_of_lines]

    def _start(self, i: int, j: int, g: PrimVar, chain: int) -> PrimExpr:
        """What the sum of a group starts at: what the zero point takes off."""
        lanes, dtype = self.form.lanes, self.part.dtype
        nothing = const(0, with_lanes(dtype, lanes))
        total = self.elements.sum_of_a(g, i)
        if total is None or chain:
            return nothing
        return binary("sub", nothing, binary("mul", self.elements.zero(g, j, dtype), Broadcast(total, lanes)))

    def _load(self, g: PrimVar, q: PrimVar, h: int, j: int) -> Stmt:
        """Vector j of B, converted, in its place."""
        count = self.form.lanes * self.form.terms
        value: PrimExpr = cast(with_lanes(self.line.dtype, count), self.elements.weights(g, q, h, j))
        if self.offset:
            value = binary("add", value, const(self.offset, value.dtype))
        return BufferStore(self.line, value, (vector_index(const(j * count, INDEX), count),))

    def _add(self, g: PrimVar, q: PrimVar, h: int, i: int, j: int, chain: int) -> Stmt:
        """A step of the sum of a group."""
        lanes, count = self.form.lanes, self.form.lanes * self.form.terms
        b = BufferLoad(self.line, (vector_index(const(j * count, INDEX), count),))
        total, a = self._get(self.part, i, j, chain), self.elements.of_a(g, q, h, i)
        if self.form.dot is None:
            value: PrimExpr = binary("add", total, binary("mul", Broadcast(cast(FLOAT, a), lanes), b))
        else:
            order = tuple(const(x, "int32") for x in range(self.form.terms))
            value = PrimCall("dot_product", (total, b, Shuffle((a,), order * lanes)), total.dtype)
        return self._put(self.part, i, j, value, chain)

    def _scaled_sum(self, i: int, j: int, g: PrimVar) -> PrimExpr:
        """A vector of sums with that of a group added."""
        lanes, part = self.form.lanes, self._sum(i, j)
        scale, own = self.elements.scale(g, j), self.elements.scale_of_a(g, i)
        if own is not None:
            scale = binary("mul", scale, Broadcast(own, lanes))
        scaled = binary("mul", cast(with_lanes(FLOAT, lanes), part), scale)
        return binary("add", self._get(self.total, i, j), scaled)

    def _sum(self, i: int, j: int) -> PrimExpr:
        """A vector of sums of a group, of all chains."""
        part: PrimExpr = self._get(self.part, i, j)
        for chain in range(1, self.chains):
            part = binary("add", part, self._get(self.part, i, j, chain))
        return part

    # Groups whose elements are scaled, for rows that share them

    def _scaled_group(self, g: PrimVar) -> Stmt:
        """The scales and zero points of a group, then its steps."""
        q, per = PrimVar("q", INDEX), self.form.per
        begin, scales, shifts = self._scales_of_group(g)
        step: list[Stmt] = []
        for h in range(per):
            for j in range(self.form.vectors):
                step.append(self._put(self.line, 0, j, self._scaled_element(g, q, h, j, scales, shifts)))
            step += self._each(lambda i, j, h=h: self._add_scaled(g, q, h, i, j))  # type: ignore[misc]
        return sequence([*begin, For(q, 0, self.found.group // per, sequence(step))])

    def _scales_of_group(self, g: PrimVar) -> tuple[list[Stmt], Buffer, Buffer | None]:
        """The scales of a group and what its zero points take off, with the statements that load them."""
        count = self.form.width
        scales = Buffer("scale", (count,), FLOAT, "local")
        shifts = Buffer("shift", (count,), FLOAT, "local") if self.has_shift else None
        begin: list[Stmt] = [AllocBuffer(scales), *([] if shifts is None else [AllocBuffer(shifts)])]
        for j in range(self.form.vectors):
            scale = self.elements.scale(g, j)
            begin.append(self._put(scales, 0, j, scale))
            if shifts is not None:
                begin.append(self._put(shifts, 0, j, binary("mul", self.elements.zero(g, j, FLOAT), scale)))
        return begin, scales, shifts

    def _scaled_element(
        self, g: PrimVar, q: PrimVar, h: int, j: int, scales: Buffer, shifts: Buffer | None
    ) -> PrimExpr:
        """Vector j of B as what it stands for."""
        kind = with_lanes(FLOAT, self.form.lanes)
        value = binary("mul", cast(kind, self.elements.weights(g, q, h, j)), self._get(scales, 0, j))
        return value if shifts is None else binary("sub", value, self._get(shifts, 0, j))

    def _add_scaled(self, g: PrimVar, q: PrimVar, h: int, i: int, j: int) -> Stmt:
        """A step of the sums of a row."""
        own, scale = cast(FLOAT, self.elements.of_a(g, q, h, i)), self.elements.scale_of_a(g, i)
        own = own if scale is None else binary("mul", own, scale)
        product = binary("mul", Broadcast(own, self.form.lanes), self._get(self.line, 0, j))
        return self._put(self.total, i, j, binary("add", self._get(self.total, i, j), product))

    # Places

    def _each(self, action: Callable[[int, int], Stmt]) -> list[Stmt]:
        return [action(i, j) for i in range(self.rows) for j in range(self.form.vectors)]

    def _place(self, i: int, j: int, chain: int) -> PrimExpr:
        at = (chain * self.rows + i) * self.form.vectors + j
        return vector_index(const(at * self.form.lanes, INDEX), self.form.lanes)

    def _get(self, buffer: Buffer, i: int, j: int, chain: int = 0) -> BufferLoad:
        return BufferLoad(buffer, (self._place(i, j, chain),))

    def _put(self, buffer: Buffer, i: int, j: int, value: PrimExpr, chain: int = 0) -> Stmt:
        return BufferStore(buffer, value, (self._place(i, j, chain),))

    def _store(self, i: int, j: int) -> Stmt:
        """A vector of finished sums, or of what becomes of them, where there are columns."""
        form = self.form
        at = const((i * form.vectors + j) * form.lanes, INDEX)
        start = times(self.panel, form.width)
        return stored(
            form,
            start,
            lambda _: self.row(i),
            const(i, INDEX),
            const(j, INDEX),
            lambda lane: BufferLoad(self.total, (plus(at, lane),)),
        )


def stored(
    form: Grouped,
    start: PrimExpr,
    row: Callable[[PrimExpr], PrimExpr | None],
    i: PrimExpr,
    j: PrimExpr,
    total: Callable[[PrimExpr], BufferLoad],
) -> Stmt:
    """Vector j of finished sums of a panel that starts at a column, in row i of a tile, stored where there are columns.

    `row` is where the result has a row of the tile, `total` the sum in a lane.
    """
    plain, lane = form.found.plain, PrimVar("lane", INDEX)
    column = plus(times(j, form.lanes), lane)
    epilogue = epilogue_of(plain, Panel(start, form.vectors, form.lanes), row)  # type: ignore[arg-type]
    if epilogue is None:
        places: dict[Any, Any] = {plain.v: plus(start, column)}
        at = row(i)
        if plain.r is not None and at is not None:
            places[plain.r] = at
        indices = tuple(substitute(x, places) for x in plain.store.indices)
        stmt: Stmt = BufferStore(plain.store.buffer, total(lane), indices)
    else:
        stmt = epilogue(i, column, [total(lane)])
    if form.columns % form.width:
        stmt = IfThenElse(binary("lt", plus(start, column), as_expr(form.columns, INDEX)), stmt, None)
    return For(lane, 0, form.lanes, stmt, "vectorized")
