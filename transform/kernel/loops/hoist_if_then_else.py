"""HoistIfThenElse: conditions that loops do not change stand around them.

    for i in range(n):                      if m > 0:
        if m > 0: y[i] = x[i]                   for i in range(n): y[i] = x[i]

`HoistExpression` moves bound values too.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule
from weft.ir.tensor import PrimFunc
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.loops.hoist_expression import hoisted

__all__ = ["HoistIfThenElse"]


@dataclass(frozen=True)
class HoistIfThenElse(FunctionPass):
    """Put conditions around the loops that do not change them."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with conditions outside; the same object when none moves."""
        return hoisted(function, conditions=True, bindings=False)
