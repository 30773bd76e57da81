"""Data types are strings; this file is the one table of what they mean.

    dtype  ::= scalar ["x" lanes] | "handle" | "void"
    lanes  ::= count | "vscalex" count                 (that many for each unit of the vector length of the machine)
    scalar ::= "bool" | ("int" | "uint") bits | "float" bits | "bfloat16" | "float8_..." | "float6_..." | "float4_..."
             | "complex64" | "complex128"              (two floats side by side: the real and the imaginary part)

Types that NumPy lacks are stored in arrays of an unsigned integer of at least their width (`storage`), one element
each; callers pass and get them as arrays of `ml_dtypes` (`array_dtype`), with `stored` and `presented` in between.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import DTypeError

__all__ = [
    "CODES",
    "SCALARS",
    "FloatFormat",
    "Scalable",
    "Scalar",
    "array_dtype",
    "bits",
    "can_hold",
    "check_dtype",
    "conversion_hint",
    "element",
    "float_format",
    "highest",
    "includes",
    "is_bool",
    "is_complex",
    "is_float",
    "is_integer",
    "is_numpy",
    "is_scalable",
    "is_signed",
    "is_unsigned",
    "lanes",
    "lowest",
    "max_value",
    "min_value",
    "offered_items",
    "part",
    "per_byte",
    "presented",
    "promote",
    "shares_bits",
    "storage",
    "stored",
    "tensor_dtype",
    "with_lanes",
    "with_parts",
]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The bits of a floating type: sign, exponent, mantissa (IEEE 754-2019, section 3; OCP formats of 8 bits and less).

    `special`: "ieee" (inf and nan), "fn" (nan only, all ones), "fnuz" (nan is -0), "none".
    """

    exponent: int
    mantissa: int
    bias: int
    special: str = "ieee"
    signed: bool = True

    @property
    def infinity(self) -> int:
        """The bits of infinity in a format that has it: the exponent is all ones."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def has_signed_zero(self) -> bool:
        """Whether the sign is a bit of its own, of zero too."""
        return self.signed and self.special != "fnuz"

    @property
    def nan(self) -> int:
        """The bits of the usual nan, without a sign, in a format that has it."""
        if self.special == "ieee":
            return self.infinity | 1 << (self.mantissa - 1)
        every = (1 << (self.exponent + self.mantissa)) - 1
        return every if self.special == "fn" else every + 1

    @property
    def beyond(self) -> int:
        """The bits, without a sign, of what is too large: infinity, else nan, else the greatest value."""
        if self.special == "ieee":
            return self.infinity
        return self.nan if self.special != "none" else (1 << (self.exponent + self.mantissa)) - 1

    @property
    def greatest(self) -> float:
        """The greatest finite value.

        >>> FloatFormat(5, 10, 15).greatest, FloatFormat(4, 3, 7, "fn").greatest
        (65504.0, 448.0)
        """
        top = (1 << self.exponent) - 1
        if self.special == "ieee" or not self.mantissa:  # the patterns of the last exponent are no numbers
            return (2 - 2.0**-self.mantissa) * 2.0 ** (top - 1 - self.bias)
        last = 2 if self.special == "fn" else 1  # the last pattern is nan, or a number
        return (2 - last * 2.0**-self.mantissa) * 2.0 ** (top - self.bias)

    @property
    def least(self) -> float:
        """The least finite value."""
        return -self.greatest if self.signed else 2.0**-self.bias


@dataclass(frozen=True, slots=True)
class Scalar:
    """A row of the table: what a scalar dtype is for each part of weft that stores, passes or computes it.

    `c` and `llvm` are the types of a value there; a float that they lack is its bits, and a complex number lies in C as
    two floats. `formats` name the type in the buffer protocol (PEP 3118); there are none for types that NumPy lacks.
    """

    kind: str  # bool, int, uint, float, complex
    bits: int
    c: str
    llvm: str
    formats: tuple[str, ...] = ()
    layout: FloatFormat | None = None


def _bits_float(layout: FloatFormat) -> Scalar:
    """A float that is computed as its bits."""
    bits = layout.exponent + layout.mantissa + layout.signed
    return Scalar("float", bits, "uint16_t" if bits > 8 else "uint8_t", f"i{bits}", layout=layout)


def _integer(kind: str, bits: int, *formats: str) -> Scalar:
    return Scalar(kind, bits, f"{kind}{max(bits, 8)}_t", f"i{bits}", formats)


# The order is that of the numbers in the ABI of compiled programs: new rows stand at the end.
SCALARS = {
    "bool": Scalar("bool", 1, "uint8_t", "i1", ("?",)),
    "int8": _integer("int", 8, "b"),
    "int16": _integer("int", 16, "h"),
    "int32": _integer("int", 32, "i"),
    "int64": _integer("int", 64, "l", "q"),
    "uint8": _integer("uint", 8, "B"),
    "uint16": _integer("uint", 16, "H"),
    "uint32": _integer("uint", 32, "I"),
    "uint64": _integer("uint", 64, "L", "Q"),
    "float16": Scalar("float", 16, "uint16_t", "half", ("e",), FloatFormat(5, 10, 15)),
    "float32": Scalar("float", 32, "float", "float", ("f",), FloatFormat(8, 23, 127)),
    "float64": Scalar("float", 64, "double", "double", ("d",), FloatFormat(11, 52, 1023)),
    "bfloat16": _bits_float(FloatFormat(8, 7, 127)),
    "float8_e3m4": _bits_float(FloatFormat(3, 4, 3)),
    "float8_e4m3": _bits_float(FloatFormat(4, 3, 7)),
    "float8_e4m3b11fnuz": _bits_float(FloatFormat(4, 3, 11, "fnuz")),
    "float8_e4m3fn": _bits_float(FloatFormat(4, 3, 7, "fn")),
    "float8_e4m3fnuz": _bits_float(FloatFormat(4, 3, 8, "fnuz")),
    "float8_e5m2": _bits_float(FloatFormat(5, 2, 15)),
    "float8_e5m2fnuz": _bits_float(FloatFormat(5, 2, 16, "fnuz")),
    "float8_e8m0fnu": _bits_float(FloatFormat(8, 0, 127, "fn", signed=False)),
    "float6_e2m3fn": _bits_float(FloatFormat(2, 3, 1, "none")),
    "float6_e3m2fn": _bits_float(FloatFormat(3, 2, 3, "none")),
    "float4_e2m1fn": _bits_float(FloatFormat(2, 1, 1, "none")),
    "int4": _integer("int", 4),
    "uint4": _integer("uint", 4),
    "int1": _integer("int", 1),
    "uint1": _integer("uint", 1),
    "int2": _integer("int", 2),
    "uint2": _integer("uint", 2),
    "complex64": Scalar("complex", 64, "float", "<2 x float>", ("Zf",)),
    "complex128": Scalar("complex", 128, "double", "<2 x double>", ("Zd",)),
}
CODES = {name: code for code, name in enumerate(SCALARS, 1)}
"""The number of each dtype in the words of compiled programs."""


def float_format(dtype: str) -> FloatFormat:
    """The bits of a floating type, of one lane.

    >>> float_format("float32").mantissa
    23
    """
    layout = SCALARS[element(dtype)].layout
    assert layout is not None, dtype
    return layout


# What releases of the field called them before.
_OLD_NAMES = {
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
    "e2m1_float4": "float4_e2m1fn",
    "float": "float32",
    "int": "int32",
    "uint": "uint32",
}
_OLD = re.compile(rf"({'|'.join(_OLD_NAMES)})(x(?:vscalex)?\d+)?$")
_VECTOR = re.compile(r"(?!complex\d+$)(.+?)x(vscalex)?(\d+)$")
USUAL_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
    "bfloat16",
)
"""The dtypes that are offered: those of the machine, and the short float."""
_REGISTERED = 2
"""`isbuiltin` of NumPy's for dtypes that another package has registered."""
_HELD = "weft.dtype"
"""The entry of the metadata of a NumPy dtype that names the type its integers hold."""


