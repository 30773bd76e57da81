"""PackConstants: copies that kernels made of constants are made when the module is compiled."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.test_tile_contractions import N, legalized, random

import weft
from weft.ir import AllocBuffer, Call, Constant, Function, IRModule, PrimFunc, walk
from weft.ir.dim import Dim
from weft.target.machine_model import MachineModel
from weft.transform import BindParams, LegalizeOps, PackConstants, TileContractions
from weft.transform.infra.decisions import decisions_of


def with_constant(name: str, *shapes: tuple[Dim, ...], at: int = 1, **options: Any) -> tuple[IRModule, np.ndarray]:
    """A module of one operator on a constant operand."""
    module = legalized(name, *shapes, **options)
    array = random(*(d for d in shapes[at] if isinstance(d, int)))
    return BindParams("main", {f"x{at}": array})(module), array


def packed(module: IRModule, *arrays: np.ndarray, **options: int) -> IRModule:
    """Tiled with packed constants, compared with the tiled module and that before, bit by bit: sums keep their order.

    Sums in blocks (`block_sums`) are added up block by block, which rounds otherwise than one long sum.
    """
    tiled = TileContractions.with_options({"vector_bits": 128, "registers": 16, "pack_from": 1, **options})(module)
    new = PackConstants()(tiled)
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    want = weft.interpret(module)["main"](*arrays)
    got = weft.interpret(tiled)["main"](*arrays)
    if "block_sums" in options:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(weft.interpret(new)["main"](*arrays), got)
    return new


def parsed(text: str) -> IRModule:
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


def constants(module: IRModule) -> list[np.ndarray]:
    return [
        node.data
        for f in module.functions.values()
        if isinstance(f, Function)
        for node in walk(f)
        if isinstance(node, Constant)
    ]


def kernel(module: IRModule) -> PrimFunc:
    (found,) = (f for f in module.functions.values() if isinstance(f, PrimFunc))
    return found


def packings(module: IRModule) -> dict[str, tuple[str, ...]]:
    """What each constant of the kernel is packed as, from the records of decisions."""
    return {item.about: item.values["packed_as"] for item in decisions_of(kernel(module)) if item.kind == "packing"}


@settings(max_examples=8, deadline=None)
@given(st.integers(8, 31), st.integers(1, 9), st.integers(17, 70), st.booleans(), st.sampled_from([128, 256]))
def test_a_constant_matrix_of_any_size_is_packed_once(
    rows: int, inner: int, columns: int, symbolic: bool, bits: int
) -> None:
    module, array = with_constant("matmul", (N if symbolic else rows, inner), (inner, columns))
    new = packed(module, random(rows, inner), block_sums=4, block_rows=12, parts=3, vector_bits=bits)
    if "b_packed" in new.script():
        assert [p.name for p in kernel(new).params][1] == "b_packed"
        assert packings(new) == {"x2": ("b_packed",)}
        (only,) = constants(new)
        assert sorted(only[only != 0]) == sorted(array.ravel())
        assert only.nbytes <= 2 * array.nbytes + 4096
    else:  # a tile is as wide as all columns
        assert columns < 4 * bits // 32


def test_every_number_of_rows_reads_the_same_packed_constant() -> None:
    module, _ = with_constant("matmul", (N, 24), (24, 64))
    new = packed(module, random(3, 24), pack_from=1)
    assert not any(isinstance(node, AllocBuffer) and node.buffer.name == "b_packed" for node in walk(kernel(new)))
    for rows in (0, 1, 2, 13, 40):
        x = random(rows, 24)
        np.testing.assert_array_equal(weft.interpret(new)["main"](x), weft.interpret(module)["main"](x))


@pytest.mark.parametrize(("rows", "least", "is_packed"), [(1, 24 * 64, True), (1, 24 * 64 + 1, False), (8, 1, True)])
def test_one_row_reads_panels_of_a_constant_that_no_near_cache_holds(rows: int, least: int, is_packed: bool) -> None:
    module, _ = with_constant("matmul", (rows, 24), (24, 64))
    assert packings(packed(module, random(rows, 24), pack_from=least)) == ({"x2": ("b_packed",)} if is_packed else {})


def test_a_weight_with_its_rows_along_the_sum_is_packed() -> None:
    module, _ = with_constant("linear", (19, 10), (40, 10))
    new = packed(module, random(19, 10), vector_bits=256)
    assert ("b_packed",) in packings(new).values()


@pytest.mark.parametrize("channels", [6, 21])
def test_weights_of_convolutions_are_packed(channels: int) -> None:
    module, array = with_constant("nn.conv2d", (2, 3, 9, 9), (channels, 3, 3, 3), padding=1)
    new = packed(module, random(2, 3, 9, 9))
    assert ("a_packed",) in packings(new).values()
    assert any(array.size <= c.size < 2 * array.size and c.ndim == 2 for c in constants(new))


@pytest.mark.parametrize("weight", [(21, 3, 3, 3), (6, 3, 3, 3)])
def test_weights_of_convolutions_in_float16_are_packed_in_float32(weight: tuple[int, ...]) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(("n", 3, 9, 9), "float16"), w: R.Tensor({weight}, "float16")):
    return R.nn.conv2d(x, w, padding=1)
"""
    array, x = random(*weight, dtype="float16"), random(2, 3, 9, 9, dtype="float16")
    function = weft.parse(text)
    assert isinstance(function, Function)
    new = packed(LegalizeOps()(BindParams("main", {"w": array})(IRModule({"main": function}))), x)
    assert ("a_packed",) in packings(new).values()
    (only,) = constants(new)
    assert only.dtype == "float32"
    assert array.size <= only.size <= 2 * array.size
    assert weft.interpret(new)["main"](x[:0]).shape[0] == 0


