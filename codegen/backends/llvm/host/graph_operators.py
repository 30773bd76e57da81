"""Operators of graph functions that are not kernels: memory, shapes, closures, calls out of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft.codegen.backends.llvm.asm.asm import Size
from weft.codegen.backends.llvm.asm.types import element_bytes, memory_type
from weft.codegen.backends.llvm.host.graph_checks import number
from weft.codegen.backends.llvm.host.graph_values import (
    Callable_,
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
from weft.codegen.host.operands import expressions, plain_text, stated_dtype
from weft.errors import Span, TargetError
from weft.ir.graph import (
    Call,
    DataTypeImm,
    Expr,
    ExternFunc,
    Op,
    StringImm,
    Tuple,
    Var,
)
from weft.ir.op import get_op
from weft.ir.types import AnyType, ShapeType, TensorType, TupleType
from weft.runtime.abi.frame import DYNAMIC_RANK

if TYPE_CHECKING:
    from weft.codegen.backends.llvm.host.graph import GraphEmitter

__all__ = ["OPERATORS"]


def _alloc_tensor(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    shape = emitter.value(call.args[0])
    dtype = stated_dtype(call, var)
    if not isinstance(shape, Shape):
        raise TargetError("llvm: memory of unknown rank cannot be allocated", code="W743", span=span)
    return emitter.allocate(shape.sizes, dtype, span, var)


def _alloc_storage(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    size = emitter.value(call.args[0])
    if isinstance(size, Scalar):
        size = Shape([size.word])
    if not isinstance(size, Shape):
        raise TargetError("llvm: storage of unknown size cannot be allocated", code="W743", span=span)
    return emitter.allocate(size.sizes, "uint8", span, var, "weft.block")


def _tensor_in_storage(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    storage = emitter.value(call.args[0])
    shape = next((v for v in map(emitter.value, call.args[1:]) if isinstance(v, Shape)), None)
    offset = next(
        (v for v in map(emitter.value, call.args[1:]) if isinstance(v, Scalar)),
        Scalar("int64", str(call.attrs.get("offset", 0))),
    )
    if not isinstance(storage, Tensor) or shape is None:
        raise TargetError(
            "llvm: a tensor in storage needs a storage, an offset and a shape", code="W743", span=span
        )
    dtype = stated_dtype(call, var)
    _fits(emitter, offset.word, shape.sizes, dtype, storage, span)
    return Tensor(str(emitter.w.add(storage.data, number(offset.word))), storage.owner, shape.sizes, dtype)


def _fits(
    emitter: GraphEmitter, offset: str, sizes: Sequence[Size], dtype: str, storage: Tensor, span: Span | None
) -> None:
    """BoundsError W903 when a tensor at an offset in bytes does not lie within another one."""
    end = emitter.bytes_of(sizes, dtype)
    room: Size = element_bytes(storage.dtype)
    for size in storage.sizes:
        room = emitter.w.mul(room, size)
    last = emitter.w.add(end, number(offset))
    if isinstance(last, int) and isinstance(room, int) and 0 <= int(offset) and last <= room:
        return
    fits = emitter.w.emit(f"icmp sle i64 {last}, {room}")
    positive = emitter.w.emit(f"icmp sge i64 {offset}, 0")
    parts = ["a tensor that ends at byte ", 0, " does not fit in a storage of ", 1]
    emitter.unless(emitter.w.emit(f"and i1 {fits}, {positive}"), "BoundsError", parts, [last, room], span, "W903")


def _view(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    parts = get_op(call.op.name).values(call) if isinstance(call.op, Op) else {}
    data = emitter.value(call.args[0])
    if not isinstance(data, Tensor):
        raise TargetError("llvm: a view of a tensor of unknown rank", code="W743", span=span)
    shape = emitter.value(parts["shape"]) if parts.get("shape") is not None else Shape(data.sizes)
    given = parts.get("relative_byte_offset")
    offset = emitter.value(given) if isinstance(given, Expr) else Scalar("int64", str(given or 0))
    if not isinstance(shape, Shape) or not isinstance(offset, Scalar):
        raise TargetError("llvm: a view needs a shape of known rank and a scalar offset", code="W743", span=span)
    dtype = parts.get("dtype")
    dtype = dtype.value if isinstance(dtype, DataTypeImm) else dtype or data.dtype
    _fits(emitter, offset.word, shape.sizes, dtype, data, span)
    start = str(emitter.w.add(data.data, number(offset.word)))
    return Tensor(start, data.owner, shape.sizes, dtype, data.constant, data.param)


def _kill(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    for arg in call.args:
        if isinstance(arg, Var):
            emitter.drop(arg)
    return Items()


def _same(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    return emitter.value(call.args[0])


def _null(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    return emitter.call_out("weft.null", [], AnyType(), span)


def _shape_of(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    value = emitter.value(call.args[0])
    if isinstance(value, Tensor):
        return Shape(list(value.sizes))
    if not isinstance(value, Dynamic):
        raise TargetError("llvm: R.shape_of takes a tensor", code="W743", span=span)
    block = emitter.w.alloca("i64", 1 + DYNAMIC_RANK)
    write(emitter.w, block, 0, read(emitter.w, value.words, 2))
    copy_words(emitter.w, block, 1, place(emitter.w, value.words, 4), DYNAMIC_RANK)
    return DynamicShape(block)


def _tensor_to_shape(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    value = emitter.value(call.args[0])
    ty = var.ty if isinstance(var.ty, ShapeType) else ShapeType()
    if not isinstance(value, Tensor) or len(value.sizes) != 1 or not isinstance(value.sizes[0], int):
        return emitter.call_out("weft.tensor_to_shape", [value], ty, span)
    pointer = emitter.w.emit(f"inttoptr i64 {value.data} to ptr")
    sizes: list[Size] = []
    for axis in range(value.sizes[0]):
        element = emitter.w.emit(f"getelementptr {memory_type(value.dtype)}, ptr {pointer}, i64 {axis}")
        size = emitter.scalars.arith.cast(value.dtype, "int64", emitter.scalars._read(value.dtype, element))
        fine = emitter.w.emit(f"icmp sge i64 {size}, 0")
        emitter.unless(fine, "ShapeError", ["a shape has the negative size ", 0], [size], span, "W221")
        sizes.append(size)
    return emitter.fitted(Shape(sizes), ty, var.name or "a shape", span)


def _shape_to_tensor(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    value = emitter.value(call.args[0])
    if not isinstance(value, Shape):
        return emitter.call_out("weft.shape_to_tensor", [value], TensorType(None, "int64", 1), span)
    result = emitter.allocate([len(value.sizes)], "int64", span, var)
    pointer = emitter.w.emit(f"inttoptr i64 {result.data} to ptr")
    for axis, size in enumerate(value.sizes):
        write(emitter.w, pointer, axis, size)
    return result


def _print(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    parts = _parts(call)
    values = [emitter.value(item) for item in expressions(parts.get("values"))]
    return emitter.call_out("weft.print_format", values, TupleType(()), span, format=plain_text(parts.get("format")))


def _assert(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    parts = _parts(call)
    condition = _truth_of_all(emitter, emitter.value(parts["condition"]), parts["condition"])
    bad, good = emitter.w.label("assert"), emitter.w.label("good")
    emitter.w.branch(condition, good, bad)
    emitter.w.open(bad)
    values = [emitter.value(item) for item in expressions(parts.get("format_args"))]
    emitter.call_out("weft.assert", values, TupleType(()), span, format=plain_text(parts.get("format")))
    emitter.w.open(good)
    return Items()


def _truth_of_all(emitter: GraphEmitter, value: Value, expr: Expr) -> str:
    """Whether a scalar, or every element of a tensor of one, is true."""
    return emitter.truth(expr) if not isinstance(value, Text) else "true"


def _make_closure(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    function = emitter.value(call.args[0])
    fixed = _many(emitter, call.args[1]) if len(call.args) > 1 else []
    if not isinstance(function, Callable_):
        raise TargetError("llvm: a closure of a function that is not known when compiling", code="W743", span=span)
    return Callable_(function.name, [*function.fixed, *fixed])


def _invoke_closure(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    function = emitter.value(call.args[0])
    if not isinstance(function, Callable_):
        hint = "use weft.interpret for functions that are chosen while the program runs"
        raise TargetError("llvm: the closure called is not known when compiling", code="W743", span=span, hint=hint)
    return emitter.call_module(function.name, [*function.fixed, *_many(emitter, call.args[1])], call, var, span)


def _many(emitter: GraphEmitter, expr: Expr) -> list[Value]:
    value = emitter.value(expr)
    return list(value.fields) if isinstance(value, Items) else [value]


def _packed_operator(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    callee, *args = call.args
    if not isinstance(callee, (ExternFunc, StringImm)):
        raise TargetError("llvm: the external function must be named", code="W743", span=span)
    name = callee.name if isinstance(callee, ExternFunc) else callee.value
    if len(args) == 1 and isinstance(args[0], Tuple):
        args = list(args[0].fields)
    return emitter.call_packed(name, args, call, span)


def _python_call(emitter: GraphEmitter, call: Call, var: Var, span: Span | None) -> Value:
    values = _many(emitter, call.args[0]) if call.args else []
    return emitter.call_out(str(call.attrs["func_name"]), values, call.ty_args[0], span)


def _parts(call: Call) -> dict[str, Any]:
    """The arguments of an operator's call by parameter name."""
    return get_op(call.op.name).values(call) if isinstance(call.op, Op) else {}


OPERATORS: dict[str, Callable[[GraphEmitter, Call, Var, Span | None], Value]] = {
    "builtin.alloc_tensor": _alloc_tensor,
    "memory.alloc_storage": _alloc_storage,
    "vm.alloc_storage": _alloc_storage,
    "memory.alloc_tensor": _tensor_in_storage,
    "vm.alloc_tensor": _tensor_in_storage,
    "memory.view": _view,
    "memory.kill_storage": _kill,
    "memory.kill_tensor": _kill,
    "vm.kill_object": _kill,
    "to_vdevice": _same,
    "hint_on_device": _same,
    "builtin.stop_lift_params": _same,
    "memory.ensure_zero_offset": _same,
    "null_value": _null,
    "shape_of": _shape_of,
    "tensor_to_shape": _tensor_to_shape,
    "shape_to_tensor": _shape_to_tensor,
    "print": _print,
    "assert_op": _assert,
    "make_closure": _make_closure,
    "invoke_closure": _invoke_closure,
    "invoke_pure_closure": _invoke_closure,
    "call_packed": _packed_operator,
    "call_pure_packed": _packed_operator,
    "call_inplace_packed": _packed_operator,
    "call_builtin_with_ctx": _packed_operator,
    "call_py_func": _python_call,
}
