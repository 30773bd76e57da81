"""What a new user does with modules, targets and executables besides calling them: copies, pickles, wrong arguments."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Doubled:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
        return x + y + y


X, Y = np.arange(3, dtype="float32"), np.ones(3, "float32")
COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
def test_targets_and_configurations_are_copied_and_pickled(way: str) -> None:
    target = weft.Target("low_power_cpu: c -mcpu=cortex-m0; inference_cpu: c -mcpu=cortex-m7f")
    config = weft.Config(target, executor="aot")
    for value in (weft.Target("llvm"), target, config.to_target()):
        made = COPIES[way](value)
        assert (made, made.explain()) == (value, value.explain())
    assert COPIES[way](config) == config


@pytest.mark.parametrize("way", COPIES)
def test_modules_with_a_target_are_copied_and_pickled(way: str) -> None:
    module = Doubled.with_attr("target", weft.Target("llvm -mcpu=host"))
    assert weft.structural_equal(COPIES[way](module), module)


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize("way", COPIES)
def test_an_executable_is_copied_and_pickled_by_what_it_saves(way: str, executor: str) -> None:
    executable = weft.compile(Doubled, executor=executor)
    made = COPIES[way](executable)
    assert (made.executor, list(made)) == (executor, list(executable))
    assert made["main"](X, Y).tolist() == [2, 3, 4]


def test_the_interpreter_takes_arguments_by_name_and_names_what_does_not_fit() -> None:
    run: Any = weft.interpret(Doubled)["main"]
    assert run(X, y=Y).tolist() == run(y=Y, x=X).tolist() == [2, 3, 4]
    for args, named, message in (
        ((X,), {"z": Y}, "main has no parameter 'z'"),
        ((X,), {"x": Y}, "main got two values for 'x'"),
        ((), {"y": Y}, r"main takes 2 arguments \(x, y\), got 1"),
        ((X, Y, X), {"y": Y}, "main got two values for 'y'"),
    ):
        with pytest.raises(weft.ArgumentError, match=message) as caught:
            run(*args, **named)
        assert caught.value.code == "W850"


def test_values_that_are_no_modules_are_named_in_the_error() -> None:
    function: Any = Doubled["main"]
    for call, message in (
        (lambda: weft.compile(3), "cannot compile an int"),  # type: ignore[call-overload]
        (lambda: weft.compile(len), "cannot compile the function len"),  # type: ignore[call-overload]
        (lambda: weft.interpret([]), "cannot interpret a list"),  # type: ignore[arg-type]
        (lambda: weft.transform.LegalizeOps()(function), "takes an IRModule, got a Function"),
    ):
        with pytest.raises(weft.PassError, match=message) as caught:
            call()
        assert caught.value.code == "W511"
        assert caught.value.hint


def test_params_are_given_by_name() -> None:
    with pytest.raises(weft.PassError, match="params maps names to arrays, got a list") as caught:
        weft.compile(Doubled, params=[X])  # type: ignore[call-overload]
    assert caught.value.code == "W543"


def test_an_error_of_a_registered_function_says_where_it_was_called() -> None:
    weft.register_func("first_steps.takes_one", lambda x: None)
    text = '@R.function\ndef f(x: R.Tensor((3,), "float32")):\n    return R.call_dps_packed('
    function = weft.parse(text + '"first_steps.takes_one", (x,), out_ty=R.Tensor((3,), "float32"))\n')
    with pytest.raises(TypeError, match="positional argument") as caught:
        weft.compile(function)["f"](X)
    (note,) = caught.value.__notes__
    assert note.startswith("in 'first_steps.takes_one', called at\n --> <text>:3:12")


def test_a_result_of_a_registered_function_that_does_not_fit_is_shown_at_its_call() -> None:
    weft.register_func("first_steps.wide", lambda x: x.astype("float64"))
    text = '@R.function(pure=False)\ndef f(x: R.Tensor((3,), "float32")):\n'
    function = weft.parse(text + '    return R.call_packed("first_steps.wide", x, ty_args=R.Tensor((3,), "float32"))\n')
    with pytest.raises(weft.ShapeError, match="the result of 'first_steps") as caught:
        weft.compile(function)["f"](X)
    assert caught.value.code == "W223"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 12)


@pytest.mark.parametrize("way", ["interpreter", "native", "vm"])
@pytest.mark.parametrize("used", ["y", "x"])
def test_an_unused_result_of_a_registered_function_is_held_against_its_type_too(way: str, used: str) -> None:
    weft.register_func("first_steps.wide", lambda x: x.astype("float64"))
    text = (
        '@R.function\ndef f(x: R.Tensor((3,), "float32")):\n'
        '    y = R.call_pure_packed("first_steps.wide", x, ty_args=R.Tensor((3,), "float32"))\n'
        f"    return {used}\n"
    )
    module = weft.IRModule({"f": weft.parse(text)})  # type: ignore[dict-item]
    made = weft.interpret(module) if way == "interpreter" else weft.compile(module, executor=way)
    with pytest.raises(weft.ShapeError, match="the result of 'first_steps") as caught:
        made["f"](X)
    assert caught.value.code == "W223"


PROGRAM = """
import numpy as np, weft
from weft.script import ir as I, relax as R, tir as T
@R.function
def f(x: R.Tensor(("n",), "float32")):
    return R.exp(x) + x
