"""weft.analysis: the public place of questions about programs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from tests.transform.helpers import graph_function, parsed

import weft
from weft import analysis
from weft.ir import Call, Function, IRModule, PrimFunc, Var
from weft.ir.dim import evaluate
from weft.testing import random_module
from weft.transform import LegalizeOps, LowerToMemory, StaticPlanBlockMemory

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "analysis.md"


def test_every_name_has_a_docstring_and_is_named_by_the_module() -> None:
    about = inspect.getdoc(analysis) or ""
    for name in analysis.__all__:
        assert inspect.getdoc(getattr(analysis, name)), name
        assert name in about, name
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in ("users", "peak_memory", "access_regions", "layout_rule") if name not in page] == []


NESTED = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool"), s: R.Shape(["n"])):
        @R.function
        def inner(z: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            w = R.add(z, x)
            return w
        y = inner(x)
        if c:
            a = R.exp(y)
            r = a
        else:
            b = R.exp(x)
            r = b
        return r
"""


def test_variables_of_branches_and_local_functions() -> None:
    main = graph_function(parsed(NESTED))
    names = lambda found: {var.name for var in found}
    assert names(analysis.bound_variables(main)) >= {"x", "c", "s", "inner", "z", "w", "y", "a", "b", "r"}
    assert analysis.free_variables(main) == []
    inner = next(b.value for block in main.body.blocks for b in block.bindings if isinstance(b.value, Function))
    assert names(analysis.free_variables(inner)) == {"x"}
    assert names(analysis.used_variables(inner)) == {"z", "x", "w"}
    assert "s" not in names(analysis.used_variables(main))
    counts = {var.name: count for var, count in analysis.use_counts(main).items()}
    assert (counts["x"], counts["y"], counts["c"]) == (3, 1, 1)
    assert set(analysis.all_variables(main)) == {*analysis.bound_variables(main), *analysis.used_variables(main)}


@pytest.mark.parametrize("seed", range(6))
def test_uses_of_random_functions_add_up(seed: int) -> None:
    for _, main in random_module(seed).items():
        if isinstance(main, Function):
            assert set(analysis.free_variables(main)) == set()
            users = analysis.users(main)
            for var, found in users.items():
                assert analysis.use_counts(main)[var] >= 1
                assert all(isinstance(user, Var) for user in found)


def test_functions_that_call_themselves() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def a(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return Module.b(x)
    @R.function
    def b(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return Module.a(x)
    @R.function
    def c(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return Module.c(x)
    @R.function
    def d(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return Module.c(x)
"""
    program = parsed(text)
    assert analysis.call_graph(program) == {"a": ("b",), "b": ("a",), "c": ("c",), "d": ("c",)}
    assert analysis.recursive_groups(program) == [("a", "b"), ("c",)]
    assert analysis.all_global_variables(graph_function(program, "d")) == ["c"]


CHAIN = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        a = R.exp(x)
        b = R.negative(a)
        c = R.add(a, b)
        d = R.exp(c)
        return d
"""


def test_the_greatest_memory_is_that_of_what_is_there_together() -> None:
    program = parsed(CHAIN)
    assert [str(now) for now in analysis.live_bytes(program)] == ["16 * n", "32 * n", "48 * n", "32 * n"]
    assert str(analysis.peak_memory(program)) == "48 * n"
    explicit = LowerToMemory()(LegalizeOps()(program))
    assert str(analysis.peak_memory(explicit)) == "48 * n"
    planned = StaticPlanBlockMemory()(explicit)
    peak = analysis.peak_memory(planned)
    assert evaluate(peak, {"n": 4}) >= 3 * 64
    with pytest.raises(weft.PassError, match="'f' is no graph function"):
        analysis.peak_memory(IRModule({"f": kernel()}), "f")
    with pytest.raises(weft.PassError, match="the size of 'a' is not known"):
        analysis.peak_memory(parsed(CHAIN.replace('("n", 4), ', "ndim=2, dtype=")))


def test_costs_of_calls_add_up_through_functions() -> None:
    program = parsed(CHAIN)
    cost = analysis.function_cost(program)
    assert (str(cost.flops), str(cost.bytes), cost.unknown) == ("16 * n", "144 * n", ())
    lowered = analysis.function_cost(LegalizeOps()(program))
    assert lowered.unknown  # kernels say nothing of it


def kernel() -> PrimFunc:
    text = """
@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(4):
        y[2 * i] = x[i] + x[i + 1]
"""
    made = weft.parse(text)
    assert isinstance(made, PrimFunc)
    return made


def test_the_boxes_of_a_kernel_hold_what_it_touches() -> None:
    made = kernel()
    reads, writes = analysis.access_regions(made)

    def box(regions: Any, name: str) -> list[tuple[Any, Any]]:
        region = next(region for buffer, region in regions.items() if buffer.name == name)
        return [(part.start, part.extent) for part in region.region]

    assert box(reads, "x") == [(0, 5)]
    assert box(writes, "y") == [(0, 7)]


def test_layouts_of_operators() -> None:
    assert callable(analysis.layout_rule("R.nn.conv2d"))
    assert "last axes" in str(analysis.layout_rule("relax.matmul"))
    with pytest.raises(weft.ScriptError) as caught:
        analysis.layout_rule("nothing")
    assert caught.value.code == "W140"


def test_calls_are_pure_or_not() -> None:
    program = parsed(CHAIN)
    values = [binding.value for block in graph_function(program).body.blocks for binding in block.bindings]
    assert all(analysis.is_pure(value, program) for value in values if isinstance(value, Call))
