"""Random graph programs over several symbols, each run at many sizes, beside what NumPy computes there.

    python tests/fuzz/symbolic.py [--count 1500] [--start 0] [--executors interpreter,native,vm,c] [--show]

A wrong value, an error that is none of weft's, and a value where NumPy has none are findings, told with their seed
(`--start SEED --count 1 --show` runs it again); so are refusals at plain sizes, which are counted with their reasons.
What the programs are is in `tests/fuzz/symbolic_programs.py`. C, whose sizes must be known, runs them at the first
point, as far as it takes them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # from the checkout, installed or not
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.codegen.backends.c import test_c  # noqa: E402
from tests.fuzz.symbolic_programs import POINTS, Array, Program, made  # noqa: E402

import weft  # noqa: E402
from weft import WeftError  # noqa: E402
from weft.transform import BindSymbolicVars  # noqa: E402


@dataclass(frozen=True)
class Outcome:
    """What one way to run did with a program at one point (or -1: with the program)."""

    kind: str
    """`right`, `refused` (at plain sizes, or as a whole), `small` (refused at small sizes), or a finding."""
    place: int
    reason: str = ""


FINDINGS = ("wrong", "taken", "raised")


def _compiled(module: Any, executor: str) -> Any:
    """A module as one way to run it: `interpreter`, or an executor."""
    return weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor)


def outcome_in_c(program: Program) -> Outcome:
    """What C does with a program at the first point; `unsupported` for what it does not take."""
    sizes = {name: program.points[0][name] for name in "nmk"}
    want = program.expected(0)
    assert want is not None
    try:
        module: Any = weft.parse(program.text())
        module = BindSymbolicVars(sizes)(module)
        source = test_c.generate(test_c.lowered(module), model="model")
    except WeftError as error:
        return Outcome("unsupported", 0, f"{error.code}: {error.message}")
    got = [np.empty(array.shape, array.dtype) for array in want]
    with tempfile.TemporaryDirectory() as folder:
        status = test_c.run(source, "model", program.arguments(0), got, Path(folder))
    same = [_equal(a, b) for a, b in zip(got, want, strict=True)]
    if status:
        return Outcome("refused", 0, f"C: status {status}")
    return Outcome("right" if all(same) else "wrong", 0)


def outcomes(program: Program, executor: str) -> list[Outcome]:
    """What one way to run does with a program at every point."""
    if executor == "c":
        return [outcome_in_c(program)]
    try:
        module: Any = weft.parse(program.text())
        run = _compiled(module, executor)["main"]
    except WeftError as error:
        return [Outcome("refused", -1, f"{error.code}: {error.message}")]
    except Exception as error:
        return [Outcome("raised", -1, f"{type(error).__name__}: {error}")]
    decided = (place for place in range(len(POINTS)) if place not in program.undecided)
    return [_outcome(program, run, place) for place in decided]


def _outcome(program: Program, run: Callable[..., Any], place: int) -> Outcome:
    want = program.expected(place)
    try:
        got = run(*program.arguments(place))
    except WeftError as error:
        reason = f"{error.code}: {error.message}"
        return Outcome("right" if want is None else "refused" if place in program.plain() else "small", place, reason)
    except Exception as error:
        return Outcome("raised", place, f"{type(error).__name__}: {error}")
    if want is None:
        return Outcome("taken", place)
    found = got if isinstance(got, tuple) else (got,)
    same = [_equal(np.asarray(a), b) for a, b in zip(found, want, strict=True)]
    return Outcome("right" if all(same) else "wrong", place, f"result {same.index(False)}" if not all(same) else "")


def _equal(got: Array, want: Array) -> bool:
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    return np.allclose(got, want, 1e-9, 1e-9, True) if want.dtype.kind == "f" else np.array_equal(got, want)


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description="random programs over symbols beside NumPy")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--executors", default="interpreter,native,vm")
    parser.add_argument("--compiled", type=int, default=1, help="compile every so many of the programs only")
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    chosen = options.executors.split(",")
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    examples: dict[str, int] = {}
    began = time.monotonic()
    for seed in range(options.start, options.start + options.count):
        if seed % 10 == 0:
            print(f"seed {seed}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        program = made(seed)
        executors = chosen if seed % options.compiled == 0 else [name for name in chosen if name == "interpreter"]
        if options.show:
            print(program.text())
        for executor in executors:
            found = outcomes(program, executor)
            for one in found:
                kinds[f"{executor} {one.kind}"] += 1
                if one.kind in FINDINGS:
                    print(f"finding: seed {seed} {executor} at {POINTS[one.place] if one.place >= 0 else 'all'}: "
                          f"{one.kind} {one.reason[:300]}", flush=True)  # fmt: skip
            refused = [one for one in found if one.kind == "refused"]
            if refused and executor == executors[0]:
                reasons[refused[0].reason] += 1
                examples.setdefault(refused[0].reason, seed)
    for reason, times in reasons.most_common():
        print(f"refused {times}: (seed {examples[reason]}) {reason}")
    print(f"{options.count} programs, {time.monotonic() - began:.0f} s, {dict(kinds)}")
    print(f"{sum(reasons.values())} programs refused, {100 * sum(reasons.values()) / options.count:.1f} %")
    return 1 if any(kind.split()[1] in FINDINGS for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
