"""Positions that are known without a sort: those of a stable sort, of rows in order, runs, ties and few kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import PrimFunc, walk
from weft.ir.tensor import PrimCall
from weft.transform.infra.phases import run_phases

WIDE = "llvm -mcpu=x86-64-v4"
SIZES = (520, 2_500, 5_003)


def program(dtype: str, shape: str, descending: bool) -> weft.IRModule:
    body = f"R.argsort(x, descending={descending})"
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor(({shape}), "{dtype}")):\n    return {body}')
    return weft.IRModule({"main": made})  # type: ignore[dict-item]


def rows(dtype: str, size: int) -> Iterator[np.ndarray]:
    """Rows that rise, fall, are two runs with others between, are of few kinds, and such as are nearly so."""
    rng = np.random.default_rng(size)
    x = rng.integers(-30_000, 30_000, size)
    rising, tied = np.sort(x), np.sort(rng.integers(0, 50, size))
    third = size // 3
    moved, added = rising.copy(), rising.copy()
    moved[size // 2], added[-10:] = rising[3], x[:10]
    yield from (x, rising, rising[::-1], tied, tied[::-1], np.full(size, 3), moved, moved[::-1], added)
    yield np.concatenate([np.sort(x[:third]), np.sort(x[third:])])
    yield np.concatenate([np.sort(x[:third]), x[:40], np.sort(x[third + 40 :])])
    yield np.concatenate([np.sort(tied[::2]), np.sort(tied[1::2])])
    yield from (rng.integers(0, kinds, size) for kinds in (4, 100, 140))
    yield np.where(np.arange(size) < size - 2, rng.integers(0, 8, size), 77)
    yield np.where(np.arange(size) < size - 2, rng.integers(0, 120, size), np.arange(size))


def special(dtype: str, size: int) -> Iterator[np.ndarray]:
    """Few kinds of floats that compare equal or with nothing, in any order, rising and falling; extreme integers."""
    rng = np.random.default_rng(size)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        pool = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, -np.nan], kind)
    else:
        pool = np.array([np.iinfo(kind).min, np.iinfo(kind).max, 0, 1], kind)
    x = rng.choice(pool, size)
    yield from (x, np.sort(x), np.sort(x)[::-1])


@pytest.mark.parametrize(
    ("dtype", "descending"),
    [("float32", True), ("float64", False), ("float16", False), ("int64", True), ("uint32", False), ("int16", True)],
)
def test_the_positions_are_those_of_a_stable_sort(dtype: str, descending: bool) -> None:
    run: Any = weft.compile(program(dtype, "'n',", descending))["main"]
    for size in SIZES:
        for row in (*(row.astype(dtype) for row in rows(dtype, size)), *special(dtype, size)):
            order = np.argsort(row[::-1] if descending else row, kind="stable")
            np.testing.assert_array_equal(run(row), size - 1 - order[::-1] if descending else order)


def test_rows_are_written_into_the_result_by_any_number_of_threads() -> None:
    x = np.stack([row.astype("float32") for row in rows("float32", 5_003)])
    run = weft.compile(program("float32", f"{len(x)}, 5003", False))["main"]
    before = weft.get_num_threads()
    try:
        for threads in (1, 2):
            weft.set_num_threads(threads)
            np.testing.assert_array_equal(run(x), np.argsort(x, 1, kind="stable"))
    finally:
        weft.set_num_threads(before)


def test_the_kernel_means_the_same_where_it_asks_for_known_positions() -> None:
    x = np.stack([row.astype("int32") for row in rows("int32", 520)][:6])
    module = program("int32", "6, 520", True)
    lowered = run_phases(module, WIDE, stop="legalize")
    kernels = [function for function in lowered.functions.values() if isinstance(function, PrimFunc)]
    calls = {str(part.op) for kernel in kernels for part in walk(kernel.body) if isinstance(part, PrimCall)}
    assert "sort_positions" in calls
    weft.testing.assert_same_meaning(module, lowered, arguments=[x])
