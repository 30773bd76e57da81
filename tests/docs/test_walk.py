"""docs/walk.md shows what its snippets print, line by line."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from weft.transform.infra.phases import PHASES

TEXT = (Path(__file__).parents[2] / "docs" / "walk.md").read_text(encoding="utf-8")


def test_the_walk_shows_what_it_prints() -> None:
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for snippet in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
            exec(snippet, names)
    known = {line.strip() for line in (printed.getvalue() + names["scheduled"].script()).split("\n")}
    blocks = re.findall(r"```\n(.*?)```", re.sub(r"```python\n.*?```", "", TEXT, flags=re.DOTALL), re.DOTALL)
    shown = [block for block in blocks if "decorated Python" not in block and ".LBB" not in block]
    assert len(shown) == 7
    for block in shown:
        for line in filter(None, map(str.strip, block.split("\n"))):
            assert line in known or "..." in line, line


def test_the_walk_names_the_phases_in_their_order() -> None:
    titles = re.findall(r"^## (\w+):", TEXT, re.MULTILINE)
    phases = [phase.name for phase in PHASES if phase.name in titles]
    assert len(phases) == 5
    assert [title for title in titles if title in phases] == phases
