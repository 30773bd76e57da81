"""Bindings of block variables as mixed-radix numbers of loops: whether loops and block instances are one to one.

    value ::= base + sum of terms          term ::= ((source // lower) % extent) * scale
    source ::= a loop, or a whole value that is divided (the variable of fused loops)

`Bindings` reads the bindings of a block; `injective` says that no two iterations are the same instance, `covers` that
every instance of the block's domain is one of the iterations. Sizes may be symbolic: radices are compared by proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, as_dim, ceildiv, floordiv, floormod, operation, product
from weft.ir.kernel.prim import binary
from weft.ir.tensor import Block, For, PrimExpr, PrimVar
from weft.support.records import dataclass
from weft.transform.analysis.loops.points import Point, conjuncts, strict_limit

__all__ = ["Bindings", "Term", "Value", "merged"]


@dataclass(frozen=True)
class Source:
    """What terms take digits of: a loop's variable, or a value; `dim` is it as a dimension."""

    dim: Dim
    extent: Dim
    parts: Value | None = None  # of a value that is divided


@dataclass(frozen=True)
class Term:
    """((source // lower) % extent) * scale."""

    source: Source
    lower: Dim
    extent: Dim
    scale: Dim


@dataclass(frozen=True)
class Value:
    """base + the sum of the terms."""

    terms: tuple[Term, ...]
    base: Dim = 0


