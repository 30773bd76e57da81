"""The values of a block's variables of which some digits are in given ranges: v // 16 in one, v % 16 in another.

    Stride ::= lower * (low + [0, count))    values are the sums of one of each stride

Source: the mixed radix digits of `weft.transform.analysis.loops.affine`.
"""

from __future__ import annotations

from dataclasses import field

from weft.ir.dim import Dim, as_dim, floordiv, floormod
from weft.ir.tensor import Block, PrimExpr, PrimVar
from weft.support.records import dataclass
from weft.transform.analysis.loops.affine import Reader
from weft.transform.analysis.loops.points import Point, variables_in
from weft.transform.analysis.loops.touched_ranges import Span

__all__ = ["Digits", "Stride"]


@dataclass(frozen=True)
class Stride:
    """Values that are `lower` apart: so many of them, from `lower * low` on."""

    lower: int
    low: Dim
    count: Dim


@dataclass(frozen=True)
class _Digit:
    """(v // lower) % extent, and the range in which it is."""

    lower: int
    extent: int
    span: Span


@dataclass(frozen=True)
class Digits:
    """The digits of the spatial variables of a block that are known to be in some ranges."""

    block: Block
    point: Point
    found: dict[PrimVar, list[_Digit]] = field(default_factory=dict)

    def add(self, index: PrimExpr, span: Span) -> bool:
        """Note that an index is in a range; whether it is a digit of one variable of the block, and nothing else."""
        own = {item.var: item for item in self.block.iter_vars if item.kind == "spatial"}
        used = variables_in(index)
        if len(used) != 1 or not used <= set(own):
            return False
        (variable,) = used
        inner = self.point.copy()
        inner.enter_block(self.block)
        extent, dim = inner.dim(own[variable].extent), inner.dim(index)
        if extent is None or dim is None or own[variable].start != 0:
            return False
        value = Reader(inner, {inner.name(variable): extent}, {}, [dim]).read(dim)
        if value is None or len(value.terms) != 1 or value.base != 0:
            return False
        (term,) = value.terms
        plain = isinstance(term.lower, int) and isinstance(term.extent, int) and term.scale == 1
        if not plain or term.source.parts is not None:
            return False
        digit = _Digit(term.lower, term.extent, span)  # type: ignore[arg-type]
        is_top = self.point.at_most(extent, digit.lower * digit.extent)
        if not is_top and not (self.point.at_most(0, span[0]) and self.point.below(span[1], digit.extent)):
            return False  # a digit has no such values
        known = self.found.setdefault(variable, [])
        if not any(self._is_same(digit, other) for other in known):
            known.append(digit)
        return True

    def _is_same(self, a: _Digit, b: _Digit) -> bool:
        ends = zip(a.span, b.span, strict=True)
        return (a.lower, a.extent) == (b.lower, b.extent) and all(self.point.same(x, y) for x, y in ends)

    def window(self, index: PrimExpr, span: Span) -> tuple[PrimVar, Span] | None:
        """The range of a variable v for which all of v * s + r is in a range, r running over steps of a reduction.

        None unless windows lie side by side (r below s) and the range holds whole ones, so that each v is in one.
        """
        inner = self.point.copy()
        inner.enter_block(self.block)
        kinds = {item.var: item for item in self.block.iter_vars if item.start == 0}
        used = variables_in(index) & {item.var for item in self.block.iter_vars}
        sizes = {var: inner.dim(item.extent) for var, item in kinds.items() if var in used}
        dim = inner.dim(index)
        spatial = [var for var in used if var in kinds and kinds[var].kind == "spatial"]
        if dim is None or None in sizes.values() or len(sizes) != len(used) or len(spatial) != 1:
            return None
        extents = {inner.name(var): size for var, size in sizes.items() if size is not None}
        value = Reader(inner, extents, {}, [dim]).read(dim)
        if value is None or value.base != 0:
            return None
        own = [term for term in value.terms if term.source.dim == inner.dim(spatial[0])]
        others = [term for term in value.terms if term not in own]
        whole = all(term.lower == 1 and inner.same(term.extent, term.source.extent) for term in value.terms)
        if (
            len(own) != 1
            or not whole
            or not all(isinstance(term.scale, int) and term.scale > 0 for term in value.terms)
        ):
            return None
        step = own[0].scale
        reach = sum((term.scale * (as_dim(term.extent) - 1) for term in others), as_dim(0))
        low, end = as_dim(span[0]), as_dim(span[1]) + 1
        aligned = all(self.point.same(floormod(side, step), 0) for side in (low, end))
        if not aligned or not inner.below(reach, step):
            return None
        return spatial[0], (floordiv(low, step), floordiv(end, step) - 1)

    def strides(self) -> dict[PrimVar, list[Stride] | None]:
        """The values of each variable whose digits are known, None where these overlap; digits not known are any."""
        items = {item.var: item for item in self.block.iter_vars}
        return {var: self._strides(digits, self.point.dim(items[var].extent)) for var, digits in self.found.items()}

    def _strides(self, digits: list[_Digit], extent: Dim | None) -> list[Stride] | None:
        filled = _filled(sorted(digits, key=lambda digit: digit.lower), extent)
        if filled is None:
            return None
        found: list[Stride] = []
        for digit in filled:
            low, count = digit.span[0], as_dim(digit.span[1]) - digit.span[0] + 1
            below = found[-1] if found else None
            ratio = digit.lower // below.lower if below is not None else 1
            if below is not None and self._is_full(below, digit.lower):
                found[-1] = Stride(below.lower, as_dim(low) * ratio, as_dim(count) * ratio)
            elif below is not None and self.point.same(count, 1):
                found[-1] = Stride(below.lower, as_dim(low) * ratio + below.low, below.count)
            else:
                found.append(Stride(digit.lower, low, count))
        return found[::-1]

    def _is_full(self, stride: Stride, upper: int) -> bool:
        return self.point.same(stride.low, 0) and self.point.same(stride.count, upper // stride.lower)


def _filled(digits: list[_Digit], extent: Dim | None) -> list[_Digit] | None:
    """The digits with those that are missing between them, from the lowest on; None where some overlap."""
    found: list[_Digit] = []
    lower = 1
    for digit in digits:
        if digit.lower < lower or digit.lower % lower:
            return None
        if digit.lower > lower:
            size = digit.lower // lower
            found.append(_Digit(lower, size, (0, size - 1)))
        found.append(digit)
        lower = digit.lower * digit.extent
    if isinstance(extent, int) and lower < extent:
        size = -(-extent // lower)
        found.append(_Digit(lower, size, (0, size - 1)))
    return found if isinstance(extent, int) else None
