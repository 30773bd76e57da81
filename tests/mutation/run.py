"""Plant every fault, and see the tests that prove its statement fail.

    python -m tests.mutation.run [NAME ...]         make mutation

Each runs in a process of its own: once as weft is (the tests pass), once under the fault (one of them fails). Prints
the survivors, and exits with 1 when there are any.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.mutation.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]


def passes(tests: tuple[str, ...], fault: str = "") -> bool:
    """Whether tests pass, with a fault planted or none."""
    options = ["-q", "-x", "-p", "tests.mutation.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "WEFT_FAULT": fault}, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return done.returncode == 0


def survives(fault: Fault) -> bool:
    """Whether no test notices a fault; RuntimeError for tests that fail without it."""
    if not passes(fault.tests):
        raise RuntimeError(f"{', '.join(fault.tests)} fail as weft is")
    return passes(fault.tests, fault.name)


def main(names: list[str]) -> int:
    """Run; the exit code."""
    survivors = 0
    for fault in FAULTS:
        if not names or fault.name in names:
            try:
                alive = survives(fault)
                told = "SURVIVES" if alive else "caught"
            except RuntimeError as error:  # tests that fail without it prove nothing
                alive, told = True, f"UNKNOWN, {str(error)[-200:]}:"
            survivors += alive
            print(f"{told:8} {fault.statement:4} {fault.name}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
