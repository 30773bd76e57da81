"""Extremes down the columns: neighbours of x in memory belong to different results, each lane keeps its own.

for i in vectors: steps[0:w], values[0:w] = 0, worst;  for k: where x[k, i] is better: steps, values = k, x[k, i]
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.tensor import AllocBuffer, BufferLoad, BufferStore, Extent, For, PrimCall, PrimExpr, PrimVar, SeqStmt, Stmt
from weft.transform.autoschedule.rules.argreduce.match import ArgReduction, Running
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence, split, times, vector_loop

__all__ = ["down_columns"]


def down_columns(found: ArgReduction, var: PrimVar) -> Stmt:
    """Loops over the other results, and the rows with vectors along `var`."""
    nest, lanes = found.nest, found.lanes
    (row,) = nest.reduction
    outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.spatial if x is not var}

    def tile(start: PrimExpr, width: int, left: Extent | None) -> Stmt:
        running, k = Running.of(found, width), PrimVar(row.name.removeprefix("v"), INDEX)

        def whole(action: Callable[[PrimExpr], Stmt]) -> Stmt:
            return vector_loop(0, width, action)

        def at(value: PrimExpr, j: PrimExpr) -> PrimExpr:
            return substitute(value, {**outer, row: k, var: plus(start, j)})

        def take(j: PrimExpr) -> Stmt:
            new = at(found.value, j)
            if left is not None:
                less = binary("lt", j, as_expr(left, INDEX))
                new = PrimCall("if_then_else", (less, new, found.start[1].value), new.dtype)
            return running.take(j, k, new)

        def write(j: PrimExpr) -> Stmt:
            results = (cast(INDEX, BufferLoad(running.steps, (j,))), BufferLoad(running.values, (j,)))
            return SeqStmt(
                tuple(
                    BufferStore(put.buffer, result, tuple(at(index, j) for index in put.indices), span=put.span)
                    for put, result in zip(found.start, results, strict=True)
                )
            )

        steps = For(k, 0, nest.extents[row], whole(take))
        writes = whole(write) if left is None else vector_loop(0, width, write, left)
        return sequence([AllocBuffer(running.steps), AllocBuffer(running.values), whole(running.clear), steps, writes])

    steps, done = split(0, nest.extents[var], lanes)
    i, left = PrimVar(f"{var.name.removeprefix('v')}_{lanes}", INDEX), minus(nest.extents[var], done)
    body = []
    if not (isinstance(steps, int) and steps == 0):
        body.append(For(i, 0, steps, tile(as_expr(times(i, lanes), INDEX), lanes, None)))
    if found.machine.has_masks and not (isinstance(left, int) and left == 0):
        width = 1 << (left - 1).bit_length() if isinstance(left, int) else lanes
        body.append(tile(as_expr(done, INDEX), width, None if width == left else left))
    elif not (isinstance(left, int) and left == 0):
        t = PrimVar("rest", INDEX)
        body.append(For(t, 0, left, tile(plus(done, t), 1, None)))
    return nested([(new, nest.extents[old]) for old, new in outer.items()], sequence(body))
