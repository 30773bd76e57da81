"""Parallel loops: the body becomes a kernel of its own, called for ranges of iterations on the threads of the runtime.

    for i in T.parallel(a, b): body    ->    int32 weft.loop.<kernel>.<k>(frame, what the body uses, a, b, slot)
                                             void weft.chunk.<kernel>.<k>(context, a, b, slot)

`runtime.device.threads` calls the second; threads that work at once have different slots, which choose their scratch
memory (`scratch`).

    context ::= frame, lock, first iteration of the earliest failure, its status, what the body uses    words of 64 bits

Where a parallel loop of few iterations has another one as its body, all iterations of both are shared as one loop.
A loop runs on several threads only where its iterations are proved to be apart (`weft.transform.analysis.accesses`): a
loop that is marked parallel and whose iterations may touch the same elements runs in order, since results never depend
on the number of threads. It also does so when it has less work than `PAYS`, which the program estimates from the sizes,
or, where its extent is a symbol, fewer iterations than the parallel loops inside of it, which then are shared instead:
in a chunk of another loop there is no runner, so that no more than one loop of a nest is.
A failure is reported as if iterations ran in order: of those that fail, the earliest one is told.
"""

from __future__ import annotations

import itertools

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    Instruction,
    binary,
    call,
    cast,
    getelementptr,
    icmp,
    load,
    select,
    store,
)
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.kernel.emitter import KernelEmitter
from weft.codegen.backends.llvm.kernel.polls import may_be_long
from weft.codegen.backends.llvm.kernel.scratch import in_slot
from weft.codegen.backends.llvm.kernel.work import variables_in, work_of
from weft.ir.kernel import prim
from weft.ir.kernel.intrinsics import INTRINSICS, WITHIN_MEMORY
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.node import Node, replace
from weft.ir.structure.visit import nodes_of, rewrite_statements, statements, substitute
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Break,
    Buffer,
    BufferLoad,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    Let,
    PrimCall,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.runtime.abi.frame import (
    FRAME_WORDS,
    INTERRUPTED,
    LOOP,
    LOOP_EARLIEST,
    LOOP_LOCK,
    LOOP_STATUS,
    PARALLEL,
    STACK,
)
from weft.transform.analysis.accesses import iterations_are_apart, memory_of

__all__ = ["ENOUGH", "PAYS", "emit_chunk_runtime", "emit_parallel", "memory_before"]

PAYS = 90_000
"""The least work, in scalar operations, that is worth waking threads for: about 20 microseconds."""
ENOUGH = 16
"""The iterations of a loop that are enough to share where loops inside of it could be shared."""
_ENOUGH_OF_SYMBOL = 8
"""Those of a loop of a symbolic extent: its iterations are images of a batch, each of which stays with one thread."""
_FIRST_WORD = 4


def emit_parallel(emitter: KernelEmitter, stmt: For, scratch: frozenset[Buffer] = frozenset()) -> bool:
    """Emit a parallel loop as calls of its body; False where it has to run in order.

    Of `scratch`, which has a place for each iteration, each thread uses one.
    """
    used = _used(stmt)
    if used is None or stmt.step not in (None, 1) or emitter.program.threads == 1:
        return False
    variables, buffers = used
    if not iterations_are_apart(stmt, set(buffers)):
        return False
    return _Outlined(emitter, _with_inner(stmt, buffers, scratch), variables, buffers, scratch).emit()


def _with_inner(stmt: For, buffers: list[Buffer], scratch: frozenset[Buffer]) -> For:
    """A loop of few iterations and the parallel one that is all of its body as one loop; as it is where they are not
    both of known extents and apart."""
    inner = stmt.body
    if not isinstance(inner, For) or inner.kind != "parallel" or inner.step not in (None, 1) or scratch:
        return stmt
    if not isinstance(stmt.extent, int) or not isinstance(inner.extent, int) or stmt.extent >= ENOUGH:
        return stmt
    if not iterations_are_apart(inner, set(buffers)):
        return stmt
    number = PrimVar(stmt.loop_var.name, "int64")
    places = {stmt.loop_var: (stmt.start, "floordiv"), inner.loop_var: (inner.start, "floormod")}
    binds: list[Stmt] = []
    for variable, (start, kind) in places.items():
        place = prim.binary(
            "add", prim.as_expr(start, "int64"), prim.binary(kind, number, prim.const(inner.extent, "int64"))
        )
        binds.append(Bind(variable, prim.cast(variable.dtype, place)))
    parts = inner.body.stmts if isinstance(inner.body, SeqStmt) else (inner.body,)
    memory = tuple(itertools.takewhile(lambda part: isinstance(part, AllocBuffer) and not _sizes_of(part), parts))
    body = SeqStmt((*memory, *binds, *parts[len(memory) :]), span=stmt.body.span)
    return replace(stmt, loop_var=number, start=0, extent=stmt.extent * inner.extent, body=body)


