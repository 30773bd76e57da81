"""What is checked after each pass, by level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transform.helpers import module

from weft.errors import PassError, VerifyError
from weft.ir import DataflowVar, FrozenMap, Function, IRModule, Op, Var, VarBinding, replace, rewrite
from weft.transform import (
    CanonicalizeBindings,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    FoldConstant,
    Pass,
    PassContext,
    PrintAfter,
    Verify,
    default_pipeline,
    function_pass,
    module_pass,
)
from weft.transform.infra.comparison import first_difference

TEXT = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    with R.dataflow():
        a = R.subtract(x, y)
        b = R.exp(a)
        R.output(b)
    return b
"""


@function_pass
def lose_a_definition(function: Function) -> Function:
    """Breaks a rule: the result is a variable that nothing binds."""
    return replace(function, body=replace(function.body, body=Var("lost", function.ret_type)))


@function_pass
def swap_operands(function: Function) -> Function:
    """A well-formed module with another meaning."""

    def swap(node: Any) -> Any:
        if getattr(getattr(node, "op", None), "name", "") == "subtract":
            return replace(node, args=node.args[::-1])
        return None

    return rewrite(function, swap)


@module_pass
def add_unprintable(module: IRModule) -> IRModule:
    """An attribute whose text reads as something else."""
    return module.with_attr("what", Confusing())


