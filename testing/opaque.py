"""Random tensor-level functions that need not run: every construct that can be written, with odd data in it."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.graph import StringImm
from weft.ir.kernel.prim import const
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Block,
    Break,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    Return,
    Stmt,
    While,
)
from weft.ir.types import PrimType
from weft.testing.kernels import sequence
from weft.testing.opaque_expressions import (
    FLOATS,
    INTEGERS,
    OpaqueState,
    expression,
    mask,
    position,
    vector,
)
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import attribute_map

__all__ = ["opaque_kernel"]

_SCOPES = ("global", "local", "shared", "shared.dyn", "wmma.matrix_a")


def opaque_kernel(choices: Choices, name: str = "opaque") -> PrimFunc:
    """A tensor-level function of any constructs."""
    return _Opaque(choices).build(name)


class _Opaque:
    """One function in the making; names are visible in the rest of the sequence that defines them."""

    def __init__(self, choices: Choices) -> None:
        self.choices, self.state = choices, OpaqueState(choices)

    def build(self, name: str) -> PrimFunc:
        choices = self.choices
        params: list[Buffer | PrimVar] = []
        size = PrimVar(choices.name(), "int64")
        base = Buffer(choices.name(), (size,), choices.pick(("float32", *FLOATS, *INTEGERS)))
        params.append(base)
        self.state.buffers.append(base)
        self.state.variables.append(size)
        for _ in range(choices.integer(0, 3)):
            params.append(_parameter(self, size))
        returns = choices.pick((None, None, None, "int32", "float32"))
        statements = self._statements(choices.integer(1, 5))
        if returns is not None:
            statements.append(Return(expression(self.state, returns, 2)))
        ret_type = PrimType(returns) if returns is not None else None
        return PrimFunc(
            tuple(params), sequence(statements), ret_type, choices.flip(30), attribute_map(choices), name=name
        )

    def buffer(self, size: PrimVar, parameter: bool = False) -> Buffer:
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
            choices.pick((*FLOATS, *INTEGERS, "bool")),
            choices.pick(_SCOPES),
            **options,  # type: ignore[arg-type]
        )

    def _statements(self, count: int) -> list[Stmt]:
        """A sequence; what it defines is visible until its end."""
        marks = len(self.state.variables), len(self.state.buffers)
        made = [self._statement() for _ in range(count)]
        del self.state.variables[marks[0] :]
        del self.state.buffers[marks[1] :]
        return made

    def body(self, most: int = 2) -> Stmt:
        """The body of a scope."""
        return sequence(self._statements(self.choices.integer(0 if self.choices.flip(5) else 1, most)))

    def _statement(self) -> Stmt:
        options: list[tuple[int, Callable[[], Stmt]]] = [
            (8, self._store),
            (3, lambda: _evaluate(self)),
            (2, self._bind),
            (2, self._allocate),
            (1, self._declare),
            (2, self._assert),
            (1, self._attribute),
        ]
        if self.state.loops < 3:
            options.extend(((5, self._for), (2, self._if), (1, self._while), (3, self._block)))
        return self.choices.weighted(options)()

    def _store(self) -> Stmt:
        buffer = self.choices.pick(self.state.buffers[::-1])
        last = buffer.shape[-1] if buffer.ndim else 1
        lanes = self.choices.pick((4, 2)) if self.choices.flip(15) and isinstance(last, int) and last >= 4 else 1
        indices = position(self.state, buffer, lanes)
        value = expression(self.state, buffer.dtype, 3) if lanes == 1 else vector(self.state, buffer.dtype, lanes)
        predicate = mask(self.state, lanes) if self.choices.flip(8) else None
        return BufferStore(buffer, value, indices, predicate)

    def _bind(self) -> Stmt:
        dtype = self.choices.pick(("int32", "float32", "int64", "bool", "float16"))
        variable = PrimVar(self.choices.name(), dtype)
        made = Bind(variable, expression(self.state, dtype, 2))
        self.state.variables.append(variable)
        return made

    def _allocate(self) -> Stmt:
        choices = self.choices
        annotations = attribute_map(choices) if choices.flip(10) else attribute_map(choices, most=0)
        buffer = self.buffer(self.state.variables[0])
        self.state.buffers.append(buffer)
        return sequence([AllocBuffer(buffer, annotations), self._first(buffer)])

    def _first(self, buffer: Buffer) -> Stmt:
        """A store to a new buffer, from others."""
        self.state.buffers.remove(buffer)
        value = expression(self.state, buffer.dtype, 1)
        self.state.buffers.append(buffer)
        return BufferStore(buffer, value, position(self.state, buffer))

    def _declare(self) -> Stmt:
        if not self.state.handles:
            return self._store()
        name, shape = self.choices.name(), (4, self.state.variables[0])
        buffer = Buffer(name, shape, "float32", data=self.choices.pick(self.state.handles))
        self.state.buffers.append(buffer)
        return DeclBuffer(buffer)

    def _assert(self) -> Stmt:
        kind = self.choices.pick(("AssertionError", "ValueError", "ShapeError"))
        return AssertStmt(expression(self.state, "bool", 2), self.choices.text(), kind)

    def _attribute(self) -> Stmt:
        choices = self.choices
        value = choices.pick(("value", const(4, "int32"), 4, None, 0.5))
        return AttrStmt(
            choices.pick(("scope", self.state.variables[0], self.state.buffers[0])),
            choices.pick(("pragma", "two words")),
            value,
            self._nested(),
        )

    def _nested(self) -> Stmt:
        self.state.loops += 1
        try:
            return self.body()
        finally:
            self.state.loops -= 1

    def _for(self) -> Stmt:
        choices = self.choices
        dtype = choices.pick(("int32", "int64", "int16"))
        variable = PrimVar(choices.name(), dtype)
        kind = choices.pick(("serial", "parallel", "vectorized", "unrolled", "thread_binding"))
        thread = choices.pick(("threadIdx.x", "blockIdx.y", "vthread")) if kind == "thread_binding" else None
        start = choices.pick((0, 0, 2, -3)) if kind != "thread_binding" else 0
        extent = choices.pick((4, 1, 0, self.state.variables[0] if dtype == "int64" and kind != "vectorized" else 8))
        step = choices.pick((None, 2, 3)) if kind == "serial" and choices.flip(20) else None
        annotations = attribute_map(choices) if choices.flip(15) else attribute_map(choices, most=0)
        mark = len(self.state.variables)
        self.state.variables.append(variable)
        body = self._nested()
        if kind == "serial" and choices.flip(15):
            stop = choices.pick((Break(), Continue()))
            body = sequence([IfThenElse(expression(self.state, "bool", 1), stop), body])
        del self.state.variables[mark:]
        return For(variable, start, extent, body, kind, thread, step, annotations)

    def _if(self) -> Stmt:
        condition = expression(self.state, "bool", 2)
        then = self._nested()
        return IfThenElse(condition, then, self._nested() if self.choices.flip() else None)

    def _while(self) -> Stmt:
        return While(expression(self.state, "bool", 2), self._nested())

    def _block(self) -> Stmt:
        choices = self.choices
        marks = len(self.state.variables), len(self.state.buffers)
        iters: list[IterVar] = []
        for _ in range(choices.integer(0, 3)):
            dtype = choices.pick(("int32", "int64"))
            value = choices.pick([v for v in self.state.variables if v.dtype == dtype] or [const(0, dtype)])
            kind = choices.pick(("spatial", "reduce", "opaque", "scan"))
            iters.append(
                IterVar(PrimVar(choices.name(), dtype), choices.pick((0, 0, 2)), choices.pick((4, 16)), kind, value)
            )
        self.state.variables.extend(axis.var for axis in iters)
        predicate = expression(self.state, "bool", 1) if choices.flip(20) else None
        allocated = tuple(self.buffer(self.state.variables[0]) for _ in range(choices.pick((0, 0, 1, 2))))
        self.state.buffers.extend(allocated)
        self.state.reduced.update(axis.var for axis in iters if axis.kind == "reduce")
        init = self._store() if any(axis.kind == "reduce" for axis in iters) and choices.flip() else None
        body = sequence([*(self._first(buffer) for buffer in allocated), self._nested()])
        regions = None
        if choices.flip(30):
            regions = tuple(BufferRegion(b, tuple(Range(0, extent) for extent in b.shape)) for b in self.state.buffers)
        annotations = attribute_map(choices) if choices.flip(15) else attribute_map(choices, most=0)
        del self.state.variables[marks[0] :]
        del self.state.buffers[marks[1] :]
        name = choices.pick(("block", "root", "", "two words", "é"))
        return Block(name, body, tuple(iters), predicate, regions, regions, init, allocated, (), annotations)


def _parameter(opaque: _Opaque, size: PrimVar) -> Buffer | PrimVar:
    choices = opaque.choices
    kind = choices.integer(0, 3)
    if kind == 0:
        scalar = PrimVar(choices.name(), choices.pick(("int32", "float32", "bool", "int64", "uint8", "bfloat16")))
        opaque.state.variables.append(scalar)
        return scalar
    if kind == 1:
        options = ((None, "global"), ("float32", "global"), ("int8", "shared"))
        pointee, scope = choices.pick(options)
        handle = PrimVar(choices.name(), "handle", pointee, scope)
        opaque.state.handles.append(handle)
        return handle
    buffer = opaque.buffer(size, parameter=True)
    opaque.state.buffers.append(buffer)
    return buffer


def _evaluate(opaque: _Opaque) -> Stmt:
    choices = opaque.choices
    kind = choices.integer(0, 5)
    if kind == 0:
        return Evaluate(expression(opaque.state, choices.pick(("int32", "float32", "bool")), 2))
    if kind == 1 and opaque.state.handles:
        return Evaluate(PrimCall("call_extern", (StringImm("release"), choices.pick(opaque.state.handles)), "void"))
    if kind == 2:
        pointer = _pointer(opaque)
        return Evaluate(PrimCall("call_extern", (StringImm(choices.text()), pointer, const(1, "int32")), "int32"))
    if kind == 3:
        value = expression(opaque.state, "float32", 1)
        return Evaluate(PrimCall("call_packed", (StringImm("lib.f"), value), "int32"))
    if kind == 4:
        attrs = attribute_map(choices)
        return Evaluate(PrimCall("device.barrier", (expression(opaque.state, "int32", 1),), "void", attrs))
    return Evaluate(PrimCall("tvm_storage_sync", (StringImm("shared"),), "int32"))


def _pointer(opaque: _Opaque) -> PrimExpr:
    buffer = opaque.choices.pick(opaque.state.buffers)
    return PrimCall("address_of", (BufferLoad(buffer, position(opaque.state, buffer)),), "handle")
