"""Random programs with loops in every executor, beside what Python computes on NumPy arrays.

    python tests/fuzz/loops.py [--count 500] [--start 0] [--executors interpreter,native,vm,graph,aot,c] [--show]

A wrong value, a changed argument, an error that is none of weft's, and a text that is not read back as it was printed
are findings, told with their seed (`--start SEED --count 1 --show` runs it again); refusals are counted with their
reasons.
What the programs are is in `tests/fuzz/loop_programs.py`. `graph`, `aot` and C, whose sizes must be known, run them at
the first point, as far as they take them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # from the checkout, installed or not
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.codegen.backends.c import test_c  # noqa: E402
from tests.fuzz.loop_programs import POINTS, Array, Program, is_close, made  # noqa: E402
from tests.fuzz.symbolic import FINDINGS, Outcome  # noqa: E402

import weft  # noqa: E402
from weft import WeftError  # noqa: E402
from weft.ir import structural_equal  # noqa: E402
from weft.transform import BindSymbolicVars  # noqa: E402

STRAIGHT = ("graph", "aot", "c")


def module_of(program: Program) -> Any:
    """The module of a program."""
    return weft.parse(program.text())


def read_back(program: Program) -> Outcome:
    """Whether the text of a program is read, and read back as it was printed."""
    try:
        module = module_of(program)
        same = structural_equal(weft.parse(module.script()), module)
    except WeftError as error:
        return Outcome("refused", -1, f"{error.code}: {error.message}")
    except Exception as error:
        return Outcome("raised", -1, f"{type(error).__name__}: {error}")
    return Outcome("right" if same else "wrong", -1, "round trip")


def outcomes(program: Program, executor: str) -> list[Outcome]:
    """What one way to run does with a program at every point that Python decides."""
    straight = executor in STRAIGHT
    try:
        module = module_of(program)
        if straight:
            module = BindSymbolicVars({name: POINTS[0][name] for name in "nm"})(module)
        run = _in_c(module) if executor == "c" else _compiled(module, executor)
    except WeftError as error:
        return [Outcome("unsupported" if straight else "refused", -1, f"{error.code}: {error.message}")]
    except Exception as error:
        return [Outcome("raised", -1, f"{type(error).__name__}: {error}")]
    found = []
    for place in range(1 if straight else len(POINTS)):
        want = program.expected(place)
        if want is not None:
            found.append(_outcome(run, program.arguments(place), want, place))
    return found


def _compiled(module: Any, executor: str) -> Any:
    return (weft.interpret(module) if executor == "interpreter" else weft.compile(module, executor=executor))["main"]


def _in_c(module: Any) -> Any:
    """A module as a function that compiles its C source and runs it."""
    source = test_c.generate(weft.lower(module, "c", stop="plan"), model="model")

    def run(*arguments: Array) -> tuple[Array, ...]:
        with tempfile.TemporaryDirectory() as folder:
            like = weft.interpret(module)["main"](*arguments)
            got = [np.empty(np.shape(a), np.asarray(a).dtype) for a in (like if isinstance(like, tuple) else (like,))]
            status = test_c.run(source, "model", list(arguments), got, Path(folder))
        if status:
            raise RuntimeError(f"status {status}")
        return tuple(got)

    return run


def _outcome(run: Any, arguments: list[Array], want: tuple[Array, ...], place: int) -> Outcome:
    before = [np.copy(argument) for argument in arguments]
    try:
        got = run(*arguments)
    except WeftError as error:
        return Outcome("refused", place, f"{error.code}: {error.message}")
    except Exception as error:
        return Outcome("raised", place, f"{type(error).__name__}: {error}")
    found = got if isinstance(got, tuple) else (got,)
    changed = [not np.array_equal(a, b, equal_nan=True) for a, b in zip(arguments, before, strict=True)]
    if any(changed):
        return Outcome("wrong", place, f"argument {changed.index(True)} is changed")
    same = [is_close(np.asarray(a), b) for a, b in zip(found, want, strict=True)]
    return Outcome("right" if all(same) else "wrong", place, f"result {same.index(False)}" if not all(same) else "")


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description="random programs with loops beside NumPy")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--executors", default="interpreter,native,vm,graph,aot,c")
    parser.add_argument("--show", action="store_true", help="print the programs")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    examples: dict[str, int] = {}
    began = time.monotonic()
    for seed in range(options.start, options.start + options.count):
        if seed % 10 == 0:
            print(f"seed {seed}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        program = made(seed)
        if options.show:
            print(program.text())
        found = [("text", read_back(program))]
        if found[0][1].kind == "right":
            found += [(name, one) for name in options.executors.split(",") for one in outcomes(program, name)]
        for executor, one in found:
            kinds[f"{executor} {one.kind}"] += 1
            if one.kind in FINDINGS:
                print(f"finding: seed {seed} {executor} at {one.place}: {one.kind} {one.reason[:300]}", flush=True)
            elif one.kind in ("refused", "unsupported"):
                reasons[f"{executor} {one.reason}"] += 1
                examples.setdefault(f"{executor} {one.reason}", seed)
    for reason, times in reasons.most_common(40):
        print(f"{times}: (seed {examples[reason]}) {reason[:300]}")
    print(f"{options.count} programs, {time.monotonic() - began:.0f} s, {dict(kinds)}")
    return 1 if any(kind.split()[1] in FINDINGS for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
