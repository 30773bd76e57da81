"""A few seconds of hostile input, and that what goes wrong is found; `make fuzz TIME=3600` goes on for an hour."""

from __future__ import annotations

import random
import subprocess
import sys

from tests.fuzz.hostile import ROOT, fuzz


def test_hostile_input_of_every_kind_ends_with_right_values_or_errors_of_weft() -> None:
    *findings, count = fuzz(6, start=random.randrange(1 << 20))
    assert findings == []
    assert int(count.split()[0]) > 20


def test_a_wrong_value_and_a_process_that_dies_are_findings() -> None:
    assert next(fuzz(20, names=["_wrong"])).startswith("_wrong 0 AssertionError")
    assert next(fuzz(20, names=["_dies"])).startswith("_dies 0 ended the process with -6")


def test_values_of_every_host_are_taken_as_numpy_takes_them_or_refused() -> None:
    """In memory that is guarded; `python tests/fuzz/host_values.py --tries 3000` goes on."""
    command = [sys.executable, str(ROOT / "tests/fuzz/host_values.py"), "--tries", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.returncode, "finding" in done.stdout) == (0, False), done.stdout + done.stderr[-500:]
