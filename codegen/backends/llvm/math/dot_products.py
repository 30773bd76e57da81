"""T.dot_product(sums, a, b): the instruction that the machine has for the types, else vector code.

    sums[i] + a[g * i] * b[g * i] + ... + a[g * i + g - 1] * b[g * i + g - 1]       for every lane i of the sums

Instructions are those of the table in the machine model (`weft.target.machine_model`). Sums of integers are exact in
the type of the sums, which wraps. vdpbf16ps takes subnormal numbers as zeros and adds products of a pair one after the
other, each rounded to nearest even (Intel, Software Developer's Manual, volume 2, VDPBF16PS).
"""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import call, cast, extractelement, shufflevector
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.target import DOT_PRODUCTS, DotProduct

__all__ = ["dot_product"]


def dot_product(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    """The sums with products added."""
    found = _instruction(arith, dtype, kinds)
    return _spread(arith, dtype, operands, kinds) if found is None else _called(arith, found, dtype, operands, kinds)


def _instruction(arith: Arithmetic, dtype: str, kinds: list[str]) -> DotProduct | None:
    wanted = tuple(map(dtypes.element, (*kinds[1:], dtype)))
    width = dtypes.bits(dtype) * dtypes.lanes(dtype)
    if arith.strict and dtypes.is_float(dtypes.element(dtype)):
        return None
    for row in DOT_PRODUCTS:
        fits = row.is_vector and row.types == wanted and dtypes.lanes(kinds[1]) == row.terms * dtypes.lanes(dtype)
        if fits and row.feature in arith.features and _has_width(row, width, arith.features):
            return row
    return None


def _has_width(row: DotProduct, width: int, features: frozenset[str]) -> bool:
    """Whether an instruction of x86 has vectors of so many bits: EVEX ones need AVX512VL below 512."""
    if row.feature.startswith("avx512"):
        return width == 512 or (width in (128, 256) and "avx512vl" in features)
    return width in (128, 256)


def _called(arith: Arithmetic, row: DotProduct, dtype: str, operands: list[str], kinds: list[str]) -> str:
    ty = value_type(dtype)
    taken = f"<{dtypes.lanes(kinds[1])} x {row.operand}>"
    given = [("", operands[0]), *zip(map(value_type, kinds[1:]), operands[1:], strict=True)]
    values = [(ty, operands[0])]
    for own, value in given[1:]:
        values.append((taken, value if own == taken else arith.w.emit(cast("bitcast", own, value, taken))))
    name = row.intrinsic.format(bits=dtypes.bits(dtype) * dtypes.lanes(dtype))
    arith.w.module.declare(name, ty, (ty, taken, taken))
    return arith.w.emit(call(ty, f"@{name}", values))


def _spread(arith: Arithmetic, dtype: str, operands: list[str], kinds: list[str]) -> str:
    """The lanes of each term apart, converted, multiplied, added."""
    total, lanes = operands[0], dtypes.lanes(dtype)
    group = dtypes.lanes(kinds[1]) // lanes
    for term in range(group):
        parts = []
        for kind, value in zip(kinds[1:], operands[1:], strict=True):
            picked = [group * lane + term for lane in range(lanes)]
            ty = value_type(kind)
            if dtypes.lanes(kind) == 1:  # one product of scalars
                part = value
            elif lanes == 1:
                part = arith.w.emit(extractelement(ty, value, term))
            else:
                part = arith.w.emit(shufflevector(ty, value, "poison", picked))
            parts.append(arith.cast(dtypes.with_lanes(dtypes.element(kind), lanes), dtype, part))
        total = arith.binary("add", dtype, total, arith.binary("mul", dtype, *parts))
    return total
