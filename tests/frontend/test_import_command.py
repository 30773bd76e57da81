"""`weft import`: text with arrays beside it, the report, and the comparison with the reference."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import weft
from weft.__main__ import main
from weft.command.progress import Progress


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A layer with a weight that is large enough for the folder."""
    w = np.random.default_rng(0).normal(size=(4, 300)).astype("float32")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="project"),
        helper.make_node("Relu", ["a"], ["y"], name="act"),
    ]
    x, y = helper.make_tensor_value_info("x", 1, ["n", 4]), helper.make_tensor_value_info("y", 1, ["n", 300])
    graph = helper.make_graph(nodes, "layer", [x], [y], [numpy_helper.from_array(w, "w")])
    path = tmp_path / "layer.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), str(path))
    return path


def test_the_text_and_its_folder_read_back_and_run(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = model.with_suffix(".py")
    assert main(["import", str(model), "-o", str(text)]) == 0
    module = weft.parse(text.read_text(), blobs=model.with_suffix(".weights"))
    assert weft.structural_equal(module, weft.frontend.onnx.load(model))
    assert main(["check", str(text)]) == 0
    assert main(["run", str(text), "--random", "--symbol", "n=2", "--interpret"]) == 0
    assert "300" in capsys.readouterr().out


def test_the_report_is_what_is_printed_by_default(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(model)]) == 0
    assert "2 nodes: 2 native" in capsys.readouterr().out
    assert main(["import", str(model), "--report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"][0]["name"] == "project"


def test_the_check_says_that_results_are_equal(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(model), "--check", "--symbol", "n=2"]) == 0
    assert "equal to" in capsys.readouterr().out


def test_the_check_names_the_first_node_that_differs(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.frontend.onnx.table import TABLE, Row
    from weft.script import relax as R

    wrong = Row("Relu", lambda n, x: R.negative(x), 1, "", 1, False)
    monkeypatch.setitem(TABLE, ("", "Relu"), [wrong])
    result = weft.frontend.onnx.check(model)
    assert not result.equal
    assert "1 act: y = Relu(a)" in str(result)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_takes_longer_than_a_second_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.command.progress._WAIT", 0.01)
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        with Progress("importing model.onnx", stream) as progress:
            progress(15, 30)
            deadline = time.monotonic() + 5
            while stream is terminal and not stream.getvalue() and time.monotonic() < deadline:
                time.sleep(0.01)
    assert f"importing model.onnx [{'#' * 15}{'.' * 15}] 15/30" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert not pipe.getvalue()


def test_an_import_says_how_far_it_is(model: Path) -> None:
    told: list[tuple[int, int]] = []
    weft.frontend.onnx.load(model, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_a_file_that_is_no_model_is_an_error_of_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    assert main(["import", str(path)]) == 1
    assert main(["import", str(tmp_path / "missing.onnx")]) == 1
    assert "missing.onnx" in capsys.readouterr().err


def test_the_check_reads_arrays_beside_the_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model.parent / "deep" / "beside.onnx"
    path.parent.mkdir()
    onnx.save(onnx.load(model), str(path), save_as_external_data=True, location="beside.data", size_threshold=0)
    monkeypatch.chdir(model.parent)  # not where the arrays are
    assert main(["import", str(path), "--check", "--symbol", "n=2"]) == 0
    assert "equal to" in capsys.readouterr().out


def test_a_symbol_that_the_inputs_do_not_have_is_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(model), "--check", "--symbol", "m=2"]) == 1
    assert capsys.readouterr().err == "W978: the inputs have no symbol 'm'\nhint: they have: n\n"


def test_the_text_never_replaces_the_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = model.read_bytes()
    assert main(["import", str(model), "-o", str(model.parent / "." / model.name)]) == 1
    assert "is the model itself" in capsys.readouterr().err
    assert model.read_bytes() == before
