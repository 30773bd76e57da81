"""Calls of operators on values.

Most operators mean what the NumPy reference in their declaration says. Types that NumPy lacks are decoded before and
encoded after it. Those that call functions, make memory, print or test something are here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ArgumentError, BoundsError, DTypeError, ShapeError, one_screen
from weft.ir.deduction.infer import quick_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import prove_equal
from weft.ir.graph import Call, Expr, ExternFunc, GlobalVar, ShapeExpr
from weft.ir.interpret.closures.intrinsics import shown_values
from weft.ir.interpret.graph import Closure, Evaluator, Scope, Storage
from weft.ir.interpret.scalars import wrap_array
from weft.ir.interpret.values import shown, typed
from weft.ir.kernel.extents import check_extents
from weft.ir.kernel.intrinsics import InOwnType
from weft.ir.op import OpDef, get_op
from weft.ir.op.program.loop import stacked_types
from weft.ir.tensor import PrimFunc
from weft.ir.types import AnyType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.support.array_memory import content_bytes
from weft.support.guards import is_array, is_listing, is_tuple
from weft.support.isolation import Isolated, Typed, hand_over
from weft.support.small_floats import decode, encode

__all__ = ["apply_operator"]


class _Given:
    """The arguments of a call by parameter name, evaluated when asked for."""

    def __init__(self, evaluator: Evaluator, node: Call, scope: Scope, definition: OpDef) -> None:
        self.evaluator = evaluator
        self.node = node
        self.scope = scope
        self.parts = definition.values(node)

    def value(self, name: str, *, read: bool = True, default: Any = None) -> Any:
        """The value of a parameter: an expression is evaluated, a tuple of them as a tuple."""
        part = self.parts.get(name)
        if part is None:
            return default
        look = self.evaluator.read if read else self.evaluator.value
        if isinstance(part, Expr):
            return look(part, self.scope)
        if is_tuple(part) and any(isinstance(item, Expr) for item in part):
            return tuple(look(item, self.scope) for item in part)
        return part

    def many(self, name: str) -> tuple[Any, ...]:
        """The values of a tuple of arguments (a single value stands for a tuple of one)."""
        value = self.value(name, default=())
        part = self.parts.get(name)
        if is_tuple(value) and not (isinstance(part, Expr) and isinstance(_type_of(part), ShapeType)):
            return value
        return (value,)

    def handed(self, name: str) -> tuple[Any, ...]:
        """What `many` gives, with the dtypes of arrays, for a function outside."""
        given, part = self.many(name), self.parts.get(name)
        parts: tuple[Any, ...] = part if is_tuple(part) else (part,)
        types = [_type_of(item) if isinstance(item, Expr) else None for item in parts]
        if len(parts) == 1 and isinstance(types[0], TupleType) and len(types[0].fields) == len(given):
            types = list(types[0].fields)
        return tuple(map(typed, given, types)) if len(types) == len(given) else given


def apply_operator(evaluator: Evaluator, name: str, node: Call, scope: Scope) -> Any:
    """The value of a call of an operator; raises what the operator raises (BoundsError, ShapeError)."""
    definition = get_op(name, node.span)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(_Given(evaluator, node, scope, definition))
    args = [evaluator.read(arg, scope) for arg in node.args]
    form = _in_own_type if isinstance(definition.numpy, InOwnType) else _decoded
    decoded = [form(value, _type_of(arg)) for arg, value in zip(node.args, args, strict=True)]
    decoded = [_resolved(arg, value, evaluator, node, scope) for arg, value in zip(node.args, decoded, strict=True)]
    try:
        result = definition.run(node, decoded, scope.symbols.values)
    except (IndexError, ValueError, OverflowError) as error:
        ty = evaluator.type_of(node)
        sizes = evaluator.sizes_of(ty, scope)
        if sizes is not None and isinstance(ty, TensorType) and ty.dtype is not None:
            check_extents(sizes, ty.dtype, f"the result of R.{name}", node.span)
        if isinstance(error, IndexError):
            raise BoundsError(f"R.{name}: {error}", code="W900", span=node.span) from None
        raise ShapeError(f"R.{name}: {error}", code="W224", span=node.span) from None
    except TypeError as error:  # a dtype that was not known when the call was deduced
        raise DTypeError(f"R.{name}: {error}", code="W320", span=node.span) from None
    return _encoded(result, evaluator.type_of(node), name)


def _resolved(arg: Expr, value: Any, evaluator: Evaluator, node: Call, scope: Scope) -> Any:
    """A shape that is asked for, a size of -1 as the type has it: numbers leave it open where another size is 0."""
    if not isinstance(arg, ShapeExpr) or not any(isinstance(dim, int) and dim == -1 for dim in arg.dims):
        return value
    sizes = evaluator.sizes_of(evaluator.type_of(node), scope)
    return value if sizes is None or len(sizes) != len(arg.dims) else sizes


def _type_of(node: Expr) -> Type | None:
    return quick_type(node)


def _decoded(value: Any, ty: Type | None) -> Any:
    if isinstance(ty, TupleType) and is_tuple(value):
        return tuple(_decoded(item, field) for item, field in zip(value, ty.fields, strict=True))
    if not is_array(value):
        return value
    if not isinstance(ty, TensorType) or ty.dtype is None:
        return dtypes.presented(value, None)
    small = dtypes.is_float(ty.dtype) and not dtypes.is_numpy(ty.dtype)
    return decode(value, ty.dtype) if small else value


def _in_own_type(value: Any, ty: Type | None) -> Any:
    return dtypes.presented(value, ty.dtype if isinstance(ty, TensorType) else None) if is_array(value) else value


def _encoded(result: Any, ty: Type, name: str) -> Any:
    """A result in the form of its type; DTypeError W321 when the reference computed another dtype."""
    if isinstance(ty, TupleType) and is_listing(result):
        return tuple(_encoded(item, field, name) for item, field in zip(result, ty.fields, strict=True))
    if isinstance(ty, ShapeType):
        return tuple(int(size) for size in result)
    if isinstance(ty, PrimType) or not isinstance(ty, TensorType):
        return result
    array = np.asarray(result)
    if ty.dtype is None:
        return array
    if dtypes.is_float(ty.dtype) and not dtypes.is_numpy(ty.dtype):
        return dtypes.holding(np.asarray(encode(array, ty.dtype)), ty.dtype)
    array = dtypes.stored(array, ty.dtype)
    if array.dtype != dtypes.storage(ty.dtype):
        raise DTypeError(
            f"the reference of R.{name} gives {array.dtype}, the operator declares {ty.dtype}", code="W321"
        )
    return dtypes.holding(wrap_array(ty.dtype)(array), ty.dtype)


# Calls --------------------------------------------------------------------------------------------------------------


def _kernel_name(given: _Given) -> str:
    callee = given.parts["gvar"]
    if not isinstance(callee, GlobalVar):
        raise ArgumentError("a kernel is called by its name in the module", code="W865", span=given.node.span)
    return callee.name


def _call_tir(given: _Given) -> Any:
    """New outputs, passed after the inputs; inputs cannot be written."""
    node, evaluator = given.node, given.evaluator
    inputs = [_read_only(value) for value in given.many("args")]
    outputs = [evaluator.allocate_type(ty, given.scope, node.span) for ty in evaluator.result_types(node)]
    evaluator.run_kernel(_kernel_name(given), inputs, outputs, given.value("tir_vars", default=()), node.span)
    return _packed(node, outputs)


def _read_only(value: Any) -> Any:
    if not is_array(value) or not value.flags.writeable:
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _packed(node: Call, outputs: Sequence[Any]) -> Any:
    return tuple(outputs) if isinstance(node.ty_args[0], TupleType) else outputs[0]


def _call_tir_inplace(given: _Given) -> Any:
    """Outputs written over copies of inputs: who still holds an input sees it unchanged."""
    node, evaluator = given.node, given.evaluator
    indices = given.parts["inplace_indices"]
    indices = (indices,) if isinstance(indices, int) else indices
    inputs = [np.array(v) if i in indices else _read_only(v) for i, v in enumerate(given.many("args"))]
    types = evaluator.result_types(node)
    fresh = [
        evaluator.allocate_type(ty, given.scope, node.span) if i < 0 else None
        for i, ty in zip(indices, types, strict=True)
    ]
    new = [array for array in fresh if array is not None]
    evaluator.run_kernel(_kernel_name(given), inputs, new, given.value("tir_vars", default=()), node.span, indices)
    outputs = [inputs[i] if array is None else array for i, array in zip(indices, fresh, strict=True)]
    return _packed(node, outputs)


def _external(given: _Given) -> Callable[..., Any]:
    """The function called by name: external, or of the module."""
    callee = given.parts.get("func")
    if isinstance(callee, ExternFunc):
        return given.evaluator.external(callee.name, given.node.span)
    if isinstance(callee, str):
        return given.evaluator.external(callee, given.node.span)
    return given.evaluator.value(callee, given.scope)  # type: ignore[arg-type]


def _call_dps_packed(given: _Given) -> Any:
    types = given.evaluator.result_types(given.node)
    outputs = [given.evaluator.allocate_type(ty, given.scope, given.node.span) for ty in types]
    hand_over(_external(given), *given.handed("args"), *map(typed, outputs, types))
    return _packed(given.node, outputs)


def _call_packed(given: _Given) -> Any:
    return _returned(given, hand_over(_external(given), *given.handed("args")))


def _call_inplace_packed(given: _Given) -> Any:
    indices = given.parts["inplace_indices"]
    indices = (indices,) if isinstance(indices, int) else indices
    handed = enumerate(given.handed("args"))
    args = [Typed(np.array(v.array), v.dtype) if i in indices and isinstance(v, Typed) else v for i, v in handed]
    return _returned(given, hand_over(_external(given), *args))


def _call_py(given: _Given) -> Any:
    function = given.evaluator.external(given.parts["func_name"], given.node.span)
    return _returned(given, hand_over(function, *given.handed("args")))


def _returned(given: _Given, value: Any) -> Any:
    """The result of a function outside; what one gives that is declared to give nothing is dropped."""
    ty = given.evaluator.type_of(given.node)
    return () if isinstance(ty, TupleType) and not ty.fields else value


def _make_closure(given: _Given) -> Any:
    function = _external(given)
    fixed = given.many("args")
    if isinstance(function, Closure):
        return Closure(function.evaluator, function.function, function.scope, (*function.fixed, *fixed))
    if isinstance(function, Isolated):
        return Isolated(function.function, (*function.fixed, *given.handed("args")))

    def called(*args: Any) -> Any:
        return function(*fixed, *args)

    return called


def _invoke_closure(given: _Given) -> Any:
    function = given.value("closure")
    if isinstance(function, Closure):
        return function.run(given.many("args"))
    if not callable(function):
        message = f"a closure is called here, and a {type(function).__name__} is no function"
        raise ArgumentError(message, code="W851", span=given.node.span)
    return hand_over(function, *given.handed("args"))


def _run(function: Any, args: Sequence[Any]) -> Any:
    return function.run(args) if isinstance(function, Closure) else function(*args)


def _loop(given: _Given) -> Any:
    body, condition = given.value("body"), given.value("condition")
    carried = given.many("initial")
    types = stacked_types(given.parts["out_ty"], given.parts["stacked"])
    rows: list[list[Any]] = [[] for _ in types]
    for index in _iterations(given):
        if condition is not None and not np.all(_run(condition, carried)):
            break
        after = _run(body, (*index, *carried))
        after = after if is_tuple(after) else (after,)
        carried = after[: len(carried)]
        for kept, row in zip(rows, after[len(carried) :], strict=True):
            kept.append(row)
    return (*carried, *(_stacked(given, kept, ty) for kept, ty in zip(rows, types, strict=True)))


def _stacked(given: _Given, rows: list[Any], ty: TensorType) -> np.ndarray:
    """The rows of a stacked result as one tensor."""
    sizes = given.evaluator.sizes_of(ty, given.scope) or ()
    return np.stack(rows) if rows else np.empty((0, *sizes[1:]), dtypes.storage(ty.dtype or "float32"))


def _iterations(given: _Given) -> Iterator[tuple[int, ...]]:
    """What each iteration of a loop gets before the carried values: its index, or nothing where there is no range."""
    if given.parts["range"] is None:
        return itertools.repeat(())
    start, stop, step = (int(value) for value in given.many("range"))
    if step == 0:
        raise ArgumentError("the step of a loop is 0", code="W868", span=given.node.span)
    return ((index,) for index in range(start, stop, step))


def _call_tir_dyn(given: _Given) -> Any:
    """A kernel called in place whose scalar parameters come last, as one shape."""
    callee = given.parts["func"]
    function = given.evaluator.home.module.functions.get(getattr(callee, "name", ""))
    if not isinstance(function, PrimFunc):
        raise ArgumentError("R.vm.call_tir_dyn calls a kernel of the module", code="W865", span=given.node.span)
    args = given.value("args", read=False)
    spread = [part for arg in args for part in (arg if is_tuple(arg) else (arg,))]
    return given.evaluator.run_in_place(function, spread, given.node.span)


# Printing, testing --------------------------------------------------------------------------------------------------


def _shown(value: Any, ty: Type | None) -> str:
    if is_array(value):
        known = ty.dtype if isinstance(ty, TensorType) and ty.dtype else dtypes.held(value)
        return str(shown_values(value, known or value.dtype.name))
    return str(shown(value, ty))


def _formatted(template: str, texts: Sequence[str]) -> str:
    """The template with each `{}` replaced in order; values left over follow."""
    if not template:
        return " ".join(texts)
    pieces = template.split("{}")
    out = pieces[0]
    for index, piece in enumerate(pieces[1:]):
        out += (texts[index] if index < len(texts) else "{}") + piece
    return " ".join([out, *texts[len(pieces) - 1 :]])


def _expressions(part: Any) -> tuple[Expr, ...]:
    if is_tuple(part):
        return part
    return tuple(getattr(part, "fields", (part,))) if part is not None else ()


def _text(given: _Given, values: str, template: str) -> str:
    parts = _expressions(given.parts.get(values))
    texts = [_shown(given.evaluator.read(part, given.scope), _type_of(part)) for part in parts]
    return _formatted(given.value(template, default=""), texts)


def _print(given: _Given) -> Any:
    print(_text(given, "values", "format"))
    return ()


def _assert_op(given: _Given) -> Any:
    condition = given.value("condition")
    if not bool(np.all(condition)):
        raise AssertionError(one_screen(_text(given, "format_args", "format")) or "R.assert_op failed")
    return ()


# Shapes, devices ----------------------------------------------------------------------------------------------------


def _shape_of(given: _Given) -> Any:
    return tuple(int(size) for size in given.value(_first(given), read=False).shape)


def _squeeze(given: _Given) -> Any:
    """Without axes, what is known to be 1 goes: a symbolic size that is 1 by chance stays."""
    x, axis = given.value("x"), given.value("axis")
    dims = dims_of(_type_of(given.node.args[0]) or AnyType())
    if axis is None and dims is not None:
        axis = tuple(index for index, dim in enumerate(dims) if prove_equal(dim, 1) is True)
    return np.squeeze(x, axis)


def _first(given: _Given) -> str:
    return next(iter(given.parts))


def _same(given: _Given) -> Any:
    return given.value(_first(given), read=False)


def _tensor_to_shape(given: _Given) -> Any:
    return tuple(int(size) for size in given.value(_first(given)))


def _shape_to_tensor(given: _Given) -> Any:
    return np.array(given.value(_first(given)), np.int64)


def _null(given: _Given) -> Any:
    return None


# Memory -------------------------------------------------------------------------------------------------------------


def _dtype_of(given: _Given) -> str:
    dtype = given.value("dtype")
    return dtype if isinstance(dtype, str) else "float32"


def _alloc_tensor(given: _Given) -> Any:
    return given.evaluator.session.allocate(given.value("shape"), _dtype_of(given))


def _alloc_storage(given: _Given) -> Any:
    size = given.value("size")
    return Storage(math.prod(map(int, size)) if is_tuple(size) or is_array(size) else int(size))


def _tensor_in_storage(given: _Given) -> Any:
    """A tensor at an offset in bytes of a storage; it holds nothing yet, whatever was there before."""
    storage, shape, dtype = given.value("storage"), given.value("shape"), _dtype_of(given)
    if not isinstance(storage, Storage):
        raise BoundsError("a tensor is placed in what is no storage", code="W903", span=given.node.span)
    start = int(given.value("offset", default=0))
    size = math.prod(shape) * dtypes.storage(dtype).itemsize
    if start < 0 or start + size > len(storage.raw):
        raise BoundsError(
            f"a tensor of {size} bytes at offset {start} does not fit in a storage of {len(storage.raw)}",
            code="W903",
            span=given.node.span,
        )
    array = storage.raw[start : start + size].view(dtypes.storage(dtype)).reshape(shape)
    given.evaluator.session.place(storage, start, array)
    return given.evaluator.session.watch(array, "tensor")


def _kill(given: _Given) -> Any:
    value = given.value(_first(given), read=False)
    given.evaluator.session.written(value)
    given.evaluator.session.dead[id(value)] = value
    return ()


def _view(given: _Given) -> Any:
    """Other dims or dtype over the same bytes."""
    data = given.value("data")
    dtype = given.value("dtype")
    stored = data.dtype if dtype is None else dtypes.storage(dtype)
    start = int(given.value("relative_byte_offset", default=0))
    flat = content_bytes(data)
    shape = given.value("shape", default=data.shape)
    size = math.prod(shape) * stored.itemsize
    if start < 0 or start + size > len(flat):
        raise BoundsError(
            f"a view of {size} bytes at offset {start} does not fit in a tensor of {len(flat)}",
            code="W903",
            span=given.node.span,
        )
    view = flat[start : start + size].view(stored).reshape(shape)
    given.evaluator.session.alias(data, view)
    return view


_SPECIAL: dict[str, Callable[[_Given], Any]] = {
    "call_tir": _call_tir,
    "call_tir_with_grad": _call_tir,
    "call_tir_inplace": _call_tir_inplace,
    "call_dps_packed": _call_dps_packed,
    "call_packed": _call_packed,
    "call_pure_packed": _call_packed,
    "call_inplace_packed": _call_inplace_packed,
    "call_builtin_with_ctx": _call_packed,
    "call_py": _call_py,
    "make_closure": _make_closure,
    "loop": _loop,
    "loop_with_effects": _loop,
    "invoke_closure": _invoke_closure,
    "invoke_pure_closure": _invoke_closure,
    "print": _print,
    "assert_op": _assert_op,
    "shape_of": _shape_of,
    "tensor_to_shape": _tensor_to_shape,
    "shape_to_tensor": _shape_to_tensor,
    "null_value": _null,
    "squeeze": _squeeze,
    "to_vdevice": _same,
    "hint_on_device": _same,
    "builtin.stop_lift_params": _same,
    "builtin.alloc_tensor": _alloc_tensor,
    "memory.alloc_storage": _alloc_storage,
    "memory.alloc_tensor": _tensor_in_storage,
    "memory.kill_storage": _kill,
    "memory.kill_tensor": _kill,
    "memory.view": _view,
    "memory.ensure_zero_offset": _same,
    "vm.alloc_storage": _alloc_storage,
    "vm.alloc_tensor": _tensor_in_storage,
    "vm.kill_object": _kill,
    "vm.call_tir_dyn": _call_tir_dyn,
}
