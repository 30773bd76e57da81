"""Rules written with the primitives of schedules: a loop nest as a function of its own, scheduled, and taken back.

    arranged(stmt, steps)    steps(sch, loops): the schedule of the nest, the handles of its loops from the outside in
    arrange(stmt, steps)     the same, with the trace: the steps as data, which repeat it in a schedule of the kernel
    mark_parallel(function, loops)    loops of a whole kernel that were proved independent, marked; with the trace
    pinned_steps(decision)   the steps that somebody wrote into a decision; where they do not apply, `obeying` refuses

What a primitive proves (loops that may run in another order, iterations that are independent) is proved of the nest
alone, so that it holds wherever the nest stands; a step that does not apply raises its ScheduleError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from weft.errors import ScheduleError, described
from weft.ir import replace, substitute, walk
from weft.ir.dim import fresh_name
from weft.ir.kernel.nests import perfect_nest
from weft.ir.structure.visit import rewrite_statements, statements
from weft.ir.tensor import AllocBuffer, Bind, Buffer, DeclBuffer, For, IterVar, Let, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.support.records import dataclass
from weft.transform.analysis.loops.points import variables_in
from weft.transform.infra.decisions import Decision, refused
from weft.transform.schedule import LoopRV, Schedule, Trace
from weft.transform.schedule.trace import Instruction
from weft.transform.schedule.trace_text import trace_of_steps

__all__ = ["Arranged", "arrange", "arranged", "mark_parallel", "obeying", "pinned_steps"]

Steps = Callable[[Schedule, list[LoopRV]], object]
"""(schedule of a nest, its loops from the outside in) -> nothing that is looked at."""


@dataclass(frozen=True)
class Arranged:
    """A nest after the steps of a schedule, and these steps."""

    stmt: Stmt
    trace: Trace


def arranged(stmt: For, steps: Steps) -> Stmt:
    """The nest after steps of a schedule; ScheduleError where one of them does not apply.

    >>> from weft.ir import te
    >>> A = te.placeholder((64,), name="A")
    >>> nest = te.create_prim_func([A, te.compute((64,), lambda i: A[i] * 2.0, name="B")], "twice").body
    >>> new = arranged(nest, lambda sch, loops: sch.vectorize(sch.split(loops[0], [None, 8])[1]))
    >>> new.extent, new.body.kind, new.body.extent
    (8, 'vectorized', 8)
    """
    return arrange(stmt, steps).stmt


def arrange(
    stmt: For, steps: Steps, *, sizes: Mapping[PrimVar, PrimExpr] | None = None, verify: bool = True
) -> Arranged:
    """The nest after steps of a schedule, and the trace of these; ScheduleError where one of them does not apply.

    `sizes` are what some variables of the nest stand for, which are not negative; they are put back afterwards.
    Without `verify` the function is not verified after each step: for rules whose results are verified as a whole.
    """
    loops, _ = perfect_nest(stmt)
    names: dict[str, PrimVar] = {}
    for loop in loops:
        name = fresh_name(loop.loop_var.name, names)
        same = name == loop.loop_var.name
        names[name] = loop.loop_var if same else PrimVar(name, loop.loop_var.dtype)
    renamed = {loop.loop_var: new for loop, new in zip(loops, names.values(), strict=True) if loop.loop_var is not new}
    nest: Stmt = substitute(stmt, renamed) if renamed else stmt
    sch = Schedule(_function_of(nest, list(sizes or ())), verify=verify)
    steps(sch, [sch.get_loop(name) for name in names])
    body = sch.func.body
    return Arranged(substitute(body, sizes) if sizes else body, sch.trace.simplified())


def mark_parallel(function: PrimFunc, loops: Sequence[For]) -> Arranged:
    """The body with loops marked whose iterations the caller has proved independent, and the steps that mark them."""
    every = dict.fromkeys(part.loop_var for part in statements(function.body) if isinstance(part, For))
    steps: list[Instruction] = []
    for loop in loops:
        name, handle = loop.loop_var.name, LoopRV()
        same = [variable for variable in every if variable.name == name]
        number = {"number": same.index(loop.loop_var)} if len(same) > 1 else {}
        steps.append(Instruction("get_loop", {"name": name, **number}, (handle,)))
        steps.append(Instruction("parallel", {"loop": handle}))
    marked = {loop.loop_var for loop in loops}

    def mark(stmt: Stmt) -> For | None:
        return replace(stmt, kind="parallel") if isinstance(stmt, For) and stmt.loop_var in marked else None

    return Arranged(rewrite_statements(function.body, mark), Trace(steps))


def pinned_steps(decision: Decision) -> Trace:
    """The steps of a decision that somebody wrote; PassError W528 for what is no list of steps."""
    steps = decision.values["schedule"]
    if not isinstance(steps, tuple):
        raise refused(f"{decision.kind} of {decision.about!r}: schedule is a list of steps, got {described(steps)}")
    with obeying(decision):
        return trace_of_steps(steps)


@contextmanager
def obeying(decision: Decision) -> Iterator[None]:
    """Steps of a decision: one that does not apply is PassError W528."""
    try:
        yield
    except ScheduleError as error:
        message = f"{decision.kind} of {decision.about!r}: {error.code}: {error.message}"
        raise refused(message, hint=error.hint) from None


def _function_of(stmt: Stmt, sizes: Sequence[PrimVar] = ()) -> PrimFunc:
    """A nest as the body of a function whose parameters are the buffers and variables that it does not bind.

    Variables in the shapes of its buffers are symbols, and so are some more: sizes of a buffer that nothing uses.
    """
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
    free = [*(item for item in used if item not in bound), *([Buffer("sizes", tuple(sizes), "int8")] if sizes else [])]
    symbols = {x for item in free if isinstance(item, Buffer) for x in variables_in(*item.shape)}
    return PrimFunc(tuple(item for item in free if item not in symbols), stmt, name="nest")
