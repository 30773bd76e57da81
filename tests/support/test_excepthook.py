"""What an uncaught error prints, in programs of every form: one screen, no frames of weft."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BUILT = """
import numpy as np
import weft
from weft import te
def program():
    x = te.placeholder((2, 3), name="x")
    return weft.BlockBuilder().call_te(lambda: te.compute((2,), lambda i: x[i, 0, 0]))
"""
TEXT = """
import weft
def program():
    return weft.parse("@R.function\\ndef main(x: R.Tensor((2,), 'int8')):\\n    return R.foo(x)\\n")
"""
LOADED = "import weft\ndef program():\n    weft.load('/nowhere.weft')\n"
PASSES = "import weft.transform\ndef program():\n    weft.transform.parse_pipeline('legalise')\n"
PROGRAMS = {"text": TEXT, "loaded": LOADED, "passes": PASSES, "built": BUILT}
DIRECT = "program()\n"
THREAD = "import threading\nthread = threading.Thread(target=program)\nthread.start()\nthread.join()\n"


def run(code: str, **environment: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )
    return found.stderr


@pytest.mark.parametrize("start", [DIRECT, THREAD], ids=["direct", "thread"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_uncaught_error_shows_no_inner_frame(name: str, start: str) -> None:
    printed = run(PROGRAMS[name] + start)
    frames = [line for line in printed.splitlines() if line.lstrip().startswith("File ")]
    assert "Error: W" in printed
    assert printed.count("Traceback") == 1
    assert [frame for frame in frames if '"<string>"' not in frame and "threading.py" not in frame] == []
    assert len(printed.splitlines()) <= 24


def test_everything_is_shown_where_that_is_asked_for() -> None:
    assert "reader/" in run(TEXT + DIRECT, WEFT_TRACEBACK="full")
    assert "reader/" in run(TEXT + THREAD, WEFT_TRACEBACK="full")


def test_other_errors_and_other_hooks_are_left_alone() -> None:
    assert "ZeroDivisionError" in run("import weft\n1 / 0\n")
    assert "ZeroDivisionError" in run("import weft\ndef program():\n    1 / 0\n" + THREAD)
    hook = "import sys\nsys.excepthook = lambda kind, error, tb: print('mine', kind.__name__, file=sys.stderr)\n"
    assert run(hook + LOADED + DIRECT) == "mine ArtifactError\n"
    hook = "import sys, threading\nthreading.excepthook = lambda args: print('mine', args.exc_type, file=sys.stderr)\n"
    assert run(hook + TEXT + THREAD).startswith("mine")
