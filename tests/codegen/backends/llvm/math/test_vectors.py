"""Vectorized loops and vector expressions: explicit vector code that means what the serial loop does."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.codegen.helpers import check_kernel, module

import weft
from weft.codegen.backends.llvm.asm.instructions import extractelement
from weft.codegen.backends.llvm.values import expressions
from weft.ir.structure.visit import walk
from weft.ir.tensor import Broadcast, BufferLoad, BufferStore, PrimFunc, Ramp
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

HEAD = """
@T.prim_func
def main(x: T.Buffer(("n", 40), "float32"), i: T.Buffer((40,), "int32"), y: T.Buffer(("n", 40), "float32")):
"""
BODIES = {
    "contiguous": "y[r, v] = x[r, v] + T.float32(1)",
    "broadcast": "y[r, v] = x[r, v] * x[r, 0]",
    "reversed": "y[r, 39 - v] = x[r, v]",
    "strided": "y[r, v] = x[r, T.min(v * 2, 38)]",
    "gather": "y[r, v] = x[r, i[v] * i[v]]",
    "scatter": "y[r, (v * 7) % 40] = x[r, v]",
    "masked store": "y[r, v] = T.float32(0)\n            if v > 5:\n                y[r, v] = x[r, v]",
    "masked both": (
        "if x[r, v] > T.float32(0):\n                y[r, v] = x[r, v]\n"
        "            else:\n                y[r, v] = T.exp(x[r, v])"
    ),
    "lazy": "y[r, v] = T.if_then_else(v < 39, x[r, v + 1], T.float32(0))",
    "select": "y[r, v] = T.Select(v % 3 == 0, x[r, v], T.float32(2))",
    "libm": "y[r, v] = T.tanh(x[r, v]) + T.erf(x[r, v])",
    "cast": 'y[r, v] = T.Cast("float32", T.Cast("int8", x[r, v] * T.float32(100)))',
    "inner loop": "y[r, v] = T.float32(0)\n            for k in range(5):\n                y[r, v] = y[r, v] + x[r, k]",
    "bind": 'z: T.let[T.int32] = v * 2 + 1\n            y[r, v] = x[r, z % 40] + T.Cast("float32", z)',
}


def kernel(body: str, extent: int = 40) -> PrimFunc:
    loops = f"    for r in range(n):\n        for v in T.vectorized({extent}):\n            {body}\n"
    return module(HEAD + loops)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("opt", [0, 2])
def test_vectorized_loops_mean_what_serial_ones_do(name: str, opt: int) -> None:
    function = kernel(BODIES[name])
    compiled = weft.compile(function, opt=opt)["main"]
    for n in (0, 1, 3):
        check_kernel(function, compiled, {"n": n}, n)


@pytest.mark.parametrize("name", BODIES)
def test_the_lowered_function_means_the_same_to_the_interpreter(name: str) -> None:
    function = kernel(BODIES[name])
    lowered = lower_vector_loops(lower_blocks(function))
    assert any(isinstance(node, (Ramp, Broadcast)) for node in walk(lowered))
    reference = weft.interpret(lowered)
    check_kernel(function, reference, {"n": 2}, 1)


def stores(function: PrimFunc) -> list[BufferStore]:
    return [node for node in walk(lower_vector_loops(function)) if isinstance(node, BufferStore)]


def test_a_loop_of_up_to_64_lanes_is_one_vector() -> None:
    (store,) = stores(kernel(BODIES["contiguous"]))
    assert store.value.dtype == "float32x40"
    assert isinstance(store.indices[-1], Ramp)
    text = weft.compile(kernel(BODIES["contiguous"]), opt=0).source("llvm")
    assert "load <40 x float>" in text
    assert "store <40 x float>" in text


def test_a_long_loop_is_cut_into_vectors_and_a_remainder() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer((1000,), "float32"), y: T.Buffer((1000,), "float32")):
    for v in T.vectorized(1000):
        y[v] = x[v] + T.float32(1)
""")
    assert [store.value.dtype for store in stores(function)] == ["float32x16", "float32x8"]
    y = np.zeros(1000, "float32")
    weft.compile(function)["main"](np.arange(1000, dtype="float32"), y)
    np.testing.assert_array_equal(y, np.arange(1000) + 1)


def test_a_loop_that_vectors_cannot_say_stays_serial() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer((8,), "float32"), y: T.Buffer((1,), "float32")):
    y[0] = T.float32(0)
    for v in T.vectorized(8):
        y[0] = y[0] + x[v]
