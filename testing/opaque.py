"""Random tensor-level functions that need not run: every construct that can be written, with odd data in it."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.graph import StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import binary, const, intrinsic
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    Return,
    Select,
    Shuffle,
    Stmt,
    Unary,
    While,
)
from weft.ir.types import PrimType
from weft.testing.kernels import sequence
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import attribute_map

__all__ = ["opaque_kernel"]

_FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn")
_INTEGERS = ("int32", "int64", "uint8", "int8", "uint64", "int16", "uint1", "int4")
_EXTREMES = {
    "int64": (2**63 - 1, -(2**63)),
    "uint64": (2**64 - 1, 2**63),
    "int32": (2**31 - 1, -(2**31)),
    "int8": (127, -128),
}
_ARITHMETIC = ("add", "sub", "mul", "min", "max")
_SCOPES = ("global", "local", "shared", "shared.dyn", "wmma.matrix_a")


def opaque_kernel(choices: Choices, name: str = "opaque") -> PrimFunc:
    """A tensor-level function of any constructs."""
    return _Opaque(choices).build(name)


class _Opaque:
    """One function in the making; names are visible in the rest of the sequence that defines them."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.variables: list[PrimVar] = []
        self.buffers: list[Buffer] = []
        self.handles: list[PrimVar] = []
        self.loops = 0
        self.reduced: set[PrimVar] = set()

    def build(self, name: str) -> PrimFunc:
        choices = self.choices
        params: list[Buffer | PrimVar] = []
        size = PrimVar(choices.name(), "int64")
        base = Buffer(choices.name(), (size,), choices.pick(("float32", *_FLOATS, *_INTEGERS)))
        params.append(base)
        self.buffers.append(base)
        self.variables.append(size)
        for _ in range(choices.integer(0, 3)):
            params.append(self._parameter(size))
        returns = choices.pick((None, None, None, "int32", "float32"))
        statements = self._statements(choices.integer(1, 5))
        if returns is not None:
            statements.append(Return(self.expression(returns, 2)))
        ret_type = PrimType(returns) if returns is not None else None
        return PrimFunc(
            tuple(params), sequence(statements), ret_type, choices.flip(30), attribute_map(choices), name=name
        )

    def _parameter(self, size: PrimVar) -> Buffer | PrimVar:
        choices = self.choices
        kind = choices.integer(0, 3)
        if kind == 0:
            scalar = PrimVar(choices.name(), choices.pick(("int32", "float32", "bool", "int64", "uint8", "bfloat16")))
            self.variables.append(scalar)
            return scalar
        if kind == 1:
            options = ((None, "global"), ("float32", "global"), ("int8", "shared"))
            pointee, scope = choices.pick(options)
            handle = PrimVar(choices.name(), "handle", pointee, scope)
            self.handles.append(handle)
            return handle
        buffer = self._buffer(size, parameter=True)
        self.buffers.append(buffer)
        return buffer

    def _buffer(self, size: PrimVar, parameter: bool = False) -> Buffer:
        choices = self.choices
        rank = choices.integer(0, 3)
        shape = tuple(choices.pick((4, size, 1, 16)) for _ in range(rank))
        options: dict[str, object] = {}
        if choices.flip(20):
            stride = PrimVar(choices.name(), choices.pick(("int64", "int32")))
            options["strides"] = tuple(choices.pick((1, 4, stride, 8)) if parameter else 1 for _ in range(rank))
        if choices.flip(15):
            options["elem_offset"] = PrimVar(choices.name(), "int32") if parameter and choices.flip() else 4
        if choices.flip(15):
            options["align"] = choices.pick((64, 128))
        if choices.flip(15):
            options["offset_factor"] = choices.pick((1, 16))
        if choices.flip(5) and rank > 1:
            options["axis_separators"] = (1,)
        return Buffer(
            choices.name(),
            shape,
            choices.pick((*_FLOATS, *_INTEGERS, "bool")),
            choices.pick(_SCOPES),
            **options,  # type: ignore[arg-type]
        )

    # Statements ------------------------------------------------------------------------------------------------------

    def _statements(self, count: int) -> list[Stmt]:
        """A sequence; what it defines is visible until its end."""
        marks = len(self.variables), len(self.buffers)
        made = [self._statement() for _ in range(count)]
        del self.variables[marks[0] :]
        del self.buffers[marks[1] :]
        return made

    def body(self, most: int = 2) -> Stmt:
        """The body of a scope."""
        return sequence(self._statements(self.choices.integer(0 if self.choices.flip(5) else 1, most)))

    def _statement(self) -> Stmt:
        options: list[tuple[int, Callable[[], Stmt]]] = [
            (8, self._store), (3, self._evaluate), (2, self._bind), (2, self._allocate), (1, self._declare),
            (2, self._assert), (1, self._attribute),
        ]  # fmt: skip
        if self.loops < 3:
            options.extend(((5, self._for), (2, self._if), (1, self._while), (3, self._block)))
        return self.choices.weighted(options)()

    def position(self, buffer: Buffer, lanes: int = 1) -> tuple[PrimExpr, ...]:
        """Indices of one element, or of `lanes` along the last axis."""
        indices = [self._index(extent) for extent in buffer.shape]
        if lanes > 1 and indices:
            indices[-1] = Ramp(
                const(0, "int32"), const(self.choices.integer(1, 3) if lanes == 2 else 1, "int32"), lanes
            )
        return tuple(indices)

    def _index(self, extent: int | PrimExpr) -> PrimExpr:
        """An index that is not plainly out of range."""
        dtype = self.choices.pick(("int32", "int64"))
        if not isinstance(extent, int):
            return const(0, dtype)
        varying = [variable for variable in self.variables if variable.dtype == dtype and variable not in self.reduced]
        if varying and self.choices.flip():
            return binary("floormod", self.choices.pick(varying[::-1]), const(extent, dtype))
        return const(self.choices.integer(0, extent - 1), dtype)

    def _store(self) -> Stmt:
        buffer = self.choices.pick(self.buffers[::-1])
        last = buffer.shape[-1] if buffer.ndim else 1
        lanes = self.choices.pick((4, 2)) if self.choices.flip(15) and isinstance(last, int) and last >= 4 else 1
        indices = self.position(buffer, lanes)
        value = self.expression(buffer.dtype, 3) if lanes == 1 else self._vector(buffer.dtype, lanes)
        predicate = self._mask(lanes) if self.choices.flip(8) else None
        return BufferStore(buffer, value, indices, predicate)

    def _mask(self, lanes: int) -> PrimExpr:
        return Broadcast(self.expression("bool", 1), lanes) if lanes > 1 else self.expression("bool", 1)

    def _evaluate(self) -> Stmt:
        choices = self.choices
        kind = choices.integer(0, 5)
        if kind == 0:
            return Evaluate(self.expression(choices.pick(("int32", "float32", "bool")), 2))
        if kind == 1 and self.handles:
            return Evaluate(PrimCall("call_extern", (StringImm("release"), choices.pick(self.handles)), "void"))
        if kind == 2:
            pointer = self._pointer()
            return Evaluate(PrimCall("call_extern", (StringImm(choices.text()), pointer, const(1, "int32")), "int32"))
        if kind == 3:
            return Evaluate(PrimCall("call_packed", (StringImm("lib.f"), self.expression("float32", 1)), "int32"))
        if kind == 4:
            attrs = attribute_map(choices)
            return Evaluate(PrimCall("device_barrier", (self.expression("int32", 1),), "void", attrs))
        return Evaluate(PrimCall("tvm_storage_sync", (StringImm("shared"),), "int32"))

    def _pointer(self) -> PrimExpr:
        buffer = self.choices.pick(self.buffers)
        return PrimCall("address_of", (BufferLoad(buffer, self.position(buffer)),), "handle")

    def _bind(self) -> Stmt:
        dtype = self.choices.pick(("int32", "float32", "int64", "bool", "float16"))
        variable = PrimVar(self.choices.name(), dtype)
        made = Bind(variable, self.expression(dtype, 2))
        self.variables.append(variable)
        return made

    def _allocate(self) -> Stmt:
        annotations = attribute_map(self.choices) if self.choices.flip(10) else attribute_map(self.choices, most=0)
        buffer = self._buffer(self.variables[0])
        self.buffers.append(buffer)
        return sequence([AllocBuffer(buffer, annotations), self._first(buffer)])

    def _first(self, buffer: Buffer) -> Stmt:
        """A store to a new buffer, from others."""
        self.buffers.remove(buffer)
        value = self.expression(buffer.dtype, 1)
        self.buffers.append(buffer)
        return BufferStore(buffer, value, self.position(buffer))

    def _declare(self) -> Stmt:
        if not self.handles:
            return self._store()
        buffer = Buffer(self.choices.name(), (4, self.variables[0]), "float32", data=self.choices.pick(self.handles))
        self.buffers.append(buffer)
        return DeclBuffer(buffer)

    def _assert(self) -> Stmt:
        kind = self.choices.pick(("AssertionError", "ValueError", "ShapeError"))
        return AssertStmt(self.expression("bool", 2), self.choices.text(), kind)

    def _attribute(self) -> Stmt:
        choices = self.choices
        value = choices.pick(("value", const(4, "int32"), 4, None, 0.5))
        return AttrStmt(
            choices.pick(("scope", self.variables[0], self.buffers[0])),
            choices.pick(("pragma", "two words")),
            value,
            self._nested(),
        )

    def _nested(self) -> Stmt:
        self.loops += 1
        try:
            return self.body()
        finally:
            self.loops -= 1

    def _for(self) -> Stmt:
        choices = self.choices
        dtype = choices.pick(("int32", "int64", "int16"))
        variable = PrimVar(choices.name(), dtype)
        kind = choices.pick(("serial", "parallel", "vectorized", "unrolled", "thread_binding"))
        thread = choices.pick(("threadIdx.x", "blockIdx.y", "vthread")) if kind == "thread_binding" else None
        start = choices.pick((0, 0, 2, -3)) if kind != "thread_binding" else 0
        extent = choices.pick((4, 1, 0, self.variables[0] if dtype == "int64" and kind != "vectorized" else 8))
        step = choices.pick((None, 2, 3)) if kind == "serial" and choices.flip(20) else None
        annotations = attribute_map(choices) if choices.flip(15) else attribute_map(choices, most=0)
        mark = len(self.variables)
        self.variables.append(variable)
        body = self._nested()
        if kind == "serial" and choices.flip(15):
            stop = choices.pick((Break(), Continue()))
            body = sequence([IfThenElse(self.expression("bool", 1), stop), body])
        del self.variables[mark:]
        return For(variable, start, extent, body, kind, thread, step, annotations)

    def _if(self) -> Stmt:
        condition = self.expression("bool", 2)
        then = self._nested()
        return IfThenElse(condition, then, self._nested() if self.choices.flip() else None)

    def _while(self) -> Stmt:
        return While(self.expression("bool", 2), self._nested())

    def _block(self) -> Stmt:
        choices = self.choices
        marks = len(self.variables), len(self.buffers)
        iters: list[IterVar] = []
        for _ in range(choices.integer(0, 3)):
            dtype = choices.pick(("int32", "int64"))
            value = choices.pick([v for v in self.variables if v.dtype == dtype] or [const(0, dtype)])
            kind = choices.pick(("spatial", "reduce", "opaque", "scan"))
            iters.append(
                IterVar(PrimVar(choices.name(), dtype), choices.pick((0, 0, 2)), choices.pick((4, 16)), kind, value)
            )
        self.variables.extend(axis.var for axis in iters)
        predicate = self.expression("bool", 1) if choices.flip(20) else None
        allocated = tuple(self._buffer(self.variables[0]) for _ in range(choices.pick((0, 0, 1, 2))))
        self.buffers.extend(allocated)
        self.reduced.update(axis.var for axis in iters if axis.kind == "reduce")
        init = self._store() if any(axis.kind == "reduce" for axis in iters) and choices.flip() else None
        body = sequence([*(self._first(buffer) for buffer in allocated), self._nested()])
        regions = None
        if choices.flip(30):
            regions = tuple(BufferRegion(b, tuple(Range(0, extent) for extent in b.shape)) for b in self.buffers)
        annotations = attribute_map(choices) if choices.flip(15) else attribute_map(choices, most=0)
        del self.variables[marks[0] :]
        del self.buffers[marks[1] :]
        name = choices.pick(("block", "root", "", "two words", "é"))
        return Block(name, body, tuple(iters), predicate, regions, regions, init, allocated, (), annotations)

    # Expressions -----------------------------------------------------------------------------------------------------

    def expression(self, dtype: str, depth: int) -> PrimExpr:
        """An expression of a scalar dtype."""
        choices = self.choices
        if depth <= 0 or choices.flip(25):
            return self._leaf(dtype)
        kind = choices.integer(0, 9)
        if kind == 0:
            first, second = (self.expression(dtype, depth - 1) for _ in range(2))
            return Select(self.expression("bool", depth - 1), first, second)
        if kind == 1:
            variable = PrimVar(choices.name(), "int32")
            value = self.expression("int32", depth - 1)
            self.variables.append(variable)
            body = self.expression(dtype, depth - 1)
            self.variables.remove(variable)
            return Let(variable, value, body)
        if kind == 2:
            return Cast(dtype, self.expression(choices.pick(("int32", "float32", "bool", dtype)), depth - 1))
        if kind == 3:
            args = (self.expression("bool", depth - 1), *(self.expression(dtype, depth - 1) for _ in range(2)))
            return PrimCall("if_then_else", args, dtype)
        if kind == 4:
            return PrimCall("call_pure_extern", (StringImm("lib.g"), self.expression("int32", depth - 1)), dtype)
        if kind == 5:
            name = choices.pick(("my_intrinsic", "ptx.mma", "vendor.op"))
            attrs = attribute_map(choices) if choices.flip(30) else attribute_map(choices, most=0)
            return PrimCall(name, (self._leaf(dtype),), dtype, attrs)
        if dtype == "bool":
            return self._truth(depth)
        if dtype in _FLOATS:
            return self._float(dtype, depth)
        return self._integer(dtype, depth)

    def _leaf(self, dtype: str) -> PrimExpr:
        choices = self.choices
        variables = [variable for variable in self.variables if variable.dtype == dtype]
        if variables and choices.flip():
            return choices.pick(variables[::-1])
        buffers = [buffer for buffer in self.buffers if buffer.dtype == dtype]
        if buffers and choices.flip(40):
            buffer = choices.pick(buffers)
            predicate = self._leaf("bool") if choices.flip(5) else None
            return BufferLoad(buffer, self.position(buffer), predicate)
        if dtype == "bool":
            return IntImm(int(choices.flip()), "bool")
        if dtype in _FLOATS:
            return FloatImm(choices.number(), dtype)
        if dtype in _EXTREMES and choices.flip(20):
            return IntImm(choices.pick(_EXTREMES[dtype]), dtype)
        return IntImm(choices.integer(0, 1 if dtype == "uint1" else 7), dtype)

    def _truth(self, depth: int) -> PrimExpr:
        choices = self.choices
        if choices.flip():
            dtype = choices.pick(("int32", "float32", "int64"))
            kind = choices.pick(("lt", "le", "gt", "ge", "eq", "ne"))
            return binary(kind, self.expression(dtype, depth - 1), self.expression(dtype, depth - 1))
        if choices.flip(30):
            return Unary("not", self.expression("bool", depth - 1))
        return Binary(
            choices.pick(("and", "or")), self.expression("bool", depth - 1), self.expression("bool", depth - 1)
        )

    def _float(self, dtype: str, depth: int) -> PrimExpr:
        choices = self.choices
        if choices.flip(40):
            names = sorted(name for name, row in INTRINSICS.items() if row.rule == "float" and row.arity == 1)
            return intrinsic(choices.pick(names), self.expression(dtype, depth - 1))
        if choices.flip(20):
            return Unary("neg", self.expression(dtype, depth - 1))
        kind = choices.pick((*_ARITHMETIC, "div"))
        return Binary(kind, self.expression(dtype, depth - 1), self.expression(dtype, depth - 1))

    def _integer(self, dtype: str, depth: int) -> PrimExpr:
        choices = self.choices
        if choices.flip(15):
            return Unary(choices.pick(("neg", "bitwise_not")), self.expression(dtype, depth - 1))
        others = ("floordiv", "floormod", "truncdiv", "truncmod", "bitwise_and", "bitwise_or", "bitwise_xor")
        kind = choices.pick((*_ARITHMETIC, *others, "shift_left", "shift_right"))
        right = self.expression(dtype, depth - 1) if kind in _ARITHMETIC else IntImm(1, dtype)
        return Binary(kind, self.expression(dtype, depth - 1), right)

    def _vector(self, dtype: str, lanes: int) -> PrimExpr:
        choices = self.choices
        kind = choices.integer(0, 3)
        if kind == 0:
            return Cast(f"{dtype}x{lanes}", Ramp(self.expression("int32", 1), const(1, "int32"), lanes))
        if kind == 1:
            parts = tuple(Broadcast(self.expression(dtype, 1), lanes) for _ in range(2))
            picked = tuple(const(choices.integer(0, 2 * lanes - 1), "int32") for _ in range(lanes))
            return Shuffle(parts, picked)
        if kind == 2 and dtype != "bool":
            return Binary("add", self._vector(dtype, lanes), Broadcast(self.expression(dtype, 1), lanes))
        return Broadcast(self.expression(dtype, 1), lanes)
