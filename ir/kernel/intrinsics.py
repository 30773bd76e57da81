"""The table of tensor-level intrinsics: name, arity, dtype rule and meaning in NumPy.

    rule ::= "float"   floating operands, same result
           | "same"    any numeric operands, same result
           | "integer" integer operands, same result
           | "bool"    any numeric operand, bool result
           | "third"   (condition, a, b): the dtype of a
           | "complex" complex operands, their dtype
           | "part"    complex operands, the dtype of their parts
           | "parts"   floating operands, the complex dtype of which they are the parts
           | "given"   the call states its dtype

    operands ::= (kind "?"?)* "*"?        what calls of "given" intrinsics take, where anybody has a meaning for them
    kind     ::= "i" integer | "b" truth value | "x" any scalar or vector | "v" vector | "p" pointer | "e" element of a
                 buffer | "s" text;  "?" may be left out, "*" anything may follow

A row is all that an intrinsic needs: it reads and prints as `T.name`, the interpreter computes `numpy`, back ends call
the function `c` of C's library or `llvm` of LLVM's intrinsics, or have code of their own. A row of a plug-in has a
`formula` instead: the same in other scalar expressions, which take its place before code is made
(`weft.transform.kernel.expand_intrinsics`), so that every back end has it.

An intrinsic that is not in the table may still occur in a module (device-specific ones): it reads, prints and survives
passes as an opaque, impure call; interpreting or compiling it for a target that lacks it is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import DTypeError, Span
from weft.support.records import record

__all__ = [
    "INTRINSICS",
    "RULES",
    "WITHIN_MEMORY",
    "WRITES_FIRST",
    "InOwnType",
    "Intrinsic",
    "next_after",
    "of_parts",
    "register_intrinsic",
    "remove_intrinsic",
    "result_dtype",
]


@record
class Intrinsic:
    """One row: `arity` -1 means any number of arguments; `numpy` takes and gives arrays or NumPy scalars.

    `c` and `llvm` name the function of C's mathematical library (for float64) and the overloaded intrinsic of LLVM;
    `formula` takes the operands as expressions and gives an expression of the result's dtype.
    """

    name: str
    arity: int
    rule: str
    numpy: Callable[..., Any] | None = None
    pure: bool = True
    promotes: bool = False
    doc: str = ""
    operands: str = ""
    c: str = ""
    llvm: str = ""
    formula: Callable[..., Any] | None = None


@record
class InOwnType:
    """A function of arrays that looks at their bits: it gets types that NumPy lacks as those of `ml_dtypes`, not as
    float32."""

    function: Callable[..., Any]

    def __call__(self, *values: Any) -> Any:
        """What the function gives."""
        return self.function(*values)


next_after = InOwnType(np.nextafter)
INTRINSICS: dict[str, Intrinsic] = {}
RULES = ("float", "same", "integer", "bool", "third", "complex", "part", "parts", "given")


def register_intrinsic(entry: Intrinsic) -> Intrinsic:
    """Add a row to the table (a plug-in may add its own).

    Raises: DTypeError W316 for a name that is taken or no name, and for another rule.
    """
    if not entry.name.isidentifier() or entry.rule not in RULES:
        message = f"an intrinsic has a name and one of the rules {', '.join(RULES)}, got {entry.name!r}, {entry.rule!r}"
        raise DTypeError(message, code="W316")
    if INTRINSICS.setdefault(entry.name, entry) is not entry:
        raise DTypeError(f"there is an intrinsic T.{entry.name} already", code="W316")
    return entry


def remove_intrinsic(name: str) -> None:
    """Take a row of a plug-in out of the table."""
    if name not in _BUILT_IN:
        INTRINSICS.pop(name, None)


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
    if entry.rule in ("complex", "part", "parts"):
        return _of_complex(entry, first, span)
    if dtypes.is_complex(scalar):
        hint = "T.real and T.imag take the parts, T.complex joins them"
        raise DTypeError(f"T.{entry.name} takes no complex operands", code="W314", span=span, hint=hint)
    wrong = (entry.rule == "float" and not dtypes.is_float(scalar)) or (
        entry.rule == "integer" and not (dtypes.is_integer(scalar) or dtypes.is_bool(scalar))
    )
    if wrong:
        raise DTypeError(
            f"T.{entry.name} takes {entry.rule} operands, got {first}", code="W314", span=span, hint="cast it first"
        )
    return dtypes.with_lanes("bool", dtypes.lanes(first)) if entry.rule == "bool" else first


def _of_complex(entry: Intrinsic, first: str, span: Span | None) -> str:
    """The dtype of a complex operand, of a part of one, or of what two parts make."""
    if entry.rule != "parts":
        if not dtypes.is_complex(dtypes.element(first)):
            raise DTypeError(f"T.{entry.name} takes complex operands, got {first}", code="W314", span=span)
        return first if entry.rule == "complex" else dtypes.part(first)
    if dtypes.element(first) not in ("float32", "float64"):
        message = f"T.{entry.name} takes float32 or float64 operands, got {first}"
        raise DTypeError(message, code="W314", span=span, hint="cast them first")
    return dtypes.with_lanes(dtypes.with_parts(dtypes.element(first)), dtypes.lanes(first))


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


def _same(value: Any) -> Any:
    return value


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


def of_parts(real: Any, imaginary: Any) -> Any:
    """Complex numbers of their parts, of one shape."""
    kind = dtypes.with_parts(np.asarray(real).dtype.name)
    found = np.empty(np.shape(real), kind)
    found.real, found.imag = real, imaginary
    return found[()]


def _exp10(x: Any) -> Any:
    return np.power(np.asarray(10, np.asarray(x).dtype), x)


# ---------------------------------------------------------------------------------------------------------------------
# The table: one row for each intrinsic that computes, one line for those that only have a name
# ---------------------------------------------------------------------------------------------------------------------


def _function(
    name: str,
    numpy: Callable[..., Any],
    doc: str,
    arity: int = 1,
    rule: str = "float",
    c: str | None = None,
    **options: Any,
) -> None:
    """A function of numbers; C's library has it by its own name unless `c` is another one, or empty."""
    register_intrinsic(Intrinsic(name, arity, rule, numpy, doc=doc, c=name if c is None else c, **options))


