"""PackSubBytes: several elements of less than a byte in each byte, and the same results."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import dtypes
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, BufferStore, For, PrimFunc, Ramp
from weft.transform import BindParams, PackSubBytes, run_phases
from weft.transform.kernel.sub_bytes import packable_params, with_packed_params
from weft.transform.memory.pack_sub_bytes import packed_array

NARROW = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


def values(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Every value of a type, in any order."""
    patterns = np.random.default_rng(seed).integers(0, 1 << dtypes.bits(dtype), shape).astype("uint8")
    kind = np.dtype(getattr(ml_dtypes, dtype))
    if dtypes.is_float(dtype):
        return patterns.view(kind)
    low = int(dtypes.min_value(dtype))
    return (patterns.astype("int64") + low).astype(kind)


def kernel(text: str) -> PrimFunc:
    found = weft.parse(f"@T.prim_func\ndef main({text}")
    assert isinstance(found, PrimFunc)
    return found


def run_packed(function: PrimFunc, arrays: list[np.ndarray], positions: set[int], run: Any) -> list[np.ndarray]:
    """What a kernel over packed parameters leaves, each array as its bytes where it is packed."""
    packed = with_packed_params(function, frozenset(positions))
    dtype = [p.dtype for p in function.params if isinstance(p, Buffer)]
    given = [
        packed_array(dtypes.stored(array, dtype[i]), dtype[i]) if i in positions else array.copy()
        for i, array in enumerate(arrays)
    ]
    run(weft.IRModule({"main": packed}))["main"](*given)
    return given


def check(function: PrimFunc, arrays: list[np.ndarray], positions: set[int]) -> None:
    """Packed or not, interpreted or compiled: the same elements."""
    assert packable_params(function) == positions
    want = [array.copy() for array in arrays]
    weft.interpret(function)(*want)
    dtype = [p.dtype for p in function.params if isinstance(p, Buffer)]
    for run in (weft.interpret, weft.compile):
        for i, got in enumerate(run_packed(function, arrays, positions, run)):
            bits = packed_array(dtypes.stored(want[i], dtype[i]), dtype[i]) if i in positions else want[i]
            np.testing.assert_array_equal(got.view("uint8"), bits.view("uint8"))


@pytest.mark.parametrize("dtype", NARROW)
def test_elements_are_read_and_written_one_by_one(dtype: str) -> None:
    """Rows of an odd length: most begin in the middle of a byte."""
    function = kernel(
        f"""x: T.Buffer((5, 7), "{dtype}"), w: T.Buffer((5, 7), "float32"), y: T.Buffer((7, 5), "{dtype}")):
    for i, j in T.grid(5, 7):
        w[i, j] = T.Cast("float32", x[i, j])
    for i in T.parallel(5):
        for j in range(7):
            y[j, i] = x[i, j]
"""
    )
    check(function, [values(dtype, 5, 7), np.zeros((5, 7), "float32"), values(dtype, 7, 5, seed=1)], {0, 2})


@pytest.mark.parametrize("dtype", NARROW)
def test_vectors_come_from_whole_bytes(dtype: str) -> None:
    """Neighbours, every second (fourth) one from each rest on, and those that begin anywhere."""
    per = dtypes.per_byte(dtype)
    function = kernel(
        f"""x: T.Buffer((3, 64), "{dtype}"), w: T.Buffer((3, 5, 16), "float32"), y: T.Buffer((3, 64), "{dtype}")):
    for i in range(3):
        y[i, T.Ramp(0, 1, 64)] = x[i, T.Ramp(0, 1, 64)]
        w[i, 0, 0:16] = T.Cast("float32x16", x[i, T.Ramp(16, 1, 16)])
        w[i, 1, 0:16] = T.Cast("float32x16", x[i, T.Ramp(0, {per}, 16)])
        w[i, 2, 0:16] = T.Cast("float32x16", x[i, T.Ramp({per - 1}, {per}, 16)])
        w[i, 3, 0:16] = T.Cast("float32x16", x[i, T.Ramp(i, 1, 16)])
        w[i, 4, 0:16] = T.Cast("float32x16", x[i, T.Ramp(40 - i, -1, 16)])
        y[i, T.Ramp(32, 1, 32)] = x[2 - i, T.Ramp(0, 1, 32)]
        y[i, T.Ramp(i, 1, 8)] = x[i, T.Ramp(1, 1, 8)]
"""
    )
    check(function, [values(dtype, 3, 64), np.zeros((3, 5, 16), "float32"), values(dtype, 3, 64, seed=1)], {0, 2})
    loads = with_packed_params(function, frozenset({0, 2})).script()
    assert "reinterpret" in loads


def test_places_that_are_whole_bytes_are_not_divided() -> None:
    """Every second element of a byte has the address of that byte, term by term, and so has what is prefetched."""
    function = kernel("""a: T.Buffer((8, 64), "uint4"), b: T.Buffer((4, 32), "uint8")):
    for i in range(4):
        T.attr(None, "prefetch", a[i + 4, 0])
        b[i, T.Ramp(T.int64(0), T.int64(1), 32)] = T.Cast("uint8x32", a[i, T.Ramp(T.int64(1), T.int64(2), 32)])
""")
    packed = with_packed_params(function, frozenset({0}))
    assert "//" not in packed.script()
    assert packed.script().count("a_bytes[") == 2
    array = values("uint4", 8, 64)
    (found,) = run_packed(function, [array, np.zeros((4, 32), "uint8")], {0}, weft.interpret)[1:]
    np.testing.assert_array_equal(found, array.astype("uint8")[:4, 1::2])


