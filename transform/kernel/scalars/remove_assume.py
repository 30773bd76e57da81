"""RemoveAssume: assumptions are dropped, once nothing more is to be concluded from them.

    T.evaluate(T.assume(n > 0))                 nothing

`CheckBounds` makes checks of assumptions: what is dropped before is not checked.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, rewrite
from weft.ir.tensor import Evaluate, PrimCall, PrimFunc, SeqStmt
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.scalars.remove_no_op import without_empty

__all__ = ["RemoveAssume"]


@dataclass(frozen=True)
class RemoveAssume(FunctionPass):
    """Drop the assumptions of kernels."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without assumptions; the same object when it has none."""
        new = rewrite(function, _dropped)
        return function if new is function else rewrite(new, without_empty)


def _dropped(node: Node) -> Node | None:
    assumes = isinstance(node, Evaluate) and isinstance(node.value, PrimCall) and node.value.op == "assume"
    return SeqStmt((), span=node.span) if assumes else None  # type: ignore[attr-defined]
