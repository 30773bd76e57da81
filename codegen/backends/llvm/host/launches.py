"""One call of a kernel from a graph function: its symbols from the sizes given, and the checks that are left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import Operand, call, cast, icmp
from weft.codegen.backends.llvm.asm.types import memory_type, value_type
from weft.codegen.backends.llvm.host.checks import number, type_name
from weft.codegen.backends.llvm.host.operands import OperandEmitter
from weft.codegen.backends.llvm.host.values import Items, Scalar, Shape, Tensor, Value
from weft.codegen.backends.llvm.kernel.emitter import kernel_params
from weft.codegen.backends.llvm.values.words import from_word, to_word
from weft.codegen.host import program as host
from weft.codegen.host.kernels import result_dtype, shared_positions, written_positions
from weft.codegen.host.relations import Relation, relations
from weft.errors import ShapeError, Span, TargetError
from weft.ir.dim import Dim, DimExpr, free_symbols, operation
from weft.ir.graph import Var
from weft.ir.kernel.prim_dim import buffer_symbols, kernel_signature, prim_to_dim, symbol_names
from weft.ir.tensor import Buffer, Extent, PrimFunc, PrimVar
from weft.ir.types import TensorType
from weft.runtime.abi.failures import KERNEL_CALL

__all__ = ["call_kernel"]


class KernelMatch:
    """One call of a kernel: its symbols from the sizes given, and the checks that are left."""

    def __init__(
        self, emitter: OperandEmitter, name: str, kernel: PrimFunc, given: Sequence[host.Operand], span: Span | None
    ) -> None:
        self.emitter, self.name, self.kernel, self.given, self.span = emitter, name, kernel, given, span
        self.names, self.types = emitter.program.kernel_types(
            name, kernel, lambda k: (symbol_names(k), kernel_signature(k))
        )
        self.values: dict[str, Size] = {}
        self.relations: list[list[Relation]] = []
        self.claims: list[tuple[int, Sequence[Dim], Sequence[Size]]] = []

    def _place(self, position: int) -> str:
        return f"argument {position + 1} `{self.kernel.params[position].name}`"

    def tensor(self, position: int, param: Buffer, arg: Value) -> Tensor:
        """A buffer's argument, its sizes noted."""
        emitter = self.emitter
        what = f"{self._place(position)} of {self.name}"
        ty = self.types[position]
        assert isinstance(ty, TensorType)
        if not isinstance(arg, Tensor):
            arg = emitter.shaped(arg, TensorType(None, param.dtype, param.ndim), what, self.span)
        if not isinstance(arg, Tensor) or arg.dtype != param.dtype or len(arg.sizes) != param.ndim:
            got = f"{arg.dtype} of rank {len(arg.sizes)}" if isinstance(arg, Tensor) else type(arg).__name__.lower()
            raise ShapeError(f"{what}: expected {type_name(ty)}, got {got}", code="W202", span=self.span)
        dims = ty.dims or ()
        self.claims.append((position, dims, arg.sizes))
        for dim, size in zip(dims, arg.sizes, strict=True):
            kind, operands = operation(dim)
            if kind == "symbol" and operands[0] not in self.values:
                self.values[operands[0]] = size
        return arg

    def scalar(self, position: int, dtype: str, arg: Value) -> str:
        """A scalar's argument as a word of the parameter's dtype; of a tensor behind a handle its address."""
        emitter = self.emitter
        if dtype == "handle" and isinstance(arg, Tensor):
            return str(arg.data)
        if isinstance(arg, Shape) and len(arg.sizes) == 1:
            arg = Scalar("int64", str(arg.sizes[0]))
        if isinstance(arg, Tensor) and not arg.sizes:
            pointer = emitter.w.emit(cast("inttoptr", "i64", arg.data, "ptr"))
            loaded = emitter.memory.from_memory(arg.dtype, emitter.memory.read(arg.dtype, pointer))
            arg = Scalar(arg.dtype, to_word(emitter.w, arg.dtype, loaded))
        if not isinstance(arg, Scalar):
            raise ShapeError(f"{self._place(position)} of {self.name}: expected a scalar", code="W202", span=self.span)
        word = arg.word
        if arg.dtype != dtype:
            value = emitter.arith.cast(arg.dtype, dtype, from_word(emitter.w, arg.dtype, word))
            word = to_word(emitter.w, dtype, value)
        name = self.names.get(self.kernel.params[position])
        if name is not None and dtypes.is_integer(dtype):
            self.values.setdefault(name, number(word))
        return word

    def finish(self) -> list[Size]:
        """Compare the sizes, and give those of the kernel's symbols in order."""
        for position, dims, sizes in self.claims:
            for axis, (dim, size) in enumerate(zip(dims, sizes, strict=True)):
                if isinstance(dim, DimExpr) and any(name not in self.values for name in free_symbols(dim)):
                    continue
                self._compare(position, axis, dim, size)
        layout: dict[Any, Size] = {}
        for (_, _, sizes), param in zip(
            self.claims, [p for p in self.kernel.params if isinstance(p, Buffer)], strict=True
        ):
            step: Size = 1
            for stride, size in zip(reversed(param.strides or ()), reversed(list(sizes)), strict=False):
                self._stride(param, stride, step, layout)
                step = self.emitter.w.mul(step, size)
            layout.setdefault(param.elem_offset, 0)
        return [self.values.get(self.names[s], layout.get(s, 0)) for s in buffer_symbols(self.kernel)]

    def _stride(self, param: Buffer, stride: Extent, step: Size, layout: dict[Any, Size]) -> None:
        """A stride is that of a dense array, and a symbol of strides is the same wherever it stands."""
        if isinstance(stride, PrimVar) and self.names.get(stride) not in self.values:
            wanted, same = layout.setdefault(stride, step), None
            if wanted != step:
                same = self.emitter.w.emit(icmp("eq", "i64", wanted, step))
        else:
            dim = prim_to_dim(stride, self.names)
            if dim is None or any(name not in self.values for name in free_symbols(dim)):
                dim = -1  # no stride that a dense array has
            wanted, equal = self.emitter.compared(dim, step, self.values, self.span)
            same = None if equal is True else equal or "false"
        if same is not None:
            parts = [f"`{param.name}` of {self.name}: expected the stride ", 0, ", got ", 1]
            self.emitter.unless(same, "ShapeError", parts, [wanted, step], self.span, "W222")

    def _compare(self, position: int, axis: int, dim: Dim, size: Size) -> None:
        wanted, same = self.emitter.compared(dim, size, self.values, self.span)
        if same is True:
            return
        if not self.relations:
            self.relations = relations(self.kernel, self.given, self.types)
        parts = self.relations[position][axis].parts(self.name)
        if isinstance(wanted, int) and isinstance(size, int):
            message = "".join(part if isinstance(part, str) else str((wanted, size)[part]) for part in parts)
            raise ShapeError(message, code="W222", span=self.span)
        self.emitter.unless(same or "false", "ShapeError", parts, [wanted, size], self.span, "W222")


