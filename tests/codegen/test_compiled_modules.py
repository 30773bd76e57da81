"""One module from script to machine code: its text after `link` is the program, which another process loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import ExternFunc
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.object_symbols import check_symbols, defined, needed
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

EXECUTORS = ("native", "vm", "graph", "aot")


@I.ir_module
class Layer:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            B[i, j] = A[i, j] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 3), "float32"):
        cls = Layer
        w = R.const([[1.0, 2.0, 3.0]] * 4, "float32")
        y = R.matmul(x, w)
        z = R.call_tir(cls.twice, (y,), out_ty=R.Tensor((2, 3), "float32"))
        return z


X = np.ones((2, 4), "float32")
WANTED = [[8, 16, 24], [8, 16, 24]]


def parsed(text: str) -> weft.IRModule:
    found = weft.parse(text)
    assert isinstance(found, weft.IRModule)
    return found


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("phase", ["codegen", "link"])
def test_the_text_of_a_compiled_module_is_the_program(executor: str, phase: str) -> None:
    module = weft.lower(Layer, stop=phase, executor=executor)
    assert all(isinstance(function, ExternFunc) for function in module.functions.values())
    assert "main" in module
    again = parsed(module.script())
    assert weft.structural_equal(again, module)
    np.testing.assert_array_equal(weft.load_module(again, trust=True)["main"](X), WANTED)
    np.testing.assert_array_equal(weft.interpret(again, trust=True)["main"](X), WANTED)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_compile_is_the_phases_and_loading(executor: str) -> None:
    made = weft.compile(Layer, executor=executor)
    linked = weft.lower(Layer, stop="link", executor=executor)
    assert weft.structural_equal(made.module, linked)
    assert weft.structural_equal(weft.load_module(linked, trust=True).module, linked)
    generated = weft.lower(Layer, stop="codegen", executor=executor)
    assert weft.structural_equal(weft.lower(generated, start="link", stop="link"), linked)
    planned = weft.lower(Layer, stop="plan", executor=executor)
    if executor in ("native", "vm"):  # the others inline private functions before the first phase
        lowered = parsed(planned.script())
        assert (weft.compile(lowered, start="codegen", executor=executor)["main"](X) == WANTED).all()
    assert (weft.compile(linked, start="link", trust=True)["main"](X) == WANTED).all()


def test_machine_code_in_a_module_is_data_until_it_is_trusted() -> None:
    module = weft.lower(Layer, stop="link")
    for load in (weft.load_module, weft.interpret, lambda item: weft.compile(item, start="link")):
        with pytest.raises(weft.ArtifactError) as caught:
            load(module)
        assert caught.value.code == "W830"


def test_a_module_without_a_program_is_not_loaded() -> None:
    sources = weft.lower(Layer, "c", stop="link")
    assert "c" in {item.kind for item in sources.attrs["artifacts"].values()}
    for module in (Layer, sources):
        with pytest.raises(weft.ArtifactError) as caught:
            weft.load_module(module, trust=True)
        assert caught.value.code == "W823"


@pytest.mark.parametrize("name", ["program.json", "signatures.json"])
@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b"{", b'{"functions": [1]}', b'{"sites": 3, "constants": 1, "objects": []}']
)
def test_a_damaged_program_is_refused(name: str, data: bytes) -> None:
    artifacts = weft.lower(Layer, stop="link").attrs["artifacts"]
    kept = [item for item in artifacts.values() if item.name != name]
    wrong = Artifact(artifacts[name].kind, name, data, codegen="weft")
    module = weft.IRModule({}).with_attr("artifacts", ArtifactSet([*kept, wrong]))
    with pytest.raises(weft.ArtifactError) as caught:
        weft.load_module(module, trust=True)
    assert caught.value.code == "W823"


def test_another_process_runs_the_text(tmp_path: Path) -> None:
    path = tmp_path / "compiled.py"
    path.write_text(weft.lower(Layer, stop="link").script())
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-m", "weft", "run", str(path), "--input", f"x={tmp_path / 'x.npy'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "W830" in done.stderr
    done = subprocess.run([*command, "--trust"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "24" in done.stdout


@pytest.mark.parametrize("executor", EXECUTORS)
def test_objects_provide_and_need_what_their_tables_say(executor: str) -> None:
    artifacts = weft.compile(Layer, executor=executor).artifacts
    objects = [item for item in artifacts.values() if item.kind == "object"]
    assert objects
    for item in objects:
        assert {symbol.name for symbol in item.provides} == defined(item.data)
        assert {symbol.name for symbol in item.needs} == needed(item.data)
        check_symbols(item)


def test_objects_of_other_machines_say_the_truth_too() -> None:
    for target in ("llvm -mcpu=cortex-m4", "llvm -mtriple=aarch64-linux-gnu"):
        artifacts = weft.compile(Layer, target)
        (item,) = (item for item in artifacts.values() if item.kind == "object")
        check_symbols(item)
        assert {"model_run", "model_message"} <= {symbol.name for symbol in item.provides}


def test_an_object_that_does_not_say_the_truth_is_found_by_reading(tmp_path: Path) -> None:
    artifacts = weft.compile(Layer, executor="aot").artifacts
    item = artifacts["model.o"]
    for wrong in ({"provides": (*item.provides, Symbol("more"))}, {"needs": ()}):
        made: Any = Artifact(**{**vars(item), **wrong})
        if made == item:
            continue
        with pytest.raises(weft.ArtifactError) as caught:
            check_symbols(made)
        assert caught.value.code == "W821"
        ArtifactSet([made]).save(tmp_path / "wrong.zip")
        command = [sys.executable, "-m", "weft", "artifact", "verify", str(tmp_path / "wrong.zip")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "W821" in done.stderr) == (1, True)


def test_a_program_says_what_it_was_made_from() -> None:
    made = weft.compile(Layer)
    facts = made.artifacts["program.json"].provenance
    assert set(facts["functions"]) == set(weft.lower(Layer, stop="plan"))
    assert (facts["target"], facts["opt"], facts["executor"]) == ("llvm", 2, "native")
    assert {"weft", "llvm"} <= set(facts)
    planned = weft.lower(Layer, stop="plan")
    assert weft.compile(planned, start="codegen").artifacts["program.json"].provenance == facts
    other = weft.compile(parsed(Layer.script().replace("T.float32(2.0)", "T.float32(3.0)"))).artifacts["program.json"]
    assert other.provenance["functions"] != facts["functions"]
