"""The command line around targets: options from registries, configuration files, archives, exports, phases as text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.target import Int
from weft.target.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
MODEL = """\
from weft.script import ir as I, relax as R


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            y = R.nn.relu(a)
            R.output(y)
        return y
"""
W = np.linspace(-1, 1, 32, dtype="float32").reshape(8, 4)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    np.savez("weights.npz", w=W)

    def command(*words: str) -> tuple[int, str, str]:
        status = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return command


def explained(run: Run, *words: str) -> list[str]:
    status, out, err = run("target", "explain", *words)
    assert (status, err) == (0, "")
    return [line.strip() for line in out.splitlines()]


# Options from the registries.


def test_every_field_of_every_kind_is_an_option(run: Run) -> None:
    """E18: of kinds from outside too."""
    kind = weft.target_kind("test-board", {"clock": Int(48, "megahertz")}, doc="a board")
    try:
        _, text, _ = run("compile", "--help-target")
        for name, item in KINDS.items():
            for field in item.fields:
                assert f"--target-{name}-{field.replace('_', '-')} " in text
        for option in ("--executor ", "--executor-entry ", "--runtime ", "--package-name "):
            assert option in text
        assert "megahertz" in text
        lines = explained(run, "host: c; board: test-board", "--target-test-board-clock", "72")
        assert "clock = 72 (command line)" in lines
        assert kind.fields["clock"].default == 48
        assert run("target", "show", "test-board", "--target-test-board-clock", "fast")[0] == 1
    finally:
        del KINDS["test-board"]
    assert "megahertz" not in run("compile", "--help-target")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compile", "model.py", "--target", "c", "--target-llvm-mcpu", "x"), "--target-llvm-mcpu is for parts of"),
        (("export", "model.py", "-o", "out", "--target-c-mcpu", "x"), "--target-c-mcpu is for parts of kind 'c'"),
        (("target", "explain"), "needs a target"),
        (("target", "show", "c", "--target", "c"), "given twice"),
        (("artifact", "diff", "one.weft"), "takes 2 files"),
        (("artifact", "show", "one.weft", "two.weft"), "takes 1 file"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(run: Run, words: tuple[str, ...], message: str) -> None:
    """E18: exit status 2, one message, nothing written."""
    before = sorted(Path().iterdir())
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert sorted(Path().iterdir()) == before
    status, out, _ = run(*words, "--json")
    assert status == 2
    assert json.loads(out)[0]["code"] == "W017"


@pytest.mark.parametrize(
    "words",
    [
        ("compile", "model.py", "--target", "cc"),
        ("compile", "model.py", "--target-llvm-mcpu", "znver55"),
        ("compile", "model.py", "--executor", "aott"),
        ("compile", "model.py", "--dump-after", "fusee"),
        ("compile", "model.py", "--resume-from", "nowhere"),
        ("compile", "model.py", "--params", "none.npz"),
        ("compile", "model.py", "--config", "none.json"),
        ("export", "none.py", "-o", "out"),
        ("export", "model.py", "-o", "out", "--target", "c"),
        ("target", "show", "c -mcpu=m7x"),
        ("artifact", "show", "model.py"),
        ("artifact", "verify", "none.weft"),
    ],
)
def test_wrong_input_is_one_clear_error(run: Run, words: tuple[str, ...]) -> None:
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert err.startswith("W")
    assert len(err.splitlines()) < 12
    status, out, err = run(*words, "--json")
    assert (status, err) == (1, "")
    assert len(json.loads(out)) == 1
    assert not Path("out").exists()


# Configuration files.


def test_the_command_line_wins_over_the_file_and_the_file_over_defaults(run: Run) -> None:
    """E18: and explain says which of them it was."""
    Path("board.json").write_text(
        '{"target": "host: c -mcpu=cortex-m4; wide: llvm", "executor": "aot", "package": {"name": "kws"}}'
    )
    lines = explained(run, "--config", "board.json")
    assert "mcpu = cortex-m4 (file board.json)" in lines
    assert 'executor = {"kind": "aot", "entry": "struct"} (file board.json)' in lines
    assert 'runtime = {"alloc": "none"} (default)' in lines
    lines = explained(run, "--config", "board.json", "--target-c-mcpu", "cortex-m7f", "--runtime", "bare")
    assert "mcpu = cortex-m7 (command line)" in lines
    assert "mfpu = fpv5-sp-d16 (derived)" in lines
    assert 'runtime = {"kind": "bare", "alloc": "none"} (command line)' in lines
    assert 'package = {"format": "archive", "name": "kws"} (file board.json)' in lines
    lines = explained(run, "--config", "board.json", "--target", "c -mcpu=cortex-m0", "--executor", "native")
    assert "mcpu = cortex-m0 (given)" in lines
    assert 'executor = {"kind": "native", "entry": "struct"} (command line)' in lines
    assert not any("wide" in line for line in lines)
    status, out, _ = run("target", "show", "--config", "board.json", "--json")
    assert (status, weft.Target(out).options["executor"]["kind"]) == (0, "aot")


def test_a_file_may_be_a_target_and_give_the_level(run: Run) -> None:
    """E18: the dictionary of a target as it is."""
    target = weft.Target("a: c; b: llvm -mcpu=x86-64-v2")
    Path("t.json").write_text(target.to_json())
    assert run("target", "show", "--config", "t.json")[1].strip() == str(target)
    Path("o.json").write_text('{"opt": 7}')
    assert "opt is 0 to 3, got 7" in run("compile", "model.py", "--config", "o.json")[2]
    Path("o.json").write_text('{"opt": 0}')
    assert run("compile", "model.py", "--config", "o.json")[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "holds no configuration"),
        ('{"executr": "aot"}', "did you mean 'executor'?"),
        ('{"executor": "aott"}', "did you mean 'aot'?"),
        ('{"target": "cc"}', "unknown target kind"),
        ('{"target": "c", "memory": {"sram": {"bytes": "lots"}}}', "no size 'lots'"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_files_that_are_no_configuration_are_refused(run: Run, text: str, message: str) -> None:
    Path("wrong.json").write_text(text)
    status, out, err = run("target", "show", "c", "--config", "wrong.json")
    assert (status, out) == (1, "")
    assert message in err


# Compiling, exporting, archives.


def test_a_library_in_c_is_compiled_shown_verified_and_exported(run: Run) -> None:
    """C15, E18: provenance, targets and hashes are in the archive; an export gives the tree of sources."""
    common = ("model.py", "--symbol", "n=2", "--params", "weights.npz", "--package-name", "layer")
    status, out, err = run("compile", *common, "--target", "c -mcpu=cortex-m4f", "-o", "m4.weft")
    assert (status, err) == (0, "")
    assert "layer_main.c" in out
    status, out, _ = run("artifact", "show", "m4.weft", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert status == 0
    assert json.loads(rows["layer_ops_main.c"]["target"])["mcpu"] == "cortex-m4"
    assert rows["layer_ops_main.c"]["provenance"]["weft"] == weft.__version__
    assert "-mcpu=cortex-m4" in rows["layer_ops_main.c"]["provenance"]["flags"]
    assert rows["layer_main.c"]["provides"][0][0] == "layer_run"
    assert set(rows["layer_main.c"]["provenance"]["functions"]["layer"]) >= {"main"}
    assert all(len(row["sha256"]) == 64 and row["size"] >= 0 for row in rows.values())
    assert "c layer_main.c" in run("artifact", "show", "m4.weft")[1]
    assert "every hash is right" in run("artifact", "verify", "m4.weft")[1]

    run("compile", *common, "--target", "c -mcpu=cortex-m4f", "-o", "again.weft")
    assert Path("again.weft").read_bytes() == Path("m4.weft").read_bytes()
    assert run("artifact", "diff", "m4.weft", "again.weft") == (0, "the same artifacts\n", "")
    run("compile", *common, "--target", "c -mcpu=cortex-m0", "-o", "m0.weft")
    status, out, _ = run("artifact", "diff", "m4.weft", "m0.weft")
    assert status == 1
    assert out.count("layer_ops_main.c") == 2

    assert run("export", "m4.weft", "-o", "tree")[0] == 0
    assert run("export", *common, "--target", "c -mcpu=cortex-m4f", "-o", "direct")[0] == 0
    files = {path.relative_to("tree"): path.read_text() for path in Path("tree").rglob("*.[ch]")}
    assert {path.relative_to("direct"): path.read_text() for path in Path("direct").rglob("*.[ch]")} == files
    assert {str(path) for path in files} >= {"include/layer.h", "src/layer_main.c", "src/layer_ops_main.c"}
    assert Path("tree/Makefile").read_text() == Path("direct/Makefile").read_text()
    assert run("export", *common, "--target", "c", "-o", "layer.so")[1].strip() == "layer.so"


@pytest.mark.parametrize(
    ("target", "loads"), [("llvm", True), ("c -mcpu=cortex-m4", False), ("llvm -mcpu=cortex-m4", False)]
)
def test_the_text_of_a_compiled_module_is_verified_and_run_or_refused(run: Run, target: str, loads: bool) -> None:
    """C8: what was changed in it does not read; code for others is no function that is missing."""
    text = weft.lower(weft.parse(MODEL.replace('"n"', "2")), target, stop="link").script()
    Path("made.py").write_text(text)
    assert "every hash is right" in run("artifact", "verify", "made.py")[1]
    assert '"sha256"' in run("artifact", "show", "made.py", "--json")[1]
    assert run("artifact", "diff", "made.py", "made.py")[1] == "the same artifacts\n"
    assert run("run", "made.py", "--random")[2].startswith("W830")
    status, _, err = run("run", "made.py", "--random", "--trust")
    assert (status, err[:4]) == ((0, "") if loads else (1, "W823"))
    (data,) = re.findall(r'"data": "([A-Za-z0-9+/=]{80,})"', text)[:1]
    Path("made.py").write_text(text.replace(data, "AAAA" + data[4:]))
    assert run("artifact", "verify", "made.py")[0] == 1


def test_a_module_without_artifacts_is_said_to_have_none(run: Run) -> None:
    Path("plain.py").write_text(MODEL)
    assert run("artifact", "show", "plain.py")[2].startswith("W823: the module of plain.py has no artifacts")


def test_the_artifacts_of_a_saved_executable_are_shown_verified_and_compared(run: Run) -> None:
    assert run("compile", "model.py", "--symbol", "n=1", "-o", "m.weft")[0] == 0
    status, out, _ = run("artifact", "show", "m.weft")
    assert status == 0
    assert "weft.entry.main" in out
    assert max(map(len, out.splitlines())) <= 200
    assert "every hash is right" in run("artifact", "verify", "m.weft")[1]
    assert run("artifact", "diff", "m.weft", "m.weft")[1] == "the same artifacts\n"
    status, _, err = run("export", "m.weft", "-o", "tree")
    assert (status, err.splitlines()[0]) == (1, "W014: m.weft holds an executable of this machine, which has no files")
    assert err.splitlines()[1] == "hint: export the model itself, or save what --executor aot makes"


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("executor", ["native", "graph", "aot"])
def test_a_model_for_this_machine_is_exported_as_a_shared_object(run: Run, executor: str) -> None:
    status, out, err = run("export", "model.py", "--symbol", "n=1", "--executor", executor, "-o", "model.so")
    assert (status, out) == (0, "model.so\n"), err


def test_an_archive_that_was_changed_is_refused(run: Run) -> None:
    """C4: by every command that reads it."""
    run("compile", "model.py", "--symbol", "n=1", "--target", "c", "-o", "m.weft")
    content = bytearray(Path("m.weft").read_bytes())
    content[len(content) // 2] ^= 1
    Path("m.weft").write_bytes(content)
    for words in (("artifact", "show", "m.weft"), ("artifact", "verify", "m.weft"), ("export", "m.weft", "-o", "out")):
        status, out, err = run(*words)
        assert (status, out) == (1, "")
        assert err.startswith("W81")
    assert not Path("out").exists()


@pytest.mark.parametrize("phase", ["import", "legalize", "fuse", "lower", "plan"])
def test_a_module_is_kept_after_a_phase_and_taken_on_in_another_process(run: Run, phase: str) -> None:
    """A8: the bytes of the archive are those of an uninterrupted run."""
    flags = ["--target", "c", "--package-name", "layer"]
    first = ["model.py", "--symbol", "n=2", "--params", "weights.npz", *flags]
    assert run("compile", *first, "-o", "whole.weft", "--dump-after", phase, "--dump-dir", ".")[0] == 0
    text = Path(f"model.{phase}.txt").read_text()
    assert text.startswith("# weft-script 1")
    again = ["compile", f"model.{phase}.txt", "--resume-from", phase, *flags, "-o", "r.weft"]
    command = [sys.executable, "-m", "weft", *again]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "5"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert Path("r.weft").read_bytes() == Path("whole.weft").read_bytes()


def test_several_phases_are_kept_in_one_run(run: Run) -> None:
    status, _, err = run("compile", "model.py", "--dump-after", "lower", "--dump-after", "import", "-o", "m.weft")
    assert (status, err) == (0, "")
    assert "R.matmul" in Path("model.import.txt").read_text()
    assert "R.matmul" not in Path("model.lower.txt").read_text()
    status, out, _ = run("run", "m.weft", "--trust", "--random", "--symbol", "n=3", "--json")
    assert json.loads(out)["results"][0]["shape"] == [3, 4]


def test_phases_of_a_target_are_listed(run: Run) -> None:
    """A5: with the passes that it adds."""
    plain = run("phases")[1]
    with_parts = run("phases", "--target", "a: llvm -mcpu=x86-64-v3; b: llvm")[1]
    assert plain != with_parts
    assert "assign" in plain
    assert "specialise-by-label" in with_parts
    assert [line.split()[0] for line in plain.splitlines()] == weft.transform.phases()


def test_kinds_and_tags_are_listed(run: Run) -> None:
    weft.tag.register("test/list", "c -mcpu=cortex-m4")
    try:
        assert ["test/list", "c", "-mcpu=cortex-m4"] in [line.split() for line in run("target", "tags")[1].splitlines()]
        assert json.loads(run("target", "tags", "--json")[1])["test/list"] == "c -mcpu=cortex-m4"
    finally:
        weft.tag.unregister("test/list")
    rows = {row["kind"]: row for row in json.loads(run("target", "list", "--json")[1])}
    assert set(rows) == set(KINDS)
    assert rows["c"]["options"]["std"]["choices"] == ["c99", "c11"]
    assert "machine code by LLVM" in run("target", "list")[1]
