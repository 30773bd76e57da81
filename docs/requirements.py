"""Write `requirements.md`: every requirement with the tests that prove it.

A test proves a requirement when it fails under a planted fault that breaks the requirement: `tests.mutation` has the
faults, by requirement, with the tests that have to fail (`make mutation` sees that they do). Other tests that name the
requirement in their docstring ("E14: string, dict and JSON ...") are listed after them. Run as
`python docs/requirements.py`; with `--check` it only says whether the page is up to date (exit 1 when it is not).
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"
IDENTIFIER = re.compile(r"\b([A-H]\d{1,2})\b")


def statements() -> dict[str, str]:
    """The requirements by identifier, in order."""
    lines = (ROOT / "docs" / "requirements.tsv").read_text("utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def citations() -> dict[str, list[str]]:
    """The tests that cite each identifier, as `file::test`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for item in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(item, ast.FunctionDef) and item.name.startswith("test_"):
                # Only the head of a docstring cites: identifiers before the first full stop or colon.
                for identifier in IDENTIFIER.findall(re.split(r"[.:]", ast.get_docstring(item) or "")[0]):
                    found[identifier].append(f"{path.relative_to(ROOT)}::{item.name}")
    return found


def faults() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The planted faults of each requirement, as name and the tests that notice."""
    sys.path.insert(0, str(ROOT))
    from tests.mutation.catalogue import CATALOGUE  # of the tree that the page is about

    found: dict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for item in CATALOGUE:
        found[item.statement].append((item.name, item.tests))
    return found


def page() -> str:
    """The text of the page."""
    cited, planted, known = citations(), faults(), statements()
    proved = sum(1 for identifier in known if planted.get(identifier))
    lines = [
        "# Requirements and their proofs",
        "",
        f"For {proved} of {len(known)} requirements a fault is planted that breaks them, and the tests beside it fail "
        "under it: `make mutation` shows that. Made by `python docs/requirements.py`.",
        "",
        "| ID | statement | faults, and the tests that notice them | other tests |",
        "|---|---|---|---|",
    ]
    for identifier, text in known.items():
        proofs = planted.get(identifier, [])
        noticing = [test.partition("[")[0] for _, tests in proofs for test in tests]
        told = "<br>".join(
            f"{name.replace('_', ' ')}: " + ", ".join(f"`{test}`" for test in tests) for name, tests in proofs
        )
        others = [test for test in cited.get(identifier, []) if test not in noticing]
        statement = text.replace("|", "\\|")
        lines.append(f"| {identifier} | {statement} | {told or '**none**'} | {_listed(others)} |")
    return "\n".join(lines) + "\n"


def _listed(tests: list[str]) -> str:
    return "<br>".join(f"`{test}`" for test in tests)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with what it should be."""
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.exists() and PAGE.read_text("utf-8") == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
