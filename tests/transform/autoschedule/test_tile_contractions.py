"""TileContractions: the same sums, in register tiles."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weft
from weft.ir import Block, For, FrozenMap, Function, IRModule, PrimFunc, TensorType, Var, replace, walk
from weft.ir.builder import BlockBuilder
from weft.ir.dim import Dim, DimExpr, symbol
from weft.ir.kernel.prim import const
from weft.ir.op import get_op
from weft.ir.tensor import Buffer, BufferStore, PrimExpr, PrimVar, SeqStmt, Stmt
from weft.script import tir as T
from weft.target.machine_model import MachineModel
from weft.transform import (
    AnnotateTIROpPattern,
    BindParams,
    CheckBounds,
    ConvertToDataflow,
    FuseOps,
    FuseTIR,
    LegalizeOps,
    ParallelizeOuterLoops,
    Pipeline,
    TileContractions,
)
from weft.transform.autoschedule.gemm.tiles import Access, cover_rows
from weft.transform.infra.decisions import decisions_of

N = symbol("n")


def parsed(text: str) -> IRModule:
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


def legalized(name: str, *shapes: tuple[Dim, ...], dtype: str = "float32", **options: Any) -> IRModule:
    params = [Var(f"x{i}", TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(get_op(name).bind(params, options, None)))
    return LegalizeOps()(builder.get())


def check(module: IRModule, *arrays: np.ndarray, **options: int) -> IRModule:
    """Tile a module and compare it with itself before: the order of the sums is kept, so the bits are too.

    Planes add up the rows of windows that read one row of the input, one after another, and packed blocks of k their
    own sums.
    """
    tiled = TileContractions.with_options({"vector_bits": 128, "registers": 16, **options})(module)
    assert weft.verify(tiled) == []
    weft.assert_structural_equal(weft.parse(tiled.script()), tiled)
    kernels = [function for _, function in tiled.items() if isinstance(function, PrimFunc)]
    decisions = [item for kernel in kernels for item in kernel.attrs.get("decisions", ())]
    exact = not any(item.get("form") == "planes" or item.get("accumulates") for item in decisions)
    got, want = (weft.interpret(program)["main"](*arrays) for program in (tiled, module))
    np.testing.assert_allclose(got, want, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-5)
    return tiled


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 14), st.integers(1, 4), st.integers(1, 19), st.booleans())
def test_products_of_any_size_are_unchanged(rows: int, inner: int, columns: int, symbolic: bool) -> None:
    module = legalized("matmul", (N if symbolic else rows, inner), (inner, columns))
    tiled = check(module, random(rows, inner), random(inner, columns))
    assert (tiled is module) == (rows == 0 and not symbolic)


@pytest.mark.parametrize("count", [0, 1, 5, 13])
def test_symbolic_columns_get_smaller_tiles_at_the_end(count: int) -> None:
    module = legalized("matmul", (6, 3), (3, symbol("m")))
    check(module, random(6, 3), random(3, count))


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 40), st.booleans(), st.booleans())
def test_packed_blocks_of_any_size_keep_the_order_of_the_sums(
    rows: int, inner: int, columns: int, symbolic: bool, across: bool
) -> None:
    name, shape = ("linear", (columns, inner)) if across else ("matmul", (inner, columns))
    module = legalized(name, (N if symbolic else rows, inner), shape)
    check(module, random(rows, inner), random(*shape), pack_from=1, block_sums=4, block_rows=12)


@settings(max_examples=8, deadline=None)
@given(
    st.integers(13, 31),
    st.integers(1, 9),
    st.integers(1, 70),
    st.booleans(),
    st.booleans(),
    st.sampled_from([128, 256]),
)
def test_panels_that_are_kept_for_all_blocks_of_rows_keep_the_order_of_the_sums(
    rows: int, inner: int, columns: int, symbolic: bool, apart: bool, bits: int
) -> None:
    """In blocks of columns too, whether or not the last panel has a text of its own."""
    module = legalized("matmul", (N if symbolic else rows, inner), (inner, columns))
    check(
        module,
        random(rows, inner),
        random(inner, columns),
        pack_from=1,
        block_sums=4,
        block_rows=12,
        block_columns=40,
        apart_from=1 if apart else 1 << 27,
        vector_bits=bits,
        parts=2,
    )


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.booleans(), st.booleans())
def test_a_single_row_streams_through_the_matrix(inner: int, columns: int, symbolic: bool, vector: bool) -> None:
    shape = (inner,) if vector else (N if symbolic else 1, inner)
    module = legalized("matmul", shape, (inner, columns))
    tiled = check(module, random(*((inner,) if vector else (1, inner))), random(inner, columns), pack_from=1)
    assert tiled is not module


def test_a_large_product_is_packed_and_a_small_one_is_not() -> None:
    large, small = legalized("matmul", (64, 512), (512, 512)), legalized("matmul", (64, 64), (64, 64))
    assert "b_packed" in TileContractions()(large).script()
    assert "b_packed" not in TileContractions()(small).script()
    every_size = TileContractions()(legalized("matmul", (N, N), (N, N)))
    assert "b_packed" in every_size.script()


def test_batched_products_keep_their_outer_loops() -> None:
    check(legalized("matmul", (3, 5, 4), (3, 4, 9)), random(3, 5, 4), random(3, 4, 9))
    check(legalized("matmul", (2, 1, 5, 4), (3, 4, 9)), random(2, 1, 5, 4), random(3, 4, 9))


def test_an_operand_read_across_is_packed() -> None:
    module = legalized("linear", (N, 7), (10, 7))
    tiled = check(module, random(5, 7), random(10, 7))
    assert "b_packed" in tiled.script()


def rows_along_k(rows: Dim, inner: Dim, columns: Dim, **options: Any) -> IRModule:
    return legalized("linear", (rows, inner), (columns, inner), **options)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 30),
    st.sampled_from([256, 257, 300, 383]),
    st.integers(1, 11),
    st.sampled_from([("float32", None), ("float16", None), ("bfloat16", "float32"), ("int8", "int32")]),
    st.sets(st.sampled_from(["rows", "inner", "columns"])),
    st.sampled_from(["llvm", "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3"]),
)
def test_inner_products_of_few_rows_agree_with_numpy(
    rows: int, inner: int, columns: int, types: tuple[str, str | None], symbolic: set[str], target: str
) -> None:
    dtype, wide = types
    sizes = [
        symbol(name[0]) if name in symbolic else size
        for name, size in (("rows", rows), ("inner", inner), ("columns", columns))
    ]
    function = weft.compile(rows_along_k(*sizes, dtype=dtype, out_dtype=wide), target)["main"]
    generator = np.random.default_rng(rows + inner)
    stored = np.dtype(weft.dtypes.array_dtype(dtype))
    x, w = (generator.integers(-128, 128, shape).astype(stored) for shape in ((rows, inner), (columns, inner)))
    want = x.astype("int64") @ w.astype("int64").T if dtype == "int8" else x.astype("float64") @ w.astype("float64").T
    got = function(x, w)
    assert str(got.dtype) == (wide or dtype)
    scale = np.abs(x.astype("float64")) @ np.abs(w.astype("float64")).T
    tolerance = {"int32": 0.0, "float16": 2**-10, "float32": inner * 2.0**-24}[wide or dtype]
    limit = 65504.0 if wide is None and dtype == "float16" else np.inf
    inside = np.abs(want) < limit
    assert (np.abs(got.astype("float64") - want)[inside] <= tolerance * (scale + np.abs(want))[inside]).all()


@pytest.mark.parametrize(
    ("rows", "dtype", "form"),
    [
        (1, "float32", None),
        (2, "float32", "inner"),
        (23, "float32", "inner"),
        (24, "float32", "packed"),
        (N, "float32", "packed or inner"),
        (23, "float16", "inner"),
        (5, "bfloat16", "inner"),
        (6, "bfloat16", "packed"),
    ],
)
def test_few_rows_read_weights_where_they_lie(rows: Dim, dtype: str, form: str | None) -> None:
    module = rows_along_k(rows, 512, 40, dtype=dtype, out_dtype="float32")
    machine = MachineModel(512, 32, dot_features=("avx512bf16", "avx512vnni"))
    tiled = TileContractions(machine=machine)(module)
    decided = [item for item in decisions_of(tiled.functions["linear"]) if item.kind == "gemm"]
    assert [item.values["form"] for item in decided] == ([] if form is None else [form])


@pytest.mark.parametrize(
    ("rows", "k", "columns", "dtype", "form"),
    [
        (1024, 1024, 3, "float32", "inner"),
        (1024, 1024, 12, "float32", "inner"),
        (1024, 64, 12, "float32", "direct"),  # bringing sums together would cost more than it saves
        (4, 1024, 12, "float32", "direct"),  # as would the copy of the columns
        (1024, 1024, 4, "float64", "inner"),
        (1024, 1024, 8, "float64", "direct"),
        (1024, 1024, 4, "int8", "inner"),
        (1024, 1024, 8, "int8", "packed"),
        (N, 1024, 3, "float32", "inner"),
        (N, N, 3, "float32", "inner"),
        (8, 1024, N, "float32", "direct or inner"),
        (N, 1024, symbol("m"), "float32", "packed or direct or inner"),
        (N, symbol("k"), symbol("m"), "float32", "packed or direct"),
    ],
)
def test_few_columns_are_inner_products_where_these_cost_less(
    rows: Dim, k: Dim, columns: Dim, dtype: str, form: str
) -> None:
    wide = "int32" if dtype == "int8" else dtype
    module = legalized("matmul", (rows, k), (k, columns), dtype=dtype, out_dtype=wide)
    machine = MachineModel(512, 32, dot_features=("avx512bf16", "avx512vnni"))
    tiled = TileContractions(machine=machine)(module)
    (decided,) = (item for item in decisions_of(tiled.functions["matmul"]) if item.kind == "gemm")
    assert decided.values["form"] == form
    assert ("b_columns" in tiled.script()) == ("inner" in form)


@pytest.mark.parametrize(("columns", "widths"), [(10, [5]), (12, [4]), (6, [4, 2]), (5, [5]), (3, [3])])
def test_few_columns_go_in_blocks_of_one_size_where_one_more_makes_them_equal(columns: int, widths: list[int]) -> None:
    """Each size of blocks is code of its own."""
    module = legalized("matmul", (1024, 1024), (1024, columns))
    kernel = TileContractions(machine=MachineModel(512, 32))(module).functions["matmul"]
    columns_at = [x for x in walk(kernel) if isinstance(x, For) and x.loop_var.name.startswith("i1_at")]
    assert list(dict.fromkeys(loop.extent for loop in columns_at)) == widths


@settings(max_examples=5, deadline=None)
@example(9, 300, 10, (), True, ("float32", None), {"rows"}, "llvm -mcpu=x86-64-v3")
@example(5, 257, 15, (3,), False, ("int8", "int32"), set(), "llvm")
@given(
    st.integers(0, 30),
    st.sampled_from([0, 1, 96, 257, 300]),
    st.integers(0, 17),
    st.sampled_from([(), (3,), ("b",)]),
    st.booleans(),
    st.sampled_from([("float32", None), ("float64", None), ("float16", "float32"), ("int8", "int32")]),
    st.sets(st.sampled_from(["rows", "k", "columns"])),
    st.sampled_from(["llvm", "llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3"]),
)
def test_products_with_few_columns_agree_with_numpy(
    rows: int,
    k: int,
    columns: int,
    batch: tuple[int | str, ...],
    shared: bool,
    types: tuple[str, str | None],
    symbolic: set[str],
    target: str,
) -> None:
    dtype, wide = types
    m, p, n = (
        symbol(name) if name in symbolic else size for name, size in (("rows", rows), ("k", k), ("columns", columns))
    )
    outer: tuple[Dim, ...] = tuple(symbol(x) if isinstance(x, str) else x for x in batch)
    module = legalized("matmul", (*outer, m, p), (*(() if shared else outer), p, n), dtype=dtype, out_dtype=wide)
    function = weft.compile(module, target)["main"]
    generator = np.random.default_rng(rows + k)
    sizes = [2 if isinstance(x, str) else x for x in batch]
    shapes = ((*sizes, rows, k), (*([] if shared else sizes), k, columns))
    a, b = (generator.integers(-99, 99, shape).astype(dtype) for shape in shapes)
    np.testing.assert_array_equal(function(a, b), a.astype("float64") @ b.astype("float64"))


def test_few_columns_of_a_constant_are_copied_when_the_module_is_compiled() -> None:
    text = """from weft.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 300), "float32"), w: R.Tensor((300, 3), "float32"), c: R.Tensor((3,), "float32")):
        return R.nn.relu(R.add(R.matmul(x, w), c))
