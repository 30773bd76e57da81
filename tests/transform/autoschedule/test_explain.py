"""explain: what was decided, read from the records of a module, an executable, a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.transform import BindParams, Knobs
from weft.transform.autoschedule.explain import explain

TEXT = """from weft.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((200, 700), "float32"), w: R.Tensor((700, 600), "float32"), b: R.Tensor((8,), "float32")):
        y = R.nn.relu(R.matmul(x, w))
        z = R.exp(b)
        return (y, z)
"""


def test_an_executable_says_what_was_decided_also_from_a_file(tmp_path: Path) -> None:
    exe = weft.compile(weft.parse(TEXT), target="llvm -mcpu=x86-64-v3")
    text = exe.explain()
    for part in (
        "fusion (matmul + relu",
        "gemm: form=packed mr=6 nr_vectors=2",
        "can be pinned: chunks, form, kc",
        "parallel: loops=",
        "iterations are proved independent",
        "elementwise: axis=",
        "too little work",
    ):
        assert part in text
    assert exe.explain("exp").splitlines()[0] == "exp"
    assert "gemm" not in exe.explain("exp")
    assert exe.explain("nothing") == "nothing was decided"
    exe.save(tmp_path / "m.weft")
    assert weft.load(tmp_path / "m.weft").explain() == text


def test_the_command_prints_the_same_records_as_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.py"
    file.write_text(TEXT)
    arguments = ["explain", str(file), "--target", "llvm -mcpu=x86-64-v3"]
    assert main(arguments) == 0
    assert "gemm: form=packed" in capsys.readouterr().out
    assert main([*arguments, "--json", "--function", "fused_matmul_relu"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["kind"] for record in records] == ["fusion", "gemm", "parallel"]
    assert records[1]["mr"] == 6


def test_checks_that_are_left_for_the_call_are_told() -> None:
    module = weft.parse(TEXT.replace("R.exp(b)", "R.take(b, R.astype(b, 'int64'))"))
    lowered = weft.lower(module, "llvm -mcpu=x86-64-v3", stop="plan")  # type: ignore[arg-type]
    assert [record["function"] for record in explain(lowered) if record["kind"] == "checks"] == ["take"]


def test_relations_of_sizes_that_only_a_declared_type_states_are_told() -> None:
    exe = weft.compile(
        weft.parse("""
from weft.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        with R.dataflow():
            d = R.exp(x)
            R.output(d)
        return d
""")
    )
    (record,) = (item for item in exe._program.decisions if item["function"] == "main" and item["kind"] == "checks")
    assert record["relation"] == "m == n (the result of main)"
    assert "W213" in exe.explain()


def test_packed_constants_and_planned_memory_are_told() -> None:
    text = """from weft.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 96), "float32"), v: R.Tensor((96, 64), "float32")):
        y = R.matmul(R.nn.relu(R.matmul(x, w)), v)
        return y
"""
    weights = {"w": np.ones((64, 96), "float32"), "v": np.ones((96, 64), "float32")}
    module = BindParams("main", weights)(weft.parse(text))
    knobs = Knobs(pack_from=1)
    records = explain(weft.lower(module, "llvm -mcpu=x86-64-v3", opt=knobs, stop="plan"))
    packed = [record for record in records if record["kind"] == "packing"]
    assert [record["packed_as"] for record in packed] == [["b_packed"], ["b_packed"]]
    assert all(record["bytes"] == 64 * 96 * 4 for record in packed)
    (memory,) = (record for record in records if record["kind"] == "memory")
    assert memory["function"] == "main"
    assert "n" in memory["bytes"]
