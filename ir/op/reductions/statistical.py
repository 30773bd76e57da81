"""Sums, products, extremes, moments and running sums.

`axis` is None (all axes), an axis or a list of axes; negative axes count from the end. Results keep the dtype of x.
Floating values narrower than float32 accumulate in float32. An empty sum is 0, an empty product 1, an empty mean or
variance nan; the maximum or minimum of nothing is an error.
Errors: ShapeError W203 axis out of range, W204 an axis twice, W226 an empty maximum; DTypeError W321.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from weft.dtypes import is_bool, is_complex, is_float, part
from weft.errors import DTypeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import product
from weft.ir.op.common import (
    Kernel,
    axis_of,
    converted,
    dtype_error,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_parts,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Example, OpDef, Param
from weft.ir.op.elementwise.binary import log_add_exp
from weft.ir.op.layout_rules.families import along, reducing
from weft.ir.op.precision import UNDECLARED, Precision, Reads, follow
from weft.ir.op.reductions.reduction import (
    accumulator,
    check_elements,
    mean_dtype,
    mean_stage,
    reduce_stage,
    reduced_axes,
    reduced_type,
    require_elements,
    require_values,
    squared_deviation_stage,
)
from weft.ir.op.registry import add_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []

_PARAMS = (Param("x"), Param("axis", "attr", None, "ints?"), Param("keepdims", "attr", False, "bool"))
Stages = Callable[[Any, tuple[int, ...], str, bool], te.Tensor]


def _examples(integer: bool, least: int) -> tuple[Example, ...]:
    floats = (
        example(f32(2, 3, 4), axis=1),
        example(f32("n", 4), axis=[-1], keepdims=True),
        example(f32(3, 5)),
        example(f32("n", 4, "m"), axis=[0, 1], least=1),
        example(f32("n", "m"), axis=1, least=least),
        example(typed("float16", 2, 70), axis=1),
        example(typed("float64", "n", 3), axis=-1),
    )
    return (*floats, example(typed("int32", 3, 4), axis=0, keepdims=True)) if integer else floats


_COMPLEX = (example(typed("complex64", "n", 4), axis=0), example(typed("complex128", 3, "n"), axis=1, least=1))


def _reduction(
    name: str,
    doc: str,
    domain: str,
    stages: Stages,
    numpy: Callable[..., Any],
    empty: bool = True,
    moment: bool = False,
    precision: Precision = UNDECLARED,
    result: Callable[[str], str] = str,
) -> OpDef:
    """Declare a reduction, whose dtype `result` gives by that of x.

    `stages(x, axes, accumulator, keepdims)` gives its tensor, `empty` says it has a neutral value; a `moment` is
    computed in floats, and nothing has none of integers.
    """

    def neutral(dtype: str | None) -> bool:
        return empty and not (moment and dtype is not None and not is_float(dtype) and not is_complex(dtype))

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        x = tensor(args, "x", context)
        require_dtype(args, "x", x, domain)
        if not neutral(x.dtype) and x.ndim >= 0:
            require_elements(args, dims_of(x), reduced_axes(args, args.axis, x.ndim))
        return reduced_type(args, x, args.keepdims, None if x.dtype is None else result(x.dtype))

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        x = kernel.input("x")
        axes = reduced_axes(args, args.axis, x.ndim)
        if not neutral(x.dtype):
            check_elements(kernel, x.shape, axes)
        wide = mean_dtype(x.dtype) if moment else accumulator(x.dtype)
        out = stages(x, axes, wide, args.keepdims)
        if result(wide) != kernel.dtype:
            out = te.compute(out.shape, lambda *i: te.cast(kernel.dtype, out(*i)), "rounded")
        return kernel.finish(out)

    def reference(x: Any, *, axis: Any, keepdims: bool) -> Any:
        if moment and not neutral(str(x.dtype)):
            require_values(x, range(x.ndim) if axis is None else np.atleast_1d(axis).tolist())
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        return converted(np.asarray(numpy(wide, axis=axis, keepdims=keepdims)), result(str(x.dtype)))

    examples = _examples(domain != "float", 0 if empty else 1)
    if domain in ("any", "arithmetic"):
        examples = (*examples, *_COMPLEX)
    if domain in ("any", "ordered"):
        examples = (*examples, example(typed("bool", 3, "n"), axis=1, least=1))
    return add_op(
        OpDef(
            name,
            _PARAMS,
            rule,
            doc,
            lowering,
            numpy=reference,
            pure=True,
            examples=examples,
            family="statistical",
            layout=reducing("x"),
            precision=precision,
        )
    )


def _plain(reducer: Callable[..., te.Reduction], name: str, may_be_empty: bool = True, *, some: bool) -> Stages:
    """A reduction; of bools it tells whether some (or every) value is true."""
    of_bools = te.max if some else te.min

    def stages(x: Any, axes: tuple[int, ...], wide: str, keepdims: bool) -> te.Tensor:
        if not is_bool(wide):
            return reduce_stage(x.shape, axes, reducer, lambda *i: te.cast(wide, x(*i)), name, keepdims, may_be_empty)
        value: Callable[..., PrimExpr] = lambda *i: te.cast("uint8", x(*i))  # noqa: E731
        found = reduce_stage(x.shape, axes, of_bools, value, name, keepdims, may_be_empty)
        return te.compute(found.shape, lambda *i: te.not_equal(found(*i), 0), f"{name}_bool")

    return stages


def _variance(x: Any, axes: tuple[int, ...], wide: str, keepdims: bool) -> te.Tensor:
    return squared_deviation_stage(x, mean_stage(x, axes, wide), axes, wide, "variance", keepdims)


def _std(x: Any, axes: tuple[int, ...], wide: str, keepdims: bool) -> te.Tensor:
    variance = _variance(x, axes, wide, keepdims)
    return te.compute(variance.shape, lambda *i: te.sqrt(variance(*i)), "std")


def _same_dtype(function: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
    """NumPy's reduction without its widening of small integers."""
    return lambda x, axis, keepdims: function(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A mean or variance that gives nan for nothing, without a warning."""

    def quiet(x: Any, axis: Any, keepdims: bool) -> Any:
        count = x.size if axis is None else int(np.prod([x.shape[a] for a in axis]))
        if count == 0:
            return np.full(np.sum(x, axis=axis, keepdims=keepdims).shape, np.nan, x.real.dtype)
        return function(x, axis=axis, keepdims=keepdims)

    return quiet


_reduction(
    "sum",
    "The sum along the axes; of bools, whether one is true.",
    "any",
    _plain(te.sum, "sum", some=True),
    _same_dtype(np.sum),
)
_reduction(
    "prod",
    "The product along the axes; of bools, whether all are true.",
    "any",
    _plain(te.prod, "prod", some=False),
    _same_dtype(np.prod),
)
_reduction(
    "max",
    "The greatest value along the axes; nan if there is one.",
    "ordered",
    _plain(te.max, "max", False, some=True),
    np.max,
    False,
    precision=follow("x", reads=Reads.WHOLE),
)
_reduction(
    "min",
    "The least value along the axes; nan if there is one.",
    "ordered",
    _plain(te.min, "min", False, some=False),
    np.min,
    False,
    precision=follow("x", reads=Reads.WHOLE),
)
_OF_INTEGERS = "Of integers it is computed in float64 and rounded toward zero; there is none of nothing."
_reduction(
    "mean",
    f"The arithmetic mean along the axes. {_OF_INTEGERS}",
    "arithmetic",
    lambda x, axes, wide, keepdims: mean_stage(x, axes, wide, "mean", keepdims),
    _quiet(np.mean),
    moment=True,
)
_reduction(
    "variance",
    f"The mean squared deviation from the mean along the axes. Of complex numbers it is a float. {_OF_INTEGERS}",
    "arithmetic",
    _variance,
    _quiet(np.var),
    moment=True,
    result=part,
)
_reduction(
    "std",
    f"The square root of the variance along the axes. Of complex numbers it is a float. {_OF_INTEGERS}",
    "arithmetic",
    _std,
    _quiet(np.std),
    moment=True,
    result=part,
)


# ---------------------------------------------------------------------------------------------------------------------
# Running sums and products
# ---------------------------------------------------------------------------------------------------------------------

_SCAN_PARAMS = (
    Param("data"),
    Param("axis", "attr", None, "int?"),
    Param("dtype", "dtype", None),
    Param("exclusive", "attr", False, "bool?"),
)
_SCAN_EXAMPLES = (
    example(f32(2, 5), axis=1),
    example(f32("n", 3), axis=0, exclusive=True),
    example(f32(2, 3)),
    example(f32("n", "m")),
    example(typed("int32", 4), axis=-1, dtype="int64"),
    example(typed("bool", 2, "n"), axis=1, dtype="int32"),
    example(typed("float16", 70), axis=0),
)


def _narrowed(wide: te.Tensor, dtype: str, *indices: PrimExpr) -> PrimExpr:
    return te.cast(dtype, wide(*indices))


def _numpy_logcumsumexp(x: Any, axis: int, dtype: Any) -> Any:
    return np.logaddexp.accumulate(x, axis).astype(dtype)


def _scan(
    name: str,
    doc: str,
    neutral: float,
    join: Callable[[Any, Any], PrimExpr],
    numpy: Callable[..., Any],
    domain: str = "number",
    examples: tuple[Example, ...] = _SCAN_EXAMPLES,
) -> OpDef:
    """Declare a running reduction along one axis (of the flattened tensor when axis is None)."""

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        data = tensor(args, "data", context)
        require_dtype(args, "data", data, "any" if domain == "number" else domain)
        require_parts(args, data, args.dtype)
        dtype = args.dtype or data.dtype
        if dtype is not None and is_bool(dtype):
            raise dtype_error(args, "data must be numeric, got bool", "W321", 'say a dtype: dtype="int32" counts')
        if math.isinf(neutral) and dtype is not None and not is_float(dtype):
            raise DTypeError(f"{args.name}: the result is a float, not {dtype}", code="W320", span=args.span)
        if args.axis is not None:
            if data.ndim >= 0:
                axis_of(args, args.axis, data.ndim)
            return TensorType(data.shape, dtype, data.ndim, data.vdevice)
        dims = dims_of(data)
        return TensorType(dtype=dtype, ndim=1) if dims is None else TensorType((product(dims),), dtype)

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        data = kernel.input("data")
        wide = accumulator(kernel.dtype)
        axis = 0 if args.axis is None else axis_of(args, args.axis, data.ndim)
        if not kernel.dims:  # a scalar along its only (imagined) axis
            first = te.const(neutral, kernel.dtype) if args.exclusive else te.cast(kernel.dtype, data())
            return kernel.finish(te.compute((), lambda: first, name))

        def element(indices: tuple[PrimExpr, ...]) -> PrimExpr:
            return te.cast(wide, data(*(_unflattened(indices[0], data.shape) if args.axis is None else indices)))

        def formula(out: Any, *indices: PrimExpr) -> PrimExpr:
            place = indices[axis]
            previous = (*indices[:axis], place - 1, *indices[axis + 1 :])
            start = te.const(neutral, wide)
            if args.exclusive:
                return te.if_then_else(place > 0, join(out(*previous), element(previous)), start)
            return join(te.if_then_else(place > 0, out(*previous), start), element(indices))

        out = te.scan(kernel.dims, formula, axis=axis, dtype=wide, name=name)
        if wide != kernel.dtype:
            out = te.compute(kernel.dims, partial(_narrowed, out, kernel.dtype), "rounded")
        return kernel.finish(out)

    def reference(data: Any, *, axis: Any, dtype: Any, exclusive: bool) -> Any:
        target = np.dtype(dtype) if dtype else data.dtype
        wide = np.dtype(np.float32) if target == np.float16 else target
        flat = np.reshape(data, -1) if axis is None else data
        along = 0 if axis is None else axis
        if flat.ndim == 0:
            return np.asarray(neutral, target) if exclusive else converted(flat, target)
        result = numpy(converted(flat, wide), axis=along, dtype=wide)
        if exclusive:
            first = np.full_like(np.take(result, [0], along), neutral) if result.shape[along] else result
            body = np.take(result, range(result.shape[along] - 1), along) if result.shape[along] else result
            result = np.concatenate([first, body], along)
        return result.astype(target)

    return add_op(
        OpDef(
            name,
            _SCAN_PARAMS,
            rule,
            doc,
            lowering,
            numpy=reference,
            pure=True,
            examples=examples,
            family="statistical",
            layout=along("data"),
        )
    )


def _unflattened(position: PrimExpr, shape: tuple[Any, ...]) -> list[PrimExpr]:
    """The indices of an element of a shape by its position in row-major order."""
    indices: list[PrimExpr] = []
    for size in reversed(shape[1:]):
        indices.append(position % size)
        position = position // size
    return [*([position] if shape else []), *reversed(indices)]


_scan(
    "cumsum",
    "The running sum along an axis (of the flattened tensor for None); exclusive: of what comes before.",
    0,
    lambda a, b: a + b,
    np.cumsum,
)
_scan(
    "cumprod",
    "The running product along an axis (of the flattened tensor for None); exclusive: of what comes before.",
    1,
    lambda a, b: a * b,
    np.cumprod,
)
_FLOAT_SCANS = tuple(item for item in _SCAN_EXAMPLES if "dtype" not in item.kwargs)
_scan(
    "logcumsumexp",
    "The logarithm of the running sum of exponentials along an axis, without overflow.",
    -math.inf,
    log_add_exp,
    _numpy_logcumsumexp,
    "float",
    _FLOAT_SCANS,
)


def _extreme(name: str, doc: str, join: Callable[..., PrimExpr], numpy: np.ufunc) -> OpDef:
    """Declare a running extreme value along one axis."""

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        data = tensor(args, "data", context)
        require_dtype(args, "data", data, "number")
        if data.ndim >= 0:
            axis_of(args, args.axis, data.ndim)
        return data

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        data = kernel.input("data")
        axis = axis_of(args, args.axis, data.ndim)

        def formula(out: Any, *i: PrimExpr) -> PrimExpr:
            previous = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
            return te.if_then_else(i[axis] > 0, join(out(*previous), data(*i)), data(*i))

        return kernel.finish(te.scan(kernel.dims, formula, axis=axis, dtype=kernel.dtype, name=name))

    shown = (example(f32(2, 5), axis=1), example(f32("n", 3), axis=0), example(typed("int32", "m"), axis=-1))
    reference: Callable[[Any, Any], Any] = lambda data, axis: numpy.accumulate(data, axis) if data.size else data.copy()  # noqa: E731
    params = (Param("data"), Param("axis", "attr", of="int"))
    return add_op(
        OpDef(
            name,
            params,
            rule,
            doc,
            lowering,
            numpy=reference,
            pure=True,
            examples=shown,
            family="statistical",
            layout=along("data"),
        )
    )


_extreme("cummax", "The greatest value so far along an axis; nan stays.", te.maximum, np.maximum)
_extreme("cummin", "The least value so far along an axis; nan stays.", te.minimum, np.minimum)
