"""What the rewriting rules of the default pipeline are worth: each program with and without them, least times in turn.

    python benchmarks/rewriting.py [--seconds 2] [--only TEXT]

Weights are known when compiling. The exit status is 1 where a program is slower by more than a tenth with the rules.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from shared.cases import Case, Input, cases, module_of

import weft
from weft.transform import PassContext


def programs() -> Iterator[Case]:
    """What is timed."""
    low, high = Input((1024, 8)), Input((8, 1024))
    yield Case("rules", "x @ (A @ B)", (Input((1, 1024)), low, high), ("v = R.matmul(x1, x2)", "y = R.matmul(x0, v)"))
    yield Case(
        "rules",
        "x @ (A @ B).T, 64 rows",
        (Input((64, 1024)), low, high),
        ("v = R.matmul(x1, x2)", "u = R.permute_dims(v, axes=[1, 0])", "y = R.matmul(x0, u)"),
    )
    channels = [Input((64,), weight=True, scale=0.1, around=1) for _ in range(4)]
    yield Case(
        "rules",
        "convolution, norm, relu",
        (Input((1, 64, 56, 56)), Input((64, 64, 3, 3), weight=True), *channels),
        (
            "c = R.nn.conv2d(x0, x1, padding=1)",
            "n = R.nn.batch_norm(c, x2, x3, x4, x5, axis=1, training=False)[0]",
            "y = R.nn.relu(n)",
        ),
    )
    yield Case(
        "rules",
        "transposes that cancel",
        (Input((512, 512)),),
        ("a = R.permute_dims(x0)", "b = R.permute_dims(a)", "y = R.nn.relu(b)"),
    )
    yield from (case for case in cases() if case.name.startswith("ResNet-18"))


def times(case: Case, seconds: float) -> tuple[float, float, float]:
    """Microseconds without and with the rules, and the greatest difference over the greatest value."""
    random = np.random.default_rng(0)
    values = {f"x{index}": item.draw(random) for index, item in enumerate(case.inputs)}
    weights = {f"x{index}": values[f"x{index}"] for index, item in enumerate(case.inputs) if item.weight}
    given = [value for name, value in values.items() if name not in weights]
    module = module_of(case)
    with PassContext(disabled=["apply-rules"]):
        plain = weft.compile(module, params=weights)["main"]
    calls = (plain, weft.compile(module, params=weights)["main"])
    left, right = (np.asarray(call(*given)) for call in calls)
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for side, call in enumerate(calls):
            start = time.perf_counter()
            call(*given)
            best[side] = min(best[side], time.perf_counter() - start)
    return best[0] * 1e6, best[1] * 1e6, float(np.abs(left - right).max() / np.abs(left).max())


def main() -> int:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description="Programs with and without the rewriting rules.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    slower = False
    for case in programs():
        if options.only in case.name:
            without, with_rules, off = times(case, options.seconds)
            slower |= with_rules > 1.1 * without
            speed = without / with_rules
            print(f"{case.name:<32} {without:10.1f} -> {with_rules:10.1f} us {speed:7.2f}x  off by {off:.1e}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
