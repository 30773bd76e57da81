"""Reductions, running sums, softmax and its kin, and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_float, max_value, min_value
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import along_run_axis, reduced_at_run
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.ir.dim import product
from weft.ir.graph import Constant, Expr, PrimValue
from weft.script import relax as R

# Reductions -----------------------------------------------------------------------------------------------------------


def reduced(function: Any) -> Any:
    """A reduction by (values, axes, keepdims); the axes are an attribute or an input."""

    def over(n: OnnxNode, x: Expr) -> Any:
        if _of_the_run(n):
            if any(isinstance(size, int) and size == 0 for size in n.shape(x)) and "Sum" not in n.operator:
                raise Unsupported("the extreme of nothing, along axes of the run")
            keeps = bool(n.attr("keepdims", 1))
            return reduced_at_run(n, x, n.need(1), keeps, lambda apart, axes: function(n, apart, axes, False))
        axes = _axes(n)
        if not axes and n.attr("noop_with_empty_axes", 0):
            return function(n, x, None, True)
        return function(n, x, tuple(axes) if axes else None, bool(n.attr("keepdims", 1)))

    return over


def _plain(operator: Any, before: Any = None, after: Any = None) -> Any:
    """An operator of ours, with what is done to each value before, and to the result after."""
    return reduced(_between(operator, before, after))


def _between(operator: Any, before: Any, after: Any) -> Any:
    def reduce(n: OnnxNode, x: Expr, axes: Any, keeps: bool) -> Expr:
        given = before(x) if before is not None else x
        result = operator(given, axes, keeps) if axes is not None or not _empty(n) else given
        return after(result) if after is not None else result

    return reduce


def _real(function: Any) -> Any:
    """A reduction whose result is real: integers are computed in float64, and what it gives is cut to theirs."""

    def reduce(n: OnnxNode, x: Expr, axes: Any, keeps: bool) -> Expr:
        if is_float(n.dtype(x)):
            return function(n, x, axes, keeps)
        return R.astype(function(n, n.emit(R.astype(x, "float64")), axes, keeps), n.dtype(x))

    return reduced(reduce)


def _empty(n: OnnxNode) -> bool:
    return bool(n.attr("noop_with_empty_axes", 0)) and not _of_the_run(n) and not _axes(n)


def _of_the_run(n: OnnxNode) -> bool:
    """Whether only a run says along which axes."""
    return n.has(1) and n.known(1) is None and n.shape(n.need(1)) != (0,)


def _axes(n: OnnxNode) -> list[int] | None:
    """The axes, none where their tensor has no elements."""
    return [] if n.has(1) and n.known(1) is None else n.ints(1, "axes")


def _extreme(operator: Any) -> Any:
    """Of booleans the extreme is that of 0 and 1; of nothing it is the end of the values."""

    def reduce(n: OnnxNode, x: Expr, axes: Any, keeps: bool) -> Any:
        if _empty(n):
            return n.inputs[0]
        if any(isinstance(size, int) and size == 0 for size in n.shape(x)):
            return _of_nothing(n, x, axes, keeps, operator is R.max)
        if n.dtype(x) == "bool":
            return R.astype(operator(R.astype(x, "uint8"), axes, keeps), "bool")
        return operator(x, axes, keeps)

    return reduced(reduce)


def _of_nothing(n: OnnxNode, x: Expr, axes: Any, keeps: bool, greatest: bool) -> Expr:
    """The extreme of no values: the other end of the values of the dtype."""
    dtype, dims = n.dtype(x), n.shape(x)
    along = {axis % len(dims) for axis in (axes if axes is not None else range(len(dims)))}
    sizes = [1 if i in along else size for i, size in enumerate(dims) if keeps or i not in along]
    if is_float(dtype):
        value: Any = -np.inf if greatest else np.inf
    else:
        value = not greatest if dtype == "bool" else (min_value(dtype) if greatest else max_value(dtype))
    return R.full(tuple(sizes), Constant(np.asarray(value, dtype)), dtype)


def _log_sum_exp(n: OnnxNode, x: Expr, axes: Any, keeps: bool) -> Expr:
    """log(sum(e^x)), by the greatest value first."""
    if _empty(n):
        return x
    if any(isinstance(size, int) and size == 0 for size in n.shape(n.need(0))):  # x may lie by axes of the run
        return R.log(R.sum(R.exp(x), axes, keeps))
    top = n.emit(R.max(x, axes, True), "top")
    top = n.emit(R.where(R.isinf(top), R.zeros_like(top), top), "top")
    total = R.log(R.sum(R.exp(R.subtract(x, top)), axes, keeps))
    return R.add(total, top if keeps else R.reshape(top, n.shape(total)))


def _mean(n: OnnxNode, x: Expr, axes: Any, keeps: bool) -> Expr:
    if _empty(n):
        return x
    if is_float(n.dtype(x)):
        return R.mean(x, axes, keeps)
    total = R.sum(x, axes, keeps)
    dims = n.shape(x)
    count = product([dims[axis] for axis in (axes if axes is not None else range(len(dims)))])
    return R.divide(total, R.full((), PrimValue(count), n.dtype(x)))  # toward zero


row("ReduceSum", _plain(R.sum))
row("ReduceProd", _plain(R.prod))
row("ReduceMax", _extreme(R.max))
row("ReduceMin", _extreme(R.min))
row("ReduceMean", reduced(_mean))
row("ReduceL1", _plain(R.sum, R.abs))
row("ReduceL2", _real(_between(R.sum, R.square, R.sqrt)))
row("ReduceLogSum", _real(_between(R.sum, None, R.log)))
row("ReduceLogSumExp", _real(_log_sum_exp))
row("ReduceSumSquare", _plain(R.sum, R.square))

# Running sums ---------------------------------------------------------------------------------------------------------


def running(operator: Any) -> Any:
    """A running sum or product along an axis, forwards or backwards."""

    def along(n: OnnxNode, x: Expr) -> Expr:
        exclusive = bool(n.attr("exclusive", 0))

        def run(values: Expr, axis: int) -> Expr:
            if not n.attr("reverse", 0):
                return operator(values, axis, n.dtype(x), exclusive)
            return R.flip(operator(R.flip(values, axis), axis, n.dtype(x), exclusive), axis)

        if n.known(1) is None:
            return along_run_axis(n, x, n.need(1), run)
        return run(x, int(n.constant(1).item()) % max(n.rank(x), 1))

    return along


row("CumSum", running(R.cumsum))
row("CumProd", running(R.cumprod))

# Softmax --------------------------------------------------------------------------------------------------------------


def rows_first(function: Any) -> Any:
    """Before version 13: of the matrix that an axis makes of a tensor."""

    def over(n: OnnxNode, x: Expr) -> Expr:
        axis, dims = n.axis(x, "axis", 1), n.shape(x)
        flat = R.reshape(x, (product(dims[:axis]), product(dims[axis:])))
        return R.reshape(function(n, flat, 1), dims)

    return over


def along_axis(function: Any) -> Any:
    """Since version 13: along one axis."""
    return lambda n, x: function(n, x, n.axis(x, "axis", -1))


def _softmax(n: OnnxNode, x: Expr, axis: int) -> Expr:
    return R.nn.softmax(x, axis)


def _log_softmax(n: OnnxNode, x: Expr, axis: int) -> Expr:
    return R.nn.log_softmax(x, axis)


def _hardmax(n: OnnxNode, x: Expr, axis: int) -> Expr:
    size = n.type(x).dims[axis]  # type: ignore[attr-defined]
    dtype = n.dtype(x)
    one, zero = (Constant(np.asarray(value, dtype)) for value in (1, 0))
    return R.one_hot(R.argmax(x, axis), one, zero, size, axis)


for _name, _function in (("Softmax", _softmax), ("LogSoftmax", _log_softmax), ("Hardmax", _hardmax)):
    row(_name, rows_first(_function))
    row(_name, along_axis(_function), since=13)

# Products of matrices -------------------------------------------------------------------------------------------------


def gemm(n: OnnxNode, a: Expr, b: Expr, c: Expr | None) -> Expr:
    """alpha a b + beta c, either factor transposed."""
    a = R.permute_dims(a, (1, 0)) if n.attr("transA") else a
    b = R.permute_dims(b, (1, 0)) if n.attr("transB") else b
    alpha, beta, dtype = n.attr("alpha"), n.attr("beta"), n.dtype(n.need(0))
    if not is_float(dtype) and (alpha != 1 or beta != 1):
        a, b = (R.astype(factor, "float64") for factor in (a, b))
        result = _affine(a, b, None if c is None else R.astype(c, "float64"), alpha, beta)
        return R.astype(result, dtype)
    return _affine(a, b, c, alpha, beta)


def _affine(a: Expr, b: Expr, c: Expr | None, alpha: float, beta: float) -> Expr:
    result = R.matmul(a, b)
    result = R.multiply(result, float(alpha)) if alpha != 1 else result
    if c is None:
        return result
    return R.add(result, R.multiply(c, float(beta)) if beta != 1 else c)


def matmul_integer(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """The product of integers without their zero points, in int32."""
    left, right = _centred(n, a, 2, -2), _centred(n, b, 3, -1)
    return R.matmul(left, right)


def _centred(n: OnnxNode, x: Expr, zero: int, axis: int) -> Expr:
    wide = R.astype(x, "int32")
    if not n.has(zero):
        return wide
    point = R.astype(n.need(zero), "int32")
    if n.rank(n.need(zero)) == 1 and axis == -2 and n.rank(x) > 1:
        point = R.expand_dims(point, 1)
    return R.subtract(wide, point)


row("MatMul", lambda n, a, b: R.matmul(a, b))
row(
    "Det",
    lambda n, x: (
        R.astype(R.linalg.det(R.astype(x, "float32")), "float16") if n.dtype(x) == "float16" else R.linalg.det(x)
    ),
)
row("Gemm", gemm)
row("MatMulInteger", matmul_integer)
row("Einsum", lambda n, *xs: R.einsum(list(xs), n.attr("equation").replace(" ", "")))
