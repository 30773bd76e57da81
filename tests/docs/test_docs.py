"""The Python in the documentation runs as it stands, and the commands it names exist."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_snippets(page: Path) -> str:
    """The Python blocks of a page as one program, each at its own lines so that an error points into the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    program, inside = [], False
    for line in lines:
        if line.startswith("```"):
            inside = line.strip() == "```python"
            program.append("")
        else:
            program.append(line if inside else "")
    return "\n".join(program)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    program = python_snippets(page)
    if not program.strip():
        pytest.skip("no Python on this page")
    script = tmp_path / f"{page.stem}.py"
    script.write_text(program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def generator() -> Any:
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    return generate


GENERATED: dict[str, Callable[[], str]] = generator().PAGES
REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", GENERATED)
def test_a_written_page_is_what_the_code_says_today(name: str) -> None:
    written = (REFERENCE / name).read_text(encoding="utf-8")
    assert written == GENERATED[name](), f"docs/reference/{name} is out of date: run `python docs/generate.py`"


def test_no_page_is_left_of_a_family_that_is_no_more() -> None:
    assert {str(path.relative_to(REFERENCE)) for path in (REFERENCE / "operators").rglob("*.md")} <= set(GENERATED)


_FOLDERS = "ir|target|script|transform|codegen|runtime|frontend|testing|src|docs|tests|examples|benchmarks"
_PLACE = re.compile(rf"`((?:{_FOLDERS})/[\w./-]*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_place_that_a_page_names_is_there(page: Path) -> None:
    missing = [place for place in _PLACE.findall(page.read_text(encoding="utf-8")) if not (ROOT / place).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
        assert (page.parent / target).exists(), target


def anchors(page: Path) -> set[str]:
    """What the headings of a page are linked by: lower case, hyphens for spaces, no other signs."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_into_a_page_leads_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if link[1] not in anchors(page.parent / link[0] if link[0] else page)] == []


def test_every_make_command_of_the_readme_is_in_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"^(?:.*`)?make ([a-z]+)\b", readme, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_every_path_of_the_readme_layout_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    layout = readme.split("## Layout", 1)[1].split("##", 1)[0]
    for path in re.findall(r"^([a-z]+(?:/[a-z]+)*)/ ", layout, re.MULTILINE):
        assert (ROOT / path).is_dir(), path


def test_the_first_program_of_the_readme_prints_what_stands_below_it(tmp_path: Path) -> None:
    program, printed, *_ = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    run = _run(tmp_path / "layer.py", program)
    assert run.stdout == printed, run.stderr


def test_the_error_of_the_readme_is_what_its_change_to_the_program_gives(tmp_path: Path) -> None:
    program, _, error, *_ = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    run = _run(tmp_path / "layer.py", program.replace("w: R.Tensor((4, 3)", "w: R.Tensor((5, 3)"))
    assert run.stderr.replace(f"{tmp_path}/", "").endswith(error)


def _run(script: Path, program: str) -> subprocess.CompletedProcess[str]:
    script.write_text(program, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True)


def test_the_readme_names_every_command() -> None:
    shown = subprocess.run([sys.executable, "-m", "weft", "--help"], cwd=ROOT / "src", capture_output=True, text=True)
    commands = re.findall(r"^    ([a-z]+) ", shown.stdout, re.MULTILINE)
    named = re.search(r"`weft (show[a-z|]*)`", (ROOT / "README.md").read_text("utf-8"))
    assert named is not None
    assert sorted(named[1].split("|")) == sorted(commands)