class Confusing(int):
    """Prints as an integer, and equals nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


def level(value: int, **config: Any) -> PassContext:
    """A context with a check level."""
    return PassContext(config={"check.level": value, **config})


def test_level_0_checks_nothing() -> None:
    with level(0):
        assert lose_a_definition(module(TEXT)) is not None


def test_level_1_finds_a_module_that_is_not_well_formed_and_names_the_pass() -> None:
    """A7: a pass breaking a rule is a VerifyError naming the pass."""
    with level(1), pytest.raises(VerifyError) as caught:
        lose_a_definition(module(TEXT))
    assert "the module is not well formed after pass lose-a-definition" in caught.value.notes


def test_the_verify_instrument_checks_whatever_the_level() -> None:
    with level(0), PassContext(instruments=[Verify()]), pytest.raises(VerifyError):
        lose_a_definition(module(TEXT))


def test_level_2_finds_text_that_reads_as_another_module(tmp_path: Path) -> None:
    with level(1):
        add_unprintable(module(TEXT))
    with level(2, **{"check.directory": str(tmp_path)}), pytest.raises(PassError) as caught:
        add_unprintable(module(TEXT))
    assert caught.value.code == "W521"
    assert "add-unprintable" in caught.value.message
    assert len(list(tmp_path.iterdir())) == 1


def test_level_3_finds_a_change_of_meaning_and_leaves_a_reproducer(tmp_path: Path) -> None:
    with level(2):
        swap_operands(module(TEXT))
    with level(3, **{"check.directory": str(tmp_path)}), pytest.raises(PassError) as caught:
        swap_operands(module(TEXT))
    error = caught.value
    assert error.code == "W522"
    assert "pass swap-operands changed what function 'main' computes" in error.message
    (file,) = tmp_path.iterdir()
    assert "R.subtract(x, y)" in file.read_text()
    assert error.notes[0] == f"reproducer: {file}"


def test_the_level_of_a_context_switches_the_checks_on(tmp_path: Path) -> None:
    """A7: level 1 verifies, level 2 reads the text back, level 3 runs; the innermost level that is stated holds."""
    with PassContext(level=0), PassContext(config={"check.directory": str(tmp_path)}):
        swap_operands(module(TEXT))
        with PassContext(level=1), pytest.raises(VerifyError):
            lose_a_definition(module(TEXT))
        with PassContext(level=2), pytest.raises(PassError, match="the text of the module"):
            add_unprintable(module(TEXT))
        with PassContext(level=3), PassContext(opt=2), pytest.raises(PassError, match="changed what"):
            swap_operands(module(TEXT))
        with PassContext(level=3), PassContext(level=2):
            swap_operands(module(TEXT))
    with pytest.raises(PassError) as caught:
        PassContext(level=4)
    assert caught.value.code == "W505"


def test_level_3_names_the_first_binding_that_differs_and_keeps_what_the_function_needs(tmp_path: Path) -> None:
    program = module("""
    @R.function
    def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        with R.dataflow():
            first = R.multiply(x, y)
            second = R.subtract(first, y)
            third = R.exp(second)
            R.output(third)
        return third

    @R.function
    def other(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        z = R.tanh(x)
        return z
    """)
    with level(3, **{"check.directory": str(tmp_path)}), pytest.raises(PassError) as caught:
        swap_operands(program)
    assert "the first binding that differs is 'second'" in caught.value.message
    (file,) = tmp_path.iterdir()
    assert "R.subtract" in file.read_text()
    assert "tanh" not in file.read_text()


def test_a_pass_that_changes_signatures_on_purpose_is_not_compared() -> None:
    from weft.transform import BindSymbolicVars

    with level(3):
        BindSymbolicVars({"n": 7})(module(TEXT))


def test_the_default_pipeline_passes_every_check() -> None:
    with level(3):
        new = default_pipeline()(
            module("""
            @R.function
            def main(
                x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32"), c: R.Tensor((), "bool")
            ) -> R.Tensor(("n", 4), "float32"):
                with R.dataflow():
                    h = R.matmul(x, w)
                    g = R.matmul(x, w)
                    s = R.add(h, g)
                    z = R.nn.softmax(s)
                    dead = R.exp(z)
                    k = R.add(R.const([1.0, 2.0, 3.0, 4.0], "float32"), R.const([1.0, 1.0, 1.0, 1.0], "float32"))
                    y = R.add(z, k)
                    R.output(y)
                if c:
                    r = R.negative(y)
                else:
                    r = Module.twice(y)
                return r

            @R.function(private=True)
            def twice(a: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
                b = R.add(a, a)
                return b
            """)
        )
    assert "call_tir" not in new.script()


def test_the_comparison_passes_over_inputs_on_which_the_first_module_fails() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor((2,), "float32"):
        a = R.match_cast(x, R.Tensor((2,), "float32"))
        return a
    """
    assert first_difference(module(text), module(text), "main", trials=8) is None


ALL = [CanonicalizeBindings(), DeadCodeElimination(), EliminateCommonSubexpr(), FoldConstant(), default_pipeline()]


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_attributes_and_infos_of_the_module_are_kept(item: Pass) -> None:
    """C6: a pass that knows nothing of an attribute keeps it."""
    before = module(TEXT).with_attr("artifacts", "kept").with_global_infos(FrozenMap({"vdevice": ()}))
    new = item(before)
    assert new.attrs["artifacts"] == "kept"
    assert "vdevice" in new.global_infos


@pytest.mark.parametrize("item", [*ALL, *default_pipeline().passes], ids=lambda item: item.name)
def test_an_unknown_operator_is_kept_by_every_pass(item: Pass) -> None:
    """C13: an unknown operator makes a pass leave that region alone."""
    function = module(TEXT)["main"]
    assert isinstance(function, Function)
    block = function.body.blocks[0]
    first = block.bindings[0]
    assert isinstance(first, VarBinding)
    unknown = VarBinding(DataflowVar("u", first.var.ty), replace(first.value, op=Op("not.declared")))
    changed = replace(block, bindings=(unknown, *block.bindings))
    strange = IRModule({"main": replace(function, body=replace(function.body, blocks=(changed,)))})
    with level(0):
        kept = item(strange)["main"]
    assert isinstance(kept, Function)
    calls = [b.value for blk in kept.body.blocks for b in blk.bindings]
    assert sum(getattr(getattr(call, "op", None), "name", "") == "not.declared" for call in calls) == 1


def test_printing_never_changes_what_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with level(1), PassContext(instruments=[PrintAfter()]):
        CanonicalizeBindings()(module(TEXT))
    assert "def main" in capsys.readouterr().err