class Scalable(int):
    """A count of lanes that only the machine knows: `self` for each unit of its vector length (`T.vscale()`).

    It is more than every fixed count, and equal only to the same multiple. As text it is the end of a dtype.

    >>> Scalable(4) == Scalable(4), Scalable(4) == 4, Scalable(1) > 1, f"float32x{Scalable(4)}"
    (True, False, True, 'float32xvscalex4')
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalable) and int(self) == int(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("vscale", int(self)))

    def __lt__(self, other: int) -> bool:
        return isinstance(other, Scalable) and int(self) < int(other)

    def __le__(self, other: int) -> bool:
        return self == other or self < other

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __mul__(self, other: int) -> Scalable:
        if isinstance(other, Scalable):
            raise DTypeError("a vector of scalable vectors has no dtype", code="W301")
        return Scalable(int(self) * other)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return f"vscalex{int(self)}"

    def __repr__(self) -> str:
        return f"Scalable({int(self)})"


@functools.cache
def _parse(dtype: str) -> tuple[str, int, int]:
    """(kind, bits, lanes) with kind in bool, int, uint, float, complex, handle, void."""
    if dtype == "handle":
        return "handle", 64, 1
    if dtype == "void":
        return "void", 0, 1
    vector = _VECTOR.match(dtype)
    if vector and vector.group(1) not in ("handle", "void"):
        kind, width, _ = _parse(vector.group(1))
        digits = vector.group(3)
        if len(digits) > len(str(MOST_LANES)) or int(digits) > MOST_LANES:
            hint = "use a loop over vectors"
            raise DTypeError(f"{dtype!r} has more than {MOST_LANES} lanes", code="W301", hint=hint)
        count = int(digits)
        return kind, width, Scalable(count) if vector.group(2) else count
    row = SCALARS.get(dtype)
    if row is not None:
        return row.kind, row.bits, 1
    raise DTypeError(f"unknown dtype {dtype!r}", code="W301", hint=_suggest(dtype))


MOST_LANES = 4096
"""Of a vector: LLVM takes a few more, and aborts the process beyond 65,535."""


_NAMES_OF_C = {"double": "float64", "half": "float16", "long": "int64", "short": "int16", "byte": "uint8"}
"""Names that other libraries give to dtypes."""


def _suggest(dtype: str) -> str | None:
    if dtype in _NAMES_OF_C:
        return f"did you mean {_NAMES_OF_C[dtype]!r}?"
    close = difflib.get_close_matches(
        dtype, [*USUAL_DTYPES, *(name for name, row in SCALARS.items() if row.kind == "float")], 1
    )
    return f"did you mean {close[0]!r}?" if close else None


def check_dtype(dtype: Any) -> str:
    """The canonical name of a dtype given as a string or a NumPy dtype; DTypeError W301 if unknown.

    >>> check_dtype("float32"), check_dtype(np.dtype("int8"))
    ('float32', 'int8')
    """
    if not isinstance(dtype, str):
        try:
            dtype = np.dtype(dtype).name
        except TypeError:
            raise DTypeError(f"unknown dtype {dtype!r}", code="W301") from None
    old = _OLD.match(dtype)
    if old:
        dtype = _OLD_NAMES[old[1]] + (old[2] or "")
    _parse(dtype)
    return dtype


@functools.cache
def bits(dtype: str) -> int:
    """Bits of one element."""
    return _parse(dtype)[1]


@functools.cache
def lanes(dtype: str) -> int:
    """Vector lanes (1 for scalars, `Scalable` where only the machine knows)."""
    return _parse(dtype)[2]


def is_scalable(dtype: str) -> bool:
    """Whether how many lanes there are is known to the machine alone.

    >>> is_scalable("float32xvscalex4"), is_scalable("float32x4")
    (True, False)
    """
    return isinstance(lanes(dtype), Scalable)


@functools.cache
def element(dtype: str) -> str:
    """The scalar type of a vector type.

    >>> element("float32x4"), element("float32x1"), element("int8")
    ('float32', 'float32', 'int8')
    """
    _parse(dtype)
    vector = _VECTOR.match(dtype)
    return vector.group(1) if vector else dtype


@functools.cache
def with_lanes(dtype: str, count: int) -> str:
    """The vector type with the given lanes over the same element."""
    return element(dtype) if count == 1 else f"{element(dtype)}x{count}"


@functools.cache
def is_float(dtype: str) -> bool:
    """Whether elements are floating point."""
    return _parse(dtype)[0] == "float"


@functools.cache
def is_complex(dtype: str) -> bool:
    """Whether elements are complex numbers."""
    return _parse(dtype)[0] == "complex"


@functools.cache
def part(dtype: str) -> str:
    """The dtype of the real and the imaginary part of a complex type; any other type as it is.

    >>> part("complex64"), part("complex128x4"), part("int8")
    ('float32', 'float64x4', 'int8')
    """
    if not is_complex(dtype):
        return dtype
    return with_lanes(f"float{bits(dtype) // 2}", lanes(dtype))


def with_parts(dtype: str) -> str:
    """The complex type whose parts are of a floating type; DTypeError W301 where there is none.

    >>> with_parts("float64")
    'complex128'
    """
    if dtype not in ("float32", "float64"):
        hint = "parts are float32 or float64: convert them"
        raise DTypeError(f"there are no complex numbers with parts of {dtype}", code="W301", hint=hint)
    return f"complex{bits(dtype) * 2}"


@functools.cache
def is_bool(dtype: str) -> bool:
    """Whether elements are truth values."""
    return _parse(dtype)[0] == "bool"


@functools.cache
def is_signed(dtype: str) -> bool:
    """Whether elements are signed integers."""
    return _parse(dtype)[0] == "int"


@functools.cache
def is_unsigned(dtype: str) -> bool:
    """Whether elements are unsigned integers."""
    return _parse(dtype)[0] == "uint"


@functools.cache
def is_integer(dtype: str) -> bool:
    """Whether elements are integers of either sign."""
    return _parse(dtype)[0] in ("int", "uint")


@functools.cache
def is_numpy(dtype: str) -> bool:
    """Whether NumPy has this scalar type itself."""
    row = SCALARS.get(element(dtype))
    return lanes(dtype) == 1 and row is not None and bool(row.formats)


@functools.cache
@functools.cache
def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype that holds one element (for types NumPy lacks an integer, whose metadata names the type).

    Raises: DTypeError W302 for what no array holds: vectors, handles.
    """
    if is_numpy(dtype):
        return np.dtype(dtype)
    kind, width, count = _parse(dtype)
    if kind in ("handle", "void") or count != 1:
        raise DTypeError(f"{dtype} has no array storage", code="W302")
    holder = "int8" if kind == "int" else "uint16" if width > 8 else "uint8"
    return np.dtype(holder, metadata={_HELD: dtype})


