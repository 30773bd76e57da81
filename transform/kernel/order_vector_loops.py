"""OrderVectorLoops: a vectorized loop whose iterations may touch the same elements runs in order.

    for i in T.vectorized(8): y[i] = y[0] + x[i]        for i in range(8): y[i] = y[0] + x[i]

On vectors every lane reads before any lane writes, which is what the loop says only where its iterations are apart. So
results never depend on the number of lanes, as those of parallel loops never depend on the number of threads. The pass
comes before schedules, whose vectorized loops are right by construction.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, replace, rewrite
from weft.ir.structure.visit import statements
from weft.ir.tensor import For, PrimFunc
from weft.support.records import dataclass
from weft.transform.analysis.accesses import iterations_are_apart, outliving_buffers
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.lower_blocks import lower_blocks

__all__ = ["OrderVectorLoops"]


@dataclass(frozen=True)
class OrderVectorLoops(FunctionPass):
    """Make serial loops of vectorized ones whose iterations are not proved to be apart."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The kernel, in which vectors mean what loops mean."""
        if not any(isinstance(part, For) and part.kind == "vectorized" for part in statements(function.body)):
            return function
        loops = [part for part in statements(lower_blocks(function).body) if isinstance(part, For)]
        vectors = (loop for loop in loops if loop.kind == "vectorized")
        tied = {loop.loop_var for loop in vectors if not iterations_are_apart(loop, outliving_buffers(loop))}

        def ordered(node: object) -> For | None:
            found = isinstance(node, For) and node.kind == "vectorized" and node.loop_var in tied
            return replace(node, kind="serial") if found else None  # type: ignore[type-var]

        return replace(function, body=rewrite(function.body, ordered)) if tied else function
