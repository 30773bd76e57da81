"""Nests arranged by the primitives of schedules compute what they computed, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import weft
from weft import ir, testing
from weft.errors import ScheduleError
from weft.ir.tensor import For, PrimFunc
from weft.script import tir as T
from weft.transform.autoschedule.primitives import arranged


@pytest.fixture(scope="module", autouse=True)
def no_compiled_code_from_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@T.prim_func
def two_nests(x: T.Buffer(("n", 6), "float32"), y: T.Buffer(("n", 6), "float32"), total: T.Buffer(("n",), "float32")):
    scaled = T.alloc_buffer((n, 6), "float32")
    for i, j in T.grid(n, 6):
        scaled[i, j] = x[i, j] * T.float32(2)
    for i in range(n):
        for j in range(6):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = scaled[vi, vj] + T.Cast("float32", vi)
    for i, k in T.grid(n, 6):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + scaled[vi, vk]


def with_each_nest(function: PrimFunc, steps) -> PrimFunc:
    """The function with every outermost nest arranged."""

    def arrange(node: ir.Node) -> ir.Node | None:
        return arranged(node, steps) if isinstance(node, For) else None

    return ir.rewrite(function, pre=arrange)


def tile(sch, loops) -> None:
    _, inner = sch.split(loops[1], [None, 4])
    sch.parallel(loops[0])
    sch.unroll(inner)


@pytest.mark.parametrize("target", [None, "llvm"])
def test_nests_keep_what_they_compute_where_they_stand(target: str | None) -> None:
    function = with_each_nest(two_nests, tile)
    assert function.script().count("T.parallel") == 3
    assert re.search(r"T\.unroll\((T\.int64\()?4", function.script())
    testing.assert_same_meaning(two_nests, function if target is None else weft.compile(function, target))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_nest_that_another_loop_surrounds_is_arranged_alone(rows: int) -> None:
    def inner_only(node: ir.Node) -> ir.Node | None:
        inside = isinstance(node, For) and node.loop_var.name in ("j", "k")
        return arranged(node, lambda sch, loops: sch.split(loops[0], [None, 2])) if inside else None

    function = ir.rewrite(two_nests, pre=inner_only)
    assert function.script() != two_nests.script()
    x = np.arange(rows * 6, dtype="float32").reshape(rows, 6)
    results = []
    for each in (two_nests, function):
        results.append((np.zeros_like(x), np.zeros(rows, "float32")))
        weft.interpret(each)(x, *results[-1])
    for old, new in zip(*results, strict=True):
        np.testing.assert_array_equal(old, new)


@T.prim_func
def running_sum(x: T.Buffer((8, 8), "float32")):
    for i in range(7):
        for i in range(8):
            x[0, i] = x[0, i] + T.float32(1)


def test_loops_of_one_name_are_told_apart_and_what_does_not_hold_is_refused() -> None:
    named: list[str] = []
    arranged(running_sum.body, lambda sch, loops: named.extend(sch.get(loop).loop_var.name for loop in loops))
    assert len(set(named)) == 2
    with pytest.raises(ScheduleError) as caught:
        arranged(running_sum.body, lambda sch, loops: sch.parallel(loops[0]))
    assert caught.value.code == "W608"
