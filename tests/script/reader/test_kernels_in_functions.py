"""Kernels that Python functions make: what a script reads of the values around it."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import PrimFunc
from weft.script import tir as T


def gen_matmul(n: int, m: int, dtype: str = "float32") -> PrimFunc:
    """A product for sizes that the caller names."""
    k = n // 2

    @T.prim_func
    def matmul(a: T.Buffer((n, k), dtype), b: T.Buffer((k, m), dtype), c: T.Buffer((n, m), dtype)):
        for i, j, r in T.grid(n, m, k):
            with T.block("product"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    c[vi, vj] = T.Cast(dtype, 0)
                c[vi, vj] = c[vi, vj] + a[vi, vr] * b[vr, vj]

    return matmul


LITERAL = """
@T.prim_func
def matmul(a: T.Buffer((128, 64), "float32"), b: T.Buffer((64, 32), "float32"), c: T.Buffer((128, 32), "float32")):
    for i, j, r in T.grid(128, 32, 64):
        with T.block("product"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                c[vi, vj] = T.Cast("float32", 0)
            c[vi, vj] = c[vi, vj] + a[vi, vr] * b[vr, vj]
"""


def gen_scale(shape: tuple[int, ...], factor: float) -> PrimFunc:
    """y = factor * x for tensors of any rank."""

    @T.prim_func
    def scale(x: T.Buffer(shape, "float32"), y: T.Buffer(shape, "float32")):
        for i in T.grid(*shape):
            y[i] = x[i] * T.float32(factor)

    return scale


def test_a_kernel_inside_a_function_uses_the_values_around_it() -> None:
    """G9: `gen_matmul(128, 32)` is the kernel that the numbers would have written."""
    weft.assert_structural_equal(gen_matmul(128, 32), weft.parse(LITERAL))
    assert not weft.structural_equal(gen_matmul(128, 33), weft.parse(LITERAL))
    a, b = (np.random.default_rng(1).normal(size=shape) for shape in ((6, 3), (3, 5)))
    c = np.zeros((6, 5))
    weft.compile(gen_matmul(6, 5, "float64"))["matmul"](a, b, c)
    np.testing.assert_allclose(c, a @ b)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 4), (2, 3, 1, 2)])
def test_a_kernel_inside_a_function_may_have_any_rank(shape: tuple[int, ...]) -> None:
    """G9: a grid over a shape of the program, with one name for all its indices."""
    x, y = np.random.default_rng(0).normal(size=shape).astype("float32"), np.zeros(shape, "float32")
    weft.compile(gen_scale(shape, 2.5))["scale"](x, y)
    np.testing.assert_array_equal(y, x * np.float32(2.5))
