"""Runtimes, packages, libraries of several models, and memory planners: what a target says of them is obeyed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.module import IRModule
from weft.transform.memory.pack_memory import Request
from weft.transform.memory.planners import checked_plan, remove_memory_planner

MODEL = """
@R.function
def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
    a = R.cumsum(x, axis=0)
    b = R.cumsum(a, axis=1)
    c = R.cumsum(b, axis=0)
    return c
"""
BUILDS = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")


def model() -> IRModule:
    found = weft.parse(MODEL)
    assert not isinstance(found, IRModule)
    return IRModule({"main": found})


X = np.arange(16, dtype="float32").reshape(4, 4)
WANTED = np.cumsum(np.cumsum(np.cumsum(X, 0), 1), 0)


def called(library: ctypes.CDLL, name: str) -> np.ndarray:
    out, room = np.zeros_like(X), np.zeros(1 << 14, "uint8")
    pointers = [(ctypes.c_void_p * 1)(array.ctypes.data) for array in (X, out, room)]
    assert getattr(library, f"{name}_run")(*pointers, None) == 0
    return out


def config(part: str, **fields: Any) -> weft.Target:
    return weft.Config(part, **fields).to_target()


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("c -mcpu=cortex-m7", {"runtime": "host"}),
        ("llvm -mcpu=cortex-m4", {"runtime": "host"}),
        ("llvm", {"runtime": "bare"}),
        ("c -mcpu=cortex-m7", {"package": "shared"}),
        ("c", {"package": "shared", "runtime": "bare"}),
        ("llvm -mcpu=cortex-m4", {"package": "shared"}),
        ("c", {"runtime": "rtos"}),
    ],
)
def test_what_cannot_be_produced_is_refused(part: str, fields: dict[str, str]) -> None:
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(model(), config(part, **fields))
    assert caught.value.code == "W738"


def test_a_completed_configuration_means_the_same() -> None:
    wanted = config("c -mcpu=cortex-m7", package={"name": "kws"})
    assert set(weft.compile(model(), wanted)) == set(weft.compile(model(), wanted.complete()))


@BUILDS
def test_a_runtime_with_a_system_has_a_shared_library_built(tmp_path: Path) -> None:
    made = {runtime: weft.compile(model(), config("c", runtime=runtime)) for runtime in ("host", "bare")}
    for runtime, artifacts in made.items():
        assert (".so" in artifacts["Makefile"].data.decode()) == (runtime == "host")
    made["host"].export(tmp_path)
    subprocess.run(["make", "-s", "-C", tmp_path, "all"], check=True, capture_output=True)
    np.testing.assert_array_equal(called(ctypes.CDLL(str(tmp_path / "libmodel.so")), "model"), WANTED)


@BUILDS
@pytest.mark.parametrize("part", ["llvm", "c"])
def test_a_package_says_what_comes_back(part: str, tmp_path: Path) -> None:
    tree = weft.compile(model(), config(part, package="tree"))
    assert isinstance(tree, weft.ArtifactSet)
    assert {"c", "object"} & {item.kind for item in tree.values()}
    shared = weft.compile(model(), config(part, package={"format": "shared", "name": "sums"}))
    assert isinstance(shared, weft.ArtifactSet)
    assert "libsums.so" in shared
    path = shared.export(tmp_path / "sums.so")
    np.testing.assert_array_equal(called(ctypes.CDLL(str(path)), "sums"), WANTED)


@BUILDS
@pytest.mark.parametrize("part", ["llvm", "c"])
def test_several_models_are_one_library(part: str, tmp_path: Path) -> None:
    other = IRModule({"main": weft.parse(MODEL.replace("R.cumsum(b, axis=0)", "R.negative(b)"))})  # type: ignore[dict-item]
    made = weft.compile({"sums": model(), "less": other}, config(part, package={"format": "shared", "name": "zoo"}))
    library = ctypes.CDLL(str(made.export(tmp_path / "zoo.so")))
    np.testing.assert_array_equal(called(library, "sums"), WANTED)
    np.testing.assert_array_equal(called(library, "less"), -np.cumsum(np.cumsum(X, 0), 1))
    with pytest.raises(weft.PassError) as caught:
        weft.compile({"sums": model()}, part, start="lower")  # type: ignore[call-overload]
    assert caught.value.code == "W543"


def test_the_command_line_makes_a_library_with_a_planner_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "zoo.py").write_text(MODEL.replace("main", "sums") + MODEL.replace("main", "more"))
    (tmp_path / "mine.py").write_text(PLANNER)
    command = [sys.executable, "-m", "weft", "export", "zoo.py", "--target", "c", "--model", "sums", "--model", "more"]
    command += ["--target-c-planner", "apart", "--setup", "mine.py", "--package-name", "zoo", "-o", "tree"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    header = (tmp_path / "tree/include/sums.h").read_text()
    assert "SUMS_WORKSPACE_BYTES 2048" in header
    assert (tmp_path / "tree/include/zoo.h").exists()


PLANNER = """
import weft

