"""The bounds of docs/reference/accuracy.md hold: types, sizes, levels and values as hypothesis draws them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dataflow import dataflow_module

import weft
from weft.ir import IRModule
from weft.testing.accuracy import ACCURACY, Accuracy, Case

TYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
PAIRS = [(row, case) for row in ACCURACY for case in row.cases]


def module_of(case: Case, shapes: Any, dtype: str) -> IRModule:
    params = ", ".join(f'x{place}: R.Tensor({shape}, "{dtype}")' for place, shape in enumerate(shapes))
    value = case.script.format(*(f"x{place}" for place in range(len(shapes))))
    return dataflow_module(params, f"y = {value}")


def symbolic(shapes: Any, n: int) -> list[str]:
    """The shapes with a symbol for every size that is n."""
    return ["(" + "".join('"n", ' if size == n else f"{size}, " for size in shape) + ")" for shape in shapes]


def drawn(case: Case, shapes: Any, dtype: str, seed: int, is_positive: bool) -> list[Any]:
    rng = np.random.default_rng(seed)
    low, high = case.ranges
    low = max(low, 0.25) if is_positive else low
    return [rng.uniform(low, high, shape).astype(TYPES[dtype]) for shape in shapes]


def excess(row: Accuracy, case: Case, operands: Any, dtype: str, result: Any, n: int, is_known: bool) -> float:
    """The greatest error of normal results, over its bound."""
    wide = [operand.astype("float64") for operand in operands]
    exact = np.asarray(case.exact(*wide))
    limit = row.bound(case, operands, dtype, n, is_known)
    error = np.abs(np.asarray(result).astype("float64") - exact)
    assert result.shape == exact.shape
    normal = (np.abs(exact) < float(ml_dtypes.finfo(TYPES[dtype]).max)) & (
        np.abs(exact) >= float(ml_dtypes.finfo(TYPES[dtype]).smallest_normal)
    )
    return float(np.max((error / limit)[normal | (exact == 0)], initial=0.0))


def sums(case: Case, n: int, m: int) -> int:
    return n * m if "[0, 1]" in case.script else n


@settings(max_examples=120)
@given(
    st.sampled_from(PAIRS),
    st.sampled_from(list(TYPES)),
    st.sampled_from((0, 1, 2, 3)),
    st.integers(1, 70) | st.sampled_from((127, 1000, 5000)),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.integers(0, 1 << 30),
)
def test_results_are_within_their_bounds(
    pair: tuple[Accuracy, Case], dtype: str, opt: int, n: int, m: int, is_symbolic: bool, is_positive: bool, seed: int
) -> None:
    row, case = pair
    shapes = row.shapes(n, m)
    operands = drawn(case, shapes, dtype, seed, is_positive)
    is_symbolic = is_symbolic and not row.constants
    module = module_of(case, symbolic(shapes, n) if is_symbolic else shapes, dtype)
    constants = {f"x{place}": operands[place] for place in row.constants}
    others = [operand for place, operand in enumerate(operands) if place not in row.constants]
    result = weft.compile(module, opt=opt, params=constants)["main"](*others)
    assert excess(row, case, operands, dtype, result, sums(case, n, m), not is_symbolic) <= 1


@settings(max_examples=60)
@given(
    st.sampled_from(PAIRS),
    st.sampled_from(list(TYPES)),
    st.integers(1, 300),
    st.integers(1, 5),
    st.integers(0, 1 << 30),
)
def test_the_interpreter_is_within_them_too(pair: tuple[Accuracy, Case], dtype: str, n: int, m: int, seed: int) -> None:
    row, case = pair
    shapes = row.shapes(n, m)
    operands = drawn(case, shapes, dtype, seed, False)
    result = weft.interpret(module_of(case, shapes, dtype))["main"](*operands)
    assert excess(row, case, operands, dtype, result, sums(case, n, m), False) <= 1


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("place", [place for place, (row, _) in enumerate(PAIRS) if row.chains == 1])
def test_long_sums_are_within_their_bounds(place: int, opt: int) -> None:
    row, case = PAIRS[place]
    n, m = 100_000, 2
    shapes = row.shapes(n, m)
    operands = drawn(case, shapes, "float32", place, True)
    result = weft.compile(module_of(case, shapes, "float32"), opt=opt)["main"](*operands)
    assert excess(row, case, operands, "float32", result, sums(case, n, m), True) <= 1


def test_products_of_symbolic_sizes_sum_in_blocks_where_they_are_packed() -> None:
    text = """
@R.function
def main(a: R.Tensor(("m", "k"), "float32"), b: R.Tensor(("k", "n"), "float32")):
    y = R.matmul(a, b)
    return y
"""
    generator = np.random.default_rng(0)
    a, b = (generator.random(size=shape).astype("float32") for shape in ((32, 100_000), (100_000, 64)))
    got, exact = weft.compile(weft.parse(text))["main"](a, b), a.astype("float64") @ b.astype("float64")
    assert np.abs(got - exact).max() < 4e-6 * exact.max()


def test_a_bound_that_is_broken_is_noticed() -> None:
    row, case = PAIRS[0]
    operands = drawn(case, row.shapes(8, 2), "float16", 0, True)
    result = np.add(*operands)
    assert excess(row, case, operands, "float16", result, 8, True) <= 1
    assert excess(row, case, operands, "float16", np.nextafter(result, np.float16(9)), 8, True) > 1
