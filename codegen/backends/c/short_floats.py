"""Floats of 16 bits and less in C99, which has none: values are their bits, computed in float and rounded once.

    weft_float32_from_<short>(bits)            exact
    weft_<short>_from_<float32|float64>(x)     to nearest even, as IEEE says; nan stays nan
    weft_marked_<int64|uint64>(x)              an integer that double holds and that rounds to the same short float

The bits are those of NumPy and `ml_dtypes`.
"""

from __future__ import annotations

from weft import dtypes

__all__ = ["SHORT_FLOATS", "marking", "narrowing", "widening"]


SHORT_FLOATS = frozenset(name for name, row in dtypes.SCALARS.items() if row.layout and row.bits <= 16)

_WIDEN = {
    "bfloat16": "uint32_t bits = (uint32_t)h << 16;",
    "float16": """const uint32_t e = h >> 10 & 31u, m = h & 1023u, sign = (uint32_t)(h >> 15) << 31;
  uint32_t bits = sign | (e == 31u ? 0x7f800000u | m << 13 : (e + 112u) << 23 | m << 13);
  if (e == 0) { const float tiny = (float)m * 5.9604644775390625e-08f; memcpy(&bits, &tiny, 4); bits |= sign; }""",
    "float8_e8m0fnu": "uint32_t bits = h == 0 ? 0x400000u : h == 255u ? 0x7fc00000u : (uint32_t)h << 23;",
}
_WIDEN_ANY = """const uint32_t m = h & {size}u;
  uint32_t bits = (m << {drop}) + {offset}u;
  if (m < {normal}u) {{ const float tiny = (float)m * {last_place}; memcpy(&bits, &tiny, 4); }}
  {special}bits |= (uint32_t)(h & {sign}u) << {to_top};"""
_SPECIAL = {
    "ieee": "if (m >= {infinity}u) bits = 0x7f800000u | (m > {infinity}u ? 0x400000u : 0);\n  ",
    "fn": "if (m == {nan}u) bits = 0x7fc00000u;\n  ",
    "fnuz": "if (h == {nan}u) bits = 0x7fc00000u;\n  ",
    "none": "",
}
_NARROW = """static inline {type} {name}({kind} a) {{
  uint{bits}_t b, m, kept, rest, half;
  uint32_t sign, e, low, drop, found;
  memcpy(&b, &a, sizeof b);
  sign = (uint32_t)(b >> {last}) << {top};
  e = (uint32_t)(b >> {mantissa}) & {exponents}u;
  m = b & (((uint{bits}_t)1 << {mantissa}) - 1);
  if (e == {exponents}u) return ({type})(m ? {nan} : {infinite});
  if (e) m |= (uint{bits}_t)1 << {mantissa}; else e = 1;
  low = e < {least}u ? {least}u : e;
  drop = {dropped}u + (low - e);
  if (drop > {mantissa}u + 1) return ({type})({zero});
  kept = m >> drop; rest = m & (((uint{bits}_t)1 << drop) - 1); half = (uint{bits}_t)1 << (drop - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  found = ((low - {least}u) << {short}) + (uint32_t)kept;
  if (found > {beyond}u) found = {beyond}u;
  return ({type})({result});
}}"""
_EXPONENT = """static inline uint8_t {name}({kind} x) {{
  const double a = x;
  uint64_t b;
  int32_t e;
  memcpy(&b, &a, sizeof b);
  if (a == 0 || b >> 63) return 255;
  if (a <= 0x1p-127) return 0;
  e = (int32_t)((b + 0x8000000000000u) >> 52) - 896;
  return (uint8_t)(e < 1 ? 1 : e > 255 ? 255 : e);
}}"""
_MARK = """static inline {type} {name}({type} a) {{
  const uint64_t x = (uint64_t)a, low = x & 0x7ffu, size = {size};
  return size > 0x20000000000000u ? ({type})((x - low) | (low ? 0x800u : 0)) : a;
}}"""


def widening(dtype: str) -> tuple[str, str]:
    """(name, definition) of the float that the bits of a short float are."""
    name, layout = f"weft_float32_from_{dtype}", dtypes.float_format(dtype)
    text = _WIDEN.get(dtype)
    if text is None:
        drop, sign = 23 - layout.mantissa, 1 << (layout.exponent + layout.mantissa)
        facts = {"drop": drop, "nan": layout.nan, "infinity": layout.infinity}
        text = _WIDEN_ANY.format(
            size=sign - 1,
            sign=sign,
            offset=(127 - layout.bias) << 23,
            normal=1 << layout.mantissa,
            last_place=f"{(2.0 ** (1 - layout.bias - layout.mantissa)).hex()}f",
            to_top=31 - layout.exponent - layout.mantissa,
            special=_SPECIAL[layout.special].format(**facts),
            **facts,
        )
    body = f"{{\n  float a;\n  {text}\n  memcpy(&a, &bits, 4);\n  return a;\n}}"
    return name, f"static inline float {name}({dtypes.SCALARS[dtype].c} h) {body}"


def narrowing(source: str, dtype: str) -> tuple[str, str]:
    """(name, definition) of the bits of the short float nearest to a float32 or a float64."""
    kind, wide, width = dtypes.SCALARS[source].c, dtypes.float_format(source), dtypes.bits(source)
    short, name = dtypes.float_format(dtype), f"weft_{dtype}_from_{source}"
    if not short.mantissa:
        return name, _EXPONENT.format(name=name, kind=kind)
    dropped, top = wide.mantissa - short.mantissa, short.exponent + short.mantissa
    nan, infinite, result = f"sign | {short.nan}u", f"sign | {short.beyond}u", "sign | found"
    if dtype == "float16":  # NumPy keeps the first bits of a nan; ml_dtypes has one nan of each sign
        nan = f"sign | 0x7e00u | (uint32_t)(m >> {dropped} & 0x3ffu)"
    if short.special == "none":  # it has no nan: a zero of the other sign
        nan = f"sign ^ {1 << top}u"
    if short.special == "fnuz":  # zero and nan have no sign
        nan = infinite = f"{short.nan}u"
        result = f"found == 0 || found == {short.nan}u ? found : sign | found"
    text = _NARROW.format(
        name=name,
        type=dtypes.SCALARS[dtype].c,
        kind=kind,
        bits=width,
        last=width - 1,
        top=top,
        mantissa=wide.mantissa,
        exponents=(1 << wide.exponent) - 1,
        dropped=dropped,
        least=wide.bias - short.bias + 1,
        short=short.mantissa,
        nan=nan,
        infinite=infinite,
        beyond=short.beyond,
        result=result,
        zero="0" if short.special == "fnuz" else "sign",
    )
    return name, text


def marking(dtype: str) -> tuple[str, str]:
    """(name, definition) of a number of 64 bits with the twelfth bit set where a lower one was, which double lacks."""
    name = f"weft_marked_{dtype}"
    size = "a < 0 ? 0u - x : x" if dtypes.is_signed(dtype) else "x"
    return name, _MARK.format(name=name, type=dtypes.SCALARS[dtype].c, size=size)
