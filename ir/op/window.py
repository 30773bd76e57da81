"""Windows of signals, and sampling from distributions by given random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.dtypes import is_float, is_integer
from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, symbol
from weft.ir.op.common import (
    Kernel,
    dtype_error,
    example,
    f32,
    i64,
    kernel_lowering,
    require_dtype,
    require_rank,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []


@kernel_lowering
def _lower_hamming(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    size: Dim = args.window_size
    steps = te.maximum(te.size(size) - (0 if args.periodic else 1), 1)

    def element(i: PrimExpr) -> PrimExpr:
        turn = te.cast("float64", i) * te.const(2 * math.pi, "float64") / te.cast("float64", steps)
        value = te.const(args.alpha, "float64") - te.const(args.beta, "float64") * te.cos(turn)
        return te.select(te.equal(te.size(size), 1), te.const(1, "float64"), value)

    return kernel.compute(element)


def _numpy_hamming(window_size: int, periodic: bool, alpha: float, beta: float, dtype: str) -> np.ndarray:
    steps = max(window_size if periodic else window_size - 1, 1)
    values = alpha - beta * np.cos(np.arange(window_size) * 2 * np.pi / steps)
    return (np.ones(1) if window_size == 1 else values).astype(dtype)


@register_op(
    "hamming_window",
    [
        Param("window_size", "attr", of="dim"),
        Param("periodic", "attr", of="bool"),
        Param("alpha", "attr", of="float"),
        Param("beta", "attr", of="float"),
        Param("dtype", "dtype"),
    ],
    lowering=_lower_hamming,
    numpy=_numpy_hamming,
    pure=True,
    examples=(
        example(8, True, 0.54, 0.46, "float32"),
        example(symbol("n"), False, 0.54, 0.46, "float64"),
        example(1, False, 0.5, 0.5, "float32"),
    ),
)
def hamming_window(args: Arguments, context: TypeContext) -> TensorType:
    """The window alpha - beta * cos(2 pi i / steps), where steps is window_size when periodic, else one less.

    A window of one is 1. Errors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.
    """
    if not is_float(args.dtype):
        raise dtype_error(args, f"dtype must be floating, got {args.dtype}", "W321")
    if isinstance(args.window_size, int) and args.window_size < 0:
        raise shape_error(args, f"window_size must not be negative, got {args.window_size}", "W205")
    return TensorType((args.window_size,), args.dtype)


@kernel_lowering
def _lower_multinomial(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    prob = kernel.input("prob")
    uniform, rows = kernel.input("uniform_sample", (kernel.dims[0], 1)), kernel.input("sample_indices", kernel.dims)
    batch, classes = prob.shape
    kernel.require(te.size(classes) > 0, "there are no classes to choose from")

    def in_batch(i: PrimExpr) -> PrimExpr:
        return te.all(te.cast(te.INDEX, rows(i, 0)) >= 0, te.cast(te.INDEX, rows(i, 0)) < te.size(batch))

    kernel.checks.append(
        te.check(
            kernel.dims[:1],
            in_batch,
            f"{args.name}: a sample index is out of range",
            "BoundsError",
        )
    )

    def running(out: te.Tensor, b: PrimExpr, j: PrimExpr) -> PrimExpr:
        return prob(b, j) + te.if_then_else(j > 0, out(b, j - 1), te.const(0, prob.dtype))

    total = te.scan(
        (batch, classes),
        running,
        axis=1,
        dtype=prob.dtype,
        name="total",
    )
    k = te.reduce_axis((0, classes), name="k")

    def below(i: PrimExpr, one: PrimExpr) -> Any:
        passed = total(te.cast(te.INDEX, rows(i, 0)), k) <= uniform(i, 0)
        return te.sum(te.cast(te.INDEX, passed), axis=k)

    count = te.compute(kernel.dims, below, "count")

    def chosen(i: PrimExpr, one: PrimExpr) -> PrimExpr:
        return te.minimum(count(i, one), te.size(classes) - 1)

    return kernel.compute(chosen)


def _numpy_multinomial(prob: np.ndarray, uniform: np.ndarray, indices: np.ndarray, dtype: str) -> np.ndarray:
    if indices.size and (indices.min() < 0 or indices.max() >= prob.shape[0]):
        raise BoundsError("R.multinomial_from_uniform: a sample index is out of range")
    total = np.cumsum(prob, 1, dtype=prob.dtype)
    counts = (total[indices[:, 0]] <= uniform).sum(1, keepdims=True)
    return np.minimum(counts, prob.shape[1] - 1).astype(dtype)


@register_op(
    "multinomial_from_uniform",
    [Param("prob"), Param("uniform_sample"), Param("sample_indices", of="int"), Param("dtype", "dtype", "int64")],
    lowering=_lower_multinomial,
    numpy=_numpy_multinomial,
    pure=True,
    examples=(
        example(
            f32(3, 5),
            f32(4, 1),
            i64(4, 1),
            ranges={"prob": (0, 0.4), "uniform_sample": (0, 1), "sample_indices": (0, 2)},
        ),
        example(
            f32("b", "c"),
            f32("n", 1),
            typed("int32", "n", 1),
            dtype="int32",
            least=1,
            ranges={"prob": (0, 0.4), "uniform_sample": (0, 1), "sample_indices": (0, 0)},
        ),
    ),
)
def multinomial_from_uniform(args: Arguments, context: TypeContext) -> TensorType:
    """The class that each uniform random number chooses from a row of probabilities: the first one whose cumulative
    probability exceeds the number (the last class if none does).

    prob (b, c), uniform_sample (n, 1), sample_indices (n, 1) with the row for each -> (n, 1). Errors: ShapeError W201,
    W202; DTypeError W321; BoundsError for a row that does not exist.
    """
    names = ("prob", "uniform_sample", "sample_indices")
    prob, uniform, rows = (tensor(args, name, context) for name in names)
    for name, ty, domain in zip(names, (prob, uniform, rows), ("float", "float", "integer"), strict=True):
        require_rank(args, name, ty, 2)
        require_dtype(args, name, ty, domain)
    if not is_integer(args.dtype):
        raise dtype_error(args, f"dtype must be an integer dtype, got {args.dtype}", "W321")
    own, other = dims_of(uniform), dims_of(rows)
    for name, dims in (("uniform_sample", own), ("sample_indices", other)):
        if dims is not None:
            context.require_equal(dims[1], 1, f"{args.name}: the second size of {name}", args.span)
    if own is not None and other is not None:
        context.require_equal(own[0], other[0], f"{args.name}: samples and their rows", args.span)
    known = other or own
    return TensorType((known[0], 1) if known else None, args.dtype, 2)
