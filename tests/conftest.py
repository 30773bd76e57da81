"""What every test shares: checks after every pass, the `golden` fixture for expected text, and the examples' profile.

Hypothesis derives its examples from the test's own code, so that a run says the same of the same commit everywhere;
`pytest --hypothesis-profile=random` draws new ones, and `python tests/fuzz/modules.py --passes` many more.

Golden files live in tests/golden/, at a path made from the test's own id. `pytest --update-golden` writes them
and then fails the run, so that a person looks at what changed before it is kept.
"""

from __future__ import annotations

import atexit
import difflib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile("fixed")

os.environ.setdefault("WEFT_CHECK", "1")
# What the tests compile is kept for the tests of one run alone.
os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-cache-")
atexit.register(shutil.rmtree, os.environ["WEFT_CACHE_DIR"], ignore_errors=True)
# A run in the background begins with Ctrl-C ignored, as do the children of its tests: those of interrupts never ended.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_COLUMNS = 60, 200
"""Of a difference that is shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files, then fail the run")


@pytest.fixture
def root() -> Path:
    """The top folder of the checkout."""
    return ROOT


def difference(expected: str, text: str, name: str) -> str:
    """What changed in a text, in the lines around it, with how to accept it."""
    lines = [*difflib.unified_diff(expected.splitlines(), text.splitlines(), name, "now", lineterm="", n=2)]
    shown = [line[:MOST_COLUMNS] for line in lines[:MOST_LINES]]
    more = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    return "\n".join([*shown, *more, "if that is meant: pytest --update-golden, and look at the difference"])


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare text with the file kept for this test; a test may call it once per name."""
    node = request.node
    folder = ROOT / "tests" / "golden" / node.path.relative_to(ROOT / "tests").with_suffix("")
    stem = re.sub(r"[^\w.-]+", "_", node.name).strip("_")

    def check(text: str, name: str = "", suffix: str = "txt") -> None:
        path = folder / (f"{stem}.{name}.{suffix}" if name else f"{stem}.{suffix}")
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            pytest.fail(f"wrote {path.relative_to(ROOT)}; look at it, then run again without --update-golden")
        if not path.exists():
            pytest.fail(f"{path.relative_to(ROOT)} does not exist; run pytest --update-golden to write it")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            pytest.fail(difference(expected, text, str(path.relative_to(ROOT))), pytrace=False)

    return check