_function("exp", np.exp, "e to the power of a", llvm="exp")
_function("exp2", np.exp2, "2 to the power of a", llvm="exp2")
_function("exp10", _exp10, "10 to the power of a", c="")
_function("log", np.log, "the natural logarithm", llvm="log")
_function("log2", np.log2, "the logarithm to the base 2", llvm="log2")
_function("log10", np.log10, "the logarithm to the base 10", llvm="log10")
_function("log1p", np.log1p, "the natural logarithm of 1 + a, exact for small a")
_function("sqrt", np.sqrt, "the square root", llvm="sqrt")
_function("rsqrt", _rsqrt, "one over the square root", c="")
_function("sigmoid", _sigmoid, "1 / (1 + exp(-a)), without overflow", c="")
_function("erf", _erf, "the error function")
_function("sin", np.sin, "the sine", llvm="sin")
_function("cos", np.cos, "the cosine", llvm="cos")
_function("tan", np.tan, "the tangent")
_function("sinh", np.sinh, "the hyperbolic sine")
_function("cosh", np.cosh, "the hyperbolic cosine")
_function("tanh", np.tanh, "the hyperbolic tangent")
_function("asin", np.arcsin, "the inverse sine")
_function("acos", np.arccos, "the inverse cosine")
_function("atan", np.arctan, "the inverse tangent")
_function("asinh", np.arcsinh, "the inverse hyperbolic sine")
_function("acosh", np.arccosh, "the inverse hyperbolic cosine")
_function("atanh", np.arctanh, "the inverse hyperbolic tangent")
_function("floor", np.floor, "the greatest whole number not above a", llvm="floor")
_function("ceil", np.ceil, "the least whole number not below a", llvm="ceil")
_function("trunc", np.trunc, "a without its fraction", llvm="trunc")
_function("round", _round, "the nearest whole number, of two the even one", llvm="nearbyint", c="nearbyint")
_function("nearbyint", _round, "the nearest whole number, of two the even one", llvm="nearbyint")
_function("fabs", np.fabs, "the absolute value", llvm="fabs")
_function("abs", np.abs, "the absolute value", rule="same", c="")
_function("isnan", np.isnan, "whether a is not a number", rule="bool", c="")
_function("isinf", np.isinf, "whether a is an infinity", rule="bool", c="")
_function("isfinite", np.isfinite, "whether a is neither infinite nor nan", rule="bool", c="")
_function("atan2", np.arctan2, "the angle of the point (b, a)", 2, promotes=True)
_function("copysign", np.copysign, "a with the sign of b", 2, llvm="copysign", promotes=True)
_function("hypot", np.hypot, "the length of the vector (a, b)", 2, promotes=True)
_function("nextafter", next_after, "the number after a in the direction of b", 2, promotes=True)
_function("fmod", np.fmod, "what is left of a / b truncated, with the sign of a", 2, promotes=True)
_function("pow", _power, "a to the power of b", 2, "same", promotes=True)
_function("ldexp", _ldexp, "a times 2 to the power of b", 2, c="")
_function("fma", _fma, "a * b + c, rounded once", 3, llvm="fma")
_function(
    "dot_product",
    _dot_product,
    "each sum in a with the products of its group of elements of b and c added",
    3,
    "same",
    c="",
)
_function("popcount", _popcount, "how many bits are set", rule="integer", c="")
_function("clz", _clz, "how many bits are clear before the highest that is set", rule="integer", c="")
_function("likely", _same, "a, which is expected to hold", rule="bool", c="")