""")
    assert all(not isinstance(store.indices[-1], Ramp) for store in stores(function))
    y = np.zeros(1, "float32")
    weft.compile(function)["main"](np.arange(8, dtype="float32"), y)
    assert y[0] == 28


def test_a_masked_load_does_not_touch_memory_of_lanes_that_are_off() -> None:
    """The array ends at the end of a page whose successor cannot be read."""
    import mmap

    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, page)
    x = np.frombuffer(memory, "float32")[-5:]
    function = module("""
@T.prim_func
def main(x: T.Buffer(("n",), "float32"), y: T.Buffer((16,), "float32")):
    for v in T.vectorized(16):
        y[v] = T.if_then_else(v < n, x[v], T.float32(-1))
""")
    loads = [node for node in walk(lower_vector_loops(function)) if isinstance(node, BufferLoad)]
    assert all(load.predicate is not None for load in loads)
    x[:] = 3
    y = np.zeros(16, "float32")
    weft.compile(function)["main"](x, y)
    np.testing.assert_array_equal(y, [3] * 5 + [-1] * 11)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("number", ["0", "1.5", "inf", "nan"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_greater_and_the_smaller_of_a_value_and_a_number_are_nan_where_either_is(
    kind: str, number: str, dtype: str
) -> None:
    function = module(f"""
@T.prim_func
def main(x: T.Buffer((16,), "{dtype}"), y: T.Buffer((4, 16), "{dtype}")):
    for v in T.vectorized(16):
        y[0, v] = T.{kind}(x[v], T.{dtype}("{number}"))
        y[1, v] = T.{kind}(T.{dtype}("{number}"), x[v])
    for v in range(16):
        y[2, v] = T.{kind}(x[v], T.{dtype}("{number}"))
        y[3, v] = T.{kind}(T.{dtype}("{number}"), x[v])
""")
    x = np.array([np.nan, -np.inf, np.inf, 0.0, -0.0, 1.5, -1.5, 2.0] * 2, dtype)
    y = np.zeros((4, 16), dtype)
    weft.compile(function)["main"](x, y)
    want = {"max": np.maximum, "min": np.minimum}[kind](x, np.asarray(float(number), dtype))
    np.testing.assert_array_equal(y, np.stack([want] * 4))


def test_the_one_element_of_a_buffer_of_rank_0_is_there_for_lanes_that_are_off() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer((14,), "float32"), least: T.Buffer((), "float32"), y: T.Buffer((14,), "float32")):
    for v in T.vectorized(16):
        if v < 14:
            y[v] = T.max(x[v], least[()])
""")
    (store,) = stores(function)
    assert isinstance(store.indices[-1], Ramp)
    x, y = np.arange(14, dtype="float32"), np.zeros(14, "float32")
    weft.compile(function)["main"](x, np.float32(5).reshape(()), y)
    np.testing.assert_array_equal(y, np.maximum(x, 5))


def test_small_memory_of_a_kernel_stays_in_registers_under_masks() -> None:
    """Its vectors are read and written as a whole and lanes picked: masked accesses would need an address."""
    function = module("""
@T.prim_func
def main(n: T.int64, x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32")):
    t = T.alloc_buffer((16,), "float32")
    for v in T.vectorized(16):
        t[v] = x[v] + T.float32(1)
    for v in T.vectorized(16):
        if v < n - 2:
            t[v] = x[v] * T.float32(2)
    for v in T.vectorized(16):
        y[v] = T.if_then_else(v < n, t[v], T.float32(-1))
""")
    exe = weft.compile(function)
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    for n in (0, 2, 9, 16, 20):
        exe["main"](n, x, y)
        lane = np.arange(16)
        np.testing.assert_array_equal(y, np.where(lane < n, np.where(lane < n - 2, x * 2, x + 1), -1))
    kernel_text = exe.source("llvm").partition("define i32 @weft.kernel.main")[2].partition("\n}")[0]
    assert "fadd" in kernel_text
    assert "alloca" not in kernel_text


VECTOR_CODE: dict[str, Any] = {
    "ramp": "y[T.Ramp(0, 1, 8)] = x[T.Ramp(8, 1, 8)]",
    "strided ramp": "y[T.Ramp(0, 2, 8)] = x[T.Ramp(15, -1, 8)]",
    "broadcast": "y[T.Ramp(0, 1, 8)] = T.Broadcast(x[3], 8)",
    "shuffle": "y[T.Ramp(0, 1, 4)] = T.Shuffle([x[T.Ramp(0, 1, 4)], x[T.Ramp(4, 1, 4)]], [7, 0, 3, 5])",
    "mixed": "y[T.Ramp(0, 1, 4)] = T.Shuffle([x[1], x[T.Ramp(4, 1, 4)], x[T.Ramp(9, 1, 2)]], [6, 0, 4, 1])",
    "one lane": "y[3] = T.Shuffle([x[T.Ramp(0, 1, 4)], x[T.Ramp(4, 1, 8)]], [9])",
}