print(weft.compile(f)["f"](np.zeros(2, "float32")).tolist())
"""


@pytest.mark.parametrize("flags", [["-O"], ["-OO"], ["-W", "error"], ["-I"]])
def test_programs_run_under_flags_of_python(flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    source = Path(weft.__file__).resolve().parent.parent
    start = f"import sys, runpy; sys.path[:0] = [{str(source)!r}]; runpy.run_path({str(path)!r})"
    done = subprocess.run([sys.executable, *flags, "-c", start], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0]\n", "")


def test_programs_run_without_a_home_or_a_folder_for_the_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    source = str(Path(weft.__file__).resolve().parent.parent)
    for environment in ({}, {"HOME": "/nonexistent"}, {"WEFT_CACHE_DIR": str(blocked / "cache")}):
        path = tmp_path / "program.py"
        path.write_text(PROGRAM, encoding="utf-8")
        given = {"PYTHONPATH": source, "PATH": os.defpath, **environment}
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, env=given)
        assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0]\n", "")


def logged(level: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    source = str(Path(weft.__file__).resolve().parent.parent)
    set_here = {"WEFT_LOG": level, "WEFT_CACHE_DIR": str(tmp_path / "cache"), "WEFT_CHECK": "0"}
    given = {**os.environ, "PYTHONPATH": source, **set_here}
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120, env=given)


def test_a_log_tells_of_passes_and_of_programs_from_the_disk(tmp_path: Path) -> None:
    first = logged("debug", tmp_path).stderr
    assert "weft.passes: legalize-ops: " in first
    assert "weft.compile: f for llvm: " in first
    again = logged("info", tmp_path).stderr
    assert again == "weft.compile: f for llvm: from the disk\n"
    assert logged("error", tmp_path).stderr == ""


def test_a_level_of_the_log_that_is_none_is_refused(tmp_path: Path) -> None:
    done = logged("loud", tmp_path)
    assert done.returncode == 1
    assert "W505: WEFT_LOG is 'loud'" in done.stderr
    assert "hint: use debug, info, warning or error" in done.stderr


def test_an_artifact_that_is_not_there_is_named_with_those_that_are() -> None:
    sources = weft.compile(weft.transform.BindSymbolicVars({"n": 2})(Doubled), target="c")
    assert "main" not in sources
    with pytest.raises(KeyError) as caught:
        sources["main"]
    error = caught.value
    assert isinstance(error, weft.ArtifactError)
    assert error.code == "W822"
    assert "model.h" in str(error.hint)
    assert str(error).startswith("W822: there is no artifact 'main'")


def test_printing_a_module_or_function_shows_its_script() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((4,), "float32")):
        x[0] = T.float32(1)

    for value in (Doubled, Doubled["main"], kernel):
        assert str(value) == value.script()
        assert repr(value) != str(value)


def test_a_default_pipeline_takes_a_target_in_any_form() -> None:
    wanted = str(weft.transform.default_pipeline(weft.Target("llvm")))
    assert str(weft.transform.default_pipeline("llvm")) == wanted
    with pytest.raises(weft.TargetError) as caught:
        weft.transform.default_pipeline("cuda")
    assert caught.value.code == "W701"


def test_sizes_of_types_may_be_integers_of_numpy() -> None:
    tensor = R.Tensor((np.int64(3), 4), "float32")
    assert [type(size) for size in tensor.dims or ()] == [int, int]


def test_a_result_of_the_interpreter_never_is_an_argument() -> None:
    @R.function
    def views(x: R.Tensor(("n", 4), "float32")):
        return x, R.reshape(x, (4 * n,))

    x = np.zeros((2, 4), "float32")
    for run in (weft.interpret(views), weft.compile(views)["views"]):
        first, second = run(x)
        first[...], second[...] = 1, 2
        assert x.sum() == 0
