"""LowerInitBlock: the init of a reduction becomes a condition in front of its body.

    with T.init(): y[i] = 0.0           if k == 0: y[i] = 0.0
    y[i] = y[i] + x[i, k]               y[i] = y[i] + x[i, k]

The condition is that every reduction variable is at its start. Where the reduction may be over nothing, the init
becomes a nest of its own before the reduction loops instead, if their form allows it: it runs even then.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.tensor import Block, For, IfThenElse, PrimExpr, PrimFunc, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.blocks.init_nests import split_init

__all__ = ["LowerInitBlock", "first_time", "without_inits"]


@dataclass(frozen=True)
class LowerInitBlock(FunctionPass):
    """Make the inits of reductions conditions of their bodies."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without inits; the same object when it has none."""
        return without_inits(function)


def without_inits(function: PrimFunc) -> PrimFunc:
    """A function whose blocks have no init; itself when it has none."""
    if not any(isinstance(part, Block) and part.init is not None for part in walk(function.body)):
        return function
    return rewrite(function, _without_init, pre=_apart)


def _apart(node: Node) -> Node | None:
    """A nest whose reduction may be over nothing, with the init before it."""
    if not isinstance(node, For) or all(_runs(loop) for loop in perfect_nest(node)[0]):
        return None
    new = split_init(node)
    return None if new is None else rewrite(new, _without_init, pre=_apart)


def _runs(loop: For) -> bool:
    return isinstance(loop.extent, int) and loop.extent > 0


def _without_init(node: Node) -> Node | None:
    if not isinstance(node, Block) or node.init is None:
        return None
    return replace(node, init=None, body=SeqStmt((first_time(node), node.body), span=node.body.span))


def first_time(block: Block) -> Stmt:
    """The init of a block, run when every reduction variable is at its start."""
    assert block.init is not None
    at_start: PrimExpr | None = None
    for item in block.iter_vars:
        if item.kind in ("reduce", "scan"):
            here = binary("eq", item.var, cast(item.var.dtype, as_expr(item.start)))
            at_start = here if at_start is None else binary("and", at_start, here)
    return block.init if at_start is None else IfThenElse(at_start, block.init, span=block.init.span)