def held(array: np.ndarray) -> str | None:
    """The type that NumPy lacks and that an array of `storage` holds; None for any other array.

    >>> held(np.zeros(1, storage("bfloat16"))[:0]), held(np.zeros(1, "uint16"))
    ('bfloat16', None)
    """
    metadata = array.dtype.metadata
    return None if metadata is None else metadata.get(_HELD)


def tensor_dtype(array: np.ndarray) -> str | None:
    """The dtype that an array has as a tensor; None for one of elements that no tensor has.

    >>> tensor_dtype(np.zeros(1, ">f4")), tensor_dtype(np.zeros(1, storage("int4"))), tensor_dtype(np.array([None]))
    ('float32', 'int4', None)
    """
    name = held(array) or array.dtype.name
    return name if name in CODES else None


def holds(array: np.ndarray, dtype: str) -> bool:
    """Whether the elements of an array of storage may be of a dtype: one without a note may hold any of its width.

    >>> holds(np.zeros(1, "uint16"), "bfloat16"), holds(np.zeros(1, storage("bfloat16")), "uint16")
    (True, False)
    """
    return array.dtype == storage(dtype) and held(array) in (None, dtype)


def holding(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array of storage as one that says that it holds a dtype, over the same memory.

    >>> held(holding(np.zeros(1, "uint16"), "bfloat16"))
    'bfloat16'
    """
    return array if held(array) == (None if is_numpy(dtype) else dtype) else array.view(storage(dtype))


@functools.cache
def per_byte(dtype: str) -> int:
    """How many elements a packed byte holds: 1 except for types of 4, 2 and 1 bits.

    >>> per_byte("int4"), per_byte("uint2"), per_byte("bool"), per_byte("float6_e2m3fn"), per_byte("float32")
    (2, 4, 1, 1, 1)
    """
    width = bits(dtype)
    return 8 // width if 0 < width < 8 and not 8 % width and not is_bool(dtype) else 1


@functools.cache
def item_bytes(dtype: str) -> int:
    """How many bytes one element of a buffer takes, all of its lanes.

    >>> item_bytes("float32"), item_bytes("float32x4"), item_bytes("bfloat16x3")
    (4, 16, 6)
    """
    return storage(element(dtype)).itemsize * int(lanes(dtype))


@functools.cache
def array_dtype(dtype: str) -> np.dtype[Any]:
    """The dtype of the arrays that callers pass and get: NumPy's, else that of `ml_dtypes`.

    >>> array_dtype("float32"), array_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    if is_numpy(dtype):
        return np.dtype(dtype)
    import ml_dtypes  # only programs with such types need it

    found = getattr(ml_dtypes, dtype, None)
    return np.dtype(storage(dtype).type if found is None else found)


def shares_bits(dtype: str) -> bool:
    """Whether an array of `array_dtype` has the bits of one of `storage`: all but those of short signed integers."""
    return is_numpy(dtype) or not is_signed(dtype)


def stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array of `array_dtype` as one of `storage`, which one of raw bits becomes too; any other one as it is.

    Over the same memory where the bits are the same (`shares_bits`), else a copy.

    >>> stored(np.ones(2, array_dtype("bfloat16")), "bfloat16")
    array([16256, 16256], dtype=uint16)
    """
    if array.dtype.isbuiltin != _REGISTERED or array.dtype.name != dtype:
        return holding(array, dtype) if array.dtype == storage(dtype) and held(array) is None else array
    return array.view(storage(dtype)) if shares_bits(dtype) else array.astype(storage(dtype), order="C")


def presented(array: np.ndarray, dtype: str | None) -> np.ndarray:
    """An array of `storage` as one of `array_dtype`, the inverse of `stored`; None is the dtype that it says it holds.

    >>> presented(np.array([0x3F80, 0x4000], "uint16"), "bfloat16")
    array([1, 2], dtype=bfloat16)
    """
    dtype = held(array) if dtype is None else dtype
    if dtype is None or is_numpy(dtype) or array.dtype != storage(dtype):
        return array
    kind = array_dtype(dtype)
    return array.view(kind) if shares_bits(dtype) else array.astype(kind)


def conversion_hint(name: str, value: Any, dtype: str | None) -> str | None:
    """What to write where `name` is no array of a dtype (None is any); None where that is not known.

    >>> conversion_hint("x", [1.0], "float32"), conversion_hint("x", np.zeros(1), "float32")
    ("pass np.asarray(x, 'float32')", "convert it first: x.astype('float32')")
    """
    plain = dtype is not None and is_numpy(dtype)
    if isinstance(value, np.ndarray):
        return f"convert it first: {name}.astype({dtype!r})" if plain else None
    if plain and isinstance(value, (bool, int, float, list)):
        return f"pass np.asarray({name}, {dtype!r})"
    return "pass a NumPy array, or anything with __dlpack__ or __array__"


def min_value(dtype: str) -> int | float:
    """The least finite value."""
    kind, width, _ = _parse(dtype)
    if kind == "float":
        return float_format(dtype).least
    return -(1 << (width - 1)) if kind == "int" else 0


def max_value(dtype: str) -> int | float:
    """The greatest finite value."""
    kind, width, _ = _parse(dtype)
    if kind == "float":
        return float_format(dtype).greatest
    return (1 << (width - 1)) - 1 if kind == "int" else (1 << width) - 1


def lowest(dtype: str) -> int | float:
    """The value that no other one is less than: minus infinity where the type has it.

    >>> lowest("float32"), lowest("float8_e4m3fn"), lowest("int8")
    (-inf, -448.0, -128)
    """
    return -float("inf") if _has_infinity(dtype) else min_value(dtype)


def highest(dtype: str) -> int | float:
    """The value that no other one is greater than: infinity where the type has it."""
    return float("inf") if _has_infinity(dtype) else max_value(dtype)


def _has_infinity(dtype: str) -> bool:
    return is_float(dtype) and float_format(dtype).special == "ieee"


def can_hold(dtype: str, value: int) -> bool:
    """Whether an integer is in the range of an integer or bool type."""
    return min_value(dtype) <= value <= max_value(dtype)


def includes(wide: str, narrow: str) -> bool:
    """Whether a scalar type is known to have every value of another one, so that converting to it changes none.

    >>> includes("float32", "bfloat16"), includes("int32", "uint8"), includes("float16", "bfloat16")
    (True, True, False)
    """
    if wide == narrow:
        return True
    if is_integer(wide) and is_integer(narrow):
        return min_value(wide) <= min_value(narrow) and max_value(narrow) <= max_value(wide)
    return wide in ("float32", "float64") and is_float(narrow) and narrow != "float64"


def promote(a: str, b: str) -> str | None:
    """The type of tensor-level arithmetic on two scalars or vectors, or None when they do not mix.

    Rule (the field's): equal types stay; a float wins over an integer; the wider of two of one kind wins; between int
    and uint of one width, uint wins; bool yields. A scalar mixes with a vector by broadcast.

    >>> promote("int32", "int64"), promote("int32", "float32"), promote("float16", "float32")
    ('int64', 'float32', 'float32')
    """
    if a == b:
        return a
    lanes_a, lanes_b = lanes(a), lanes(b)
    if lanes_a != lanes_b and 1 not in (lanes_a, lanes_b):
        return None
    scalar = _promote_scalar(element(a), element(b))
    return None if scalar is None else with_lanes(scalar, max(lanes_a, lanes_b))


def _promote_scalar(a: str, b: str) -> str | None:
    kinds = _parse(a)[0], _parse(b)[0]
    if a == b:
        return a
    if "handle" in kinds or "void" in kinds:
        return None
    if "complex" in kinds and "float" in kinds:
        return _promote_parts(part(a), part(b))
    rank = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
    if rank[kinds[0]] != rank[kinds[1]]:
        return a if rank[kinds[0]] > rank[kinds[1]] else b
    if bits(a) != bits(b):
        return a if bits(a) > bits(b) else b
    if kinds[0] == kinds[1]:
        return None
    return a if kinds[0] == "uint" else b


def _promote_parts(a: str, b: str) -> str:
    wider = _promote_scalar(a, b)
    return with_parts("float64" if wider == "float64" else "float32")


def offered_items(value: Any) -> tuple[Any, ...] | None:
    """What a tuple or a list holds, whatever a class of its own says of its length; None for what is neither.

    >>> offered_items([1, (2, 3)]), offered_items("ab")
    ((1, (2, 3)), None)
    """
    if isinstance(value, tuple):
        return tuple.__getitem__(value, slice(None))
    return tuple(list.__getitem__(value, slice(None))) if isinstance(value, list) else None