def _used(stmt: For) -> tuple[list[PrimVar], list[Buffer]] | None:
    """What the body uses of its surroundings; None where it does what only one thread may do."""
    if nodes_of(stmt.body, Return) or (nodes_of(stmt.body, Break, Continue) and _leaves(stmt)):
        return None
    if not all(isinstance(node.value, PrimCall) for node in nodes_of(stmt.body, Evaluate)):
        return None
    if not all(map(_may_share, nodes_of(stmt.body, PrimCall))):
        return None
    if not all(isinstance(memory_of(node.buffer), Buffer) for node in nodes_of(stmt.body, DeclBuffer)):
        return None
    own: set[Node] = {stmt.loop_var, *(node.loop_var for node in nodes_of(stmt.body, For))}
    own.update(node.var for node in nodes_of(stmt.body, Bind, Let))
    own.update(node.buffer for node in nodes_of(stmt.body, AllocBuffer, DeclBuffer))
    variables = dict.fromkeys(nodes_of(stmt.body, PrimVar))
    buffers = dict.fromkeys(node.buffer for node in nodes_of(stmt.body, BufferLoad, BufferStore))
    outside = [buffer for buffer in buffers if buffer not in own]
    if any(not isinstance(memory_of(buffer), Buffer) for buffer in outside):
        return None
    for buffer in outside:
        for extent in (*buffer.shape, *(buffer.strides or ())):
            variables.update(dict.fromkeys(v for v in variables_in(extent)))
    found = [variable for variable in variables if variable not in own]
    return None if any(dtypes.lanes(variable.dtype) > 1 for variable in found) else (found, outside)


def _leaves(loop: For) -> bool:
    """Whether something inside leaves the loop, or an iteration of it, early."""
    parts = list(statements(loop.body))
    inner = {node for part in parts if isinstance(part, (For, While)) for node in statements(part.body)}
    return any(isinstance(part, (Break, Continue)) and part not in inner for part in parts)


def _may_share(call: PrimCall) -> bool:
    """Whether several threads may do a call at once: where its memory is each one's own, which is proved apart."""
    entry = INTRINSICS.get(call.op) if isinstance(call.op, str) else None
    return entry is not None and (entry.pure or entry.name in WITHIN_MEMORY)


def _serial(stmt: Stmt) -> For | None:
    """A parallel loop inside of a parallel one that is always shared runs in order."""
    return replace(stmt, kind="serial") if isinstance(stmt, For) and stmt.kind == "parallel" else None


def _enough(stmt: For) -> int:
    """The iterations from which on a loop of a symbolic extent goes before the parallel loops inside of it."""
    inner = [part.extent for part in statements(stmt.body) if isinstance(part, For) and part.kind == "parallel"]
    return min(_ENOUGH_OF_SYMBOL, max((extent for extent in inner if isinstance(extent, int)), default=0))


def memory_before(loop: For) -> tuple[list[AllocBuffer], For]:
    """What iterations of loops directly inside one another allocate first, to be allocated once, and the loop without.

    Buffers whose size follows from a variable of the loops stay.
    """
    body = loop.body
    found: list[AllocBuffer] = []
    if isinstance(body, For) and body.kind != "parallel":
        inner, body = memory_before(body)
        found = [part for part in inner if loop.loop_var not in _sizes_of(part)]
        if len(found) != len(inner):
            return [], loop
    elif isinstance(body, SeqStmt):
        leading = itertools.takewhile(lambda part: isinstance(part, AllocBuffer), body.stmts)
        found = [p for p in leading if isinstance(p, AllocBuffer) and loop.loop_var not in _sizes_of(p)]
        body = SeqStmt(tuple(part for part in body.stmts if part not in found), span=body.span)
    return (found, replace(loop, body=body)) if found else ([], loop)


def _sizes_of(part: AllocBuffer) -> set[PrimVar]:
    return {v for extent in (*part.buffer.shape, *(part.buffer.strides or ())) for v in variables_in(extent)}


