"""Where loops ask whether the caller was interrupted (`weft.runtime.device.interrupts`).

    while                       every iteration, or every so many that they have EVERY operations
    for, of known size          the innermost loop of LONG operations and more
    for, of other sizes         the outermost one, and inside of it those whose ends memory does not bound; so does
                                one of known size with such a loop inside
        short iterations        the loop goes in parts of QUANTUM operations, and asks between them
        others                  after so many iterations that they have EVERY or QUANTUM operations, as the sizes say
        sizes that change       inside of a loop that asks: counted as such a loop begins (`charge`)

A question costs a counter in a register most times, and a look at the clock after EVERY or QUANTUM operations: no loop
of a usual kernel of known size has one. Code without a runtime asks nothing.
"""

from __future__ import annotations

from typing import Protocol

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import Instruction, binary, call, icmp, load, store
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.kernel.emitter import COLD, KernelEmitter
from weft.codegen.backends.llvm.kernel.work import reads_memory, variables_in, work_of
from weft.ir.structure.visit import children, statements, walk
from weft.ir.tensor import BufferLoad, Extent, For, IfThenElse, PrimExpr, PrimVar, Stmt, While
from weft.runtime.abi.frame import POLL
from weft.transform.analysis.access_pattern import most_of

__all__ = ["Poll", "ask", "charge", "is_bounded", "may_be_long", "part_of", "poll_of"]

EVERY = 1 << 14
QUANTUM = 1 << 24
"""Operations between two questions: a few milliseconds, and less than 100 of the slowest ones."""
SHORT = 1 << 8
LONG = 1 << 30
ALONE = 1 << 36
"""Iterations that no array has: below it, a loop in steps stays free of calls, for vectors."""


class Leaves(Protocol):
    """What emits a function that can return a status: a kernel, or a graph function."""

    @property
    def w(self) -> FunctionWriter: ...

    def leave_if(self, status: str) -> None: ...


class Poll:
    """The question of one loop: made before it, `ask` in each iteration, which counts for so much of `every`."""

    def __init__(self, emitter: Leaves, every: int, amount: Size = 1, known: frozenset[PrimVar] | None = None) -> None:
        self.emitter = emitter
        self.every = every
        self.amount = amount
        self.known = known
        """The variables that sizes may follow from for the amount to count them; None where it counts none."""
        self.left = emitter.w.alloca("i64")
        emitter.w.do(store("i64", every, self.left))

    def ask(self, amount: Size | None = None) -> None:
        """Leave the kernel when the caller was interrupted; `amount` counts in place of that of an iteration."""
        w = self.emitter.w  # the counter stays in memory: the registers are for what the loop computes
        due, on = w.label("poll.due"), w.label("poll.on")
        before = w.emit(Instruction("load volatile", "i64", (self.left,)))
        left = w.emit(binary("sub", "i64", before, self.amount if amount is None else amount))
        w.do(Instruction("store volatile", "i64", (left, self.left)))
        w.branch(w.emit(icmp("sle", "i64", left, 0)), due, on, COLD)
        w.open(due)
        w.do(store("i64", self.every, self.left))
        ask(self.emitter)
        w.jump(on)
        w.open(on)


def ask(emitter: Leaves) -> None:
    """Leave the kernel when the caller was interrupted: the question itself."""
    w = emitter.w
    known, on = w.label("poll.ask"), w.label("poll.asked")
    asked = w.emit(load("ptr", frame_word(w, POLL)))
    w.branch(w.emit(icmp("ne", "ptr", asked, "null")), known, on)
    w.open(known)
    emitter.leave_if(w.emit(call("i32", asked, [("ptr", "%frame")])))
    w.open(on)


