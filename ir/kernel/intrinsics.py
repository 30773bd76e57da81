"""The table of tensor-level intrinsics: name, arity, dtype rule and meaning in NumPy.

    rule ::= "float"   floating operands, same result
           | "same"    any numeric operands, same result
           | "integer" integer operands, same result
           | "bool"    any numeric operand, bool result
           | "third"   (condition, a, b): the dtype of a
           | "given"   the call states its dtype

    operands ::= (kind "?"?)* "*"?        what calls of "given" intrinsics take, where anybody has a meaning for them
    kind     ::= "i" integer | "b" truth value | "x" any scalar or vector | "v" vector | "p" pointer | "e" element of a
                 buffer | "s" text;  "?" may be left out, "*" anything may follow

An intrinsic that is not in the table may still occur in a module (device-specific ones): it reads, prints and survives
passes as an opaque, impure call; interpreting or compiling it for a target that lacks it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import DTypeError, Span

__all__ = ["INTRINSICS", "InOwnType", "Intrinsic", "next_after", "register_intrinsic", "result_dtype"]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One row: `arity` -1 means any number of arguments; `numpy` takes and gives arrays or NumPy scalars."""

    name: str
    arity: int
    rule: str
    numpy: Callable[..., Any] | None = None
    pure: bool = True
    promotes: bool = False
    doc: str = ""
    operands: str = ""


@dataclass(frozen=True, slots=True)
class InOwnType:
    """A function of arrays that looks at their bits: it gets types that NumPy lacks as those of `ml_dtypes`, not as
    float32."""

    function: Callable[..., Any]

    def __call__(self, *values: Any) -> Any:
        """What the function gives."""
        return self.function(*values)


next_after = InOwnType(np.nextafter)
INTRINSICS: dict[str, Intrinsic] = {}


def register_intrinsic(entry: Intrinsic) -> Intrinsic:
    """Add a row to the table (a plug-in may add its own)."""
    INTRINSICS[entry.name] = entry
    return entry


def result_dtype(entry: Intrinsic, operands: Sequence[str], span: Span | None = None) -> str:
    """The dtype of a call; DTypeError W314 when the operands do not fit the rule."""
    if entry.arity >= 0 and len(operands) != entry.arity:
        raise DTypeError(f"T.{entry.name} takes {entry.arity} operands, got {len(operands)}", code="W314", span=span)
    if entry.rule == "third":
        return operands[1]
    if entry.rule == "given":
        return "void"
    first = operands[0]
    scalar = dtypes.element(first)
    wrong = (entry.rule == "float" and not dtypes.is_float(scalar)) or (
        entry.rule == "integer" and not (dtypes.is_integer(scalar) or dtypes.is_bool(scalar))
    )
    if wrong:
        raise DTypeError(
            f"T.{entry.name} takes {entry.rule} operands, got {first}", code="W314", span=span, hint="cast it first"
        )
    return dtypes.with_lanes("bool", dtypes.lanes(first)) if entry.rule == "bool" else first


def _erf(x: Any) -> Any:
    """Error function; NumPy has none, so the standard library's is applied elementwise (double precision)."""
    result = np.vectorize(math.erf, otypes=[np.float64])(x) if np.size(x) else np.asarray(x, np.float64)
    return np.asarray(result).astype(np.asarray(x).dtype)


