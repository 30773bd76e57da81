"""How long the toolkit itself takes: import, build, print, read, verify and clean up modules of many bindings.

    python benchmarks/passes/toolkit.py [--profile read|print|build|verify|dce]

Each figure is the best of a few runs. The last column compares 10,000 bindings with 5,000: 2.0 is linear.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import weft
from weft.ir import IRModule, Var
from weft.ir.dim import symbol
from weft.ir.types import TensorType
from weft.script import relax as R

REPEATS = 3
SIZES = (1_000, 5_000, 10_000)
TARGETS = {("read", 1_000): 0.25, ("print", 1_000): 0.1}
IMPORT_TARGET = 0.15
_OPERATORS = (R.add, R.multiply, R.subtract)


def chain(bindings: int) -> IRModule:
    """A function of one dataflow block with this many operators, each on the two values before it."""
    x = Var("x", TensorType((symbol("n"), 16), "float32"))
    builder = weft.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            before, last = x, builder.emit(R.exp(x))
            for i in range(bindings - 1):
                before, last = last, builder.emit(_OPERATORS[i % 3](before, last))
            result = builder.emit_output(last)
        builder.emit_func_output(result)
    return builder.get()


def seconds(action: Callable[[], Any]) -> float:
    """The best time of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def import_seconds(name: str) -> float:
    """Time to import a module in a fresh process, measured inside it."""
    code = f"import time; start = time.perf_counter(); import {name}; print(time.perf_counter() - start)"
    with tempfile.TemporaryDirectory() as folder:
        # The first run compiles to bytecode, wherever this machine keeps it, and is the slowest.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        command = [sys.executable, "-c", code]
        runs = [subprocess.run(command, env=environment, capture_output=True, check=True) for _ in range(6)]
    return min(float(run.stdout) for run in runs)


def actions(bindings: int) -> dict[str, Callable[[], Any]]:
    """What is measured, on a module of this many bindings."""
    module = chain(bindings)
    text = module.script()
    again = weft.parse(text)
    assert weft.structural_equal(again, module)
    dead_code_elimination = weft.transform.DeadCodeElimination()
    return {
        "build": lambda: chain(bindings),
        "print": module.script,
        "read": lambda: weft.parse(text),
        "verify": lambda: weft.verify(module),
        "dce": lambda: dead_code_elimination(module),
        "equal": lambda: weft.structural_equal(module, again),
    }


def report() -> None:
    """Print every figure, and whether it is within its target where there is one."""
    numpy = import_seconds("numpy")
    over = import_seconds("numpy, weft") - numpy
    print(f"import weft over numpy: {over:.3f} s{_verdict(over, IMPORT_TARGET)}")
    print(f"import weft.script.relax over numpy: {import_seconds('numpy, weft.script.relax') - numpy:.3f} s")
    figures = {size: {name: seconds(action) for name, action in actions(size).items()} for size in SIZES}
    print(f"{'seconds for':<12}" + "".join(f"{size:>10,}" for size in SIZES) + f"{'10k / 5k':>10}")
    for name in figures[SIZES[0]]:
        times = [figures[size][name] for size in SIZES]
        notes = [_verdict(figures[size][name], TARGETS[name, size]) for size in SIZES if (name, size) in TARGETS]
        columns = "".join(f"{value:>10.3f}" for value in times)
        print(f"{name:<12}{columns}{times[-1] / times[-2]:>10.2f}{''.join(notes)}")


def _verdict(value: float, target: float) -> str:
    return "   within its target" if value <= target else f"   MISSES its target of {target} s"


def main() -> None:
    """Print the figures, or the profile of one action on 1,000 bindings."""
    parser = argparse.ArgumentParser(description="How long the toolkit itself takes.")
    parser.add_argument("--profile", metavar="ACTION", help="where the time of one action goes")
    options = parser.parse_args()
    if options.profile is None:
        report()
        return
    action = actions(1_000)[options.profile]
    action()
    profile = cProfile.Profile()
    profile.runcall(action)
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
