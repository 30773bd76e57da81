"""Steps of a host program that are not calls: memory, shapes, printing, assertions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary, cast, getelementptr, icmp
from weft.codegen.backends.llvm.asm.types import element_bytes, memory_type
from weft.codegen.backends.llvm.host.checks import number
from weft.codegen.backends.llvm.host.operands import OperandEmitter
from weft.codegen.backends.llvm.host.values import (
    Dynamic,
    DynamicShape,
    Items,
    Scalar,
    Shape,
    Tensor,
    Text,
    Value,
    copy_words,
    place,
    read,
    write,
)
from weft.codegen.host import program as host
from weft.codegen.host.operands import no_kernel
from weft.errors import Span, TargetError
from weft.ir.types import AnyType, ShapeType, TensorType, TupleType
from weft.runtime.abi.frame import DYNAMIC_RANK

__all__ = ["alloc", "operation", "view"]


# Memory


def alloc(emitter: OperandEmitter, step: host.Alloc) -> Value:
    """Fresh memory."""
    shape = emitter.value(step.shape)
    if step.block and isinstance(shape, Scalar):
        shape = Shape([shape.word])
    if not isinstance(shape, Shape):
        what = "storage of unknown size" if step.block else "memory of unknown rank"
        raise TargetError(f"llvm: {what} cannot be allocated", code="W743", span=step.span)
    maker = "weft.block" if step.block else "weft.allocate"
    return emitter.allocate(shape.sizes, step.dtype, step.span, step.into, maker)


def view(emitter: OperandEmitter, step: host.View) -> Value:
    """A tensor over memory that is there."""
    source = emitter.value(step.source)
    if not isinstance(source, Tensor):
        what = "a tensor in storage needs a storage" if step.block else "a view of a tensor of unknown rank"
        raise TargetError(f"llvm: {what}", code="W743", span=step.span)
    shape = Shape(source.sizes) if step.shape is None else emitter.value(step.shape)
    offset = emitter.value(step.offset)
    if not isinstance(shape, Shape) or not isinstance(offset, Scalar):
        raise TargetError("llvm: a view needs a shape of known rank and a scalar offset", code="W743", span=step.span)
    dtype = step.dtype or source.dtype
    _fits(emitter, offset.word, shape.sizes, dtype, source, step.span)
    start = str(emitter.w.add(source.data, number(offset.word)))
    if step.block:
        return Tensor(start, source.owner, shape.sizes, dtype)
    return Tensor(start, source.owner, shape.sizes, dtype, source.constant, source.param)


def _fits(
    emitter: OperandEmitter, offset: str, sizes: Sequence[Size], dtype: str, storage: Tensor, span: Span | None
) -> None:
    """BoundsError W903 when a tensor at an offset in bytes does not lie within another one."""
    w = emitter.w
    end = emitter.bytes_of(sizes, dtype)
    room: Size = element_bytes(storage.dtype)
    for size in storage.sizes:
        room = w.mul(room, size)  # memory that is there
    last = w.add(end, number(offset))
    if isinstance(last, int) and isinstance(room, int) and 0 <= int(offset) and last <= room:
        return
    # `end` is at most 2**62: where the offset is not negative either, the sum is exact as an unsigned number.
    fits = w.emit(icmp("ule", "i64", last, room))
    positive = w.emit(icmp("sge", "i64", offset, "0"))
    parts = ["a tensor that ends at byte ", 0, " does not fit in a storage of ", 1]
    emitter.unless(w.emit(binary("and", "i1", fits, positive)), "BoundsError", parts, [last, room], span, "W903")


# Operators of the executor


def operation(emitter: OperandEmitter, step: host.Operation) -> Value:
    """An operator of the executor; TargetError W745 for one that has no kernel."""
    rule = _OPERATIONS.get(step.name)
    if rule is None:
        raise no_kernel("llvm", step, emitter.name)
    return rule(emitter, step)


def _null(emitter: OperandEmitter, step: host.Operation) -> Value:
    return emitter.call_action("weft.null", [], AnyType(), step.span)


def _shape_of(emitter: OperandEmitter, step: host.Operation) -> Value:
    value = emitter.value(step.arguments[0])
    if isinstance(value, Tensor):
        return Shape(list(value.sizes))
    if not isinstance(value, Dynamic):
        raise TargetError("llvm: R.shape_of takes a tensor", code="W743", span=step.span)
    block = emitter.w.alloca("i64", 1 + DYNAMIC_RANK)
    write(emitter.w, block, 0, read(emitter.w, value.words, 2))
    copy_words(emitter.w, block, 1, place(emitter.w, value.words, 4), DYNAMIC_RANK)
    return DynamicShape(block)


def _tensor_to_shape(emitter: OperandEmitter, step: host.Operation) -> Value:
    value, var = emitter.value(step.arguments[0]), step.into
    ty = var.ty if isinstance(var.ty, ShapeType) else ShapeType()
    if not isinstance(value, Tensor) or len(value.sizes) != 1 or not isinstance(value.sizes[0], int):
        return emitter.call_action("weft.tensor_to_shape", [value], ty, step.span)
    pointer = emitter.w.emit(cast("inttoptr", "i64", value.data, "ptr"))
    sizes: list[Size] = []
    for axis in range(value.sizes[0]):
        element = emitter.w.emit(getelementptr(memory_type(value.dtype), pointer, axis))
        size = emitter.arith.cast(value.dtype, "int64", emitter.memory.read(value.dtype, element))
        fine = emitter.w.emit(icmp("sge", "i64", size, "0"))
        emitter.unless(fine, "ShapeError", ["a shape has the negative size ", 0], [size], step.span, "W221")
        sizes.append(size)
    return emitter.fitted(Shape(sizes), ty, var.name or "a shape", step.span)


def _shape_to_tensor(emitter: OperandEmitter, step: host.Operation) -> Value:
    value = emitter.value(step.arguments[0])
    if not isinstance(value, Shape):
        return emitter.call_action("weft.shape_to_tensor", [value], TensorType(None, "int64", 1), step.span)
    result = emitter.allocate([len(value.sizes)], "int64", step.span, step.into)
    pointer = emitter.w.emit(cast("inttoptr", "i64", result.data, "ptr"))
    for axis, size in enumerate(value.sizes):
        write(emitter.w, pointer, axis, size)
    return result


def _print(emitter: OperandEmitter, step: host.Operation) -> Value:
    said, *given = step.arguments
    values = [emitter.value(item) for item in given]
    return emitter.call_action("weft.print_format", values, TupleType(()), step.span, format=_text(said))


def _assert(emitter: OperandEmitter, step: host.Operation) -> Value:
    """An assertion about a scalar, or about every element of a tensor of one; what is text is true."""
    condition, said, *given = step.arguments
    value = emitter.value(condition)
    holds = "true" if isinstance(value, Text) else emitter.truth(value, step.span)
    bad, good = emitter.w.label("assert"), emitter.w.label("good")
    emitter.w.branch(holds, good, bad)
    emitter.w.open(bad)
    values = [emitter.value(item) for item in given]
    emitter.call_action("weft.assert", values, TupleType(()), step.span, format=_text(said))
    emitter.w.open(good)
    return Items()


def _text(operand: host.Operand) -> str:
    return operand.text if isinstance(operand, host.Text) else ""


_OPERATIONS: Mapping[str, Callable[[OperandEmitter, host.Operation], Value]] = {
    "null_value": _null,
    "shape_of": _shape_of,
    "tensor_to_shape": _tensor_to_shape,
    "shape_to_tensor": _shape_to_tensor,
    "print": _print,
    "assert_op": _assert,
}
