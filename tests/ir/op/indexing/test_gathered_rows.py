"""Rows that indices choose: joined as they are read, never gathered into memory first."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import PrimFunc
from weft.transform.autoschedule.explain import explain

JOINED = {"sum": np.sum, "mean": np.mean, "max": np.max}


def text(value: str, dims: str, size: object = 8, dtype: str = "float32") -> str:
    return f"""@R.function
def main(x: R.Tensor({dims}, "{dtype}"), i: R.Tensor(("b", {size!r}), "int64")):
    with R.dataflow():
        y = {value}
        R.output(y)
    return y
"""


@pytest.mark.parametrize("value", ['R.nn.embedding_bag(x, i, mode="sum")', "R.sum(R.take(x, i, axis=0), axis=1)"])
def test_a_sum_of_gathered_rows_is_one_kernel_over_vectors(value: str) -> None:
    module = weft.lower(weft.parse(text(value, "(50, 32)")), stop="schedule")
    (_,) = [item for _, item in module.items() if isinstance(item, PrimFunc)]
    assert "reduction" in [record["kind"] for record in explain(module)]


@functools.cache
def compiled(value: str, dims: str, size: object, dtype: str) -> Any:
    return weft.compile(weft.parse(text(value, dims, size, dtype)))["main"]


@pytest.mark.parametrize(
    ("mode", "dtype"), [("sum", "float32"), ("mean", "float32"), ("max", "float32"), ("mean", "float16")]
)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_bags_of_one_size_are_joined_as_numpy_joins_them(mode: str, dtype: str, data: st.DataObject) -> None:
    rows, bags = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 7))
    size, columns = data.draw(st.sampled_from([1, 8])), data.draw(st.sampled_from(["40", '"h"']))
    width = data.draw(st.integers(0, 70)) if columns == '"h"' else int(columns)
    x = np.arange(rows * width).reshape(rows, width).astype(dtype) % 31
    places = np.array(
        data.draw(st.lists(st.integers(-rows, rows), min_size=bags * size, max_size=bags * size)), "int64"
    ).reshape(bags, size)
    run = compiled(f'R.nn.embedding_bag(x, i, mode="{mode}")', f'("n", {columns})', size, dtype)
    if (places == rows).any():
        with pytest.raises(weft.BoundsError, match=r"R\.take: index out of range"):
            run(x, places)
    else:
        want = JOINED[mode](x[places].astype("float64"), 1)
        np.testing.assert_allclose(run(x, places), want.astype(dtype), rtol=2e-3 if dtype == "float16" else 1e-6)


def test_bags_without_indices_are_zeros() -> None:
    x, places = np.ones((3, 2), "float32"), np.zeros((4, 0), "int64")
    for mode in JOINED:
        np.testing.assert_array_equal(
            compiled(f'R.nn.embedding_bag(x, i, mode="{mode}")', '("n", 2)', "k", "float32")(x, places), 0
        )


def test_the_mean_of_gathered_rows_keeps_its_vectors() -> None:
    module = weft.lower(weft.parse(text('R.nn.embedding_bag(x, i, mode="mean")', "(50, 1000)")), stop="schedule")
    kinds = [record["kind"] for record in explain(module)]
    assert {"reduction", "elementwise"} <= set(kinds)
