"""The few first elements of short rows by vector code: those of a stable sort, wherever the candidates stand."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.op.indexing.vectors.few import VectorFew

GROUPS = 64


def rows(dtype: str, size: int) -> np.ndarray:
    """Random, sorted both ways, few different elements, one element, and greatest or least ones in few groups."""
    rng = np.random.default_rng(size)
    random = rng.integers(-30_000, 30_000, size)
    few = np.arange(size) % GROUPS < 3
    kinds = [random, np.sort(random), np.sort(random)[::-1], rng.integers(0, 4, size), np.full(size, 7)]
    kinds += [np.where(few, 100, 1), np.where(few, 1, 100)]
    x = np.stack(kinds).astype(dtype)
    if x.dtype.kind == "f":
        x[0, rng.random(size) < 0.02] = np.nan
        x[3, ::3] = -0.0
        x[4] = np.nan
    else:
        x[4] = np.iinfo(dtype).max
    return x


@pytest.mark.parametrize(
    ("dtype", "size", "count", "largest"),
    [
        ("int64", 1000, 10, True),
        ("float64", 333, 32, False),
        ("int32", 128, 1, False),
        ("float32", 4999, 7, True),
        ("int16", 1000, 10, False),
    ],
)
def test_the_few_first_elements_of_short_rows_are_those_of_a_stable_sort(
    dtype: str, size: int, count: int, largest: bool
) -> None:
    assert VectorFew.takes(dtype, size, count)
    x = rows(dtype, size)
    body = f"R.topk(x, {count}, axis=1, largest={largest})"
    text = f'@R.function\ndef main(x: R.Tensor(({len(x)}, {size}), "{dtype}")):\n    return {body}'
    order = np.argsort(x[:, ::-1] if largest else x, 1, kind="stable")
    wanted = (size - 1 - order[:, ::-1] if largest else order)[:, :count]
    found, positions = weft.compile(weft.parse(text))["main"](x)
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(found, np.take_along_axis(x, wanted, 1))
