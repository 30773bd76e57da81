"""Perfect nests: loops around loops with nothing beside them.

for i: for j: stmt        the loops i and j, and stmt
"""

from __future__ import annotations

from weft.ir.tensor import For, Stmt

__all__ = ["perfect_nest"]


def perfect_nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """The loops from the outside in, and what is inside of them; no loops where the statement is none.

    >>> from weft.ir.tensor import Buffer, BufferStore, FloatImm, PrimVar
    >>> i, j, x = PrimVar("i"), PrimVar("j"), Buffer("x", (4, 4))
    >>> loops, inner = perfect_nest(For(i, 0, 4, For(j, 0, 4, BufferStore(x, FloatImm(0.0), (i, j)))))
    >>> [loop.loop_var.name for loop in loops], type(inner).__name__
    (['i', 'j'], 'BufferStore')
    """
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt
