"""LowerOpaqueBlock: blocks without variables become allocations, conditions and statements.

    with T.block("b"):                  t = T.alloc_buffer((8,))
        t = T.alloc_buffer((8,))        if i < n:
        T.where(i < n)                      t[i] = x[i]
        t[i] = x[i]

Blocks with variables, inits or matched buffers are left alone: `ConvertBlocksToOpaque`, `LowerInitBlock` and
`LowerMatchBuffer` come first, and `LowerBlocks` does all of it. Loops of one iteration disappear with their blocks;
annotations of blocks become attributes (`T.attr`).
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import IRModule, Node, rewrite
from weft.ir.kernel.prim import as_expr
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    AttrStmt,
    Block,
    IfThenElse,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass

__all__ = ["LowerOpaqueBlock"]

_DROPPED = ("tir.script_parsing_detect_access", "script_parsing_detect_access")


@dataclass(frozen=True)
class LowerOpaqueBlock(FunctionPass):
    """Replace blocks without variables by what they hold."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without such blocks; the same object when it has none."""
        new = rewrite(function, _lowered)
        return function if new is function else simplify(new)


def _lowered(node: Node) -> Stmt | None:
    if not isinstance(node, Block) or node.iter_vars or node.init is not None or node.match_buffers:
        return None
    body: Stmt = node.body
    for key, value in node.annotations.items():
        if key not in _DROPPED:
            body = AttrStmt("", key, _value(value), body, span=node.span)
    if node.predicate is not None:
        body = IfThenElse(node.predicate, body, span=node.span)
    allocations = tuple(AllocBuffer(buffer, span=node.span) for buffer in node.alloc_buffers)
    return SeqStmt((*allocations, body), span=node.span) if allocations else body


def _value(value: object) -> object:
    """A value of an annotation as one of an attribute."""
    if isinstance(value, (bool, int, float)):
        return as_expr(value)
    return value
