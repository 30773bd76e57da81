"""Ten thousand bindings go through every pass; nothing recurses on their number."""

from __future__ import annotations

import pytest
from tests.transform.helpers import module

from weft.ir import DataflowBlock, DataflowVar, Function, IRModule, SeqExpr, TensorType, Var, VarBinding
from weft.ir.dim import symbol
from weft.ir.op import get_op
from weft.transform import (
    BindSymbolicVars,
    CanonicalizeBindings,
    ConvertToDataflow,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    FoldConstant,
    InlinePrivateFunctions,
    LambdaLift,
    Normalize,
    Pass,
    PassContext,
    Pipeline,
    RemoveUnusedParameters,
    ToNonDataflow,
    default_pipeline,
)


def chain(length: int) -> IRModule:
    """A chain of operators on one symbolic tensor."""
    ty = TensorType((symbol("n"), 4), "float32")
    x = last = Var("x", ty)
    bindings = []
    for position in range(length):
        var = DataflowVar("a", ty)
        bindings.append(VarBinding(var, get_op("exp")(last) if position % 2 else get_op("add")(last, x)))
        last = var
    out = Var("out", ty)
    bindings.append(VarBinding(out, get_op("tanh")(last)))
    return IRModule({"main": Function((x,), SeqExpr((DataflowBlock(tuple(bindings)),), out), ty)})


@pytest.mark.parametrize(
    "item",
    [
        Normalize(),
        CanonicalizeBindings(),
        DeadCodeElimination(),
        EliminateCommonSubexpr(),
        FoldConstant(),
        InlinePrivateFunctions(),
        LambdaLift(),
        BindSymbolicVars({"n": 7}),
        Pipeline([ToNonDataflow(), ConvertToDataflow()], name="dataflow"),
        RemoveUnusedParameters(),
        default_pipeline(),
    ],
    ids=lambda item: item.name,
)
def test_ten_thousand_bindings_pass_through(item: Pass) -> None:
    with PassContext(config={"check.level": 0}):
        new = item(chain(10_000))["main"]
    assert isinstance(new, Function)
    least = 1_000 if item.name == "default" else 10_001  # fusion makes one call of many
    assert sum(len(block.bindings) for block in new.body.blocks) >= least


def test_three_hundred_nested_conditionals_pass_through() -> None:
    branches = "".join("    elif c:\n        y = R.exp(R.exp(x))\n" for _ in range(300))
    before = module(
        "@R.function\n"
        'def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor((4,), "float32"):\n'
        f"    if c:\n        y = R.tanh(x)\n{branches}    else:\n        y = x\n    return y\n"
    )
    with PassContext(config={"check.level": 0}):
        new = default_pipeline()(before)
    assert {"main", "fused_exp_exp", "tanh"} == set(new)