def _wide(x: Any) -> np.ndarray:
    """Values for a formula of several steps, whose result is rounded once: float16 as float32."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _rsqrt(x: Any) -> Any:
    return (1 / np.sqrt(_wide(x))).astype(np.asarray(x).dtype)


def _sigmoid(x: Any) -> Any:
    # Two branches so that exp never overflows.
    wide = _wide(x)
    e = np.exp(-np.abs(wide))
    return np.where(wide >= 0, 1 / (1 + e), e / (1 + e)).astype(np.asarray(x).dtype)


def _fma(a: Any, b: Any, c: Any) -> Any:
    # One rounding: the product is exact in the wider type (to the precision of long double for float64).
    dtype = np.asarray(a).dtype
    wide = np.longdouble if dtype == np.float64 else np.float64
    return (np.asarray(a, wide) * np.asarray(b, wide) + np.asarray(c, wide)).astype(dtype)


def _round(x: Any) -> Any:
    # Half to even, as IEEE rounding and the field do.
    return np.rint(x)


def _power(a: Any, b: Any) -> Any:
    """a ** b; an integer to a negative power is truncated to an integer: 0 unless a is 1 or -1."""
    base, exponent = np.asarray(a), np.asarray(b)
    if base.dtype.kind != "i" or not np.any(exponent < 0):
        return np.power(a, b)
    inverse = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, inverse, np.power(base, np.maximum(exponent, 0))).astype(base.dtype)


def _ldexp(x: Any, exponent: Any) -> Any:
    # Far beyond every exponent range, so that a saturated exponent is still a 32-bit integer.
    wide = np.nan_to_num(np.asarray(exponent, np.float64), nan=0)
    return np.ldexp(x, np.clip(wide, -100_000, 100_000).astype(np.int32))


def _popcount(x: Any) -> Any:
    # The bits of the two's complement; np.bitwise_count takes the absolute value.
    array = np.asarray(x)
    return np.bitwise_count(array.view(f"uint{array.dtype.itemsize * 8}")).astype(array.dtype)


def _clz(x: Any) -> Any:
    array = np.asarray(x)
    width = array.dtype.itemsize * 8
    unsigned = array.view(f"uint{width}")
    out = np.full(array.shape, width, np.int64)
    for bit in range(width):
        out = np.where(
            (unsigned >> np.asarray(bit, unsigned.dtype)) & np.asarray(1, unsigned.dtype), width - 1 - bit, out
        )
    return out.astype(array.dtype)


def _dot_product(total: Any, a: Any, b: Any) -> Any:
    """Each lane of the sums with the products of its group of lanes of both operands added, one after another."""
    kind = np.asarray(total).dtype
    group = np.size(a) // np.size(total)
    with np.errstate(over="ignore"):
        products = (np.asarray(a).astype(kind) * np.asarray(b).astype(kind)).reshape(-1, group)
        sums = np.reshape(total, -1)
        for term in range(group):
            sums = sums + products[:, term]
    return sums if np.ndim(total) else sums[0]


def _fill() -> None:
    def add(
        names: str, arity: int, rule: str, functions: dict[str, Callable[..., Any]] | None = None, **options: Any
    ) -> None:
        for name in names.split():
            function = (functions or {}).get(name) or getattr(np, name, None)
            register_intrinsic(Intrinsic(name, arity, rule, function, **options))

    add("exp exp2 sqrt sin cos tan sinh cosh log log2 log10 log1p", 1, "float")
    add(
        "acos acosh asin asinh atan atanh tanh",
        1,
        "float",
        {
            "acos": np.arccos,
            "acosh": np.arccosh,
            "asin": np.arcsin,
            "asinh": np.arcsinh,
            "atan": np.arctan,
            "atanh": np.arctanh,
        },
    )
    add(
        "exp10 erf rsqrt sigmoid round nearbyint",
        1,
        "float",
        {
            "exp10": lambda x: np.power(np.asarray(10, np.asarray(x).dtype), x),
            "erf": _erf,
            "rsqrt": _rsqrt,
            "sigmoid": _sigmoid,
            "round": _round,
            "nearbyint": _round,
        },
    )
    add("floor ceil trunc fabs", 1, "float")
    add("abs", 1, "same")
    add("isnan isinf isfinite", 1, "bool")
    add("atan2 copysign hypot nextafter fmod", 2, "float", {"atan2": np.arctan2, "nextafter": next_after},
        promotes=True)
    add("pow", 2, "same", {"pow": _power}, promotes=True)
    add("ldexp", 2, "float", {"ldexp": _ldexp})
    add("fma", 3, "float", {"fma": _fma})
    add(
        "dot_product", 3, "same", {"dot_product": _dot_product},
        doc="(sums, a, b): each sum with the products of its group of elements of a and b added",
    )  # fmt: skip
    add("popcount clz", 1, "integer", {"popcount": _popcount, "clz": _clz})
    add("if_then_else", 3, "third", doc="lazy: only the chosen value is evaluated")
    add("likely", 1, "bool", {"likely": lambda x: x})
    add("reinterpret", 1, "given", operands="x")
    add("q_multiply_shift", 4, "given", operands="iiii")
    add("undef", 0, "given")
    add("call_extern call_packed call_cpacked tvm_call_packed", -1, "given", pure=False, operands="s*")
    add("print_buffer", -1, "given", pure=False)
    add("call_pure_extern", -1, "given", operands="s*")
    add("call_llvm_intrin call_llvm_pure_intrin", -1, "given")
    add("address_of", -1, "given", operands="e")
    add("access_ptr", -1, "given", operands="p*")
    add("handle_add_byte_offset", 2, "given", operands="pi")
    add("vectorlow vectorhigh", -1, "given", operands="s?v")
    add("vectorcombine", -1, "given", operands="s?vv")
    add("get_active_lane_mask", -1, "given", operands="s?ii")
    add("vscale masked_load masked_store", -1, "given")
    add("assume", 1, "given", pure=False, operands="b")
    add("isnullptr", 1, "given", doc="whether a pointer points to nothing", operands="p")
    add("call_cpacked_lowered call_packed_lowered call_kernel", -1, "given", pure=False)
    add("TVMBackendAllocWorkspace TVMBackendFreeWorkspace", -1, "given", pure=False)
    add("dp4a q_multiply_shift_per_axis llvm_lookup_intrinsic_id lookup_param ignore_loop_partition", -1, "given")
    add("ptr_byte_offset", -1, "given")


_fill()