_function("complex", of_parts, "the number of the real part a and the imaginary part b", 2, "parts", "", promotes=True)
_function("real", np.real, "the real part", rule="part", c="")
_function("imag", np.imag, "the imaginary part", rule="part", c="")
_function("conj", np.conj, "the number of the other sign of the imaginary part", rule="complex", c="")


def _names(names: str, arity: int, rule: str = "given", **options: Any) -> None:
    """Intrinsics that back ends and the interpreter know by their names."""
    for name in names.split():
        register_intrinsic(Intrinsic(name, arity, rule, **options))


_names("if_then_else", 3, "third", doc="lazy: only the chosen value is evaluated")
_names("reinterpret", 1, operands="x")
_names("q_multiply_shift", 4, operands="iiii")
_names("undef", 0)
_names("call_extern call_packed call_cpacked tvm_call_packed", -1, pure=False, operands="s*")
_names("print_buffer", -1, pure=False)
_names(
    "start_profile_intrinsic",
    -1,
    pure=False,
    operands="is?",
    doc="a loop begins: its number, and what a profile of the call names it",
)
_names("end_profile_intrinsic", 1, pure=False, operands="i", doc="the loop of a number is over")
_names("call_pure_extern", -1, operands="s*")
_names("call_llvm_intrin call_llvm_pure_intrin", -1)
_names("address_of", -1, operands="e")
_names("access_ptr", -1, operands="p*")
_names("handle_add_byte_offset", 2, operands="pi")
_names("vectorlow vectorhigh", -1, operands="s?v")
_names("vectorcombine", -1, operands="s?vv")
_names("get_active_lane_mask", -1, operands="s?ii")
_names("vscale masked_load", -1)
_names("masked_store", -1, pure=False)
_names("assume", 1, pure=False, operands="b")
_names(
    "has_intrinsic",
    2,
    operands="ss",
    doc="whether code for the target has an intrinsic that few machines have, over a dtype; known when it is compiled",
)
_names("sort_keys", 3, pure=False, operands="ppi", doc="sort so many unsigned keys, with as much memory to spare")
_names(
    "select_key",
    4,
    pure=False,
    operands="ppii",
    doc="as sort_keys, but only the key of one rank is put in its place: lesser ones before, greater ones after it",
)
_names(
    "sort_pairs",
    5,
    pure=False,
    operands="ppppi",
    doc="as sort_keys, of keys with positions beside them: (keys, positions, memory to spare for both, how many)",
)
_names("select_pair", 6, pure=False, operands="ppppii", doc="as select_key, of keys with positions beside them")
_names(
    "sort_values",
    4,
    pure=False,
    operands="ppib",
    doc="elements of one memory in ascending or (true) descending order to another: (to, from, how many, descending); "
    "equal ones in the order in which they came, nan as the greatest",
)
_names(
    "keep_keys",
    7,
    pure=False,
    operands="pppixxb",
    doc="the keys, as sort_keys takes them, of those elements whose keys lie from one to another: (to, counts, from, "
    "how many, the one, the other, descending); counts (uint64) are how many keys lie before, how many there are, and "
    "the greatest of all; -0.0 and 0.0 have one key, and all nan have the greatest (descending: the least)",
)
_names(
    "keep_positions",
    5,
    pure=False,
    operands="pppii",
    doc="the positions (int64) of those elements that are not zero: (to, counts, from, how many, room); counts (int64) "
    "are how many there are, of which those are written that there is room for; what is left of the room is anything",
)
_names(
    "sort_positions",
    4,
    pure=False,
    operands="ppib",
    doc="the positions (int32) that sort elements, as sort_values does, where that takes no sort: (to, from, how many, "
    "descending); of elements that are not nearly in order nor of few kinds the first position is -1",
)
WITHIN_MEMORY = frozenset(
    (
        "sort_keys",
        "select_key",
        "sort_pairs",
        "select_pair",
        "keep_keys",
        "keep_positions",
        "sort_values",
        "sort_positions",
    )
)
"""Intrinsics that touch no memory but what their pointers lead to: a thread may do them on memory of its own."""
WRITES_FIRST = frozenset(("keep_keys", "keep_positions", "sort_values", "sort_positions"))
"""Those that read nothing but what the last of their pointers leads to, and write what the others lead to."""
_names("isnullptr", 1, doc="whether a pointer points to nothing", operands="p")
_names("call_cpacked_lowered call_packed_lowered call_kernel", -1, pure=False)
_names("TVMBackendAllocWorkspace TVMBackendFreeWorkspace", -1, pure=False)
_names("dp4a q_multiply_shift_per_axis llvm_lookup_intrinsic_id lookup_param ignore_loop_partition", -1)
_names("ptr_byte_offset", -1)
_BUILT_IN = frozenset(INTRINSICS)
