"""ConvertBlocksToOpaque: the variables of blocks are replaced by what they are bound to.

    with T.block("b"):                          with T.block("b"):
        v = T.axis.spatial(8, i * 2 + j)            T.reads(x[i * 2 + j])
        y[v] = x[v]                                 y[i * 2 + j] = x[i * 2 + j]

A block then says where it is, not over what it iterates. Inits are lowered first (`LowerInitBlock`).
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, substitute
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.tensor import Block, PrimFunc
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.blocks.lower_init_block import without_inits

__all__ = ["ConvertBlocksToOpaque"]


@dataclass(frozen=True)
class ConvertBlocksToOpaque(FunctionPass):
    """Replace the variables of blocks by their bindings."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function whose blocks have no variables; the same object when it is one."""
        return rewrite(without_inits(function), _opaque)


def _opaque(node: Node) -> Node | None:
    if not isinstance(node, Block) or not node.iter_vars:
        return None
    values = {
        item.var: cast(item.var.dtype, as_expr(item.start) if item.value is None else item.value)
        for item in node.iter_vars
    }
    return substitute(replace(node, iter_vars=()), values)
