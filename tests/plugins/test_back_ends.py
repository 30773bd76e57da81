"""A back end from outside: it drives programs, works beside others, and is asked what it has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft.codegen.backends.base import BackEnd, Job, Plan, back_end_of, register_back_end, unregister_back_end
from weft.codegen.backends.generators import Generator
from weft.codegen.host.read import read_program
from weft.errors import TargetError
from weft.ir import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.loading import register_loader, unregister_loader
from weft.target import Target, remove_target_kind

MODULE = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr(ATTRS)
        for i in range(4):
            y[i] = x[i] + x[i]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((4,), "float32"))
        z = R.call_tir(cls.double, (y,), out_ty=R.Tensor((4,), "float32"))
        return z
"""


def module(label: str = "") -> IRModule:
    made = weft.parse(MODULE.replace("ATTRS", f'{{"target": "{label}"}}' if label else "{}"))
    assert isinstance(made, IRModule)
    return made


def _text(made: IRModule, part: Target) -> Artifact:
    provides = tuple(Symbol(name) for name in made)
    return Artifact("test-script", "program.txt", made.script().encode(), part.to_json(), provides)


class Scripts(BackEnd):
    """Programs as their own text, run by the interpreter."""

    executors = ("native", "graph")
    forms = ("script",)

    def __init__(self) -> None:
        self.programs: list[str] = []

    def generator(self, label: str, part: Target) -> Generator:
        return _text

    def is_straight_line(self, plan: Plan) -> bool:
        return plan.executor == "graph"

    def build(self, job: Job) -> ArtifactSet:
        made, owner = job.remaining(lambda label: label == job.plan.driver)
        self.programs.append(str(read_program(made)))
        assert set(owner.values()) == {job.plan.driver}
        return ArtifactSet([_text(made, job.plan.parts[job.plan.driver])])


@pytest.fixture
def scripts() -> Iterator[Scripts]:
    back_end = Scripts()
    weft.target_kind("scripts", {}, doc="for tests")
    register_back_end("scripts", back_end)

    def load(artifact: Artifact):
        parsed = weft.parse(artifact.data.decode())
        functions = weft.interpret(parsed)
        return {symbol.name: functions[symbol.name] for symbol in artifact.provides}

    register_loader("test-script", load)
    yield back_end
    unregister_loader("test-script")
    unregister_back_end("scripts")
    remove_target_kind("scripts")


X = np.arange(4, dtype="float32")


def test_a_back_end_from_outside_drives_programs(scripts: Scripts) -> None:
    made = weft.compile(module(), "scripts", opt=0)
    assert (made["program.txt"].load()["main"](X) == 4 * X).all()
    (program,) = scripts.programs
    assert "launch" in program


def test_what_it_does_not_have_is_refused(scripts: Scripts) -> None:
    with pytest.raises(TargetError, match="executor 'vm' cannot be had with the target scripts") as caught:
        weft.compile(module(), "scripts", executor="vm")
    assert caught.value.code == "W739"
    assert "native, graph" in (caught.value.hint or "")
    assert weft.compile(module(), "scripts", executor="graph").names == ("program.txt",)


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_it_works_for_a_part_that_drives(scripts: Scripts, executor: str) -> None:
    exe = weft.compile(module("dog"), "host: llvm; dog: scripts", executor=executor)
    assert (exe["main"](X) == 4 * X).all()
    assert "program.txt" in exe.artifacts
    assert not scripts.programs  # it did not drive


def test_functions_of_parts_that_it_does_not_serve_are_refused(scripts: Scripts) -> None:
    with pytest.raises(TargetError, match=r"belongs to part 'cat' .*and nothing here makes code") as caught:
        weft.compile(module("cat"), "host: scripts; cat: c -mcpu=cortex-m0")
    assert caught.value.code == "W736"


def test_a_kind_has_one_back_end(scripts: Scripts) -> None:
    assert back_end_of(Target("scripts")) is scripts
    register_back_end("scripts", scripts)
    with pytest.raises(TargetError, match="has a back end already") as caught:
        register_back_end("scripts", Scripts())
    assert caught.value.code == "W752"


def test_the_built_in_back_ends_are_registered_like_others() -> None:
    assert {form for kind in ("llvm", "c") for form in back_end_of(Target(kind)).forms} == {"llvm", "asm", "c"}
    assert back_end_of(Target("llvm")).executors == ("native", "vm", "graph", "aot")
