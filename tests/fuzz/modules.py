"""Round trip of many generated modules: print, read, compare, print again, hash, verify.

    python tests/fuzz/modules.py [--count 10000] [--start 0] [--run] [--passes] [--stop 20]

Every seed gives a module that runs and one of anything that can be written, and each is written twice: with all types,
and without those that follow from the rest. `--count 50000` makes 100,000 modules; `--start` goes on where an earlier
run stopped. `--run` interprets the former as well; `--passes` checks what every pass promises
(tests/transform/infra/test_properties.py) for the seed, which takes a second.
Prints the seeds that fail, grouped by what went wrong, and exits with 1 when there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

if __name__ == "__main__":  # from the checkout, installed or not
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root / "src"), str(root)]

from tests.transform.infra.test_properties import FIXED_POINT, TOGETHER, check_fixed_point, check_meaning, check_result

from weft.testing import FuzzFailure, random_module
from weft.testing.checks import check_round_trip, check_well_formed, interpreted


def _check(seed: int, runnable: bool, run: bool) -> None:
    module = random_module(seed, runnable=runnable)
    check_well_formed(module)
    check_round_trip(module)
    if run and runnable:
        interpreted(module, seed)


def _check_passes(seed: int) -> None:
    for item in (*FIXED_POINT, TOGETHER):
        check_result(item, seed)
        check_meaning(item, seed)
        if item is not TOGETHER:
            check_fixed_point(item, seed)


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description="round trip of generated modules")
    parser.add_argument("--count", type=int, default=10_000, help="how many seeds")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--run", action="store_true", help="interpret what runs")
    parser.add_argument("--passes", action="store_true", help="check every pass as well")
    parser.add_argument("--stop", type=int, default=20, help="stop after so many kinds of failure")
    options = parser.parse_args()
    failures: dict[str, list[str]] = defaultdict(list)
    began = time.monotonic()
    for seed in range(options.start, options.start + options.count):
        for runnable in (True, False):
            try:
                _check(seed, runnable, options.run)
            except Exception as error:
                failures[FuzzFailure(seed, "", error).kind].append(f"{seed}{'' if runnable else ' (any)'}")
        if options.passes:
            try:
                _check_passes(seed)
            except Exception as error:
                failures[FuzzFailure(seed, "", error).kind].append(f"{seed} (passes)")
        if seed % 1000 == 999:
            print(
                f"{seed + 1 - options.start} seeds, {time.monotonic() - began:.0f} s, {len(failures)} kinds of failure"
            )
        if len(failures) >= options.stop:
            break
    for kind, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5} {kind}: seeds {', '.join(seeds[:5])}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
