"""How fast compiled kernels are beside NumPy in the same process, on one thread.

    python benchmarks/kernels.py [--json] [--only NAME]

Calls alternate, and each figure is the least time of its side, so that what else the machine does counts little. The
ratio is weft / NumPy: below 1 is faster. NumPy has no convolution: its rival is the product of matrices of the same
sizes on data already laid out for it, which leaves out the cost of that layout.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported
os.environ.setdefault("WEFT_NUM_THREADS", "1")

import numpy as np
from shared.cases import RESNET_18, layer_norm, rms_norm, softmax

import weft
from weft.ir import TensorType, Var
from weft.ir.op import get_op

SECONDS = 0.3
MOST_CALLS = 2_000
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """An operator (or a chain of them, applied one after another), its operands and what NumPy does instead."""

    name: str
    operators: tuple[str, ...]
    shapes: tuple[Shape, ...]
    rival: Callable[..., np.ndarray]
    options: tuple[tuple[str, object], ...] = ()
    compare: bool = True


@dataclass(frozen=True)
class Result:
    """Times in milliseconds."""

    name: str
    weft: float
    numpy: float
    ratio: float
    compile: float


def cases() -> Iterator[Case]:
    """Everything that is measured."""
    sizes = [(n, n, n) for n in (64, 128, 256, 512, 1024)] + [(97, 101, 103), (333, 257, 511), (1000, 777, 1001)]
    for m, k, n in [*sizes, *((m, 1024, 1024) for m in (1, 7, 33, 128))]:
        yield Case(f"matmul {m}x{k}x{n}", ("matmul",), ((m, k), (k, n)), np.matmul)
    for m in (1, 33, 128):
        yield Case(f"linear {m}x1024x1024", ("linear",), ((m, 1024), (1024, 1024)), lambda x, w: x @ w.T)
    yield Case("batched 8x128x64x128", ("matmul",), ((8, 128, 64), (8, 64, 128)), np.matmul)
    for channels, out, size, kernel, stride in RESNET_18:
        a = np.ones((out, channels * kernel * kernel), "float32")
        b = np.ones((channels * kernel * kernel, (size // stride) ** 2), "float32")
        yield Case(
            f"conv2d {channels}->{out} {size}x{size} {kernel}x{kernel}/{stride}",
            ("nn.conv2d",),
            ((1, channels, size, size), (out, channels, kernel, kernel)),
            lambda x, w, a=a, b=b: a @ b,
            (("padding", kernel // 2), ("strides", stride)),
            compare=False,
        )
    yield from rows()
    yield from movements()


def rows() -> Iterator[Case]:
    """Reductions, norms, chains and scans."""
    last = (("axes", -1),)
    yield Case("softmax 4096x1024", ("nn.softmax",), ((4096, 1024),), partial(softmax, np))
    yield Case("softmax 64x1024", ("nn.softmax",), ((64, 1024),), partial(softmax, np))
    yield Case("layer_norm 4096x768", ("nn.layer_norm",), ((4096, 768), (768,), (768,)), partial(layer_norm, np), last)
    yield Case("rms_norm 4096x768", ("nn.rms_norm",), ((4096, 768), (768,)), partial(rms_norm, np), last)
    yield Case("exp, tanh, abs 1M", ("exp", "tanh", "abs"), ((1 << 20,),), lambda x: np.abs(np.tanh(np.exp(x))))
    yield Case("add 16M", ("add",), ((1 << 24,), (1 << 24,)), np.add)
    yield Case("relu 64x64x7x7", ("nn.relu",), ((64, 64, 7, 7),), lambda x: np.maximum(x, 0))
    yield Case("sum 16M", ("sum",), ((1 << 24,),), np.sum)
    yield Case("sum 1024x4096 rows", ("sum",), ((1024, 4096),), lambda x: x.sum(1), (("axis", (1,)),))
    yield Case("sum 4096x1024 columns", ("sum",), ((4096, 1024),), lambda x: x.sum(0), (("axis", (0,)),))
    yield Case("mean 64x256x7x7", ("mean",), ((64, 256, 7, 7),), lambda x: x.mean((2, 3)), (("axis", (2, 3)),))
    yield Case("argmax 4096x1024", ("argmax",), ((4096, 1024),), lambda x: x.argmax(1), (("axis", 1),))
    yield Case("cumsum 1024x1024 rows", ("cumsum",), ((1024, 1024),), lambda x: x.cumsum(1), (("axis", 1),))
    yield Case("cumsum 1024x1024 columns", ("cumsum",), ((1024, 1024),), lambda x: x.cumsum(0), (("axis", 0),))


def movements() -> Iterator[Case]:
    """Elements in another order."""
    swapped = (("axes", (1, 0)),)
    yield Case("transpose 1024x1024", ("permute_dims",), ((1024, 1024),), lambda x: x.T.copy(), swapped)
    yield Case("transpose 1000x777", ("permute_dims",), ((1000, 777),), lambda x: x.T.copy(), swapped)
    heads = (("axes", (0, 2, 1, 3)),)
    yield Case("heads 8x128x12x64", ("permute_dims",), ((8, 128, 12, 64),), lambda x: x.swapaxes(1, 2).copy(), heads)


def build(case: Case) -> weft.IRModule:
    """The operators of a case as a module."""
    params = [Var(f"x{i}", TensorType(shape, "float32")) for i, shape in enumerate(case.shapes)]
    builder = weft.BlockBuilder()
    with builder.function("main", params):
        result = builder.emit(get_op(case.operators[0]).bind(params, dict(case.options), None))
        for name in case.operators[1:]:
            result = builder.emit(get_op(name).bind([result], {}, None))
        builder.emit_func_output(result)
    return builder.get()


def measure(case: Case) -> Result:
    """Compile, compare results, then time both sides in turn."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape, "float32") for shape in case.shapes]
    module = build(case)
    start = time.perf_counter()
    main = weft.compile(module)["main"]
    compile_seconds = time.perf_counter() - start
    first = main(*arrays)
    if case.compare:
        np.testing.assert_allclose(first, case.rival(*arrays), rtol=1e-3, atol=1e-3)
    best = [float("inf"), float("inf")]
    end, calls = time.perf_counter() + SECONDS, 0
    while calls < 3 or (time.perf_counter() < end and calls < MOST_CALLS):
        calls += 1
        for side, action in enumerate((main, case.rival)):
            start = time.perf_counter()
            action(*arrays)
            best[side] = min(best[side], time.perf_counter() - start)
    ours, theirs = (1e3 * value for value in best)
    return Result(case.name, ours, theirs, ours / theirs, 1e3 * compile_seconds)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description="Compiled kernels beside NumPy, on one thread.")
    parser.add_argument("--json", action="store_true", help="one list of objects instead of a table")
    parser.add_argument("--only", metavar="NAME", default="", help="cases whose name contains this text")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in case.name]
    if options.json:
        print(json.dumps([asdict(measure(case)) for case in chosen], indent=2))
        return
    print(f"{'milliseconds':<32}{'weft':>10}{'numpy':>10}{'ratio':>8}{'compile':>10}")
    for case in chosen:
        result = measure(case)
        print(f"{result.name:<32}{result.weft:>10.4f}{result.numpy:>10.4f}{result.ratio:>8.2f}{result.compile:>10.0f}")


if __name__ == "__main__":
    main()
