"""The command line: what each command does with good and bad input, its exit status, its JSON, its pipes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

MODEL = '''\
"""A model, among other Python that would fail if it were run."""

import nowhere

from weft.script import ir as I, relax as R, tir as T

WIDTH = 4
raise SystemExit("this file was run")


@I.ir_module
class Model:
    @T.prim_func
    def halve(x: T.Buffer(("n", WIDTH), "float32"), y: T.Buffer(("n", WIDTH), "float32")):
        for i, j in T.grid(n, WIDTH):
            with T.block("halve"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5)

    @R.function
    def other(x: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
        return x

    @R.function
    def main(x: R.Tensor(("n", WIDTH), "float32"), b: R.Tensor((WIDTH,), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            y = R.call_tir(Model.halve, (x,), out_ty=R.Tensor((n, WIDTH), "float32"))
            z = R.add(y, b)
            R.output(z)
        return z


def unrelated():
    return 1 / 0
'''

FUNCTION = """\
from weft.script import relax as R

@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    return R.nn.relu(x)
"""

KERNEL = """\
@T.prim_func
def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = x[i] * T.float32(2)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the sample files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "function.py").write_text(FUNCTION)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


class Run:
    """One call of the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        out, err = self.capsys.readouterr()
        return status, out, err

    def json(self, *arguments: str) -> tuple[int, Any]:
        status, out, err = self(*arguments, "--json")
        assert err == ""
        return status, json.loads(out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path) -> Run:
    return Run(capsys)


def process(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """One call of the command line in a process of its own."""
    command = [sys.executable, "-m", "weft", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env={**ENVIRONMENT, **environment})


# -- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", "show", "check", "run", "compile", "pass", "phases", "ops"])
def test_help_fits_a_screen_of_24_lines_and_80_columns(run: Run, command: str) -> None:
    status, out, _ = run(*command.split(), "--help")
    assert status == 0
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80


def test_version_is_the_version_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"weft {weft.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["chek", "model.py"],
        ["check"],
        ["show"],
        ["run"],
        ["compile"],
        ["check", "--jsn", "model.py"],
        ["run", "model.py", "--symbol", "n=x"],
        ["run", "model.py", "--symbol", "n"],
        ["run", "model.py", "--opt", "9"],
        ["compile", "model.py", "--emit", "java"],
        ["show", "model.py", "--types", "some"],
    ],
)
def test_wrong_usage_is_exit_2_and_shows_the_usage(run: Run, arguments: list[str]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("usage: weft")


# -- check ---------------------------------------------------------------------------------------------------------


def test_check_reads_decorated_units_and_runs_nothing_of_the_file(run: Run) -> None:
    """The file would stop the process or fail to import if anything of it were run."""
    assert run("check", "model.py") == (0, "model.py: 1 unit, well formed\n", "")


def test_check_takes_several_files(run: Run) -> None:
    status, out, _ = run("check", "model.py", "function.py", "kernel.py")
    assert (status, len(out.splitlines())) == (0, 3)


def test_check_of_a_good_file_is_an_empty_list_in_json(run: Run) -> None:
    assert run.json("check", "model.py") == (0, [])


def finding(run: Run, text: str, name: str = "bad.py") -> dict[str, Any]:
    """The only finding of a file with this text."""
    Path(name).write_text(text)
    status, findings = run.json("check", name)
    assert (status, len(findings)) == (1, 1), findings
    assert {"code", "message", "file", "line", "column", "hint"} <= findings[0].keys()
    assert findings[0]["file"] == name
    return findings[0]


def place(found: dict[str, Any]) -> tuple[int, int]:
    return found["line"], found["column"]


def test_an_undefined_name_is_found_at_its_place(run: Run) -> None:
    found = finding(run, MODEL.replace("R.add(y, b)", "R.add(y, bb)"))
    assert (found["code"], place(found)) == ("W110", (28, 26))


def test_an_unknown_operator_comes_with_the_nearest_name(run: Run) -> None:
    found = finding(run, FUNCTION.replace("nn.relu", "nn.rleu"))
    assert place(found)[0] == 5
    assert "relu" in found["hint"]


def test_a_static_shape_mismatch_is_found(run: Run) -> None:
    found = finding(run, MODEL.replace("b: R.Tensor((WIDTH,)", "b: R.Tensor((5,)"))
    assert found["code"].startswith("W2")
    assert place(found)[0] == 28


def test_a_wrong_symbolic_claim_comes_with_a_counter_example(run: Run) -> None:
    claim = 'y: R.Tensor((2 * n, 2), "float32") = R.reshape(x, (n, 4))'
    found = finding(run, FUNCTION.replace("return R", f"{claim}\n    return R"))
    assert found["code"].startswith("W2")
    assert place(found) == (5, 5) or place(found)[0] == 5


def test_a_kernel_that_contradicts_its_call_is_found(run: Run) -> None:
    found = finding(run, MODEL.replace('y: T.Buffer(("n", WIDTH), "float32")', 'y: T.Buffer(("n", 3), "float32")'))
    assert found["line"] is not None


def test_a_wrong_rank_of_an_index_is_found(run: Run) -> None:
    found = finding(run, KERNEL.replace("x[i]", "x[i, i]"))
    assert place(found)[0] == 4


def test_a_syntax_error_is_a_finding_with_its_place(run: Run) -> None:
    found = finding(run, "x = 1\ny = = 2\n")
    assert (found["code"], place(found)) == ("W101", (2, 5))


def test_columns_count_characters_and_not_bytes(run: Run) -> None:
    found = finding(run, FUNCTION.replace("R.nn.relu(x)", 'R.print(x, format="é€𝄞") + undefined'))
    assert place(found) == (5, 39)


def test_windows_line_ends_do_not_shift_places(run: Run) -> None:
    Path("bad.py").write_bytes(FUNCTION.replace("relu(x)", "relu(y)").replace("\n", "\r\n").encode())
    _, (found,) = run.json("check", "bad.py")
    assert place(found) == (5, 22)


def test_every_bad_unit_of_a_file_is_reported(run: Run) -> None:
    bad = FUNCTION.replace("relu(x)", "relu(y)")
    Path("bad.py").write_text(bad + "\n" + bad.partition("\n")[2].replace("main", "second"))
    status, findings = run.json("check", "bad.py", "model.py")
    assert (status, [item["line"] for item in findings]) == (1, [5, 10])


def test_a_unit_inside_a_function_or_a_condition_is_checked_too(run: Run) -> None:
    body = "".join(f"    {line}\n" if line else "\n" for line in FUNCTION.splitlines())
    found = finding(run, "def make():\n" + body.replace("relu(x)", "relu(y)"))
    assert place(found) == (6, 26)
    found = finding(run, "if True:\n    pass\nelse:\n" + body.replace("relu(x)", "relu(y)"))
    assert place(found) == (8, 26)


def test_other_names_for_the_namespaces_are_understood(run: Run) -> None:
    text = FUNCTION.replace("relax as R", "relax as X").replace("R.", "X.")
    Path("alias.py").write_text(text)
    assert run("check", "alias.py")[0] == 0


def test_a_missing_file_is_exit_1_and_names_the_file(run: Run) -> None:
    status, _, err = run("check", "nowhere.py")
    assert status == 1
    assert "nowhere.py" in err
    assert "Traceback" not in err
    _, (found,) = run.json("check", "nowhere.py")
    assert (found["code"], found["file"], found["line"]) == ("W010", "nowhere.py", None)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"# coding: nonsense\n", b"x = '\xff'\n", b"x = 1\x00\n"])
def test_a_file_that_is_no_text_is_a_finding(run: Run, data: bytes) -> None:
    Path("bad.py").write_bytes(data)
    status, findings = run.json("check", "bad.py")
    assert (status, len(findings)) == (1, 1)


def test_a_folder_in_place_of_a_file_is_a_finding(run: Run) -> None:
    Path("folder").mkdir()
    assert run("check", "folder")[0] == 1


@pytest.mark.parametrize("text", ["", "x = 1\n", "# only a comment\n"])
def test_a_file_without_units_is_a_finding(run: Run, text: str) -> None:
    Path("empty.py").write_text(text)
    status, (found,) = run.json("check", "empty.py")
    assert (status, found["code"], found["file"]) == (1, "W011", "empty.py")


def test_standard_input_is_read_for_a_dash(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FUNCTION.encode())))
    assert run("check", "-") == (0, "<stdin>: 1 unit, well formed\n", "")


def test_nesting_beyond_any_limit_is_a_finding(run: Run) -> None:
    Path("deep.py").write_text(FUNCTION.replace("R.nn.relu(x)", "R.nn.relu(" * 5000 + "x" + ")" * 5000))
    status, (found,) = run.json("check", "deep.py")
    assert (status, found["code"]) == (1, "W103")


# -- show ----------------------------------------------------------------------------------------------------------


def test_what_show_prints_is_what_check_accepts_and_reads_as_the_same_module(run: Run) -> None:
    status, text, _ = run("show", "model.py")
    assert status == 0
    Path("shown.py").write_text(text)
    assert run("check", "shown.py")[0] == 0
    assert run("show", "shown.py") == (0, text, "")


def test_show_with_hidden_types_still_reads(run: Run) -> None:
    _, text, _ = run("show", "model.py", "--types", "hidden")
    Path("shown.py").write_text(text)
    assert run("check", "shown.py")[0] == 0


def test_show_of_several_units_reads_back(run: Run) -> None:
    _, text, _ = run("show", "model.py", "kernel.py")
    Path("shown.py").write_text(text)
    assert run("check", "shown.py") == (0, "shown.py: 2 units, well formed\n", "")


def test_show_of_one_function_brings_what_it_calls(run: Run) -> None:
    _, text, _ = run("show", "model.py", "--function", "main")
    assert "def halve" in text
    assert "def other" not in text
    Path("shown.py").write_text(text)
    assert run("check", "shown.py")[0] == 0


def test_show_of_a_function_that_is_not_there_names_those_that_are(run: Run) -> None:
    status, _, err = run("show", "model.py", "--function", "mian")
    assert status == 1
    assert "halve, other, main" in err


def test_show_in_json_gives_each_unit_with_its_text(run: Run) -> None:
    status, (row,) = run.json("show", "model.py")
    assert (status, row["file"], row["name"], row["line"]) == (0, "model.py", "Model", 11)
    assert isinstance(weft.parse(row["text"]), weft.IRModule)


# -- run -----------------------------------------------------------------------------------------------------------


def save(**arrays: np.ndarray) -> None:
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)


INPUTS = {"x": np.arange(8, dtype="float32").reshape(2, 4), "b": np.ones(4, "float32")}


@pytest.mark.parametrize("how", [[], ["--interpret"]])
def test_run_calls_main_on_files_by_position_and_by_name(run: Run, how: list[str]) -> None:
    save(**INPUTS)
    status, report = run.json("run", "model.py", "--input", "x.npy", "--input", "b=b.npy", *how, "--output", "out.npy")
    assert (status, report["function"], report["results"][0]["shape"]) == (0, "main", [2, 4])
    np.testing.assert_array_equal(np.load("out.npy"), INPUTS["x"] * np.float32(0.5) + 1)


def test_a_member_of_an_npz_file_that_is_no_array_is_named(run: Run) -> None:
    with zipfile.ZipFile("odd.npz", "w") as archive:
        archive.writestr("x.npy", b"")
    status, _, err = run("run", "model.py", "--interpret", "--input", "odd.npz")
    assert (status, err) == (1, "W010: odd.npz is not a .npz file of plain arrays: 'x' is none\n")


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_the_member_of_an_npz_file_that_is_damaged_is_named(run: Run, write: Callable[..., None]) -> None:
    write("all.npz", **INPUTS)
    content = Path("all.npz").read_bytes()
    with zipfile.ZipFile("all.npz") as archive:
        place = archive.getinfo("b.npy").header_offset + 30 + len("b.npy") + 20 + 40  # behind the header of ZIP64
    Path("all.npz").write_bytes(content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :])
    status, _, err = run("run", "model.py", "--interpret", "--input", "all.npz")
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith("W010: all.npz is not a .npz file of plain arrays: 'b' cannot be read: ")


def test_run_takes_names_from_an_npz_file(run: Run) -> None:
    np.savez("all.npz", **INPUTS)
    assert run("run", "model.py", "--interpret", "--input", "all.npz")[0] == 0


def test_run_with_random_values_is_the_same_for_the_same_seed(run: Run) -> None:
    first = run.json("run", "model.py", "--interpret", "--random", "--symbol", "n=3")[1]["results"]
    again = run.json("run", "model.py", "--interpret", "--random", "--symbol", "n=3", "--seed", "0")[1]["results"]
    other = run.json("run", "model.py", "--interpret", "--random", "--symbol", "n=3", "--seed", "1")[1]["results"]
    assert first == again
    assert first != other
    assert first[0]["shape"] == [3, 4]


def test_run_says_which_sizes_it_chose(run: Run) -> None:
    _, report = run.json("run", "model.py", "--interpret", "--random")
    assert report["results"][0]["shape"][0] == report["symbols"]["n"]


def test_run_fills_the_rest_to_fit_a_given_array(run: Run) -> None:
    save(**INPUTS)
    _, report = run.json("run", "model.py", "--interpret", "--input", "x.npy", "--random")
    assert report["results"][0]["shape"] == [2, 4]


def test_run_of_a_kernel_reports_the_buffers_that_it_writes(run: Run) -> None:
    save(x=np.ones(3, "float32"), y=np.zeros(3, "float32"))
    _, report = run.json("run", "kernel.py", "--interpret", "--input", "x.npy", "--input", "y.npy")
    assert [(row["name"], row["values"]) for row in report["results"]] == [("y", [2.0, 2.0, 2.0])]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], "W021", "x: float32 (n, 4), b: float32 (4,)"),
        (["--input", "nowhere.npy"], "W010", "nowhere.npy"),
        (["--input", "model.py"], "W010", "model.py is not a .npy or .npz file"),
        (["--input", "z=x.npy"], "W020", "no parameter 'z'"),
        (["--input", "x.npy", "--input", "b.npy", "--input", "b.npy"], "W020", "3 inputs for 2 parameters"),
        (["--input", "x=x.npy", "--input", "x=x.npy"], "W020", "given twice"),
        (["--input", "x.npy", "--symbol", "n=3", "--random"], "W022", "n=2"),
        (["--symbol", "k=3", "--random"], "W022", "'k'"),
        (["--function", "nothing", "--random"], "W012", "'nothing'"),
        (["--unit", "nothing", "--random"], "W012", "'nothing'"),
        (["--random", "--output", "out.txt"], "W010", ".npy or .npz"),
        (["--random", "--output", "no/folder/out.npy"], "W010", "cannot write"),
    ],
)
def test_wrong_inputs_of_a_run_are_named(run: Run, arguments: list[str], code: str, words: str) -> None:
    save(**INPUTS)
    status, (found,) = run.json("run", "model.py", "--interpret", *arguments)
    assert (status, found["code"]) == (1, code)
    assert words in found["message"]


@pytest.mark.parametrize("how", [[], ["--interpret"]])
@pytest.mark.parametrize(
    "array",
    [np.ones((2, 3), "float32"), np.ones((2, 4), "float64"), np.ones(4, "float32")],
    ids=["shape", "dtype", "rank"],
)
def test_an_array_that_does_not_fit_is_refused_with_the_name_of_the_parameter(
    run: Run, how: list[str], array: np.ndarray
) -> None:
    save(x=array)
    status, _, err = run("run", "model.py", "--input", "x.npy", "--random", *how)
    assert status == 1
    assert "x" in err
    assert "Traceback" not in err


def test_pickled_arrays_are_refused(run: Run) -> None:
    np.save("x.npy", np.array([{}], dtype=object), allow_pickle=True)
    status, _, err = run("run", "model.py", "--input", "x.npy", "--random")
    assert (status, err) == (1, "W010: x.npy is not a .npy or .npz file of plain arrays: it holds Python objects\n")


def test_other_files_than_arrays_are_named_in_words_of_our_own(run: Run) -> None:
    Path("x.json").write_text("[1, 2]", encoding="utf-8")
    status, _, err = run("run", "model.py", "--input", "x.json", "--random")
    hint = "hint: numpy.save and numpy.savez write such files"
    assert (status, err) == (1, f"W010: x.json is not a .npy or .npz file\n{hint}\n")


# -- compile -------------------------------------------------------------------------------------------------------


def test_a_size_that_must_be_known_says_how_the_command_line_gives_it(run: Run) -> None:
    text = '@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    return R.exp(x)\n'
    Path("sized.txt").write_text(text, encoding="utf-8")
    status, (found,) = run.json("compile", "sized.txt", "--target", "c", "-o", "model.weft")
    assert (status, found["code"], found["line"]) == (1, "W745", 2)
    assert found["message"] == "c: every size must be known at compile time, and n is not"
    assert found["hint"].endswith("or --symbol n=64 on the command line")
    assert run("compile", "sized.txt", "--target", "c", "--symbol", "n=2", "-o", "model.weft")[0] == 0


def test_compile_saves_an_executable_that_loads_and_runs(run: Run) -> None:
    status, report = run.json("compile", "model.py", "-o", "model.weft")
    assert status == 0
    assert "main" in report["functions"]
    result = weft.load("model.weft")["main"](INPUTS["x"], INPUTS["b"])
    np.testing.assert_array_equal(result, INPUTS["x"] * np.float32(0.5) + 1)


def test_compile_takes_a_number_of_workers(run: Run) -> None:
    made = {run("compile", "model.py", "--workers", count, "-o", f"{count}.weft")[0] for count in ("1", "3")}
    assert made == {0}
    assert Path("1.weft").read_bytes() == Path("3.weft").read_bytes()
    status, (found,) = run.json("compile", "model.py", "--workers", "0")
    assert (status, found["code"]) == (1, "W547")


def test_run_takes_a_saved_executable(run: Run) -> None:
    save(**INPUTS)
    run("compile", "model.py")
    compiled = run.json("run", "model.weft", "--trust", "--input", "x.npy", "--random")[1]["results"]
    assert compiled == run.json("run", "model.py", "--input", "x.npy", "--random", "--interpret")[1]["results"]
    options = ("--trust", "--function", "halve", "--random", "--symbol", "n=0")
    kernel = run.json("run", "model.weft", *options)[1]["results"]
    assert [(row["name"], row["shape"]) for row in kernel] == [("y", [0, 4])]


@pytest.mark.parametrize("option", ["--interpret", "--unit=Model", "--target=llvm"])
def test_an_option_that_a_saved_executable_cannot_honour_is_refused(run: Run, option: str) -> None:
    run("compile", "function.py")
    status, (found,) = run.json("run", "function.weft", "--trust", "--random", option)
    assert (status, found["code"]) == (1, "W014")


@pytest.mark.parametrize("size", [0, 10, 3000])
def test_a_damaged_executable_is_refused(run: Run, size: int) -> None:
    run("compile", "function.py")
    Path("damaged.weft").write_bytes(Path("function.weft").read_bytes()[:size])
    status, (found,) = run.json("run", "damaged.weft", "--trust", "--random")
    assert (status, found["code"][:2]) == (1, "W8")


def test_a_setup_file_registers_what_a_run_calls(run: Run) -> None:
    Path("helper.py").write_text("def triple(x, out):\n    out[...] = 3 * x\n")
    Path("setup.py").write_text("import weft\nfrom helper import triple\nweft.register_func('cli.triple', triple)\n")
    call = "R.call_dps_packed('cli.triple', (x,), out_ty=R.Tensor((n, 4), 'float32'))"
    Path("external.py").write_text(FUNCTION.replace("R.nn.relu(x)", call))
    save(x=INPUTS["x"])
    assert run("run", "external.py", "--input", "x.npy")[0] == 1
    _, report = run.json("run", "external.py", "--input", "x.npy", "--setup", "setup.py")
    assert report["results"][0]["max"] == 21
    Path("bad.py").write_text("1 / 0\n")
    status, (found,) = run.json("run", "function.py", "--random", "--setup", "bad.py")
    assert (status, found["code"]) == (1, "W015")
    assert "ZeroDivisionError" in found["message"]


def test_compile_names_its_output_after_the_file(run: Run) -> None:
    assert run("compile", "function.py")[0] == 0
    assert Path("function.weft").exists()


def test_compile_prints_the_generated_code(run: Run) -> None:
    status, text, _ = run("compile", "function.py", "--emit", "llvm")
    assert status == 0
    assert "define" in text
    status, text, _ = run("compile", "function.py", "--emit", "asm", "-o", "out.s")
    assert status == 0
    assert Path("out.s").read_text().strip()


def test_a_compile_that_fails_leaves_no_file_and_keeps_an_old_one(run: Run, folder: Path) -> None:
    Path("bad.py").write_text(FUNCTION.replace("relu(x)", "relu(y)"))
    Path("out.weft").write_text("old")
    before = sorted(folder.iterdir())
    assert run("compile", "bad.py", "-o", "out.weft")[0] == 1
    assert Path("out.weft").read_text() == "old"
    assert run("compile", "function.py", "-o", "no/folder/out.weft")[0] == 1
    assert sorted(folder.iterdir()) == before


def test_a_wrong_target_is_the_users_error(run: Run) -> None:
    status, (found,) = run.json("compile", "function.py", "--target", "nonsense")
    assert (status, found["code"][:2]) == (1, "W7")


# -- pass, phases, ops ---------------------------------------------------------------------------------------------


def test_pass_reads_standard_input_and_prints_a_module(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MODEL.encode())))
    status, text, _ = run("pass", "dead-code-elimination")
    assert status == 0
    assert isinstance(weft.parse(text), weft.IRModule)


def test_pass_takes_phases_and_runs_the_hooks_of_the_target(run: Run) -> None:
    status, (found,) = run.json("pass", "legalize,fuse{max_op=8}", "model.py")
    assert (status, found["code"], found["hint"]) == (1, "W502", "did you mean `max_ops`?")
    for target, vectors in (("llvm -mcpu=x86-64-v3", True), ("c", False)):
        status, found = run.json("pass", "legalize,schedule", "model.py", "--target", target)
        assert (status, found["passes"]) == (0, "legalize,schedule")
        assert ("T.vectorized" in found["text"]) is vectors


def test_pass_lists_the_passes_and_describes_one(run: Run) -> None:
    code, out, _ = run("pass", "--list")
    assert code == 0
    assert "fold-constant" in out
    assert "Multiply several matrices in the order" in out
    code, out, _ = run("pass", "--list", "dce", "--json")
    facts = json.loads(out)
    assert facts["name"] == "dead-code-elimination"
    assert facts["options"] == [{"name": "entry_functions", "type": "tuple[str, ...]", "default": "[]"}]
    assert "optimize" in facts["phases"]
    code, _, error = run("pass", "--list", "fold-constnt")
    assert code != 0
    assert "fold-constant" in error
    code, _, error = run("pass")
    assert code != 0
    assert "no passes are named" in error


def test_passes_of_a_module_that_python_does_not_list_are_listed(run: Run) -> None:
    names: dict[str, object] = {"__name__": "loaded_by_its_file"}
    exec(
        "from weft.transform import module_pass\n"
        "@module_pass(name='tests-loaded-by-file')\n"
        "def keep(module):\n"
        "    'Keep a module.'\n"
        "    return module\n",
        names,
    )
    code, out, error = run("pass", "--list")
    assert (code, error) == (0, "")
    assert "tests-loaded-by-file" in out
    code, out, _ = run("pass", "--list", "tests-loaded-by-file")
    assert code == 0
    assert "Keep a module." in out


def test_an_unknown_pass_comes_with_the_nearest_name(run: Run) -> None:
    status, (found,) = run.json("pass", "dead-code-eliminatio", "model.py")
    assert (status, found["code"]) == (1, "W501")
    assert "dead-code-elimination" in found["hint"]


def test_phases_are_those_of_the_library_and_of_the_documentation(run: Run) -> None:
    """A5."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert " > ".join(weft.transform.phases()) in page
    _, rows = run.json("phases")
    assert [row["phase"] for row in rows] == weft.transform.phases()
    status, text, _ = run("phases")
    assert status == 0
    assert [line.split()[0] for line in text.splitlines() if not line.startswith(" ")] == weft.transform.phases()


