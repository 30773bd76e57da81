"""Write `proofs.md`: every requirement with the tests that prove it.

A test proves a requirement when it fails under a planted fault that breaks the requirement: `tests.mutation` has the
faults, by requirement, with the tests that have to fail; `make mutation` plants them and keeps what became of each.
Other tests that name the requirement in their docstring ("E14: string, dict and JSON ...") are listed after them.

    python tests/requirements/proofs.py [--check]      with --check: exit 1 when the page is not up to date
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PAGE = HERE / "proofs.md"
IDENTIFIER = re.compile(r"\b([A-H]\d{1,2})\b")


def statements() -> dict[str, str]:
    """The requirements by identifier, in order."""
    lines = (HERE / "statements.tsv").read_text("utf-8").splitlines()
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


@dataclass(frozen=True)
class Planted:
    """A fault as the page shows it: its name in words, the tests that have to notice it, and whether they did."""

    name: str
    tests: tuple[str, ...]
    noticed: bool

    def __str__(self) -> str:
        return f"{self.name}: " + ", ".join(f"`{test}`" for test in self.tests)


def faults() -> dict[str, list[Planted]]:
    """The planted faults of each requirement."""
    sys.path.insert(0, str(ROOT))
    from tests.mutation.catalogue import CATALOGUE  # of the tree that the page is about

    lines = (ROOT / "tests" / "mutation" / "outcomes.tsv").read_text("utf-8").splitlines()
    caught = {name for name, outcome in (line.split("\t") for line in lines) if outcome == "caught"}
    found: dict[str, list[Planted]] = defaultdict(list)
    for item in CATALOGUE:
        found[item.statement].append(Planted(item.name.replace("_", " "), item.tests, item.name in caught))
    return found


def page() -> str:
    """The text of the page."""
    cited, planted, known = citations(), faults(), statements()
    proofs = {identifier: [item for item in planted.get(identifier, []) if item.noticed] for identifier in known}
    open_ones = {identifier: [item for item in planted.get(identifier, []) if not item.noticed] for identifier in known}
    lines = [
        "# Requirements and their proofs",
        "",
        f"For {sum(map(bool, proofs.values()))} of {len(known)} requirements a fault is planted that breaks them, and "
        "the tests beside it were seen to fail under it (`make mutation`). Made by "
        "`python tests/requirements/proofs.py`.",
        "",
        "| ID | statement | faults, and the tests that notice them | other tests that name it |",
        "|---|---|---|---|",
    ]
    for identifier, text in known.items():
        noticing = {test.partition("[")[0] for item in proofs[identifier] for test in item.tests}
        others = "<br>".join(f"`{test}`" for test in cited.get(identifier, []) if test not in noticing)
        statement = text.replace("|", "\\|")
        lines.append(f"| {identifier} | {statement} | {_proof(proofs[identifier], open_ones[identifier])} | {others} |")
    return "\n".join(lines) + "\n"


def _proof(noticed: list[Planted], others: list[Planted]) -> str:
    """The faults that were noticed; then those that were not, or were not planted yet."""
    missing = [f"**not noticed, or not planted yet**: {item.name}" for item in others]
    return "<br>".join([*map(str, noticed), *missing])


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with what it should be."""
    text = page()
    if "--check" in arguments:
        return 0 if PAGE.exists() and PAGE.read_text("utf-8") == text else 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
