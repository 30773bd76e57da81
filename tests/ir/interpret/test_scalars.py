"""The arithmetic of the interpreter is exact for each dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import dtypes
from weft.ir.interpret import decode, encode
from weft.ir.interpret.scalars import binary_function, cast_function, coerce, unary_function

INTEGERS = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "int4", "uint4"]


@given(st.sampled_from(INTEGERS), st.sampled_from(["add", "sub", "mul"]), st.integers(), st.integers())
@settings(max_examples=200, deadline=None)
def test_integer_arithmetic_wraps_to_the_width(dtype: str, kind: str, a: int, b: int) -> None:
    a, b = coerce(a, dtype), coerce(b, dtype)
    exact = {"add": a + b, "sub": a - b, "mul": a * b}[kind]
    result = binary_function(kind, dtype)(a, b)
    assert dtypes.min_value(dtype) <= result <= dtypes.max_value(dtype)
    assert (result - exact) % (1 << dtypes.bits(dtype)) == 0


@given(st.sampled_from(["int8", "int32", "uint8", "uint64"]), st.data())
@settings(max_examples=200, deadline=None)
def test_scalars_and_vectors_agree(dtype: str, data: st.DataObject) -> None:
    numbers = st.integers(int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype)))
    a, b = data.draw(numbers), data.draw(st.one_of(numbers, st.integers(0, 9)))
    kinds = [
        "add",
        "sub",
        "mul",
        "floordiv",
        "floormod",
        "truncdiv",
        "truncmod",
        "min",
        "max",
        "shift_left",
        "shift_right",
    ]
    kind = data.draw(st.sampled_from(kinds))
    scalar = binary_function(kind, dtype)(a, b)
    with np.errstate(all="ignore"):
        vector = binary_function(kind, f"{dtype}x2")(np.array([a, a], dtype), np.array([b, b], dtype))
    assert vector.dtype == np.dtype(dtype)
    assert vector.tolist() == [scalar, scalar]


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        ("floordiv", -7, 2, -4),
        ("floormod", -7, 2, 1),
        ("truncdiv", -7, 2, -3),
        ("truncmod", -7, 2, -1),
        ("floordiv", 5, 0, 0),
        ("floormod", 5, 0, 0),
        ("truncdiv", 5, 0, 0),
        ("truncmod", 5, 0, 0),
        ("floordiv", -(2**31), -1, -(2**31)),
        ("shift_left", 1, 40, 0),
        ("shift_right", -8, 33, -1),
        ("shift_right", -8, 1, -4),
    ],
)
def test_integer_division_and_shifts_are_defined_everywhere(kind: str, a: int, b: int, expected: int) -> None:
    assert binary_function(kind, "int32")(a, b) == expected


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (3.9, "int32", 3),
        (-3.9, "int32", -3),
        (1e30, "int32", 2**31 - 1),
        (-1e30, "int8", -128),
        (np.nan, "int64", 0),
        (-1.0, "uint8", 0),
    ],
)
def test_a_float_becomes_an_integer_by_truncation_and_saturation(value: float, target: str, expected: int) -> None:
    assert cast_function("float32", target)(np.float32(value)) == expected
    assert cast_function("float32x2", f"{target}x2")(np.array([value, value], "float32")).tolist() == [expected] * 2


def test_a_large_integer_rounds_once_on_its_way_to_float32() -> None:
    value = 2**60 + 2**36 + 1  # just above a tie of float32: rounding through float64 would go down
    assert cast_function("int64", "float32")(value) == np.int64(value).astype(np.float32)
    assert int(cast_function("int64", "float32")(value)) == 2**60 + 2**37


def test_float32_rounds_at_every_step() -> None:
    add = binary_function("add", "float32")
    assert add(np.float32(2**24), np.float32(1)) == np.float32(2**24)
    assert add(np.float32(1), np.float32(2)).dtype == np.float32


def test_min_and_max_hand_on_nan() -> None:
    assert np.isnan(binary_function("max", "float32")(np.float32("nan"), np.float32(1)))
    assert np.isnan(binary_function("min", "float32")(np.float32(1), np.float32("nan")))


def test_min_and_max_tell_the_two_zeros_apart() -> None:
    zero = np.float32(0)
    for a, b in ((zero, -zero), (-zero, zero)):
        assert np.signbit(binary_function("min", "float32")(a, b))
        assert not np.signbit(binary_function("max", "float32")(a, b))
        pair = np.array([a]), np.array([b])
        assert np.signbit(binary_function("min", "float32x1")(*pair))
        assert not np.signbit(binary_function("max", "float32x1")(*pair))


def test_negation_of_the_least_integer_wraps() -> None:
    assert unary_function("neg", "int8")(-128) == -128
    assert unary_function("bitwise_not", "uint8")(1) == 254


@given(st.floats(width=32, allow_nan=False))
@settings(max_examples=200, deadline=None)
def test_bfloat16_rounds_to_the_nearest_value(value: float) -> None:
    bits = encode(np.float32(value), "bfloat16")
    got = float(decode(bits, "bfloat16"))
    table = decode(np.arange(1 << 16, dtype=np.uint16), "bfloat16").astype(np.float64)
    finite = table[np.isfinite(table)]
    if abs(value) <= finite.max():
        assert abs(got - value) == np.abs(finite - value).min()
    else:
        assert abs(got) in (finite.max(), np.inf)


SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3fnuz"]
SMALL += ["float6_e2m3fn", "float4_e2m1fn", "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", SMALL)
def test_every_finite_small_float_survives_decoding_and_encoding(dtype: str) -> None:
    patterns = np.arange(1 << dtypes.bits(dtype)).astype(dtypes.storage(dtype))
    values = decode(patterns, dtype)
    finite = np.isfinite(values)
    assert values[finite].max() == dtypes.max_value(dtype)
    np.testing.assert_array_equal(encode(values[finite], dtype), patterns[finite])


def test_what_is_out_of_range_for_a_small_float_becomes_infinity_or_nan() -> None:
    assert decode(encode(np.float32(1e6), "float8_e5m2"), "float8_e5m2") == np.inf
    assert np.isnan(decode(encode(np.float32(1e6), "float8_e4m3fn"), "float8_e4m3fn"))
    assert decode(encode(np.float32(-1e6), "float4_e2m1fn"), "float4_e2m1fn") == -6
