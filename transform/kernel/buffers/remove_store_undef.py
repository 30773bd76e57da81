"""RemoveStoreUndef: what is stored where any value will do is not stored.

    y[i] = T.undef()                                    nothing
    y[i] = T.if_then_else(i < n, x[i], T.undef())       if i < n: y[i] = x[i]

So is a sum or difference with `T.undef()`.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite
from weft.ir.kernel.simplify import is_pure
from weft.ir.tensor import (
    Binary,
    BufferStore,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Select,
    SeqStmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.indices.facts import negated
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.scalars.remove_no_op import without_empty

__all__ = ["RemoveStoreUndef"]


@dataclass(frozen=True)
class RemoveStoreUndef(FunctionPass):
    """Drop the stores of `T.undef()`."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without such stores; the same object when it has none."""
        new = rewrite(function, _defined)
        return function if new is function else rewrite(new, without_empty)


def _defined(node: Node) -> Node | None:
    if not isinstance(node, BufferStore):
        return None
    if _is_any_value(node.value):
        return SeqStmt((), span=node.span)
    choice = _choice(node.value)
    if choice is None or node.predicate is not None:
        return None
    condition, first, second = choice
    if _is_any_value(second):
        return IfThenElse(condition, replace(node, value=first), span=node.span)
    if _is_any_value(first):
        return IfThenElse(negated(condition), replace(node, value=second), span=node.span)
    return None


def _choice(value: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr] | None:
    """(condition, value where it holds, value where it does not) of a choice."""
    if isinstance(value, Select) and is_pure(value):
        return value.condition, value.true_value, value.false_value
    if isinstance(value, PrimCall) and value.op == "if_then_else":
        condition, first, second = (arg for arg in value.args if isinstance(arg, PrimExpr))
        return condition, first, second
    return None


def _is_any_value(value: PrimExpr) -> bool:
    """Whether every value of its dtype is one that an expression may have."""
    if isinstance(value, PrimCall):
        return value.op == "undef"
    if isinstance(value, Binary) and value.kind in ("add", "sub"):
        sides = (value.a, value.b)
        return any(map(_is_any_value, sides)) and all(map(is_pure, sides))
    return False
