"""Tensor-level functions to LLVM functions.

    kernel ::= int32 weft.kernel.<name>(frame, buffer pointers and scalars in order, symbols as int64, [result pointer])

The function has no blocks and no vectorized loops any more (`weft.transform.kernel.lower_blocks`,
`lower_vector_loops`). The
result is 0, or 1 after a failure that is recorded in the frame, or 2 when a callback raised. Memory of a kernel lives
on the stack when it is small and of known size, else on the heap, and is freed on every way out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    Operand,
    binary,
    call,
    cast,
    getelementptr,
    icmp,
    load,
    phi,
    store,
)
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.asm.program import Program, frame_word, kernel_symbol
from weft.codegen.backends.llvm.asm.stack import stack_is_enough
from weft.codegen.backends.llvm.asm.types import element_bytes, memory_type, value_type
from weft.codegen.backends.llvm.kernel.expressions import BufferView, ExpressionEmitter, dtype_of
from weft.codegen.backends.llvm.kernel.failure_values import integers_seen
from weft.codegen.backends.llvm.kernel.nontemporal import Streams, fence, streams_of
from weft.codegen.backends.llvm.kernel.parallel import emit_parallel
from weft.codegen.backends.llvm.kernel.polls import poll_of
from weft.codegen.host.kernels import result_dtype, shared_positions
from weft.errors import Span, TargetError
from weft.ir.externs import find_extern
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.node import Node
from weft.ir.prim_dim import buffer_symbols
from weft.ir.recursion import deep_recursion
from weft.ir.structural import structural_equal
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
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.ir.visit import children
from weft.runtime.abi.frame import CALLBACK, VALUE_COUNT
from weft.runtime.registry import find_func
from weft.target.machine_model import STACK_BYTES
from weft.transform.analysis.accesses import memory_of
from weft.transform.memory.share_memory import SHARES_MEMORY

__all__ = ["emit_kernel", "is_explicit", "kernel_params"]

STACK_TOTAL = 128 << 10  # all of a function; threads may have small stacks
UNROLL_COPIES = 256


@dataclass
class _Loop:
    """Where `break` and `continue` go, and how many scopes are open outside."""

    after: str
    following: str
    depth: int


@dataclass
class _Scopes:
    """Heap memory to free, innermost scope last."""

    open: list[list[str]] = field(default_factory=lambda: [[]])


def kernel_params(function: PrimFunc) -> list[tuple[str, str]]:
    """The LLVM parameters of a kernel, without names: what callers pass after the frame."""
    params = [("ptr" if isinstance(p, Buffer) else value_type(p.dtype), "") for p in function.params]
    params += [("i64", "") for _ in buffer_symbols(function)]
    return params + ([("ptr", "")] if result_dtype(function) else [])


def emit_kernel(
    module: ModuleWriter, program: Program, name: str, function: PrimFunc, *, noalias: bool, symbol: str = ""
) -> None:
    """Emit one tensor-level function into a module, under the symbol of its name or another one."""
    KernelEmitter(module, program, name, function, noalias, symbol or kernel_symbol(name)).emit()


def is_explicit(function: PrimFunc) -> bool:
    """Whether a lowered function says itself what is computed on vectors: LLVM need not look for more.

    It has vectors, and no loop that stores elements one by one.
    """
    found: list[tuple[Node, int]] = [(function.body, -1)]  # statements, parents before children, and their parents
    for place, (stmt, _) in enumerate(found):
        if not isinstance(stmt, BufferStore):
            found += [(part, place) for part in children(stmt) if isinstance(part, Stmt)]
    loops, stores, vectors = ([False] * len(found) for _ in range(3))  # what is in each
    for place in range(len(found) - 1, -1, -1):
        stmt, parent = found[place]
        if isinstance(stmt, BufferStore):
            stores[place], vectors[place] = True, dtypes.lanes(stmt.value.dtype) > 1
        if isinstance(stmt, For) and _is_long(stmt) and stores[place] and not loops[place] and not vectors[place]:
            return False
        if parent >= 0:
            loops[parent] |= loops[place] or isinstance(stmt, (For, While))
            stores[parent] |= stores[place]
            vectors[parent] |= vectors[place]
    return vectors[0]


def _is_long(loop: For) -> bool:
    """Whether a loop has more than a few iterations, and stays a loop."""
    return loop.kind != "unrolled" and not (isinstance(loop.extent, int) and loop.extent <= 4)


class KernelEmitter(ExpressionEmitter):
    """Emits the body of one function."""

    def __init__(
        self, module: ModuleWriter, program: Program, name: str, function: PrimFunc, noalias: bool, symbol: str
    ) -> None:
        self.function = function
        self.symbols = buffer_symbols(function)
        self.shared = shared = shared_positions(function)
        params = [("ptr", "frame")]
        params += [
            (f"ptr {'noalias ' if noalias and i not in shared else ''}nocapture", f"p{i}")
            if isinstance(p, Buffer)
            else (value_type(p.dtype), f"p{i}")
            for i, p in enumerate(function.params)
        ]
        params += [("i64", f"s{i}") for i in range(len(self.symbols))]
        if result_dtype(function):
            params.append(("ptr", "result"))
        flags = {2: "contract", 3: "reassoc contract"}.get(3 if program.fast_math else program.opt, "")
        super().__init__(FunctionWriter(module, symbol, "i32", params, "nounwind noinline"), program, flags)
        self.module = module
        self.scopes = _Scopes()
        self.loops: list[_Loop] = []
        self.stack_bytes = 0
        self.copies = 1
        self.explicit = is_explicit(function)
        self.name = name
        self.noalias = noalias
        self.parallel_loops = 0
        self.stores = False
        self.streams: Streams | None = None
        self.has_streamed = False
        self.work: dict[Stmt, int] = {}

    def emit(self) -> None:
        """Emit the whole function."""
        with deep_recursion():  # nesting of statements and expressions follows the user's program
            self._parameters()
            self.statement(self.function.body)
        self.leave(0)
        self.w.finish(beside=bool(self.parallel_loops) and not self.stores)

    def _parameters(self) -> None:
        for i, symbol in enumerate(self.symbols):
            self.bind(symbol, self.arith.cast("int64", symbol.dtype, f"%s{i}"), wide=f"%s{i}")
        for i, param in enumerate(self.function.params):
            if isinstance(param, PrimVar):
                self.bind(param, f"%p{i}")
        for i, param in enumerate(self.function.params):
            if isinstance(param, Buffer):
                self.buffers[param] = self.describe(param, f"%p{i}")

    def describe(self, buffer: Buffer, pointer: str) -> BufferView:
        """The view that a buffer's declaration makes of the memory at `pointer`."""
        shape = [self.size(extent) for extent in buffer.shape]
        strides = (
            compact_strides(self.w, shape)
            if buffer.strides is None
            else [self.size(extent) for extent in buffer.strides]
        )
        view = BufferView(pointer, buffer.dtype, shape, strides)
        if buffer.elem_offset is not None and buffer.data is not None:  # others start at their first element
            view.pointer = self.address(view, self.size(buffer.elem_offset))
        return view

    # Leaving

    def free_from(self, depth: int) -> None:
        """Free the heap memory of the scopes at `depth` and deeper."""
        for scope in reversed(self.scopes.open[depth:]):
            for pointer in reversed(scope):
                self.module.declare("free", "void", ("ptr",))
                self.w.do(call("void", "@free", [("ptr", pointer)]))

    def leave(self, status: int | str) -> None:
        """Free everything and return the status."""
        if self.w.terminated:
            return
        self.free_from(0)
        if self.has_streamed:
            fence(self.w)
        self.w.ret("i32", str(status))

    def leave_if(self, status: str) -> None:
        """Return a status that is not 0; go on otherwise."""
        bad, good = self.w.label("failed"), self.w.label("ok")
        self.w.branch(self.w.emit(icmp("ne", "i32", status, "0")), bad, good, COLD)
        self.w.open(bad)
        self.leave(status)
        self.w.open(good)

    # Statements

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

    # Memory

    def _allocate(self, stmt: AllocBuffer) -> None:
        buffer = stmt.buffer
        view = self.describe(buffer, "")
        itemsize = element_bytes(buffer.dtype) * dtypes.lanes(buffer.dtype)
        exact = Exact(self.w)
        for extent in (*buffer.shape, *(buffer.strides or ())):
            self.exact_size(extent, exact)
        counts = map(self._nonnegative, view.shape) if buffer.strides is None else [self._span_of(view, exact)]
        size = exact.bytes_of(counts, itemsize)
        if isinstance(size, int) and size <= STACK_BYTES and self.stack_bytes + size <= STACK_TOTAL:
            self.stack_bytes += size
            self.buffers[buffer] = self.describe(buffer, self.w.alloca("i8", max(1, size), align=64))
            self.buffers[buffer].room = size // itemsize
        else:
            self.buffers[buffer] = self.describe(buffer, self._heap(stmt, size))

    def _nonnegative(self, extent: Size) -> Size:
        return max(0, extent) if isinstance(extent, int) else self.arith.binary("max", "int64", extent, "0")

    def _span_of(self, view: BufferView, exact: Exact) -> Size:
        """Elements from the first to the last that a strided buffer has."""
        count: Size = 1
        for extent, stride in zip(view.shape, view.strides, strict=True):
            count = exact.add(count, exact.mul(exact.sub(extent, 1), stride))
        return self._nonnegative(count)

    def _heap(self, stmt: AllocBuffer, size: Size) -> str:
        self.module.declare("aligned_alloc", "noalias ptr", ("i64", "i64"), "allocsize(1)")
        padded = self.w.emit(binary("add", "i64", size, "64"))
        rounded = self.w.emit(binary("and", "i64", padded, "-64"))
        pointer = self.w.emit(call("ptr", "@aligned_alloc", [("i64", "64"), ("i64", rounded)]))
        bad, good = self.w.label("no_memory"), self.w.label("ok")
        self.w.branch(self.w.emit(icmp("eq", "ptr", pointer, "null")), bad, good, COLD)
        self.w.open(bad)
        name = stmt.buffer.name or "_"
        self.program.fail(
            self.w, "MemoryError", [f"no memory for the buffer {name}: ", 0, " bytes"], [size], span=stmt.span
        )
        self.leave(1)
        self.w.open(good)
        self.scopes.open[-1].append(pointer)
        return pointer

    def _declare(self, stmt: DeclBuffer) -> None:
        if stmt.buffer.data is None:
            raise TargetError(f"llvm: the declared buffer {stmt.buffer.name} has no data", code="W740", span=stmt.span)
        self.buffers[stmt.buffer] = self.describe(stmt.buffer, self.value(stmt.buffer.data))

    # Calls

    def call_function(self, expr: PrimCall) -> str:
        """A call of another tensor-level function: pointers and scalars, symbols solved from the buffers given."""
        callee = self.program.kernel(expr.op.name) if isinstance(expr.op, GlobalVar) else None
        if callee is None or not isinstance(expr.op, GlobalVar):
            raise TargetError(
                f"llvm: cannot call {expr.op!r} from a tensor-level function", code="W740", span=expr.span
            )
        if len(expr.args) != len(callee.params):
            raise TargetError(
                f"llvm: {expr.op.name} takes {len(callee.params)} arguments, got {len(expr.args)}",
                code="W740",
                span=expr.span,
            )
        self._check_stack(expr.op.name, expr.span)
        operands: list[tuple[str, Operand]] = [("ptr", "%frame")]
        for param, arg in zip(callee.params, expr.args, strict=True):
            if isinstance(param, Buffer):
                operands.append(("ptr", self.pointer(arg)))
            else:
                given = self.arith.cast(dtype_of(arg), param.dtype, self.value(arg))
                operands.append((value_type(param.dtype), given))
        solved = self._solve(expr, callee)
        operands += [("i64", solved[symbol]) for symbol in buffer_symbols(callee)]
        dtype = result_dtype(callee)
        slot = self.w.alloca(memory_type(dtype)) if dtype else ""
        if dtype:
            operands.append(("ptr", slot))
        symbol = self.program.kernel_symbol(expr.op.name)
        spelled = self.module.declare(symbol, "i32", ("ptr", *(t for t, _ in kernel_params(callee))))
        self.leave_if(self.w.emit(call("i32", spelled, operands)))
        return self._from_memory(dtype, self._read(dtype, slot)) if dtype else "0"

    def _check_stack(self, name: str, span: Span | None) -> None:
        """W951 where calls of kernels are nested so deep that the stack would run out."""
        if not self.program.nests_deeply(name):
            return
        bad, good = self.w.label("deep"), self.w.label("ok")
        self.w.branch(stack_is_enough(self.w, self.module), good, bad, WARM)
        self.w.open(bad)
        self.program.fail(self.w, "RecursionError", [f"calls of {name} are nested too deep"], [], span=span)
        self.leave(1)
        self.w.open(good)

    def pointer(self, arg: Expr) -> str:
        """The address that a buffer argument means."""
        if isinstance(arg, BufferLoad):
            view = self.view(arg.buffer)
            return self.lane_address(view, self.offset(view, arg.indices), 0)
        if isinstance(arg, Buffer):
            return self.view(arg).pointer
        return self.value(arg)

    def view_behind(self, arg: Expr) -> BufferView | None:
        """The buffer that a pointer argument points into, when it can be told."""
        if isinstance(arg, Buffer):
            return self.view(arg)
        if isinstance(arg, PrimCall) and arg.op in ("address_of", "access_ptr", "tvm_access_ptr") and arg.args:
            arg = arg.args[0]
        return self.view(arg.buffer) if isinstance(arg, BufferLoad) else None

    def _solve(self, expr: PrimCall, callee: PrimFunc) -> dict[PrimVar, Size]:
        solved: dict[PrimVar, Size] = {}
        for param, arg in zip(callee.params, expr.args, strict=True):
            if not isinstance(param, Buffer):
                continue
            view = self.view_behind(arg)
            if view is None or len(view.shape) != param.ndim:
                continue
            for wanted, given in (
                *zip(param.shape, view.shape, strict=True),
                *zip(param.strides or (), view.strides, strict=False),
            ):
                if isinstance(wanted, PrimVar):
                    solved.setdefault(wanted, given)
            if isinstance(param.elem_offset, PrimVar):
                solved.setdefault(param.elem_offset, 0)
        missing = [symbol.name for symbol in buffer_symbols(callee) if symbol not in solved]
        if missing:
            raise TargetError(
                f"llvm: this call leaves the sizes {', '.join(missing)} of the callee unknown",
                code="W740",
                span=expr.span,
                hint="pass whole buffers of the callee's rank",
            )
        return solved

    def call_extern_function(self, expr: PrimCall) -> str:
        """A declared C function, or a registered Python function; which were declared was checked before."""
        name, rest = self._symbol(expr)
        if name not in self.program.c_functions and (find_func(name) is not None or find_extern(name) is None):
            return self._callback(expr, name, rest)
        if not self.program.links_later and not in_process(name):
            raise TargetError(
                f"this process has no C function {name!r}", code="W762", span=expr.span,
                hint="load its library first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)",
            )  # fmt: skip
        operands, types = [], []
        for arg in rest:
            ty = (
                "ptr"
                if self.view_behind(arg) is not None and not isinstance(arg, BufferLoad)
                else value_type(dtype_of(arg))
            )
            types.append(ty)
            operands.append((ty, self.pointer(arg) if ty == "ptr" else self.value(arg)))
        result = value_type(expr.dtype)
        spelled = self.module.declare(name, result, tuple(types))
        if result == "void":
            self.w.do(call("void", spelled, operands))
            return "0"
        return self.w.emit(call(result, spelled, operands))

    def call_packed_function(self, expr: PrimCall) -> str:
        """A registered Python function."""
        name, rest = self._symbol(expr)
        return self._callback(expr, name, rest)

    def call_print_buffer(self, expr: PrimCall) -> str:
        """Print a buffer."""
        args = [arg for arg in expr.args if not isinstance(arg, (StringImm, IntImm))]  # dtype and sizes are known
        return self._callback(expr, "weft.print", args, action=True, labels=[_label(arg) for arg in args])

    calls: ClassVar[Mapping[str, Callable[[Any, PrimCall], str]]] = {
        **ExpressionEmitter.calls,
        "call_cpacked": call_packed_function,
        "call_extern": call_extern_function,
        "call_packed": call_packed_function,
        "call_pure_extern": call_extern_function,
        "print_buffer": call_print_buffer,
        "tvm_call_packed": call_packed_function,
    }

    def _symbol(self, expr: PrimCall) -> tuple[str, Sequence[Expr]]:
        if not expr.args or not isinstance(expr.args[0], StringImm):
            raise TargetError(f"llvm: {expr.op} takes the symbol's name first", code="W740", span=expr.span)
        return expr.args[0].value, expr.args[1:]

    def _callback(self, expr: PrimCall, name: str, args: Sequence[Expr], **text: object) -> str:
        """Hand scalars and buffers to the runtime, which calls the Python function of that name."""
        words: list[Size] = []
        kinds: list[object] = []
        for arg in args:
            view = self.view_behind(arg)
            if isinstance(arg, StringImm):
                kinds.append(["string", arg.value])
            elif view is not None and not isinstance(arg, BufferLoad):
                words += [self.w.emit(cast("ptrtoint", "ptr", self.pointer(arg), "i64")), 0, *view.shape, *view.strides]
                kinds.append(["buffer", view.dtype, len(view.shape)])
            else:
                dtype = dtype_of(arg)
                words.append(self.to_word(dtype, self.value(arg)))
                kinds.append(["prim", dtype])
        result = [] if expr.dtype in ("void", "handle") else ["prim", expr.dtype]
        site = self.program.site(kind="call", name=name, args=kinds, result=result, span=expr.span, **text)
        slot = self.callback(site, words)
        self.leave_if(slot[0])
        return self.from_word(expr.dtype, self.w.emit(load("i64", slot[1]))) if result else "0"

    def callback(self, site: int, words: Sequence[Size], results: int = 1) -> tuple[str, str]:
        """Call the runtime; gives the status and the address of the result words."""
        return call_back(self.w, site, words, results)

    def to_word(self, dtype: str, value: str) -> str:
        """A scalar's bits as a word."""
        return to_word(self, dtype, value)

    def from_word(self, dtype: str, word: str) -> str:
        """The scalar whose bits a word holds."""
        return from_word(self, dtype, word)


