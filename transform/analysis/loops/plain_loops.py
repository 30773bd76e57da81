"""Serial loops from 0 around one statement, with a block between them or none.

for i: for j: with T.block("b"): v, w = T.axis.remap("SS", [i, j]); stmt(v, w)       (i, j), stmt(i, j)
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import substitute
from weft.ir.kernel.nests import perfect_nest
from weft.ir.tensor import Block, For, PrimExpr, PrimVar, Stmt

__all__ = ["plain_loops"]


def plain_loops(stmt: Stmt) -> tuple[Sequence[For], Stmt] | None:
    """The loops around a statement, and that in terms of their variables; None where one is not serial from 0 on.

    A block with more than variables and a body is none either. A statement that is no loop has none around it.
    """
    loops, inner = perfect_nest(stmt)
    names: dict[PrimVar, PrimExpr] = {}
    if isinstance(inner, Block):
        if inner.init is not None or inner.predicate is not None or inner.alloc_buffers or inner.match_buffers:
            return None
        names = {item.var: item.value for item in inner.iter_vars if item.value is not None}
        inner = inner.body
    plain = all(loop.kind == "serial" and loop.start == 0 and loop.step is None for loop in loops)
    return (loops, substitute(inner, names)) if plain else None