def test_ops_lists_and_describes_operators(run: Run) -> None:
    _, rows = run.json("ops")
    assert "exp" in [name for names in rows.values() for name in names]
    status, text, _ = run("ops", "R.exp")
    assert status == 0
    assert text.startswith("R.exp(x)")
    status, (found,) = run.json("ops", "nn.rleu")
    assert (status, found["code"]) == (1, "W140")
    assert "nn.relu" in found["hint"]


# -- processes -----------------------------------------------------------------------------------------------------


def test_a_process_ends_with_the_status_and_prints_errors_on_standard_error() -> None:
    done = process("check", "-", stdin=FUNCTION.replace("relu(x)", "relu(y)"))
    assert (done.returncode, done.stdout) == (1, "<stdin>: 1 finding\n")
    assert "<stdin>:5:22" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 24


def test_advice_of_python_on_style_stays_out_of_the_output() -> None:
    done = process("check", "-", stdin=FUNCTION + '\nx = 0x1for y in "\\d"\nz = "\\d"\nw = 1if z else 2\n')
    assert "Warning" not in done.stderr


def test_the_traceback_comes_when_asked_for() -> None:
    assert "Traceback" in process("show", "nowhere.py", WEFT_TRACEBACK="full").stderr


def test_text_on_a_pipe_has_no_colours_unless_they_are_forced() -> None:
    assert "\x1b[" not in process("show", "-", stdin=FUNCTION).stdout
    assert "\x1b[" in process("show", "-", stdin=FUNCTION, FORCE_COLOR="1").stdout


