"""Parts of kind C beside a part that runs in this process."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import Artifact, ArtifactError, IRModule, TargetError
from weft.runtime.artifact import ArtifactSet, Symbol
from weft.runtime.programs.c_kernels import load_c_kernels

TEXT = """
@I.ir_module
class M:
    @T.prim_func
    def scale(x: T.Buffer(("n", 4), "float32"), k: T.int32, y: T.Buffer(("n", 4), "float32")):
        assert k > 0, "the factor must be positive"
        for i, j in T.grid(n, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(k)

    @R.function
    def main(x: R.Tensor((N, 4), "float32")) -> R.Tensor((N, 4), "float32"):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.call_tir(
                cls.scale, (a, FACTOR), out_ty=R.Tensor((N, 4), "float32"), target="slow"
            )
            c = OPERATOR(b, target="slow")
            d = R.add(c, a)
            R.output(d)
        return d
"""
TARGET = "host: llvm; slow: c"

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def model(size: str = '"n"', factor: int = 2) -> IRModule:
    text = TEXT.replace("(N, 4)", f"({size}, 4)", 2).replace("(N, 4)", f"({size.strip(chr(34))}, 4)")
    # Scratch memory of a kernel has a known size in C: rows of a softmax are kept in some.
    text = text.replace("OPERATOR", "R.exp" if "n" in size else "R.nn.softmax")
    module = weft.parse(text.replace("a, FACTOR", f"a, R.prim_value(T.int32({factor}))"))
    assert isinstance(module, IRModule)
    return module


def data(rows: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, 4)).astype("float32")


@needs_compiler
@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_kernels_of_a_c_part_are_compiled_and_called(executor: str, tmp_path: Path) -> None:
    """E5: one model on two parts of this machine; saved with its code, the same without a compiler."""
    symbolic = executor in ("native", "vm")
    module = model() if symbolic else model("3")
    exe = weft.compile(module, TARGET, executor=executor)
    made = exe.artifacts["slow.kernels"]
    assert (made.kind, made.codegen) == ("c-kernels", "c")
    exe.save(tmp_path / "model.weft")
    for loaded in (exe, weft.load(tmp_path / "model.weft")):
        for rows in (3, 1, 7) if symbolic else (3,):
            expected = weft.interpret(module)["main"](data(rows))
            np.testing.assert_allclose(loaded["main"](data(rows)), expected, rtol=1e-5, atol=1e-6)


@needs_compiler
def test_the_code_of_a_c_part_is_the_same_every_time() -> None:
    first, second = (weft.compile(model(), TARGET).artifacts["slow.kernels"] for _ in range(2))
    assert first == second


@needs_compiler
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@pytest.mark.parametrize("size", ['"n"', "3"])
def test_kernels_of_a_c_part_say_what_they_need(size: str, tmp_path: Path) -> None:
    """H2: as `nm` reads their object, without what the C compiler brings along; `weft artifact verify` reads it too."""
    made = weft.compile(model(size), TARGET).artifacts["slow.kernels"]
    (tmp_path / "slow.o").write_bytes(base64.b64decode(json.loads(made.data)["object"]))
    read = subprocess.run(["nm", "-u", str(tmp_path / "slow.o")], capture_output=True, text=True, check=True).stdout
    undefined = {line.split()[-1] for line in read.splitlines()}
    needs = {symbol.name for symbol in made.needs}
    assert "expf" in needs
    assert needs == {name for name in undefined if not name.startswith("_")}
    for wrong in ((), (*made.needs, Symbol("more"))):
        ArtifactSet([replace(made, needs=wrong)]).save(tmp_path / "wrong.zip")
        command = [sys.executable, "-m", "weft", "artifact", "verify", str(tmp_path / "wrong.zip")]
        environment = {**os.environ, "PYTHONPATH": "src"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert (done.returncode, "W821" in done.stderr) == (1, True)


@needs_compiler
def test_an_assertion_in_a_c_part_says_what_it_says() -> None:
    exe = weft.compile(model(factor=-1), TARGET)
    with pytest.raises(AssertionError, match="the factor must be positive"):
        exe["main"](data(3))


def test_without_a_compiler_a_c_part_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ArtifactError) as caught:
        weft.compile(model(), TARGET)
    assert str(caught.value) == "W819: no C compiler is there to make code of slow.c\nhint: set CC"


def test_a_c_part_for_another_processor_is_not_called_from_here() -> None:
    with pytest.raises(TargetError, match=r"part 'slow' \(c -mcpu=cortex-m0\)") as caught:
        weft.compile(model(), "host: llvm; slow: c -mcpu=cortex-m0")
    assert caught.value.code == "W736"


def test_graph_functions_do_not_go_to_a_c_part() -> None:
    text = """
@I.ir_module
class M:
    @R.function
    def inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"target": "slow"})
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = cls.inner(x)
        return y
"""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    with pytest.raises(TargetError, match="graph function 'inner' belongs to part 'slow'") as caught:
        weft.compile(module, TARGET)
    assert caught.value.code == "W736"
    assert caught.value.span is not None
    assert caught.value.span.line == 5


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"object": "!", "functions": [], "messages": []}'])
def test_other_data_is_no_kernels(content: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"'k\.kernels' does not hold kernels") as caught:
        load_c_kernels(Artifact("c-kernels", "k.kernels", content))
    assert caught.value.code == "W810"
