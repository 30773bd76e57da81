"""Sorting, selecting and running sums beside NumPy: least times, at 100, 10,000 and 1,000,000 elements and as rows.

    python benchmarks/sorting.py [--seconds 0.5] [--only TEXT]

`sort` is shown beside both of NumPy's: the default, which may exchange equal elements, and the stable one, which
weft's is.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("WEFT_NUM_THREADS", "1")

import numpy as np

import weft

SHAPES = ((100,), (10_000,), (64, 1000), (1_000_000,))
CASES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sort(x)": {"numpy": lambda x: np.sort(x), "stable": lambda x: np.sort(x, kind="stable")},
    "argsort(x)": {"numpy": lambda x: np.argsort(x), "stable": lambda x: np.argsort(x, kind="stable")},
    "topk(x, k=10)": {"numpy": lambda x: np.sort(np.partition(x, -10)[..., -10:])},
    "unique(x)": {"numpy": lambda x: np.unique(x)},
    "cumsum(x, axis=-1)": {"numpy": lambda x: np.cumsum(x, axis=-1)},
}


def least(call: Callable[[Any], Any], x: Any, seconds: float) -> float:
    """The least time of a call in microseconds."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call(x)
        found = min(found, time.perf_counter() - start)
    return found * 1e6


def main() -> None:
    """Print a line for each operator and shape."""
    parser = argparse.ArgumentParser(description="Sorting beside NumPy.")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    for shape in SHAPES:
        x = random.standard_normal(shape, "float32")
        dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        for text, rivals in CASES.items():
            if options.only in text:
                unit = weft.parse(f'@R.function\ndef main(x: R.Tensor(({dims}), "float32")):\n    return R.{text}')
                own = least(weft.compile(unit)["main"], x, options.seconds)
                times = {name: least(call, x, options.seconds) for name, call in rivals.items()}
                rest = "  ".join(f"{name} {value:9.1f} ({value / own:5.2f}x)" for name, value in times.items())
                print(f"{'x'.join(map(str, shape)):<10} {text:<20} {own:9.1f} us  {rest}", flush=True)


if __name__ == "__main__":
    main()
