"""exp, log, erf, pow and the like in vector code: close to the exact values everywhere, special values included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import module

import weft


def compiled(name: str, opt: int, target: str = "llvm") -> Any:
    return weft.compile(
        module(f"""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = T.{name}(x[i])
"""),
        target=target,
        opt=opt,
    )


VALUES = np.concatenate([
    np.linspace(-110, 95, 200_001),
    np.linspace(-1, 1, 100_001),
    np.logspace(-44, 1, 1000),
    -np.logspace(-44, 1, 1000),
    [0.0, -0.0, np.inf, -np.inf, np.nan, 88.7228, 88.7229, -103.9, -87.4, 1e30, -1e30],
]).astype("float32")  # fmt: skip


@pytest.mark.parametrize(("name", "bound"), [("exp", 1.5), ("tanh", 2.5)])
@pytest.mark.parametrize(("opt", "target"), [(0, "llvm"), (2, "llvm"), (3, "llvm"), (2, "llvm -mcpu=x86-64-v3")])
def test_results_are_within_the_stated_units_in_the_last_place(name: str, bound: float, opt: int, target: str) -> None:
    y = np.zeros_like(VALUES)
    compiled(name, opt, target)["main"](VALUES, y)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(VALUES.astype("float64"))
        want = exact.astype("float32")
        spacing = np.spacing(np.abs(want)).astype("float64")
        error = np.abs(y.astype("float64") - exact) / spacing
    finite = np.isfinite(want)
    assert error[finite].max() <= bound
    np.testing.assert_array_equal(y[~finite], want[~finite])
    assert np.signbit(y[VALUES == 0]).tolist() == np.signbit(want[VALUES == 0]).tolist()


def test_a_loop_over_them_is_vector_code() -> None:
    text = compiled("exp", 2).source("llvm")
    assert "x float> @llvm" in text or "fmul contract <" in text
    assert "expf" not in text


SPREAD = np.concatenate([
    VALUES,
    np.logspace(-44, 38, 40_001),
    -np.logspace(-44, 38, 40_001),
    np.linspace(0.5, 2.0, 100_001),
    np.linspace(-20, 20, 100_001),
    np.arange(1, 4001) * (np.pi / 2),
    [1e6, 1000001.0, 3.4028235e38, 1.1754944e-38, 1e-45, np.nextafter(np.float32(1), np.float32(0))],
]).astype("float32")  # fmt: skip


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """The values in float64 or better."""
    if name == "erf":
        return np.array([math.erf(value) for value in x.tolist()])
    return getattr(np, name)(x.astype("longdouble"))


@pytest.mark.parametrize("name", ["log", "erf", "sin", "cos"])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
def test_functions_are_within_two_units_in_the_last_place(name: str, target: str) -> None:
    x = SPREAD
    y = np.zeros_like(x)
    text = f"""
@T.prim_func
def main(x: T.Buffer(({len(x)},), "float32"), y: T.Buffer(({len(x)},), "float32")):
    for i in T.vectorized({len(x)}):
        y[i] = T.{name}(x[i])
"""
    executable = weft.compile(module(text), target=target)
    executable["main"](x, y)
    with np.errstate(all="ignore"):
        value = exact(name, x)
        want = value.astype("float32")
        error = np.abs(y.astype("longdouble") - value) / np.spacing(np.abs(want)).astype("longdouble")
    finite = np.isfinite(want)
    assert float(error[finite].max()) <= 2
    np.testing.assert_array_equal(y[~finite], want[~finite])
    np.testing.assert_array_equal(np.signbit(y[want == 0]), np.signbit(want[want == 0]))
    assert "> @llvm.floor" not in executable.source("llvm")


def test_powers_are_within_one_unit_in_the_last_place() -> None:
    random = np.random.default_rng(0)
    special = np.array(
        [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e-45, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 16777217, 2.5],
        "float32",
    )
    x = np.concatenate([np.repeat(special, len(special)), np.exp(random.uniform(-80, 80, 100_000)),
                        1 + random.uniform(-1e-3, 1e-3, 10_000), -np.arange(1, 2001)]).astype("float32")  # fmt: skip
    y = np.concatenate([np.tile(special, len(special)), random.uniform(-3, 3, 100_000),
                        random.uniform(-9e4, 9e4, 10_000), np.arange(2000) % 11 - 5]).astype("float32")  # fmt: skip
    z = np.zeros_like(x)
    weft.compile(module("""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), z: T.Buffer(("n",), "float32")):
    for i in range(n):
        z[i] = T.pow(x[i], y[i])
"""))["main"](x, y, z)  # fmt: skip
    with np.errstate(all="ignore"):
        value = np.power(x.astype("longdouble"), y.astype("longdouble"))
        want = value.astype("float32")
        error = np.abs(z.astype("longdouble") - value) / np.spacing(np.abs(want)).astype("longdouble")
    finite = np.isfinite(want)
    assert float(error[finite].max()) <= 1
    np.testing.assert_array_equal(z[~finite], want[~finite])
    np.testing.assert_array_equal(np.signbit(z[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("exponent", [3.0, 4.0, 7.0, 8.0, -2.0, -3.0, -0.5])
def test_powers_that_are_known_need_no_library_and_are_rounded_once(exponent: float) -> None:
    random = np.random.default_rng(0)
    special = [0.0, -0.0, 1, -1, 1e-45, -1e-45, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 2.5, -2.5]
    x = np.concatenate([special, np.exp(random.uniform(-90, 88, 20_000)), random.uniform(-9, 9, 20_000)])
    x = x.astype("float32")
    y = np.zeros_like(x)
    executable = weft.compile(module(f"""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = T.pow(x[i], T.float32({exponent}))
"""))  # fmt: skip
    executable["main"](x, y)
    assert "@llvm.pow" not in executable.source("llvm")
    with np.errstate(all="ignore"):
        value = np.power(x.astype("longdouble"), np.longdouble(exponent))
        want = value.astype("float32")
        error = np.abs(y.astype("longdouble") - value) / np.spacing(np.abs(want)).astype("longdouble")
    finite = np.isfinite(want)
    assert float(error[finite].max()) <= (0.501 if exponent != -0.5 else 1)
    np.testing.assert_array_equal(y[~finite], want[~finite])
    np.testing.assert_array_equal(np.signbit(y[want == 0]), np.signbit(want[want == 0]))


def test_a_target_may_ask_for_the_c_library() -> None:
    text = """
@T.prim_func
def main(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.vectorized(64):
        y[i] = T.erf(x[i])
"""
    assert "@erff" in weft.compile(module(text), target="llvm -strict_math=true").source("llvm")
    assert "@erff" not in weft.compile(module(text)).source("llvm")
