"""Floats of 16 bits and less in compiled code: the values of NumPy and `ml_dtypes`, on every level."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import dtypes
from weft.codegen.backends.llvm.machine.host_target import LEVELS
from weft.ir.kernel.prim import binary, cast, intrinsic
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimExpr, PrimFunc, PrimVar
from weft.runtime.device.host import host
from weft.support.small_floats import encode

X86 = host().triple.startswith("x86_64")
HERE = [
    "llvm",
    *(f"llvm -mcpu={level}" for level, needs in LEVELS.items() if X86 and all(map(host().features.get, needs))),
    *(["llvm -mattr=-f16c"] if X86 else []),
]
"""Targets of this machine: with instructions for float16, with those for float32 alone, with none."""
PATTERNS = np.arange(1 << 16, dtype="uint16")
HALVES = PATTERNS.view("float16")


def compiled(target: str, *inputs: str, made: Any) -> Any:
    """A function of arrays, made(elements) for each element; bfloat16 arrays are their bits."""
    n, i = PrimVar("n", "int64"), PrimVar("i", "int64")
    buffers = [Buffer(f"x{k}", (n,), dtype) for k, dtype in enumerate(inputs)]
    value: PrimExpr = made(*(BufferLoad(buffer, (i,)) for buffer in buffers))
    out = Buffer("out", (n,), value.dtype)
    kernel = weft.compile(PrimFunc((*buffers, out), For(i, 0, n, BufferStore(out, value, (i,)))), target)["main"]

    def call(*arrays: np.ndarray) -> np.ndarray:
        result = np.zeros(len(arrays[0]), dtypes.storage(out.dtype))
        kernel(*arrays, result)
        return result

    return call


def converted(target: str, source: str, to: str, values: np.ndarray) -> np.ndarray:
    return compiled(target, source, made=lambda x: cast(to, x))(values)


def assert_same_bits(got: np.ndarray, want: np.ndarray, *, signs: bool = True) -> None:
    """Equal bits; a nan for each nan, of the same sign unless two of them met."""
    assert got.dtype == want.dtype
    nan = np.isnan(want)
    bits = f"uint{8 * got.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])
    assert np.isnan(got[nan]).all()
    if signs:
        np.testing.assert_array_equal(np.signbit(got[nan]), np.signbit(want[nan]))


def doubles() -> np.ndarray:
    """Random bits, the values of float16 and bfloat16, the middles between them, and the neighbours of all these."""
    rng = np.random.default_rng(0)
    found = [rng.integers(0, 1 << 64, 50_000, "uint64").view("float64")]
    singles = (PATTERNS.astype("uint32") << 16).view("float32")
    for values in (HALVES, singles):
        exact = np.sort(values[np.isfinite(values)].astype("float64"))
        middles = (exact[1:] + exact[:-1]) / 2
        found += [exact, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)]
    beyond = [65519.999999999, 65520.0, 65536.0, 1e300, np.inf, np.nan, 5e-324, 2.0**-25, 2.0**-134, 3.3961775e38]
    return np.concatenate([*found, beyond, np.negative(beyond)])


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("to", ["float32", "float64"])
def test_every_float16_is_widened_exactly(target: str, to: str) -> None:
    assert_same_bits(converted(target, "float16", to, HALVES), HALVES.astype(to))


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_become_float16_rounded_once(target: str, source: str) -> None:
    values = doubles().astype(source)
    assert_same_bits(converted(target, source, "float16", values), values.astype("float16"))


@pytest.mark.parametrize("target", HERE)
def test_float32_becomes_bfloat16_as_ml_dtypes_has_it(target: str) -> None:
    values = doubles().astype("float32")
    want = values.astype(ml_dtypes.bfloat16).view("uint16")
    np.testing.assert_array_equal(converted(target, "float32", "bfloat16", values), want)


@pytest.mark.parametrize("target", HERE)
def test_float64_becomes_bfloat16_rounded_once(target: str) -> None:
    """`ml_dtypes` goes through float32 and rounds twice: the cases in which that differs are among the values."""
    values = doubles()
    want = encode(values, "bfloat16")
    np.testing.assert_array_equal(converted(target, "float64", "bfloat16", values), want)
    twice = values.astype(ml_dtypes.bfloat16).view("uint16")
    exact = (want.astype("uint32") << 16).view("float32").astype("float64")
    differ = (twice != want) & np.isfinite(values)
    assert differ.any()
    other = (twice.astype("uint32") << 16).view("float32").astype("float64")[differ]
    assert (np.abs(exact[differ] - values[differ]) <= np.abs(other - values[differ])).all()


@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("source", ["int32", "int64", "uint64"])
def test_integers_become_short_floats_rounded_once(target: str, source: str) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 63, 20_000, "int64") >> rng.integers(0, 62, 20_000)
    ties = [(1 << 24) + (1 << 16) + 1, 65519, 65520, 65521, (1 << 62) + (1 << 54) + 1, -(1 << 62) - (1 << 54) - 1]
    values = np.concatenate([bits, -bits, ties]).astype(source)
    assert_same_bits(converted(target, source, "float16", values), values.astype("float32").astype("float16"))
    np.testing.assert_array_equal(converted(target, source, "bfloat16", values), encode(values, "bfloat16"))


@pytest.mark.parametrize("target", HERE)
def test_arithmetic_of_float16_is_rounded_once_on_every_level(target: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.permutation(HALVES) for _ in range(2))
    for made, want in ((lambda x, y: x + y, a + b), (lambda x, y: x * y, a * b), (lambda x, y: x / y, a / b)):
        assert_same_bits(compiled(target, "float16", "float16", made=made)(a, b), want, signs=False)
    less = compiled(target, "float16", "float16", made=lambda x, y: x < y)(a, b)
    np.testing.assert_array_equal(less, a < b)


@pytest.mark.parametrize("target", HERE)
def test_the_next_short_float_is_one_step_away(target: str) -> None:
    rng = np.random.default_rng(3)
    a, b = np.concatenate([HALVES, HALVES]), np.concatenate([rng.permutation(HALVES), HALVES])
    step = lambda x, y: intrinsic("nextafter", x, y)
    assert_same_bits(compiled(target, "float16", "float16", made=step)(a, b), np.nextafter(a, b), signs=False)
    x, y = a.view("uint16"), b.view("uint16")
    want = np.nextafter(x.view(ml_dtypes.bfloat16), y.view(ml_dtypes.bfloat16))
    got = compiled(target, "bfloat16", "bfloat16", made=step)(x, y).view(ml_dtypes.bfloat16)
    nan = np.isnan(want.astype("float32"))
    np.testing.assert_array_equal(got.view("uint16")[~nan], want.view("uint16")[~nan])
    assert np.isnan(got.astype("float32")[nan]).all()


BYTES = [name for name, row in dtypes.SCALARS.items() if row.layout and row.bits <= 8]


def near(dtype: str) -> np.ndarray:
    """The values of a type, the middles between them, the neighbours of all these, and what is far out."""
    patterns = np.arange(1 << dtypes.bits(dtype), dtype="uint8").view(dtypes.array_dtype(dtype))
    values = np.unique(patterns.astype("float64"))
    finite = values[np.isfinite(values)]
    exact = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite.max() * np.linspace(0.9, 1.6, 60)])
    far = np.array([0.0, 1e300, 1e-300, 1e-45, np.inf, np.nan])
    found = np.concatenate([exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf), far])
    return np.concatenate([found, -found])


@pytest.mark.parametrize("dtype", BYTES)
def test_every_float_of_a_byte_is_widened_exactly(dtype: str) -> None:
    patterns = np.arange(1 << dtypes.bits(dtype), dtype="uint8")
    want = patterns.view(dtypes.array_dtype(dtype)).astype("float32")
    got = converted("llvm", dtype, "float32", patterns)
    np.testing.assert_array_equal(got.view("uint32"), want.view("uint32"))


@pytest.mark.parametrize("dtype", BYTES)
def test_numbers_become_floats_of_a_byte_as_ml_dtypes_has_them(dtype: str) -> None:
    """`ml_dtypes` rounds a float64 to float32 first, so its answers are those for float32."""
    kind = dtypes.array_dtype(dtype)
    singles = near(dtype).astype("float32")
    np.testing.assert_array_equal(converted("llvm", "float32", dtype, singles), singles.astype(kind).view("uint8"))
    whole = np.arange(-600, 600, dtype="int32")
    want = whole.astype("float32").astype(kind).view("uint8")
    np.testing.assert_array_equal(converted("llvm", "int32", dtype, whole), want)


@pytest.mark.parametrize("dtype", BYTES)
def test_float64_becomes_a_float_of_a_byte_rounded_once(dtype: str) -> None:
    """Of the two nearest values the nearer one, and never another one than that of the interpreter."""
    values = near(dtype)
    got = converted("llvm", "float64", dtype, values)
    np.testing.assert_array_equal(got, encode(values, dtype))
    if dtype == "float8_e8m0fnu":  # its least values are not rounded to nearest
        return
    exact = got.view(dtypes.array_dtype(dtype)).astype("float64")
    every = np.arange(1 << dtypes.bits(dtype), dtype="uint8").view(dtypes.array_dtype(dtype)).astype("float64")
    every = every[np.isfinite(every)]
    inside = np.isfinite(exact) & np.isfinite(values) & (np.abs(values) <= every.max())
    best = np.abs(every[:, None] - values[None, inside]).min(axis=0)
    np.testing.assert_array_equal(np.abs(exact[inside] - values[inside]), best)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "bfloat16"])
def test_operators_on_short_floats_round_once(dtype: str) -> None:
    """Each step of this program is bit-equal to the interpreter: it is computed in float32 and rounded when stored."""
    module = weft.parse(
        f"""
