"""The C helper functions that generated code may need, emitted only when used.

Each gives an operation the meaning of the reference interpreter where C leaves it undefined: division by zero is 0,
over-wide shifts shift everything out, floats out of range saturate when they become integers, nan gives 0.
"""

from __future__ import annotations

from weft import dtypes

__all__ = ["c_type", "helper"]


def c_type(dtype: str) -> str:
    """The C99 type of a scalar; bool is one byte, a short float its bits."""
    return "void *" if dtype == "handle" else dtypes.SCALARS[dtype].c


_INTEGER = {
    "floordiv": """{{
  if (b == 0) return 0;
  {minus_one}
  {{ {type} q = ({type})(a / b); return ({type})(((a % b != 0) && ((a < 0) != (b < 0))) ? q - 1 : q); }}
}}""",
    "floormod": """{{
  if (b == 0) return 0;
  {minus_one_rest}
  {{ {type} r = ({type})(a % b); return ({type})((r != 0 && ((r < 0) != (b < 0))) ? r + b : r); }}
}}""",
    "truncdiv": """{{
  if (b == 0) return 0;
  {minus_one}
  return ({type})(a / b);
}}""",
    "truncmod": """{{
  if (b == 0) return 0;
  {minus_one_rest}
  return ({type})(a % b);
}}""",
    "min": "{{ return a < b ? a : b; }}",
    "max": "{{ return a > b ? a : b; }}",
    "shift_left": "{{ return ({type})((uint64_t)b < {bits}u ? (u{type_wide})((u{type_wide})a << b) : 0); }}",
    "shift_right": "{{ return ({type})((uint64_t)b < {bits}u ? a >> b : ({negative})); }}",
}
_UNSIGNED = {
    "floordiv": "{{ return ({type})(b ? a / b : 0); }}",
    "floormod": "{{ return ({type})(b ? a % b : 0); }}",
}
_FLOAT = {
    "min": "{{ if (a != a) return a; if (b != b) return b; return a < b ? a : b; }}",
    "max": "{{ if (a != a) return a; if (b != b) return b; return a > b ? a : b; }}",
    "floordiv": "{{ {type} r = fmod{f}(a, b), q; if (r != 0 && ((r < 0) != (b < 0))) r += b; "
    "q = (a - r) / b; return floor{f}(q + ({type})0.5); }}",
    "floormod": "{{ {type} r = fmod{f}(a, b); if (r != 0) {{ if ((r < 0) != (b < 0)) r += b; }} "
    "else r = copysign{f}(0, b); return r; }}",
    "truncdiv": "{{ return trunc{f}(a / b); }}",
    "truncmod": "{{ return fmod{f}(a, b); }}",
}


def helper(kind: str, dtype: str) -> tuple[str, str]:
    """(name, definition) of the helper for a binary kind on a dtype."""
    name = f"weft_{kind}_{dtype}"
    kind_type = c_type(dtype)
    if dtypes.is_float(dtype):
        body = _FLOAT[kind].format(type=kind_type, f="f" if dtype == "float32" else "")
    else:
        signed = dtypes.is_signed(dtype)
        template = _UNSIGNED.get(kind.replace("trunc", "floor")) if not signed else None
        wide = "int64_t" if dtypes.bits(dtype) == 64 else "int32_t"
        # The quotient of the least value and -1 does not fit: it wraps.
        least = f"if (b == -1) return ({kind_type})(0 - (u{wide})a);"
        body = (template or _INTEGER[kind]).format(
            type=kind_type,
            bits=dtypes.bits(dtype),
            type_wide=wide,
            minus_one=least if signed else "",
            minus_one_rest="if (b == -1) return 0;" if signed else "",
            negative="a < 0 ? -1 : 0" if signed else "0",
        )
    return name, f"static inline {kind_type} {name}({kind_type} a, {kind_type} b) {body}"


_EXACT = {
    "add": "b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b",
    "sub": "b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b",
    "mul": "a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a) : "
    "(b > 0 ? a < INT64_MIN / b : (a != 0 && b < INT64_MAX / a))",
}


def exact_helper(kind: str) -> tuple[str, str]:
    """(name, definition) of 64-bit arithmetic that says when its result does not fit."""
    name, operator = f"weft_exact_{kind}", {"add": "+", "sub": "-", "mul": "*"}[kind]
    body = f"{{ if ({_EXACT[kind]}) {{ *exact = 0; return 0; }} return a {operator} b; }}"
    return name, f"static inline int64_t {name}(int64_t a, int64_t b, int *exact) {body}"


def cast_helper(source: str, target: str) -> tuple[str, str]:
    """(name, definition) of the conversion of a float to an integer: truncates, saturates, nan gives 0."""
    name = f"weft_{target}_from_{source}"
    low, high = int(dtypes.min_value(target)), int(dtypes.max_value(target))
    kind, argument = c_type(target), c_type(source)
    suffix = "f" if source == "float32" else ""
    unsigned = "u" if low == 0 else ""
    low_text = f"({kind})(-{-low - 1} - 1)" if low > -(2**63) else "INT64_MIN"
    low_text = "0" if low == 0 else low_text
    body = (
        f"{{ if (a != a) return 0; if (a <= {float(low)!r}{suffix}) return {low_text}; "
        f"if (a >= {float(high)!r}{suffix}) return {high}{unsigned}{'ll' if high > 2**31 else ''}; return ({kind})a; }}"
    )
    return name, f"static inline {kind} {name}({argument} a) {body}"


MATH = {
    "rsqrt": "{{ return 1 / sqrt{f}(a); }}",
    "sigmoid": "{{ {type} e = exp{f}(-fabs{f}(a)); return a >= 0 ? 1 / (1 + e) : e / (1 + e); }}",
    "exp10": "{{ return pow{f}(10, a); }}",
}


def bits_helper(source: str, target: str) -> tuple[str, str]:
    """The name and text of the function that reads the bits of one type as another of the same size."""
    name = f"weft_{target}_bits_of_{source}"
    both = f"union {{ {c_type(source)} from; {c_type(target)} to; }} both"
    text = f"static inline {c_type(target)} {name}({c_type(source)} a) {{ {both}; both.from = a; return both.to; }}"
    return name, text


def math_helper(name: str, dtype: str) -> tuple[str, str]:
    """(name, definition) of a mathematical function that C lacks."""
    kind, full = c_type(dtype), f"weft_{name}_{dtype}"
    body = MATH[name].format(type=kind, f="f" if dtype == "float32" else "")
    return full, f"static inline {kind} {full}({kind} a) {body}"
