"""ExpandIntrinsics: calls of intrinsics that are declared by a formula become the formula.

    y[i] = T.softsign(x[i])               y[i] = T.Let(v / (1 + T.abs(v)), where={v: x[i]})

It runs before kernels are fused and scheduled, so that these see arithmetic, and no back end has to know the intrinsic.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, PrimFunc, rewrite
from weft.ir.kernel.formulas import expanded, has_formula
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.tensor import PrimCall
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["ExpandIntrinsics"]


@dataclass(frozen=True)
class ExpandIntrinsics(FunctionPass):
    """Put the formula of an intrinsic in the place of its calls."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run(self, module: IRModule) -> IRModule:
        """The module without calls of intrinsics that have a formula; itself where nobody has declared one."""
        declared = any(entry.formula is not None for entry in INTRINSICS.values())
        return super().run(module) if declared else module

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel without such calls."""
        return rewrite(function, _formula)


def _formula(node: Node) -> Node | None:
    return expanded(node) if isinstance(node, PrimCall) and has_formula(node) else None
