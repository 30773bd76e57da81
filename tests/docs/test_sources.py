"""docs/sources.md names files that are there, and each of them names the source in its own text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    line.strip("|").split(" | ")
    for line in (ROOT / "docs" / "sources.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "](" in line
]


@pytest.mark.parametrize(("source", "files"), [(row[1], row[2]) for row in ROWS], ids=[row[0].strip() for row in ROWS])
def test_a_source_is_named_where_its_idea_is(source: str, files: str) -> None:
    """By the name of the first author."""
    author = re.match(r"\w+(?: Zee)?", source)
    paths = re.findall(r"\]\(([^)]*)\)", files)
    assert author is not None
    assert paths
    for path in paths:
        text = (ROOT / "docs" / path).read_text("utf-8")
        assert author[0] in text, f"{path} does not name {author[0]}"
