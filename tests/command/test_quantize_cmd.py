"""`weft quantize`: the text it writes, its report, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.ir import IRModule

MODEL = """
from weft.script import ir as I, relax as R

@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 200), "float32"), v: R.Tensor((200, 3), "float32")):
        h = R.nn.relu(R.matmul(x, w))
        y = R.matmul(h, v)
        return y
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = np.random.default_rng(0)
    (tmp_path / "net.py").write_text(MODEL)
    w, v = (generator.normal(size=shape).astype("float32") for shape in ((16, 200), (200, 3)))
    np.savez(tmp_path / "w.npz", w=w, v=v)
    np.savez(tmp_path / "x.npz", x=generator.normal(size=(4, 5, 16)).astype("float32"))
    np.save(tmp_path / "one.npy", generator.normal(size=(5, 16)).astype("float32"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_is_written_and_runs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", "x.npz", "--params", "w.npz", "--force", "*", "--report", "-o", "out.py"]
    assert main(["quantize", "net.py", *options]) == 0
    assert capsys.readouterr().out.startswith("int8: 2 of 2 layers")
    text = (files / "out.py").read_text()
    assert len(list((files / "out.weights").iterdir())) == 2
    module = weft.parse(text, blobs="out.weights")
    assert isinstance(module, IRModule)
    x = np.load("one.npy")
    arrays = np.load("w.npz")
    exact = np.maximum(x @ arrays["w"], 0) @ arrays["v"]
    short = weft.interpret(module)["main"](x)
    assert np.linalg.norm(exact - short) < 0.03 * np.linalg.norm(exact)
    assert main(["run", "out.py", "--input", "x=one.npy", "--interpret"]) == 0


def test_json_holds_the_report(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "--data",
        "one.npy",
        "--params",
        "w.npz",
        "--exclude",
        "y",
        "--target",
        "llvm -mcpu=cortex-m4",
        "--qdq",
        "--scheme",
        "int8-symmetric",
        "--json",
    ]
    assert main(["quantize", "net.py", *given]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scheme"] == "int8-symmetric"
    assert [layer["dtype"] for layer in told["layers"]] == ["int8", "float32"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--data", "x.npz"], "W582"),
        (["--data", "none.npz", "--params", "w.npz"], "W010"),
        (["--data", "x.npz", "--params", "w.npz", "--scheme", "int9"], "W580"),
        (["--data", "x.npz", "--params", "w.npz", "--exclude", "*"], "W585"),
        (["--data", "x.npz", "--params", "w.npz", "--max-drop", "-1"], "W586"),
    ],
)
def test_wrong_input_is_one_finding(
    files: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: str
) -> None:
    assert main(["quantize", "net.py", *options, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["code"] == code


def test_arrays_of_one_file_hold_as_many_items(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("bad.npz", x=np.zeros((2, 5, 16), "float32"), w=np.zeros((3, 16, 200), "float32"))
    assert main(["quantize", "net.py", "--data", "bad.npz", "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["code"] == "W020"


def test_data_is_asked_for(files: Path) -> None:
    assert main(["quantize", "net.py"]) == 2
