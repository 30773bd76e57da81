"""ParallelizeOuterLoops: loops of kernels whose iterations are independent are marked parallel.

    for i in range(n):                        for i in T.parallel(n):
        for j in range(64):                       for j in range(64):
            y[i, j] = f(x[i, j])                      y[i, j] = f(x[i, j])

Of the loops around a statement the outermost whose iterations are proved independent
(`weft.transform.analysis.accesses`) is taken, or one further in when that has more iterations to share out. Where steps
follow one another, as the copies and the tiles of a packed product do, each has a loop of its own. Where the extent is
a symbol, as that of a batch, loops inside of it are marked, too: the back end shares these where the outer one turns
out to be short. A loop that a rule has annotated `SHARED` goes first. Whether it pays to use several threads is decided
when the kernel runs, from the sizes. Sums are never split, so results do not depend on the number of threads.

The marks are steps of a schedule (`sch.parallel`), which the decision of the kernel holds. Steps that are written there
before the pass runs are done in their place, each of them proved, or refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import ClassVar

from weft.dtypes import item_bytes
from weft.errors import PassError
from weft.ir import IRModule, replace
from weft.ir.kernel.intrinsics import WRITES_FIRST
from weft.ir.kernel.nests import perfect_nest
from weft.ir.structure.visit import nodes_of, statements
from weft.ir.tensor import (
    AllocBuffer,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import STACK_BYTES
from weft.transform.analysis.accesses import iterations_are_apart, outliving_buffers
from weft.transform.autoschedule.knobs import Knobs, as_knobs, in_context
from weft.transform.autoschedule.primitives import mark_parallel, obeying, pinned_steps
from weft.transform.autoschedule.rules.loops import SHARED
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.decisions import DECISIONS, Decision, decisions_of, refused, with_decisions
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops
from weft.transform.schedule import Schedule

__all__ = ["PARALLEL", "ParallelizeOuterLoops"]

PARALLEL = "parallel"
"""The kind of the decisions."""


@dataclass(frozen=True)
class ParallelizeOuterLoops(FunctionPass):
    """Mark loops that several threads may share.

    An outer loop of less than the knob `parallel_iterations` gives way to a longer one directly inside of it, or is
    marked with it: the iterations of both are shared as those of one loop. Loops whose work is known to be below
    `parallel_from` stores stay as they are.
    """

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    aliases: ClassVar[tuple[str, ...]] = ("parallelize",)
    knobs: Knobs = field(default=Knobs())
    former_options: ClassVar[Mapping[str, tuple[str, str]]] = {
        "enough": ("knobs", "parallel_iterations"),
        "least": ("knobs", "parallel_from"),
    }

    def __post_init__(self) -> None:
        if not isinstance(self.knobs, Knobs):
            object.__setattr__(self, "knobs", as_knobs(self.knobs))

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with loops marked; itself when there are none, or the user marked some already."""
        pin = _pin_of(name, function)
        if _marked(function.body, ("parallel", "thread_binding")):
            if pin is not None:
                raise _too_late(pin)
            return function
        if pin is not None:
            return _obeyed(function, pin)
        lowered = lower_blocks(function)
        knobs = in_context(self.knobs)
        nests = list(_nests(lowered.body))
        # The proof is of the form that the back end asks of again.
        vectors = lower_vector_loops(lowered).body
        emitted = {part.loop_var: part for part in statements(vectors) if isinstance(part, For)}
        loops = [loop for nest in nests for loop in _loop_of(nest, emitted, knobs)]
        marked = mark_parallel(function, loops) if loops else None
        if DECISIONS in function.attrs:  # a kernel that rules arranged says what became of its loops
            steps = marked.trace.steps() if marked is not None else ()
            function = _recorded(name, function, nests, loops, steps, knobs)
        return function if marked is None else replace(function, body=marked.stmt)


def _marked(body: Stmt, kinds: tuple[str, ...] = ("parallel",)) -> tuple[str, ...]:
    """The loops of some kinds, by name."""
    loops = [part for part in statements(body) if isinstance(part, For)]
    return tuple(loop.loop_var.name for loop in loops if loop.kind in kinds)


def _pin_of(name: str, function: PrimFunc) -> Decision | None:
    """What somebody wrote of the threads of a kernel; PassError W528 where it is about something else."""
    pins = [item for item in decisions_of(function) if item.kind == PARALLEL and not item.is_intact]
    for pin in pins:
        if pin.about != name:
            raise refused(f"no loops called {pin.about!r} can be scheduled as {PARALLEL}", hint=f"it is {name!r}")
        if others := sorted(pin.values.keys() - {"loops", "schedule"}):
            raise refused(f"{PARALLEL} of {name!r} has no {others[0]!r}", hint="to choose: schedule")
        if "schedule" not in pin.values:
            raise refused(f"{PARALLEL} of {name!r}: loops follow from schedule", hint="to choose: schedule")
    return pins[0] if pins else None


def _too_late(pin: Decision) -> PassError:
    """The error for a decision about loops that are marked already: W529 where it was edited, else W528."""
    if pin.applied:
        hint = "edit it before the phase `schedule`, or take `applied` and the marks back"
        return PassError(
            f"the decision about {pin.about!r} was edited after its loops were made", code="W529", hint=hint
        )
    return refused(f"{PARALLEL} of {pin.about!r}: the loops are marked already")


def _obeyed(function: PrimFunc, pin: Decision) -> PrimFunc:
    """The kernel after the steps that somebody chose; PassError W528 for steps that do not apply."""
    sch = Schedule(function)
    trace = pinned_steps(pin)
    with obeying(pin):
        trace.apply_to(sch)
    values = {"loops": _marked(sch.func.body), "schedule": trace.steps()}
    decision = Decision(pin.about, PARALLEL, values, "pinned: schedule")
    return with_decisions(replace(function, body=sch.func.body), [decision])


