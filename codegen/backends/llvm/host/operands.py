"""The operands of a host program as values of machine code, and fresh memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, cast, icmp, load, select, store
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.asm.program import frame_word
from weft.codegen.backends.llvm.asm.types import element_bytes
from weft.codegen.backends.llvm.host.checks import CheckingEmitter
from weft.codegen.backends.llvm.host.values import (
    Callable_,
    Dynamic,
    Items,
    Scalar,
    Shape,
    Tensor,
    Text,
    Value,
    read,
)
from weft.codegen.backends.llvm.values.words import to_word
from weft.codegen.host import program as host
from weft.errors import Span, TargetError
from weft.ir.graph import Constant, Var
from weft.ir.types import TensorType
from weft.runtime.abi.frame import CONSTANTS, HEADER, LOOP_OUTPUTS, OUTPUTS
from weft.runtime.abi.values import scalar_word

__all__ = ["OperandEmitter"]


class OperandEmitter(CheckingEmitter):
    """The values of operands, and memory for new ones."""

    def value(self, operand: host.Operand) -> Value:
        """The value of an operand."""
        if isinstance(operand, Var):
            found = self.variables.get(operand)
            if found is None:
                message = f"llvm: the variable {operand.name!r} has no value here"
                raise TargetError(message, code="W744", span=operand.span)
            return found
        return _VALUES[type(operand)](self, operand)

    def _constant(self, constant: Constant) -> Value:
        index = self.program.constant(constant.data, constant.dtype)
        table = self.w.emit(load("ptr", frame_word(self.w, CONSTANTS)))
        return Tensor(read(self.w, table, index), "0", list(constant.data.shape), constant.dtype, constant=True)

    def _extents(self, extents: host.Extents) -> Value:
        return Shape([self.nonnegative(dim, extents.span) for dim in extents.dims])

    def _size_value(self, operand: host.Size) -> Value:
        word = str(self.size(operand.dim, operand.span))
        if dtypes.is_float(operand.dtype):
            converted = self.arith.cast("int64", operand.dtype, word)
            return Scalar(operand.dtype, to_word(self.w, operand.dtype, converted))
        return Scalar(operand.dtype, word)

    def _group(self, group: host.Group) -> Value:
        return Items([self.value(item) for item in group.fields])

    def _item(self, item: host.Item) -> Value:
        value = self.value(item.value)
        if not isinstance(value, Items):
            raise TargetError("llvm: the fields of this tuple are not known", code="W743", span=item.span)
        return value.fields[item.index]

    def truth(self, value: Value, span: Span | None) -> str:
        """A condition: a scalar or a tensor of rank 0."""
        if isinstance(value, Scalar):
            return self.w.emit(icmp("ne", "i64", value.word, "0"))
        if isinstance(value, Dynamic):
            value = self._static(value, TensorType((), "bool"), "a condition", span)
        if not isinstance(value, Tensor) or any(size != 1 for size in value.sizes):
            raise TargetError("llvm: a condition is a scalar or a tensor of rank 0", code="W743", span=span)
        pointer = self.w.emit(cast("inttoptr", "i64", value.data, "ptr"))
        loaded = self.memory.from_memory(value.dtype, self.memory.read(value.dtype, pointer))
        return self.arith.cast(value.dtype, "bool", loaded)

    # Memory

    def allocate(
        self, sizes: Sequence[Size], dtype: str, span: Span | None, var: Var | None, maker: str = "weft.allocate"
    ) -> Tensor:
        """A fresh tensor."""
        bytes_ = self.bytes_of(sizes, dtype)
        if var in self.direct:
            return self._allocate_result(sizes, dtype, bytes_, span, var, *self.direct[var])
        block = self.w.emit(call("i64", f"@{maker}", [("i64", bytes_)]))
        name = var.name if var is not None else "_"
        found = self.w.emit(icmp("ne", "i64", block, "0"))
        self.unless(found, "MemoryError", [f"no memory for {name}: ", 0, " bytes"], [bytes_], span)
        self.hold(block, var)
        return Tensor(self.w.emit(binary("add", "i64", block, HEADER)), block, list(sizes), dtype)

    def _allocate_result(
        self, sizes: Sequence[Size], dtype: str, bytes_: Size, span: Span | None, var: Var, word: int, ty: TensorType
    ) -> Tensor:
        """A tensor that becomes a result: where the caller wants it, when that is large enough."""
        w = self.w
        data, owner = w.alloca("i64"), w.alloca("i64")
        asked, wanted, fresh, done = (w.label(name) for name in ("asked", "wanted", "fresh", "done"))
        asks = w.emit(load("i64", frame_word(w, OUTPUTS)))
        w.branch(w.emit(icmp("ne", "i64", asks, "0")), asked, fresh)
        w.open(asked)
        place_ = read(w, "%results", word)
        room: Size = element_bytes(ty.dtype or dtype)
        for axis in range(ty.ndim):
            room = w.emit(binary("mul", "i64", room, read(w, "%results", word + 2 + axis)))
        given = w.emit(icmp("ne", "i64", place_, "0"))
        fits = w.emit(binary("and", "i1", given, w.emit(icmp("eq", "i64", room, bytes_))))
        w.branch(fits, wanted, fresh)
        w.open(wanted)
        w.do(store("i64", place_, data))
        of_loop = w.emit(icmp("eq", "i64", asks, LOOP_OUTPUTS))
        block = w.emit(select("i1", of_loop, "i64", read(w, "%results", word + 1), "0"))
        w.do(call("void", "@weft.retain", [("i64", block)]))
        w.do(store("i64", block, owner))
        w.jump(done)
        w.open(fresh)
        block = w.emit(call("i64", "@weft.allocate", [("i64", bytes_)]))
        found = w.emit(icmp("ne", "i64", block, "0"))
        self.unless(found, "MemoryError", [f"no memory for {var.name}: ", 0, " bytes"], [bytes_], span)
        w.do(store("i64", w.emit(binary("add", "i64", block, HEADER)), data))
        w.do(store("i64", block, owner))
        w.open(done)
        held = w.emit(load("i64", owner))
        self.hold(held, var)
        return Tensor(w.emit(load("i64", data)), held, list(sizes), dtype)

    def bytes_of(self, sizes: Sequence[Size], dtype: str) -> Size:
        """The bytes of a tensor; a number beyond all memory where 64 bits do not hold it."""
        return Exact(self.w).bytes_of(sizes, element_bytes(dtype))

    def copied(self, value: Tensor, span: Span | None) -> Tensor:
        """A copy that may be written."""
        fresh = self.allocate(value.sizes, value.dtype, span, None)
        size: Size = element_bytes(value.dtype)
        for extent in value.sizes:
            size = self.w.mul(size, extent)
        self.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1 immarg"))
        target, source = (self.w.emit(cast("inttoptr", "i64", part, "ptr")) for part in (fresh.data, value.data))
        self.w.do(
            call("void", "@llvm.memcpy.p0.p0.i64", [("ptr", target), ("ptr", source), ("i64", size), ("i1", "false")])
        )
        return fresh


_VALUES: Mapping[type, Callable[[OperandEmitter, Any], Value]] = {
    Constant: OperandEmitter._constant,
    host.Extents: OperandEmitter._extents,
    host.Size: OperandEmitter._size_value,
    host.Number: lambda emitter, number: Scalar(number.dtype, str(scalar_word(number.value, number.dtype))),
    host.Group: OperandEmitter._group,
    host.Item: OperandEmitter._item,
    host.Text: lambda emitter, text: Text(text.text),
    host.FunctionName: lambda emitter, name: Callable_(name.name),
}
