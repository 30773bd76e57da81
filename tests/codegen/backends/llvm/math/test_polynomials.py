"""exp, log, erf, pow and the like in vector code: close to the exact values everywhere, special values included.

How close is stated in docs/guide/performance.md, and read from there.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import module

import weft

PAGE = Path(__file__).parents[5] / "docs" / "guide" / "performance.md"
ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)
BOUNDS = {name: {"float32": float(a), "float64": float(b)} for name, a, b in ROW.findall(PAGE.read_text())}


def compiled(name: str, dtype: str = "float32", opt: int = 2, target: str = "llvm", inputs: int = 1) -> Any:
    params = "".join(f'x{i}: T.Buffer(("n",), "{dtype}"), ' for i in range(inputs))
    given = ", ".join(f"x{i}[i]" for i in range(inputs))
    text = f"""
@T.prim_func
def main({params}y: T.Buffer(("n",), "{dtype}")):
    for i in range(n):
        y[i] = T.{name}({given})
"""
    return weft.compile(module(text), target=target, opt=opt)


@functools.cache
def values(dtype: str) -> np.ndarray:
    """Numbers of all sizes (any bits may be drawn), more of them where functions bend, and the special ones."""
    random = np.random.default_rng(0)
    count = 10_000
    unsigned = dtype.replace("float", "uint")
    any_bits = random.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(dtype)
    near = [random.uniform(-bound, bound, count) for bound in (1, 8, 100, 750, 1e6)]
    quarters = np.arange(-2000, 2000) * (np.pi / 2)
    small = np.logspace(-323, 0, 2000)
    edges = [0.0, np.inf, np.nan, 88.7228, 88.7229, 103.9, 87.4, 709.782712893384, 709.7827128933841, 745.13, 745.14]
    edges += [1e30, 1e6, 1000001.0, 3.4028235e38, 1.1754944e-38, 1e-45, 5e-324, 2.2250738585072014e-308, 1.7976931e308]
    edges += [1.0, 708.4]
    with np.errstate(over="ignore"):
        rest = [*near, quarters, small, -small, 1 + random.uniform(-1e-5, 1e-5, count), edges, np.negative(edges)]
        return np.concatenate([any_bits, *(part.astype(dtype) for part in map(np.asarray, rest))])


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """The values in a longer format."""
    x = x.astype("longdouble")
    if name == "sigmoid":
        return 1 / (1 + np.exp(-x))
    if name == "rsqrt":
        return 1 / np.sqrt(x)
    return error_function(x) if name == "erf" else getattr(np, name)(x)


def error_function(x: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) exp(-x**2) (x + 2 x**3 / 3 + 4 x**5 / 15 + ...), whose terms have one sign."""
    inner = np.clip(x, -7, 7)
    term = total = inner
    for n in range(1, 180):
        term = term * (2 * inner * inner / (2 * n + 1))
        total = total + term
    root = np.sqrt(np.longdouble("3.14159265358979323846264338327950288"))
    return total * np.exp(-inner * inner) * 2 / root


def assert_close(got: np.ndarray, value: np.ndarray, bound: float) -> None:
    """Within `bound` units in the last place of the value; equal where there are none, zeros by their signs too."""
    want = value.astype(got.dtype)
    error = np.abs(got.astype("longdouble") - value) / np.spacing(np.abs(want)).astype("longdouble")
    finite = np.isfinite(want)
    assert float(error[finite].max()) <= bound
    np.testing.assert_array_equal(got[~finite], want[~finite])
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


