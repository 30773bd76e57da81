"""RewriteUnsafeSelect: a choice that must not evaluate what it does not choose becomes a lazy one.

    T.Select(i < n, x[i], 0.0)      T.if_then_else(i < n, x[i], 0.0)

An arm is unsafe where it reads memory, divides by what may be 0, or calls what may have an effect or fail. What is
lazy evaluates less than what is not, and gives the same value.
"""

from __future__ import annotations

from typing import ClassVar

from weft import dtypes
from weft.ir import IRModule, Node, rewrite, walk
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.tensor import Binary, BufferLoad, IntImm, PrimCall, PrimExpr, PrimFunc, Select
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["RewriteUnsafeSelect", "may_fail"]

_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


@dataclass(frozen=True)
class RewriteUnsafeSelect(FunctionPass):
    """Make choices lazy whose arms must not be evaluated in vain."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with lazy choices; the same object when every choice is safe."""
        return rewrite(function, _lazy)


def may_fail(value: PrimExpr) -> bool:
    """Whether evaluating an expression may read memory, have an effect, or have no value."""
    for part in walk(value):
        if isinstance(part, BufferLoad):
            return True
        if isinstance(part, PrimCall):
            entry = INTRINSICS.get(part.op) if isinstance(part.op, str) else None
            if entry is None or not entry.pure or (entry.numpy is None and part.op != "if_then_else"):
                return True
        if isinstance(part, Binary) and _may_have_no_value(part):
            return True
    return False


def _may_have_no_value(value: Binary) -> bool:
    if not dtypes.is_integer(dtypes.element(value.a.dtype)):
        return False
    right = value.b.value if isinstance(value.b, IntImm) else None
    if value.kind in _DIVISIONS:
        return not right
    shifts = value.kind in ("shift_left", "shift_right")
    return shifts and (right is None or not 0 <= right < dtypes.bits(value.a.dtype))


def _lazy(node: Node) -> Node | None:
    if not isinstance(node, Select) or dtypes.lanes(node.condition.dtype) > 1:
        return None
    if not may_fail(node.true_value) and not may_fail(node.false_value):
        return None
    arms = (node.condition, node.true_value, node.false_value)
    return PrimCall("if_then_else", arms, node.dtype, span=node.span)
