"""Write `requirements.md`: every requirement with the tests that prove it, read from the docstrings of the tests.

A test proves a requirement by citing its identifier in its docstring ("E14: string, dict and JSON ..."). Run as
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
IDENTIFIER = re.compile(r"\b([A-G]\d{1,2})\b")


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


def page() -> str:
    """The text of the page."""
    proofs = citations()
    known = statements()
    proved = sum(1 for identifier in known if proofs.get(identifier))
    lines = [
        "# Requirements and their proofs",
        "",
        f"{proved} of {len(known)} requirements are cited by a test. Made by `python docs/requirements.py`.",
        "",
        "| ID | statement | proved by |",
        "|---|---|---|",
    ]
    for identifier, text in known.items():
        tests = "<br>".join(f"`{test}`" for test in proofs.get(identifier, [])) or "**missing**"
        statement = text.replace("|", "\\|")
        lines.append(f"| {identifier} | {statement} | {tests} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with what it should be."""
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.exists() and PAGE.read_text("utf-8") == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