def test_a_reader_that_leaves_early_ends_the_command_quietly() -> None:
    text = FUNCTION + "".join(FUNCTION.partition("\n")[2].replace("main", f"f{i}") for i in range(400))
    command = f"{sys.executable} -m weft show - | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], input=text, capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_is_exit_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("weft.command.inspect.check_command", interrupt)
    assert run("check", "model.py") == (130, "", "interrupted\n")


def test_a_fault_of_weft_is_told_apart_from_wrong_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: object) -> int:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("weft.command.inspect.check_command", fail)
    status, out, err = run("check", "model.py")
    assert (status, out) == (70, "")
    assert "ZeroDivisionError" in err
    assert "fault in weft" in err


def test_a_relation_that_only_a_declared_type_states_is_a_warning_and_strict_refuses_it(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "related.py"
    file.write_text(
        "from weft.script import relax as R\n\n\n@R.function\n"
        'def main(x: R.Tensor(("n", 4), "int8"), w: R.Tensor(("m", 4), "int8")) -> R.Tensor(("m", 4), "int8"):\n'
        '    y: R.Tensor((m, 4), "int8") = R.abs(x)\n'
        "    z = R.negative(x)\n"
        "    return z\n"
    )
    status, output, errors = run("check", str(file))
    assert status == 0
    assert "related.py: 1 unit, well formed, 2 warnings" in output
    assert "warning: W213: annotation of y: m is taken to be n" in errors
    assert "declared R.Tensor((m, 4)" in errors
    assert f"computed at {file}:6:35" in errors
    assert "warning: W213: result of main: m is taken to be n" in errors
    reports = json.loads(run("check", "--json", str(file))[1])
    assert [(report["code"], report["severity"], report["line"]) for report in reports] == [
        ("W213", "warning", 6),
        ("W213", "warning", 5),
    ]
    assert run("check", "--strict", str(file))[0] == 1
    told = run("explain", str(file))[2]
    assert "warning: W213: annotation of y" in told
    assert f"computed at {file}:6:35" in told
    assert run("explain", "--function", "main", str(file))[0] == 0
    status, _, told = run("explain", "--function", "nope", str(file))
    assert status == 1
    assert "W012: " in told
    assert "has no function or kernel 'nope'" in told


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["compil", "model.py"], 2, "there is no command 'compil'; did you mean compile?"),
        (["xyzzy"], 2, "there is no command 'xyzzy'; there are show, check, run, compile"),
        (
            ["compile", "model.py", "--traget", "llvm"],
            2,
            "unrecognized arguments: --traget llvm; did you mean --target",
        ),
        (["run", "model.py", "--fnction=main"], 2, "unrecognized arguments: --fnction=main; did you mean --function?"),
        (["run", "modle.py"], 1, "hint: did you mean `model.py`?"),
        (["run", "nowhere/model.py"], 1, "cannot read nowhere/model.py: No such file or directory"),
        (["run", "model.py", "--function", "mian"], 1, "hint: did you mean `main`?"),
        (["pass", "model.py", "fuse-ops"], 1, "hint: passes come first: weft pass fuse-ops model.py"),
    ],
)
def test_misspelt_words_are_told_apart_with_what_is_near(
    words: list[str], status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "model.py").write_text(MODEL.replace("def both(", "def main("))
    monkeypatch.chdir(tmp_path)
    assert main(words) == status
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.splitlines()) <= 6