@pytest.mark.parametrize("name", VECTOR_CODE)
def test_vector_expressions(name: str) -> None:
    function = module(f"""
@T.prim_func
def main(x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32")):
    for k in range(16):
        y[k] = T.float32(0)
    {VECTOR_CODE[name]}
""")
    check_kernel(function, weft.compile(function, opt=1)["main"], {}, 1)


def test_lanes_that_memory_chooses_are_checked_with_one_look_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def counted(ty: str, value: str, lane: int) -> Any:
        taken.append(lane)
        return extractelement(ty, value, lane)

    monkeypatch.setattr(expressions, "extractelement", counted)
    function = module("""
@T.prim_func
def main(i: T.Buffer((64,), "int64"), x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    y[T.Ramp(0, 1, 64)] = x[i[T.Ramp(0, 1, 64)]]
""")
    compiled = weft.compile(function)["main"]
    assert 64 <= len(taken) <= 8 * 64
    order, x, y = np.arange(64)[::-1].copy(), np.arange(64, dtype="float32"), np.zeros(64, "float32")
    compiled(order, x, y)
    assert y.tolist() == x[order].tolist()
    order[40] = 64
    with pytest.raises(weft.BoundsError, match="index out of range for 'x'"):
        compiled(order, x, y)


@pytest.mark.parametrize(
    "compared",
    [
        "{ramp} < {bound}",
        "{ramp} <= {bound}",
        "{ramp} > {bound}",
        "{ramp} >= {bound}",
        "{bound} < {ramp}",
        "{bound} <= {ramp}",
        "{bound} > {ramp}",
        "{bound} >= {ramp}",
        "{ramp} == {bound}",
    ],
)
def test_consecutive_indices_compared_with_a_bound_known_when_it_runs(compared: str) -> None:
    text = compared.format(ramp="T.Ramp(start, T.int64(1), 8)", bound="T.Broadcast(end, 8)")
    function = module(f"""
@T.prim_func
def main(start: T.int64, end: T.int64, y: T.Buffer((8,), "int32")):
    y[T.Ramp(0, 1, 8)] = T.Select({text}, T.Broadcast(1, 8), T.Broadcast(0, 8))
""")
    run = weft.compile(function)["main"]
    out = np.zeros(8, "int32")
    for start in (-2, 0, 5):
        for end in range(-5, 16):
            run(start, end, out)
            wanted = compared.format(ramp="np.arange(start, start + 8)", bound="end")
            assert out.tolist() == eval(wanted, {"np": np, "start": start, "end": end}).astype("int32").tolist()


@pytest.mark.parametrize("end", [-1, 0, 3, 8, 9])
def test_consecutive_indices_compared_with_a_bound_known_before(end: int) -> None:
    function = module(f"""
@T.prim_func
def main(y: T.Buffer((8,), "int32"), z: T.Buffer((8,), "int32")):
    below: T.let[T.boolx8] = T.Ramp(T.int64(0), T.int64(1), 8) < T.Broadcast(T.int64({end}), 8)
    y[T.Ramp(0, 1, 8)] = T.Select(below, T.Broadcast(1, 8), T.Broadcast(0, 8))
    above: T.let[T.boolx8] = T.Ramp(T.int64(0), T.int64(1), 8) >= T.Broadcast(T.int64({end}), 8)
    z[T.Ramp(0, 1, 8)] = T.Select(above, T.Broadcast(1, 8), T.Broadcast(0, 8))
""")
    y, z = np.zeros((2, 8), "int32")
    weft.compile(function)["main"](y, z)
    assert y.tolist() == (np.arange(8) < end).astype("int32").tolist()
    assert (y + z == 1).all()


def test_half_precision_vectors() -> None:
    function = module("""
@T.prim_func
def main(x: T.Buffer((32,), "bfloat16"), y: T.Buffer((32,), "float16"), z: T.Buffer((32,), "bfloat16")):
    for v in T.vectorized(32):
        z[v] = x[v] * T.Cast("bfloat16", y[v]) + x[v]
""")
    check_kernel(function, weft.compile(function)["main"], {}, 3)


def test_the_text_of_compiled_vector_code_is_vector_code() -> None:
    assembly = weft.compile(kernel(BODIES["contiguous"])).source("asm")
    assert re.search(r"\b[xyz]mm\d", assembly) or "v0" in assembly
