"""The folders stand at the top level, the import name is weft, and what is installed is plain files."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("ir", "target", "script", "transform", "codegen", "runtime", "frontend", "testing")
NOT_PART_OF_WEFT = {"tests", "notebooks", "benchmarks", "docs", "examples", "src", "build", "dist"}


def folders_with_python_packages() -> list[str]:
    """Every package folder at the top of the checkout, also those added later."""
    return sorted(
        path.parent.name
        for path in ROOT.glob("*/__init__.py")
        if path.parent.name not in NOT_PART_OF_WEFT and not path.parent.name.startswith(".")
    )


def test_every_package_folder_is_known_to_this_test() -> None:
    assert set(FOLDERS) <= set(folders_with_python_packages())


@pytest.mark.parametrize("folder", folders_with_python_packages())
def test_every_folder_has_its_link_under_the_import_name(folder: str) -> None:
    link = ROOT / "src" / "weft" / folder
    assert link.is_symlink(), (
        f"src/weft/{folder} is not a link to {folder}/. To make it: ln -s ../../{folder} src/weft/{folder}\n"
        "If this checkout has no symbolic links at all (Windows without developer mode), run: "
        "git config core.symlinks true && git checkout -- src/weft"
    )
    assert os.readlink(link) == f"../../{folder}"


@pytest.mark.parametrize("folder", folders_with_python_packages())
def test_every_folder_refuses_to_be_imported_under_its_bare_name(folder: str) -> None:
    """From the checkout root `import ir` would load a second copy of every class."""
    run = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"ImportError: import weft.{folder}, not {folder}" in run.stderr


@pytest.mark.parametrize("folder", folders_with_python_packages())
def test_every_folder_is_checked_by_pyright(folder: str) -> None:
    """pyright does not walk into links, so a folder that is not named is not checked."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"src/weft/{folder}" in config["tool"]["pyright"]["include"]


def test_every_library_module_opens_with_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in folders_with_python_packages()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def test_imports_run_one_way_as_the_contract_says() -> None:
    """The contract is .importlinter; it names the import that breaks it."""
    program = Path(sys.executable).parent / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter comes with the test extra")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [str(program), "--no-logo", "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, read once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def library_modules() -> dict[str, Path]:
    """Every module of the library by the name that it is imported by."""
    found: dict[str, Path] = {}
    for folder in (*folders_with_python_packages(), "src/weft"):
        for path in (ROOT / folder).rglob("*.py"):
            if folder == "src/weft" and path.relative_to(ROOT / folder).parts[0] in FOLDERS:
                continue
            inside = path.relative_to(ROOT).parts
            parts = inside[1:] if inside[0] == "src" else ("weft", *inside)
            found[".".join(parts).removesuffix(".py").removesuffix(".__init__")] = path
    return found


def imports_inside(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Every module with those that it imports: annotations and late imports counted."""
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        wanted: set[str] = set()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                inner = [(f"{node.module}.{alias.name}", str(node.module)) for alias in node.names]
                wanted |= {longer if longer in modules else module for longer, module in inner}
        found[name] = wanted & set(modules) - {name}
    return found


def test_no_modules_import_each_other() -> None:
    """A cycle is what is left when modules that import nothing that is left are taken away, one after another."""
    left = imports_inside(library_modules())
    assert len(left) > 700
    while ready := [name for name, wanted in left.items() if not wanted & set(left)]:
        for name in ready:
            del left[name]
    assert not left


MAP = {"docs", "embedded", "fuzz", "golden", "mutation", "plugins", "requirements", "systems"}
"""Folders of tests beside those that mirror the sources: what is proved there belongs to no one folder of them."""
MOST_ENTRIES, MORE_ENTRIES = 16, 25


def folders_of_tests() -> list[Path]:
    """The folders below tests/ with Python files of their own, as paths from there."""
    tests = ROOT / "tests"
    return sorted({path.parent.relative_to(tests) for path in tests.rglob("*.py")})


TABLES = {"ir/op", "transform/graph", "transform/kernel", "transform/rewrite", "transform/schedule/primitives"}
"""Folders of operators, passes and primitives, one a file: they may have more entries."""
ROOTS = {"src/weft": 18}
"""The package itself, of which eight entries are links to the folders."""


def test_folders_have_few_entries() -> None:
    """Those that grow beyond are split by theme, and old names kept in `weft.moved`."""
    folders = {path.parent.relative_to(ROOT) for path in library_modules().values()}
    entries = {
        str(folder): [item for item in (ROOT / folder).iterdir() if item.name not in ("__pycache__", "__init__.py")]
        for folder in folders
    }
    most = {name: ROOTS.get(name, MORE_ENTRIES if name in TABLES else MOST_ENTRIES) for name in entries}
    assert {name: len(found) for name, found in entries.items() if len(found) > most[name]} == {}


PROSE = {".": 19, "docs/reference/operators": 30}
"""The checkout itself, of which eight are the folders of the library, and a page for each family of operators."""


def test_folders_beside_the_library_have_few_entries() -> None:
    """The checkout, its documentation, benchmarks, examples and notebooks: what git knows, but hidden files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip("not a checkout of git")
    entries: dict[str, set[str]] = {}
    for path in (Path(line) for line in run.stdout.splitlines() if (ROOT / line).exists()):
        for part in (path, *path.parents):
            if part.name and not part.name.startswith("."):
                entries.setdefault(str(part.parent), set()).add(part.name)
    beside = ("docs", "benchmarks", "examples", "notebooks")
    wanted = {name: found for name, found in entries.items() if name == "." or name.split("/")[0] in beside}
    assert {".", "docs", "benchmarks"} <= set(wanted)
    assert {name for name, found in wanted.items() if len(found) > PROSE.get(name, MOST_ENTRIES)} == set()


def test_folders_of_tests_mirror_the_sources() -> None:
    """The tests of ir/dim/ are in tests/ir/dim/: what has moved away leaves no folder of tests behind."""
    mirrors = [folder for folder in folders_of_tests() if folder.parts and folder.parts[0] not in MAP]
    assert [str(folder) for folder in mirrors if not (ROOT / "src" / "weft" / folder).is_dir()] == []


def test_folders_of_tests_have_few_entries() -> None:
    """Those that grow beyond are split as the sources are."""
    entries = {
        str(folder): [item for item in (ROOT / "tests" / folder).iterdir() if item.name != "__pycache__"]
        for folder in folders_of_tests()
    }
    most = {name: MORE_ENTRIES if name in (".", "ir/op") else MOST_ENTRIES for name in entries}
    assert {name: len(found) for name, found in entries.items() if len(found) > most[name]} == {}


def library_classes() -> list[tuple[str, ast.ClassDef]]:
    return [
        (f"{module}.{node.name}", node)
        for module, path in library_modules().items()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    ]


def test_no_class_is_longer_than_a_few_screens() -> None:
    lengths = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in library_classes()}
    assert {name: length for name, length in lengths.items() if length > 250} == {}


