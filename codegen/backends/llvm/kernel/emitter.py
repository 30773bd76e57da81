"""A kernel under construction: parameters, buffers, scopes, open loops; how statements are emitted and it is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    call,
    getelementptr,
    icmp,
    load,
    store,
)
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.program import Program, frame_word
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.kernel.explicit import fills_registers, is_explicit
from weft.codegen.backends.llvm.kernel.nontemporal import Streams
from weft.codegen.backends.llvm.matrices.nest import configure, has_matrix_tiles, release
from weft.codegen.backends.llvm.values.expressions import CallForm, ExpressionEmitter
from weft.codegen.backends.llvm.values.views import BufferView
from weft.codegen.host.kernels import result_dtype, shared_positions
from weft.errors import TargetError
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.structure.recursion import room_for
from weft.ir.tensor import (
    Buffer,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.runtime.abi.frame import CALLBACK
from weft.support.records import dataclass
from weft.transform.analysis.accesses import memory_of
from weft.transform.memory.share_memory import SHARES_MEMORY

__all__ = ["COLD", "WARM", "Forms", "KernelEmitter", "OpenLoop", "StatementForm", "call_back", "kernel_params"]

COLD = ', !prof !{!"branch_weights", i32 1, i32 2000}'
WARM = ', !prof !{!"branch_weights", i32 2000, i32 1}'
_FENCE = "llvm.x86.sse.sfence"


def kernel_params(function: PrimFunc) -> list[tuple[str, str]]:
    """The LLVM parameters of a kernel, without names: what callers pass after the frame."""
    params = [("ptr" if isinstance(p, Buffer) else value_type(p.dtype), "") for p in function.params]
    params += [("i64", "") for _ in buffer_symbols(function)]
    return params + ([("ptr", "")] if result_dtype(function) else [])


StatementForm = Callable[[Any, Any], None]
"""What emits a kind of statement, with the emitter."""


@dataclass(frozen=True)
class Forms:
    """How statements are emitted, by their class, and calls, by the name of the intrinsic."""

    statements: Mapping[type, StatementForm]
    calls: Mapping[str, CallForm]


@dataclass
class OpenLoop:
    """Where `break` and `continue` go, and how many scopes are open outside."""

    after: str
    following: str
    depth: int


class OpenPoll(Protocol):
    """What an open loop asks whether the caller was interrupted with (`weft.codegen.backends.llvm.kernel.polls`)."""

    known: frozenset[PrimVar] | None

    def ask(self, amount: Size | None = None) -> None:
        """Count so much work, and ask when it is due."""
        ...


class KernelEmitter(ExpressionEmitter):
    """Emits one function."""

    def __init__(
        self,
        module: ModuleWriter,
        program: Program,
        name: str,
        function: PrimFunc,
        noalias: bool,
        symbol: str,
        forms: Forms,
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
        writer = FunctionWriter(module, symbol, "i32", params, f"{program.attributes(name)} noinline")
        super().__init__(writer, program, flags, forms.calls)
        self.module = module
        self.scopes: list[list[str]] = [[]]
        """Heap memory to free, innermost scope last."""
        self.stack_bytes: dict[str, int] = {}
        """What is taken of the stack, by scope: `local` is what is to be in registers."""
        self.explicit = is_explicit(function)
        writer.constants_in_memory = self.explicit and fills_registers(function)
        self.name = name
        self.noalias = noalias
        self.parallel_loops = 0
        self.has_streamed = False
        in_order = program.serial or program.threads == 1
        self.has_matrices = has_matrix_tiles(function.body, self.arith, in_order=in_order)
        self.work: dict[Stmt, int] = {}
        self.loops: list[OpenLoop] = []
        self.loop_variables: set[PrimVar] = set()
        self.open_polls: list[OpenPoll] = []
        """What open loops ask whether the caller was interrupted with, outermost first."""
        self.asks = True
        self.copies = 1
        self.stores = False
        self.streams: Streams | None = None
        self._forms = forms

    def emit(self) -> None:
        """Emit the whole function."""
        with room_for(self.function):  # nesting of statements and expressions follows the user's program
            self.emit_inside()

    def emit_inside(self) -> None:
        """Emit the whole function, where there is room for its nesting."""
        self._parameters()
        self.configure_matrices()
        self.statement(self.function.body)
        self.leave(0)
        self.w.finish(beside=bool(self.parallel_loops) and not self.stores)

    def statement(self, stmt: Stmt) -> None:
        """Emit one statement."""
        form = self._forms.statements.get(type(stmt))
        if form is None:
            raise TargetError(
                f"llvm: a {type(stmt).__name__} must be lowered before code generation", code="W740", span=stmt.span
            )
        form(self, stmt)

    def scoped(self, stmt: Stmt) -> None:
        """Emit a statement, or those of a sequence, in a scope of its own."""
        self.scopes.append([])
        for part in stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,):
            self.statement(part)
        if not self.w.terminated:
            self.free_from(len(self.scopes) - 1)
        self.scopes.pop()

    def emit_loop_kernel(self, symbol: str, function: PrimFunc, buffers: Sequence[Buffer], *, asks: bool) -> str:
        """Emit the body of a parallel loop, whose first parameters are buffers of this function; gives its spelling.

        `asks` says that the loop may be so long that it has to ask whether the caller was interrupted.
        """
        shared = shared_positions(self.function)
        own: dict[object, int] = {param: i for i, param in enumerate(self.function.params)}
        places = [own.get(memory_of(buffer), -1) for buffer in buffers]
        pairs = tuple((i, j) for j, b in enumerate(places) for i, a in enumerate(places[:j]) if b in shared.get(a, ()))
        if pairs:
            function = function.with_attr(SHARES_MEMORY, pairs)
        part = self.module.part()
        emitter = KernelEmitter(part, self.program, function.name, function, self.noalias, symbol, self._forms)
        emitter.asks = asks
        bounded = {*self.symbols, *self.loop_variables}
        emitter.loop_variables = {p for p in function.params if isinstance(p, PrimVar) and p in bounded}
        emitter.emit_inside()  # a part of this function, for which there is room
        self.module.add(part, explicit=emitter.explicit)
        return self.module.spelled(symbol)

    def _parameters(self) -> None:
        """Give the parameters their values."""
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
            view.pointer = self.memory.address(view, self.size(buffer.elem_offset))
        return view

    def free_from(self, depth: int) -> None:
        """Free the heap memory of the scopes at `depth` and deeper."""
        for scope in reversed(self.scopes[depth:]):
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
        if self.has_matrices:
            release(self.w)
        self.w.ret("i32", str(status))

    def leave_if(self, status: str) -> None:
        """Return a status that is not 0; go on otherwise."""
        bad, good = self.w.label("failed"), self.w.label("ok")
        self.w.branch(self.w.emit(icmp("ne", "i32", status, "0")), bad, good, COLD)
        self.w.open(bad)
        self.leave(status)
        self.w.open(good)
        self.configure_matrices()  # of what gave the status, anything may have been called

    def configure_matrices(self) -> None:
        """Say what matrices are, where the function uses them; again after others may have said something else."""
        if self.has_matrices:
            configure(self.w)


def call_back(w: FunctionWriter, site: int, words: Sequence[Size], results: int) -> tuple[str, str]:
    """Call `callback(frame, site, arguments, results)` of the frame."""
    block = w.alloca("i64", max(1, len(words)))
    out = w.alloca("i64", max(1, results))
    for index, word in enumerate(words):
        place = w.emit(getelementptr("i64", block, index)) if index else block
        w.do(store("i64", word, place))
    function = w.emit(load("ptr", frame_word(w, CALLBACK)))
    return w.emit(call("i32", function, [("ptr", "%frame"), ("i64", site), ("ptr", block), ("ptr", out)])), out


def compact_strides(w: FunctionWriter, shape: Sequence[Size]) -> list[Size]:
    """Row-major strides in elements."""
    strides: list[Size] = []
    step: Size = 1
    for extent in reversed(shape):
        strides.append(step)
        step = w.mul(step, extent)
    return strides[::-1]


def fence(w: FunctionWriter) -> None:
    """Wait until non-temporal stores are visible."""
    w.module.declare(_FENCE, "void", ())
    w.do(call("void", f"@{_FENCE}", []))