def test_a_vectorised_loop_over_elements_loses_no_store() -> None:
    """Two lanes that change one byte are stored one after the other."""
    function = kernel(
        """x: T.Buffer((6, 9), "int4"), y: T.Buffer((6, 9), "int4")):
    for i in range(6):
        for j in T.vectorized(9):
            y[i, j] = x[i, j] + T.Cast("int4", 1)
"""
    )
    check(function, [values("int4", 6, 9), values("int4", 6, 9, seed=1)], {0, 1})


def parallel_loops(function: PrimFunc) -> int:
    return sum(isinstance(node, For) and node.kind == "parallel" for node in walk(function))


def test_loops_that_change_parts_of_bytes_are_not_parallel() -> None:
    text = """x: T.Buffer((6, {n}), "int8"), y: T.Buffer((6, {n}), "int4")):
    for i in T.parallel(6):
        for j in range({n} // 16):
            y[i, T.Ramp(16 * j, 1, 16)] = T.Cast("int4x16", x[i, T.Ramp(16 * j, 1, 16)])
"""
    whole, parts = (with_packed_params(kernel(text.replace("{n}", n)), frozenset({1})) for n in ("32", "33"))
    assert (parallel_loops(whole), parallel_loops(parts)) == (1, 0)
    assert sum(isinstance(node, BufferStore) and isinstance(node.indices[0], Ramp) for node in walk(whole)) == 1


MODEL = """
@R.function
def main(x: R.Tensor(("n", 33), "float32"), w: R.Tensor((33, 7), "DTYPE")):
    q = R.astype(R.clip(x, -1, 3), "DTYPE")
    r = R.concat([q, R.astype(R.negative(x), "DTYPE")], axis=0)
    b = R.matmul(R.astype(r, "float32"), R.astype(R.cumsum(w, axis=0), "float32"))
    return (b, R.take(r, R.const([2, 0], "int64"), axis=0))
"""


@pytest.mark.parametrize("dtype", ["int4", "uint2"])
@pytest.mark.parametrize("executor", ["native", "vm"])
def test_models_keep_constants_and_intermediate_tensors_packed(dtype: str, executor: str) -> None:
    function = weft.parse(MODEL.replace("DTYPE", dtype))
    module = BindParams("main", {"w": values(dtype, 33, 7)})(weft.IRModule({"main": function}))
    x = np.random.default_rng(1).normal(size=(4, 33)).astype("float32") * 2
    want = weft.interpret(module)["main"](x)
    lowered = run_phases(module, "llvm", stop="lower")
    weft.assert_structural_equal(weft.parse(lowered.script()), lowered)
    for got in (weft.interpret(lowered)["main"](x), weft.compile(module, executor=executor)["main"](x)):
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a.astype("float32"), b.astype("float32"))


def test_the_text_and_the_plan_count_packed_bytes() -> None:
    text = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def narrow(x: T.Buffer((32, 32), "float32"), y: T.Buffer((32, 32), "int4")):
        for i, j in T.grid(32, 32):
            y[i, j] = T.Cast("int4", x[i, j])

    @T.prim_func(private=True)
    def wide(x: T.Buffer((32, 32), "int4"), y: T.Buffer((32, 32), "float32")):
        for i, j in T.grid(32, 32):
            y[i, j] = T.Cast("float32", x[i, j])

    @R.function
    def main(x: R.Tensor((32, 32), "float32")):
        q = R.call_tir(cls.narrow, (x,), out_ty=R.Tensor((32, 32), "int4"))
        y = R.call_tir(cls.wide, (q,), out_ty=R.Tensor((32, 32), "float32"))
        return y
"""
    module = weft.parse(text)
    packed = PackSubBytes()(module)
    assert 'q: R.Tensor((512,), "uint8") = R.call_tir(cls.narrow_packed' in packed.script()
    assert [name for name in packed.functions if "packed" in name] == ["narrow_packed", "wide_packed"]
    assert "narrow" not in packed.functions
    lowered = run_phases(module, "llvm", start="lower", stop="plan").script()
    assert "R.memory.alloc_storage((512,)" in lowered


def test_what_others_see_stays_a_byte_an_element() -> None:
    """A result, an input of a library call, and what sizes of a kernel follow from alone."""
    text = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def narrow(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "int4")):
        for i in range(n):
            y[i] = T.Cast("int4", x[i])

    @T.prim_func(private=True)
    def count(x: T.Buffer(("n",), "int4"), y: T.Buffer((1,), "int64")):
        y[0] = T.Cast("int64", n)

    @R.function
    def main(x: R.Tensor((9,), "float32")):
        q = R.call_tir(cls.narrow, (x,), out_ty=R.Tensor((9,), "int4"))
        r = R.call_tir(cls.narrow, (x,), out_ty=R.Tensor((9,), "int4"))
        c = R.call_tir(cls.count, (q,), out_ty=R.Tensor((1,), "int64"))
        return (c, r)
"""
    module = weft.parse(text)
    assert PackSubBytes()(module) is module
    count, narrow = weft.compile(module)["main"](np.arange(9, dtype="float32"))
    assert count.tolist() == [9]
    assert narrow.dtype == ml_dtypes.int4