def test_calls_that_use_one_constant_share_its_packed_form() -> None:
    text = """
from weft.script import ir as I, relax as R

@I.ir_module
class Twice:
    @R.function
    def main(x: R.Tensor((12, 48), "float32"), w: R.Tensor((48, 48), "float32")):
        return R.matmul(R.nn.relu(R.matmul(x, w)), w)
"""
    w = random(48, 48)
    module = LegalizeOps()(BindParams("main", {"w": w})(parsed(text)))
    new = PackConstants()(TileContractions.with_options({"pack_from": 1})(module))
    found = constants(new)
    assert len(found) == 2
    assert found[0] is found[1]
    x = random(12, 48)
    np.testing.assert_array_equal(weft.interpret(new)["main"](x), weft.interpret(module)["main"](x))
    compiled = weft.compile(parsed(text), params={"w": w})["main"]
    np.testing.assert_allclose(compiled(x), np.maximum(x @ w, 0) @ w, rtol=1e-4, atol=1e-4)


def test_a_matrix_that_one_call_computes_is_no_constant() -> None:
    text = """
from weft.script import ir as I, relax as R

@I.ir_module
class Mixed:
    @R.function
    def main(x: R.Tensor((12, 48), "float32"), y: R.Tensor((48, 48), "float32"), w: R.Tensor((48, 48), "float32")):
        return R.matmul(R.matmul(x, y), w)
"""
    module = LegalizeOps()(BindParams("main", {"w": random(48, 48)})(parsed(text)))
    tiled = TileContractions.with_options({"pack_from": 1})(module)
    kernels = [f for f in tiled.functions.values() if isinstance(f, PrimFunc)]
    new = PackConstants()(tiled)
    if len(kernels) == 1:  # both calls run one kernel
        assert new is tiled
    x, y = random(12, 48), random(48, 48)
    np.testing.assert_array_equal(weft.interpret(new)["main"](x, y), weft.interpret(module)["main"](x, y))


