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


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_elements_are_looked_for_in_large_sets(dtype: str) -> None:
    head = f'x: R.Tensor(("n",), "{dtype}"), s: R.Tensor((90,), "{dtype}")'
    text = f"@R.function\ndef main({head}):\n    return R.isin(x, s)"
    run = weft.compile(weft.parse(text))["main"]
    rng = np.random.default_rng(0)
    for size in (0, 1, 500):
        x, s = (rng.integers(0, 250, count).astype(dtype) for count in (size, 90))
        if x.dtype.kind == "f":
            x[::5], x[1::7], s[::9], s[4] = np.nan, -0.0, np.nan, 0.0
        np.testing.assert_array_equal(run(x, s), np.isin(x, s))


@pytest.mark.parametrize("dtype", ["float32", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("count", ["2, 3", "0", "64", "300", '"m", 3'])
def test_elements_are_looked_for_in_sets_of_any_size(dtype: str, count: str) -> None:
    head = f'x: R.Tensor(("n", 3), "{dtype}"), s: R.Tensor(({count},), "{dtype}")'
    rng = np.random.default_rng(0)
    shape = tuple(int(part.strip('"').replace("m", "20")) for part in count.split(", "))
    for invert in (False, True):
        run = weft.compile(weft.parse(f"@R.function\ndef main({head}):\n    return R.isin(x, s, {invert})"))["main"]
        for size in (1, 50):
            x, s = (rng.integers(0, 256, each).astype(dtype) for each in ((size, 3), shape))
            if dtype == "bool":
                s[:] = True
            elif dtype == "float32" and s.size:
                x[0, 0], x[0, 1], s.reshape(-1)[-2:] = np.nan, -0.0, (np.nan, 0.0)
            np.testing.assert_array_equal(run(x, s), np.isin(x, s, invert=invert))