"""
    x, w, c = random(9, 300), random(300, 3), random(3)
    bound = BindParams("main", {"w": w})(parsed(text))
    assert "b_columns = T.alloc" not in weft.lower(bound, stop="schedule").script()
    np.testing.assert_allclose(weft.compile(bound)["main"](x, c), np.maximum(x @ w + c, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("a", "left", "b", "right", "inner"),
    [
        ((8, 512), "vi, vk", (40, 512), "vj, vk", True),
        ((512, 8), "vk, vi", (40, 512), "vj, vk", False),
        ((8, 512), "vi, vk", (40, 512, 2), "vj, vk, 0", False),
    ],
)
def test_operands_that_do_not_lie_along_k_have_no_inner_products(
    a: tuple[int, ...], left: str, b: tuple[int, ...], right: str, inner: bool
) -> None:
    text = f"""
@T.prim_func
def product(A: T.Buffer({a}, "float32"), B: T.Buffer({b}, "float32"), C: T.Buffer((8, 40), "float32")):
    for i, j, k in T.grid(8, 40, 512):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[{left}] * B[{right}]
"""
    function = weft.parse(text)
    assert isinstance(function, PrimFunc)
    tiled = TileContractions(machine=MachineModel(512, 32))(IRModule({"product": function}))
    decided = [item.values["form"] for item in decisions_of(tiled.functions["product"]) if item.kind == "gemm"]
    assert ("inner" in decided) == inner, decided


@pytest.mark.parametrize(
    ("left", "right", "inner"),
    [("vb, vi, vk", "vb, vj, vk", True), ("vb, vi, vk", "vj, vk, vb", False), ("vi, vk, vb", "vb, vj, vk", False)],
)
def test_batches_innermost_leave_no_inner_products(left: str, right: str, inner: bool) -> None:
    """Every index is a variable of its own, so that either form could be had: what lies along k decides."""
    sizes = {"vb": 3, "vi": 8, "vj": 40, "vk": 512}
    a, b = (tuple(sizes[name] for name in text.split(", ")) for text in (left, right))
    function = weft.parse(f"""
