"""What a call is likely to cost, in scalar operations: enough to say which part of a model the time goes to."""

from __future__ import annotations

import math
from functools import lru_cache

from weft.ir.deduction.infer import quick_type
from weft.ir.dim import Dim, DimExpr, evaluate, free_symbols
from weft.ir.graph import Call, Op
from weft.ir.types import TensorType, TupleType, Type

__all__ = ["call_cost"]

_TYPICAL = 64  # the value of a symbol


def call_cost(call: Call, result: Type | None) -> float:
    """An estimate: the products of contractions, and the elements of what is read and written for everything else."""
    if not isinstance(call.op, Op):
        return 0.0
    moved = _elements(result) + sum(_elements(_type(arg)) for arg in call.args)
    if call.op.name == "matmul" or call.op.name.startswith("nn.conv"):
        return 2 * _elements(result) * _contracted(call) / 8
    return moved


def _contracted(call: Call) -> float:
    """How many products make one element of the result."""
    assert isinstance(call.op, Op)
    ty = _type(call.args[0 if call.op.name == "matmul" else 1])
    dims = ty.dims if isinstance(ty, TensorType) and ty.dims else (1,)
    if call.op.name == "matmul":
        return _number(dims[-1])
    return math.prod(map(_number, dims[1:]))


def _type(arg: object) -> Type | None:
    return quick_type(arg)  # type: ignore[arg-type]


def _elements(ty: Type | None) -> float:
    if isinstance(ty, TupleType):
        return sum(map(_elements, ty.fields))
    if not isinstance(ty, TensorType):
        return 0.0
    return math.prod(map(_number, ty.dims)) if ty.dims is not None else float(_TYPICAL)


@lru_cache(maxsize=4096)
def _number(dim: Dim) -> float:
    if not isinstance(dim, DimExpr):
        return float(dim)
    return float(max(evaluate(dim, dict.fromkeys(free_symbols(dim), _TYPICAL)), 0))
