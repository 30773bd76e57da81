"""LowerComplex: kernels over complex numbers compute what the interpreter does with NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import IRModule, PrimFunc, te, verify, walk
from weft.ir.kernel.views import ADDRESSES
from weft.ir.tensor import BufferLoad, For, PrimCall, PrimExpr
from weft.script import tir as T
from weft.transform import LegalizeOps, LowerComplex

VALUES = [0.0, -0.0, 1.0, -2.5, 3e-5, 1e30, np.inf, -np.inf, np.nan]


def random(*shape: int, dtype: str = "complex64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def ran(function: PrimFunc, *arrays: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the interpreter writes and what machine code does, for one output."""
    written, compiled = out.copy(), out.copy()
    weft.interpret(function)(*arrays, written)
    weft.compile(function)["main"](*arrays, compiled)
    return written, compiled


def kernel(formula: Callable[..., Any], dtype: str, result: str | None = None) -> PrimFunc:
    n = te.var("n")
    x, y = te.placeholder((n, 4), dtype, "x"), te.placeholder((n, 4), dtype, "y")
    out = te.compute((n, 4), lambda i, j: formula(x, y, i, j), "out")
    assert out.dtype == (result or dtype)
    return te.create_prim_func([x, y, out])


FORMULAS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, i, j: x[i, j] + y[i, j],
    "mul": lambda x, y, i, j: x[i, j] * y[i, j],
    "div": lambda x, y, i, j: x[i, j] / y[i, j],
    "a product of sums": lambda x, y, i, j: (x[i, j] - y[i, j]) * (x[i, j] + 2) * y[0, j],
    "a row of another": lambda x, y, i, j: x[0, 3 - j] - -y[i, j],
    "a lazy choice": lambda x, y, i, j: te.if_then_else(i > 0, x[i - 1, j] * y[i, j], te.const(1 - 2j, x.dtype)),
    "a choice by value": lambda x, y, i, j: te.select(te.equal(x[i, j], y[i, j]), x[i, j], te.conj(y[i, j])),
    "parts": lambda x, y, i, j: te.complex(te.imag(x[i, j]), te.real(x[i, j] * y[i, j])),
    "moved": lambda x, y, i, j: te.if_then_else(j > 0, x[i, j - 1], te.const(0, x.dtype)),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_compiled_kernels_agree_with_the_interpreter(name: str, dtype: str) -> None:
    function = kernel(FORMULAS[name], dtype)
    lowered = LowerComplex()(IRModule({"main": function}))
    assert verify(lowered) == []
    for rows in (3, 1, 0):
        x, y = random(rows, 4, dtype=dtype), random(rows, 4, dtype=dtype, seed=1)
        written, compiled = ran(function, x, y, out=np.zeros((rows, 4), dtype))
        np.testing.assert_allclose(compiled, written, rtol=1e-5, atol=1e-6)


def complex_values(function: PrimFunc) -> list[Any]:
    """What is complex in a kernel, but for addresses of parameters."""
    found, taken = [], set()
    for node in walk(function.body):
        if isinstance(node, PrimCall) and node.op in ADDRESSES:
            taken.update(map(id, node.args))
        elif isinstance(node, PrimExpr) and node.dtype.startswith("complex") and id(node) not in taken:
            found.append(node)
    return found


@pytest.mark.parametrize("name", FORMULAS)
def test_nothing_but_addresses_of_parameters_is_left_complex(name: str) -> None:
    module = LowerComplex()(IRModule({"main": kernel(FORMULAS[name], "complex64")}))
    function = module["main"]
    assert isinstance(function, PrimFunc)
    assert complex_values(function) == []
    assert LowerComplex()(module) is module


def test_sums_run_over_neighbouring_floats() -> None:
    function = LowerComplex()(IRModule({"main": kernel(FORMULAS["add"], "complex64")}))["main"]
    loops = [node.extent for node in walk(function) if isinstance(node, For)]
    assert loops[-1] == 8


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(VALUES), min_size=4, max_size=4), st.sampled_from(["add", "mul", "div"]))
def test_special_values_are_those_of_the_interpreter(parts: list[float], name: str) -> None:
    """Where intermediate values do not overflow, which fused products may not see."""
    a, b, c, d = (np.float32(part) for part in parts)
    x, y = np.zeros((1, 4), "complex64"), np.zeros((1, 4), "complex64")
    x.real, x.imag, y.real, y.imag = a, b, c, d
    if name != "add" and any(np.isfinite(p) and abs(p) > 1e20 for p in parts):
        return
    written, compiled = ran(kernel(FORMULAS[name], "complex64"), x, y, out=np.zeros((1, 4), "complex64"))
    np.testing.assert_allclose(compiled, written, rtol=1e-5)


@T.prim_func
def polynomial(x: T.Buffer(("n",), "complex64"), y: T.Buffer(("n",), "complex64")):
    for i in range(n):
        total = T.alloc_buffer((1,), "complex64")
        total[0] = 1j
        for _ in range(3):
            total[0] = total[0] * x[i] + T.complex(T.float32(2), T.float32(0))
        y[i] = T.conj(total[0]) - x[i]


def test_a_kernel_of_ones_own_with_memory_of_its_own() -> None:
    x = random(5)
    written, compiled = ran(polynomial, x, out=np.zeros(5, "complex64"))
    wanted = np.conj(((1j * x + 2) * x + 2) * x + 2) - x
    np.testing.assert_allclose(written, wanted, rtol=1e-5)
    np.testing.assert_allclose(compiled, wanted, rtol=1e-5)


def test_what_has_no_parts_is_refused_by_name() -> None:
    @T.prim_func
    def scaled(x: T.Buffer((4,), "complex64"), a: T.complex64):
        for i in range(4):
            x[i] = x[i] * a

    with pytest.raises(weft.DTypeError, match="a scalar parameter of complex64") as caught:
        weft.compile(scaled)
    assert caught.value.code == "W318"


def test_complex_numbers_have_no_order() -> None:
    x = te.placeholder((4,), "complex64")
    for make in (lambda: x[0] < x[1], lambda: te.maximum(x[0], x[1]), lambda: x[0] // x[1]):
        with pytest.raises(weft.DTypeError) as caught:
            make()
        assert caught.value.code == "W312"
    with pytest.raises(weft.DTypeError, match="a complex64 is no float32"):
        te.cast("float32", x[0])


def test_loads_are_of_floats() -> None:
    function = LowerComplex()(IRModule({"main": kernel(FORMULAS["parts"], "complex128")}))["main"]
    kinds = {node.dtype for node in walk(function) if isinstance(node, BufferLoad)}
    assert kinds == {"float64", "complex128"}  # the latter in addresses


def test_choices_of_complex_values_read_as_they_print() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("n", 3), "complex64"), b: R.Tensor(("n", 3), "complex64")):
        return R.concat([a, b], axis=0)
"""
    read = weft.parse(text)
    assert isinstance(read, IRModule)
    module = LegalizeOps()(read)
    assert "T.if_then_else" in module.script()
    weft.assert_structural_equal(weft.parse(module.script()), module)
