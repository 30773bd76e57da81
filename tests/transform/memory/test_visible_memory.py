"""Passes that make memory visible in the text: kills, reshapes in the place of copies, sizes that calls compute."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import Call, Function, IRModule, Op
from weft.ir.structure.visit import walk
from weft.testing import assert_same_meaning, random_module
from weft.transform import (
    ComputePrimValue,
    KillAfterLastUse,
    LegalizeOps,
    LowerToMemory,
    RewriteDataflowReshape,
    StaticPlanBlockMemory,
    find_pass,
)


def module(text: str) -> IRModule:
    made = weft.parse("@I.ir_module\nclass Module:\n" + "\n".join(f"    {line}" for line in text.splitlines()))
    assert isinstance(made, IRModule)
    return made


def operators(program: IRModule) -> list[str]:
    main = program["main"]
    assert isinstance(main, Function)
    return [node.op.name for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]


CHAIN = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.reshape(a, (n * 4,))
        c = R.add(b, b)
        R.output(c)
    return c
"""


def test_a_kernel_that_only_changes_the_shape_is_a_reshape_whatever_the_sizes() -> None:
    for wanted in ("(n * 4,)", "(2, n * 2)", "(4, n)"):
        before = LegalizeOps()(module(CHAIN.replace("(n * 4,)", wanted)))
        after = RewriteDataflowReshape()(before)
        assert operators(after).count("reshape") == 1
        assert_same_meaning(before, after, trials=2)
        assert RewriteDataflowReshape()(after) is after
    turned = LegalizeOps()(module(CHAIN.replace("R.reshape(a, (n * 4,))", "R.permute_dims(a)")))
    assert RewriteDataflowReshape()(turned) is turned


@pytest.mark.parametrize("planned", [False, True])
def test_memory_is_killed_behind_its_last_use(planned: bool) -> None:
    before = LowerToMemory()(LegalizeOps()(module(CHAIN)))
    before = StaticPlanBlockMemory()(before) if planned else before
    after = KillAfterLastUse()(before)
    killed = [name for name in operators(after) if "kill" in name]
    assert killed.count("memory.kill_tensor") >= 1
    assert killed.count("memory.kill_storage") == (1 if planned else 0)
    lines = after["main"].script().splitlines()
    assert "kill" not in lines[-1]  # what is given stays
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, weft.compile(after), name="main", trials=2)
    assert KillAfterLastUse()(after) is after


@pytest.mark.parametrize("seed", range(6))
def test_random_modules_run_after_their_memory_is_killed(seed: int) -> None:
    before = random_module(seed)
    after = KillAfterLastUse()(LowerToMemory()(LegalizeOps()(before)))
    assert weft.verify(after) == []
    assert_same_meaning(before, after, trials=4)


def test_memory_is_made_explicit_under_the_name_of_tvm_too() -> None:
    assert find_pass("CallTIRRewrite") is LowerToMemory is weft.transform.CallTIRRewrite


SIZES = """
@T.prim_func(private=True)
def twice(n: T.int64) -> T.int64:
    return n * T.int64(2)

@R.function(private=True)
def given(k: R.Prim("int64"), j: R.Prim("int64")):
    return (k, j)

@R.function
def main(x: R.Tensor(("n",), "float32")):
    a = Module.twice(R.prim_value(n + 1))
    b = Module.given(R.prim_value(n + 1), R.prim_value(n))
    return (a, b)
"""


def test_equal_expressions_of_sizes_share_a_kernel() -> None:
    before = module(SIZES)
    after = ComputePrimValue()(before)
    assert [name for name in after.functions if "compute" in name] == ["compute_symbolic_expr"]
    assert weft.verify(after) == []
    x = np.zeros(3, "float32")
    for run in (weft.interpret(before), weft.interpret(after), weft.compile(before), weft.compile(after)):
        assert run["main"](x) == (8, (4, 3))
    assert ComputePrimValue()(after) is after


def test_what_a_kernel_returns_is_the_value_of_its_call() -> None:
    program = module(SIZES)
    assert weft.interpret(program)["main"](np.zeros(5, "float32")) == (12, (6, 5))
