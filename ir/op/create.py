"""Operators that make tensors from sizes and numbers, and triangular parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.dtypes import is_bool, is_complex, is_float, is_integer, part
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import Dim, DimExpr, ceildiv, maximum, prove_nonnegative, symbol
from weft.ir.graph import Constant, Expr, PrimValue
from weft.ir.op.common import (
    Kernel,
    converted,
    dtype_error,
    example,
    f32,
    i64,
    kernel_lowering,
    require_known_rank,
    require_scalar,
    scalar_of,
    shape_error,
    tensor,
    tensor_of_shape,
    typed,
)
from weft.ir.op.declare import Arguments, Example, OpDef, Param, Reference
from weft.ir.op.dynamic import decompose_range, range_length
from weft.ir.op.precision import follow
from weft.ir.op.registry import add_op, register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, Type

# ---------------------------------------------------------------------------------------------------------------------
# One value everywhere
# ---------------------------------------------------------------------------------------------------------------------

_DTYPE_OR_NONE = Param("dtype", "dtype", None)
_N = symbol("n")


def _shaped(args: Arguments, context: TypeContext, dtype: str | None) -> TensorType:
    """The type of a new tensor of the shape argument."""
    return tensor_of_shape(args, "shape", context, dtype)


@kernel_lowering
def _lower_full(kernel: Kernel) -> PrimFunc | None:
    value = kernel.input("fill_value")
    return kernel.compute(lambda *i: scalar_of(value))


def _as_dtype(value: Any, dtype: str | None) -> Any:
    return converted(value, dtype) if dtype else np.asarray(value)


def _filling(args: Arguments, context: TypeContext, dtype: str | None) -> Type:
    """The type of the value that fills a tensor, a scalar for certain."""
    ty = require_scalar(args, "fill_value", context, dtype)
    if isinstance(ty, TensorType):
        require_known_rank(args, "fill_value", ty)
    return ty


@register_op(
    "full",
    [Param("shape", "shape"), Param("fill_value", "prim"), _DTYPE_OR_NONE],
    lowering=_lower_full,
    numpy=lambda shape, fill_value, dtype: np.full(shape, _as_dtype(fill_value, dtype)),
    pure=True,
    examples=(
        example((2, 3), 1.5),
        example((_N, 4), 7, dtype="int32"),
        example((_N,), f32(), dtype="float64"),
        example((_N + 1, 2), True),
    ),
)
def full(args: Arguments, context: TypeContext) -> TensorType:
    """A tensor of the given shape with one value everywhere. Dtype: that of the value unless given."""
    ty = _filling(args, context, None)
    own = getattr(ty, "dtype", None)
    if own is not None and is_complex(own):
        _filling(args, context, args.dtype)  # which the imaginary part has to fit
    return _shaped(args, context, args.dtype or getattr(ty, "dtype", None))


@kernel_lowering
def _lower_full_like(kernel: Kernel) -> PrimFunc | None:
    kernel.input("x")
    value = kernel.input("fill_value")
    return kernel.compute(lambda *i: scalar_of(value))


@register_op(
    "full_like",
    [Param("x"), Param("fill_value", "prim"), _DTYPE_OR_NONE],
    lowering=_lower_full_like,
    numpy=lambda x, fill_value, dtype: np.full_like(x, _as_dtype(fill_value, dtype or str(x.dtype)), dtype or x.dtype),
    pure=True,
    examples=(example(f32(2, 3), 4), example(f32("n", 4), 0.5), example(f32("n"), 2, dtype="int64")),
)
def full_like(args: Arguments, context: TypeContext) -> TensorType:
    """One value everywhere, in the shape (and the dtype, unless given) of x."""
    x = tensor(args, "x", context)
    _filling(args, context, args.dtype or x.dtype)
    return TensorType(x.shape, args.dtype or x.dtype, x.ndim, x.vdevice)


def _constant(name: str, value: int, numpy: Reference, numpy_like: Callable[..., Any]) -> None:
    """Declare `name` and `name_like`."""

    def rule(args: Arguments, context: TypeContext) -> Type:
        return _shaped(args, context, args.dtype)

    def rule_like(args: Arguments, context: TypeContext) -> Type:
        x = tensor(args, "x", context)
        return TensorType(x.shape, args.dtype or x.dtype, x.ndim, x.vdevice)

    @kernel_lowering
    def lower(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        if args.call.op.name.endswith("_like"):  # type: ignore[attr-defined]
            kernel.input("x")
        return kernel.compute(lambda *i: te.const(value, kernel.dtype))

    def add(
        name: str, rule: Any, params: tuple[Param, ...], numpy: Any, doc: str, examples: tuple[Example, ...]
    ) -> None:
        add_op(OpDef(name, params, rule, doc, lower, numpy=numpy, pure=True, examples=examples, family="create"))

    add(
        name,
        rule,
        (Param("shape", "shape"), Param("dtype", "dtype", "float32")),
        numpy,
        f"A tensor of {name}.",
        (example((2, 3), "float32"), example((_N, 4), "int64"), example((2 * _N, symbol("m")), "bool")),
    )
    add(
        f"{name}_like",
        rule_like,
        (Param("x"), _DTYPE_OR_NONE),
        numpy_like,
        f"A tensor of {name} in the shape (and the dtype, unless given) of x.",
        (example(f32(2, 3)), example(f32("n", 4), dtype="int32")),
    )


_constant("zeros", 0, np.zeros, np.zeros_like)
_constant("ones", 1, np.ones, np.ones_like)


# ---------------------------------------------------------------------------------------------------------------------
# Ranges and diagonals
# ---------------------------------------------------------------------------------------------------------------------

Number = Dim | float


def _number(args: Arguments, name: str) -> Number | None:
    """A scalar argument that is known when compiling."""
    value = args[name]
    if isinstance(value, PrimValue) and not isinstance(value.value, bool):
        return value.value
    if isinstance(value, Constant) and value.data.ndim == 0 and value.is_numpy:
        return value.data.item()
    return None


def _range(args: Arguments) -> tuple[Number | None, Number | None, Number | None]:
    """(start, end, step) of an arange: a single value is the end."""
    start, end, step = (_number(args, name) if args[name] is not None else None for name in ("start", "end", "step"))
    return (0, start, step) if args.end is None else (start, end, step)


def _count(args: Arguments) -> Dim | None:
    """The number of elements; None where only a run can tell."""
    start, end, step = _range(args)
    if step == 0:
        raise shape_error(args, "the step is 0", "W205")
    if start is None or end is None or step is None:
        return None
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        if isinstance(start, DimExpr) or isinstance(end, DimExpr) or isinstance(step, DimExpr):
            return None
        if not all(map(math.isfinite, (start, end, step))):
            raise shape_error(args, f"no range goes from {start} to {end} by {step}", "W205")
        return max(0, math.ceil((end - start) / step))
    if isinstance(step, DimExpr):
        return None
    count = ceildiv(end - start, step) if step > 0 else ceildiv(start - end, -step)
    return count if prove_nonnegative(count) is True else maximum(count, 0)


@kernel_lowering
def _lower_arange(kernel: Kernel) -> PrimFunc | None:
    start, _, step = _range(kernel.args)
    if start is None or step is None or _count(kernel.args) is None:
        return None
    work = te.INDEX if is_integer(kernel.dtype) else part(kernel.dtype)

    def value(number: Number) -> PrimExpr:
        return te.cast(work, te.size(number)) if isinstance(number, DimExpr) else te.const(number, work)

    def element(i: PrimExpr) -> PrimExpr:
        return value(start) + te.cast(work, i) * value(step)

    return kernel.compute(element)


def _numpy_arange(start: Any, end: Any, step: Any, dtype: str | None) -> np.ndarray:
    if end is None:
        start, end = 0, start
    floating = any(np.asarray(value).dtype.kind == "f" for value in (start, end, step))
    start, end, step = (np.asarray(value).item() for value in (start, end, step))
    range_length(start, end, step)  # refuses what is no range
    return np.arange(start, end, step, dtype=dtype or ("float32" if floating else "int64"))


def _decompose_arange(args: Arguments, builder: Any) -> Expr:
    return args.call if _count(args) is not None else decompose_range(args, builder)


@register_op(
    "arange",
    [
        Param("start", "prim", of="dim"),
        Param("end", "prim", None, "dim"),
        Param("step", "prim", 1, "dim"),
        _DTYPE_OR_NONE,
    ],
    lowering=_lower_arange,
    decompose=_decompose_arange,
    numpy=_numpy_arange,
    pure=True,
    examples=(
        example(5),
        example(_N),
        example(2, _N, 3),
        example(_N, 0, -1, dtype="int32"),
        example(0, 1, 0.25),
        example(1, 2 * _N + 1, dtype="float32"),
        example(0, _N, 2),
    ),
)
def arange(args: Arguments, context: TypeContext) -> TensorType:
    """start, start + step, ... up to end, which is left out. A single value is the end.

    Boundaries and steps that a run computes give a vector whose size only the run knows. Dtype: int64 for integers and
    float32 for floats unless given. Errors: ShapeError W205 a step that is 0; DTypeError W320 a range of bools, W321 a
    bound that the dtype cannot hold.
    """
    given = [name for name in ("start", "end", "step") if args[name] is not None]
    scalars = [require_scalar(args, name, context, args.dtype) for name in given]
    own = [getattr(ty, "dtype", None) or "int64" for ty in scalars]
    if any(map(is_complex, own)):
        raise dtype_error(args, "a range has no complex boundaries", "W321", "take R.real(x)")
    dtype = args.dtype or ("float32" if any(map(is_float, own)) else "int64")
    if is_bool(dtype):
        raise dtype_error(args, "a range has no truth values", hint="compare it with R.not_equal(x, 0)")
    count = _count(args)
    return TensorType(None if count is None else (count,), dtype, 1)


def _offset(args: Arguments) -> int:
    value = _number(args, "k")
    if not isinstance(value, int):
        raise shape_error(args, "the diagonal k must be a constant integer", "W205")
    return value


@kernel_lowering
def _lower_eye(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    if args.call.op.name == "eye_like":  # type: ignore[attr-defined]
        kernel.input("x")
    k = _offset(args)
    one, zero = te.const(1, kernel.dtype), te.const(0, kernel.dtype)

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        return te.select(te.equal(j - i, k), one, zero)

    return kernel.compute(element)


def _size(args: Arguments, name: str) -> Dim:
    value = _number(args, name)
    if isinstance(value, (bool, float)) or value is None or (isinstance(value, int) and value < 0):
        raise shape_error(args, f"{name} must be a size", "W205")
    return value


@register_op(
    "eye",
    [
        Param("n", "prim", of="dim"),
        Param("m", "prim", None, "dim"),
        Param("k", "prim", 0),
        Param("dtype", "dtype", "float32"),
    ],
    lowering=_lower_eye,
    numpy=lambda n, m, k, dtype: np.eye(int(n), None if m is None else int(m), int(k), dtype),
    pure=True,
    examples=(example(3), example(_N, 4, 1), example(2, _N, -1, dtype="int32")),
)
def eye(args: Arguments, context: TypeContext) -> TensorType:
    """Ones on the k-th diagonal of an n by m matrix (square when m is not given), zeros elsewhere."""
    _offset(args)
    rows = _size(args, "n")
    return TensorType((rows, rows if args.m is None else _size(args, "m")), args.dtype)


@register_op(
    "eye_like",
    [Param("x"), Param("k", "prim", 0), _DTYPE_OR_NONE],
    lowering=_lower_eye,
    numpy=lambda x, k, dtype: np.eye(x.shape[0], x.shape[1], int(k), dtype or x.dtype),
    pure=True,
    examples=(example(f32(2, 3)), example(f32("n", 4), 1, "int32")),
)
def eye_like(args: Arguments, context: TypeContext) -> TensorType:
    """Ones on the k-th diagonal, zeros elsewhere, in the shape (and the dtype, unless given) of the matrix x."""
    x = tensor(args, "x", context)
    _offset(args)
    if x.ndim not in (-1, 2):
        raise shape_error(args, f"x must be a matrix, it has {x.ndim} dimensions")
    return TensorType(x.shape, args.dtype or x.dtype, 2, x.vdevice)


def _triangle(name: str, keep: Callable[[PrimExpr, PrimExpr], PrimExpr], numpy: Reference, doc: str) -> None:
    """Declare triu or tril."""

    def rule(args: Arguments, context: TypeContext) -> Type:
        x = tensor(args, "x", context)
        if 0 <= x.ndim < 2:
            raise shape_error(args, f"x must have 2 or more dimensions, it has {x.ndim}")
        require_scalar(args, "k", context, "int64")
        return x

    @kernel_lowering
    def lower(kernel: Kernel) -> PrimFunc | None:
        x, k = kernel.input("x"), kernel.input("k")
        offset = te.cast(te.INDEX, scalar_of(k))
        return kernel.compute(lambda *i: te.select(keep(i[-1] - i[-2], offset), x(*i), te.const(0, x.dtype)))

    params = (Param("x"), Param("k", "prim", 0))
    examples = (
        example(f32(3, 4)),
        example(f32("n", 4), 1),
        example(i64(2, "n", 3), -1),
        example(f32("n", 2), typed("int64"), ranges={"k": (-2, 2)}),
    )
    add_op(
        OpDef(
            name,
            params,
            rule,
            doc,
            lower,
            numpy=numpy,
            pure=True,
            examples=examples,
            family="create",
            precision=follow("x"),
        )
    )


_triangle(
    "triu",
    lambda distance, k: distance >= k,
    lambda x, k: np.triu(x, int(k)),
    "The elements on and above the k-th diagonal of the last two dimensions, zeros below.",
)
_triangle(
    "tril",
    lambda distance, k: distance <= k,
    lambda x, k: np.tril(x, int(k)),
    "The elements on and below the k-th diagonal of the last two dimensions, zeros above.",
)
