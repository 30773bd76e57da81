"""Matching: contractions of integers that stand for floats by scales of groups along k.

    C[.., i, j] += A[.., i, k] * ((B[k, j] - zero[k // g, j]) * scale[k // g, j])        (init: 0)

A holds floats, or integers with scales of their own, A[.., i, k] * a_scale[.., i, k // g]. B has its axes in any order;
its zero point is a number, an array like the scales, or not there. The factors of a product stand in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.dtypes import is_float, is_integer
from weft.ir.tensor import Binary, Buffer, BufferLoad, Cast, For, IntImm, PrimExpr, PrimVar
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.match import Contraction, row_variable, runs_along, sum_of_products, uses

__all__ = ["Scaled", "ScaledContraction", "buffers_of", "match_scaled"]


@dataclass(frozen=True)
class Scaled:
    """An operand: what it is stored as, the zero point (None: 0), and the scale (None: it is a float itself)."""

    load: BufferLoad
    zero: IntImm | BufferLoad | None = None
    scale: BufferLoad | None = None

    @property
    def loads(self) -> tuple[BufferLoad, ...]:
        """Everything that is loaded for it."""
        return tuple(part for part in (self.load, self.zero, self.scale) if isinstance(part, BufferLoad))


@dataclass(frozen=True)
class ScaledContraction:
    """A contraction whose B has scales; `plain` has its loops, its result, and the loads of both operands."""

    plain: Contraction
    a: Scaled
    b: Scaled
    group: int

    @property
    def k(self) -> PrimVar:
        """The variable of the sum."""
        return self.plain.reduction[0]

    @property
    def axes(self) -> list[PrimVar]:
        """The variables of A that k is not."""
        return [*self.plain.outer, *([] if self.plain.r is None else [self.plain.r])]

    @property
    def size(self) -> int:
        """The products of a sum."""
        extent = self.plain.extents[self.k]
        assert isinstance(extent, int)
        return extent


def match_scaled(loop: For) -> ScaledContraction | None:
    """The scaled contraction that a loop nest is, or None."""
    found = sum_of_products(loop)
    if found is None or len(found.reduction) != 1 or found.accumulates:
        return None
    k = found.reduction[0]
    size, groups = found.extents[k], _Groups(k)
    parts = _parts(_factors(found.product), k, groups)
    if parts is None or not isinstance(size, int) or not found.store.indices:
        return None
    v = found.store.indices[-1]
    ordered = sorted(parts, key=lambda part: uses(part.load.indices, v))  # type: ignore[arg-type]
    a, b = ordered
    group = groups.size or size
    if not isinstance(v, PrimVar) or not _is_row(a, v, k) or not _is_column(b, v, k) or size % group:
        return None
    if found.store.buffer in buffers_of(a) | buffers_of(b):
        return None
    if not runs_along(found.store, v) or not isinstance(found.extents[v], int) or found.store.buffer.dtype != "float32":
        return None
    others = [var for var in found.spatial if var is not v]
    r = row_variable(found.store, a.load, b.load, others, found.extents)
    outer = tuple(var for var in others if var is not r)
    plain = Contraction(
        found.store, a.load, b.load, found.extents, outer, found.reduction, v, r, result=found.store.buffer
    )
    return ScaledContraction(plain, a, b, group)


class _Groups:
    """How indices of scales follow from k: one group size for all of them."""

    def __init__(self, k: PrimVar) -> None:
        self.k, self.size = k, 0

    def take(self, indices: Sequence[PrimExpr]) -> bool:
        """Whether k occurs in no index but as k // size."""
        for index in indices:
            if not uses((index,), self.k):
                continue
            while isinstance(index, Cast):
                index = index.value
            divided = isinstance(index, Binary) and index.kind == "floordiv" and index.a is self.k
            if not divided or not isinstance(index, Binary) or not isinstance(index.b, IntImm):
                return False
            if index.b.value < 1 or self.size not in (0, index.b.value):
                return False
            self.size = index.b.value
        return True


def _factors(value: PrimExpr) -> list[PrimExpr]:
    """The factors of a product of floats."""
    if isinstance(value, Binary) and value.kind == "mul":
        return [*_factors(value.a), *_factors(value.b)]
    return [value]


def _parts(factors: Sequence[PrimExpr], k: PrimVar, groups: _Groups) -> tuple[Scaled, Scaled] | None:
    """The two operands: what moves with k, each with the scale that is indexed as it is."""
    numbers, scales = [], []
    for factor in factors:
        found = _number(factor, k)
        if found is not None:
            numbers.append(found)
        elif (scale := _load_of(factor)) is not None and is_float(scale.buffer.dtype) and groups.take(scale.indices):
            scales.append(scale)
        else:
            return None
    if len(numbers) != 2 or not all(groups.take(n.zero.indices) for n in numbers if isinstance(n.zero, BufferLoad)):
        return None
    for scale in scales:
        owners = [at for at, number in enumerate(numbers) if _belongs(scale, number.load, k)]
        if len(owners) != 1 or numbers[owners[0]].scale is not None:
            return None
        own = numbers[owners[0]]
        numbers[owners[0]] = Scaled(own.load, own.zero, scale)
    return (numbers[0], numbers[1]) if all(_is_complete(number) for number in numbers) else None


def _belongs(scale: BufferLoad, load: BufferLoad, k: PrimVar) -> bool:
    """Whether a scale has the variables of an operand."""
    own = {x for x in load.indices if isinstance(x, PrimVar) and x is not k}
    others = {x for x in scale.indices if isinstance(x, PrimVar)}
    return own == others


def _is_complete(part: Scaled) -> bool:
    """Whether integers have scales, and floats nothing."""
    if is_float(part.load.buffer.dtype):
        return part.scale is None and part.zero is None
    return part.scale is not None


def _number(factor: PrimExpr, k: PrimVar) -> Scaled | None:
    """What moves with k itself: a load, or an integer less a zero point."""
    value = factor
    while isinstance(value, Cast):
        value = value.value
    if isinstance(value, BufferLoad):
        return Scaled(value) if k in value.indices and value.predicate is None else None
    if not isinstance(value, Binary) or value.kind != "sub" or not is_integer(value.dtype):
        return None
    load, zero = _load_of(value.a), value.b if isinstance(value.b, IntImm) else _load_of(value.b)
    if load is None or zero is None or k not in load.indices or not is_integer(load.buffer.dtype):
        return None
    if isinstance(zero, BufferLoad) and not is_integer(zero.buffer.dtype):
        return None
    return Scaled(load, None if isinstance(zero, IntImm) and zero.value == 0 else zero)


def _load_of(value: PrimExpr) -> BufferLoad | None:
    while isinstance(value, Cast):
        value = value.value
    return value if isinstance(value, BufferLoad) and value.predicate is None else None


def _is_row(a: Scaled, v: PrimVar, k: PrimVar) -> bool:
    """Whether A lies along k, and nothing of it moves with v."""
    along = runs_along(a.load, k) and a.load.indices[-1] is k
    return along and a.zero is None and not any(uses(load.indices, v) for load in a.loads)


def _is_column(b: Scaled, v: PrimVar, k: PrimVar) -> bool:
    """Whether B is a matrix of k and v, with scales."""
    return b.scale is not None and len(b.load.indices) == 2 and set(b.load.indices) == {k, v}


def buffers_of(part: Scaled) -> frozenset[Buffer]:
    """The buffers of an operand."""
    return frozenset(load.buffer for load in part.loads)