class Reader:
    """Reads dimensions over loops as values; None for what has no such form."""

    def __init__(
        self, point: Point, extents: Mapping[str, Dim], limits: Mapping[Dim, Dim], seen: Iterable[Dim] = ()
    ) -> None:
        self.point = point
        self.extents = extents  # of the loops, by symbol
        self.limits = limits  # value -> it is less than this
        self.open: list[Dim] = []
        seen = list(seen)
        self.divided = list(dict.fromkeys([*limits, *(part for dim in seen for part in _numerators(dim))]))
        radices = [by for dim in seen for by in _moduli(dim)]
        self.moduli = list(dict.fromkeys(radices))
        self.quotients = list(dict.fromkeys(_products(radices)))

    def read(self, dim: Dim) -> Value | None:
        """A dimension as a value."""
        kind, operands = operation(dim)
        if kind == "constant":
            return Value((), dim)
        if kind == "symbol":
            extent = self.extents.get(operands[0])
            return Value((), dim) if extent is None else Value((Term(Source(dim, extent), 1, extent, 1),))
        if kind == "add":
            parts = [self.read(part) for part in operands]
            if any(part is None for part in parts):
                return None
            terms = tuple(term for part in parts if part is not None for term in part.terms)
            return merged(Value(terms, sum((part.base for part in parts if part is not None), 0)), self.point)
        if kind == "mul":
            return self._product(operands)
        if kind in ("floordiv", "mod"):
            if not self._is_fixed(operands[1]):
                return None
            return self._read_quotient(*operands) if kind == "floordiv" else self._read_remainder(*operands)
        return Value((), dim) if self._is_fixed(dim) else None

    def read_bound(self, dim: Dim) -> Value | None:
        """As `read`, of what a variable is bound to: the upper digits of a limited value are digits of that value.

        Dimensions divide term by term, so that (32 * a + b) // 16 is 2 * a + b // 16 beside (32 * a + b) % 16.
        """
        for whole in self.limits:
            for by in self.moduli:
                value = self.read(whole) if self.point.same(dim, floordiv(whole, by)) else None
                source = None if value is None or len(value.terms) < 2 else self._as_source(value)
                if source is not None:
                    return Value((Term(source, by, ceildiv(source.extent, by), 1),))
        return self.read(dim)

    def _read_congruent(self, dim: Dim, by: Dim) -> Value | None:
        """What is divided elsewhere with the same remainder, else the value itself.

        Dimensions reduce factors by the divisor, so that the remainder of a value is not always written over it.
        """
        for other in self.divided:
            if other not in self.open and self._divides(by, other - dim):
                self.open.append(other)
                value = self.read(other)
                self.open.pop()
                return value
        return self.read(dim)

    def _read_quotient(self, dim: Dim, by: Dim) -> Value | None:
        value = self.read(dim)
        return None if value is None else self._divided(value, by)

    def _read_remainder(self, dim: Dim, by: Dim) -> Value | None:
        value = self._read_congruent(dim, by)
        found = None if value is None else self._remainder(value, by)
        if found is not None:
            return found
        value = self._read_congruent_quotient(dim, by)
        return None if value is None else self._remainder(value, by)

    def _read_congruent_quotient(self, dim: Dim, by: Dim) -> Value | None:
        """What is divided elsewhere, over a product of moduli, where that has the same remainder.

        Of (6 * a + b) // 3 % 3 dimensions make (b // 3 - a) % 3, which has no digits of a number any more.
        """
        for whole in self.divided:
            for radix in self.quotients:
                if whole not in self.open and self._divides(by, floordiv(whole, radix) - dim):
                    return self._read_quotient(whole, radix)
        return None

    def _is_fixed(self, dim: Dim) -> bool:
        return isinstance(dim, int) or not (set(dim.names) & set(self.extents))

    def _product(self, operands: Sequence[Dim]) -> Value | None:
        moving = [part for part in operands if not self._is_fixed(part)]
        scale = product(part for part in operands if self._is_fixed(part))
        if not moving:
            return Value((), scale)
        value = self.read(moving[0]) if len(moving) == 1 else None
        if value is None:
            return None
        terms = tuple(replace(term, scale=term.scale * scale) for term in value.terms)
        return Value(terms, value.base * scale)

    def _divided(self, value: Value, by: Dim) -> Value | None:
        split = self._split(value, by)
        if split is None:
            return None
        high, low = split
        if low is None:  # one source: digits above
            term = high.terms[0]
            return Value((Term(term.source, term.lower * by, ceildiv(term.extent, by), 1),))
        return Value(tuple(replace(t, scale=floordiv(t.scale, by)) for t in high.terms), floordiv(high.base, by))

    def _remainder(self, value: Value, by: Dim) -> Value | None:
        split = self._split(value, by)
        if split is None:
            return None
        high, low = split
        if low is not None:
            return low
        term = high.terms[0]
        return Value((Term(term.source, term.lower, by, 1),))

    def _split(self, value: Value, by: Dim) -> tuple[Value, Value | None] | None:
        """(multiples of `by`, rest below `by`), or (one term of scale 1, None)."""
        point = self.point
        if not value.terms:
            return None
        base_high = value.base if self._divides(by, value.base) else 0
        rest = value.base - base_high
        high = [t for t in value.terms if self._divides(by, t.scale)]
        low = [t for t in value.terms if t not in high]
        top = sum((t.scale * (t.extent - 1) for t in low), rest)
        rising = all(point.at_most(0, t.scale) for t in low)
        if rising and point.at_most(0, rest) and point.below(top, by):
            return Value(tuple(high), base_high), Value(tuple(low), rest)
        if isinstance(value.base, int) and value.base == 0:
            only = value.terms[0]
            if len(value.terms) == 1 and point.same(only.scale, 1):
                whole = point.same(only.lower * only.extent, only.source.extent) or (
                    point.at_most(only.source.extent, only.lower * only.extent)
                )
                if whole or self._divides(by, only.extent):
                    return value, None
            source = self._as_source(value)
            if source is not None:
                return Value((Term(source, 1, source.extent, 1),)), None
        return None

    def _divides(self, by: Dim, dim: Dim) -> bool:
        try:
            return self.point.same(floormod(dim, by), 0)
        except ShapeError:
            return False

    def _as_source(self, value: Value) -> Source | None:
        extent = self.extent_of(value)
        return None if extent is None else Source(self.dim_of(value), extent, value)

    def dim_of(self, value: Value) -> Dim:
        """The dimension of a value."""
        total = value.base
        for term in value.terms:
            inner = term.source.dim
            if not (isinstance(term.lower, int) and term.lower == 1):
                inner = floordiv(inner, term.lower)
            if not self.point.same(term.extent, ceildiv(term.source.extent, term.lower)):
                inner = floormod(inner, term.extent)
            total = total + inner * term.scale
        return as_dim(total)

    def expr_of(self, value: Value, dtype: str) -> PrimExpr:
        """The expression of a value, the most significant digits first."""
        point = self.point
        scales = {term: i for i, term in enumerate(reversed(self.ordered(Value(value.terms)) or value.terms[::-1]))}
        total: PrimExpr | None = None
        for term in sorted(value.terms, key=lambda term: scales.get(term, -1)):
            source = term.source
            part = point.expr(source.dim, dtype) if source.parts is None else self.expr_of(source.parts, dtype)
            if not point.same(term.lower, 1):
                part = binary("floordiv", part, point.expr(term.lower, dtype))
            if not point.same(term.extent, ceildiv(source.extent, term.lower)):
                part = binary("floormod", part, point.expr(term.extent, dtype))
            if not point.same(term.scale, 1):
                part = binary("mul", part, point.expr(term.scale, dtype))
            total = part if total is None else binary("add", total, part)
        if total is None:
            return point.expr(value.base, dtype)
        return (
            total
            if isinstance(value.base, int) and value.base == 0
            else binary("add", total, point.expr(value.base, dtype))
        )

    def ordered(self, value: Value) -> list[Term] | None:
        """The terms by growing scale when they are the digits of a number: each scale the product of the radices."""
        left = [term for term in value.terms if not self.point.same(term.extent, 1)]
        found: list[Term] = []
        scale: Dim = 1
        while left:
            term = next((t for t in left if self.point.same(t.scale, scale)), None)
            if term is None:
                return None
            left.remove(term)
            found.append(term)
            scale = scale * term.extent
        return found

    def extent_of(self, value: Value) -> Dim | None:
        """The number of values, when they are 0, 1, 2, ... without gaps; what limits say counts."""
        terms = self.ordered(value)
        if terms is None:
            return None
        total = product(t.extent for t in terms)
        limit = self.limits.get(self.dim_of(Value(value.terms)))
        return limit if limit is not None and self.point.at_most(limit, total) else total