MOST_METHODS = 20
MORE_METHODS = {
    "weft.target.value.Target": 29,  # an immutable value with its forms: 13 are Python's own (copy, with)
    "weft.transform.pattern.language.DFPattern": 25,  # the language of patterns: 10 are Python's operators
    "weft.ir.builder.BlockBuilder": 24,  # the builder that users of TVM know: all but its constructor are public
    "weft.runtime.artifact.ArtifactSet": 24,  # a mapping that is saved, loaded and linked: 7 are Python's own
}
"""Classes that users meet, whose public methods are their contract; they grow no further."""


def test_no_class_has_many_methods() -> None:
    """What is done for each kind of node is a table of functions; a part of the state is a class of its own."""
    methods = {
        name: sum(isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) for part in node.body)
        for name, node in library_classes()
    }
    assert {name: count for name, count in methods.items() if count > MORE_METHODS.get(name, MOST_METHODS)} == {}
    assert [name for name in MORE_METHODS if methods[name] <= MOST_METHODS] == []


def test_docstrings_are_collected_from_the_modules_that_tests_import() -> None:
    """A second copy of a module that a package imports would have registries of its own."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            "src/weft/frontend/report.py",
            "tests/frontend/test_import_command.py::test_the_report_is_what_is_printed_by_default",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout


def test_weft_runs_from_a_checkout_that_was_never_installed(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "weft", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "weft" in run.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist, built from a copy of the checkout so that nothing is written into it."""
    import setuptools

    if int(setuptools.__version__.split(".")[0]) < 77 or find_spec("wheel") is None:
        pytest.skip("building needs setuptools>=77 and wheel; both come with the test extra")
    work = tmp_path_factory.mktemp("build")
    copy = work / "checkout"
    copy.mkdir()
    for name in ("src", "LICENSE", "README.md", "pyproject.toml", *folders_with_python_packages()):
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy(ROOT / name, copy / name)
    build = (
        "from setuptools import build_meta as backend; "
        f"print(backend.build_sdist({str(work)!r})); print(backend.build_wheel({str(work)!r}))"
    )
    run = subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return work


def library_files() -> set[str]:
    """Every Python file of the library as it is named inside a distribution."""
    linked = {f"weft/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    own = {path.relative_to(ROOT / "src") for path in (ROOT / "src" / "weft").rglob("*.py")}
    return linked | {str(path) for path in own if path.parts[1] not in FOLDERS}


def test_the_wheel_contains_every_module_as_a_plain_file(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        links = [info.filename for info in archive.infolist() if (info.external_attr >> 16) & 0o170000 == 0o120000]
    assert links == []
    assert library_files() - names == set()
    assert "weft/py.typed" in names
    assert not any(name.startswith(("tests/", "examples/")) for name in names)


def test_the_sdist_contains_every_module_as_a_plain_file(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert [member.name for member in members if member.issym()] == []
    names = {member.name.split("/src/", 1)[-1] for member in members}
    assert library_files() - names == set()


def test_an_unpacked_wheel_imports(distributions: Path, tmp_path: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import weft; print(weft.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).parent == tmp_path / "weft"
