"""Floats of A as digits, which an instruction that multiplies bytes takes: few rows then wait for memory alone.

    x[k] = unit[k // g] * (digit0[k] + 256 * digit1[k] + 65536 * digit2[k])          digits: -128 .. 127
    sum of x[k] * b[k] in a group = unit * (65536 * sum of digit2[k] * b[k] + ...)   sums: exact integers

The unit of a group is the power of two of which the largest element has 2^22 to 2^23, so that each element is off by
half a unit at most: by an ulp of the largest element of its group, as its product with the largest weight is in
float32. Elements of integers and of short floats of few binary orders are exact. A row with an element that is not
finite or next to the largest float32, or with a group of numbers so small that its unit is none of the normal numbers,
is added up in floats, one product after another.

Of 64 bytes of weights of 4 bits the digits take 9 instructions, products of floats 24 (8 to widen, look up or shift, 8
to convert, 8 to add), which is more than memory takes to give them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from weft.dtypes import with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.groups.arrangement import DIGITS, FLOAT, Grouped
from weft.transform.autoschedule.gemm.groups.match import Scaled
from weft.transform.autoschedule.gemm.groups.operands import Operand, Operands
from weft.transform.autoschedule.gemm.groups.tile import Elements, Row, Tile
from weft.transform.autoschedule.gemm.tiles import fresh, plus, times, vector_index
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import block_nest, nested, sequence

__all__ = ["DigitTile", "Digits", "digits_of"]

BITS = "int32"
MANTISSA = 23
EXPONENT = 0x7F800000
"""The bits of the exponent of a float32."""

CARRY = 0x10200
"""Added to bits of a float32 whose mantissa is so large that its digits overflow, this goes into the exponent."""

LARGEST = EXPONENT - CARRY
"""From these bits on an element has no digits: its exponent is the one of no finite number, or would become that."""

SMALLEST = 23
"""The least exponent of a group: that of the unit is then the least one of normal numbers."""

DIGIT = PrimVar("digit", INDEX)


@dataclass(frozen=True)
class Digits:
    """What a row becomes: its digits, one plane for each place, their sums by groups, units, and the largest bits."""

    form: Grouped
    planes: Buffer
    sums: Buffer
    unit: Buffer
    inverse: Buffer
    peaks: Buffer
    largest: Buffer

    @property
    def buffers(self) -> list[Buffer]:
        """All of them."""
        return [self.planes, self.sums, self.unit, self.inverse, self.peaks, self.largest]

    def operands(self, operands: Operands) -> Operands:
        """Operands whose A are these."""
        k, axes = self.form.found.k, self.form.axes
        group = binary("floordiv", k, const(self.form.found.group, INDEX))
        load, scale = BufferLoad(self.planes, (DIGIT, *axes, k)), BufferLoad(self.unit, (*axes, group))
        return dataclasses.replace(operands, a=Scaled(load, None, scale), sums=self.sums)

    def fill(self) -> list[Stmt]:
        """The nests that make them."""
        return [*map(AllocBuffer, self.buffers), *self._peaks(), *self._units(), *self._planes(), self._sums()]

    # The nests

    def _each(self, *inner: tuple[PrimVar, Extent]) -> list[tuple[PrimVar, Extent]]:
        return [*((var, self.form.found.plain.extents[var]) for var in self.form.axes), *inner]

    def _element(self, g: PrimVar, t: PrimVar) -> PrimExpr:
        found = self.form.found
        return cast(FLOAT, substitute(found.a.load, {found.k: plus(times(g, found.group), t)}))

    def _peaks(self) -> Iterator[Stmt]:
        """The largest bits without the sign: they are ordered as the numbers are, those of nan above all."""
        g, t, axes = PrimVar("vg", INDEX), PrimVar("vt", INDEX), tuple(self.form.axes)
        bits_of = binary("bitwise_and", _as(BITS, self._element(g, t)), const(0x7FFFFFFF, BITS))
        spatial = self._each((g, self.form.groups))
        yield _maximum("peaks", spatial, [(t, self.form.found.group)], self.peaks, (*axes, g), bits_of)
        peak = BufferLoad(self.peaks, (*axes, g))
        is_tiny = binary(
            "and",
            binary("gt", peak, const(0, BITS)),
            binary("lt", peak, const(SMALLEST << MANTISSA, BITS)),
        )
        peak = Select(is_tiny, const(LARGEST, BITS), peak)
        yield _maximum("largest", self._each(), [(g, self.form.groups)], self.largest, axes or (const(0, INDEX),), peak)

    def _units(self) -> Iterator[Stmt]:
        """The unit of each group, and one over it."""
        g = PrimVar("vg", INDEX)
        place, spatial = (*self.form.axes, g), self._each((g, self.form.groups))
        bumped = binary("add", binary("min", BufferLoad(self.peaks, place), const(LARGEST, BITS)), const(CARRY, BITS))
        exponent = binary("max", binary("shift_right", bumped, const(MANTISSA, BITS)), const(SMALLEST, BITS))
        unit = binary("sub", exponent, const(MANTISSA - 1, BITS))
        inverse = binary("sub", const(2 * 127 + MANTISSA - 1, BITS), exponent)
        for buffer, power in ((self.unit, unit), (self.inverse, inverse)):
            value = _as(FLOAT, binary("shift_left", power, const(MANTISSA, BITS)))
            yield _nest(buffer.name, spatial, [], BufferStore(buffer, value, place))

    def _planes(self) -> Iterator[Stmt]:
        """The digits: what is left of a whole number of units as a byte with a sign, once and again."""
        g, t, group = PrimVar("vg", INDEX), PrimVar("vt", INDEX), self.form.found.group
        axes, spatial = self.form.axes, self._each((g, self.form.groups), (t, group))
        scaled = binary("mul", self._element(g, t), BufferLoad(self.inverse, (*axes, g)))
        value: PrimExpr = cast(BITS, intrinsic("round", scaled))
        for digit in range(DIGITS):
            place = (const(digit, INDEX), *axes, plus(times(g, group), t))
            yield _nest(f"digit{digit}", spatial, [], BufferStore(self.planes, cast("int8", value), place))
            value = binary("shift_right", binary("add", value, const(128, BITS)), const(8, BITS))

    def _sums(self) -> Stmt:
        digit, g, t = (PrimVar(name, INDEX) for name in ("vdigit", "vg", "vt"))
        place, group = (digit, *self.form.axes, g), self.form.found.group
        value = cast(BITS, BufferLoad(self.planes, (digit, *self.form.axes, plus(times(g, group), t))))
        store = BufferStore(self.sums, binary("add", BufferLoad(self.sums, place), value), place)
        spatial = [(digit, DIGITS), *self._each((g, self.form.groups))]
        return _nest("sums_of_digits", spatial, [(t, group)], store, BufferStore(self.sums, const(0, BITS), place))


def digits_of(form: Grouped) -> Digits:
    """The buffers for the digits of A."""
    shape = tuple(form.found.plain.extents[var] for var in form.axes)
    return Digits(
        form,
        Buffer("digits_of_a", (DIGITS, *shape, form.found.size), "int8"),
        Buffer("sums_of_digits", (DIGITS, *shape, form.groups), BITS),
        Buffer("unit", (*shape, form.groups), FLOAT),
        Buffer("inverse", (*shape, form.groups), FLOAT),
        Buffer("peaks", (*shape, form.groups), BITS),
        Buffer("largest", shape or (1,), BITS),
    )


def _as(dtype: str, value: PrimExpr) -> PrimExpr:
    return PrimCall("reinterpret", (value,), dtype)


def _nest(
    name: str,
    spatial: Sequence[tuple[PrimVar, Extent]],
    reduction: Sequence[tuple[PrimVar, Extent]],
    store: BufferStore,
    init: BufferStore | None = None,
) -> Stmt:
    """Loops around one block, over variables of their own."""
    own = {var: fresh(var) for var, _ in (*spatial, *reduction)}
    outer, inner = ([(own[var], extent) for var, extent in part] for part in (spatial, reduction))
    return block_nest(name, outer, inner, substitute(store, own), None if init is None else substitute(init, own))


def _maximum(
    name: str,
    spatial: list[tuple[PrimVar, Extent]],
    reduction: list[tuple[PrimVar, Extent]],
    buffer: Buffer,
    place: tuple[PrimExpr, ...],
    value: PrimExpr,
) -> Stmt:
    store = BufferStore(buffer, binary("max", BufferLoad(buffer, place), value), place)
    return _nest(name, spatial, reduction, store, BufferStore(buffer, const(0, buffer.dtype), place))


class _DigitElements(Elements):
    """What a tile of digits reads: its rows are the digits of one row."""

    def of_row(self, load: BufferLoad, i: int) -> BufferLoad:
        return super().of_row(substitute(load, {DIGIT: const(i, INDEX)}), i)

    def sum_of_a(self, g: PrimVar, i: int) -> PrimExpr | None:
        if self.all.sums is None:
            return None
        return self.of_row(BufferLoad(self.all.sums, (DIGIT, *self.all.axes, g)), i)


class DigitTile(Tile):
    """The sums of one row in a panel."""

    def __init__(self, digits: Digits, operands: Operands, panel: PrimVar, row: Row) -> None:
        super().__init__(operands, panel, DIGITS, row)
        self.digits, self.elements = digits, _DigitElements(operands, panel, row)
        self.total = Buffer("total", (self.form.width,), FLOAT, "local")

    def build(self) -> Stmt:
        """Clear, groups of digits or of floats, store."""
        g, vectors = PrimVar("g", INDEX), range(self.form.vectors)
        clear = [self._put(self.total, 0, j, const(0.0, with_lanes(FLOAT, self.form.lanes))) for j in vectors]
        largest = self.elements.of_row(BufferLoad(self.digits.largest, tuple(self.form.axes) or (const(0, INDEX),)), 0)
        sums = IfThenElse(
            binary("lt", largest, const(LARGEST, BITS)), For(g, 0, self.form.groups, self._group(g)), self._in_floats()
        )
        own = [self.total, self.line, self.part]
        return sequence([*map(AllocBuffer, own), *clear, sums, *(self._store(0, j) for j in vectors)])

    def _finish(self, g: PrimVar) -> list[Stmt]:
        return [self._put(self.total, 0, j, self._scaled_sum(0, j, g)) for j in range(self.form.vectors)]

    def _sum(self, i: int, j: int) -> PrimExpr:
        """What the digits of a row add up to: the lower two places are exact in 32 bits."""
        low, middle, high = (self._get(self.part, digit, j) for digit in range(DIGITS))
        kind = with_lanes(FLOAT, self.form.lanes)
        lower = binary("add", binary("shift_left", middle, const(8, middle.dtype)), low)
        return binary("add", binary("mul", cast(kind, high), const(65536.0, kind)), cast(kind, lower))

    def _in_floats(self) -> Stmt:
        """The sums of a row that has no digits, from the same weights, one product after another."""
        form, found = self.form, self.found
        names = ("g", "q", "t", "h", "vector", "lane")
        steps = found.group // (form.per * form.terms)
        extents = (form.groups, steps, form.terms, form.per, form.vectors, form.lanes)
        g, q, t, h, vector, lane = loops = [PrimVar(name, INDEX) for name in names]
        exact = Buffer("exact", (form.width,), FLOAT, "local")
        column = plus(times(vector, form.lanes), lane)
        at = PrimVar("at", INDEX)
        clear = For(at, 0, form.width, BufferStore(exact, const(0.0, FLOAT), (at,)))

        def loaded(operand: Operand, place: PrimExpr) -> BufferLoad:
            assert operand.packed is not None
            return BufferLoad(operand.packed, (self.panel, place))

        of_group = plus(times(g, form.width), column)
        place = plus(times(plus(times(g, steps), q), form.width), column)
        place = plus(times(plus(times(place, form.terms), t), form.per), h)
        k = plus(times(g, found.group), plus(times(plus(times(q, form.per), h), form.terms), t))
        number: PrimExpr = cast(BITS, loaded(self.elements.all.weights, place))
        zero = found.b.zero
        if isinstance(zero, IntImm):
            number = binary("sub", number, const(zero.value, BITS))
        elif self.elements.all.zeros is not None:
            number = binary("sub", number, cast(BITS, loaded(self.elements.all.zeros, of_group)))
        weight = binary("mul", cast(FLOAT, number), cast(FLOAT, loaded(self.elements.all.scales, of_group)))
        element = cast(FLOAT, substitute(self.elements.of_row(found.a.load, 0), {found.k: k}))
        added = binary("add", BufferLoad(exact, (column,)), binary("mul", element, weight))
        nest = nested(list(zip(loops, extents, strict=True)), BufferStore(exact, added, (column,)))
        taken = [
            self._put(self.total, 0, j, BufferLoad(exact, (vector_index(const(j * form.lanes, INDEX), form.lanes),)))
            for j in range(form.vectors)
        ]
        return sequence([AllocBuffer(exact), clear, nest, *taken])
