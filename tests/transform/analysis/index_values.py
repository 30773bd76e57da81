"""The number that an index is at given values of its variables, found by Python."""

from __future__ import annotations

from weft.ir.tensor import Binary, Cast, IntImm, PrimExpr, PrimVar

__all__ = ["index_value", "wrapped"]


def wrapped(value: int, dtype: str) -> int:
    """An integer in a dtype."""
    bits = int(dtype.removeprefix("int"))
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def index_value(expr: PrimExpr | int, at: dict[PrimVar, int]) -> int:
    """The number that an index is; a quotient by 0 is never asked for, and counts as one by 1."""
    if isinstance(expr, (int, IntImm)):
        return expr if isinstance(expr, int) else expr.value
    if isinstance(expr, PrimVar):
        return at[expr]
    if isinstance(expr, Cast):
        return wrapped(index_value(expr.value, at), expr.dtype)
    assert isinstance(expr, Binary)
    a, b = index_value(expr.a, at), index_value(expr.b, at)
    return {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "min": min(a, b),
        "max": max(a, b),
        "floordiv": a // (b or 1),
        "floormod": a % (b or 1),
        "le": int(a <= b),
        "lt": int(a < b),
        "eq": int(a == b),
        "and": a and b,
    }[expr.kind]
