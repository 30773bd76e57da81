"""The first elements of long rows, found from a sample: those of a stable sort, whatever the sample says."""

from __future__ import annotations

import numpy as np
import pytest

import weft

SIZE = 20_011
STRIDE = SIZE // 4096


def rows(dtype: str, largest: bool) -> np.ndarray:
    """Random, sorted both ways, few different elements, one element, and rows that mislead the sample."""
    rng = np.random.default_rng(3)
    random = rng.integers(-30_000, 30_000, SIZE)
    ordered = np.sort(random)
    sampled = np.arange(SIZE) % STRIDE == 0
    outer = 31_000 if largest else -31_000
    kinds = [random, ordered, ordered[::-1], rng.integers(0, 5, SIZE), np.zeros(SIZE)]
    kinds += [np.where(sampled, outer, random), np.where(sampled, random, outer)]
    x = np.stack(kinds).astype(dtype)
    if x.dtype.kind == "f":
        x[:4, rng.random(SIZE) < 0.001] = np.nan
        x[4, ::3] = -0.0
    return x


@pytest.mark.parametrize(
    ("dtype", "largest", "extent"),
    [("float32", True, "'n'"), ("float64", False, f"{SIZE}"), ("int16", True, f"{SIZE}")],
)
def test_the_first_elements_of_long_rows_are_those_of_a_stable_sort(dtype: str, largest: bool, extent: str) -> None:
    x = rows(dtype, largest)
    body = f"R.topk(x, 50, axis=1, largest={largest}), R.topk(x, 2400, axis=1, largest={largest})"
    text = f'@R.function\ndef main(x: R.Tensor(({len(x)}, {extent}), "{dtype}")):\n    return ({body})'
    order = np.argsort(x[:, ::-1] if largest else x, 1, kind="stable")
    wanted = SIZE - 1 - order[:, ::-1] if largest else order
    for (found, positions), count in zip(weft.compile(weft.parse(text))["main"](x), (50, 2400), strict=True):
        np.testing.assert_array_equal(positions, wanted[:, :count])
        np.testing.assert_array_equal(found, np.take_along_axis(x, wanted[:, :count], 1))