def poll_of(emitter: KernelEmitter, stmt: For | While) -> Poll | None:
    """The question of a loop that is about to start; None for one that is short, or that others ask for."""
    if emitter.program.links_later:
        return None
    body = _work(stmt.body, emitter.work)
    if isinstance(stmt, While):
        return Poll(emitter, EVERY, max(1, min(body, EVERY)))
    if part_of(emitter, stmt):
        return None
    if not isinstance(stmt.extent, int) or _has_unknown_loops(stmt.body):
        if not _may_be_long(emitter, stmt):
            return None
        return Poll(emitter, QUANTUM, _amount(emitter, stmt.body), frozenset(emitter.variables))
    count = stmt.extent
    long = count * body >= LONG and (body >= EVERY // 16 or count >= ALONE)
    return Poll(emitter, max(1, EVERY // max(1, body))) if long and not _asks(stmt.body, emitter.work) else None


def charge(emitter: KernelEmitter, stmt: For) -> None:
    """Count the work of a loop that is about to start, where the loop outside that asks does not know its size."""
    if not emitter.open_polls or most_of(stmt.extent) is not None:
        return
    poll = emitter.open_polls[-1]
    known = poll.known or frozenset[PrimVar]()
    if all(v in known for v in variables_in(stmt.extent)) and not reads_memory(stmt.extent):
        return
    count = emitter.arith.binary("min", "int64", str(emitter.size(stmt.extent)), str(QUANTUM))
    work = emitter.w.mul(count, _amount(emitter, stmt.body))
    poll.ask(emitter.arith.binary("min", "int64", str(work), str(QUANTUM)))


def _amount(emitter: KernelEmitter, body: Stmt) -> str:
    """The operations of an iteration, as far as the sizes say before the loop."""
    amount = emitter.arith.binary("max", "int64", str(work_of(emitter, body)), "1")
    return emitter.arith.binary("min", "int64", amount, str(QUANTUM))


def part_of(emitter: KernelEmitter, stmt: For) -> int:
    """The iterations after which a loop of short ones asks, if it may be long; 0 for other loops."""
    if emitter.program.links_later or stmt.step not in (None, 1):
        return 0
    body = _work(stmt.body, emitter.work)
    if isinstance(stmt.extent, int):
        long = stmt.extent * body >= LONG and body < EVERY // 16 and not _has_unknown_loops(stmt.body)
        return QUANTUM // max(1, body) if long and not _asks(stmt.body, emitter.work) else 0
    if body >= SHORT or not _may_be_long(emitter, stmt) or _has_unknown_loops(stmt.body):
        return 0
    return QUANTUM // max(1, body)


def _may_be_long(emitter: KernelEmitter, stmt: For) -> bool:
    """Whether a loop of unknown size has to ask: nothing outside of it does, or no memory bounds it."""
    counted = any(poll.known is not None for poll in emitter.open_polls)
    return emitter.asks and (not counted or not is_bounded(emitter, stmt.extent))


def is_bounded(emitter: KernelEmitter, extent: Extent) -> bool:
    """Whether an extent follows from sizes of buffers and from other such loops alone, and is none of LONG loops."""
    most = most_of(extent)
    if most is not None and most >= LONG:
        return False
    if not isinstance(extent, PrimExpr):
        return True
    parts = list(walk(extent))
    bound = {*emitter.symbols, *emitter.loop_variables}
    return not any(isinstance(part, BufferLoad) or (isinstance(part, PrimVar) and part not in bound) for part in parts)


def _has_unknown_loops(stmt: Stmt) -> bool:
    loops = (part for part in statements(stmt) if isinstance(part, (For, While)))
    return any(isinstance(part, While) or not isinstance(part.extent, int) for part in loops)


def may_be_long(stmt: Stmt, known: dict[Stmt, int]) -> bool:
    """Whether a statement may run for so long that it has to ask somewhere."""
    return _work(stmt, known) >= LONG or _has_unknown_loops(stmt)


def _work(stmt: Stmt, known: dict[Stmt, int]) -> int:
    """The least number of statements that a statement runs, as far as sizes are known."""
    found = known.get(stmt)
    if found is None:
        inner = [_work(part, known) for part in children(stmt) if isinstance(part, Stmt)]
        times = stmt.extent if isinstance(stmt, For) and isinstance(stmt.extent, int) else 1
        found = known[stmt] = times * max(1, min(inner) if isinstance(stmt, IfThenElse) else sum(inner))
    return found


def _asks(stmt: Stmt, known: dict[Stmt, int]) -> bool:
    """Whether a loop inside asks already, often enough."""
    if isinstance(stmt, (For, While)) and _work(stmt, known) >= LONG:
        return True
    return any(_asks(part, known) for part in children(stmt) if isinstance(part, Stmt))
