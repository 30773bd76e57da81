"""Where loops ask whether the caller was interrupted (`weft.runtime.device.interrupts`).

    while                       every iteration, or every so many that they have EVERY operations
    for                         the innermost loop of LONG operations and more, where sizes are known

A question costs a counter in a register most times, and a look at the clock every EVERY operations: no loop of a
usual kernel has one. Code without a runtime asks nothing.
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.instructions import binary, call, icmp, load, store
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.ir.structure.visit import children
from weft.ir.tensor import For, IfThenElse, Stmt, While
from weft.runtime.abi.frame import POLL

__all__ = ["Poll", "poll_of"]

EVERY = 1 << 14
LONG = 1 << 30
ALONE = 1 << 36
"""Iterations that no array has: below it, a loop without loops stays free of calls, for vectors."""


class Poll:
    """The question of one loop: `start` before it, `ask` in each iteration."""

    def __init__(self, emitter: KernelEmitter, work: int) -> None:
        self.emitter = emitter
        self.every = max(1, EVERY // max(1, work))
        self.left = emitter.w.alloca("i64")
        emitter.w.do(store("i64", self.every, self.left))

    def ask(self) -> None:
        """Leave the kernel when the caller was interrupted."""
        w = self.emitter.w
        due, known, on = w.label("poll.due"), w.label("poll.ask"), w.label("poll.on")
        left = w.emit(binary("sub", "i64", w.emit(load("i64", self.left)), 1))
        w.do(store("i64", left, self.left))
        w.branch(w.emit(icmp("sle", "i64", left, 0)), due, on, COLD)
        w.open(due)
        w.do(store("i64", self.every, self.left))
        asked = w.emit(load("ptr", frame_word(w, POLL)))
        w.branch(w.emit(icmp("ne", "ptr", asked, "null")), known, on)
        w.open(known)
        self.emitter.leave_if(w.emit(call("i32", asked, [("ptr", "%frame")])))
        w.jump(on)
        w.open(on)


COLD = ', !prof !{!"branch_weights", i32 1, i32 2000}'


def poll_of(emitter: KernelEmitter, stmt: For | While) -> Poll | None:
    """The question of a loop that is about to start; None for one that is short, or that others ask for."""
    if emitter.program.links_later:
        return None
    body = _work(stmt.body, emitter.work)
    if isinstance(stmt, While):
        return Poll(emitter, body)
    count = stmt.extent if isinstance(stmt.extent, int) else 0
    long = count * body >= LONG and (body >= EVERY // 16 or count >= ALONE)
    return Poll(emitter, body) if long and not _asks(stmt.body, emitter.work) else None


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