def _numerators(dim: Dim | None) -> list[Dim]:
    """What is divided in a dimension."""
    if dim is None:
        return []
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return []
    inner = [part for operand in operands if isinstance(operand, DimExpr) for part in _numerators(operand)]
    return [operands[0], *inner] if kind == "floordiv" else inner


def _products(radices: Sequence[Dim]) -> list[Dim]:
    """The products of radices that stand side by side: what the upper ones of fused loops are divided by."""
    places = range(len(radices))
    return [product(radices[first : last + 1]) for last in places for first in places[: last + 1]]


def _moduli(dim: Dim | None) -> list[Dim]:
    """What remainders in a dimension are taken by."""
    if dim is None:
        return []
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return []
    inner = [by for operand in operands if isinstance(operand, DimExpr) for by in _moduli(operand)]
    return [operands[1], *inner] if kind == "mod" else inner


def merged(value: Value, point: Point) -> Value:
    """The value with neighbouring digits of one source joined: (f // 4 % 8) * 4 + f % 4 is f % 32."""
    terms = list(value.terms)
    changed = True
    while changed:
        changed = False
        for low in terms:
            for high in terms:
                if low is high or low.source != high.source:
                    continue
                if point.same(high.lower, low.lower * low.extent) and point.same(high.scale, low.scale * low.extent):
                    joined = Term(low.source, low.lower, low.extent * high.extent, low.scale)
                    whole = ceildiv(low.source.extent, low.lower)
                    if point.at_most(whole, joined.extent):
                        joined = replace(joined, extent=whole)
                    terms = [t for t in terms if t is not low and t is not high] + [joined]
                    terms = [part for t in terms for part in _opened(t, point)]
                    changed = True
                    break
            if changed:
                break
    return Value(tuple(terms), value.base)


def _opened(term: Term, point: Point) -> tuple[Term, ...]:
    """The terms of a divided value that is whole again."""
    source = term.source
    whole = isinstance(term.lower, int) and term.lower == 1 and point.same(term.extent, source.extent)
    if source.parts is None or not whole or source.parts.base != 0:
        return (term,)
    return tuple(replace(part, scale=part.scale * term.scale) for part in source.parts.terms)


