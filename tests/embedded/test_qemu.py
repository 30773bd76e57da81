"""`weft qemu run`: from a script to the outputs of an emulated board, by the command line alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.embedded import boards

import weft
from weft.codegen.emulation.image import read_tree
from weft.codegen.emulation.qemu import board_for, run_on_board
from weft.target import BOARDS, Target

MODEL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), s: R.Tensor((3,), "int8")):
        w = R.const([[1.0, 2.0, 3.0]] * 4, "float32")
        y = R.exp(R.multiply(R.matmul(x, w), R.const(0.1)))
        t = R.negative(s)
        return y, t
"""
BOTH = "low: c -mcpu=cortex-m0; high: c -mcpu=cortex-m7f"
X, S = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4), np.array([1, -2, 127], "int8")
needs_tools = pytest.mark.skipif(
    bool(boards.missing_tools()), reason=f"not installed: {', '.join(boards.missing_tools())} (make test-embedded)"
)


def exported(folder: Path, target: str = "c -mcpu=cortex-m3") -> Path:
    made = weft.compile(weft.parse(MODEL), target)
    assert isinstance(made, weft.ArtifactSet)
    return made.export(folder / "tree")


def weft_qemu(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "src"}
    command = [sys.executable, "-m", "weft", "qemu", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@needs_tools
@pytest.mark.parametrize("target", [f"qemu/{name}" for name in BOARDS])
def test_every_board_that_has_a_tag_runs_what_is_compiled_for_it(target: str, tmp_path: Path) -> None:
    """G7, E13: the tag of a board is its target."""
    wanted = weft.interpret(weft.parse(MODEL))["main"](X, S)
    got = run_on_board(exported(tmp_path, target), {"x": X, "s": S})
    np.testing.assert_allclose(got["output0"], wanted[0], rtol=1e-5)
    np.testing.assert_array_equal(got["output1"], wanted[1])
    assert board_for(read_tree(tmp_path / "tree")).tag == target


@needs_tools
def test_the_command_runs_a_part_and_keeps_the_outputs(tmp_path: Path) -> None:
    """G7: `weft qemu run out/ --part high --inputs in.npz`; a folder or an archive, which stays as it was."""
    tree = exported(tmp_path, BOTH)
    before = sorted(path.name for path in tree.rglob("*"))
    made = weft.compile(weft.parse(MODEL), BOTH)
    made.save(tmp_path / "model.zip")  # type: ignore[union-attr]
    np.savez(tmp_path / "in.npz", x=X, s=S)
    wanted = weft.interpret(weft.parse(MODEL))["main"](X, S)
    for place, more in ((tree, ("--part", "high")), (tmp_path / "model.zip", ())):
        output = tmp_path / "out.npz"
        done = weft_qemu("run", place, "--inputs", tmp_path / "in.npz", *more, "-o", output)
        assert done.returncode == 0, done.stderr
        assert "output1  int8 (3,)" in done.stdout
        np.testing.assert_allclose(np.load(output)["output0"], wanted[0], rtol=1e-5)
    assert sorted(path.name for path in tree.rglob("*")) == before
    done = weft_qemu("run", tree, "--inputs", tmp_path / "in.npz", "--part", "low")
    assert done.returncode == 1
    assert "W826: the image failed on microbit" in done.stderr


@pytest.mark.parametrize(
    ("inputs", "options", "code", "said"),
    [
        ({"x": X}, {}, "W850", "needs the input 's'"),
        ({"x": X, "s": S, "q": S}, {}, "W850", "has no input 'q'"),
        ({"x": X.astype("float64"), "s": S}, {}, "W851", "'x' is float32, got float64"),
        ({"x": X[:1], "s": S}, {}, "W852", r"'x' has the shape \(2, 4\), got \(1, 4\)"),
        ({"x": X, "s": S}, {"board": "esp32"}, "W824", "no board 'esp32'"),
        ({"x": X, "s": S}, {"part": "high"}, "W824", "no part 'high'"),
        ({"x": X, "s": S}, {"model": "other"}, "W824", "no model 'other'"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_built(
    inputs: dict[str, np.ndarray], options: dict[str, str], code: str, said: str, tmp_path: Path
) -> None:
    tree = exported(tmp_path)
    with pytest.raises(weft.WeftError, match=said) as caught:
        run_on_board(tree, inputs, **options)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_folder_that_is_no_tree_is_refused(tmp_path: Path) -> None:
    for text in (None, "{}", "[", '{"models": {}, "library": "x"}'):
        if text is not None:
            (tmp_path / "metadata.json").write_text(text)
        with pytest.raises(weft.ArtifactError, match="holds no C sources of weft") as caught:
            run_on_board(tmp_path, {})
        assert caught.value.code == "W824"


def test_a_processor_without_a_board_and_tools_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(weft.ArtifactError, match="no emulated board has the processor"):
        board_for(read_tree(exported(tmp_path, "c -mcpu=cortex-m85")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(weft.ArtifactError, match="is not installed") as caught:
        run_on_board(exported(tmp_path / "other"), {"x": X, "s": S})
    assert caught.value.code == "W825"


def test_boards_are_listed_with_their_tags() -> None:
    """E13: `weft target tags` and `weft qemu list` agree."""
    rows = [line.split() for line in weft_qemu("list").stdout.splitlines()]
    assert [row[0] for row in rows] == list(BOARDS)
    for name, tag, *target in rows:
        assert Target(tag) == Target(f"{tag}")
        assert Target(tag).cpu == Target(" ".join(target)).cpu
        assert BOARDS[name].tag == tag
    command = [sys.executable, "-m", "weft", "target", "tags"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "src"})
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {board.tag for board in BOARDS.values()}
