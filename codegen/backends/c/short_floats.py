"""float16 and bfloat16 in C99, which has neither: values are their bits, computed in float and rounded once.

    weft_float32_from_<short>(bits)            exact
    weft_<short>_from_<float32|float64>(x)     to nearest even, as IEEE says; nan stays nan

The bits are those of NumPy and `ml_dtypes`.
"""

from __future__ import annotations

from weft import dtypes

__all__ = ["SHORT_FLOATS", "narrowing", "widening"]


# NumPy keeps the first bits of a nan; ml_dtypes has one nan of each sign.
_NANS = {"float16": "0x7e00u | (uint32_t)(m >> {drop} & 0x3ffu)", "bfloat16": "0x7fc0u"}
SHORT_FLOATS = frozenset(_NANS)

_WIDEN = {
    "bfloat16": "uint32_t bits = (uint32_t)h << 16;",
    "float16": """const uint32_t e = h >> 10 & 31u, m = h & 1023u, sign = (uint32_t)(h >> 15) << 31;
  uint32_t bits = sign | (e == 31u ? 0x7f800000u | m << 13 : (e + 112u) << 23 | m << 13);
  if (e == 0) { const float tiny = (float)m * 5.9604644775390625e-08f; memcpy(&bits, &tiny, 4); bits |= sign; }""",
}
_NARROW = """static inline uint16_t {name}({kind} a) {{
  uint{bits}_t b, m, kept, rest, half;
  uint32_t sign, e, low, drop, found;
  memcpy(&b, &a, sizeof b);
  sign = (uint32_t)(b >> {last}) << 15;
  e = (uint32_t)(b >> {mantissa}) & {exponents}u;
  m = b & (((uint{bits}_t)1 << {mantissa}) - 1);
  if (e == {exponents}u) return (uint16_t)(m ? sign | {nan} : sign | {infinity}u);
  if (e) m |= (uint{bits}_t)1 << {mantissa}; else e = 1;
  low = e < {least}u ? {least}u : e;
  drop = {dropped}u + (low - e);
  if (drop > {mantissa}u + 1) return (uint16_t)sign;
  kept = m >> drop; rest = m & (((uint{bits}_t)1 << drop) - 1); half = (uint{bits}_t)1 << (drop - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  found = ((low - {least}u) << {short}) + (uint32_t)kept;
  return (uint16_t)(sign | (found > {infinity}u ? {infinity}u : found));
}}"""


def widening(dtype: str) -> tuple[str, str]:
    """(name, definition) of the float that the bits of a short float are."""
    name = f"weft_float32_from_{dtype}"
    body = f"{{\n  float a;\n  {_WIDEN[dtype]}\n  memcpy(&a, &bits, 4);\n  return a;\n}}"
    return name, f"static inline float {name}(uint16_t h) {body}"


def narrowing(source: str, dtype: str) -> tuple[str, str]:
    """(name, definition) of the bits of the short float nearest to a float32 or a float64."""
    kind, wide, width = dtypes.SCALARS[source].c, dtypes.float_format(source), dtypes.bits(source)
    short = dtypes.float_format(dtype)
    name, dropped = f"weft_{dtype}_from_{source}", wide.mantissa - short.mantissa
    text = _NARROW.format(
        name=name, kind=kind, bits=width, last=width - 1, mantissa=wide.mantissa,
        exponents=(1 << wide.exponent) - 1, nan=_NANS[dtype].format(drop=dropped), dropped=dropped,
        infinity=short.infinity, least=wide.bias - short.bias + 1, short=short.mantissa,
    )  # fmt: skip
    return name, text
