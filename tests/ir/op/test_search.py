"""Searches in sorted boundaries, against NumPy: every length, ties, nan, both sides."""

from __future__ import annotations

import numpy as np
import pytest

import weft


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_search_finds_what_numpy_finds(known: bool, right: bool) -> None:
    random = np.random.default_rng(0)
    values = np.concatenate([random.integers(-5, 50, 40), [np.nan, np.inf, -np.inf]]).astype("float32")
    compiled = None
    for size in (40,) if known else (0, 1, 2, 3, 7, 40, 100):
        drawn = np.concatenate([random.integers(0, 45, size), [np.nan]])
        boundaries = np.sort(drawn.astype("float32"))[: size + size % 3]  # some end with a nan
        count = len(boundaries) if known else '"k"'
        if compiled is None:
            compiled = weft.compile(
                weft.parse(f"""@R.function
def main(s: R.Tensor(({count},), "float32"), x: R.Tensor(("n",), "float32")):
    y = R.searchsorted(s, x, right={right})
    return y
""")
            )["main"]
        want = np.searchsorted(boundaries, values, "right" if right else "left")
        np.testing.assert_array_equal(compiled(boundaries, values), want, str(size))
