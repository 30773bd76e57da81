"""RenormalizeSplitPattern: quotients and remainders of split loops in the form that simplifies and compiles best.

    (x % 64) // 8               (x // 8) % 8            quotients inside, remainders outside
    (x // 8) // 4               x // 32                 one division

For the floor division of signed integers, with positive constants; `StmtSimplify` decides what loops
and conditions say.
"""

from __future__ import annotations

from typing import ClassVar

from weft import dtypes
from weft.ir import IRModule, Node, rewrite
from weft.ir.kernel.prim import as_expr
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import Binary, IntImm, PrimExpr, PrimFunc
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["RenormalizeSplitPattern"]


@dataclass(frozen=True)
class RenormalizeSplitPattern(FunctionPass):
    """Put remainders outside of quotients, and constants of one division together."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function in that form; the same object when it is."""
        new = rewrite(function, _renormalized)
        return function if new is function else simplify(new)


def _renormalized(node: Node) -> PrimExpr | None:
    if not isinstance(node, Binary) or node.kind not in ("floordiv", "floormod") or not _is_index(node.dtype):
        return None
    divisor = _positive(node.b)
    return None if divisor is None or node.kind == "floormod" else _quotient(node, node.a, divisor)


def _quotient(node: Binary, value: PrimExpr, divisor: int) -> PrimExpr | None:
    inner = _positive(value.b) if isinstance(value, Binary) else None
    if not isinstance(value, Binary) or divisor == 1:
        return None
    if inner is not None and value.kind == "floormod" and inner % divisor == 0:
        below = _divided(value.a, divisor)
        return Binary("floormod", below, as_expr(inner // divisor, node.dtype), span=node.span)
    if inner is not None and value.kind == "floordiv" and dtypes.can_hold(node.dtype, inner * divisor):
        return _divided(value.a, inner * divisor)
    return None


def _divided(value: PrimExpr, divisor: int) -> PrimExpr:
    """value // divisor, in this form too."""
    new = Binary("floordiv", value, as_expr(divisor, value.dtype))
    return _quotient(new, value, divisor) or new


def _is_index(dtype: str) -> bool:
    return dtypes.is_integer(dtype) and dtypes.lanes(dtype) == 1 and not dtypes.is_bool(dtype)


def _positive(value: PrimExpr) -> int | None:
    return value.value if isinstance(value, IntImm) and value.value > 0 else None
