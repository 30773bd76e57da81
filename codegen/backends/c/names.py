"""Names in C: those that C and the headers of a program have taken, and names for what weft emits.

A name is reserved as C99 says it (6.4.1 keywords, 7.1.3 names of the implementation) and C23 or compilers beyond it, by
the headers that emitted code includes (<math.h>, <stdint.h>, <string.h>: 7.12, 7.18, 7.21), or as a function that
compilers know without a header.
"""

from __future__ import annotations

import re

__all__ = ["c_name", "identifier", "is_word"]

_KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    "alignas alignof asm bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual".split()
)
_WORDS = re.compile(
    r"__\w*|_[A-Z]\w*"  # names of the implementation
    r"|\w+_t"  # types
    r"|NULL|NAN|INFINITY|HUGE_VAL[FL]?|MATH_\w+|math_errhandling|FP_\w+|M_\w+|X_TLOSS"
    r"|(SIZE|U?INTPTR|U?INTMAX|PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX|WIDTH|C)"
    r"|U?INT(_LEAST|_FAST)?\d+_(MIN|MAX|WIDTH|C)"
)
"""What means something else wherever it stands: macros, types, words of the compiler."""
_MATH = (
    "acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 exp10 expm1 frexp ilogb ldexp log "
    "log10 log1p log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma gamma ceil floor "
    "nearbyint rint lrint llrint round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward "
    "fdim fmax fmin fma"
).split()
_OTHERS = "main y0 y1 yn j0 j1 jn index div abs memchr memcmp memcpy memmove memset strlen strcmp strcpy strcat".split()
_FUNCTIONS = frozenset([*_OTHERS, *(name + kind for name in _MATH for kind in ("", "f", "l"))])
_SUFFIX = re.compile(r"(_\d+)+$")


def c_name(name: str) -> str:
    """The name with what C cannot have in names replaced by `_`."""
    return "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in name)


def is_word(name: str) -> bool:
    """Whether a name means something else wherever it stands, also as the member of a structure.

    >>> [is_word(name) for name in ("int", "INT64_MIN", "__attribute__", "expf", "x")]
    [True, True, True, False, False]
    """
    return name in _KEYWORDS or _WORDS.fullmatch(name) is not None


def identifier(name: str, taken: set[str]) -> str:
    """A C name without the suffixes by which texts keep names apart: a module and its text give the same C.

    >>> taken = set()
    >>> [identifier(name, taken) for name in ("x", "x_1", "expf", "1é")]
    ['x', 'x_1', 'v_expf', 'v_1_']
    """
    base = c_name(_SUFFIX.sub("", name) or name)
    if not base or base[0].isdigit() or base in _FUNCTIONS or is_word(base):
        base = f"v_{base}"
    count, candidate = 0, base
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    taken.add(candidate)
    return candidate
