"""Intrinsics, executors and importers from outside: one registration each, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import frontend, ir
from weft.codegen.executors import EXECUTORS, register_executor, unregister_executor
from weft.codegen.executors.entry import graph
from weft.errors import ArtifactError, DTypeError, ModelError, TargetError
from weft.ir import te
from weft.ir.kernel.intrinsics import INTRINSICS, Intrinsic, register_intrinsic, remove_intrinsic
from weft.runtime.programs.entry import GraphFunction

NAMES = "from weft.script import ir as I, relax as R, tir as T\n"
X = np.linspace(-3, 3, 37, dtype="float32")


# ---------------------------------------------------------------------------------------------------------------------
# Intrinsics
# ---------------------------------------------------------------------------------------------------------------------


def kernel(value: str, dtype: str = "float32", size: str = '"n"') -> ir.IRModule:
    return weft.parse(
        f"{NAMES}@I.ir_module\nclass M:\n    @T.prim_func\n"
        f'    def f(x: T.Buffer(({size},), "{dtype}"), y: T.Buffer(({size},), "{dtype}")):\n'
        f"        for i in range({size.strip(chr(34))}):\n            y[i] = {value}\n"
    )


@pytest.fixture
def declared() -> Iterator[None]:
    register_intrinsic(Intrinsic("bend", 1, "float", formula=lambda x: x / (1 + te.abs(x)), doc="x / (1 + |x|)"))
    register_intrinsic(Intrinsic("bend_twice", 1, "float", formula=lambda x: te.abs(weft_bend(weft_bend(x)))))
    yield
    remove_intrinsic("bend")
    remove_intrinsic("bend_twice")


def weft_bend(x: Any) -> Any:
    from weft.script import tir as T

    return T.bend(x)


def bent(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("T.bend(x[i])", bent(X)),
        ("T.bend(T.bend(x[i] * T.float32(2)) + T.bend(x[i]))", bent(bent(2 * X) + bent(X))),
        ("T.bend_twice(x[i])", np.abs(bent(bent(X)))),
    ],
)
def test_an_intrinsic_by_a_formula_computes_everywhere(declared: None, value: str, wanted: np.ndarray) -> None:
    module = kernel(value)
    assert weft.structural_equal(weft.parse(module.script()), module)
    for run in (weft.interpret(module)["f"], weft.compile(module)["f"], weft.compile(module, opt=0)["f"]):
        y = np.zeros_like(X)
        run(X, y)
        np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_c_code_has_the_formula(declared: None) -> None:
    sources = weft.compile(kernel("T.bend(x[i])", size="8"), "c")
    text = "".join(item.data.decode() for item in sources.values() if item.name.endswith(".c"))
    assert "fabsf(" in text
    assert "bend" not in text


def test_numpy_is_the_reference_of_a_formula_where_it_is_given() -> None:
    register_intrinsic(Intrinsic("odd_one", 1, "float", lambda x: x * 0 + 7, formula=lambda x: x))
    try:
        y = np.zeros_like(X)
        weft.interpret(kernel("T.odd_one(x[i])"))["f"](X, y)
        assert (y == 7).all()
    finally:
        remove_intrinsic("odd_one")


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (lambda x: te.cast("float64", x), "gives float64, its rule says float32"),
        (lambda x: ir.tensor.PrimCall("wrong", (x,), x.dtype), "uses T.wrong"),
    ],
)
def test_a_formula_that_is_none_is_refused(formula: Any, message: str) -> None:
    register_intrinsic(Intrinsic("wrong", 1, "float", formula=formula))
    try:
        for run in (weft.compile, lambda module: weft.interpret(module)["f"](X, X.copy())):
            with pytest.raises(DTypeError, match=message) as caught:
                run(kernel("T.wrong(x[i])"))
            assert caught.value.code == "W317"
            assert caught.value.span is not None
    finally:
        remove_intrinsic("wrong")


@pytest.mark.parametrize(("name", "rule"), [("exp", "float"), ("a b", "float"), ("new", "any")])
def test_a_row_that_cannot_be_is_refused(name: str, rule: str) -> None:
    before = dict(INTRINSICS)
    with pytest.raises(DTypeError) as caught:
        register_intrinsic(Intrinsic(name, 1, rule))
    assert caught.value.code == "W316"
    assert before == INTRINSICS


def test_a_removed_intrinsic_is_unknown_and_built_in_ones_stay(declared: None) -> None:
    remove_intrinsic("bend")
    remove_intrinsic("exp")
    assert "exp" in INTRINSICS
    with pytest.raises(weft.ScriptError) as caught:
        kernel("T.bend(x[i])")
    assert caught.value.code == "W111"


# ---------------------------------------------------------------------------------------------------------------------
# Executors
# ---------------------------------------------------------------------------------------------------------------------

ADD = weft.parse(f'{NAMES}@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    return R.add(R.exp(x), x)\n')


class Counting(GraphFunction):
    calls = 0

    def run(self, *parts: Any) -> None:
        Counting.calls += 1
        super().run(*parts)


def counting(driver: dict[str, Any], constants: Any, kernels: Any, linked: Any) -> dict[str, Any]:
    return {driver["name"]: Counting(driver, constants, kernels, linked)}


@pytest.fixture
def executor() -> Iterator[str]:
    register_executor("counting", graph, counting, straight_line=True)
    yield "counting"
    unregister_executor("counting")


def test_an_executor_runs_is_saved_and_loaded(executor: str, tmp_path: Path) -> None:
    bounded = ADD.with_attr("tir_var_upper_bound", {"n": 64})
    exe = weft.compile(bounded, executor=executor)
    before = Counting.calls
    np.testing.assert_allclose(exe["main"](X), np.exp(X) + X, rtol=1e-6)
    assert Counting.calls == before + 1
    exe.save(tmp_path / "program.weft")
    np.testing.assert_allclose(weft.load(tmp_path / "program.weft")["main"](X), np.exp(X) + X, rtol=1e-6)
    assert Counting.calls == before + 2
    assert exe.source(executor).startswith("{")
    configured = weft.compile(bounded, {"kind": "config", "parts": {"host": "llvm"}, "executor": {"kind": executor}})
    np.testing.assert_allclose(configured["main"](X), np.exp(X) + X, rtol=1e-6)


def test_a_program_whose_executor_is_gone_is_refused(tmp_path: Path) -> None:
    register_executor("passing", graph, counting)
    weft.compile(ADD.with_attr("tir_var_upper_bound", {"n": 64}), executor="passing").save(tmp_path / "program.weft")
    unregister_executor("passing")
    with pytest.raises(ArtifactError, match="no executor runs 'passing'") as caught:
        weft.load(tmp_path / "program.weft")
    assert caught.value.code == "W840"
    with pytest.raises(TargetError, match="there is no executor 'passing'") as unknown:
        weft.compile(ADD, executor="passing")
    assert unknown.value.code == "W735"


@pytest.mark.parametrize("name", ["vm", "weft-graph"])
def test_an_executor_of_a_name_that_is_taken_is_refused(name: str) -> None:
    before = dict(EXECUTORS)
    with pytest.raises(TargetError) as caught:
        register_executor(name, graph)
    assert caught.value.code == "W755"
    unregister_executor(name)
    assert before == EXECUTORS


# ---------------------------------------------------------------------------------------------------------------------
# Importers
# ---------------------------------------------------------------------------------------------------------------------


def test_an_importer_is_chosen_by_the_ending_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from weft.__main__ import main

    path = tmp_path / "net.tiny"
    path.write_text("add")
    seen: list[Path] = []
    frontend.register_importer(".tiny", lambda path, progress: (seen.append(path), weft.IRModule({"main": ADD}))[1])
    try:
        assert weft.structural_equal(frontend.load(path)["main"], ADD)
        assert main(["import", str(path), "-o", str(tmp_path / "net.py")]) == 0
        assert "R.exp" in (tmp_path / "net.py").read_text()
        assert seen == [path, path]
        assert main(["import", str(path), "--check"]) == 1
        assert "W978" in capsys.readouterr().err
    finally:
        frontend.unregister_importer(".tiny")


@pytest.mark.parametrize("suffix", [".onnx", "tiny"])
def test_an_importer_for_no_free_ending_is_refused(suffix: str) -> None:
    with pytest.raises(ModelError) as caught:
        frontend.register_importer(suffix, lambda path, progress: weft.IRModule({}))
    assert caught.value.code == "W980"
