"""The frame of a kernel under construction: parameters, buffers, memory of its own, how it is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    binary,
    call,
    cast,
    getelementptr,
    icmp,
    load,
    store,
)
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.asm.program import Program, frame_word
from weft.codegen.backends.llvm.asm.types import element_bytes, value_type
from weft.codegen.backends.llvm.kernel.explicit import is_explicit
from weft.codegen.backends.llvm.kernel.expressions import BufferView, ExpressionEmitter
from weft.codegen.host.kernels import result_dtype, shared_positions
from weft.errors import TargetError
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    DeclBuffer,
    PrimFunc,
    PrimVar,
    Stmt,
)
from weft.runtime.abi.frame import CALLBACK
from weft.target.machine_model import STACK_BYTES

__all__ = ["COLD", "WARM", "KernelFrame", "call_back", "from_word", "kernel_params", "to_word"]

STACK_TOTAL = 128 << 10  # all of a function; threads may have small stacks
COLD = ', !prof !{!"branch_weights", i32 1, i32 2000}'
WARM = ', !prof !{!"branch_weights", i32 2000, i32 1}'
_FENCE = "llvm.x86.sse.sfence"


@dataclass
@dataclass
class _Scopes:
    """Heap memory to free, innermost scope last."""

    open: list[list[str]] = field(default_factory=lambda: [[]])


def kernel_params(function: PrimFunc) -> list[tuple[str, str]]:
    """The LLVM parameters of a kernel, without names: what callers pass after the frame."""
    params = [("ptr" if isinstance(p, Buffer) else value_type(p.dtype), "") for p in function.params]
    params += [("i64", "") for _ in buffer_symbols(function)]
    return params + ([("ptr", "")] if result_dtype(function) else [])


class KernelFrame(ExpressionEmitter):
    """What the emitters of statements, loops and calls share of one function."""

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
        self.stack_bytes = 0
        self.explicit = is_explicit(function)
        self.name = name
        self.noalias = noalias
        self.parallel_loops = 0
        self.has_streamed = False
        self.work: dict[Stmt, int] = {}

    def emit_loop_kernel(self, symbol: str, function: PrimFunc, buffers: Sequence[Buffer]) -> str:
        """Emit the body of a parallel loop, whose first parameters are buffers of this function; gives its spelling."""
        raise NotImplementedError

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

    def callback(self, site: int, words: Sequence[Size], results: int = 1) -> tuple[str, str]:
        """Call the runtime; gives the status and the address of the result words."""
        return call_back(self.w, site, words, results)

    def to_word(self, dtype: str, value: str) -> str:
        """A scalar's bits as a word."""
        return to_word(self, dtype, value)

    def from_word(self, dtype: str, word: str) -> str:
        """The scalar whose bits a word holds."""
        return from_word(self, dtype, word)


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


def fence(w: FunctionWriter) -> None:
    """Wait until non-temporal stores are visible."""
    w.module.declare(_FENCE, "void", ())
    w.do(call("void", f"@{_FENCE}", []))