class _Outlined:
    """One parallel loop while it is emitted."""

    def __init__(
        self,
        emitter: KernelEmitter,
        stmt: For,
        variables: list[PrimVar],
        buffers: list[Buffer],
        scratch: frozenset[Buffer],
    ) -> None:
        self.emitter = emitter
        self.stmt = stmt
        self.buffers = buffers
        self.name = f"{emitter.name}.{emitter.parallel_loops + 1}"
        self.first, self.last, slot = (PrimVar(name, "int64") for name in ("first", "last", "slot"))
        self.enough = 0 if isinstance(stmt.extent, int) else _enough(stmt)
        body = stmt.body if self.enough else rewrite_statements(stmt.body, _serial)
        count = prim.binary("sub", self.last, self.first)
        loop = replace(stmt, start=self.first, extent=count, body=body, kind="serial")
        loop = in_slot(loop, scratch, slot)
        memory, loop = memory_before(loop)  # of a part, whose iterations use it in turn
        # A view comes as its address: what it is a view of need not be there.
        views = [x for x in buffers if x.data is not None or x.elem_offset is not None]
        bare = {x: replace(x, data=None, elem_offset=None) for x in views}
        params = (*(bare.get(buffer, buffer) for buffer in buffers), *variables, self.first, self.last, slot)
        inner = substitute(SeqStmt((*memory, loop)) if memory else loop, bare)
        self.function = PrimFunc(params, inner, name=self.name, private=True)
        self.variables = variables

    def emit(self) -> bool:
        """Emit the body's kernel, its chunk function, and the choice of threads; False where it never pays."""
        emitter, w = self.emitter, self.emitter.w
        pays = self._pays(emitter.size(self.stmt.extent))
        if pays == "false":
            return False
        emitter.program.parallel = True
        emitter.parallel_loops += 1
        start, extent = emitter.size(self.stmt.start), emitter.size(self.stmt.extent)
        end = w.add(start, extent)
        operands = self._operands()
        asks = may_be_long(self.stmt, emitter.work)
        symbol = emitter.emit_loop_kernel(f"weft.loop.{self.name}", self.function, self.buffers, asks=asks)
        types = ("ptr", *(ty for ty, _ in operands), *["i64"] * (3 + len(buffer_symbols(self.function))))
        for module in (emitter.module, emitter.module.beside):
            module.declare(f"weft.loop.{self.name}", "i32", types)
        status = w.alloca("i32", align=4)
        several, alone, done = w.label("several"), w.label("alone"), w.label("parallel.done")
        runner = w.emit(load("ptr", frame_word(w, PARALLEL)))
        there = w.emit(icmp("ne", "ptr", runner, "null"))
        w.branch(there if pays == "true" else w.emit(binary("and", "i1", there, pays)), several, alone)
        w.open(several)
        w.do(store("i32", self._several(runner, symbol, operands, start, end), status))
        w.jump(done)
        w.open(alone)
        sizes = [("i64", word) for word in (start, end, 0, *self._symbols())]
        w.do(store("i32", w.emit(call("i32", symbol, [("ptr", "%frame"), *operands, *sizes])), status))
        w.open(done)
        emitter.leave_if(w.emit(load("i32", status)))
        return True

    def _operands(self) -> list[tuple[str, str]]:
        """(type, value) of what the body uses, in the order of the parameters."""
        emitter = self.emitter
        found = [("ptr", emitter.view(buffer).pointer) for buffer in self.buffers]
        return [*found, *((value_type(v.dtype), emitter.value(v)) for v in self.variables)]

    def _symbols(self) -> list[Size]:
        """The values of symbols that the body's kernel takes besides its parameters."""
        return [self.emitter.size(symbol) for symbol in buffer_symbols(self.function)]

    def _pays(self, extent: Size) -> str:
        """Whether there is work enough, as a truth value."""
        w = self.emitter.w
        work = w.mul(extent, work_of(self.emitter, self.stmt.body))
        if isinstance(work, int):
            return "true" if work >= PAYS else "false"
        pays = w.emit(icmp("sge", "i64", work, PAYS))
        if not self.enough:
            return pays
        return w.emit(binary("and", "i1", pays, w.emit(icmp("sge", "i64", extent, self.enough))))

    # Several threads

    def _several(self, runner: str, symbol: str, operands: list[tuple[str, str]], start: Size, end: Size) -> str:
        """Hand the range to the runtime; gives the status."""
        w = self.emitter.w
        symbols = self._symbols()
        words = [("ptr", "%frame"), ("i64", "0"), ("i64", str((1 << 63) - 1)), ("i64", "0"), *operands]
        words += [("i64", str(word)) for word in symbols]
        context = w.alloca("i64", len(words))
        for index, (ty, value) in enumerate(words):
            w.do(store(ty, value, _at(w, context, index)))
        limit = self.emitter.program.threads
        chunk = self._chunk(symbol, operands, len(symbols))
        w.do(call("void", runner, [("ptr", chunk), ("ptr", context), ("i64", start), ("i64", end), ("i64", limit)]))
        return w.emit(cast("trunc", "i64", w.emit(load("i64", _at(w, context, LOOP_STATUS))), "i32"))

    def _chunk(self, symbol: str, operands: list[tuple[str, str]], symbols: int) -> str:
        """The function that the threads call: the body's kernel with a frame of its own."""
        own = self.emitter.module
        module = own.beside
        name = f"weft.chunk.{self.name}"
        params = [("ptr", "context"), ("i64", "first"), ("i64", "last"), ("i64", "slot")]
        w = FunctionWriter(module, name, "void", params, "nounwind")
        frame = w.alloca("i64", FRAME_WORDS)
        module.declare("weft.chunk.begin", "void", ("ptr", "ptr"))
        module.declare("weft.chunk.end", "void", ("ptr", "ptr", "i64", "i32"))
        w.do(call("void", "@weft.chunk.begin", [("ptr", "%context"), ("ptr", frame)]))
        kinds = [*(ty for ty, _ in operands), *["i64"] * symbols]
        values = [w.emit(load(ty, _at(w, "%context", _FIRST_WORD + i))) for i, ty in enumerate(kinds)]
        captured = list(zip(kinds, values, strict=True))
        at = len(operands)
        own.declare(name, "void", ("ptr", "i64", "i64", "i64"))
        given = [("ptr", frame), *captured[:at], *((ty, f"%{word}") for ty, word in params[1:]), *captured[at:]]
        status = w.emit(call("i32", symbol, given))
        w.do(call("void", "@weft.chunk.end", [("ptr", "%context"), ("ptr", frame), ("i64", "%first"), ("i32", status)]))
        w.ret("void")
        w.finish()
        return module.spelled(name)


