"""Scratch memory of parallel loops: one place for each thread at a time, whatever the number of iterations."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import module

import weft
from weft.codegen.backends.llvm.kernel.scratch import scratch_of
from weft.ir import Function, PrimFunc
from weft.ir.structure.visit import statements
from weft.ir.tensor import For
from weft.runtime.abi.frame import FRAME_WORDS
from weft.runtime.device import threads

ROWS = """
        @T.prim_func
        def main(x: T.Buffer((12, "n", 64), "float32"), y: T.Buffer((12, "n", 64), "float32")):
            n = T.int64()
            t = T.alloc_buffer((12, n, 64), "float32")
            for i in T.parallel(12):
                for j, k in T.grid(n, 64):
                    t[i, j, k] = T.exp(x[i, n - 1 - j, k])
                for j, k in T.grid(n, 64):
                    y[i, j, k] = t[PLACE, n - 1 - j, k] * T.cast(i, "float32")AFTER
"""
OWN = ROWS.replace("PLACE", "i").replace("AFTER", "")


def scratch_names(text: str) -> list[str]:
    """The scratch memory of the only parallel loop of a kernel."""
    function = module(text)["main"]
    (loop,) = (x for x in statements(function.body) if isinstance(x, For) and x.kind == "parallel")
    return [buffer.name for buffer in scratch_of(function, loop)]


def test_memory_with_a_place_for_each_iteration_is_scratch() -> None:
    assert scratch_names(OWN) == ["t"]


@pytest.mark.parametrize(
    "text",
    [
        ROWS.replace("PLACE", "11 - i").replace("AFTER", ""),
        ROWS.replace("PLACE", "i").replace("AFTER", "\n            y[0, 0, 0] = t[0, 0, 0]"),
        OWN.replace("t = T.alloc_buffer((12,", "t = T.alloc_buffer((13,"),
        OWN.replace("T.parallel(12)", "T.parallel(1, 12)"),
    ],
    ids=["the place of another iteration", "read after the loop", "more places", "a loop from one on"],
)
def test_other_memory_is_not(text: str) -> None:
    assert scratch_names(text) == []


AGAIN = """
        @T.prim_func
        def main(x: T.Buffer((8, 64), "float32"), y: T.Buffer((8, 64), "float32")):
            t = T.alloc_buffer((8, 64), "float32")
            for k in range(4):
                for i in T.parallel(8):
                    for j in range(64):
                        FIRST
                    for j in range(64):
                        y[i, j] = t[i, 63 - j]
"""
STARTS = "if k == 0:\n                            t[i, j] = T.float32(0)\n                        "
SUM = AGAIN.replace("FIRST", STARTS + "t[i, j] = t[i, j] + x[i, j]")
LAZY = AGAIN.replace("FIRST", "t[i, j] = T.if_then_else(k == 0, x[i, j], t[i, j] + x[i, j])")
FRESH = AGAIN.replace("FIRST", "t[i, j] = x[i, j] * T.cast(k, 'float32')")


def test_memory_whose_values_a_loop_around_takes_on_is_not() -> None:
    assert [scratch_names(text) for text in (SUM, LAZY, FRESH)] == [[], [], ["t"]]


@pytest.mark.parametrize(("text", "times"), [(SUM, 4), (LAZY, 4), (FRESH, 3)])
@pytest.mark.parametrize("count", [1, 3])
def test_results_of_loops_in_loops_are_the_same(text: str, times: int, count: int) -> None:
    before = weft.get_num_threads()
    x, y = np.random.default_rng(0).standard_normal((8, 64), "float32"), np.zeros((8, 64), "float32")
    try:
        weft.set_num_threads(count)
        weft.compile(module(text))["main"](x, y)
    finally:
        weft.set_num_threads(before)
    np.testing.assert_allclose(y, times * x[:, ::-1], rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_are_the_same_in_the_places_of_threads(count: int) -> None:
    before = weft.get_num_threads()
    x = np.random.default_rng(0).standard_normal((12, 50, 64), "float32")
    wanted = np.exp(x) * np.arange(12, dtype="float32")[:, None, None]
    main = weft.compile(module(OWN))["main"]
    try:
        weft.set_num_threads(count)
        for _ in range(20):
            y = np.zeros_like(x)
            main(x, y)
            np.testing.assert_allclose(y, wanted, rtol=1e-5)
    finally:
        weft.set_num_threads(before)


def test_memory_that_the_plan_has_a_place_for_is_scratch_too() -> None:
    graph = weft.parse(
        """
from weft.script import ir as I, relax as R

@I.ir_module
class Attention:
    @R.function
    def main(q: R.Tensor((1, "n", 12, 64), "float32")):
        return R.nn.attention(q, q, q)
"""
    )
    lowered = weft.lower(graph, stop="plan")
    (kernel,) = (x for x in lowered.functions.values() if isinstance(x, PrimFunc))
    assert isinstance(lowered["main"], Function)
    loops = [x for x in statements(kernel.body) if isinstance(x, For) and x.kind == "parallel"]
    found = {buffer for loop in loops for buffer in scratch_of(kernel, loop)}
    assert {"keys", "values", "queries"} <= {buffer.name for buffer in found}
    assert found == {kernel.params[at] for at in kernel.attrs["scratch"]}


def test_threads_that_work_at_once_have_different_slots_below_their_number() -> None:
    before, count = weft.get_num_threads(), 4
    lock = threading.Lock()
    working: set[int] = set()
    wrong: list[Any] = []
    seen: set[int] = set()

    def part(context: int, begin: int, end: int, slot: int) -> None:
        with lock:
            if slot in working or not 0 <= slot < count:
                wrong.append((slot, set(working)))
            working.add(slot)
            seen.add(slot)
        time.sleep(0.001)
        with lock:
            working.discard(slot)

    chunk = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(part)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(
        threads.runner()
    )
    frame = (ctypes.c_int64 * FRAME_WORDS)()
    context = (ctypes.c_int64 * 8)(ctypes.addressof(frame))
    try:
        weft.set_num_threads(count)
        for _ in range(20):
            run(ctypes.cast(chunk, ctypes.c_void_p), ctypes.addressof(context), 0, 16, 0)
    finally:
        weft.set_num_threads(before)
    assert wrong == []
    assert 0 in seen
    assert len(seen) > 1
