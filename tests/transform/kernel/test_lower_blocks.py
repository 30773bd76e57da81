"""LowerBlocks: before and after, in the script, and the same meaning."""

from __future__ import annotations

import numpy as np

import weft
from weft.ir import assert_structural_equal
from weft.ir.structure.visit import walk
from weft.ir.tensor import Block, PrimFunc
from weft.transform.kernel.lower_blocks import LowerBlocks, lower_blocks


def kernel(text: str) -> PrimFunc:
    return weft.parse("from weft.script import tir as T\n" + text)  # type: ignore[return-value]


def test_iteration_variables_become_their_values() -> None:
    before = kernel("""
@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("copy"):
            v = T.axis.spatial(8, i)
            y[v] = x[v]
""")
    after = kernel("""
@T.prim_func
def f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        y[i] = x[i]
""")
    assert_structural_equal(lower_blocks(before), after)


def test_the_init_of_a_reduction_becomes_a_nest_before_the_reduction_loops() -> None:
    before = kernel("""
@T.prim_func
def f(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("sum"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                y[v] = T.float32(0)
            y[v] = y[v] + x[v, r]
""")
    after = kernel("""
@T.prim_func
def f(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8,), "float32")):
    for i in range(8):
        y[i] = T.float32(0)
        for k in range(4):
            y[i] = y[i] + x[i, k]
""")
    assert_structural_equal(lower_blocks(before), after)


def test_a_reduction_over_nothing_still_initialises_its_output() -> None:
    function = kernel("""
@T.prim_func
def f(x: T.Buffer((3, "n"), "float32"), y: T.Buffer((3,), "float32")):
    for k, i in T.grid(n, 3):
        with T.block("sum"):
            r, v = T.axis.remap("RS", [k, i])
            with T.init():
                y[v] = T.float32(0)
            y[v] = y[v] + x[v, r]
""")
    y = np.full(3, np.nan, "float32")
    weft.interpret(lower_blocks(function))(np.zeros((3, 0), "float32"), y)
    np.testing.assert_array_equal(y, 0)
    weft.interpret(lower_blocks(function))(np.ones((3, 5), "float32"), y)
    np.testing.assert_array_equal(y, 5)


def test_where_the_form_does_not_allow_it_the_init_is_guarded() -> None:
    """One loop drives both a spatial and a reduction variable."""
    function = kernel("""
@T.prim_func
def f(x: T.Buffer((4, 2), "float32"), y: T.Buffer((4,), "float32")):
    for f in range(8):
        with T.block("sum"):
            v = T.axis.spatial(4, f // 2)
            r = T.axis.reduce(2, f % 2)
            with T.init():
                y[v] = T.float32(0)
            y[v] = y[v] + x[v, r]
""")
    lowered = lower_blocks(function)
    assert not any(isinstance(node, Block) for node in walk(lowered))
    x, y = np.arange(8, dtype="float32").reshape(4, 2), np.zeros(4, "float32")
    weft.interpret(lowered)(x, y)
    np.testing.assert_array_equal(y, x.sum(1))


def test_predicates_become_conditions() -> None:
    function = kernel("""
@T.prim_func
def f(y: T.Buffer((10,), "int32")):
    for i, j in T.grid(3, 4):
        with T.block("split"):
            v = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 10)
            y[v] = v
""")
    y = np.full(10, -1, "int32")
    weft.interpret(lower_blocks(function))(y)
    np.testing.assert_array_equal(y, np.arange(10))


def test_allocations_and_matched_regions_become_statements() -> None:
    function = kernel("""
@T.prim_func
def f(x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32")):
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            t = T.alloc_buffer((4,), "float32")
            a = T.match_buffer(x[v, 0:4], (4,), "float32")
            for k in range(4):
                t[k] = a[k] * T.float32(2)
            for k in range(4):
                y[v, 3 - k] = t[k]
""")
    lowered = lower_blocks(function)
    assert not any(isinstance(node, Block) for node in walk(lowered))
    x = np.arange(16, dtype="float32").reshape(4, 4)
    y = np.zeros_like(x)
    weft.interpret(lowered)(x, y)
    np.testing.assert_array_equal(y, x[:, ::-1] * 2)
    y[:] = 0
    weft.compile(function)["main"](x, y)
    np.testing.assert_array_equal(y, x[:, ::-1] * 2)


def test_a_function_without_blocks_is_left_alone() -> None:
    function = kernel("""
@T.prim_func
def f(y: T.Buffer((4,), "int32")):
    for i in range(4):
        y[i] = i
""")
    module = weft.IRModule({"f": function})
    assert LowerBlocks()(module) is module