@weft.memory_planner("apart")
def apart(requests):
    return [1024 * number for number in range(len(requests))], 1024 * len(requests)
"""


@pytest.mark.parametrize("part", ["c", "llvm"])
def test_a_planner_of_the_users_is_asked(part: str, request: pytest.FixtureRequest) -> None:
    """G2: by the name that the target says; every answer is checked."""
    seen: list[Sequence[Request]] = []

    @weft.memory_planner("watching")
    def watching(requests: Sequence[Request]) -> tuple[list[int], int]:
        seen.append(requests)
        return [4096 * number for number in range(len(requests))], 4096 * len(requests)

    request.addfinalizer(lambda: remove_memory_planner("watching"))
    larger = MODEL.replace("R.cumsum(x, axis=0)", "R.cumsum(R.concat((x, x), axis=0), axis=0)")
    larger = larger.replace("R.cumsum(b, axis=0)", "R.cumsum(R.matmul(x, b[4:, :]), axis=0)")
    module = IRModule({"main": weft.parse(larger)})  # type: ignore[dict-item]
    made = weft.compile(module, f"{part} -planner=watching")
    assert any(len(requests) for requests in seen)
    if part == "llvm":
        np.testing.assert_allclose(made["main"](X), weft.compile(module)["main"](X), rtol=1e-6)
    for target, code in ((f"{part} -planner=watchin", "W754"), (f"host: llvm; x: {part} -planner=watching", "W738")):
        with pytest.raises(weft.TargetError) as caught:
            weft.compile(model(), target)
        assert caught.value.code == code


def test_a_planner_that_fails_or_changes_its_requests_is_refused() -> None:
    """G2: the error names it, and the requests are not its own."""
    with pytest.raises(weft.TargetError, match="failed: ZeroDivisionError") as caught:
        checked_plan(lambda requests: 1 // 0, REQUESTS)
    assert caught.value.code == "W754"
    with pytest.raises(weft.TargetError, match="failed: AttributeError"):
        checked_plan(lambda requests: (requests.clear(), 0), REQUESTS)  # type: ignore[attr-defined]
    with pytest.raises(weft.TargetError, match="asks for a block of -5"):
        checked_plan(lambda requests: ([], -5), [])


REQUESTS = [Request(64, 0, 1, 64), Request(32, 1, 2, 64), Request(16, 2, 3, 64)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (([0, 32, 0], 96), "overlap"),
        (([0, 64, 0], 80), "do not fit"),
        (([0, 65, 128], 512), "no multiple of 64"),
        (([0, 64], 96), "2 offsets for 3"),
        (None, "must return"),
        (([0, 64.0, 0], 96), "that are int"),
        (([-64, 64, 0], 96), "do not fit"),
        (([0, 64, 64], 96), "overlap"),
        (([0, 64, 1 << 62], 1 << 70), "asks for a block of"),
        (([0, 64, 0], 1 << 62), "asks for a block of"),
    ],
)
def test_a_wrong_answer_of_a_planner_is_refused(answer: Any, reason: str) -> None:
    with pytest.raises(weft.TargetError, match=reason) as caught:
        checked_plan(lambda requests: answer, REQUESTS)
    assert caught.value.code == "W754"
    assert checked_plan(lambda requests: ([0, 64, 0], 96), REQUESTS) == ([0, 64, 0], 96)
