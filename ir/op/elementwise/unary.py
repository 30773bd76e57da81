"""Elementwise operators of one tensor.

One line declares an operator: name, documentation, dtype domain, what it does to a scalar, and its NumPy reference.
Shape: that of x. Errors: DTypeError W321 when the dtype is outside the domain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.dtypes import is_bool, is_float, is_unsigned, part
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import intrinsic
from weft.ir.kernel.prim import unary as prim_unary
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_scalar,
    rounded_once,
    scalar_of,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Example, OpDef, Param
from weft.ir.op.elementwise import complex_formulas
from weft.ir.op.layout_rules.families import broadcasting
from weft.ir.op.precision import DECIDES, RANGE, Precision, follow
from weft.ir.op.registry import add_op, register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import Type

__all__ = ["elementwise"]

Scalar = Callable[[PrimExpr], PrimExpr]


def elementwise(
    name: str,
    doc: str,
    domain: str = "float",
    *,
    scalar: Scalar | None = None,
    numpy: Callable[[Any], Any],
    result: str | Callable[[str], str] | None = None,
    ranges: tuple[float, float] | None = None,
    param: str = "x",
    examples: tuple[Example, ...] = (),
    precision: Precision | None = None,
) -> OpDef:
    """Declare an operator that applies a function to every element (the intrinsic of its name by default, of complex
    elements the formula)."""
    on_scalar: Scalar = scalar or (
        complex_formulas.function(name) if domain == "inexact" else lambda value: intrinsic(name, value)
    )
    limits = {} if ranges is None else {param: ranges}
    shown = examples or _default_examples(domain, limits)

    def rule(args: Arguments, context: TypeContext) -> Type:
        ty = tensor(args, param, context)
        require_dtype(args, param, ty, domain)
        if result is None or ty.dtype is None:
            return ty if result is None else replace(ty, dtype=result if isinstance(result, str) else None)
        return replace(ty, dtype=result if isinstance(result, str) else result(ty.dtype))

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        x = kernel.input(param)
        return kernel.compute(lambda *i: rounded_once(on_scalar, x(*i)))

    return add_op(
        OpDef(
            name,
            (Param(param),),
            rule,
            doc,
            lowering,
            numpy=numpy,
            pure=True,
            examples=shown,
            family="unary",
            layout=broadcasting(param),
            precision=precision or (follow(param) if not isinstance(result, str) and domain != "bits" else DECIDES),
        )
    )


def _default_examples(domain: str, ranges: dict[str, tuple[float, float]]) -> tuple[Example, ...]:
    if domain in ("integer", "bits"):
        return (example(typed("int32", 2, 3), ranges=ranges), example(typed("int64", "n"), ranges=ranges))
    if domain == "bool":
        return (example(typed("bool", 2, 3)), example(typed("bool", "n", 4)))
    complex_ones = (example(typed("complex64", "n", 3)), example(typed("complex128", 4)))
    if domain == "complex":
        return complex_ones
    return (
        example(f32(2, 3), ranges=ranges),
        example(f32("n", 4), ranges=ranges),
        example(typed("float64", "n"), ranges=ranges),
        *(complex_ones if domain in ("inexact", "arithmetic") else ()),
    )


def _reference(name: str, of_complex: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """The NumPy meaning of an intrinsic that NumPy lacks, and what it is of complex numbers."""
    function = INTRINSICS[name].numpy
    assert function is not None
    if of_complex is None:
        return function

    def either(x: Any) -> Any:
        return of_complex(x) if np.iscomplexobj(x) else function(x)

    return either


def _whole(name: str, function: Callable[[Any], Any], doc: str) -> OpDef:
    """A rounding operator: the identity on integers."""
    return elementwise(
        name,
        doc,
        "number",
        scalar=lambda x: intrinsic(name, x) if is_float(x.dtype) else x,
        numpy=lambda x: np.array(x) if np.asarray(x).dtype.kind in "biu" else function(x).astype(np.asarray(x).dtype),
    )


def _classify(name: str, function: Callable[[Any], Any], doc: str, of_integers: bool) -> OpDef:
    """A test of floating-point values, constant on integers."""
    return elementwise(
        name,
        doc,
        "arithmetic",
        scalar=complex_formulas.either(
            name, lambda x: intrinsic(name, x) if is_float(x.dtype) else te.const(of_integers, "bool")
        ),
        numpy=function,
        result="bool",
    )


def _sign(x: PrimExpr) -> PrimExpr:
    # The sign of a nan is itself; that of either zero is 0, which -0.0 + 0.0 is.
    if is_unsigned(x.dtype):
        return te.minimum(x, 1)
    zero = x + te.const(0, x.dtype) if is_float(x.dtype) else x
    return te.select(x > 0, te.const(1, x.dtype), te.select(x < 0, te.const(-1, x.dtype), zero))


elementwise(
    "abs",
    "The absolute value, elementwise; of complex numbers the length, a float.",
    "arithmetic",
    scalar=complex_formulas.absolute,
    numpy=np.abs,
    result=part,
)
elementwise(
    "acos",
    "The inverse cosine, elementwise; nan outside [-1, 1].",
    "inexact",
    numpy=np.arccos,
    ranges=(-1, 1),
    precision=RANGE,
)
elementwise(
    "acosh",
    "The inverse hyperbolic cosine, elementwise; nan below 1.",
    "inexact",
    numpy=np.arccosh,
    ranges=(1, 4),
    precision=RANGE,
)
elementwise(
    "asin",
    "The inverse sine, elementwise; nan outside [-1, 1].",
    "inexact",
    numpy=np.arcsin,
    ranges=(-1, 1),
    precision=RANGE,
)
elementwise("asinh", "The inverse hyperbolic sine, elementwise.", "inexact", numpy=np.arcsinh)
elementwise("atan", "The inverse tangent, elementwise.", "inexact", numpy=np.arctan)
elementwise(
    "atanh",
    "The inverse hyperbolic tangent, elementwise.",
    "inexact",
    numpy=np.arctanh,
    ranges=(-0.9, 0.9),
    precision=RANGE,
)
elementwise(
    "bitwise_not",
    "All bits inverted, elementwise; logical negation of bools.",
    "bits",
    scalar=lambda x: prim_unary("not" if is_bool(x.dtype) else "bitwise_not", x),
    numpy=np.invert,
)
_whole("ceil", np.ceil, "The least whole number not below x, elementwise, in the dtype of x.")
elementwise("cos", "The cosine, elementwise.", "inexact", numpy=np.cos)
elementwise(
    "cosh",
    "The hyperbolic cosine, elementwise.",
    "inexact",
    numpy=np.cosh,
    precision=RANGE,
)
elementwise("erf", "The error function, elementwise.", numpy=_reference("erf"))
elementwise(
    "exp",
    "e raised to x, elementwise.",
    "inexact",
    numpy=np.exp,
    precision=RANGE,
)
_whole("floor", np.floor, "The greatest whole number not above x, elementwise, in the dtype of x.")
_classify("isfinite", np.isfinite, "Whether x is neither infinite nor nan, elementwise; bool.", True)
_classify("isinf", np.isinf, "Whether x is an infinity, elementwise; bool.", False)
_classify("isnan", np.isnan, "Whether x is nan, elementwise; bool.", False)
elementwise(
    "log",
    "The natural logarithm, elementwise; nan below 0.",
    "inexact",
    numpy=np.log,
    ranges=(0.1, 4),
    precision=RANGE,
)
elementwise(
    "logical_not",
    "Whether x is zero (false), elementwise; bool.",
    "any",
    scalar=lambda x: prim_unary("not", x) if is_bool(x.dtype) else te.equal(x, 0),
    numpy=np.logical_not,
    result="bool",
    examples=(example(typed("bool", 2, 3)), example(typed("int32", "n", 4)), example(f32(3))),
    precision=DECIDES,
)
elementwise("negative", "-x, elementwise.", "arithmetic", scalar=lambda x: prim_unary("neg", x), numpy=np.negative)
_whole("round", np.rint, "The nearest whole number, halves to even, elementwise, in the dtype of x.")
elementwise(
    "rsqrt",
    "One over the square root, elementwise.",
    "inexact",
    numpy=_reference("rsqrt", lambda x: 1 / np.sqrt(x)),
    ranges=(0.1, 4),
    precision=RANGE,
)
elementwise(
    "sigmoid", "1 / (1 + exp(-x)), elementwise.", "inexact", numpy=_reference("sigmoid", lambda x: 1 / (1 + np.exp(-x)))
)
elementwise(
    "sign", "-1, 0 or 1 as x is negative, zero or positive, elementwise.", "number", scalar=_sign, numpy=np.sign
)
elementwise("sin", "The sine, elementwise.", "inexact", numpy=np.sin)
elementwise(
    "sinh",
    "The hyperbolic sine, elementwise.",
    "inexact",
    numpy=np.sinh,
    precision=RANGE,
)
elementwise(
    "sqrt",
    "The square root, elementwise; nan below 0.",
    "inexact",
    numpy=np.sqrt,
    ranges=(0, 4),
)
elementwise("square", "x * x, elementwise.", "arithmetic", scalar=lambda x: x * x, numpy=np.square)
elementwise(
    "tan",
    "The tangent, elementwise.",
    "inexact",
    numpy=np.tan,
    ranges=(-1, 1),
    precision=RANGE,
)
elementwise("tanh", "The hyperbolic tangent, elementwise.", "inexact", numpy=np.tanh)
_whole("trunc", np.trunc, "x without its fraction, elementwise, in the dtype of x.")


# ---------------------------------------------------------------------------------------------------------------------
# clip
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_clip(kernel: Kernel) -> PrimFunc | None:
    x, low, high = kernel.input("x"), kernel.input("min"), kernel.input("max")

    def clipped(*i: PrimExpr) -> PrimExpr:
        bounds = [te.cast(x.dtype, scalar_of(bound)) for bound in (low, high)]
        return te.minimum(te.maximum(x(*i), bounds[0]), bounds[1])

    return kernel.compute(clipped)


@register_op(
    "clip",
    [Param("x"), Param("min", "prim"), Param("max", "prim")],
    lowering=_lower_clip,
    numpy=lambda x, low, high: np.minimum(np.maximum(x, np.asarray(low, x.dtype)), np.asarray(high, x.dtype)),
    pure=True,
    layout=broadcasting("x"),
    examples=(example(f32(2, 3), -1, 1), example(f32("n", 4), -0.5, 0.25), example(typed("int32", "n"), 0, 2)),
    precision=follow("x"),
)
def clip(args: Arguments, context: TypeContext) -> Type:
    """x limited to [min, max], elementwise; nan stays nan.

    Errors: DTypeError W321 for a floating bound of integers.
    """
    x = tensor(args, "x", context)
    require_dtype(args, "x", x, "number")
    for name in ("min", "max"):
        require_scalar(args, name, context, x.dtype)
    return x
