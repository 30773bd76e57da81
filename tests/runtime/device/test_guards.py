"""Guarded programs: what writes beside its memory is told; what goes further ends the process that tried it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import ArgumentError, BoundsError, Executable, parse
from weft.ir import IRModule
from weft.runtime.device.guards import guarded
from weft.testing import fuzz
from weft.transform.kernel.check_bounds import CheckBounds

TEXT = """
@I.ir_module
class M:
    @T.prim_func
    def put(i: T.Buffer((1,), "int64"), x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        y[i[0]] = x[0]

    @T.prim_func
    def scratch(i: T.Buffer((1,), "int64"), n: T.int64, x: T.Buffer((4,), "float32")):
        s = T.alloc_buffer((n,), "float32")
        s[i[0]] = x[0]
        x[1] = s[i[0]]

    @T.prim_func
    def fill(i: T.Buffer((1,), "int64"), x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for j in range(4):
            y[j] = 0
        y[i[0]] = x[0]

    @R.function
    def main(i: R.Tensor((1,), "int64"), x: R.Tensor((4,), "float32")):
        y = R.call_tir(M.fill, (i, x), out_ty=R.Tensor((4,), "float32"))
        return y
"""
FAR = """
import sys
from tests.runtime.device.test_guards import executable, arguments
executable()["put"](*arguments("put", 2**44))
"""


def executable() -> Executable:
    """The program, guarded, as the pass that checks indices left it."""
    module = parse(TEXT)
    assert isinstance(module, IRModule)
    with guarded():
        return weft.compile(module)


def arguments(name: str, index: int) -> list[object]:
    """Arguments with an index, right or wrong."""
    ones = np.ones(4, "float32")
    given: dict[str, list[object]] = {"put": [ones, np.zeros(4, "float32")], "scratch": [5, ones], "main": [ones]}
    return [np.array([index]), *given[name]]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that forgets the checks of indices."""
    monkeypatch.setattr(CheckBounds, "run", lambda self, module, *rest: module)


@pytest.mark.parametrize("name", ["put", "scratch", "main"])
def test_a_right_program_computes_what_it_does_without_guards(name: str) -> None:
    given = arguments(name, 2)
    result = executable()[name](*given)
    changed = result if name == "main" else given[-1]
    assert isinstance(changed, np.ndarray)
    assert changed[1 if name == "scratch" else 2] == 1


@pytest.mark.parametrize(("name", "index"), [("put", 4), ("put", -1), ("main", 4)])
@pytest.mark.usefixtures("unchecked")
def test_a_write_beside_a_buffer_is_told(name: str, index: int) -> None:
    side = "before" if index < 0 else "behind"
    with pytest.raises(BoundsError, match=f"W914: {name} wrote {side} a buffer of "):
        executable()[name](*arguments(name, index))


@pytest.mark.usefixtures("unchecked")
def test_a_program_stays_usable_after_it_wrote_beside_a_buffer() -> None:
    exe = executable()
    with pytest.raises(BoundsError):
        exe["put"](*arguments("put", 4))
    exe["put"](*arguments("put", 3))


def test_a_write_far_from_a_buffer_ends_the_process() -> None:
    patch = "from weft.transform.kernel.check_bounds import CheckBounds\nCheckBounds.run = lambda self, m, *rest: m\n"
    root = Path(__file__).resolve().parents[3]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    environment = {**os.environ, "PYTHONPATH": paths, "WEFT_CACHE_DIR": "off"}
    done = subprocess.run([sys.executable, "-c", patch + FAR], env=environment, capture_output=True, check=False)
    assert done.returncode < 0, done.stderr.decode()


def test_random_programs_write_only_into_their_own_memory() -> None:
    report = fuzz(targets=["llvm"], count=4, guard=True)
    assert report.failures == ()
    assert report.compared > 0


def test_arrays_of_objects_are_refused_as_without_guards() -> None:
    module = parse('@T.prim_func\ndef main(x: T.Buffer((2,), "float32")):\n    x[0] = 1.0\n')
    with guarded():
        run = weft.compile(module)["main"]
    with pytest.raises(weft.ArgumentError):
        run(np.array([None, None]))


@pytest.mark.parametrize("form", ["array", "tuple"])
def test_an_output_that_is_an_argument_too_is_written(form: str) -> None:
    results = "y" if form == "array" else "(y, y * y)"
    text = f'@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    y = x + x\n    return {results}\n'
    with guarded():
        exe = weft.compile(IRModule({"main": weft.parse(text)}))  # pyright: ignore[reportArgumentType]
    x, more = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    out = x if form == "array" else (x, more)
    result = exe["main"](x, out=out)
    assert x.tolist() == [0, 2, 4, 6]
    assert (result if form == "array" else result[0]) is x
    assert more.tolist() == ([0, 0, 0, 0] if form == "array" else [0, 4, 16, 36])


class Lying(np.ndarray):
    """An array that states another shape than it has."""

    @property
    def shape(self) -> tuple[int, ...]:  # pyright: ignore
        return (4,)


@pytest.mark.parametrize("guard", [False, True])
def test_an_output_is_as_large_as_it_is(guard: bool) -> None:
    text = '@R.function\ndef main(x: R.Tensor((4,), "float32")):\n    return x + x\n'
    with guarded() if guard else contextlib.nullcontext():
        exe = weft.compile(IRModule({"main": weft.parse(text)}))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError) as caught:
        exe["main"](np.zeros(4, "float32"), out=np.zeros(2, "float32").view(Lying))
    assert caught.value.code == "W854"