@T.prim_func
def product(A: T.Buffer({a}, "float32"), B: T.Buffer({b}, "float32"), C: T.Buffer((3, 8, 40), "float32")):
    for b, i, j, k in T.grid(3, 8, 40, 512):
        with T.sblock("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + A[{left}] * B[{right}]
""")
    assert isinstance(function, PrimFunc)
    tiled = TileContractions(machine=MachineModel(512, 32))(IRModule({"product": function}))
    (decided,) = (item.values["form"] for item in decisions_of(tiled.functions["product"]) if item.kind == "gemm")
    assert decided == ("inner" if inner else "packed")


def test_inner_products_keep_batches_and_what_becomes_of_their_sums() -> None:
    text = """from weft.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("b", 3, 260), "float32"), w: R.Tensor((10, 260), "float32"), c: R.Tensor((10,), "float32")):
        y = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w)), c))
        return y
"""
    function = weft.compile(weft.parse(text))["main"]
    x, w, c = random(2, 3, 260), random(10, 260), random(10)
    np.testing.assert_allclose(function(x, w, c), np.maximum(x @ w.T + c, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shapes", "form", "why"),
    [
        (((4, 64), (40, 64)), "inner", "inner products need both operands along k"),
        (((4, 512), (8, 512)), "packed or inner", "all sizes are known"),
        (((4, 512), (8, 512)), "direct", "not read along its last axis"),
        (
            ((4, 512), (8, 512)),
            "outer",
            "inner, channels, columns, winograd2, winograd4, planes, packed or direct, packed or inner",
        ),
        (((4, 512), (8, 512)), "packed or direct or inner", "not read along its last axis"),
    ],
)
def test_forms_that_cannot_be_had_are_refused(shapes: tuple[tuple[int, int], ...], form: str, why: str) -> None:
    module = legalized("linear", *shapes)
    record = {"about": "linear", "kind": "gemm", "form": form, "mr": 4, "nr_vectors": 4}
    function = module.functions["linear"]
    assert isinstance(function, PrimFunc)
    pinned = replace(function, attrs=function.attrs.set("decisions", (FrozenMap(record),)))
    with pytest.raises(weft.PassError) as caught:
        TileContractions()(module.with_functions({**module.functions, "linear": pinned}))
    assert why in str(caught.value)


def test_a_copy_that_would_be_read_once_is_not_made() -> None:
    module = legalized("linear", (1, 7), (10, 7))
    assert TileContractions()(module) is module


@pytest.mark.parametrize(
    ("data", "weight", "options"),
    [
        ((2, 3, 6, 9), (5, 3, 3, 3), {"padding": 1}),
        ((1, 3, 7, 8), (4, 3, 2, 2), {"dilation": 2}),
        ((2, 4, 6, 9), (4, 1, 3, 3), {"padding": 1, "groups": 4}),
        ((2, 4, 5, 6), (6, 2, 3, 3), {"groups": 2}),
    ],
)
def test_convolutions_along_their_rows(data: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any]) -> None:
    module = legalized("nn.conv2d", data, weight, **options)
    assert check(module, random(*data), random(*weight)) is not module


@pytest.mark.parametrize(
    ("name", "data", "weight", "options"),
    [
        ("nn.conv2d", (2, 3, 7, 9), (5, 3, 3, 3), {"strides": 2}),
        ("nn.conv2d", (1, 3, 11, 13), (6, 3, 3, 2), {"strides": (2, 3), "padding": 1, "dilation": (2, 1)}),
        ("nn.conv2d", (1, 8, 6, 7), (8, 2, 3, 3), {"groups": 4, "padding": 1}),
        ("nn.conv2d", (1, 8, 6, 7), (12, 4, 1, 1), {"groups": 2}),
        ("nn.conv2d", (2, 5, 5, 7), (6, 5, 1, 1), {}),
        ("nn.conv2d", (2, 5, 5, 7), (6, 5, 1, 1), {"strides": 2}),
        ("nn.conv1d", (2, 3, 23), (5, 3, 4), {"strides": 3}),
        ("nn.conv3d", (1, 2, 5, 4, 6), (4, 2, 2, 3, 2), {"strides": (1, 2, 1)}),
    ],
)
@pytest.mark.parametrize("bits", [128, 256])
def test_convolutions_of_every_kind_are_packed(
    name: str, data: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any], bits: int
) -> None:
    module = legalized(name, data, weight, **options)
    tiled = check(module, random(*data), random(*weight), vector_bits=bits, block_sums=12)
    assert tiled is not module
    want = weft.compile(module, opt=0)["main"](random(*data), random(*weight))
    np.testing.assert_allclose(weft.compile(tiled)["main"](random(*data), random(*weight)), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [(1, 3), (4, 5), (9, 16)])
@pytest.mark.parametrize("strides", [1, 2])
def test_convolutions_of_symbolic_batch_and_size(size: tuple[int, int], strides: int) -> None:
    module = legalized("nn.conv2d", (N, 3, symbol("h"), symbol("w")), (5, 3, 3, 3), strides=strides, padding=1)
    check(module, random(2, 3, *size), random(5, 3, 3, 3), vector_bits=256, block_sums=12)


def test_a_window_for_few_rows_is_not_packed() -> None:
    module = legalized("nn.conv2d", (1, 2, 7, 9), (3, 2, 3, 3), strides=2)
    assert TileContractions()(module) is module


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_sums_in_types_without_vector_products_are_left_alone(dtype: str) -> None:
    module = legalized("matmul", (4, 3), (3, 8), dtype=dtype)
    assert TileContractions()(module) is module


def test_double_precision_has_half_the_lanes() -> None:
    check(
        legalized("matmul", (5, 3), (3, 11), dtype="float64"),
        random(5, 3, dtype="float64"),
        random(3, 11, dtype="float64"),
    )


def test_the_tile_follows_from_the_registers() -> None:
    module = legalized("matmul", (84, 3), (3, 64))

    def most_sums(vector_bits: int, registers: int) -> int:
        tiled = TileContractions.with_options({"vector_bits": vector_bits, "registers": registers})(module)
        function = tiled["matmul"]
        assert isinstance(function, PrimFunc)
        loops = [item for item in walk(function) if isinstance(item, For) and item.kind == "unrolled"]
        return max(item.extent for item in loops if isinstance(item.extent, int))

    assert most_sums(256, 16) == 12
    assert most_sums(512, 32) == 28


@T.prim_func
def subtracting(a: T.Buffer((4, 4), "float32"), b: T.Buffer((4, 4), "float32"), c: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("c"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                c[vi, vj] = T.float32(0)
            c[vi, vj] = c[vi, vj] - a[vi, vk] * b[vk, vj]


@T.prim_func
def starting_elsewhere(a: T.Buffer((4, 4), "float32"), b: T.Buffer((4, 4), "float32"), c: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("c"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                c[vi, vj] = T.float32(1)
            c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]


@T.prim_func
def guarded(a: T.Buffer((4, 4), "float32"), b: T.Buffer((4, 4), "float32"), c: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("c"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.where(i < 3)
            with T.init():
                c[vi, vj] = T.float32(0)
            c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]


@T.prim_func
def in_place(a: T.Buffer((4, 4), "float32"), c: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("c"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                c[vi, vj] = T.float32(0)
            c[vi, vj] = c[vi, vj] + a[vi, vk] * c[vk, vj]


@pytest.mark.parametrize("function", [subtracting, starting_elsewhere, guarded, in_place], ids=lambda f: f.name)
def test_what_is_no_plain_sum_of_products_is_left_alone(function: PrimFunc) -> None:
    module = IRModule({"main": function})
    assert TileContractions()(module) is module


def test_machine_code_agrees_with_numpy() -> None:
    tiled = TileContractions.with_options({"vector_bits": 256, "registers": 16})(legalized("matmul", (N, 33), (33, 70)))
    main = weft.compile(tiled)["main"]
    weights = random(33, 70)
    for rows in (0, 1, 5, 6, 13):
        data = random(rows, 33)
        np.testing.assert_allclose(main(data, weights), data @ weights, rtol=1e-4, atol=1e-4)


def chained(first: str, shapes: list[tuple[Dim, ...]], then: list[tuple[str, int]], **options: Any) -> IRModule:
    """An operator on the first two operands, then others on its result and so many of the next operands each."""
    params = [Var(f"x{i}", TensorType(shape, "float32")) for i, shape in enumerate(shapes)]
    builder, rest = BlockBuilder(), params[2:]
    with builder.function("main", params):
        result = builder.emit(get_op(first).bind(params[:2], options, None))
        for name, count in then:
            result = builder.emit(get_op(name).bind([result, *rest[:count]], {}, None))
            rest = rest[count:]
        builder.emit_func_output(result)
    passes = (LegalizeOps(), ConvertToDataflow(), AnnotateTIROpPattern(), FuseOps(), FuseTIR())
    return Pipeline(passes)(builder.get())


EPILOGUES = [
    ("matmul", [(N, 13), (13, 19), (19,), (N, 19)], [("add", 1), ("nn.relu", 0), ("add", 1)], {}),
    ("matmul", [(N, 13), (13, 19), (19,)], [("add", 1), ("nn.gelu", 0)], {}),
    ("linear", [(N, 13), (19, 13), (19,)], [("add", 1), ("nn.relu", 0)], {}),
    ("nn.conv2d", [(N, 4, 6, 7), (9, 4, 3, 3), (9, 1, 1), (N, 9, 6, 7)], [("add", 1), ("add", 1)], {"padding": 1}),
    ("nn.conv2d", [(N, 4, 6, 7), (8, 2, 3, 3), (8, 1, 1)], [("add", 1)], {"padding": 1, "groups": 2}),
    ("nn.conv2d", [(1, 4, 6, 7), (9, 4, 1, 1), (9, 1, 1)], [("add", 1), ("nn.relu", 0)], {}),
    ("nn.conv1d", [(N, 4, 23), (9, 4, 3), (9, 1)], [("add", 1)], {"strides": 2}),
]


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("first", "shapes", "then", "options"), EPILOGUES)
def test_what_becomes_of_the_sums_happens_in_their_tiles(
    first: str, shapes: list[tuple[Dim, ...]], then: list[tuple[str, int]], options: dict[str, Any], packs: bool
) -> None:
    module = chained(first, shapes, then, **options)
    for rows in (1, 15):
        arrays = [random(*(size if isinstance(size, int) else rows for size in shape)) for shape in shapes]
        tiled = check(module, *arrays, vector_bits=256, block_sums=4, pack_from=1 if packs else 1 << 17)
        kernels = [f for _, f in tiled.items() if isinstance(f, PrimFunc)]
        assert not any(isinstance(part, Block) and part.name != "padded" for part in walk(kernels[-1].body))
    got = weft.compile(tiled)["main"](*arrays)
    np.testing.assert_allclose(got, weft.compile(module, opt=0)["main"](*arrays), rtol=1e-4, atol=1e-4)


def test_a_sum_of_nothing_gets_its_epilogue() -> None:
    module = chained("linear", [(5, N), (19, N), (19,)], [("add", 1)])
    tiled = check(module, random(5, 0), random(19, 0), random(19), vector_bits=256)
    assert tiled is not module


L = symbol("l")
JOINED = [
    ("matmul", [(N, L, 13), (13, 19)], []),
    ("matmul", [(N, 3, L, 13), (13, 19), (19,)], [("add", 1), ("nn.relu", 0)]),
    ("matmul", [(N, L, 13), (13, 19), (19,), (N, L, 19)], [("add", 1), ("nn.gelu_tanh", 0), ("add", 1)]),
    ("matmul", [(N, L, 13), (13, 19), (L, 19), (N, 1, 19)], [("add", 1), ("add", 1)]),
    ("matmul", [(2, 3, 13), (13, 19), (3, 1)], [("add", 1)]),
    ("linear", [(N, L, 13), (19, 13), (19,)], [("add", 1)]),
    ("matmul", [(N, L, 5, 13), (N, 1, 13, 19)], []),
]


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize(("first", "shapes", "then"), JOINED)
@pytest.mark.parametrize("sizes", [(0, 3), (14, 1), (3, 5)])
def test_rows_of_several_axes_are_computed_as_one_axis(
    first: str, shapes: list[tuple[Dim, ...]], then: list[tuple[str, int]], sizes: tuple[int, int], packs: bool
) -> None:
    module = chained(first, shapes, then)
    known = {N: sizes[0], L: sizes[1]}
    arrays = [random(*(size if isinstance(size, int) else known[size] for size in shape)) for shape in shapes]
    tiled = check(module, *arrays, vector_bits=256, block_sums=4, block_rows=12, pack_from=1 if packs else 1 << 17)
    assert "_flat[" in tiled.script()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=3, max_size=3))
@example([3, 0, 2])
@example([1, 1, 1])
@example([64, 1, 1])
def test_machine_code_for_joined_rows_agrees_with_numpy(sizes: list[int]) -> None:
    n, length, more = sizes
    x, w, bias, place = random(n, length, more, 33), random(33, 70), random(70), random(length, 1, 70)
    want = np.maximum(x @ w + bias, 0) + place
    np.testing.assert_allclose(_joined_main()(x, w, bias, place), want, rtol=1e-4, atol=1e-4)


@functools.cache
def _joined_main() -> Callable[..., np.ndarray]:
    shapes: list[tuple[Dim, ...]] = [(N, L, symbol("m"), 33), (33, 70), (70,), (L, 1, 70)]
    return weft.compile(chained("matmul", shapes, [("add", 1), ("nn.relu", 0), ("add", 1)]))["main"]


@T.prim_func
def turned(a: T.Buffer((3, 4, 5), "float32"), b: T.Buffer((5, 8), "float32"), c: T.Buffer((4, 3, 8), "float32")):
    for i, j, v, k in T.grid(4, 3, 8, 5):
        with T.block("c"):
            vi, vj, vv, vk = T.axis.remap("SSSR", [i, j, v, k])
            with T.init():
                c[vi, vj, vv] = T.float32(0)
            c[vi, vj, vv] = c[vi, vj, vv] + a[vj, vi, vk] * b[vk, vv]


def test_axes_of_rows_in_another_order_are_not_joined() -> None:
    module = IRModule({"main": turned})
    tiled = TileContractions()(module)
    assert tiled is not module
    assert "_flat" not in tiled.script()
    a, b, got = random(3, 4, 5), random(5, 8), np.empty((4, 3, 8), "float32")
    weft.compile(tiled)["main"](a, b, got)
    np.testing.assert_allclose(got, a.swapaxes(0, 1) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [15, 16, 25, 75])
@pytest.mark.parametrize(("rows", "bits"), [(29, 128), (29, 256), (64, 256)])
def test_few_panels_are_packed_before_many_rows_go_through_them(rows: int, columns: int, bits: int) -> None:
    module = legalized("linear", (rows, 9), (columns, 9))
    tiled = check(module, random(rows, 9), random(columns, 9), vector_bits=bits, block_sums=4, parts=3)
    assert "b_packed" in tiled.script()


@pytest.mark.parametrize(
    ("name", "shapes", "options", "loops"),
    [
        ("matmul", ((96, 80), (80, 1100)), {}, 1),  # the copy of so few rows is not worth sharing
        ("matmul", ((N, 80), (80, 1100)), {}, 2),
        ("matmul", ((N, symbol("k")), (symbol("k"), symbol("m"))), {}, 2),
        ("nn.conv2d", ((1, 16, 30, 30), (64, 16, 3, 3)), {"padding": 1}, 2),
        ("nn.conv2d", ((1, 64, 9, 9), (128, 64, 3, 3)), {"padding": 1}, 2),
    ],
    ids=["static", "rows", "all sizes", "many positions", "few positions"],
)
def test_threads_share_packed_products(
    name: str, shapes: tuple[tuple[Dim, ...], ...], options: dict[str, Any], loops: int
) -> None:
    """Bit by bit what one thread computes; copies and tiles are loops of their own."""
    module = legalized(name, *shapes, **options)
    tiled = TileContractions.with_options({"vector_bits": 256, "registers": 16, "pack_from": 1})(module)
    shared = ParallelizeOuterLoops()(tiled)
    assert shared.script().count("T.parallel") >= loops
    sizes = {"n": 97, "k": 80, "m": 1100}
    arrays = [random(*(d if isinstance(d, int) else sizes[str(d)] for d in shape)) for shape in shapes]
    before, found = weft.get_num_threads(), []
    main = weft.compile(shared)["main"]
    for threads in (1, 3):
        weft.set_num_threads(threads)
        found.append(main(*arrays))
    weft.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    want = weft.compile(tiled)["main"](*arrays)
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "next_panels", "own_steps"), [(8, 2, 0), (28, 1, 0), (140, 0, 2), (139, 2, 2), (N, 5, 2)]
)
def test_few_tiles_of_rows_ask_for_the_next_panel_of_a_constant(rows: Any, next_panels: int, own_steps: int) -> None:
    """One tile asks for both vectors of a step, two for one each, the last of many for both; many for their own."""
    weight = random(600, 1024)
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({f'"{rows}"' if rows is N else rows}, 600), "float32"), w: R.Tensor((600, 1024), "float32")):
        return R.matmul(x, w)
"""
    module = BindParams("main", {"w": weight})(parsed(text))
    tiled = TileContractions(machine=MachineModel(512, 32))(LegalizeOps()(module))
    places = re.findall(r'"prefetch", b_packed\[(.*?), ', tiled.script())
    next_ones = sum(row.endswith(" + 1") for row in places)
    assert (next_ones, len(places) - next_ones) == (next_panels, own_steps)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 30), st.integers(1, 50), st.integers(1, 90), st.booleans(), st.sampled_from([128, 256]))
