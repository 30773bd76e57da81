"""Kernels that the tests of schedules work on, and what every result is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import weft
from weft.ir import IRModule, PrimFunc, te
from weft.ir.dim import Dim, evaluate, symbol
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.tensor import Buffer
from weft.transform.schedule import Schedule, Trace

__all__ = ["KERNELS", "arguments", "chain", "check", "matmul", "run", "same_results", "softmax"]

N = symbol("n")


def matmul(n: Dim = 12, m: Dim = 10, k: Dim = 9) -> PrimFunc:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.create_prim_func([a, b, c], "kernel")


def chain(n: Dim = 12, m: Dim = 10) -> PrimFunc:
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((m, n), lambda i, j: b[j, i] * 2.0, name="C")
    d = te.compute((m, n), lambda i, j: c[i, j] * 3.0 - c[i, j], name="D")
    return te.create_prim_func([a, d], "kernel")


def dense(n: Dim = 12, m: Dim = 10, k: Dim = 9) -> PrimFunc:
    a, w = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="W")
    b = te.compute((n, k), lambda i, j: a[i, j] + 1.0, name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(b[i, axis] * w[axis, j], axis=axis), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] * 3.0 - c[i, j], name="D")
    return te.create_prim_func([a, w, d], "kernel")


def conv2d(size: int = 8, channels: int = 3, filters: int = 4) -> PrimFunc:
    x = te.placeholder((channels, size, size), name="X")
    w = te.placeholder((filters, channels, 3, 3), name="W")
    inside = lambda i, j: te.all(i >= 1, i < size + 1, j >= 1, j < size + 1)
    padded = lambda c, i, j: te.if_then_else(inside(i, j), x[c, i - 1, j - 1], 0.0)
    p = te.compute((channels, size + 2, size + 2), padded, name="P")
    c, r, s = (
        te.reduce_axis((0, channels), name="c"),
        te.reduce_axis((0, 3), name="r"),
        te.reduce_axis((0, 3), name="s"),
    )
    y = te.compute(
        (filters, size, size), lambda f, i, j: te.sum(p[c, i + r, j + s] * w[f, c, r, s], axis=[c, r, s]), name="Y"
    )
    return te.create_prim_func([x, w, y], "kernel")


def softmax(n: Dim = 7, m: int = 11) -> PrimFunc:
    x = te.placeholder((n, m), name="X")
    k, j = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="j")
    top = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="M")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(e[i, j], axis=j), name="S")
    y = te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")
    return te.create_prim_func([x, y], "kernel")


def row_sums(n: Dim = 9, m: Dim = 14) -> PrimFunc:
    x = te.placeholder((n, m), dtype="int32", name="X")
    k = te.reduce_axis((0, m), name="k")
    y = te.compute((n,), lambda i: te.sum(x[i, k], axis=k), name="Y")
    return te.create_prim_func([x, y], "kernel")


def biased(n: Dim = 12, m: Dim = 10, k: Dim = 9) -> PrimFunc:
    a, bias = te.placeholder((n, k), dtype="int32", name="A"), te.placeholder((m,), dtype="int32", name="bias")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * (axis + j), axis=axis), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] + bias[(j * 3) % m], name="D")
    return te.create_prim_func([a, bias, d], "kernel")


def blur(n: Dim = 16) -> PrimFunc:
    x = te.placeholder((n + 2,), dtype="int32", name="X")
    b = te.compute((n + 2,), lambda i: x[i] * 2, name="B")
    y = te.compute((n,), lambda i: b[i] + b[i + 1] + b[i + 2], name="Y")
    return te.create_prim_func([x, y], "kernel")


KERNELS: dict[str, Callable[[], PrimFunc]] = {
    "matmul": matmul,
    "matmul_n": lambda: matmul(N, 10, 9),
    "matmul_nk": lambda: matmul(N, 10, symbol("k")),
    "chain": chain,
    "chain_n": lambda: chain(N, symbol("m")),
    "dense": dense,
    "dense_n": lambda: dense(N),
    "conv2d": conv2d,
    "softmax": softmax,
    "softmax_n": lambda: softmax(N),
    "row_sums": row_sums,
    "row_sums_nm": lambda: row_sums(N, symbol("m")),
    "biased": biased,
    "biased_n": lambda: biased(N),
    "blur": blur,
    "blur_n": lambda: blur(N),
}
"""Matrix products, convolution, normalisation, reductions, elementwise chains; sizes fixed and symbolic."""

SIZES = {"n": 13, "m": 11, "k": 6}


def arguments(function: PrimFunc, sizes: dict[str, int] | None = None) -> list[np.ndarray]:
    """Arguments: random inputs; the last one is the output, filled with what no kernel stores."""
    known, generator = {**SIZES, **(sizes or {})}, np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for param in function.params:
        assert isinstance(param, Buffer)
        shape = tuple(extent if isinstance(extent, int) else _value(extent, known) for extent in param.shape)
        if param.dtype.startswith("int"):
            arrays.append(generator.integers(-50, 50, shape).astype(param.dtype))
        else:
            arrays.append(generator.standard_normal(shape).astype(param.dtype))
    arrays[-1][...] = 77
    return arrays


def _value(extent: object, sizes: dict[str, int]) -> int:
    dim = prim_to_dim(extent)  # type: ignore[arg-type]
    assert dim is not None
    return evaluate(dim, sizes)


def run(module: IRModule, arrays: Sequence[np.ndarray], *, compiled: bool = False) -> np.ndarray:
    """The last argument after a call of the one function of a module."""
    given = [array.copy() for array in arrays]
    (name,) = module.functions
    (weft.compile(module) if compiled else weft.interpret(module))[name](*given)
    return given[-1]


def same_results(
    old: IRModule | PrimFunc, new: IRModule, sizes: dict[str, int] | None = None, *, compiled: bool = True
) -> None:
    """Interpreted and compiled, both give what the old one gives: integers exactly, floats to 1e-5 of their scale."""
    before = IRModule({old.name: old}) if isinstance(old, PrimFunc) else old
    (function,) = before.functions.values()
    assert isinstance(function, PrimFunc)
    arrays = arguments(function, sizes)
    expected = run(before, arrays)
    for found in (run(new, arrays), *([run(new, arrays, compiled=True)] if compiled else [])):
        if expected.dtype.kind == "i":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def check(function: PrimFunc, schedule: Schedule, *sizes: dict[str, int], compiled: bool = True) -> IRModule:
    """The result is well formed, reads back from its text, means what it meant, and its trace replays to it."""
    module = schedule.mod
    assert weft.verify(module) == []
    weft.assert_structural_equal(weft.parse(module.script()), module)
    for values in sizes or ({},):
        same_results(function, module, values, compiled=compiled)
    again = Schedule(function)
    schedule.trace.apply_to(again)
    weft.assert_structural_equal(again.mod, module)
    third = Schedule(function)
    Trace.from_json(schedule.trace.to_json()).apply_to(third)
    weft.assert_structural_equal(third.mod, module)
    fourth = Schedule(function)
    names: dict[str, Callable[[Schedule], None]] = {}
    exec(schedule.trace.script(), names)  # what it prints is Python that does the same
    names["apply"](fourth)
    weft.assert_structural_equal(fourth.mod, module)
    return module
