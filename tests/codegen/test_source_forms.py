"""The source text of compiled code, in the forms that its back end, its executor and its other parts have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.backends.base import BackEnd, Job, back_end_of, register_back_end, unregister_back_end
from weft.ir import Function
from weft.runtime.executable import Executable
from weft.script import relax as R
from weft.target import remove_target_kind


@R.function
def double(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    return R.add(x, x)


@pytest.mark.parametrize(
    ("executor", "forms"),
    [("native", ""), ("vm", ", vm"), ("graph", ", graph"), ("aot", ", aot, header")],
)
def test_each_executor_has_the_forms_of_its_back_end_and_its_own(executor: str, forms: str, tmp_path: Path) -> None:
    made = weft.compile(double, executor=executor)
    assert made.source() == made.source("llvm")
    assert ("define" in made.source(), "ret" in made.source("asm")) == (True, True)
    with pytest.raises(weft.ArtifactError) as caught:
        made.source("ptx")
    assert (caught.value.code, caught.value.hint) == ("W806", f"choose one of: llvm, asm{forms}")
    made.save(tmp_path / "double.weft")
    again = weft.load(tmp_path / "double.weft")
    for form in f"llvm, asm{forms}".split(", "):
        assert again.source(form) == made.source(form)


def test_sources_for_other_machines_have_the_forms_of_their_artifacts() -> None:
    made = weft.compile(double, "c")
    assert "int32_t model_run(" in made.source("c")
    assert made.source() == made.source("c")
    with pytest.raises(weft.ArtifactError) as caught:
        made.source("llvm")
    assert caught.value.code == "W806"
    assert {"c", "header"} <= set((caught.value.hint or "").removeprefix("choose one of: ").split(", "))


class Shouting(BackEnd):
    """LLVM's machine code under a form of its own."""

    executors, forms = ("native", "vm"), ("shout",)

    def __init__(self, inner: BackEnd) -> None:
        self.inner = inner

    def processor(self, part: Any, opt: int) -> Any:
        return self.inner.processor(weft.Target("llvm"), opt)

    def build(self, job: Job) -> Executable:
        return Executable(job.program())

    def machine_code(self, module: Any, plan: Any, owner: Any, *, kernels_only: bool = False) -> Any:
        return self.inner.machine_code(module, plan, owner, kernels_only=kernels_only)

    def source(self, program: Any, form: str) -> str:
        return self.inner.source(program, "llvm").upper()


def test_a_back_end_of_a_plug_in_has_every_executor_by_giving_machine_code(request: pytest.FixtureRequest) -> None:
    weft.target_kind("shouting", {}, doc="a test")
    request.addfinalizer(lambda: remove_target_kind("shouting"))
    register_back_end("shouting", Shouting(back_end_of(weft.Target("llvm"))))
    request.addfinalizer(lambda: unregister_back_end("shouting"))
    assert isinstance(double, Function)
    for executor in ("native", "vm"):
        made = weft.compile(double, "shouting", executor=executor)
        assert (made["double"](np.ones(4, "float32")) == 2).all()
        assert "DEFINE" in made.source("shout")
    with pytest.raises(weft.ArtifactError, match="choose one of: shout"):
        made.source("llvm")
