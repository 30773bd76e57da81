"""Operators of several workers: each worker runs the same program on its own part of the data.

The types of `ccl` are those of the tensors of one worker; with one worker they are the tensors themselves, and more
than one are refused: ScriptError W143. Those of `dist` are spread tensors (`weft.ir.deduction.device_mesh`): over a
mesh of one device they are plain ones (`weft.ir.deduction.one_device`), over more no executor runs them. Errors:
ScriptError W135 a callee that is no kernel; ShapeError W203 the axis, W205 fewer than one worker, W201 an axis that the
workers do not divide, W206 no spread tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ScriptError, Span
from weft.ir.deduction.device_mesh import DTensorType, local_tensor, whole_tensors
from weft.ir.deduction.infer import TypeContext, type_text
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import floormod
from weft.ir.graph import Expr
from weft.ir.op.common import axis_of, example, f32, shape_error, tensor
from weft.ir.op.declare import Arguments, Builtin, Example, Param
from weft.ir.op.program.call import check_kernel, outputs_of
from weft.ir.op.registry import register_op
from weft.ir.types import TensorType, TupleType, Type

__all__: list[str] = []

_REDUCTIONS = ("sum", "prod", "min", "max", "avg")
_GROUP = Param("in_group", "attr", True, "bool")


def _workers(args: Arguments) -> int:
    if args.num_workers < 1:
        raise shape_error(args, f"num_workers must be at least 1, got {args.num_workers}", "W205")
    return args.num_workers


def _only_one(name: str, workers: int, span: Span | None = None) -> ScriptError:
    hint = "customize_legalize of LegalizeOps can make calls of a library of collectives of it"
    return ScriptError(f"{name} of {workers} workers: programs run on one", code="W143", span=span, hint=hint)


def _on_one_worker(name: str, *params: Param, example_: Example, operand: str = "x") -> Any:
    """Declares a collective operation by its type rule: with one worker it is the tensor itself.

    More than one are refused where there is no library of collectives: ScriptError W143.
    """

    def decompose(args: Arguments, builder: Any) -> Expr:
        workers = args.num_workers if counted else 1
        if workers != 1:
            raise _only_one(args.name, workers, args.span)
        return args[operand]

    def reference(x: Any, *, num_workers: int = 1, **attrs: Any) -> Any:
        if num_workers != 1:
            raise _only_one(f"R.{name}", num_workers)
        return x

    counted = any(param.name == "num_workers" for param in params)
    return register_op(
        name, [Param(operand), *params], decompose=decompose, numpy=reference, pure=True, examples=(example_,)
    )


def _shard(args: Arguments, x: TensorType, axis: int, context: TypeContext) -> TensorType:
    """One of num_workers equal parts along an axis."""
    workers = _workers(args)
    if x.ndim < 0:
        return TensorType(None, x.dtype, vdevice=x.vdevice)
    axis = axis_of(args, axis, x.ndim)
    dims = dims_of(x)
    if dims is None:
        return x
    context.require_equal(floormod(dims[axis], workers), 0, f"{args.name}: {dims[axis]} by {workers}", args.span)
    return TensorType((*dims[:axis], dims[axis] // workers, *dims[axis + 1 :]), x.dtype, vdevice=x.vdevice)


@_on_one_worker("ccl.allreduce", Param("op_type", "attr", "sum", "str"), _GROUP, example_=example(f32("n", 3), "max"))
def allreduce(args: Arguments, context: TypeContext) -> TensorType:
    """The tensors of all workers (of the worker's group) joined elementwise: sum, prod, min, max or avg."""
    if args.op_type not in _REDUCTIONS:
        raise shape_error(args, f"unknown op_type {args.op_type!r}", "W205", f"one of {', '.join(_REDUCTIONS)}")
    return tensor(args, "x", context)


@_on_one_worker("ccl.allgather", Param("num_workers", "attr", of="int"), _GROUP, example_=example(f32("n", 3), 1))
def allgather(args: Arguments, context: TypeContext) -> TensorType:
    """The tensors of all workers (of the worker's group) one after the other along the first axis."""
    x, workers = tensor(args, "x", context), _workers(args)
    if x.ndim == 0:
        raise shape_error(args, "a scalar has no axis to join along", "W203")
    dims = dims_of(x)
    if dims is None:
        return TensorType(None, x.dtype, x.ndim, x.vdevice)
    return TensorType((dims[0] * workers, *dims[1:]), x.dtype, vdevice=x.vdevice)


@_on_one_worker("ccl.broadcast_from_worker0", example_=example(f32("n", 3)))
def broadcast_from_worker0(args: Arguments, context: TypeContext) -> TensorType:
    """The tensor of the first worker, on every worker."""
    return tensor(args, "x", context)


@_on_one_worker(
    "ccl.scatter_from_worker0",
    Param("num_workers", "attr", of="int"),
    Param("axis", "attr", 0, "int"),
    example_=example(f32("n", 3), 1),
)
def scatter_from_worker0(args: Arguments, context: TypeContext) -> TensorType:
    """The worker's part of the first worker's tensor, which is cut into equal parts along an axis."""
    return _shard(args, tensor(args, "x", context), args.axis, context)


@_on_one_worker(
    "dist.redistribute_replica_to_shard",
    Param("num_workers", "attr", of="int"),
    Param("axis", "attr", of="int"),
    example_=example(f32("n", 3), 1, axis=1),
    operand="input",
)
def redistribute_replica_to_shard(args: Arguments, context: TypeContext) -> TensorType:
    """The worker's part of a tensor that every worker has, which is cut into equal parts along an axis."""
    return _shard(args, tensor(args, "input", context), args.axis, context)


# ---------------------------------------------------------------------------------------------------------------------
# Spread tensors
# ---------------------------------------------------------------------------------------------------------------------

_PLACE = (Param("device_mesh", "attr", of="mesh"), Param("placement", "attr", of="placement"))
_KERNEL_CALL = (
    Param("gvar", "callee"),
    Param("args", "exprs"),
    Param("out_ty", "types"),
    Param("tir_vars", "shape", None),
)


def _input(args: Arguments, context: TypeContext) -> tuple[TensorType, Type]:
    """The whole tensor of the input, and its type."""
    ty = context.type_of(args.input)
    whole = whole_tensors(ty)
    if not isinstance(whole, TensorType):
        raise shape_error(args, f"the input must be a tensor, got {type_text(ty)}", "W206")
    return whole, ty


def _numpy_same(x: Any, **place: Any) -> Any:
    return x


@register_op(
    "dist.annotate_sharding",
    [Param("input"), *_PLACE],
    pure=True,
    builtin=Builtin.CALLER,
    decompose=lambda args, builder: args.input,
    numpy=_numpy_same,
)
def annotate_sharding(args: Arguments, context: TypeContext) -> Type:
    """The input, and a wish for where passes place it: the type stays. Errors: W203, W205 the placement."""
    whole, ty = _input(args, context)
    DTensorType(whole, args.device_mesh, args.placement, args.span)  # the wish must be one that can be fulfilled
    return ty


@register_op("dist.redistribute", [Param("input"), *_PLACE], pure=True, builtin=Builtin.CALLER)
def redistribute(args: Arguments, context: TypeContext) -> Type:
    """The same whole tensor, spread over the mesh in another way. Errors: W203, W205 the placement."""
    whole, _ = _input(args, context)
    return DTensorType(whole, args.device_mesh, args.placement, args.span)


def _view(ty: Type, view: Callable[[DTensorType], TensorType]) -> Type:
    if isinstance(ty, TupleType):
        return TupleType(tuple(_view(field, view) for field in ty.fields))
    return view(ty) if isinstance(ty, DTensorType) else ty


def _kernel_call(args: Arguments, context: TypeContext, view: Callable[[DTensorType], TensorType]) -> Type:
    """A call whose kernel works on the tensors that `view` takes of the spread ones."""
    for ty in outputs_of(args.out_ty):
        if not isinstance(ty, DTensorType) or ty.tensor.shape is None or ty.tensor.dtype is None or ty.mesh is None:
            wanted = "DTensors with a shape, dtype and mesh"
            raise shape_error(args, f"out_ty must be {wanted}, got {type_text(ty)}", "W206")
    outputs = [_view(ty, view) for ty in outputs_of(args.out_ty)]
    inputs = _view(context.type_of(args.args), view)
    with context.taking([(args.args, inputs)]):
        check_kernel(args, context, outputs)
    return args.out_ty


@register_op("dist.call_tir", _KERNEL_CALL, pure=True, builtin=Builtin.CALLER)
def dist_call_tir(args: Arguments, context: TypeContext) -> Type:
    """Call a kernel of the module that works on the whole tensors. Errors: W206 outputs without a place."""
    return _kernel_call(args, context, lambda ty: ty.tensor)


@register_op("dist.call_tir_local_view", _KERNEL_CALL, pure=True, builtin=Builtin.CALLER)
def call_tir_local_view(args: Arguments, context: TypeContext) -> Type:
    """Call a kernel of the module that works on the part of one device. Errors: W201, W206 as for the types."""
    return _kernel_call(args, context, local_tensor)
