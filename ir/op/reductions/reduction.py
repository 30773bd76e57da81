"""What operators that reduce share: axes, the type of the result, and stages of kernels.

A floating reduction narrower than float32 accumulates in float32 and is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft.dtypes import bits, is_complex, is_float, part
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product, prove_le
from weft.ir.op.common import Dims, Kernel, Operand, axes_of, shape_error, tensor
from weft.ir.op.declare import Arguments
from weft.ir.tensor import PrimExpr
from weft.ir.types import TensorType

__all__ = [
    "accumulator",
    "check_elements",
    "element_count",
    "kept",
    "mean_dtype",
    "mean_stage",
    "reduce_stage",
    "reduced_axes",
    "reduced_type",
    "require_elements",
    "sizes_of",
    "squared_deviation_stage",
]


def accumulator(dtype: str) -> str:
    """The dtype in which values of a dtype are accumulated."""
    return "float32" if is_float(dtype) and bits(dtype) < 32 else dtype


def mean_dtype(dtype: str) -> str:
    """The dtype in which means of a dtype are computed: float64 for integers, which are rounded toward zero at last."""
    return accumulator(dtype) if is_float(dtype) or is_complex(dtype) else "float64"


def sizes_of(args: Arguments, name: str, context: TypeContext) -> Dims:
    """The dimensions of a tensor argument of a call whose shapes are known."""
    dims = dims_of(tensor(args, name, context))
    assert dims is not None  # `Kernel.known` was asked before
    return dims


def reduced_axes(args: Arguments, axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front and sorted; all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(axes_of(args, (axis,) if isinstance(axis, int) else axis, ndim)))


def reduced_type(args: Arguments, x: TensorType, keepdims: bool, dtype: str | None) -> TensorType:
    """The type of the reduction of x over `args.axis`."""
    axis = args.axis
    if x.ndim < 0:
        return TensorType((), dtype) if axis is None and not keepdims else TensorType(dtype=dtype)
    axes = reduced_axes(args, axis, x.ndim)
    dims = dims_of(x)
    if dims is None and not (len(axes) == x.ndim):
        return TensorType(dtype=dtype, ndim=x.ndim if keepdims else x.ndim - len(axes))
    sizes: Dims = dims if dims is not None else (1,) * x.ndim
    if keepdims:
        return TensorType(tuple(1 if a in axes else size for a, size in enumerate(sizes)), dtype)
    return TensorType(tuple(size for a, size in enumerate(sizes) if a not in axes), dtype)


def empty_axis(axis: int) -> str:
    """What is said about a reduction of nothing."""
    return f"axis {axis} is empty, and the reduction of nothing has no value"


def require_values(x: np.ndarray, axes: Iterable[int]) -> None:
    """ValueError when such a reduction of an array runs over an axis of size 0."""
    if any(x.shape[axis] == 0 for axis in axes):
        raise ValueError("an axis is empty, and the reduction of nothing has no value")


def require_elements(args: Arguments, dims: Dims | None, axes: Sequence[int]) -> None:
    """ShapeError W226 when a reduction without a neutral element runs over an axis of size 0."""
    for axis in axes:
        if dims is not None and dims[axis] == 0:
            raise shape_error(args, empty_axis(axis), "W226")


def check_elements(kernel: Kernel, dims: Dims, axes: Sequence[int]) -> None:
    """Assert in the kernel that symbolic axes of such a reduction are not empty."""
    for axis in axes:
        if prove_le(1, dims[axis], kernel.context.facts) is not True:
            kernel.require(te.size(dims[axis]) > 0, empty_axis(axis))


def element_count(dims: Dims, axes: Sequence[int], dtype: str) -> PrimExpr:
    """The number of elements that a reduction joins, as a value of a floating dtype."""
    count = product(dims[axis] for axis in axes)
    return te.const(float(count), dtype) if isinstance(count, int) else te.cast(dtype, te.size(count))


def kept(indices: Sequence[PrimExpr], axes: Sequence[int]) -> tuple[PrimExpr, ...]:
    """The indices of the axes that a reduction leaves."""
    return tuple(index for axis, index in enumerate(indices) if axis not in axes)


def reduce_stage(
    shape: Dims,
    axes: Sequence[int],
    reducer: Callable[..., te.Reduction],
    formula: Callable[..., Any],
    name: str,
    keepdims: bool = False,
    may_be_empty: bool = True,
) -> Any:
    """The reduction of `formula(*indices)`, given over `shape`, along the axes: a tensor (or one for each value).

    Without `may_be_empty` nothing is stored where an axis is empty: the kernel refuses it, or never reads the result.
    """
    loops = {axis: te.reduce_axis((0, shape[axis]), name=f"k{axis}") for axis in axes}
    result: list[Dim] = [1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes]

    def body(*indices: PrimExpr) -> Any:
        remaining = iter(indices if not keepdims else kept(indices, axes))
        full = [loops[axis] if axis in loops else next(remaining) for axis in range(len(shape))]
        value = formula(*full)
        return replace(reducer(value, axis=list(loops.values())), may_be_empty=may_be_empty) if loops else value

    return te.compute(result, body, name)


def mean_stage(
    x: Operand, axes: Sequence[int], dtype: str, name: str = "mean", keepdims: bool = False, may_be_empty: bool = True
) -> te.Tensor:
    """The mean of x along the axes in the given dtype."""
    value: Callable[..., PrimExpr] = lambda *i: te.cast(dtype, x(*i))  # noqa: E731
    total = reduce_stage(x.shape, axes, te.sum, value, f"{name}_sum", keepdims, may_be_empty)
    count = element_count(x.shape, axes, dtype)
    return te.compute(total.shape, lambda *i: total(*i) / count, name)


def squared_deviation_stage(
    x: Operand,
    mean: te.Tensor,
    axes: Sequence[int],
    dtype: str,
    name: str = "variance",
    keepdims: bool = False,
    may_be_empty: bool = True,
) -> te.Tensor:
    """The mean of |x - mean|**2 along the axes: the second pass of the two-pass variance; `mean` has kept axes only."""

    def deviation(*indices: PrimExpr) -> PrimExpr:
        difference = te.cast(dtype, x(*indices)) - mean(*kept(indices, axes))
        if not is_complex(dtype):
            return difference * difference
        real, imaginary = te.real(difference), te.imag(difference)
        return real * real + imaginary * imaginary

    total = reduce_stage(x.shape, axes, te.sum, deviation, f"{name}_sum", keepdims, may_be_empty)
    count = element_count(x.shape, axes, part(dtype))
    return te.compute(total.shape, lambda *i: total(*i) / count, name)
