"""Positions of elements that are not zero, by vector code: whole vectors, what is left of them, and too little room."""

from __future__ import annotations

import numpy as np
import pytest

import weft

DTYPES = ("bool", "int8", "uint16", "float16", "int32", "float32", "float64", "int64")


def some(dtype: str, size: int, share: float) -> np.ndarray:
    """Elements of which a share is not zero; among floats some are -0.0 or nan."""
    x = (np.random.default_rng(size).random(size) < share).astype(dtype)
    if x.dtype.kind == "f":
        x[1::9], x[2::9] = -0.0, np.nan
    return x


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_are_those_of_numpy(dtype: str) -> None:
    run = weft.compile(weft.parse(f'@R.function\ndef main(x: R.Tensor(("n",), "{dtype}")):\n    return R.nonzero(x)'))
    for size in (0, 1, 7, 8, 9, 63, 1003):
        for share in (0, 0.03, 0.5, 1):
            x = some(dtype, size, share)
            for each in (x, np.concatenate([x, np.zeros(40, dtype)])):
                np.testing.assert_array_equal(run["main"](each), np.stack(np.nonzero(each)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_that_are_kept_mean_what_the_interpreter_says(dtype: str) -> None:
    size, x = 103, some(dtype, 103, 0.4)
    for room in (0, 1, 8, 30, 103):
        module = weft.parse(f"""
@T.prim_func
def main(x: T.Buffer(({size},), "{dtype}"), to: T.Buffer(({size},), "int64"), counts: T.Buffer((1,), "int64")):
    for i in range({size}):
        to[i] = T.int64(-1)
    T.evaluate(T.keep_positions(T.address_of(to[0]), T.address_of(counts[0]), T.address_of(x[0]), {size}, {room}))
""")
        results = list[tuple[np.ndarray, np.ndarray]]()
        for run in (weft.compile(module)["main"], weft.interpret(module)["main"]):
            to, counts = np.zeros(size, "int64"), np.zeros(1, "int64")
            run(x, to, counts)
            assert (to[room:] == -1).all()  # what is in the room behind the positions is anything
            results.append((to[: min(room, int(counts[0]))], counts))
        for compiled, meant in zip(*results, strict=True):
            np.testing.assert_array_equal(compiled, meant)
        assert results[0][1] == np.count_nonzero(x)
