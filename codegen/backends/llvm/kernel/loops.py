"""Loops: written out, in order, on threads; where they ask, what they store past the caches, how they are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, icmp, phi
from weft.codegen.backends.llvm.kernel.emitter import COLD, KernelEmitter, OpenLoop, StatementForm
from weft.codegen.backends.llvm.kernel.nontemporal import Streams
from weft.codegen.backends.llvm.kernel.parallel import emit_parallel, memory_before
from weft.codegen.backends.llvm.kernel.polls import ask, charge, is_bounded, part_of, poll_of
from weft.codegen.backends.llvm.kernel.scratch import in_slot, scratch_of
from weft.errors import TargetError
from weft.ir.kernel.prim import const
from weft.ir.node import replace
from weft.ir.structure.visit import walk
from weft.ir.tensor import Break, BufferStore, Continue, For, SeqStmt, Stmt, While
from weft.transform.autoschedule.nontemporal import STREAMS

__all__ = ["LOOPS"]

_UNROLL_COPIES = 256
_FEATURES = frozenset(("sse2", "avx", "avx2", "avx512f"))  # of processors, one of which nontemporal stores need


def _for(emitter: KernelEmitter, stmt: For) -> None:
    if stmt.kind == "vectorized":
        raise TargetError("llvm: vectorized loops must be lowered before code generation", code="W740", span=stmt.span)
    if stmt.kind == "parallel":
        scratch = scratch_of(emitter.function, stmt)
        if not emitter.program.serial and emit_parallel(emitter, stmt, scratch):
            return
        stmt = in_slot(stmt, scratch, const(0, "int64"))
    memory, loop = memory_before(stmt) if stmt.kind == "parallel" else ([], stmt)
    if memory:
        emitter.scoped(SeqStmt((*memory, replace(loop, kind="serial"))))
        return
    start, extent = emitter.size(stmt.start), emitter.size(stmt.extent)
    step = 1 if stmt.step is None else emitter.size(stmt.step)
    if (
        (stmt.kind == "unrolled" or extent == 1)
        and isinstance(start, int)
        and isinstance(extent, int)
        and isinstance(step, int)
        and step > 0
    ):
        count = max(0, -(-extent // step))
        if count * emitter.copies <= _UNROLL_COPIES:
            _unrolled(emitter, stmt, range(start, start + extent, step))
            return
    _loop(emitter, stmt, start, emitter.w.add(start, extent), step)


def _unrolled(emitter: KernelEmitter, stmt: For, values: range) -> None:
    outer, emitter.copies = emitter.copies, emitter.copies * max(1, len(values))
    streams = _streams_of(emitter, stmt) or emitter.streams
    done = emitter.w.label("unrolled.done")
    emitter.index.sums.depth += 1
    for value in values:
        following = emitter.w.label("unrolled")
        emitter.loops.append(OpenLoop(done, following, len(emitter.scopes)))
        emitter.loop_variables.add(stmt.loop_var)
        emitter.bind(stmt.loop_var, str(value), wide=value)
        if streams is emitter.streams:
            emitter.scoped(stmt.body)
        else:
            _step(emitter, stmt.body, streams)
        emitter.loops.pop()
        emitter.w.open_if_used(following)
    emitter.index.sums.depth -= 1
    emitter.w.open_if_used(done)
    emitter.copies = outer


def _loop(emitter: KernelEmitter, stmt: For, start: Size, end: Size, step: Size) -> None:
    some = start < end if isinstance(start, int) and isinstance(end, int) else None
    if some is False:
        return
    part = part_of(emitter, stmt)
    charge(emitter, stmt)
    if part:
        _loop_in_parts(emitter, stmt, start, end, part)
    else:
        _whole_loop(emitter, stmt, (start, end, step), is_entered=some is True)


def _loop_in_parts(emitter: KernelEmitter, stmt: For, start: Size, end: Size, size: int) -> None:
    """A loop of so many iterations at a time, which asks between its parts whether the caller was interrupted."""
    w = emitter.w
    body, between, following, done = (w.label(name) for name in ("part", "part.ask", "part.next", "part.done"))
    before = w.block_label
    enters = w.emit(icmp("slt", "i64", start, end))
    w.begin_loop()
    w.branch(enters, body, done)
    w.open(body)
    at, stop = f"%{body}.i", f"%{body}.n"
    w.define(at, phi("i64", (start, before), (stop, following)))
    left = w.sub(end, at)
    w.define(stop, binary("add", "i64", at, emitter.arith.binary("min", "uint64", str(left), str(size))))
    _whole_loop(emitter, stmt, (at, stop, 1), is_entered=True, after=done)
    w.branch(w.emit(icmp("ne", "i64", stop, end)), between, done, COLD)
    w.open(between)
    ask(emitter)
    w.open(following)
    w.jump(body)
    w.end_loop()
    w.open(done)


def _whole_loop(
    emitter: KernelEmitter, stmt: For, bounds: tuple[Size, Size, Size], *, is_entered: bool, after: str = ""
) -> None:
    """A loop over all of the bounds (start, end, step); `after` is where `break` goes, where that is not its end."""
    w = emitter.w
    start, end, step = bounds
    streams, poll = _streams_of(emitter, stmt), None if after else poll_of(emitter, stmt)
    body, following, done = (w.label(name) for name in ("for", "for.next", "for.done"))
    before = w.block_label
    enters = "" if is_entered else w.emit(icmp("slt", "i64", start, end))
    if is_bounded(emitter, stmt.extent):
        emitter.loop_variables.add(stmt.loop_var)
    if poll is not None:
        emitter.open_polls.append(poll)
    w.begin_loop()
    if enters:
        w.branch(enters, body, done)
    w.open(body)
    index, following_index = f"%{body}.i", f"%{body}.n"
    w.define(index, phi("i64", (start, before), (following_index, following)))
    if isinstance(start, int) and isinstance(end, int):
        w.ranges[index] = start, end - 1
    emitter.bind(stmt.loop_var, emitter.arith.cast("int64", stmt.loop_var.dtype, index), wide=index)
    emitter.loops.append(OpenLoop(after or done, following, len(emitter.scopes)))
    if poll is not None:
        poll.ask()
    _step(emitter, stmt.body, streams)
    emitter.loops.pop()
    if poll is not None:
        emitter.open_polls.pop()
    w.open(following)
    # The index stays below `end`, so adding the step once cannot overflow for any size that fits in memory.
    w.define(following_index, binary("add", "i64", index, step, "nsw"))
    more = w.emit(icmp("ne" if step == 1 else "slt", "i64", following_index, end))
    w.branch(more, body, done, _loop_metadata(emitter, stmt))
    w.end_loop()
    w.open(done)


def _streams_of(emitter: KernelEmitter, loop: For) -> Streams | None:
    """What a marked loop may store past the caches: a parameter that shares its memory with no other one."""
    least, params = loop.annotations.get(STREAMS), emitter.function.params
    if least is None or not emitter.noalias or not emitter.program.features & _FEATURES:
        return None
    stored = {part.buffer for part in walk(loop.body) if isinstance(part, BufferStore)}
    results = [buffer for buffer in stored if buffer.scope != "local"]
    if len(results) != 1 or results[0] not in params or params.index(results[0]) in emitter.shared:
        return None
    return Streams(emitter.w, results[0], emitter.view(results[0]).shape, least)


def _step(emitter: KernelEmitter, body: Stmt, streams: Streams | None) -> None:
    """The body of a loop, whose vectors may be stored together at its end."""
    outer, emitter.streams = emitter.streams, streams
    emitter.scoped(body)
    if streams is not None and streams.store():
        emitter.has_streamed = True
    emitter.streams = outer


def _loop_metadata(emitter: KernelEmitter, stmt: For) -> str:
    if stmt.kind != "unrolled" or emitter.explicit:
        return ""
    node = emitter.module.add_metadata('!{@self, !{!"llvm.loop.unroll.enable"}}')
    return f", !llvm.loop {node}"


def _while(emitter: KernelEmitter, stmt: While) -> None:
    w = emitter.w
    head, body, done = w.label("while"), w.label("while.body"), w.label("while.done")
    poll = poll_of(emitter, stmt)
    w.open(head)
    w.branch(emitter.value(stmt.condition), body, done)
    w.open(body)
    if poll is not None:
        poll.ask()
        emitter.open_polls.append(poll)
    emitter.loops.append(OpenLoop(done, head, len(emitter.scopes)))
    emitter.scoped(stmt.body)
    emitter.loops.pop()
    if poll is not None:
        emitter.open_polls.pop()
    if not w.terminated:
        w.jump(head)
    w.open(done)


def _break(emitter: KernelEmitter, stmt: Break) -> None:
    _escape(emitter, stmt, "break", lambda loop: loop.after)


def _continue(emitter: KernelEmitter, stmt: Continue) -> None:
    _escape(emitter, stmt, "continue", lambda loop: loop.following)


def _escape(emitter: KernelEmitter, stmt: Stmt, word: str, where: Callable[[OpenLoop], str]) -> None:
    if not emitter.loops:
        raise TargetError(f"llvm: {word} outside of a loop", code="W740", span=stmt.span)
    loop = emitter.loops[-1]
    emitter.free_from(loop.depth)
    emitter.w.jump(where(loop))


LOOPS: Mapping[type, StatementForm] = {For: _for, While: _while, Break: _break, Continue: _continue}