def emit_chunk_runtime(module: ModuleWriter) -> None:
    """Emit what the chunks of all kernels call: a frame of their own, and the record of the earliest failure."""
    copy = ("ptr", "ptr", "i64", "i1 immarg")
    module.declare("llvm.memcpy.p0.p0.i64", "void", copy)
    w = FunctionWriter(module, "weft.chunk.begin", "void", [("ptr", "context"), ("ptr", "frame")], "nounwind")
    outer = w.emit(load("ptr", "%context"))
    w.do(
        call(
            "void",
            "@llvm.memcpy.p0.p0.i64",
            [("ptr", "%frame"), ("ptr", outer), ("i64", 8 * FRAME_WORDS), ("i1", "false")],
        )
    )
    for word in (PARALLEL, STACK):
        w.do(store("i64", "0", _at(w, "%frame", word)))
    w.do(store("ptr", "%context", _at(w, "%frame", LOOP)))
    w.ret("void")
    w.finish()
    params = [("ptr", "context"), ("ptr", "frame"), ("i64", "first"), ("i32", "status")]
    w = FunctionWriter(module, "weft.chunk.end", "void", params, "nounwind")
    bad, good = w.label("failed"), w.label("good")
    w.branch(w.emit(icmp("sle", "i32", "%status", "0")), good, bad)  # STOPPED tells nothing
    w.open(bad)
    _record(w)
    w.open(good)
    w.ret("void")
    w.finish()


def _record(w: FunctionWriter) -> None:
    """Keep the failure of the earliest iterations: the frames are compared under a lock."""
    lock = _at(w, "%context", LOOP_LOCK)
    outer = w.emit(load("ptr", "%context"))
    again, locked = w.label("again"), w.label("locked")
    w.open(again)
    before = w.emit(Instruction("atomicrmw", "i64", (lock, "1"), ("xchg", "acquire")))
    w.branch(w.emit(icmp("eq", "i64", before, "0")), locked, again)
    w.open(locked)
    place = _at(w, "%context", LOOP_EARLIEST)
    interrupted = w.emit(icmp("eq", "i32", "%status", INTERRUPTED))  # which comes before any failure
    first = w.emit(select("i1", interrupted, "i64", -(1 << 63), "%first"))
    earlier = w.emit(icmp("slt", "i64", first, w.emit(load("i64", place))))
    keep, unlock = w.label("keep"), w.label("unlock")
    w.branch(earlier, keep, unlock)
    w.open(keep)
    w.do(store("i64", first, place))
    w.do(store("i64", w.emit(cast("zext", "i32", "%status", "i64")), _at(w, "%context", LOOP_STATUS)))
    runner = w.emit(load("i64", _at(w, outer, PARALLEL)))
    stack = w.emit(load("i64", _at(w, outer, STACK)))
    loop = w.emit(load("i64", _at(w, outer, LOOP)))
    w.do(
        call(
            "void",
            "@llvm.memcpy.p0.p0.i64",
            [("ptr", outer), ("ptr", "%frame"), ("i64", 8 * FRAME_WORDS), ("i1", "false")],
        )
    )
    w.do(store("i64", runner, _at(w, outer, PARALLEL)))
    w.do(store("i64", stack, _at(w, outer, STACK)))
    w.do(store("i64", loop, _at(w, outer, LOOP)))
    w.open(unlock)
    w.do(Instruction("store atomic", "i64", ("0", lock), ("release", "align 8")))


def _at(w: FunctionWriter, base: str, index: int) -> str:
    return w.emit(getelementptr("i64", base, index)) if index else base
