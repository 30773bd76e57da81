"""The middle of a row by vector code: of equal elements the first that a stable sort puts there, the last nan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import weft

LONG, SAMPLE = 2048, 1024


def rows(dtype: str, size: int) -> Iterator[np.ndarray]:
    """Random, in order, of few kinds, equal, equal but for few, and such that mislead a sample at even distances."""
    rng, counted = np.random.default_rng(size), np.arange(size)
    random = rng.integers(-30_000, 30_000, size)
    sampled = counted % max(size // SAMPLE, 1) == 0
    yield from (random, np.sort(random), np.sort(random)[::-1], rng.integers(0, 4, size), np.full(size, 7))
    yield np.where(counted == size // 3, 8, 7)
    yield from (np.where(sampled, 31_000, random), np.where(sampled, random, -31_000))
    yield np.where(counted % 2 == 0, 1, random)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16"])
def test_the_middle_is_where_a_stable_sort_has_it(dtype: str) -> None:
    text = f'@R.function\ndef main(x: R.Tensor(("n",), "{dtype}")):\n    return R.median(x, axis=0)'
    run = weft.compile(weft.parse(text))["main"]
    for size in (16, 32, 33, 65, 1000, LONG - 1, LONG, LONG + 1, 20_011, 32 * LONG + 1):
        for x in (row.astype(dtype) for row in rows(dtype, size)):
            for nan in (False, True) if x.dtype.kind == "f" else (False,):
                x[:: size // 3] = np.nan if nan else x[:: size // 3]
                order = np.argsort(x, kind="stable")
                wanted = order[-1] if nan else order[(size - 1) // 2]
                value, position = run(x)
                assert position == wanted
                np.testing.assert_array_equal(value, x[wanted])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [3, 700])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_the_kth_is_where_a_stable_sort_has_it(dtype: str, k: int, largest: bool) -> None:
    text = f'@R.function\ndef main(x: R.Tensor(("n",), "{dtype}")):\n    return R.kthvalue(x, {k}, largest={largest})'
    run = weft.compile(weft.parse(text))["main"]
    for size in (700, 701, LONG - 1, 5000):
        for x in (row.astype(dtype) for row in rows(dtype, size)):
            if x.dtype.kind == "f":
                x[:: size // 3], x[1 :: size // 4] = np.nan, -0.0
            order = np.argsort(x, kind="stable")
            if largest:  # of equal elements the first counts as the greatest too
                order = size - 1 - np.argsort(x[::-1], kind="stable")[::-1]
            value, position = run(x)
            assert position == order[k - 1]
            np.testing.assert_array_equal(value, x[order[k - 1]])


@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 5000), [1]), ((5000, 3), [0]), ((2, 50, 60), [1, 2]), ((70_001,), [0])]
)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint16"])
def test_the_middle_of_rows_of_known_sizes(dtype: str, shape: tuple[int, ...], axes: list[int]) -> None:
    text = f'@R.function\ndef main(x: R.Tensor({shape}, "{dtype}")):\n    return R.median(x, axis={axes})'
    run = weft.compile(weft.parse(text))["main"]
    x = np.random.default_rng(0).integers(0, 3000, shape).astype(dtype)
    found = run(x)
    size = int(np.prod([shape[a] for a in axes]))
    wanted = np.take(np.sort(np.moveaxis(x, axes, range(len(axes))).reshape(size, -1), 0), (size - 1) // 2, 0)
    np.testing.assert_array_equal(np.ravel(found[0] if len(axes) == 1 else found), wanted)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int16", "uint32"])
def test_keys_that_are_kept_mean_what_the_interpreter_says(dtype: str, descending: bool) -> None:
    width, size = np.dtype(dtype).itemsize, 103
    word = max(width, 4)
    low, high = 1 << (8 * width - 2), 3 << (8 * width - 2)
    text = f"""
@T.prim_func
def main(
    x: T.Buffer(({size},), "{dtype}"),
    keys: T.Buffer(({size},), "uint{8 * word}"),
    counts: T.Buffer((3,), "uint64"),
):
    for i in range({size}):
        keys[i] = T.uint{8 * word}(0)
    T.evaluate(T.keep_keys(T.address_of(keys[0]), T.address_of(counts[0]), T.address_of(x[0]), {size},
               T.uint{8 * width}({low}), T.uint{8 * width}({high}), {descending}))
"""
    module, results = weft.parse(text), list[tuple[np.ndarray, ...]]()
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size * width, "uint8").view(dtype)
    if x.dtype.kind == "f":
        x[::7], x[1::7], x[2::7], x[3::7] = np.nan, -np.nan, -0.0, 0.0
    for run in (weft.compile(module)["main"], weft.interpret(module)["main"]):
        keys, counts = np.zeros(size, f"uint{8 * word}"), np.zeros(3, "uint64")
        run(x, keys, counts)
        results.append((keys[: int(counts[1])], counts))
    for compiled, meant in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, meant)
    assert results[0][1].sum() > 0


def test_a_kth_value_of_fewer_elements_is_refused() -> None:
    run = weft.compile(weft.parse('@R.function\ndef main(x: R.Tensor(("n",), "int32")):\n    return R.kthvalue(x, 40)'))
    with pytest.raises(weft.ShapeError, match="k is 40"):
        run["main"](np.zeros(39, "int32"))
    with pytest.raises(weft.ShapeError, match="W205"):
        weft.parse('@R.function\ndef main(x: R.Tensor((9,), "int32")):\n    return R.kthvalue(x, 10)')