def _recorded(
    name: str, function: PrimFunc, nests: list[For], loops: list[For], steps: tuple[str, ...], knobs: Knobs
) -> PrimFunc:
    names = tuple(loop.loop_var.name for loop in loops)
    if names:
        reason = "iterations are proved independent"
    elif all(_stores(nest, knobs) < knobs.parallel_from for nest in nests):
        reason = f"too little work: less than {knobs.parallel_from} stores"
    else:
        reason = "no loop has iterations that are proved independent"
    decision = Decision(name, PARALLEL, {"loops": names, "schedule": steps}, reason)
    return function if decision.done() in decisions_of(function) else with_decisions(function, [decision])


def _loop_of(nest: For, emitted: Mapping[PrimVar, For], knobs: Knobs) -> Iterator[For]:
    """The loop of a nest to mark; where there is none, those of the nests inside of it."""
    loops, body = perfect_nest(nest)
    plain = [loop for loop in loops if loop.kind == "serial" and loop.step in (None, 1)]
    if _stores(nest, knobs) < knobs.parallel_from:
        return

    def order(loop: For) -> tuple[bool, int]:
        count, enough = _count(loop, knobs), knobs.parallel_iterations
        is_certain = isinstance(loop.extent, int) and 2 * count >= enough
        if is_certain and any(not isinstance(inner.extent, int) for inner in plain[plain.index(loop) :]):
            count = enough  # a loop inside of it may turn out to be short
        return SHARED not in loop.annotations, -min(count, enough)

    for loop in sorted(plain, key=order):
        if _count(loop, knobs) > 1 and _is_apart(loop, emitted):
            if not isinstance(loop.extent, int):  # those first: a step inside of a marked loop has it proved again
                yield from _known_loops(loop.body, emitted, knobs)
                yield loop
            else:
                yield from _with_neighbour(loop, plain, emitted, knobs)
            return
    for inner in _nests(body):
        yield from _loop_of(inner, emitted, knobs)


def _is_apart(loop: For, emitted: Mapping[PrimVar, For]) -> bool:
    same = emitted.get(loop.loop_var, loop)
    return iterations_are_apart(same, outliving_buffers(same))


def _with_neighbour(loop: For, plain: list[For], emitted: Mapping[PrimVar, For], knobs: Knobs) -> list[For]:
    """A loop of known extent with the one directly around it, or inside of it where it is short, from the inside out.

    The back end shares the iterations of both at once: threads are called once and not for each outer iteration. There
    are loops inside of both, beside which finding the iteration is little, and no memory that each would need.
    """
    around = next((x for x in plain if x.body is loop), None)
    is_short = _count(loop, knobs) < knobs.parallel_iterations
    inside = next((x for x in plain if x is loop.body), None) if is_short else None
    for outer, inner in ((around, loop), (loop, inside)):
        if outer is None or inner is None or not _has_loops(inner.body) or not _is_small(inner.body):
            continue
        other = outer if inner is loop else inner
        few = isinstance(outer.extent, int) and 1 < outer.extent < knobs.parallel_iterations
        if few and isinstance(inner.extent, int) and inner.extent > 1 and _is_apart(other, emitted):
            return [inner, outer]
    return [loop]


def _has_loops(body: Stmt) -> bool:
    return any(loop.kind != "unrolled" for loop in nodes_of(body, For))


def _is_small(body: Stmt) -> bool:
    """Whether what a statement allocates is small and of known size."""
    total = 0
    for part in statements(body):
        if isinstance(part, AllocBuffer):
            extents = [extent for extent in part.buffer.shape if isinstance(extent, int)]
            if len(extents) < len(part.buffer.shape):
                return False
            total += math.prod(extents) * item_bytes(part.buffer.dtype)
    return total <= STACK_BYTES


def _known_loops(body: Stmt, emitted: Mapping[PrimVar, For], knobs: Knobs) -> Iterator[For]:
    """The loops of known extents to mark inside of one that may turn out to be short."""
    for nest in _nests(body):
        yield from (loop for loop in _loop_of(nest, emitted, knobs) if isinstance(loop.extent, int))


def _nests(stmt: Stmt) -> Iterator[For]:
    """The outermost loops, through sequences and conditionals."""
    if isinstance(stmt, SeqStmt):
        for part in stmt.stmts:
            yield from _nests(part)
    elif isinstance(stmt, IfThenElse):
        yield from _nests(stmt.then_body)
        if stmt.else_body is not None:
            yield from _nests(stmt.else_body)
    elif isinstance(stmt, AttrStmt):
        yield from _nests(stmt.body)
    elif isinstance(stmt, For):
        yield stmt


def _count(loop: For, knobs: Knobs) -> int:
    return loop.extent if isinstance(loop.extent, int) else knobs.typical_extent


def _stores(stmt: Stmt, knobs: Knobs) -> int:
    """How many elements a statement stores, roughly."""
    if isinstance(stmt, SeqStmt):
        return sum(_stores(part, knobs) for part in stmt.stmts)
    if isinstance(stmt, IfThenElse):
        return _stores(stmt.then_body, knobs) + (0 if stmt.else_body is None else _stores(stmt.else_body, knobs))
    if isinstance(stmt, For):
        return _count(stmt, knobs) * _stores(stmt.body, knobs)
    if isinstance(stmt, AttrStmt):
        return _stores(stmt.body, knobs)
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, PrimCall) and stmt.value.op in WRITES_FIRST:
        size = stmt.value.args[2]
        return size.value if isinstance(size, IntImm) else knobs.typical_extent
    return sum(1 for part in statements(stmt) if isinstance(part, BufferStore))
