"""Libraries for C of one name, merged: each gets names of its own, and C programs link and run both."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.ir import extract, merge
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.merging import merge_artifacts
from weft.runtime.programs.library_names import fresh_library, libraries, library_apart
from weft.script import ir as I
from weft.script import relax as R

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


@I.ir_module
class First:
    @R.function
    def main(model_x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        y = R.matmul(model_x, R.const([[1.0, 2.0, 3.0, 4.0]] * 4, "float32"))
        return R.nn.softmax(y)


@I.ir_module
class Second:
    @R.function
    def f(model_x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        y = R.matmul(model_x, R.const([[1.0, 2.0, 3.0, 5.0]] * 4, "float32"))
        return R.nn.softmax(y)


X = np.arange(8, dtype="float32").reshape(2, 4) / 8
MAIN = """
#include <stdio.h>
#include "model.h"
#include "model_1.h"
static _Alignas(64) uint8_t memory[MODEL_WORKSPACE_BYTES + MODEL_1_WORKSPACE_BYTES + 64];
int main(void) {
  float x[8], y[8], z[8];
  for (int i = 0; i < 8; ++i) x[i] = i / 8.0f;
  struct model_inputs in = {.model_x = x};
  struct model_outputs out = {.output0 = y};
  struct model_workspaces work = {memory};
  struct model_1_inputs in1 = {.model_x = x};
  struct model_1_outputs out1 = {.output0 = z};
  struct model_1_workspaces work1 = {memory};
  if (model_run(&in, &out, &work, 0) || model_1_run(&in1, &out1, &work1, 0)) return 1;
  for (int i = 0; i < 8; ++i) printf("%.9g %.9g\\n", y[i], z[i]);
  return model_message(0)[0] || model_1_message(0)[0];
}
"""


def merged(target: str | None, executor: str | None, phase: str = "codegen") -> weft.IRModule:
    first, second = (weft.lower(m, target, executor=executor, stop=phase) for m in (First, Second))
    alone = first.attrs["artifacts"].names
    module = weft.parse(merge(first, second).module.script())
    assert isinstance(module, weft.IRModule)
    assert set(alone) <= set(module.attrs["artifacts"])
    return module


def expected() -> np.ndarray:
    first, second = weft.interpret(First)["main"](X), weft.interpret(Second)["f"](X)
    return np.stack([first.ravel(), second.ravel()], 1)


@needs_compiler
@pytest.mark.parametrize(("target", "executor"), [("c", None), (None, "aot")])
def test_two_models_that_nobody_named_are_linked_and_run(
    target: str | None, executor: str | None, tmp_path: Path
) -> None:
    """H8, B7: they were compiled apart; the names of the first are as they were, members of structures are too."""
    files = ArtifactSet(item for item in merged(target, executor).attrs["artifacts"].values() if item.loader == "cc")
    files.export(tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    linked = [str(path) for path in tmp_path.rglob("*") if path.suffix in (".c", ".o")]
    for name in ("Makefile", "Makefile_1") if target else ():
        subprocess.run(["make", "-s", "-f", name, "-C", str(tmp_path)], check=True, capture_output=True)
    assert target is None or {"libmodel.a", "libmodel_1.a"} <= {path.name for path in tmp_path.iterdir()}
    command = ["gcc", "-std=c11", "-Wall", "-Werror", "-I", str(tmp_path), "-I", str(tmp_path / "include")]
    subprocess.run([*command, *linked, "-o", str(tmp_path / "run"), "-lm"], check=True)
    done = subprocess.run([str(tmp_path / "run")], check=True, capture_output=True, text=True)
    found = np.array([line.split() for line in done.stdout.splitlines()], "float32")
    np.testing.assert_allclose(found, expected(), rtol=1e-5)


@needs_compiler
@pytest.mark.parametrize("phase", ["codegen", "link"])
def test_a_merged_executable_is_exported_with_every_library(phase: str, tmp_path: Path) -> None:
    """H8: loaded from its text, whatever was taken out and put back meanwhile."""
    module = merged(None, "aot", phase)
    again = merge(extract(module, "f"), extract(module, "main")).module
    for number, (item, wanted) in enumerate(((module, expected().T), (again, expected().T))):
        path = weft.load_module(item, trust=True).export(tmp_path / f"both{number}.so")
        library = ctypes.CDLL(str(path))
        for name, value in zip(("model", "model_1"), wanted, strict=True):
            np.testing.assert_allclose(called(getattr(library, f"{name}_run")), value, rtol=1e-5)


def test_a_program_without_a_library_is_not_left_out_of_an_export(tmp_path: Path) -> None:
    """C4: the error says which one C cannot call, and what to do."""
    first, second = weft.lower(First, executor="aot", stop="link"), weft.lower(Second, executor="vm", stop="link")
    with pytest.raises(weft.ArtifactError, match="C programs cannot call f: compiled for calls from Python") as caught:
        weft.load_module(merge(first, second).module, trust=True).export(tmp_path / "both")
    assert (caught.value.code, 'executor="aot"' in (caught.value.hint or "")) == ("W819", True)


def called(function: Callable[..., int]) -> np.ndarray:
    """What an entry of one input and one output gives."""
    x, y, memory = np.ascontiguousarray(X), np.zeros(8, "float32"), np.zeros(1 << 12, "uint8")
    places = [
        (ctypes.c_void_p * 1)(a.ctypes.data + (-a.ctypes.data % 64 if a is memory else 0)) for a in (x, y, memory)
    ]
    assert function(*map(ctypes.byref, places), None) == 0
    return y


SOURCE = b"""#include "model.h"
#include "helper.h"
#define MODEL_SIZE 3 /* of model_run, MODEL_SIZE */
struct model_inputs { const float *model_x; float model_w[4]; struct model_box *box; };
// model_run
int32_t model_run(void) { return helper(model_inputs->model_x, "model_run \\"model_x", 'm') + remodel_run; }
"""
RENAMED = b"""#include "model_1.h"
#include "model_1_helper.h"
#define MODEL_1_SIZE 3 /* of model_1_run, MODEL_1_SIZE */
struct model_1_inputs { const float *model_x; float model_w[4]; struct model_1_box *box; };
// model_1_run
int32_t model_1_run(void) { return model_1_helper(model_1_inputs->model_x, "model_run \\"model_x", 'm') + remodel_run; }
"""


def part(name: str, data: bytes, *symbols: str, kind: str = "c") -> Artifact:
    provides = tuple(Symbol(symbol, f"int32_t {symbol}(void)") for symbol in symbols)
    return Artifact(kind, name, data, provides=provides, codegen="c", loader="cc", provenance={"library": "model"})


def test_names_follow_in_c_and_members_and_texts_stay() -> None:
    ours = ArtifactSet([part("helper.h", b"1", kind="header"), part("helper.c", b"1", "helper"), part("same.c", b"")])
    theirs = [
        part("model.c", SOURCE, "model_run"),
        part("helper.h", b"int helper(void);", kind="header"),
        part("helper.c", b'#include "helper.h"\n', "helper"),
        part("same.c", b""),
        part("Makefile", b"# model: it\nlibmodel.a: src/model.o src/helper.o\n\tremodel $(model)\n", kind="build"),
    ]
    found = library_apart(theirs, "model", "model_1", ours)
    assert found["model.c"].data == RENAMED
    assert (found["model.c"].name, found["model.c"].provenance) == ("model_1.c", {"library": "model_1"})
    assert found["model.c"].provides == (Symbol("model_1_run", "int32_t model_1_run(void)"),)
    assert found["helper.c"].provides == (Symbol("model_1_helper", "int32_t model_1_helper(void)"),)
    assert (found["helper.c"].name, found["helper.h"].name) == ("model_1_helper.c", "model_1_helper.h")
    assert found["helper.c"].data == b'#include "model_1_helper.h"\n'
    assert found["same.c"] is ours["same.c"]
    wanted = b"# model_1: it\nlibmodel_1.a: src/model_1.o src/model_1_helper.o\n\tremodel $(model)\n"
    assert (found["Makefile"].name, found["Makefile"].data) == ("Makefile", wanted)


def test_equal_libraries_are_there_once_and_fresh_names_are_free() -> None:
    one, other = ArtifactSet([part("model.c", b"1", "model_run")]), ArtifactSet([part("model.c", b"2", "model_run")])
    assert merge_artifacts(one, one) == one
    both = merge_artifacts(one, other)
    assert list(libraries(both)) == ["model_1", "model"] or list(libraries(both)) == ["model", "model_1"]
    third = merge_artifacts(both, ArtifactSet([part("model.c", b"3", "model_run")]))
    assert set(libraries(third)) == {"model", "model_1", "model_2"}
    assert fresh_library("a_1", {"a_1"}) == "a_1_1"


def test_an_object_whose_symbols_cannot_be_renamed_is_refused() -> None:
    made = [weft.lower(module, "llvm -mtriple=wasm32", stop="codegen") for module in (First, Second)]
    with pytest.raises(weft.ArtifactError, match="wasm is not rewritten") as caught:
        merge(*made)
    assert (caught.value.code, "package.name" in (caught.value.hint or "")) == ("W814", True)