def test_few_rows_stream_through_the_matrix(
    rows: int, inner: int, columns: int, symbolic: bool, vector_bits: int
) -> None:
    """Sums that go on in the result keep their order, for every rest of rows, terms and columns."""
    module = legalized("matmul", (N if symbolic else rows, inner), (inner, columns))
    check(module, random(rows, inner), random(inner, columns), pack_from=1, vector_bits=vector_bits, parts=3)


@pytest.mark.parametrize(("columns", "loop"), [(1024, "k_block_128"), (4096, "k_block_16")])
def test_rows_of_a_matrix_in_the_last_cache_stream_many_at_a_time(columns: int, loop: str) -> None:
    machine = MachineModel(512, 32, l3_bytes=32 << 20)
    tiled = TileContractions(machine=machine)(legalized("matmul", (7, 1024), (1024, columns)))
    assert f"for {loop}, " in tiled.script()


def test_what_is_asked_for_early_changes_no_result() -> None:
    module = legalized("matmul", (24, 8), (8, 100))
    tiled = check(module, random(24, 8), random(8, 100), pack_from=1, block_sums=4, block_rows=12)
    assert '"prefetch"' in tiled.script()
    checked = CheckBounds()(tiled)
    assert '"prefetch"' in checked.script()
    a, b = random(24, 8), random(8, 100)
    np.testing.assert_allclose(weft.compile(checked)["main"](a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_sums_that_go_on_from_what_is_there_are_not_taken_from_the_result_of_the_next_nest() -> None:
    @T.prim_func
    def kernel(
        a: T.Buffer((8, 5), "float32"),
        b: T.Buffer((5, 16), "float32"),
        s: T.Buffer((8, 16), "float32"),
        y: T.Buffer((8, 16), "float32"),
    ) -> None:
        c = T.alloc_buffer((8, 16), "float32")
        for i, j in T.grid(8, 16):
            with T.block("start"):
                vi, vj = T.axis.remap("SS", [i, j])
                c[vi, vj] = s[vi, vj]
        for i, j, k in T.grid(8, 16, 5):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        for i, j in T.grid(8, 16):
            with T.block("result"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(c[vi, vj], T.float32(0))

    a, b, s, y = random(8, 5), random(5, 16), random(8, 16), random(8, 16)
    tiled = TileContractions()(IRModule({"kernel": kernel}))
    assert "accumulators" in tiled.script()
    weft.interpret(tiled)["kernel"](a, b, s, y)
    np.testing.assert_allclose(y, np.maximum(s + a @ b, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "dtype"), [("matmul", "float32"), ("linear", "float16")])
def test_a_product_without_terms_is_stored_by_its_tiles(name: str, dtype: str) -> None:
    sizes = ((N, symbol("k")), (symbol("k"), symbol("m")) if name == "matmul" else (symbol("m"), symbol("k")))
    module = legalized(name, *sizes, dtype=dtype)
    assert "if k == 0" in module.script()
    assert "if k == 0" not in TileContractions()(module).script()
    function = weft.compile(module)["main"]
    for rows, columns in itertools.product((0, 1, 3, 40), (0, 1, 70)):
        w = np.empty((0, columns) if name == "matmul" else (columns, 0), dtype)
        out = np.full((rows, columns), np.nan, dtype)
        np.testing.assert_array_equal(function(np.empty((rows, 0), dtype), w, out=out), 0)


def test_what_sets_a_part_of_a_result_before_a_product_stays() -> None:
    text = """from weft.script import ir as I, tir as T

@I.ir_module
class M:
    @T.prim_func
    def main(a: T.Buffer((4, "k"), "float32"), b: T.Buffer(("k", 8), "float32"), c: T.Buffer((8, 8), "float32")):
        if k == 0:
            for i, j in T.grid(8, 8):
                c[i, j] = T.float32(1)
        for i, j, r in T.grid(4, 8, k):
            with T.block("product"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    c[vi, vj] = T.float32(0)
                c[vi, vj] = c[vi, vj] + a[vi, vr] * b[vr, vj]
"""
    assert "if k == 0" in TileContractions()(parsed(text)).script()


def test_a_few_more_rows_than_those_of_a_tile_are_shared_out_evenly() -> None:
    """Where they fill two or three smaller tiles but for one row: each row is computed once, or the last one twice."""
    n = PrimVar("n", "int64")
    rows = Buffer("rows", (n,), "int64")

    def tile(start: PrimExpr, count: int, clamp: Access) -> Stmt:
        stores = [BufferStore(rows, const(count, "int64"), (clamp(start + const(i, "int64")),)) for i in range(count)]
        return SeqStmt(tuple(stores)) if len(stores) > 1 else stores[0]

    function = PrimFunc((rows,), cover_rows("i", n, 14, (1, 4, 8), tile, (8, tile)), name="main")
    run = weft.interpret(weft.IRModule({"main": function}))["main"]
    for count in range(1, 48):
        got = np.zeros(count, "int64")
        run(got)
        assert got.all()
        assert (set(got.tolist()) == {8}) == (count in {5, 6, 7, 8, 15, 16, 23, 24})


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("epilogue", ["R.matmul(x, w)", "R.nn.relu(R.matmul(x, w) + b)"])
@pytest.mark.parametrize(("rows", "k", "columns"), [(1, 512, 512), (1, 515, 300), (4, 1030, 333), (2, 73, 517)])
def test_few_rows_share_parts_of_k_where_memory_alone_holds_the_matrix(
    rows: int, k: int, columns: int, epilogue: str, dtype: str
) -> None:
    """The same bits for any number of threads; where the number of rows is a symbol one row does so."""
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((ROWS, K), "DTYPE"), w: R.Tensor((K, COLUMNS), "DTYPE"), b: R.Tensor((COLUMNS,), "DTYPE")):
        return EPILOGUE
"""
    for name, value in {"K": k, "COLUMNS": columns, "DTYPE": dtype, "EPILOGUE": epilogue}.items():
        text = text.replace(name, str(value))
    sizes = (rows, k), (k, columns), (columns,)
    x, w, b = arrays = [np.random.default_rng(0).integers(-9, 9, size).astype(dtype) for size in sizes]
    want = (x.astype("float64") @ w).astype(dtype)
    want = np.maximum(want + b, 0) if "relu" in epilogue else want
    before = weft.get_num_threads()
    for extent in (str(rows), '"n"'):
        module, target = weft.parse(text.replace("ROWS", extent)), "llvm -l3-cache=64K -l2-cache=32K"
        assert "partial_sums" in weft.lower(module, target=target, stop="schedule").script()
        for threads in (1, 3):
            weft.set_num_threads(threads)
            np.testing.assert_array_equal(weft.compile(module, target)["main"](*arrays), want)
    weft.set_num_threads(before)


@pytest.mark.parametrize(
    ("rows", "k", "columns", "form"),
    [
        (256, 128, 512, "direct"),  # the second cache has all operands
        (4096, 128, 512, "packed"),  # rows of A and of the result come from afar
        (N, 128, 512, "packed or direct"),
        (N, 32, 64, "direct"),  # two forms would say much of a small product
        (64, symbol("k"), 64, "packed or direct"),  # the places of rows of A are not known
    ],
)
def test_products_of_many_rows_are_packed(rows: Dim, k: Dim, columns: int, form: str) -> None:
    tiled = TileContractions(machine=MachineModel(512, 32))(legalized("matmul", (rows, k), (k, columns)))
    (decided,) = (item.values["form"] for item in decisions_of(tiled.functions["matmul"]) if item.kind == "gemm")
    assert decided == form


@pytest.mark.parametrize("k", [600, symbol("k")])
def test_tiles_ask_for_the_part_of_the_result_that_they_are_added_to(k: Dim) -> None:
    """Step by step, into the first cache, whether the number of steps is known or not."""
    module = legalized("matmul", (400, k), (k, 1024))
    tiled = TileContractions(machine=MachineModel(512, 32))(module)
    asked = r'for part in range\(T.int64\(\d+\)\):\n +with T.attr\("nearest", "prefetch", matmul\['
    assert re.search(asked, tiled.script())
    weft.assert_structural_equal(weft.parse(tiled.script()), tiled)
    a, b = random(400, 600), random(600, 1024)
    np.testing.assert_allclose(weft.compile(tiled)["main"](a, b), a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("shape", "collapsed"), [((32, 2, 3), True), ((2, 32, 3), False)])
def test_rows_far_from_each_other_are_collapsed_however_many_they_are(shape: tuple[int, ...], collapsed: bool) -> None:
    """Tiles go along neighbours: the steps of a sequence are none, where a batch is between them."""
    module = legalized("matmul", shape, (3, 32))
    tiled = check(module, random(*shape), random(3, 32), vector_bits=512, registers=32)
    assert ("matmul_flat" in tiled.script()) is collapsed


@pytest.mark.parametrize(("steps", "far"), [(512, True), (8, False), (symbol("t"), True)])
def test_tiles_ask_for_the_part_of_a_large_array_that_they_are_added_to(steps: Dim, far: bool) -> None:
    text = f"""
@R.function
def main(x: R.Tensor(({f'"{steps}"' if isinstance(steps, DimExpr) else steps}, 8, 512), "float32"),
         h: R.Tensor((8, 128), "float32"), w: R.Tensor((128, 512), "float32"), step: R.Prim("int64")):
    with R.dataflow():
        y = R.add(R.take(x, step, axis=0), R.matmul(h, w))
        R.output(y)
    return y
"""
    function = weft.parse(text)
    assert isinstance(function, Function)
    module = IRModule({"main": function})
    fused = Pipeline([LegalizeOps(), AnnotateTIROpPattern(), FuseOps(), FuseTIR()])(module)
    (kernel,) = (item for _, item in fused.items() if isinstance(item, PrimFunc))
    tiled = TileContractions(machine=MachineModel(512, 32))(fused)
    assert ('"prefetch", x[' in tiled.script()) is far
    (decision,) = (item for item in decisions_of(tiled.functions[kernel.name or "main"]) if item.kind == "gemm")
    assert (decision.values.get("operands") == "far") is far
    weft.assert_structural_equal(weft.parse(tiled.script()), tiled)
    x, h, w = random(8 if isinstance(steps, DimExpr) else steps, 8, 512), random(8, 128), random(128, 512)
    for step in (0, 7, -1):
        np.testing.assert_allclose(weft.compile(tiled)["main"](x, h, w, step), x[step] + h @ w, rtol=1e-4, atol=1e-4)
