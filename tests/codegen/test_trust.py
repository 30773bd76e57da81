"""Compiled code inside a text or a file is data until the caller trusts it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.errors import ArtifactError
from weft.ir import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.loading import LoadedModule, compile_c, in_memory, register_loader, unregister_loader

CALLER = """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_dps_packed("outside", (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"""
ran: list[str] = []


@pytest.fixture
def carrying():
    """A module with an artifact whose loading and running leave a trace."""

    def outside(x: np.ndarray, out: np.ndarray) -> None:
        ran.append("run")
        out[...] = x + 1

    def load(artifact: Artifact) -> dict[str, object]:
        ran.append("load")
        return {"outside": outside}

    register_loader("trust-stream", load)  # pyright: ignore[reportArgumentType]
    ran.clear()
    artifact = Artifact("trust-stream", "a.bin", b"code", provides=(Symbol("outside"),), loader="trust")
    module = weft.parse(CALLER)
    assert isinstance(module, IRModule)
    yield module.with_attr("artifacts", ArtifactSet([artifact]))
    unregister_loader("trust-stream")


def test_reading_printing_checking_and_interpreting_load_nothing(carrying: IRModule) -> None:
    again = weft.parse(carrying.script())
    assert isinstance(again, IRModule)
    assert weft.verify(again) == []
    again.show()
    with pytest.raises(ArtifactError, match="'outside'"):
        weft.interpret(again)["main"](np.zeros(4, "float32"))
    assert ran == []


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_compiling_refuses_carried_code_until_it_is_trusted(carrying: IRModule, executor: str) -> None:
    x = np.zeros(4, "float32")
    with pytest.raises(ArtifactError, match=r"carries compiled code \(a\.bin\)") as caught:
        weft.compile(carrying, executor=executor)
    assert caught.value.code == "W830"
    assert "trust=True" in (caught.value.hint or "")
    assert ran == []
    np.testing.assert_array_equal(weft.compile(carrying, executor=executor, trust=True)["main"](x), x + 1)
    assert ran == ["load", "run"]


def test_calling_a_module_refuses_and_trusts_in_the_same_way(carrying: IRModule) -> None:
    with pytest.raises(ArtifactError, match="carries compiled code"):
        carrying(np.zeros(4, "float32"))
    assert ran == []
    np.testing.assert_array_equal(carrying(np.zeros(4, "float32"), trust=True), np.ones(4))


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize("stop", ["codegen", "link"])
def test_making_code_beside_carried_code_needs_trust(carrying: IRModule, executor: str, stop: str) -> None:
    with pytest.raises(ArtifactError, match="carries compiled code") as caught:
        weft.lower(carrying, executor=executor, stop=stop)
    assert caught.value.code == "W830"
    with pytest.raises(ArtifactError, match="carries compiled code"):
        weft.transform.parse_pipeline("codegen,link")(carrying)
    assert ran == []
    x = np.zeros(4, "float32")
    made = weft.lower(carrying, executor=executor, stop=stop, trust=True)
    np.testing.assert_array_equal(weft.load_module(made, trust=True)["main"](x), x + 1)
    assert weft.lower(carrying, stop="plan").attrs["artifacts"] == carrying.attrs["artifacts"]


def test_the_interpreter_loads_nothing_for_a_name_that_no_artifact_says_it_provides(carrying: IRModule) -> None:
    declared = weft.parse(CALLER.replace("class M:", "class M:\n    outside = R.ExternFunc('outside')"))
    silent = ArtifactSet([Artifact("trust-stream", "a.bin", b"code")])
    assert isinstance(declared, IRModule)
    live = in_memory("live", LoadedModule({"other": print}))
    for artifacts in (silent, silent.union([live])):
        with pytest.raises(ArtifactError, match="not run unless it is trusted"):
            weft.interpret(declared.with_attr("artifacts", artifacts))["main"](np.zeros(4, "float32"))
    assert ran == []


def test_the_interpreter_loads_what_the_caller_has_and_nothing_beside_it(carrying: IRModule) -> None:
    def other(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = x + 2

    module = weft.parse(CALLER.replace("outside", "other"))
    assert isinstance(module, IRModule)
    both = carrying.attrs["artifacts"].union([in_memory("live", LoadedModule({"other": other}))])
    np.testing.assert_array_equal(
        weft.interpret(module.with_attr("artifacts", both))["main"](np.zeros(4, "float32")), np.full(4, 2)
    )
    assert ran == []


def test_c_sources_that_a_text_carries_are_not_joined_to_a_program_untrusted() -> None:
    driver = Artifact("c", "driver.c", b"int outside(void *x, void *y) { return 0; }", provides=(Symbol("outside"),))
    module = weft.parse(CALLER)
    assert isinstance(module, IRModule)
    carrying = module.with_attr("artifacts", ArtifactSet([driver]))
    with pytest.raises(ArtifactError, match="carries compiled code"):
        weft.compile(carrying, "c")
    assert "driver.c" in weft.compile(carrying, "c", trust=True)


def test_what_the_caller_has_loaded_already_needs_no_word_of_trust() -> None:
    def outside(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = x + 2

    module = weft.parse(CALLER)
    assert isinstance(module, IRModule)
    live = module.with_attr("artifacts", ArtifactSet([in_memory("live", LoadedModule({"outside": outside}))]))
    np.testing.assert_array_equal(weft.compile(live)["main"](np.zeros(4, "float32")), np.full(4, 2))


@pytest.mark.skipif(shutil.which("cc") is None, reason="object code is made by the C compiler of this machine")
def test_object_code_in_a_text_does_not_reach_the_process(tmp_path: Path) -> None:
    code = compile_c("void outside(void *x, void *y) { *(volatile int *)0 = 0; }", "a.c")
    module = weft.parse(CALLER)
    assert isinstance(module, IRModule)
    text = module.with_attr("artifacts", ArtifactSet([Artifact("object", "a.o", code, provides=(Symbol("outside"),))]))
    Path(tmp_path, "m.txt").write_text(text.script())
    assert main(["check", str(tmp_path / "m.txt")]) == 0
    assert main(["run", str(tmp_path / "m.txt"), "--random"]) == 1


def test_the_command_line_runs_saved_executables_with_trust_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tmp_path, "f.py").write_text(
        "@R.function\ndef f(x: R.Tensor((2,), 'float32')) -> R.Tensor((2,), 'float32'):\n    return R.exp(x)\n"
    )
    saved = str(tmp_path / "f.weft")
    assert main(["compile", str(tmp_path / "f.py"), "-o", saved]) == 0
    assert main(["run", saved, "--random"]) == 1
    assert "W830" in capsys.readouterr().err
    assert main(["run", saved, "--random", "--trust"]) == 0
    assert weft.load(saved)["main"](np.zeros(2, "float32"))[0] == 1


def test_the_command_line_names_externs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tmp_path, "f.py").write_text(
        "@T.prim_func\ndef f(x: T.Buffer((2,), 'int32')):\n"
        "    for i in range(2):\n        x[i] = T.call_extern('int32', 'abs', x[i])\n"
    )
    source = str(tmp_path / "f.py")
    for command in (
        ["run", source, "--random"],
        ["compile", source, "-o", str(tmp_path / "f.weft")],
        ["export", source, "--target", "c", "-o", str(tmp_path / "sources")],
    ):
        assert main(command) == 1
        assert "--allow-extern abs" in capsys.readouterr().err
        assert main([*command, "--allow-extern", "abs"]) == 0
