"""C functions and LLVM intrinsics that programs may call: which there are, and with which types.

    extern ::= name(dtype, ...) -> dtype        a pointer is a "handle", no result is "void"

The mathematics of C99 is declared here; a plug-in declares its own (`declare_extern`), and a kind of target those of
the programs it takes part in (`TargetKind.extern`). What nobody declared is reached only when the caller names it:
`weft.compile(..., externs=("name",))`. A text declares nothing.

Errors: TargetError W763 for a declaration without a C name, or another one of the same name.
"""

# What callers give is checked as they run, too.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import re

from weft import dtypes
from weft.errors import TargetError
from weft.support.records import record

__all__ = ["Extern", "declare_extern", "find_extern", "is_math_intrinsic", "made_extern", "remove_extern"]


@record
class Extern:
    """A C function: its name, the dtype of its result, the dtypes of its parameters."""

    name: str
    result: str
    params: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.params)}) -> {self.result}"


_UNARY = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor log log10 log1p log2"
    " nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_BINARY = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_MATH = {
    made.name: made
    for arity, names in ((1, _UNARY), (2, _BINARY), (3, "fma"))
    for name in names.split()
    for made in (Extern(name, "float64", ("float64",) * arity), Extern(f"{name}f", "float32", ("float32",) * arity))
}
_declared: dict[str, Extern] = {}
_MATH_INTRINSIC = re.compile(
    r"llvm\.(sqrt|sin|cos|tan|exp|exp2|exp10|log|log2|log10|pow|powi|fma|fmuladd|fabs|floor|ceil|trunc|rint|nearbyint"
    r"|round|roundeven|copysign|minnum|maxnum|minimum|maximum|smin|smax|umin|umax|abs|ctpop|ctlz|cttz|bswap|bitreverse"
    r"|fshl|fshr|sadd\.sat|uadd\.sat|ssub\.sat|usub\.sat|vector\.reduce\.(add|mul|and|or|xor|smin|smax|umin|umax"
    r"|fadd|fmul|fmin|fmax|fminimum|fmaximum)|donothing)(\.(v\d+)?(i\d+|f16|bf16|f32|f64))*"
)


def made_extern(name: str, result: str, params: tuple[str, ...]) -> Extern:
    """A checked declaration; TargetError W763 when the name is none of C's, DTypeError for a name that is no dtype."""
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise TargetError(f"an extern has a C name, got {name!r}", code="W763")
    for dtype in (*params, *(() if result == "void" else (result,))):
        if dtype != "handle":
            dtypes.check_dtype(dtype)
    return Extern(name, result, tuple(params))


def declare_extern(name: str, result: str, *params: str) -> Extern:
    """Let programs call a C function of this process under its name, with these dtypes and no others.

    A parameter is the dtype of a scalar, or "handle" for the address of an array's element; `result` may be "void".
    Raises: TargetError W763 for a name that is declared with other types, or is none of C's.

    >>> str(declare_extern("docs_scale", "int32", "handle", "float32"))
    'docs_scale(handle, float32) -> int32'
    >>> remove_extern("docs_scale")
    """
    made = made_extern(name, result, params)
    if find_extern(name) not in (None, made):
        raise TargetError(f"the extern {name!r} is declared already: {find_extern(name)}", code="W763")
    _declared[name] = made
    return made


def remove_extern(name: str) -> None:
    """Forget a declared C function, as a plug-in does that is unloaded; nothing happens when there is none."""
    _declared.pop(name, None)


def find_extern(name: str) -> Extern | None:
    """The declaration of a name, of the mathematics or by `declare_extern`.

    >>> str(find_extern("fabsf")), find_extern("system")
    ('fabsf(float32) -> float32', None)
    """
    return _MATH.get(name) or _declared.get(name)


def is_math_intrinsic(name: str) -> bool:
    """Whether an LLVM intrinsic computes a number from numbers and does nothing else.

    >>> is_math_intrinsic("llvm.sqrt"), is_math_intrinsic("llvm.fma.v4f32"), is_math_intrinsic("llvm.trap")
    (True, True, False)
    """
    return _MATH_INTRINSIC.fullmatch(name) is not None