FUNCTIONS = ("exp", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")
TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")


def test_every_function_has_stated_bounds() -> None:
    assert set(BOUNDS) == {*FUNCTIONS, "pow"}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_results_are_within_the_stated_units_in_the_last_place(name: str, dtype: str, target: str) -> None:
    x = values(dtype)
    y = np.zeros_like(x)
    compiled(name, dtype, target=target)["main"](x, y)
    with np.errstate(all="ignore"):
        assert_close(y, exact(name, x), BOUNDS[name][dtype])


@pytest.mark.parametrize("opt", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
def test_the_bounds_hold_for_single_elements_and_every_level(name: str, dtype: str, opt: int) -> None:
    x = values(dtype)[:4000]
    y = np.zeros_like(x)
    compiled(name, dtype, opt)["main"](x, y)
    with np.errstate(all="ignore"):
        assert_close(y, exact(name, x), BOUNDS[name][dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_over_them_is_vector_code(name: str, dtype: str) -> None:
    text = compiled(name, dtype).source("llvm")
    library = "f" if dtype == "float32" else ""
    assert f"@{name}{library}(" not in text
    if name not in ("sin", "cos"):  # large arguments go there
        assert f"@llvm.{name}." not in text
    assert "> @llvm.floor" not in text


def factors(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents: results of all sizes, bases near 1, whole powers of negative ones, every special pair."""
    random = np.random.default_rng(0)
    top = 88 if dtype == "float32" else 709
    special = [0.0, 1, 2, 3, 0.5, 2.5, 1e-45, 5e-324, 3.4e38, 1.79e308, np.inf, np.nan, 16777217, 2.0**53 + 2, 2.0**60]
    special = np.concatenate([special, np.negative(special)])
    bases = np.exp(random.uniform(-0.98 * top, 0.98 * top, 20_000))
    near = 1 + random.uniform(-1e-3, 1e-3, 20_000)
    with np.errstate(all="ignore"):
        x = np.concatenate([np.repeat(special, len(special)), bases, near, -np.arange(1.0, 2001)]).astype(dtype)
        y = np.concatenate(
            [
                np.tile(special, len(special)),
                random.uniform(-top, top, 20_000) / np.log(bases),
                random.uniform(-9e4, 9e4, 20_000),
                np.arange(2000) % 11 - 5,
            ]
        ).astype(dtype)
    return x, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_powers_are_within_one_unit_in_the_last_place(dtype: str, target: str) -> None:
    x, y = factors(dtype)
    z = np.zeros_like(x)
    compiled("pow", dtype, target=target, inputs=2)["main"](x, y, z)
    with np.errstate(all="ignore"):
        assert_close(z, np.power(x.astype("longdouble"), y.astype("longdouble")), BOUNDS["pow"][dtype])


@pytest.mark.parametrize("exponent", [3.0, 4.0, 7.0, 8.0, -2.0, -3.0, -0.5])
def test_powers_that_are_known_need_no_library_and_are_rounded_once(exponent: float) -> None:
    random = np.random.default_rng(0)
    special = [0.0, -0.0, 1, -1, 1e-45, -1e-45, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan, 2.5, -2.5]
    x = np.concatenate([special, np.exp(random.uniform(-90, 88, 20_000)), random.uniform(-9, 9, 20_000)])
    x = x.astype("float32")
    y = np.zeros_like(x)
    executable = weft.compile(
        module(f"""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = T.pow(x[i], T.float32({exponent}))
""")
    )
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


@pytest.mark.parametrize(("dtype", "erf"), [("float32", "@erff("), ("float64", "@erf(")])
def test_a_target_may_ask_for_the_c_library(dtype: str, erf: str) -> None:
    assert erf in compiled("erf", dtype, target="llvm -strict_math=true").source("llvm")
    assert "@llvm.pow." in compiled("pow", dtype, target="llvm -strict_math=true", inputs=2).source("llvm")
    assert erf not in compiled("erf", dtype).source("llvm")


def test_the_cube_of_float64_is_two_products() -> None:
    text = compiled("pow", "float64", inputs=2).source("llvm")
    assert "fma" in text
    x = values("float64")
    y = np.zeros_like(x)
    executable = weft.compile(
        module("""
@T.prim_func
def main(x: T.Buffer(("n",), "float64"), y: T.Buffer(("n",), "float64")):
    for i in range(n):
        y[i] = T.pow(x[i], T.float64(3.0))
""")
    )
    executable["main"](x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(y, x * x * x)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bit of the flag is that of x86")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exp_of_what_is_far_below_zero_does_not_underflow(dtype: str, target: str) -> None:
    # Processors take a hundred times as long where a product underflows: masks of attention are full of such values.
    underflow, library = 0x10, ctypes.CDLL(None)
    run, x = compiled("exp", dtype, target=f"{target} -threads=1")["main"], np.full(64, -1e4, dtype)
    x[:32] = [-np.inf, np.finfo(dtype).min] * 16
    y = np.ones_like(x)
    library.feclearexcept(underflow)
    run(x, y)
    assert not library.fetestexcept(underflow)
    assert not y.any()
