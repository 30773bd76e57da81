"""Explicit memory: allocation, views and release; written by the lowering of calls, rearranged by the planner."""

from __future__ import annotations

from weft.dtypes import bits, lanes
from weft.ir.deduction.infer import VOID, TypeContext
from weft.ir.dim import DimExpr, product, prove_lt
from weft.ir.graph import PrimValue
from weft.ir.op.common import shape_error, shape_of_arg, tensor, tensor_of_shape
from weft.ir.op.declare import Arguments, Builtin, Param
from weft.ir.op.registry import register_op
from weft.ir.types import AnyType, TensorType, Type

_RUN_TIME = Builtin.EXECUTORS

_DEVICE = Param("runtime_device_index", "attr", 0, "int")
_SCOPE = Param("storage_scope", "attr", "global", "str")


def _allocated(args: Arguments, context: TypeContext) -> TensorType:
    return tensor_of_shape(args, "shape", context, args.dtype)


@register_op(
    "builtin.alloc_tensor",
    [Param("shape", "shape"), Param("dtype", "dtype"), _DEVICE, _SCOPE],
    pure=True,
    builtin=_RUN_TIME,
)
def alloc_tensor(args: Arguments, context: TypeContext) -> Type:
    """A new tensor whose contents are undefined until a kernel writes them."""
    return _allocated(args, context)


@register_op("builtin.stop_lift_params", [Param("x")], pure=True, builtin=_RUN_TIME)
def stop_lift_params(args: Arguments, context: TypeContext) -> Type:
    """The value itself; computations after it are not moved to load time."""
    return context.type_of(args.x)


@register_op(
    "memory.alloc_storage",
    [
        Param("size", "shape"),
        Param("virtual_device_index", "attr", 0, "int"),
        _SCOPE,
        Param("dtype", "dtype", "uint8"),
    ],
    pure=True,
    builtin=_RUN_TIME,
)
def alloc_storage(args: Arguments, context: TypeContext) -> Type:
    """A block of memory of so many elements, that tensors are placed in."""
    shape_of_arg(args, "size", context)
    return AnyType()


@register_op(
    "memory.alloc_tensor",
    [
        Param("storage"),
        Param("offset", "prim"),
        Param("shape", "shape"),
        Param("dtype", "dtype"),
        Param("runtime_device_ind", "attr", 0, "int"),
    ],
    pure=True,
    builtin=_RUN_TIME,
)
def storage_tensor(args: Arguments, context: TypeContext) -> Type:
    """A tensor at an offset in a block of memory; its contents are undefined until a kernel writes them."""
    return _allocated(args, context)


@register_op("memory.kill_storage", [Param("storage")], pure=False, builtin=_RUN_TIME)
def kill_storage(args: Arguments, context: TypeContext) -> Type:
    """The block of memory is not used after this."""
    return VOID


@register_op("memory.kill_tensor", [Param("tensor")], pure=False, builtin=_RUN_TIME)
def kill_tensor(args: Arguments, context: TypeContext) -> Type:
    """The tensor is not used after this."""
    return VOID


@register_op(
    "memory.view",
    [
        Param("data"),
        Param("shape", "shape", None),
        Param("dtype", "dtype", None, "stated"),
        Param("relative_byte_offset", "prim", None),
    ],
    pure=True,
    builtin=_RUN_TIME,
)
def view(args: Arguments, context: TypeContext) -> Type:
    """The memory of a tensor seen with another shape, dtype or start."""
    data = tensor(args, "data", context)
    dtype = args.dtype or data.dtype
    if args.shape is None:
        seen = TensorType(data.shape, dtype, data.ndim, data.vdevice)
    else:
        dims, ndim = shape_of_arg(args, "shape", context)
        seen = TensorType(dims, dtype, ndim, data.vdevice)
    _refuse_beyond(args, data, seen)
    return seen


def _refuse_beyond(args: Arguments, data: TensorType, seen: TensorType) -> None:
    """ShapeError W205 for a view that is larger than its source, or reaches beyond it, whatever the sizes."""
    given = args.relative_byte_offset
    offset = given.value if isinstance(given, PrimValue) and isinstance(given.value, (int, DimExpr)) else 0
    if isinstance(offset, int) and offset < 0:
        raise shape_error(args, f"the view starts {-offset} bytes before its source", "W205")
    needed, there = _width(seen.dtype), _width(data.dtype)
    if needed is None or there is None:
        if seen.dtype is not data.dtype:
            return
        needed = there = 1  # of one dtype, whatever it is: elements are counted
    if args.shape is not None:
        if seen.dims is None or data.dims is None:
            return
        needed, there = needed * product(seen.dims), there * product(data.dims)
    elif needed <= there and isinstance(offset, int) and offset > 0:
        there = needed  # the same shape, of which nothing may be left out
    if prove_lt(there, needed + (offset if seen.dtype is not None or args.shape is None else 0)) is True:
        raise shape_error(args, f"the view needs {needed} bytes from {offset} on, its source has {there}", "W205")


def _width(dtype: str | None) -> int | None:
    """The bytes of an element, as far as whole bytes say it."""
    return None if dtype is None else max(1, bits(dtype) * int(lanes(dtype)) // 8)


@register_op("memory.ensure_zero_offset", [Param("data")], pure=True, builtin=_RUN_TIME)
def ensure_zero_offset(args: Arguments, context: TypeContext) -> Type:
    """The tensor, copied if it does not start where its memory starts."""
    return context.type_of(args.data)


# ---------------------------------------------------------------------------------------------------------------------
# The virtual machine's own
# ---------------------------------------------------------------------------------------------------------------------


@register_op(
    "vm.alloc_storage",
    [Param("size", "shape"), _DEVICE, Param("dtype", "dtype", "uint8"), _SCOPE],
    pure=True,
    builtin=_RUN_TIME,
)
def vm_alloc_storage(args: Arguments, context: TypeContext) -> Type:
    """A block of memory from the virtual machine's pool."""
    shape_of_arg(args, "size", context)
    return AnyType()


@register_op(
    "vm.alloc_tensor",
    [Param("storage"), Param("offset", "prim"), Param("shape", "shape"), Param("dtype", "dtype"), _DEVICE],
    pure=True,
    builtin=_RUN_TIME,
)
def vm_alloc_tensor(args: Arguments, context: TypeContext) -> Type:
    """A tensor at an offset in a block of memory of the virtual machine."""
    return _allocated(args, context)


@register_op("vm.kill_object", [Param("obj")], pure=False, builtin=_RUN_TIME)
def vm_kill_object(args: Arguments, context: TypeContext) -> Type:
    """The value is not used after this."""
    return VOID


@register_op("vm.call_tir_dyn", [Param("func", "callee"), Param("args", "exprs")], pure=False, builtin=_RUN_TIME)
def vm_call_tir_dyn(args: Arguments, context: TypeContext) -> Type:
    """Call a kernel with the inputs, the outputs and a shape whose sizes are its scalar parameters."""
    return VOID
