"""Operators of several workers: each worker runs the same program on its own part of the data.

The types are those of the tensors of one worker. Errors: ShapeError W203 the axis, W205 fewer than one worker, W201
an axis that the workers do not divide.
"""

from __future__ import annotations

from weft.ir.dim import floormod
from weft.ir.infer import TypeContext
from weft.ir.op.common import axis_of, shape_error, tensor
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.relations import dims_of
from weft.ir.types import TensorType

__all__: list[str] = []

_LIBRARY = "a library of collectives, by R.call_dps_packed"
_REDUCTIONS = ("sum", "prod", "min", "max", "avg")
_GROUP = Param("in_group", "attr", True, "bool")


def _workers(args: Arguments) -> int:
    if args.num_workers < 1:
        raise shape_error(args, f"num_workers must be at least 1, got {args.num_workers}", "W205")
    return args.num_workers


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


@register_op("ccl.allreduce", [Param("x"), Param("op_type", "attr", "sum", "str"), _GROUP], pure=True, builtin=_LIBRARY)
def allreduce(args: Arguments, context: TypeContext) -> TensorType:
    """The tensors of all workers (of the worker's group) joined elementwise: sum, prod, min, max or avg."""
    if args.op_type not in _REDUCTIONS:
        raise shape_error(args, f"unknown op_type {args.op_type!r}", "W205", f"one of {', '.join(_REDUCTIONS)}")
    return tensor(args, "x", context)


@register_op("ccl.allgather", [Param("x"), Param("num_workers", "attr", of="int"), _GROUP], pure=True, builtin=_LIBRARY)
def allgather(args: Arguments, context: TypeContext) -> TensorType:
    """The tensors of all workers (of the worker's group) one after the other along the first axis."""
    x, workers = tensor(args, "x", context), _workers(args)
    if x.ndim == 0:
        raise shape_error(args, "a scalar has no axis to join along", "W203")
    dims = dims_of(x)
    if dims is None:
        return TensorType(None, x.dtype, x.ndim, x.vdevice)
    return TensorType((dims[0] * workers, *dims[1:]), x.dtype, vdevice=x.vdevice)


@register_op("ccl.broadcast_from_worker0", [Param("x")], pure=True, builtin=_LIBRARY)
def broadcast_from_worker0(args: Arguments, context: TypeContext) -> TensorType:
    """The tensor of the first worker, on every worker."""
    return tensor(args, "x", context)


@register_op(
    "ccl.scatter_from_worker0",
    [Param("x"), Param("num_workers", "attr", of="int"), Param("axis", "attr", 0, "int")],
    pure=True,
    builtin=_LIBRARY,
)
def scatter_from_worker0(args: Arguments, context: TypeContext) -> TensorType:
    """The worker's part of the first worker's tensor, which is cut into equal parts along an axis."""
    return _shard(args, tensor(args, "x", context), args.axis, context)


@register_op(
    "dist.redistribute_replica_to_shard",
    [Param("input"), Param("num_workers", "attr", of="int"), Param("axis", "attr", of="int")],
    pure=True,
    builtin=_LIBRARY,
)
def redistribute_replica_to_shard(args: Arguments, context: TypeContext) -> TensorType:
    """The worker's part of a tensor that every worker has, which is cut into equal parts along an axis."""
    return _shard(args, tensor(args, "input", context), args.axis, context)
