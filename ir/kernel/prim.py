"""Building tensor-level expressions: constants, promotion, operators.

`as_expr` makes an expression of a Python number; `binary`, `unary`, `cast` and `intrinsic` build nodes whose operands
have one dtype: operands are promoted (`dtype.promote`), Python numbers take the other operand's dtype, scalars are
broadcast against vectors. Nothing is folded here: what is written is what is built (`weft.ir.kernel.simplify` folds).
Python operators on PrimExprs call these; `==` stays identity, use `equal`. A PrimExpr has no truth value: `if`, `and`
and chained comparisons of them would silently take one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weft import dtypes
from weft.errors import DTypeError, Span, described
from weft.ir.kernel.intrinsics import INTRINSICS, result_dtype
from weft.ir.node import replace
from weft.ir.tensor import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Extent,
    FloatImm,
    IntImm,
    PrimCall,
    PrimExpr,
    Unary,
)

__all__ = [
    "CONVERSIONS",
    "OF_COMPLEX",
    "as_expr",
    "binary",
    "buffer_strides",
    "cast",
    "const",
    "equal",
    "extent_product",
    "intrinsic",
    "lane_count",
    "never_defined",
    "pair",
    "unary",
]

Scalar = PrimExpr | int | float | bool | complex
_NUMBERS = (int, float, complex)

CONVERSIONS: dict[type, Callable[[Any], PrimExpr]] = {}
"""How values of further types stand in arithmetic (`weft.ir.te` adds dimensions)."""


def const(value: int | float | bool | complex, dtype: str) -> PrimExpr:
    """A constant of a scalar dtype (of a vector dtype: a broadcast); DTypeError W310 when an integer does not fit.

    >>> const(3, "int64").dtype
    'int64'
    """
    lanes = dtypes.lanes(dtype)
    if lanes > 1:
        return Broadcast(const(value, dtypes.element(dtype)), lanes)
    if dtypes.is_complex(dtype):
        part = dtypes.part(dtype)
        return PrimCall("complex", (const(value.real, part), const(value.imag, part)), dtype)
    if isinstance(value, complex):
        raise DTypeError(f"{value!r} is not a value of {dtype}", code="W310")
    if dtypes.is_float(dtype):
        try:
            return FloatImm(float(value), dtype)
        except (TypeError, ValueError, OverflowError):  # None, a text, an integer beyond floats
            raise DTypeError(f"{described(value)} is not a value of {dtype}", code="W310") from None
    if isinstance(value, float):
        if not value.is_integer():
            raise DTypeError(f"{value!r} is not a value of {dtype}", code="W310")
        value = int(value)
    if dtypes.is_bool(dtype):
        value = bool(value)
    if not dtypes.can_hold(dtype, int(value)):
        raise DTypeError(f"{value} does not fit in {dtype}", code="W310")
    return IntImm(int(value), dtype)


def as_expr(value: Scalar | Extent, dtype: str | None = None) -> PrimExpr:
    """An expression for a Python number (int32 or int64 by size, float32, bool) or the expression itself.

    >>> as_expr(2.5).dtype, as_expr(7).dtype, as_expr(True).dtype
    ('float32', 'int32', 'bool')
    """
    if isinstance(value, PrimExpr):
        return value
    if type(value) in CONVERSIONS:
        return CONVERSIONS[type(value)](value)
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, complex):
            dtype = "complex64"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
        else:
            dtype = "float32"
    return const(value, dtype)


def pair(a: Scalar, b: Scalar, what: str, span: Span | None = None) -> tuple[PrimExpr, PrimExpr]:
    """The two operands of `what` in their common dtype; DTypeError W311 when they have none."""
    if isinstance(a, _NUMBERS) and not isinstance(b, _NUMBERS):
        b = as_expr(b)
        a = _like(a, b.dtype)
    elif isinstance(b, _NUMBERS) and not isinstance(a, _NUMBERS):
        a = as_expr(a)
        b = _like(b, a.dtype)
    left, right = as_expr(a), as_expr(b)
    common = dtypes.promote(left.dtype, right.dtype)
    if common is None:
        raise DTypeError(
            f"{what} of {left.dtype} and {right.dtype}: no common dtype", code="W311", span=span, hint="cast one side"
        )
    return cast(common, left), cast(common, right)


def _like(value: int | float | bool | complex, dtype: str) -> PrimExpr:
    scalar = dtypes.element(dtype)
    if isinstance(value, complex):
        return const(value, scalar if dtypes.is_complex(scalar) else dtypes.with_parts("float32"))
    if dtypes.is_bool(scalar) and not isinstance(value, bool):
        return as_expr(value)
    if dtypes.is_complex(scalar):
        return const(value, scalar)
    if isinstance(value, float) and not dtypes.is_float(scalar):
        return as_expr(value)
    if not dtypes.is_float(scalar) and not dtypes.can_hold(scalar, int(value)):
        return as_expr(value)
    return const(value, scalar)


def cast(dtype: str, value: PrimExpr) -> PrimExpr:
    """The value converted to a dtype.

    Itself when it has it, a broadcast when only the lanes differ, a constant for an integer constant.
    """
    if value.dtype == dtype:
        return value
    lanes = dtypes.lanes(dtype)
    if lanes > 1 and dtypes.lanes(value.dtype) == 1:
        return Broadcast(cast(dtypes.element(dtype), value), lanes)
    if isinstance(value, IntImm) and dtypes.is_integer(dtype) and dtypes.can_hold(dtype, value.value):
        return replace(value, dtype=dtype)
    if dtypes.is_complex(value.dtype) and not dtypes.is_complex(dtype):
        hint = "T.real takes the real part, T.imag the imaginary one"
        raise DTypeError(f"a {value.dtype} is no {dtype}", code="W312", span=value.span, hint=hint)
    return Cast(dtype, value)


OF_COMPLEX = ("add", "sub", "mul", "div", "eq", "ne")
"""The binary operations that complex numbers have."""


def binary(kind: str, a: Scalar, b: Scalar, span: Span | None = None) -> PrimExpr:
    """A binary node of a kind in BINARY_KINDS; DTypeError W311 when the operands have no common dtype.

    `and` and `or` take bools; bit operations and shifts take integers; `div` of integers is refused (W312).
    """
    left, right = pair(a, b, kind, span)
    scalar = dtypes.element(left.dtype)
    if dtypes.is_complex(scalar) and kind not in OF_COMPLEX:
        hint = "compare parts (T.real, T.imag): complex numbers have no order, and are not rounded"
        raise DTypeError(f"{kind} of {left.dtype} values", code="W312", span=span, hint=hint)
    if kind in LOGICAL and not dtypes.is_bool(scalar):
        raise DTypeError(f"{kind} needs bool operands, got {left.dtype}", code="W313", span=span)
    if (kind.startswith("bitwise") or kind.startswith("shift")) and dtypes.is_float(scalar):
        raise DTypeError(f"{kind} needs integer operands, got {left.dtype}", code="W313", span=span)
    if kind == "div" and not (dtypes.is_float(scalar) or dtypes.is_complex(scalar)):
        raise DTypeError(
            f"/ of {left.dtype} values", code="W312", span=span, hint="use // (floor), T.truncdiv, or cast to a float"
        )
    return Binary(kind, left, right, span=span)


def never_defined(kind: str, a: PrimExpr, b: PrimExpr) -> str | None:
    """What is wrong with an integer operation that has no value whatever its left side is; None for all others.

    >>> never_defined("floordiv", const(1, "int32"), const(0, "int32"))
    'a division by zero'
    """
    if not isinstance(b, IntImm) or not dtypes.is_integer(dtypes.element(a.dtype)):
        return None
    if kind in ("floordiv", "floormod", "truncdiv", "truncmod") and b.value == 0:
        return "a division by zero"
    if kind in ("shift_left", "shift_right") and not 0 <= b.value < dtypes.bits(a.dtype):
        return f"a shift of {a.dtype} by {b.value}"
    return None


def unary(kind: str, a: Scalar, span: Span | None = None) -> PrimExpr:
    """neg, not or bitwise_not of an expression."""
    value = as_expr(a)
    scalar = dtypes.element(value.dtype)
    if kind == "not" and not dtypes.is_bool(scalar):
        raise DTypeError(f"not needs a bool operand, got {value.dtype}", code="W313", span=span)
    if kind == "bitwise_not" and (dtypes.is_float(scalar) or dtypes.is_complex(scalar)):
        raise DTypeError(f"~ needs an integer operand, got {value.dtype}", code="W313", span=span)
    return Unary(kind, value, span=span)


def intrinsic(name: str, *args: Scalar, span: Span | None = None) -> PrimExpr:
    """A call of an intrinsic of the table whose operands are promoted to one dtype.

    DTypeError W314 when it does not apply.
    """
    entry = INTRINSICS[name]
    operands = [as_expr(arg) for arg in args]
    if entry.promotes and len(args) == 2:
        operands = list(pair(args[0], args[1], name, span))
    dtype = result_dtype(entry, [operand.dtype for operand in operands], span)
    return PrimCall(name, tuple(operands), dtype, span=span)


def lane_count(value: object) -> int | None:
    """How many lanes an expression says: a constant, or a multiple of `T.vscale()` as a `Scalable`; None for others.

    >>> lane_count(4), lane_count(PrimCall("vscale", (), "int32") * 4)
    (4, Scalable(4))
    """
    if isinstance(value, int):
        return value
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, PrimCall) and value.op == "vscale":
        return dtypes.Scalable(1)
    if isinstance(value, Binary) and value.kind == "mul":
        a, b = lane_count(value.a), lane_count(value.b)
        both = isinstance(a, dtypes.Scalable) and isinstance(b, dtypes.Scalable)
        if a is None or b is None or both:
            return None
        return None if isinstance(a * b, dtypes.Scalable) and int(a * b) < 1 else a * b
    return None


def equal(a: Scalar, b: Scalar) -> PrimExpr:
    """a == b as an expression."""
    return binary("eq", a, b)


def buffer_strides(buffer: Buffer) -> tuple[Extent, ...]:
    """The strides of a buffer in elements, those of a compact row-major one when none are given.

    >>> buffer_strides(Buffer("x", (2, 3, 4)))
    (12, 4, 1)
    """
    if buffer.strides is not None:
        return buffer.strides
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(buffer.shape):
        strides.append(step)
        step = extent if isinstance(step, int) and step == 1 else step * extent
    return tuple(reversed(strides))


def extent_product(extents: Iterable[Extent]) -> Extent:
    """The product of extents, in which no 1 stands before a variable.

    >>> extent_product((2, 3)), extent_product(())
    (6, 1)
    """
    product: Extent = 1
    for extent in extents:
        product = extent if isinstance(product, int) and product == 1 else product * extent
    return product


def _install_operators() -> None:
    def operator(kind: str, reflected: bool = False) -> Any:
        def method(self: PrimExpr, other: Any) -> Any:
            if not isinstance(other, (PrimExpr, *_NUMBERS)) and type(other) not in CONVERSIONS:
                return NotImplemented
            return binary(kind, other, self) if reflected else binary(kind, self, other)

        return method

    names = {
        "add": "add",
        "sub": "sub",
        "mul": "mul",
        "truediv": "div",
        "floordiv": "floordiv",
        "mod": "floormod",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
        "lshift": "shift_left",
        "rshift": "shift_right",
    }
    for name, kind in names.items():
        setattr(PrimExpr, f"__{name}__", operator(kind))
        setattr(PrimExpr, f"__r{name}__", operator(kind, reflected=True))
    for kind in COMPARISONS[2:]:
        setattr(PrimExpr, f"__{kind}__", operator(kind))

    def truth(self: PrimExpr) -> bool:
        raise DTypeError(
            "an expression has no truth value while the program is built",
            code="W315",
            span=self.span,
            hint="use if_then_else, select, all or any, which decide when the program runs",
        )

    PrimExpr.__bool__ = truth  # type: ignore[attr-defined]
    PrimExpr.__neg__ = lambda self: unary("neg", self)  # type: ignore[attr-defined]
    PrimExpr.__invert__ = lambda self: unary("bitwise_not", self)  # type: ignore[attr-defined]


_install_operators()
