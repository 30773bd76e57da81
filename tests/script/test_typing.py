"""What editors and type checkers see: signatures, documentation with the shape rule, and no errors in user code."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.ir.op import OPS
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

ROOT = Path(__file__).resolve().parent.parent.parent

USER_FILE = '''
"""A module as users write it."""

import numpy as np

import weft
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

SIZE = 256


@T.macro
def fill(A, value):
    A[0] = value


@R.macro(hygienic=False)
def double(x):
    return R.add(x, x)


@T.inline
def clear(A: T.Buffer):
    fill(A, T.float32(0))


@I.ir_module
class Mlp:
    I.module_attrs({"version": 1})

    @T.prim_func(private=True, s_tir=True)
    def scale(x: T.Buffer(("n", SIZE), "float32"), y: T.Buffer(("n", SIZE), "float32"), k: T.int32, p: T.handle):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        B = T.match_buffer(p, (n, SIZE), "float32")
        C = T.alloc_buffer((n, SIZE), "float32", scope="local")
        for i, j in T.grid(n, SIZE):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(x[vi, vj], B[vi, vj])
                T.writes(y[vi, vj], C[vi, vj])
                with T.init():
                    y[vi, vj] = T.float32(0)
                t: T.let = T.max(x[vi, vj], T.float32(0.5))
                C[vi, vj] = T.if_then_else(k > 0, T.exp(t), T.Cast("float32", vi))
                y[vi, vj] += C[vi, vj] * T.bfloat16(0.5).astype("float32")
        for i in T.serial(0, 4):
            for j in T.vectorized(8):
                y[i, j] = T.float32(i)

    @R.function
    def main(
        x: R.Tensor(("n", 784), "float32"),
        w: R.Tensor((784, SIZE), "float32"),
        s: R.Shape(["n"]),
        t: R.Tuple(R.Tensor, R.Any, R.Callable((R.Any,), R.Any, True)),
        v: R.Tensor((4,), "float32", "llvm:0"),
        p: R.Prim("int64") = 3,
    ) -> R.Tuple(R.Tensor(("n", SIZE), "float32"), R.Any):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            h = R.nn.relu(R.matmul(x, w))
            a, *b = R.split(h, 4, axis=1)
            c: R.Tensor((n, 64), "float32") = a + b[0] * 2.0
            d = sum([part @ R.permute_dims(part) for part in b])
            y = R.call_tir(Mlp.scale, (h,), out_ty=R.Tensor((n, SIZE), "float32"))
            z = R.image.resize2d(R.zeros((1, 3, 4, 4), "float32"), (8, 8), method="linear")
            R.output(y, c, d, z)
        e = x[0, :3, None, ...] if x.ndim == 2 else x.shape
        assert x.shape[1] == 784, "columns"
        return double(y), (c, d, e, z)


@R.function(pure=False)
def loud(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
    R.print(x, format="x={}")

    @R.function
    def inner(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return y

    if x.dtype == "float32":
        z = inner(x)
    else:
        z = x
    return z


def kernel(shape: tuple[int, ...], dtype: str) -> weft.ir.PrimFunc:
    @T.prim_func
    def copy(A: T.Buffer(shape, dtype), B: T.Buffer(shape, dtype)):
        for i in T.grid(*shape):
            B[i] = A[i]

    return copy


def use() -> np.ndarray:
    Mlp.show()
    loud.show()
    text: str = kernel((2, 3), "float32").script()
    assert weft.structural_equal(weft.parse(text), Mlp["main"])
    exe = weft.compile(Mlp, target="llvm", opt=2)
    return exe["main"](np.ones((2, 3), "float32"), loud(np.ones((2, 3), "float32")))
'''


def checked(folder: Path) -> list[str]:
    """The errors that pyright reports in basic mode about the files of a folder."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed (it is in the `check` extra)")
    sources = str(Path(weft.__file__).parent.parent)
    config = folder / "pyrightconfig.json"
    extra = [sources]
    config.write_text(json.dumps({"typeCheckingMode": "basic", "extraPaths": extra}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=300)
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.skip(f"pyright does not run here: {done.stderr[-200:]}")
    assert report["summary"]["filesAnalyzed"] == len(list(folder.glob("*.py")))
    return [
        f"{item['file']}:{item['range']['start']['line'] + 1}: {item['message']}"
        for item in report["generalDiagnostics"]
        if item["severity"] in ("error", "warning") and item.get("rule") != "reportMissingImports"
    ]


def test_a_users_file_and_the_examples_have_no_type_errors(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(USER_FILE)
    for example in (ROOT / "examples").glob("*.py"):
        (tmp_path / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    assert checked(tmp_path) == []


def test_type_errors_outside_scripts_are_still_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "from weft.script import relax as R\n\n\n@R.function(pur=True)\ndef f(x: int):\n    return x\n\n\n"
        "R.nn.reluu(1)\nR.add(1)\nR.const(1).nosuch\n"
    )
    found = checked(tmp_path)
    assert [text.split(":")[1] for text in found][:3] == ["4", "9", "10"], found


def test_the_stubs_are_what_the_declarations_say_today() -> None:
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "docs" / "stubs.py")
    assert spec is not None
    assert spec.loader is not None
    stubs: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    for path, text in stubs.stubs().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"run `python docs/stubs.py`: {path}"


@pytest.mark.parametrize("name", ["add", "nn.conv2d", "matmul", "strided_slice", "image.resize2d"])
def test_hovering_over_an_operator_shows_its_rule(name: str) -> None:
    text = (ROOT / "script" / "relax.pyi").read_text(encoding="utf-8")
    head = OPS[name].doc.split("\n")[0]
    assert f"def {name.rpartition('.')[2]}(" in text
    assert head in text


def test_namespaces_have_signatures_and_documentation_at_run_time() -> None:
    for namespace in (I, R, T):
        assert namespace.__doc__
    for function in (
        R.function,
        T.prim_func,
        I.ir_module,
        T.macro,
        R.macro,
        T.inline,
        R.Tensor,
        R.const,
        T.Cast,
        I.vdevice,
    ):
        assert inspect.getdoc(function)
        assert inspect.signature(function).parameters
    assert list(inspect.signature(R.nn.conv2d).parameters)[:2] == ["data", "weight"]
    assert "sums of products" in (inspect.getdoc(R.nn.conv2d) or "")
    assert inspect.getdoc(R.add) == "x1 + x2, elementwise; of bools, whether one is true."
