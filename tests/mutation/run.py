"""Plant every fault, and see the tests that prove its statement fail.

    python -m tests.mutation.run [NAME or STATEMENT ...]         make mutation

The tests run once as weft is: those that fail then prove nothing. Each fault is planted in a child of this process, so
that weft is imported once, and the tests that it names run there: one of them has to fail. Prints what became of each
fault, keeps that in `tests/mutation/outcomes.tsv` for tests/requirements/proofs.md, and exits with 1 when one survived.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.mutation.catalogue import CATALOGUE
from tests.mutation.faults import Fault

import weft
import weft.codegen.lowering  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = ROOT / "tests" / "mutation" / "outcomes.tsv"
"""What became of each fault when it was last planted, by name."""
SECONDS = 300
"""A fault may make a program endless: after so long it counts as noticed."""
NOTICED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""How pytest ends when a test fails, and when a file of tests cannot be imported."""


class _Outcomes:
    """A plug-in of pytest that keeps the tests that failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure, in the set-up or the test."""
        if report.failed:
            self.failed.append(report.nodeid)


def run_tests(tests: Sequence[str], *, seconds: float | None = SECONDS) -> tuple[int, list[str]]:
    """How pytest ends in a child of this process, and the tests that failed there; it stops at the first in `seconds`.

    Without a limit every test runs.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
            os.close(reader)
            outcomes = _Outcomes()
            options = ["-q", "-p", "no:cacheprovider", "--no-header", *(["-x"] if seconds else [])]
            code = pytest.main([*options, *tests], plugins=[outcomes])
            with os.fdopen(writer, "w") as told:
                told.write("\n".join([str(int(code)), *outcomes.failed]))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        ended = _ends(child, seconds)
        lines = told.read().splitlines() if ended else []
    if not lines:  # the process died, or did not end: that is noticed
        return int(pytest.ExitCode.TESTS_FAILED), list(tests)
    return int(lines[0]), lines[1:]


def _ends(child: int, seconds: float | None) -> bool:
    """Whether a process ends by itself in time."""
    limit = None if seconds is None else time.monotonic() + seconds
    while limit is None or time.monotonic() < limit:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


def survives(fault: Fault) -> bool:
    """Whether no test notices a fault; RuntimeError for tests that cannot be run."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        answer = "error"
        with contextlib.suppress(BaseException):
            fault.plant()
            code, _ = run_tests(fault.tests)
            answer = "caught" if code in NOTICED else "survives" if code == 0 else f"pytest ends with {code}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    os.waitpid(child, 0)
    if answer not in ("caught", "survives"):
        raise RuntimeError(f"{', '.join(fault.tests)}: {answer}")
    return answer == "survives"


def outcomes() -> dict[str, str]:
    """What became of each fault when it was last planted: caught, SURVIVES or UNKNOWN."""
    return dict(line.split("\t") for line in OUTCOMES.read_text("utf-8").splitlines())


def keep(found: dict[str, str]) -> None:
    """Write the outcomes, those of before for the faults that were not planted now."""
    known = {**outcomes(), **found}
    lines = [f"{item.name}\t{known[item.name]}" for item in CATALOGUE if item.name in known]
    OUTCOMES.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main(names: Iterable[str]) -> int:
    """Run; the exit code."""
    wanted = set(names)
    chosen = [item for item in CATALOGUE if not wanted or item.name in wanted or item.statement in wanted]
    tests = sorted({test for fault in chosen for test in fault.tests})
    os.chdir(ROOT)
    failing = set(run_tests(tests, seconds=None)[1])
    survivors = 0
    found: dict[str, str] = {}
    for fault in chosen:
        try:
            if any(test.startswith(mine) for test in failing for mine in fault.tests):
                raise RuntimeError("its tests fail as weft is")
            alive = survives(fault)
            told = "SURVIVES" if alive else "caught"
        except RuntimeError as error:
            alive, told = True, f"UNKNOWN ({str(error)[-160:]})"
        survivors += alive
        found[fault.name] = told.split()[0]
        print(f"{told:8} {fault.statement:4} {fault.name}", flush=True)
    keep(found)
    print(f"{len(chosen) - survivors} of {len(chosen)} faults are noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
