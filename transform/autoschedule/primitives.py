"""Rules written with the primitives of schedules: a loop nest as a function of its own, scheduled, and taken back.

    arranged(stmt, steps)    steps(sch, loops): the schedule of the nest, the handles of its loops from the outside in

What a primitive proves (loops that may run in another order, iterations that are independent) is proved of the nest
alone, so that it holds wherever the nest stands; a step that does not apply raises its ScheduleError.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import substitute, walk
from weft.ir.dim import fresh_name
from weft.ir.tensor import AllocBuffer, Bind, Buffer, DeclBuffer, For, IterVar, Let, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.transform.schedule import LoopRV, Schedule

__all__ = ["arranged"]


def arranged(stmt: For, steps: Callable[[Schedule, list[LoopRV]], object]) -> Stmt:
    """The nest after steps of a schedule; ScheduleError where one of them does not apply.

    >>> from weft.ir import te
    >>> A = te.placeholder((64,), name="A")
    >>> nest = te.create_prim_func([A, te.compute((64,), lambda i: A[i] * 2.0, name="B")], "twice").body
    >>> new = arranged(nest, lambda sch, loops: sch.vectorize(sch.split(loops[0], [None, 8])[1]))
    >>> new.extent, new.body.kind, new.body.extent
    (8, 'vectorized', 8)
    """
    names: dict[PrimVar, PrimVar] = {}
    loops: list[str] = []
    inner: Stmt = stmt
    while isinstance(inner, For):
        loops.append(fresh_name(inner.loop_var.name, loops))
        if loops[-1] != inner.loop_var.name:
            names[inner.loop_var] = PrimVar(loops[-1], inner.loop_var.dtype)
        inner = inner.body
    sch = Schedule(_function_of(substitute(stmt, names)))
    steps(sch, [sch.get_loop(name) for name in loops])
    return sch.func.body


def _function_of(stmt: Stmt) -> PrimFunc:
    """A nest as the body of a function whose parameters are the buffers and variables that it does not bind."""
    bound: set[PrimVar | Buffer] = set()
    used: dict[PrimVar | Buffer, None] = {}
    for part in walk(stmt):
        if isinstance(part, For):
            bound.add(part.loop_var)
        elif isinstance(part, (IterVar, Let, Bind)):
            bound.add(part.var)
        elif isinstance(part, (AllocBuffer, DeclBuffer)):
            bound.add(part.buffer)
        elif isinstance(part, (Buffer, PrimVar)):
            used[part] = None
    free = [item for item in used if item not in bound]
    symbols = {size for item in free if isinstance(item, Buffer) for size in item.shape if isinstance(size, PrimExpr)}
    return PrimFunc(tuple(item for item in free if item not in symbols), stmt, name="nest")