@dataclass(frozen=True)
class Bindings:
    """The bindings of a block over the loops around it."""

    reader: Reader
    loops: tuple[For, ...]
    values: dict[PrimVar, Value | None]  # by block variable
    extents: dict[PrimVar, Dim | None]
    limited: set[PrimVar]
    other_conditions: tuple[PrimExpr, ...]  # parts of the predicate that say more than the domain

    @classmethod
    def of(cls, block: Block, loops: Sequence[For], point: Point) -> Bindings:
        """The bindings of a block; `point` is just outside of the loops, `loops` are those of the block's scope."""
        inner = point.copy(loops)
        extents = inner.whole_extents(loops)
        sizes = {item.var: inner.dim(item.extent) if item.start == 0 else None for item in block.iter_vars}
        bound = {item.var: inner.dim(item.value) if item.value is not None else None for item in block.iter_vars}
        limits: dict[Dim, Dim] = {}
        limited: set[PrimVar] = set()
        others: list[PrimExpr] = []
        for part in conjuncts(block.predicate):
            found = strict_limit(part, inner)
            if found is None:
                others.append(part)
                continue
            value, limit = found
            limits[value] = limit
            over = {var for var, size in sizes.items() if inner.same(bound[var], value) and inner.at_most(size, limit)}
            limited |= over
        reader = Reader(inner, extents, limits, [dim for dim in bound.values() if dim is not None])
        values = {var: None if dim is None else reader.read_bound(dim) for var, dim in bound.items()}
        return cls(reader, tuple(loops), values, sizes, limited, tuple(others))

    def injective(self, variables: Iterable[PrimVar] | None = None, loops: Iterable[For] | None = None) -> bool:
        """Whether different iterations of the loops are different values of the variables (all by default)."""
        wanted = list(self.values if variables is None else variables)
        values = [self.values[var] for var in wanted]
        if any(value is None for value in values):
            return False
        over = self.loops if loops is None else tuple(loops)
        names = {self.reader.point.name(loop.loop_var) for loop in over}
        if any(self.reader.ordered(value) is None for value in values if value is not None):
            return False
        used = [term for value in values if value is not None for term in value.terms]
        seen = self._sources(used)
        if seen is None:
            return False
        for name in names:
            extent = self.reader.extents.get(name)
            if extent is None:
                return False
            if name not in seen and not self.reader.point.same(extent, 1):
                return False
        return True

    def _sources(self, terms: Sequence[Term], *, exact: bool = False) -> set[str] | None:
        """The loops whose values the terms determine; None when digits of a source are missing or used twice.

        With `exact` also when the digits could say more than the source has values for.
        """
        point = self.reader.point
        groups: dict[Source, list[Term]] = {}
        for term in terms:
            if not point.same(term.extent, 1):
                groups.setdefault(term.source, []).append(term)
        names: set[str] = set()
        for source, parts in groups.items():
            lower: Dim = 1
            left = list(parts)
            while left:
                term = next((t for t in left if point.same(t.lower, lower)), None)
                if term is None:
                    return None
                left.remove(term)
                lower = lower * term.extent
            if not point.at_most(source.extent, lower):
                return None
            if exact and len(parts) > 1 and not point.same(source.extent, lower):
                return None
            if source.parts is None:
                found: set[str] | None = {str(source.dim)}
            else:
                found = (
                    None
                    if self.reader.ordered(source.parts) is None
                    else self._sources(source.parts.terms, exact=exact)
                )
            if found is None or found & names:
                return None
            names |= found
        return names

    def covers(self) -> bool:
        """Whether the loops reach every point of the block's domain, and the predicate leaves none of them out."""
        if self.other_conditions:
            return False
        terms: list[Term] = []
        point = self.reader.point
        for var, value in self.values.items():
            size = self.extents[var]
            if value is None or size is None or not point.same(value.base, 0):
                return False
            count = self.reader.extent_of(value)
            if count is None or not point.at_most(size, count):
                return False
            if not point.same(size, count) and var not in self.limited:
                return False
            terms.extend(value.terms)
        for dim in self.reader.limits:
            known = any(point.same(self.reader.dim_of(value), dim) for value in self.values.values() if value)
            inside = any(t.source.parts is not None and point.same(t.source.dim, dim) for t in terms)
            if not (known or inside):
                return False
        return self._sources(terms, exact=True) is not None

    @property
    def is_affine(self) -> bool:
        """Whether each variable is a number made of digits of loops."""
        return all(value is not None for value in self.values.values())
