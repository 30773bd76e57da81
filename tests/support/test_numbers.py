"""Numbers from outside as values of a dtype: kinds, ranges, one rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.dtypes import array_dtype
from weft.support.numbers import number


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (None, "int64"),
        (None, "float32"),
        (True, "int64"),
        (True, "float32"),
        (1, "bool"),
        (2.0, "int32"),
        (128, "int8"),
        (-1, "uint4"),
        (1j, "float64"),
        (10**400, "float16"),
        (np.float64(1), "float32"),
        (np.array([1]), "int64"),
        ("1", "int64"),
    ],
)
def test_what_is_no_number_of_the_dtype_is_none(value: Any, dtype: str) -> None:
    assert number(value, dtype) is None


@given(st.integers(-(2**70), 2**70) | st.integers(2**60, 2**62).map(lambda n: n << 40 | 1))
def test_integers_round_once(value: int) -> None:
    found = number(value, "float32")
    assert isinstance(found, float)
    low, high = (np.nextafter(np.float32(found), np.float32(side)) for side in (-np.inf, np.inf))
    assert abs(value - int(found)) <= min(abs(value - int(low)), abs(value - int(high)))


def test_an_integer_just_above_a_tie_rounds_up() -> None:
    assert number(2**60 + 2**36, "float32") == 2.0**60
    assert number(2**60 + 2**36 + 1, "float32") == 2.0**60 + 2.0**37
    assert number(2**60 + 2**52 + 1, "bfloat16") == 2.0**60 + 2.0**53


@given(st.floats(), st.sampled_from(["float16", "float32", "bfloat16", "float8_e5m2"]))
def test_floats_become_the_nearest_of_the_dtype(value: float, dtype: str) -> None:
    found = number(value, dtype)
    assert isinstance(found, float)
    kind = array_dtype(dtype)
    if dtype in ("float16", "float32"):
        with np.errstate(over="ignore"):
            wanted = float(np.float64(value).astype(kind))
        np.testing.assert_equal(found, wanted)
    else:
        np.testing.assert_equal(found, float(np.float64(found).astype(kind)))
