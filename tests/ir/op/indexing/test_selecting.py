"""The few first elements of a row: those of a stable sort, in rows around the limits of a block."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

DTYPES = ("float32", "float64", "int16", "uint8", "float16")


@functools.cache
def compiled(dtype: str, largest: bool) -> Any:
    body = f"R.topk(x, 5, axis=1, largest={largest})"
    return weft.compile(weft.parse(f'@R.function\ndef main(x: R.Tensor((2, "n"), "{dtype}")):\n    return {body}'))[
        "main"
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [True, False])
def test_the_few_first_elements_are_those_of_a_stable_sort(dtype: str, largest: bool) -> None:
    @settings(max_examples=12, deadline=None)
    @given(st.sampled_from([5, 6, 36, 37, 38, 68, 69, 101]) | st.integers(5, 300), st.integers(0, 99))
    def check(size: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 40, (2, size)).astype(dtype)
        if x.dtype.kind == "f":
            x[rng.random(x.shape) < 0.1] = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], dtype))
        order = np.argsort(x[:, ::-1] if largest else x, 1, kind="stable")
        wanted = (size - 1 - order[:, ::-1] if largest else order)[:, :5]
        found, positions = compiled(dtype, largest)(x)
        np.testing.assert_array_equal(positions, wanted)
        np.testing.assert_array_equal(found, np.take_along_axis(x, wanted, 1))

    check()


def long_rows(dtype: str, size: int) -> np.ndarray:
    """Pairs of rows: random, sorted both ways, one element, and greatest ones at even or at other positions."""
    rng = np.random.default_rng(size)
    random = rng.integers(0, 90, size)
    even = np.arange(size) % 16 == 0
    kinds = [random, np.sort(random), np.sort(random)[::-1], np.full(size, 3)]
    kinds += [np.where(even, 100, random), np.where(even, random, 100)]
    x = np.stack(kinds).astype(dtype).reshape(3, 2, size)
    if x.dtype.kind == "f":
        x[0, :, rng.permutation(size)[:7]] = np.nan
    return x


@pytest.mark.parametrize(("dtype", "largest"), [("float32", True), ("int16", False), ("uint8", True)])
def test_the_few_first_elements_of_long_rows_are_those_of_a_stable_sort(dtype: str, largest: bool) -> None:
    body = f"R.topk(x, 5, axis=1, largest={largest})"
    fixed = f'@R.function\ndef main(x: R.Tensor((2, 4999), "{dtype}")):\n    return {body}'
    for size in (4095, 4096, 4999):
        runs = [compiled(dtype, largest)] + ([weft.compile(weft.parse(fixed))["main"]] if size == 4999 else [])
        for x in long_rows(dtype, size):
            order = np.argsort(x[:, ::-1] if largest else x, 1, kind="stable")
            wanted = (size - 1 - order[:, ::-1] if largest else order)[:, :5]
            for run in runs:
                found, positions = run(x)
                np.testing.assert_array_equal(positions, wanted)
                np.testing.assert_array_equal(found, np.take_along_axis(x, wanted, 1))
