"""Nests over narrow integers (`range(64)` counts in int32) are scheduled like those over dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.autoschedule.test_vectorize_nests import has_vectors

import weft
from weft.ir import For, IRModule, PrimFunc, replace, walk
from weft.ir.tensor import Buffer, BufferLoad, BufferStore
from weft.transform import FuseOps, FuseTIR, LegalizeOps, Pipeline, TileContractions, VectorizeNests
from weft.transform.kernel.widen_indices import with_wide_indices

HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@T.prim_func\ndef main("
COMPARED = """x: T.Buffer((70,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("b"):
            vi = T.axis.spatial(64, i)
            y[vi] = T.if_then_else(vi % 4 >= 2, x[vi + 2], T.float32(0))
"""
WRAPPED = """x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.block("b"):
            vi = T.axis.spatial(64, i)
            y[vi] = x[vi] + vi * 100000000
"""
WRAPPED_INDEX = """x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.block("b"):
            vi = T.axis.spatial(64, i)
            y[vi] = x[(vi * 100000001 // 7) % 64]
"""
TRIANGLE = """x: T.Buffer((33, 64), "float32"), y: T.Buffer((33,), "float32")):
    for i, j in T.grid(33, 64):
        with T.block("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + T.if_then_else(vi >= vj, x[vi, vj], T.float32(0))
"""
CONVOLVED = """x: T.Buffer((20, 8), "float32"), w: T.Buffer((3, 8, 16), "float32"), y: T.Buffer((9, 16), "float32")):
    for i, c, k, r in T.grid(9, 16, 3, 8):
        with T.block("b"):
            vi, vc, vk, vr = T.axis.remap("SSRR", [i, c, k, r])
            with T.init():
                y[vi, vc] = T.float32(0)
            y[vi, vc] = y[vi, vc] + x[vi * 2 + vk, vr] * w[vk, vr, vc]
"""
GATHERED = """x: T.Buffer((9, 16), "float32"), at: T.Buffer((9,), "int32"), y: T.Buffer((9, 16), "float32")):
    for i, j in T.grid(9, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[at[vi] + 1, vj]
"""
FUSED = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def shifted(x: T.Buffer((8, 66), "float32"), y: T.Buffer((8, 64), "float32")):
        for i, j in T.grid(8, 64):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.if_then_else(vi < 5, x[vi, vj + 2], T.float32(1))

    @R.function
    def main(x: R.Tensor((8, 66), "float32")):
        with R.dataflow():
            y = R.call_tir(M.shifted, (x,), out_ty=R.Tensor((8, 64), "float32"))
            z = R.nn.relu(R.permute_dims(y))
            R.output(z)
        return z
"""
PASSES = Pipeline([TileContractions(), VectorizeNests()])


def read(body: str) -> IRModule:
    kernel = weft.parse(HEAD + body)
    assert isinstance(kernel, PrimFunc)
    return IRModule({"main": kernel})


def arrays(module: IRModule) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    made, kernel = [], module["main"]
    assert isinstance(kernel, PrimFunc)
    for param in kernel.params:
        assert isinstance(param, Buffer)
        shape = [extent for extent in param.shape if isinstance(extent, int)]
        values = random.standard_normal(shape) if param.dtype == "float32" else random.integers(0, 8, shape)
        made.append(values.astype(param.dtype))
    return made


def agree(got: Any, want: Any, *inputs: np.ndarray, out: np.ndarray) -> None:
    """Two ways of running `main`; sums run in another order: a few units in the last place of 192 terms."""
    results = [np.zeros_like(out), np.zeros_like(out)]
    got["main"](*inputs, results[0])
    want["main"](*inputs, results[1])
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("body", [COMPARED, WRAPPED, TRIANGLE, CONVOLVED, GATHERED])
def test_a_nest_over_narrow_integers_is_vectors_of_the_same_values(body: str) -> None:
    """Conditions and values on narrow variables are computed in their dtype, overflow included."""
    module = read(body)
    new = PASSES(module)
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    assert has_vectors(new) or "T.Ramp" in new.script()
    *inputs, out = arrays(module)
    agree(weft.interpret(new), weft.interpret(module), *inputs, out=out)
    agree(weft.compile(module), weft.interpret(module), *inputs, out=out)


def test_an_index_is_the_exact_number_in_64_bits() -> None:
    """An index that overflows its dtype is an error of the interpreter, and the exact one in compiled code."""
    module = read(WRAPPED_INDEX)
    kernel = module["main"]
    assert isinstance(kernel, PrimFunc)
    new = IRModule({"main": replace(kernel, body=with_wide_indices(kernel.body))})
    assert "for i in range(T.int64(64))" in new.script()
    assert "x[vi * 100000001 // 7 % 64]" in new.script()
    *inputs, out = arrays(module)
    agree(weft.compile(module), weft.interpret(new), *inputs, out=out)
    with pytest.raises(weft.BoundsError) as caught:
        weft.interpret(module)["main"](*inputs, out)
    assert caught.value.code == "W905"


CONVERTED = """x: T.Buffer((64,), "int32"), k: T.int32, y: T.Buffer((64,), "int64")):
    for i in range(64):
        with T.block("b"):
            vi = T.axis.spatial(64, i)
            y[vi] = T.Cast("int64", vi + k + k - k - k) + T.Cast("int64", (vi + k) // 2)
"""


@pytest.mark.parametrize("k", [0, 5, 2**31 - 1, 2**30, -(2**31)])
def test_a_converted_value_wraps_as_it_did(k: int) -> None:
    """Sums that overflow on the way are the exact number when that fits; a quotient of what has wrapped is not."""
    module = read(CONVERTED)
    kernel = module["main"]
    assert isinstance(kernel, PrimFunc)
    new = IRModule({"main": replace(kernel, body=with_wide_indices(kernel.body))})
    given_ = np.zeros(64, "int32")
    results = [np.zeros(64, "int64") for _ in range(3)]
    for run, out in zip((weft.interpret(module), weft.interpret(new), weft.compile(module)), results, strict=True):
        run["main"](given_, k, out)
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_what_is_wide_already_stays_the_same_object() -> None:
    kernel = read(COMPARED.replace("range(64)", "range(T.int64(64))"))["main"]
    assert isinstance(kernel, PrimFunc)
    assert with_wide_indices(kernel.body) is kernel.body


def test_a_kernel_over_narrow_integers_is_fused_with_an_operator() -> None:
    module = weft.parse(FUSED)
    assert isinstance(module, IRModule)
    fused = Pipeline([LegalizeOps(), FuseOps(), FuseTIR()])(module)
    assert weft.verify(fused) == []
    assert sum(isinstance(f, PrimFunc) for f in fused.functions.values()) == 1
    x = np.random.default_rng(2).standard_normal((8, 66)).astype("float32")
    want = weft.interpret(module)["main"](x)
    np.testing.assert_array_equal(weft.interpret(fused)["main"](x), want)
    np.testing.assert_array_equal(weft.compile(module)["main"](x), want)


def test_every_index_is_of_the_dtype_of_dimensions() -> None:
    for body in (COMPARED, WRAPPED_INDEX, TRIANGLE, CONVOLVED, GATHERED):
        kernel = read(body)["main"]
        assert isinstance(kernel, PrimFunc)
        for part in walk(with_wide_indices(kernel.body)):
            if isinstance(part, (BufferLoad, BufferStore)):
                assert {index.dtype for index in part.indices} == {"int64"}
            if isinstance(part, For):
                assert part.loop_var.dtype == "int64"