def _label(arg: Expr) -> str:
    """What a printed argument is called."""
    while isinstance(arg, PrimCall) and arg.args:
        arg = arg.args[0]
    return arg.buffer.name if isinstance(arg, BufferLoad) else ""


def call_back(w: FunctionWriter, site: int, words: Sequence[Size], results: int) -> tuple[str, str]:
    """Call `callback(frame, site, arguments, results)` of the frame."""
    block = w.alloca("i64", max(1, len(words)))
    out = w.alloca("i64", max(1, results))
    for index, word in enumerate(words):
        place = w.emit(getelementptr("i64", block, index)) if index else block
        w.do(store("i64", word, place))
    function = w.emit(load("ptr", frame_word(w, CALLBACK)))
    return w.emit(call("i32", function, [("ptr", "%frame"), ("i64", site), ("ptr", block), ("ptr", out)])), out


def to_word(emitter: ExpressionEmitter, dtype: str, value: str) -> str:
    """A scalar's bits as a 64-bit word (integers extended by their sign)."""
    ty, w = value_type(dtype), emitter.w
    if ty == "ptr":
        return w.emit(cast("ptrtoint", "ptr", value, "i64"))
    if ty in ("half", "float", "double"):
        bits = f"i{dtypes.bits(dtype)}"
        value = w.emit(cast("bitcast", ty, value, bits))
        return value if bits == "i64" else w.emit(cast("zext", bits, value, "i64"))
    if ty == "i64":
        return value
    return w.emit(cast("sext" if dtypes.is_signed(dtype) else "zext", ty, value, "i64"))


