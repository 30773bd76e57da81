"""Sorting of many elements: by digits of keys, against NumPy, with nan, zeros of both signs, ties and every dtype."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.testing

DTYPES = ("float32", "float64", "float16", "int8", "int32", "int64", "uint8", "uint16", "uint64")


def values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        data = (rng.standard_normal(shape) * 100).round(1).astype(dtype)
        flat = data.reshape(-1)
        flat[rng.integers(0, flat.size, flat.size // 10)] = np.nan
        flat[rng.integers(0, flat.size, flat.size // 10)] = -0.0
        flat[rng.integers(0, flat.size, flat.size // 10)] = 0.0
        flat[:2] = np.inf, -np.inf
        return data
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def order(x: np.ndarray, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)


def program(dims: str, dtype: str, body: str, symbols: str = "") -> weft.IRModule:
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor(({dims}), "{dtype}")):\n{symbols}    return {body}')
    return weft.IRModule({"main": made})  # type: ignore[dict-item]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted_and_equal_elements_keep_their_order(dtype: str) -> None:
    descending = dtype in ("float32", "int8", "uint64")
    x = values(dtype, (3, 200))
    body = f"(R.sort(x, descending={descending}), R.argsort(x, descending={descending}))"
    ordered, positions = weft.compile(program("3, 200", dtype, body))["main"](x)
    wanted = order(x, descending)
    np.testing.assert_array_equal(positions, wanted)
    expected = np.take_along_axis(x, wanted, -1)
    np.testing.assert_array_equal(ordered, expected)
    if dtype.startswith("float"):
        np.testing.assert_array_equal(np.signbit(ordered), np.signbit(expected))


def test_symbolic_rows_take_the_sort_that_their_size_asks_for() -> None:
    run = weft.compile(program('"n",', "float32", "(R.sort(x), R.argsort(x, descending=True))"))["main"]
    for size in (1, 95, 96, 97, 300, 9000):
        x = values("float32", (size,), size) if size > 20 else np.ones(size, "float32")
        ordered, positions = run(x)
        np.testing.assert_array_equal(ordered, x[order(x, False)])
        np.testing.assert_array_equal(positions, order(x, True))


def test_many_elements_take_wider_digits_and_a_large_k() -> None:
    x = values("float32", (20000,))
    run = weft.compile(program("20000,", "float32", 'R.topk(x, k=500, ret_type="both")'))["main"]
    found, positions = run(x)
    wanted = order(x, True)[:500]
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(found, x[wanted])
    wide = values("int64", (10000,))
    ordered = weft.compile(program("10000,", "int64", "R.sort(x)"))["main"](wide)
    np.testing.assert_array_equal(ordered, np.sort(wide))


def test_the_interpreter_runs_the_loops_as_compiled_code_does() -> None:
    x = values("float32", (2, 100))
    module = program("2, 100", "float32", "(R.sort(x), R.argsort(x), R.median(x, axis=1))")
    weft.testing.assert_same_meaning(module, weft.compile(module), arguments=[x])
    weft.testing.assert_same_meaning(module, weft.transform.LegalizeOps()(module), arguments=[x])


@pytest.mark.parametrize(("dtype", "dims", "symbolic"), [("float32", "3, 200", False), ("int8", '3, "n"', True)])
def test_the_few_first_are_selected_in_one_walk(dtype: str, dims: str, symbolic: bool) -> None:
    x = values(dtype, (3, 200))
    run = weft.compile(program(dims, dtype, 'R.topk(x, k=7, ret_type="both", largest=True)'))["main"]
    found, positions = run(x)
    wanted = order(x, True)[:, :7]
    np.testing.assert_array_equal(positions, wanted)
    np.testing.assert_array_equal(found, np.take_along_axis(x, wanted, -1))
    if symbolic:
        with pytest.raises(weft.ShapeError, match=r"R\.topk"):
            run(x[:, :5])