def test_a_kernel_that_copies_more_than_twice_the_constant_keeps_its_copy() -> None:
    text = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Spread:
    @T.prim_func(private=True)
    def k(w: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
        p = T.alloc_buffer((64, {wide}), "float32")
        for i, j in T.grid(64, {wide}):
            p[i, j] = 0.0
        for i, j in T.grid(64, 64):
            p[j, i] = w[i, j]
        for i, j in T.grid(64, 64):
            y[i, j] = p[i, j] * 2.0

    @R.function
    def main():
        cls = Spread
        return R.call_tir(cls.k, (R.const("{data}", "float32", shape=[64, 64]),), out_ty=R.Tensor((64, 64), "float32"))
"""
    data = "base64:" + base64.b64encode(random(64, 64).tobytes()).decode()
    narrow, wide = (parsed(text.format(wide=size, data=data)) for size in (64, 400))
    assert PackConstants()(wide) is wide
    new = PackConstants()(narrow)
    (found,) = constants(new)
    np.testing.assert_array_equal(found, random(64, 64).T)
    np.testing.assert_array_equal(weft.interpret(new)["main"](), weft.interpret(narrow)["main"]())
    assert any(isinstance(node, Call) for node in walk(new["main"]))


def test_a_weight_that_a_variable_stands_for_leaves_the_program() -> None:
    """What folding binds to a variable is not kept beside its packed form."""
    module = weft.parse("""
@R.function
def main(x: R.Tensor((64, 512), "float32"), w: R.Tensor((512, 512), "float32")) -> R.Tensor((64, 512), "float32"):
    half = R.multiply(w, R.const(0.5, "float32"))
    return R.matmul(x, half)
""")
    weight = random(512, 512)
    lowered = weft.lower(module, target="llvm", params={"w": weight})
    assert packings(lowered)
    assert sum(array.nbytes for array in constants(lowered)) < 1.5 * weight.nbytes
    x = random(64, 512)
    np.testing.assert_allclose(
        weft.compile(lowered, start="codegen")["main"](x), x @ (weight / 2), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("dtype", "rows", "k", "columns", "mc", "kc"),
    [
        ("float32", N, 768, 2048, 168, 768),
        ("float32", N, 2048, 768, 168, 1024),  # A has room in the second cache
        ("float32", 512, 2048, 768, 140, 1024),
        ("float64", N, 1024, 512, 168, 512),
        ("int8", N, 2048, 768, 168, 512),  # the first cache has its panels
    ],
)
def test_blocks_of_k_are_long_where_panels_of_a_constant_come_from_afar(
    dtype: str, rows: Dim, k: int, columns: int, mc: int, kc: int
) -> None:
    wide = "int32" if dtype == "int8" else dtype
    module = legalized("matmul", (rows, k), (k, columns), dtype=dtype, out_dtype=wide)
    bound = BindParams("main", {"x1": np.ones((k, columns), dtype)})(module)
    machine = MachineModel(512, 32, l1_bytes=48 << 10, dot_features=("avx512vnni",))
    (decided,) = (
        item for item in decisions_of(kernel(TileContractions(machine=machine)(bound))) if item.kind == "gemm"
    )
    assert (decided.values["mc"], decided.values["kc"]) == (mc, kc)


def test_long_sums_of_few_rows_with_a_constant_go_in_blocks() -> None:
    module = BindParams("main", {"x1": np.full((6000, 48), 0.1, "float32")})(legalized("matmul", (2, 6000), (6000, 48)))
    function = weft.compile(module)
    x = np.full((2, 6000), 0.7, "float32")
    want = 6000 * float(np.float32(0.1)) * float(np.float32(0.7))
    # One sum of 6000 such terms is off by 1199 * 2**-24 of itself.
    assert np.abs(function["main"](x) - want).max() <= 700 * 2.0**-24 * want


def test_a_remainder_of_rows_is_covered_by_small_tiles() -> None:
    module, w = with_constant("matmul", (N, 300), (300, 512))
    tiled = TileContractions(machine=MachineModel(512, 32))(module)
    assert "for i0_8, i in T.grid((" in tiled.script()
    function = weft.compile(module)["main"]
    for rows in (0, 1, 2, 4, 5, 7, 8, 9, 13, 14, 15, 16, 22, 24, 29, 36, 190, 300):
        x = random(rows, 300)
        np.testing.assert_allclose(function(x), x @ w, rtol=1e-4, atol=1e-4)
