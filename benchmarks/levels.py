"""That each level of `opt=` differs from the one below: a case for each step, least times in turn.

    python benchmarks/levels.py [--json]

    1 over 0    fusion, register tiles and vectors by the rules            a product of matrices
    2 over 1    plain loops vectorised by LLVM                             a polynomial in a loop as a user arranged it
    3 over 2    all float arithmetic in any order                          two sums in one such loop

The exit status is 1 where a level is less than a tenth faster than the one below it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.setdefault("WEFT_NUM_THREADS", "1")

import numpy as np

import weft
from weft.transform.autoschedule.knobs import LEVELS

PRODUCT = """
@R.function
def main(x: R.Tensor((128, 128), "float32"), w: R.Tensor((128, 128), "float32")):
    y = R.matmul(x, w)
    return y
"""
POLYNOMIAL = """
@T.prim_func
def main(x: T.Buffer((4096,), "float32"), w: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    T.func_attr({"tir.is_scheduled": True})
    for i in range(4096):
        y[i] = ((x[i] * w[i] + T.float32(2.0)) * x[i] + T.float32(1.0)) * x[i] + w[i]
"""
SUMS = """
@T.prim_func
def main(x: T.Buffer((4096,), "float32"), w: T.Buffer((4096,), "float32"), y: T.Buffer((1,), "float32")):
    T.func_attr({"tir.is_scheduled": True})
    y[0] = T.float32(0.0)
    for i in range(4096):
        y[0] = (y[0] - x[i]) + w[i] * T.float32(0.5)
"""
STEPS = (
    ("product of matrices", PRODUCT, 128 * 128, 1),
    ("polynomial", POLYNOMIAL, 4096, 2),
    ("two sums in one", SUMS, 4096, 3),
)


def times(text: str, elements: int, level: int) -> tuple[float, float]:
    """Microseconds of a call at the level below, and at the level."""
    side = (128, 128) if elements == 128 * 128 else (elements,)
    arrays = [np.ones(side, "float32"), np.ones(side, "float32")]
    if "y: T.Buffer" in text:
        arrays.append(np.zeros(1 if "y[0]" in text else elements, "float32"))
    calls = [weft.compile(weft.parse(text), opt=LEVELS[at])["main"] for at in (level - 1, level)]  # type: ignore[call-overload]
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        for side_of, call in enumerate(calls):
            start = time.perf_counter()
            call(*arrays)
            best[side_of] = min(best[side_of], time.perf_counter() - start)
    return best[0] * 1e6, best[1] * 1e6


def main() -> int:
    """Print a line for each level."""
    parser = argparse.ArgumentParser(description="Each level of opt= beside the one below.")
    parser.add_argument("--json", action="store_true", help="a list of objects")
    rows = [(name, level, *times(text, elements, level)) for name, text, elements, level in STEPS]
    if parser.parse_args().json:
        print(json.dumps([dict(zip(("case", "level", "below_us", "us"), row, strict=True)) for row in rows], indent=2))
    else:
        for name, level, below, here in rows:
            print(f"opt={level} over opt={level - 1}  {name:<20} {below:9.1f} -> {here:9.1f} us  {below / here:5.1f}x")
    return int(any(below < 1.1 * here for *_, below, here in rows))


if __name__ == "__main__":
    sys.exit(main())
