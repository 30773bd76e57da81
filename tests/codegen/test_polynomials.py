"""exp and tanh computed in vector code: close to the exact values everywhere, special values included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import module

import weft


def compiled(name: str, opt: int) -> Any:
    return weft.compile(
        module(f"""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = T.{name}(x[i])
"""),
        opt=opt,
    )


VALUES = np.concatenate([
    np.linspace(-110, 95, 200_001),
    np.linspace(-1, 1, 100_001),
    np.logspace(-44, 1, 1000),
    -np.logspace(-44, 1, 1000),
    [0.0, -0.0, np.inf, -np.inf, np.nan, 88.7228, 88.7229, -103.9, -87.4, 1e30, -1e30],
]).astype("float32")  # fmt: skip


@pytest.mark.parametrize("name", ["exp", "tanh"])
@pytest.mark.parametrize("opt", [0, 2, 3])
def test_results_are_within_two_units_in_the_last_place(name: str, opt: int) -> None:
    y = np.zeros_like(VALUES)
    compiled(name, opt)["main"](VALUES, y)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(VALUES.astype("float64"))
        want = exact.astype("float32")
        spacing = np.spacing(np.abs(want)).astype("float64")
        error = np.abs(y.astype("float64") - exact) / spacing
    finite = np.isfinite(want)
    assert error[finite].max() <= 2
    np.testing.assert_array_equal(y[~finite], want[~finite])
    assert np.signbit(y[VALUES == 0]).tolist() == np.signbit(want[VALUES == 0]).tolist()


def test_a_loop_over_them_is_vector_code() -> None:
    text = compiled("exp", 2).source("llvm")
    assert "x float> @llvm" in text or "fmul contract <" in text
    assert "expf" not in text
