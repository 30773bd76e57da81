"""What fusion gives: a chain of six elementwise operators on four million elements, fused and not.

    python benchmarks/passes/fusion.py

Each time is the best of a few runs; the ratio is fused to unfused, so less is better.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import weft
from weft.ir import IRModule, Var
from weft.ir.dim import symbol
from weft.ir.types import TensorType
from weft.script import relax as R
from weft.transform import AnnotateTIROpPattern, CanonicalizeBindings, FuseOps, FuseTIR, LegalizeOps, Pipeline

ELEMENTS = 4 << 20
REPEATS = 15


def chain() -> IRModule:
    """Six operators, each on the result of the one before."""
    x, y = (Var(name, TensorType((symbol("n"),), "float32")) for name in "xy")
    builder = weft.BlockBuilder()
    with builder.function("main", [x, y]):
        with builder.dataflow():
            value = builder.emit(R.add(x, y))
            value = builder.emit(R.multiply(value, x))
            value = builder.emit(R.subtract(value, y))
            value = builder.emit(R.nn.relu(value))
            value = builder.emit(R.maximum(value, y))
            result = builder.emit_output(R.multiply(value, x))
        builder.emit_func_output(result)
    return builder.get()


def best(run: Callable[[], object]) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print both times and their ratio."""
    legalized = Pipeline([LegalizeOps(), CanonicalizeBindings()])(chain())
    fused = Pipeline([AnnotateTIROpPattern(), FuseOps(), FuseTIR()])(legalized)
    lowering = Pipeline([weft.transform.phase("lower")])
    arguments = [np.random.default_rng(seed).random(ELEMENTS, "float32") for seed in (0, 1)]
    times: list[float] = []
    for name, module in (("unfused", legalized), ("fused", fused)):
        run = weft.compile(module, pipeline=lowering)["main"]
        times.append(best(lambda run=run: run(*arguments)))
        print(f"{name:8} {times[-1] * 1e3:7.2f} ms")
    print(f"ratio    {times[1] / times[0]:7.2f}")


if __name__ == "__main__":
    main()
