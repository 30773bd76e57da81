"""Tensor-level functions to LLVM functions.

    kernel ::= int32 weft.kernel.<name>(frame, buffer pointers and scalars in order, symbols as int64, [result pointer])

The function has no blocks and no vectorized loops any more (`weft.transform.kernel.lower_blocks`,
`lower_vector_loops`). The
result is 0, or 1 after a failure that is recorded in the frame, or 2 when a callback raised. Memory of a kernel lives
on the stack when it is small and of known size, else on the heap, and is freed on every way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import (
    binary,
    call,
    icmp,
    phi,
)
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program, kernel_symbol
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.kernel.calls import KernelCalls
from weft.codegen.backends.llvm.kernel.expressions import dtype_of
from weft.codegen.backends.llvm.kernel.failure_values import integers_seen
from weft.codegen.backends.llvm.kernel.frame import WARM, KernelFrame
from weft.codegen.backends.llvm.kernel.nontemporal import Streams, streams_of
from weft.codegen.backends.llvm.kernel.parallel import emit_parallel
from weft.codegen.backends.llvm.kernel.polls import poll_of
from weft.codegen.host.kernels import result_dtype, shared_positions
from weft.errors import TargetError
from weft.ir.structure.recursion import deep_recursion
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    PREFETCH,
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Break,
    Buffer,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.runtime.abi.frame import VALUE_COUNT
from weft.transform.analysis.accesses import memory_of
from weft.transform.memory.share_memory import SHARES_MEMORY

__all__ = ["emit_kernel"]

UNROLL_COPIES = 256


@dataclass
@dataclass
class _Loop:
    """Where `break` and `continue` go, and how many scopes are open outside."""

    after: str
    following: str
    depth: int


def emit_kernel(
    module: ModuleWriter, program: Program, name: str, function: PrimFunc, *, noalias: bool, symbol: str = ""
) -> None:
    """Emit one tensor-level function into a module, under the symbol of its name or another one."""
    KernelEmitter(module, program, name, function, noalias, symbol or kernel_symbol(name)).emit()


class KernelEmitter(KernelCalls):
    """Emits the body of one function."""

    def __init__(
        self, module: ModuleWriter, program: Program, name: str, function: PrimFunc, noalias: bool, symbol: str
    ) -> None:
        super().__init__(module, program, name, function, noalias, symbol)
        self.loops: list[_Loop] = []
        self.copies = 1
        self.stores = False
        self.streams: Streams | None = None

    def emit(self) -> None:
        """Emit the whole function."""
        with deep_recursion():  # nesting of statements and expressions follows the user's program
            self._parameters()
            self.statement(self.function.body)
        self.leave(0)
        self.w.finish(beside=bool(self.parallel_loops) and not self.stores)

    def statement(self, stmt: Stmt) -> None:
        """Emit one statement."""
        method = _STATEMENTS.get(type(stmt))
        if method is None:
            raise TargetError(
                f"llvm: a {type(stmt).__name__} must be lowered before code generation", code="W740", span=stmt.span
            )
        method(self, stmt)

    def _sequence(self, stmt: SeqStmt) -> None:
        self.scopes.open.append([])
        for part in stmt.stmts:
            self.statement(part)
        if not self.w.terminated:
            self.free_from(len(self.scopes.open) - 1)
        self.scopes.open.pop()

    def _scoped(self, stmt: Stmt) -> None:
        if isinstance(stmt, SeqStmt):
            self._sequence(stmt)
        else:
            self._sequence(SeqStmt((stmt,)))

    def _bind(self, stmt: Bind) -> None:
        wide = (
            self.size(stmt.value)
            if dtypes.is_signed(stmt.var.dtype) and dtypes.lanes(stmt.var.dtype) == 1 and self.is_index(stmt.value)
            else None
        )
        self.bind(stmt.var, self.value(stmt.value), wide)

    def is_index(self, expr: PrimExpr) -> bool:
        """Whether the value is index arithmetic, whose exact 64-bit form is worth having next to the narrow one."""
        return dtypes.bits(expr.dtype) < 64 and self.is_cheap(expr)

    def _store(self, stmt: BufferStore) -> None:
        self.stores = True
        view = self.view(stmt.buffer)
        value = self._running_sum(stmt) or self.value(stmt.value)
        dtype = stmt.value.dtype
        if dtype != stmt.buffer.dtype and dtypes.element(dtype) != dtypes.element(stmt.buffer.dtype):
            target = dtypes.with_lanes(dtypes.element(stmt.buffer.dtype), dtypes.lanes(dtype))
            value, dtype = self.arith.cast(dtype, target, value), target
        where = self.offset(view, stmt.indices)
        if where.lanes > 1 and dtypes.lanes(dtype) == 1:
            value, dtype = self.splat(value, dtype, where.lanes), dtypes.with_lanes(dtype, where.lanes)
        mask = None if stmt.predicate is None else self.mask(stmt.predicate, dtype)
        if self.streams is not None and stmt.buffer is self.streams.result and mask is None:
            if self.streams.hold(self, view, where, dtype, value):
                return
        self.store(view, where, dtype, value, mask)

    def _running_sum(self, stmt: BufferStore) -> str | None:
        """`x[i] = x[i] + term` of floats with leave to sum in another order, which vector code needs (from opt 2)."""
        update = stmt.value
        if self.program.opt < 2 or not isinstance(update, Binary) or update.kind != "add":
            return None
        old = update.a
        if (
            not isinstance(old, BufferLoad)
            or old.buffer is not stmt.buffer
            or update.dtype not in ("float32", "float64")
        ):
            return None
        if not all(a is b or structural_equal(a, b) for a, b in zip(old.indices, stmt.indices, strict=True)):
            return None
        before = self.value(old)
        term = self.value(update.b)
        return self.w.emit(binary("fadd", value_type(update.dtype), before, term, "reassoc contract"))

    def _for(self, stmt: For) -> None:
        if stmt.kind == "vectorized":
            raise TargetError(
                "llvm: vectorized loops must be lowered before code generation", code="W740", span=stmt.span
            )
        if stmt.kind == "parallel" and not self.program.serial and emit_parallel(self, stmt):
            return
        start, extent = self.size(stmt.start), self.size(stmt.extent)
        step = 1 if stmt.step is None else self.size(stmt.step)
        if (
            (stmt.kind == "unrolled" or extent == 1)
            and isinstance(start, int)
            and isinstance(extent, int)
            and isinstance(step, int)
            and step > 0
        ):
            count = max(0, -(-extent // step))
            if count * self.copies <= UNROLL_COPIES:
                self._unrolled(stmt, range(start, start + extent, step))
                return
        self._loop(stmt, start, self.w.add(start, extent), step)

    def _unrolled(self, stmt: For, values: range) -> None:
        outer, self.copies = self.copies, self.copies * max(1, len(values))
        streams = streams_of(self, stmt) or self.streams
        done = self.w.label("unrolled.done")
        for value in values:
            following = self.w.label("unrolled")
            self.loops.append(_Loop(done, following, len(self.scopes.open)))
            self.bind(stmt.loop_var, str(value), wide=value)
            if streams is self.streams:
                self._scoped(stmt.body)
            else:
                self._step(stmt.body, streams)
            self.loops.pop()
            self.w.open_if_used(following)
        self.w.open_if_used(done)
        self.copies = outer

    def emit_loop_kernel(self, symbol: str, function: PrimFunc, buffers: Sequence[Buffer]) -> str:
        """Emit the body of a parallel loop, whose first parameters are buffers of this function; gives its spelling."""
        shared = shared_positions(self.function)
        own: dict[object, int] = {param: i for i, param in enumerate(self.function.params)}
        places = [own.get(memory_of(buffer), -1) for buffer in buffers]
        pairs = tuple((i, j) for j, b in enumerate(places) for i, a in enumerate(places[:j]) if b in shared.get(a, ()))
        if pairs:
            function = function.with_attr(SHARES_MEMORY, pairs)
        part = self.module.part()
        emitter = KernelEmitter(part, self.program, function.name, function, self.noalias, symbol)
        emitter.emit()
        self.module.add(part, explicit=emitter.explicit)
        return self.module.spelled(symbol)

    def _loop(self, stmt: For, start: Size, end: Size, step: Size) -> None:
        w = self.w
        some = start < end if isinstance(start, int) and isinstance(end, int) else None
        if some is False:
            return
        streams, poll = streams_of(self, stmt), poll_of(self, stmt)
        body, following, done = (w.label(name) for name in ("for", "for.next", "for.done"))
        before = w.block_label
        enters = w.emit(icmp("slt", "i64", start, end)) if some is None else ""
        w.begin_loop()
        if enters:
            w.branch(enters, body, done)
        w.open(body)
        index, following_index = f"%{body}.i", f"%{body}.n"
        w.define(index, phi("i64", (start, before), (following_index, following)))
        if isinstance(start, int) and isinstance(end, int):
            w.ranges[index] = start, end - 1
        self.bind(stmt.loop_var, self.arith.cast("int64", stmt.loop_var.dtype, index), wide=index)
        self.loops.append(_Loop(done, following, len(self.scopes.open)))
        if poll is not None:
            poll.ask()
        self._step(stmt.body, streams)
        self.loops.pop()
        w.open(following)
        # The index stays below `end`, so adding the step once cannot overflow for any size that fits in memory.
        w.define(following_index, binary("add", "i64", index, step, "nsw"))
        more = w.emit(icmp("ne" if step == 1 else "slt", "i64", following_index, end))
        w.branch(more, body, done, self._loop_metadata(stmt))
        w.end_loop()
        w.open(done)

    def _step(self, body: Stmt, streams: Streams | None) -> None:
        """The body of a loop, whose vectors may be stored together at its end."""
        outer, self.streams = self.streams, streams
        self._scoped(body)
        if streams is not None and streams.store():
            self.has_streamed = True
        self.streams = outer

    def _loop_metadata(self, stmt: For) -> str:
        if stmt.kind != "unrolled" or self.explicit:
            return ""
        node = self.module.add_metadata('!{@self, !{!"llvm.loop.unroll.enable"}}')
        return f", !llvm.loop {node}"

    def _while(self, stmt: While) -> None:
        w = self.w
        head, body, done = w.label("while"), w.label("while.body"), w.label("while.done")
        poll = poll_of(self, stmt)
        w.open(head)
        w.branch(self.value(stmt.condition), body, done)
        w.open(body)
        if poll is not None:
            poll.ask()
        self.loops.append(_Loop(done, head, len(self.scopes.open)))
        self._scoped(stmt.body)
        self.loops.pop()
        if not w.terminated:
            w.jump(head)
        w.open(done)

    def _if(self, stmt: IfThenElse) -> None:
        w = self.w
        then, other, done = w.label("then"), w.label("else"), w.label("endif")
        w.branch(self.value(stmt.condition), then, other if stmt.else_body is not None else done)
        w.open(then)
        self._scoped(stmt.then_body)
        if stmt.else_body is not None:
            if not w.terminated:
                w.jump(done)
            w.open(other)
            self._scoped(stmt.else_body)
        w.open(done)

    def _break(self, stmt: Break) -> None:
        self._escape(stmt, "break", lambda loop: loop.after)

    def _continue(self, stmt: Continue) -> None:
        self._escape(stmt, "continue", lambda loop: loop.following)

    def _escape(self, stmt: Stmt, word: str, where: Callable[[_Loop], str]) -> None:
        if not self.loops:
            raise TargetError(f"llvm: {word} outside of a loop", code="W740", span=stmt.span)
        loop = self.loops[-1]
        self.free_from(loop.depth)
        self.w.jump(where(loop))

    def _return(self, stmt: Return) -> None:
        dtype = result_dtype(self.function)
        if stmt.value is not None and dtype:
            value = self.arith.cast(stmt.value.dtype, dtype, self.value(stmt.value))
            self._write(dtype, "%result", value)
        elif stmt.value is not None:
            self.value(stmt.value)
        self.leave(0)

    def _assert(self, stmt: AssertStmt) -> None:
        bad, good = self.w.label("assert"), self.w.label("ok")
        is_check = stmt.kind == "BoundsError"
        condition = self.exact_condition(stmt.condition) if is_check else self.value(stmt.condition)
        self.w.branch(condition, good, bad, WARM)
        self.w.open(bad)
        note, values = self._witness(stmt.condition)
        self.program.fail(self.w, stmt.kind, stmt.message, values, span=stmt.span, note=note)
        self.leave(1)
        self.w.open(good)

    def _witness(self, condition: PrimExpr) -> tuple[list[str | int], list[Size]]:
        """The parts of a note that says which integers a condition saw, and these integers."""
        note: list[str | int] = []
        values: list[Size] = []
        for part in integers_seen(condition, VALUE_COUNT):
            name = part.name if isinstance(part, PrimVar) else f"a value of {part.buffer.name}"
            note += [f"{', ' if note else 'with '}{name}=", len(values)]
            values.append(self.arith.cast(dtype_of(part), "int64", self.value(part)))
        return note, values

    def _attr(self, stmt: AttrStmt) -> None:
        if stmt.key == PREFETCH and isinstance(stmt.value, BufferLoad):
            self._prefetch(stmt.value)
        self.statement(stmt.body)

    def _prefetch(self, place: BufferLoad) -> None:
        """Ask for an element to be brought near; nothing happens where there is none."""
        view = self.view(place.buffer)
        address = self.lane_address(view, self.offset(view, place.indices), 0)
        self.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32 immarg", "i32 immarg", "i32 immarg"))
        self.w.do(call("void", "@llvm.prefetch.p0", [("ptr", address), ("i32", "0"), ("i32", "2"), ("i32", "1")]))

    def _evaluate(self, stmt: Evaluate) -> None:
        self.value(stmt.value)


_STATEMENTS = {
    SeqStmt: KernelEmitter._sequence,
    BufferStore: KernelEmitter._store,
    For: KernelEmitter._for,
    While: KernelEmitter._while,
    IfThenElse: KernelEmitter._if,
    Bind: KernelEmitter._bind,
    AllocBuffer: KernelFrame._allocate,
    DeclBuffer: KernelFrame._declare,
    AssertStmt: KernelEmitter._assert,
    AttrStmt: KernelEmitter._attr,
    Evaluate: KernelEmitter._evaluate,
    Break: KernelEmitter._break,
    Continue: KernelEmitter._continue,
    Return: KernelEmitter._return,
}
