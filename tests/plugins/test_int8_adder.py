"""A machine with one operation of one type, written by the documentation: the kit tries it, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.plugins import int8_adder

import weft
from weft.codegen.backends.generators import Translated
from weft.target.kinds import TargetKind
from weft.testing import check_part

TARGET = "host: llvm; adder: adder"
SUM = '@R.function\ndef main(x: R.Tensor({0}, "{1}"), y: R.Tensor({0}, "{1}")):\n    z = {2}\n    return z\n'
LABELLED = 'R.add(x, y, target="adder")'


@pytest.fixture(autouse=True)
def adder() -> Iterator[TargetKind]:
    kind = int8_adder.install()
    try:
        yield kind
    finally:
        int8_adder.remove()


def program(shape: str = "(4, 4)", dtype: str = "int8", value: str = LABELLED) -> weft.IRModule:
    found = weft.parse(SUM.format(shape, dtype, value))
    assert isinstance(found, weft.ir.Function)
    return weft.IRModule({"main": found})


def test_the_machine_conforms() -> None:
    """B10, H4: what it must take it takes, the rest runs elsewhere or is refused with the reason."""
    mine = [program(), program("()"), program("(0, 3)"), program("(2, 3, 4)", value='R.add(x, x, target="adder")')]
    mine.append(program(value="R.add(R.add(x, y), x)"))
    operators = ["R.add(x, y)", "R.add(x, x)", "R.multiply(x, y)"]
    report = check_part(TARGET, "adder", programs=mine, operators=operators, seeds=1, executors=["native"])
    report.assert_clean()
    assert report.computed > 40
    assert report.refused > 40


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_sums_wrap_on_it_under_every_executor(executor: str) -> None:
    """B9."""
    x, y = np.array([100, -100, 7], "int8"), np.array([100, -100, 1], "int8")
    exe = weft.compile(program("(3,)"), TARGET, executor=executor)
    assert exe["main"](x, y).tolist() == [-56, 56, 8]
    assert any(item.kind == "adder" for item in exe.artifacts.values())


@pytest.mark.parametrize(
    ("shape", "dtype", "value", "said"),
    [
        ("(4, 4)", "float32", LABELLED, "it adds int8, not float32"),
        ("(4, 4)", "int8", 'R.multiply(x, y, target="adder")', "and this is R.multiply of R.Tensor"),
        ('("n", 4)', "int8", LABELLED, "it adds arrays of one known shape"),
        ("(4, 4)", "int8", 'R.add(x, R.const(1, "int8"), target="adder")', "it adds arrays of one known shape"),
    ],
)
def test_what_it_cannot_do_is_refused_in_its_own_words(shape: str, dtype: str, value: str, said: str) -> None:
    """H4: under the call."""
    with pytest.raises(weft.TargetError) as caught:
        weft.compile(program(shape, dtype, value), TARGET)
    assert caught.value.code == "W753"
    assert said in caught.value.message
    assert caught.value.span is not None


def test_a_function_in_another_order_of_parameters_is_refused() -> None:
    """H4: a part is told what it takes in the order in which it takes it."""
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def part(y: R.Tensor((4,), "int8"), x: R.Tensor((4,), "int8")):
        R.func_attr({"target": "adder"})
        z = R.add(x, y)
        return z

    @R.function
    def main(x: R.Tensor((4,), "int8")):
        z = Module.part(x, x)
        return z
"""
    with pytest.raises(weft.TargetError, match="parameters are not the operands of its operators, in order"):
        weft.compile(weft.parse(text), TARGET)
    swapped = weft.parse(text.replace("R.add(x, y)", "R.add(y, x)"))
    assert weft.compile(swapped, TARGET)["main"](np.array([1, 2, 3, 4], "int8")).tolist() == [2, 4, 6, 8]


def test_an_operator_that_the_kernels_do_not_add_is_found_when_compiling(adder: TargetKind) -> None:
    """H4: a careless pattern reaches the generator, whose statements are compared with the kernel's."""

    def careless(module: weft.IRModule, function: weft.ir.Function) -> tuple[weft.IRModule, weft.ir.GlobalVar]:
        entry = weft.ir.replace(function, name="entry", attrs=weft.ir.FrozenMap())
        return int8_adder.LegalizeOps()(weft.IRModule({"entry": entry})), weft.ir.GlobalVar("entry")

    adder.lowering(careless)
    with pytest.raises(weft.ArtifactError, match="leaves out a statement") as caught:
        weft.compile(program(value='R.multiply(x, y, target="adder")'), TARGET)
    assert caught.value.code == "W820"


def test_statements_that_are_not_said_by_function_are_refused(adder: TargetKind) -> None:
    """B11: the contract of a generator, in words."""
    made: Any = Translated([], [])  # type: ignore[arg-type]
    adder.codegen(lambda module, target: made)
    with pytest.raises(weft.ArtifactError, match=r"W816: .* must say the statements of each function"):
        weft.compile(program(), TARGET)
