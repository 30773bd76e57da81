"""The values of a vector: in blocks of elements that are all new, that hold nothing new, and at their limits."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.op.indexing.block_hits import BLOCK

SIZES = (0, 1, 2, BLOCK, BLOCK + 1, 2 * BLOCK + 2, 999)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int16"])
def test_every_value_is_found_once(dtype: str) -> None:
    run = weft.compile(weft.parse(f'@R.function\ndef main(x: R.Tensor(("n",), "{dtype}")):\n    return R.unique(x)'))
    for size in SIZES:
        rng, counted = np.random.default_rng(size), np.arange(size)
        rows = [rng.integers(-99, 99, size), rng.integers(0, 3, size), counted, counted // 40, np.full(size, 7)]
        for x in (row.astype(dtype) for row in (*rows, np.where(counted < 2 * BLOCK, counted, 3 * BLOCK))):
            np.testing.assert_array_equal(run["main"](x), np.unique(x))
            if x.dtype.kind == "f" and size > BLOCK:
                x[:: BLOCK - 1], x[1], x[3] = np.nan, -np.nan, -0.0
                np.testing.assert_array_equal(run["main"](x), np.unique(x))


def test_bools_are_sorted_as_false_before_true() -> None:
    def run(text: str) -> np.ndarray:
        module = weft.parse(f'@R.function\ndef main(x: R.Tensor(("n", "m"), "bool")):\n    return R.{text}')
        return weft.compile(module)["main"](x)

    for shape in ((0, 3), (1, 1), (7, 300)):
        x = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
        np.testing.assert_array_equal(run("sort(x, 0)"), np.sort(x, 0))
        np.testing.assert_array_equal(run("sort(x, descending=True)"), np.sort(x)[:, ::-1])
        np.testing.assert_array_equal(run("argsort(x)"), np.argsort(x, kind="stable"))
        for found, wanted in (
            (run("unique(x)"), np.unique(x)),
            (run("unique(x, axis=0)"), np.unique(x, axis=0)),
            (run("unique(x, return_counts=True)")[0], np.unique(x)),
        ):
            assert found.dtype == np.bool_
            np.testing.assert_array_equal(found, wanted)
