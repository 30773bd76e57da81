"""LowerBlocks: tensor-level blocks become plain loops, conditions and allocations.

    iteration variables   their binding values stand in their place (a `Bind` where the value is a compound one)
    predicate             a condition around the instance
    init                  a loop nest of its own before the reduction loops, so that a reduction over nothing still
                          initialises its output; where the nest is not of that form, a condition "every reduction
                          variable is at its start" before the body
    alloc_buffers         allocations inside the instance
    match_buffers         declared views of the region's memory; symbolic strides and offsets get their values

What is left: loops, stores, conditions, binds, allocations, views, asserts, calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import IRModule, replace, substitute
from weft.ir.kernel.prim import as_expr, cast
from weft.ir.structure.visit import map_statements
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Block,
    DeclBuffer,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.blocks.init_nests import split_init
from weft.transform.kernel.blocks.lower_init_block import first_time
from weft.transform.kernel.blocks.lower_match_buffer import view_of

__all__ = ["LowerBlocks", "lower_blocks"]


@dataclass(frozen=True)
class LowerBlocks(FunctionPass):
    """Replace blocks by loops, conditions and allocations."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function without blocks."""
        return lower_blocks(function)


def lower_blocks(function: PrimFunc) -> PrimFunc:
    """A tensor-level function without blocks; the same object when it has none."""
    return replace(function, body=_lower(function.body))


def _lower(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Block):
        return _lower_block(stmt)
    split = split_init(stmt) if isinstance(stmt, For) else None
    return map_statements(stmt, _lower) if split is None else _lower(split)


def _lower_block(block: Block) -> Stmt:
    body = block.body
    if block.init is not None:
        body = SeqStmt((first_time(block), body))
    parts: list[Stmt] = [AllocBuffer(buffer, span=block.span) for buffer in block.alloc_buffers]
    for match in block.match_buffers:
        sizes, placed = view_of(match)
        parts += [*sizes, DeclBuffer(placed, span=match.span)]
        body = substitute(body, {match.buffer: placed})
    body = SeqStmt((*parts, body)) if parts else body
    if block.predicate is not None:
        body = IfThenElse(block.predicate, body, span=block.span)
    return _lower(_bound(block.iter_vars, body))


def _bound(iter_vars: Sequence[IterVar], body: Stmt) -> Stmt:
    """The body with iteration variables standing for their values."""
    direct: dict[PrimVar, PrimExpr] = {}
    binds: list[Stmt] = []
    for item in iter_vars:
        value = cast(item.var.dtype, item.value if item.value is not None else as_expr(item.start))
        if isinstance(value, (PrimVar, IntImm)):
            direct[item.var] = value
        else:
            binds.append(Bind(item.var, value, span=item.span))
    body = substitute(body, direct)
    return SeqStmt((*binds, body)) if binds else body