def call_kernel(
    emitter: OperandEmitter,
    name: str,
    kernel: PrimFunc,
    args: list[Value],
    given: Sequence[host.Operand],
    span: Span | None,
) -> Value:
    """A call of a kernel on tensors and scalars; `given` are the operands that the last arguments came from."""
    if len(args) != len(kernel.params):
        raise TargetError(f"llvm: {name} takes {len(kernel.params)} arguments, got {len(args)}", code="W743", span=span)
    written = emitter.program.written(name, kernel, written_positions)
    sharing = shared_positions(kernel)
    match = KernelMatch(emitter, name, kernel, given, span)
    operands: list[tuple[str, Operand]] = [("ptr", "%frame")]
    for position, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
        if isinstance(param, Buffer):
            tensor = match.tensor(position, param, arg)
            others = written - sharing.get(position, set())
            if position not in written and any(
                isinstance(o, Tensor) and o.data == tensor.data for o in _at(args, others)
            ):
                tensor = emitter.copied(tensor, span)  # what is read stays as it was before the call
            if position in written and tensor.constant:
                tensor = emitter.copied(tensor, span)
                _rebind(emitter, given, position, tensor)
            elif position in written and tensor.param >= 0:
                emitter.written.add(tensor.param)
            operands.append(("ptr", emitter.w.emit(cast("inttoptr", "i64", tensor.data, "ptr"))))
        else:
            word = match.scalar(position, param.dtype, arg)
            operands.append((value_type(param.dtype), from_word(emitter.w, param.dtype, word)))
    operands += [("i64", size) for size in match.finish()]
    dtype = result_dtype(kernel)
    slot = emitter.w.alloca(memory_type(dtype)) if dtype else ""
    if dtype:
        operands.append(("ptr", slot))
    spelled = emitter.module.declare(
        emitter.program.kernel_symbol(name), "i32", ("ptr", *(t for t, _ in kernel_params(kernel)))
    )
    emitter.pass_on(emitter.w.emit(call("i32", spelled, operands)), span, placed=KERNEL_CALL)
    if dtype:
        value = emitter.memory.from_memory(dtype, emitter.memory.read(dtype, slot))
        return Scalar(dtype, to_word(emitter.w, dtype, value))
    return Items()


def _at(values: Sequence[Value], positions: Collection[int]) -> list[Value]:
    return [values[position] for position in positions]


def _rebind(emitter: OperandEmitter, given: Sequence[host.Operand], position: int, tensor: Tensor) -> None:
    """The variable whose constant was copied before a kernel wrote it now means the copy."""
    operand = given[position] if position < len(given) else None
    if isinstance(operand, Var):
        emitter.variables[operand] = tensor