def from_word(emitter: ExpressionEmitter, dtype: str, word: str) -> str:
    """The scalar whose bits a word holds."""
    ty, w = value_type(dtype), emitter.w
    if ty == "ptr":
        return w.emit(cast("inttoptr", "i64", word, "ptr"))
    if ty in ("half", "float", "double"):
        bits = f"i{dtypes.bits(dtype)}"
        value = word if bits == "i64" else w.emit(cast("trunc", "i64", word, bits))
        return w.emit(cast("bitcast", bits, value, ty))
    if dtypes.is_bool(dtype):
        return w.emit(icmp("ne", "i64", word, "0"))
    return word if ty == "i64" else w.emit(cast("trunc", "i64", word, ty))


def compact_strides(w: FunctionWriter, shape: Sequence[Size]) -> list[Size]:
    """Row-major strides in elements."""
    strides: list[Size] = []
    step: Size = 1
    for extent in reversed(shape):
        strides.append(step)
        step = w.mul(step, extent)
    return strides[::-1]


COLD = ', !prof !{!"branch_weights", i32 1, i32 2000}'
WARM = ', !prof !{!"branch_weights", i32 2000, i32 1}'


def in_process(name: str) -> bool:
    """Whether the process has a C symbol of that name."""
    try:
        getattr(ctypes.CDLL(None), name)
    except (AttributeError, ValueError):
        return False
    return True


_STATEMENTS = {
    SeqStmt: KernelEmitter._sequence,
    BufferStore: KernelEmitter._store,
    For: KernelEmitter._for,
    While: KernelEmitter._while,
    IfThenElse: KernelEmitter._if,
    Bind: KernelEmitter._bind,
    AllocBuffer: KernelEmitter._allocate,
    DeclBuffer: KernelEmitter._declare,
    AssertStmt: KernelEmitter._assert,
    AttrStmt: KernelEmitter._attr,
    Evaluate: KernelEmitter._evaluate,
    Break: KernelEmitter._break,
    Continue: KernelEmitter._continue,
    Return: KernelEmitter._return,
}
