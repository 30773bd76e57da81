"""CanonicalizeLoop: loops start at 0 and step by 1.

    for i in range(a, b, 2): y[i] = x[i]        for i in range(ceildiv(b - a, 2)): y[i * 2 + a] = x[i * 2 + a]

Loops that are bound to threads are so already; a step that only the call knows stays.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, substitute
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import Extent, For, PrimExpr, PrimFunc, PrimVar
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["CanonicalizeLoop"]


@dataclass(frozen=True)
class CanonicalizeLoop(FunctionPass):
    """Make every loop of kernels start at 0 and step by 1."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with such loops alone; the same object when it has no others."""
        return rewrite(function, _canonical)


def _canonical(node: Node) -> Node | None:
    if not isinstance(node, For) or node.kind == "thread_binding":
        return None
    step = 1 if node.step is None else node.step
    if node.start == 0 and step == 1:
        return None
    if not isinstance(step, int) or step < 1:
        return None
    var = PrimVar(node.loop_var.name, node.loop_var.dtype, span=node.loop_var.span)
    value = binary("add", binary("mul", var, as_expr(step, var.dtype)), as_expr(node.start, var.dtype))
    body = substitute(node.body, {node.loop_var: simplify(cast(var.dtype, value))})
    return replace(node, loop_var=var, start=0, extent=_steps(node, step), step=None, body=body)


def _steps(loop: For, step: int) -> Extent:
    """How often a loop runs."""
    if isinstance(loop.extent, int) or step == 1:
        return loop.extent if isinstance(loop.extent, PrimExpr) else max(0, -(-loop.extent // step))
    return simplify(binary("floordiv", binary("add", loop.extent, step - 1), step))
