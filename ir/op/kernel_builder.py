"""Kernels written as statements, for operators whose elements are no formula of an index: scatters, searches, counts.

    @loops_lowering
    def lower(frame: Loops) -> PrimFunc | None:
        x, out = frame.input("x"), frame.output()
        return frame.finish(loops(x.shape, lambda i: store(out, load(x, i), i)))

The parameters come in the order that every kernel has: the tensors of the call, the results, the symbols that no
buffer binds. Inputs are asked for in the order of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, DimExpr, free_symbols, prove_equal, prove_le
from weft.ir.graph import PrimValue
from weft.ir.kernel.prim import as_expr, binary, cast, const, unary
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.op.common import Dims, Immediate, Kernel, immediate_value, is_immediate
from weft.ir.op.declare import Arguments, Lower
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.ir.types import TensorType, TupleType

__all__ = [
    "INDEX",
    "LoopKernel",
    "Loops",
    "counted",
    "index",
    "joined",
    "load",
    "loops",
    "loops_lowering",
    "store",
    "wrapped",
    "zero",
]

INDEX = "int64"
Index = int | PrimExpr


def index(value: Index) -> PrimExpr:
    """An index expression."""
    return as_expr(value, INDEX)


def loops(extents: Sequence[Extent], body: Callable[[list[PrimVar]], Stmt]) -> Stmt:
    """Serial loops over a shape, in row-major order."""
    variables = [PrimVar(f"i{position}", INDEX) for position in range(len(extents))]
    statement = body(variables)
    for variable, extent in reversed(list(zip(variables, extents, strict=True))):
        statement = For(variable, 0, extent, statement)
    return statement


def counted(name: str, extent: Extent, body: Callable[[PrimVar], Stmt]) -> Stmt:
    """One serial loop from 0."""
    variable = PrimVar(name, INDEX)
    return For(variable, 0, extent, body(variable))


def load(buffer: Buffer | Immediate, indices: Sequence[Index] = ()) -> PrimExpr:
    """One element."""
    if isinstance(buffer, Immediate):
        return buffer.value
    return BufferLoad(buffer, tuple(map(index, indices)))


def store(buffer: Buffer, value: Any, indices: Sequence[Index] = (0,)) -> Stmt:
    """Set one element, converted to the dtype of the buffer."""
    return BufferStore(buffer, cast(buffer.dtype, as_expr(value, buffer.dtype)), tuple(map(index, indices)))


def joined(*statements: Stmt) -> Stmt:
    """Statements one after the other."""
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def wrapped(value: PrimExpr, size: PrimExpr) -> PrimExpr:
    """An index as int64, counted from the end where it is negative."""
    value = cast(INDEX, value)
    return Select(binary("lt", value, 0), value + size, value)


class Loops:
    """The frame of such a kernel; `known` is False where a shape or dtype is unknown: then there is no kernel."""

    def __init__(self, args: Arguments, context: TypeContext, name: str) -> None:
        self.args = args
        self.context = context
        self.name = name
        frame = Kernel(args, context, name)
        self.known = frame.known
        self.result = frame.result
        self.symbols: dict[str, PrimVar] = {}
        self._inputs: list[Buffer | PrimVar] = []
        self._outputs: list[Buffer] = []
        self._locals: list[Buffer] = []
        self._asserts: list[Stmt] = []

    def extent(self, dim: Dim) -> Extent:
        """A dimension over the symbols of this kernel."""
        for name in free_symbols(dim):
            self.symbols.setdefault(name, PrimVar(name, INDEX))
        return dim_to_prim(dim, self.symbols)

    def size(self, dim: Dim) -> PrimExpr:
        """A dimension as a value."""
        return index(self.extent(dim))

    def input(self, name: str) -> Any:
        """The buffer of a tensor argument; what stands for the number where it is one."""
        return self._input(name, self.args[name])

    def inputs(self, name: str, values: Sequence[Any]) -> list[Any]:
        """The buffers of the parts of a tuple argument."""
        return [self._input(f"{name}_{position}", value) for position, value in enumerate(values)]

    def _input(self, name: str, expr: Any) -> Any:
        if isinstance(expr, PrimValue) and isinstance(expr.value, DimExpr):
            return Immediate(cast(expr.dtype, self.size(expr.value)))
        if is_immediate(expr):
            return Immediate(immediate_value(expr))
        ty = self.context.type_of(expr)
        if not isinstance(ty, TensorType):
            variable = PrimVar(name, ty.dtype)  # type: ignore[union-attr]
            self._inputs.append(variable)
            return Immediate(variable)
        buffer = self._buffer(name, dims_of(ty) or (), str(ty.dtype))
        self._inputs.append(buffer)
        return buffer

    def _buffer(self, name: str, dims: Dims, dtype: str) -> Buffer:
        return Buffer(name, tuple(map(self.extent, dims)), dtype)

    def output(self) -> Buffer:
        """The buffer of the (one) result."""
        return self.outputs("out")[0]

    def outputs(self, *names: str) -> list[Buffer]:
        """The buffers of the results."""
        fields = self.result.fields if isinstance(self.result, TupleType) else (self.result,)
        for name, ty in zip(names, fields, strict=True):
            assert isinstance(ty, TensorType)
            self._outputs.append(self._buffer(name, dims_of(ty) or (), str(ty.dtype)))
        return self._outputs

    def local(self, name: str, dtype: str = INDEX, dims: Dims = (1,)) -> Buffer:
        """A buffer of the kernel's own."""
        self._locals.append(self._buffer(name, dims, dtype))
        return self._locals[-1]

    def own(self, buffer: Buffer) -> None:
        """Take a buffer that was made elsewhere as one of the kernel's own."""
        self._locals.append(buffer)

    def require_equal(self, a: Dim, b: Dim) -> None:
        """Assert that two dimensions are equal, unless that is proved."""
        if prove_equal(a, b, self.context.facts) is not True:
            self.require(binary("eq", self.size(a), self.size(b)), f"the sizes {a} and {b} differ")

    def require_at_most(self, a: Dim, b: Dim) -> None:
        """Assert that a dimension is at most another, unless that is proved."""
        if prove_le(a, b, self.context.facts) is not True:
            self.require(binary("le", self.size(a), self.size(b)), f"the size {a} exceeds {b}")

    def require(self, condition: PrimExpr, message: str, kind: str = "ShapeError") -> None:
        """A condition that the kernel asserts before anything else."""
        self._asserts.append(self.check(condition, message, kind))

    def check(self, condition: PrimExpr, message: str, kind: str = "BoundsError") -> Stmt:
        """An assertion in the place where it is put."""
        return AssertStmt(condition, f"{self.args.name}: {message}", kind)

    def check_index(self, value: PrimExpr, size: PrimExpr) -> Stmt:
        """An assertion that an index, which may count from the end, is one of an axis of that size."""
        value = cast(INDEX, value)
        inside = binary("and", binary("ge", value, unary("neg", size)), binary("lt", value, size))
        return self.check(inside, "index out of range")

    def finish(self, *statements: Stmt) -> PrimFunc:
        """The kernel."""
        body = joined(*(AllocBuffer(buffer) for buffer in self._locals), *self._asserts, *statements)
        params: list[Buffer | PrimVar] = [*self._inputs, *self._outputs]
        bound = {e for buffer in params if isinstance(buffer, Buffer) for e in buffer.shape if isinstance(e, PrimVar)}
        scalars = [variable for variable in self.symbols.values() if variable not in bound]
        return PrimFunc((*params, *scalars), body, name=self.name)


def zero(dtype: str) -> PrimExpr:
    """0 of a dtype (False of bool)."""
    return const(False if dtype == "bool" else 0, dtype)


def loops_lowering(lower: Callable[[Loops], PrimFunc | None]) -> Lower:
    """A decorator of `lower(frame)`: it is called with a frame whose shapes and dtypes are known."""

    @wraps(lower)
    def lowering(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
        frame = Loops(args, context, name)
        return lower(frame) if frame.known else None

    return lowering


class LoopKernel:
    """A kernel that is written as a class over its frame."""

    def __init__(self, frame: Loops) -> None:
        self.frame = frame
        self.args = frame.args
        self.context = frame.context

    @classmethod
    def lowering(cls) -> Lower:
        """What stands in a declaration as `lowering`."""
        return loops_lowering(lambda frame: cls(frame).body())

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        raise NotImplementedError