@R.function
def main(x: R.Tensor((5, 37), "{dtype}"), y: R.Tensor((5, 37), "{dtype}")):
    a = R.add(R.negative(x), R.floor_divide(x, R.maximum(y, R.const(1.0, "{dtype}"))))
    b = R.matmul(x, R.permute_dims(y))
    return (a, b, R.max(x, axis=1), R.argmax(y, axis=1), R.sort(x), R.nn.gelu(y), R.astype(R.sigmoid(x), "float16"))
"""
    )
    rng = np.random.default_rng(4)
    x, y = (rng.normal(size=(5, 37)).astype("float32").astype(dtypes.array_dtype(dtype)) for _ in range(2))
    for got, want in zip(weft.compile(module)["main"](x, y), weft.interpret(module)["main"](x, y), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.view(f"uint{8 * got.itemsize}"), want.view(f"uint{8 * want.itemsize}"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float8_e4m3fnuz"])
@pytest.mark.parametrize("kind", ["min", "max"])
def test_the_lesser_of_two_short_floats_is_one_of_them_and_not_rounded(dtype: str, kind: str) -> None:
    """Every value beside some, nan and both zeros among them (which zero is the greater one is left open)."""
    every = np.arange(1 << dtypes.bits(dtype)).astype(f"uint{dtypes.bits(dtype)}").view(dtypes.array_dtype(dtype))
    made = compiled("llvm", dtype, dtype, made=lambda x, y: binary(kind, x, y))
    for other in (0.0, -1.5, 6.0, np.nan):
        second = np.full_like(every, other)
        got = made(*(x.view(dtypes.storage(dtype)) for x in (every, second))).view(every.dtype).astype("float32")
        want = {"min": np.minimum, "max": np.maximum}[kind](every.astype("float32"), second.astype("float32"))
        np.testing.assert_array_equal(got, want)
