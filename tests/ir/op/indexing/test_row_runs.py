"""Rows in order, or in the opposite one, are found by a walk: the same results as where they are sorted."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import PrimFunc, walk
from weft.ir.tensor import AllocBuffer
from weft.transform import LegalizeOps

CALLS = {
    "values": "R.sort(x)",
    "falling": "R.sort(x, descending=True)",
    "positions": "R.argsort(x)",
}


def module(shape: str, dtype: str) -> weft.IRModule:
    text = "@I.ir_module\nclass M:\n"
    for name, call in CALLS.items():
        text += (
            f'    @R.function\n    def {name}(x: R.Tensor({shape}, "{dtype}")):\n        y = {call}\n        return y\n'
        )
    found = weft.parse(text)
    assert isinstance(found, weft.IRModule)
    return found


def rows(dtype: str, size: int) -> list[np.ndarray]:
    """Rows with runs of all kinds, and such as have one but for an element at the end."""
    random = np.random.default_rng(size)
    rising = np.sort(random.integers(-900, 900, size)).astype(dtype)
    strict = (np.arange(size) - size // 2).astype(dtype)
    nearly = rising.copy()
    nearly[-1] = nearly[0] - 1
    found = [rising, rising[::-1].copy(), strict, strict[::-1].copy(), np.full(size, 7, dtype), nearly]
    if np.dtype(dtype).kind == "f":
        zeros = np.where(random.integers(0, 2, size), 0.0, -0.0).astype(dtype)
        last, first = rising.copy(), rising.copy()
        last[-3:], first[:2] = np.nan, np.nan
        found += [zeros, last, first, np.full(size, np.nan, dtype), np.full(size, np.inf, dtype)]
    return found


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_rows_in_order_give_what_sorting_gives(dtype: str) -> None:
    tested = module('("n",)', dtype)
    compiled, meant = weft.compile(tested), weft.interpret(tested)
    for size in (600, 300):
        for x in rows(dtype, size):
            for name in CALLS:
                got, want = compiled[name](x), meant[name](x)
                for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
                    assert a.tobytes() == b.tobytes(), name


def test_each_row_is_looked_at() -> None:
    x = np.stack([np.arange(700), np.arange(700)[::-1], np.arange(700) % 7]).astype("int64")
    tested = module("(3, 700)", "int64")
    np.testing.assert_array_equal(weft.compile(tested)["values"](x), np.sort(x, 1))


def test_short_rows_are_sorted_at_once() -> None:
    def flags(shape: str) -> bool:
        kernels = (item for item in LegalizeOps()(module(shape, "int64")).functions.values())
        parts = (part for kernel in kernels if isinstance(kernel, PrimFunc) for part in walk(kernel))
        return any(isinstance(part, AllocBuffer) and part.buffer.name == "unlike_rising" for part in parts)

    assert flags("(700,)")
    assert not flags("(100,)")
