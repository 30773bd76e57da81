"""Conditions of checks of bounds: what they compute exactly, or they do not hold."""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.values.expressions import is_cheap
from weft.ir.structure.visit import walk
from weft.ir.tensor import COMPARISONS, Binary, PrimExpr

__all__ = ["exact_condition"]


def exact_condition(emitter: KernelEmitter, condition: PrimExpr) -> str:
    """The condition of a check of bounds: a comparison whose arithmetic leaves 64 bits does not hold."""
    if isinstance(condition, Binary) and condition.kind in ("and", "or"):
        if is_cheap(condition.b) and not _has_arithmetic(condition.b):
            return emitter.arith.binary(
                condition.kind, "bool", exact_condition(emitter, condition.a), emitter.value(condition.b)
            )
        return emitter.short_circuit(condition, lambda part: exact_condition(emitter, part))
    if not isinstance(condition, Binary) or condition.kind not in COMPARISONS or not _has_arithmetic(condition):
        return emitter.value(condition)
    if not (dtypes.is_integer(condition.a.dtype) and dtypes.is_signed(condition.a.dtype)):
        return emitter.value(condition)
    exact = Exact(emitter.w)
    a, b = emitter.index.exact_size(condition.a, exact), emitter.index.exact_size(condition.b, exact)
    holds = exact.holds()
    compared = emitter.arith.binary(condition.kind, "int64", str(a), str(b))
    if isinstance(holds, bool):
        return compared if holds else "false"
    return emitter.arith.binary("and", "bool", compared, holds)


def _has_arithmetic(condition: PrimExpr) -> bool:
    """Whether a condition compares results of 64-bit arithmetic that could overflow."""
    return any(
        isinstance(part, Binary) and part.kind in ("add", "sub", "mul") and dtypes.is_signed(part.dtype)
        for part in walk(condition)
    )
