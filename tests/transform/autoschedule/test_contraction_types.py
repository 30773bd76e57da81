"""Contractions of every type: the same sums in tiles, whatever operands are stored in and results are rounded to."""

from __future__ import annotations

from textwrap import dedent

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.dtypes import array_dtype
from weft.ir import AllocBuffer, IRModule, PrimFunc, TensorType, Var, walk
from weft.ir.builder import BlockBuilder
from weft.ir.dim import Dim, symbol
from weft.ir.op import get_op
from weft.script import tir as T
from weft.target import MachineModel, Target
from weft.transform import BindParams, Knobs, LegalizeOps, TileContractions
from weft.transform.infra.decisions import decisions_of

N = symbol("n")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32")


def product(op: str, dtype: str | tuple[str, str], *shapes: tuple[Dim, ...], **options: object) -> IRModule:
    kinds = (dtype, dtype) if isinstance(dtype, str) else dtype
    params = [Var(f"x{i}", TensorType(shape, kinds[i])) for i, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(get_op(op).bind(params, options, None)))
    return LegalizeOps()(builder.get())


def random(dtype: str, *shape: int) -> np.ndarray:
    generator, kind = np.random.default_rng(0), array_dtype(dtype)
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        return generator.integers(limits.min, limits.max, shape, kind, endpoint=True)
    return generator.standard_normal(shape).astype(kind)


def tiled(module: IRModule, bits: int = 128, **knobs: int) -> IRModule:
    return TileContractions(MachineModel(bits, 16), Knobs(**knobs))(module)


def forms(module: IRModule) -> list[object]:
    functions = (f for f in module.functions.values() if isinstance(f, PrimFunc))
    return [item.values["form"] for f in functions for item in decisions_of(f) if item.kind == "gemm"]


def same_bits(module: IRModule, new: IRModule, *arrays: np.ndarray) -> None:
    """The order of the sums is kept and the interpreter fuses nothing, so results have the same bits."""
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    got, wanted = (weft.interpret(item)["main"](*arrays) for item in (new, module))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.view(f"V{got.itemsize}"), wanted.view(f"V{got.itemsize}"))


def sums_in(dtype: str) -> str:
    return {"float16": "float32", "bfloat16": "float32"}.get(dtype, "int32" if dtype in INTEGERS else dtype)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(FLOATS + INTEGERS),
    st.booleans(),
    st.tuples(st.integers(2, 14), st.integers(1, 9), st.integers(4, 21)),
    st.booleans(),
    st.sampled_from(({}, {"pack_from": 1}, {"pack_from": 1, "kc": 1, "mc": 4}, {"stream_k": 2})),
)
def test_products_of_any_type_and_size_have_the_same_bits_in_tiles(
    dtype: str, wide: bool, sizes: tuple[int, int, int], is_symbolic: bool, knobs: dict[str, int]
) -> None:
    rows, terms, columns = sizes
    options = {"out_dtype": sums_in(dtype)} if wide or dtype in INTEGERS else {}
    module = product("matmul", dtype, (N if is_symbolic else rows, terms), (terms, columns), **options)
    new = tiled(module, **knobs)
    assert len(forms(new)) == 1
    same_bits(module, new, random(dtype, rows, terms), random(dtype, terms, columns))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_another_type_that_end_in_a_tile_have_no_memory(dtype: str) -> None:
    module = product("matmul", dtype, (40, 20), (20, 64))

    def buffers(item: IRModule) -> list[tuple[int, ...]]:
        return [x.buffer.shape for f in item.functions.values() for x in walk(f) if isinstance(x, AllocBuffer)]

    assert (40, 64) in buffers(module)
    assert (40, 64) not in buffers(tiled(module, pack_from=1))
    in_blocks = buffers(tiled(module, pack_from=1, kc=1, mc=12))  # sums go on from block to block
    assert (40, 64) not in in_blocks
    assert (18, 64) in in_blocks


@pytest.mark.parametrize("rows", [1, 6, 14])
@pytest.mark.parametrize("terms", [0, 1, 37])
def test_sums_of_a_block_are_complete_whatever_their_length(rows: int, terms: int) -> None:
    for module in (
        product("matmul", "float16", (rows, N), (N, 34)),
        product("matmul", "float16", (N, 37), (37, 34)),
        product("matmul", "float16", (2, rows, N), (2, N, 34)),
    ):
        x0, x1 = (getattr(x.ty, "shape", ()) for x in module["main"].params)  # type: ignore[union-attr]
        is_long = x1[-2] == 37
        arrays = [
            random("float16", *(size if isinstance(size, int) else rows if is_long else terms for size in shape))
            for shape in (x0, x1)
        ]
        for knobs in ({"pack_from": 1, "kc": 4, "mc": 4, "nc": 16}, {"stream_k": 4}, {"pack_from": 1 << 30}):
            same_bits(module, tiled(module, **knobs), *arrays)


@pytest.mark.parametrize(("terms", "extent"), [(37, 37), (16, 16), (64, N), (5, N), (0, N)])
def test_rows_are_converted_in_vectors_as_they_are_packed_for_few_columns(terms: int, extent: Dim) -> None:
    module = product("matmul", "float16", (33, extent), (extent, 15))
    new = tiled(module, pack_from=1, converted_from=1, kc=20)
    script = new.script()
    assert "a_packed[" in script
    assert 'T.Cast("float32x' in script.split("b_packed[")[0]
    same_bits(module, new, random("float16", 33, terms), random("float16", terms, 15))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sums_that_are_a_result_too_are_stored(dtype: str) -> None:
    text = """
    @I.ir_module
    class Two:
        @T.prim_func
        def main(a: T.Buffer((16, 16), "float32"), b: T.Buffer((16, 16), "float32"), c: T.Buffer((16, 16), "float32"),
                 d: T.Buffer((16, 16), "KIND")):
            for i, j, k in T.grid(16, 16, 16):
                with T.block("c"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        c[vi, vj] = T.float32(0)
                    c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
            for i, j in T.grid(16, 16):
                with T.block("d"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    d[vi, vj] = T.Cast("KIND", c[vi, vj])
    """
    x = np.eye(16, dtype="float32") * 3
    c, d = np.zeros((16, 16), "float32"), np.zeros((16, 16), dtype)
    weft.compile(weft.parse(dedent(text).replace("KIND", dtype)))["main"](x, x, c, d)
    np.testing.assert_array_equal(c, x * 3)
    np.testing.assert_array_equal(d, x * 3)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
@pytest.mark.parametrize(
    ("op", "shapes", "options"),
    [
        ("matmul", ((3, 5, 6), (3, 6, 32)), {}),
        ("matmul", ((2, 3, 5, 6), (6, 32)), {}),
        ("linear", ((9, 16), (32, 16)), {}),
        ("nn.conv2d", ((2, 3, 9, 9), (6, 3, 3, 3)), {"padding": 1}),
        ("nn.conv2d", ((1, 8, 6, 6), (8, 4, 3, 3)), {"groups": 2}),
        ("nn.conv1d", ((2, 3, 20), (4, 3, 3)), {}),
    ],
)
def test_other_forms_of_products_are_tiled_in_narrow_types_too(
    dtype: str, op: str, shapes: tuple[tuple[int, ...], ...], options: dict[str, object]
) -> None:
    if dtype == "int8" and op != "linear":
        options = {**options, "out_dtype": "int32"}
    module = product(op, dtype, *shapes, **options)
    new = tiled(module)
    assert len(forms(new)) == (op != "linear" or dtype != "int8")
    same_bits(module, new, *(random(dtype, *shape) for shape in shapes))


def test_a_nest_that_a_user_rounds_is_one_nest() -> None:
    @T.prim_func
    def main(
        x: T.Buffer((12, 8), "bfloat16"),
        w: T.Buffer((8, 32), "bfloat16"),
        b: T.Buffer((32,), "float32"),
        y: T.Buffer((12, 32), "bfloat16"),
    ) -> None:
        s = T.alloc_buffer((12, 32), "float32")
        for i, j, k in T.grid(12, 32, 8):
            with T.block("s"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    s[vi, vj] = T.float32(0)
                s[vi, vj] = s[vi, vj] + T.Cast("float32", x[vi, vk]) * T.Cast("float32", w[vk, vj])
        for i, j in T.grid(12, 32):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.Cast("bfloat16", T.max(s[vi, vj] + b[vj], T.float32(0)))

    new = tiled(IRModule({"main": main}))
    (decision,) = (item for item in decisions_of(new["main"]) if item.kind == "gemm")
    assert decision.values["epilogue"]
    x, w, b = random("bfloat16", 12, 8), random("bfloat16", 8, 32), random("float32", 32)
    got, wanted = np.zeros((12, 32), ml_dtypes.bfloat16), np.zeros((12, 32), ml_dtypes.bfloat16)
    weft.interpret(new)["main"](x, w, b, got)
    weft.interpret(IRModule({"main": main}))["main"](x, w, b, wanted)
    np.testing.assert_array_equal(got.view("int16"), wanted.view("int16"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("rows", "columns"), [(70, 130), (1, 96), (3, 33)])
def test_compiled_sums_are_rounded_once(dtype: str, rows: int, columns: int) -> None:
    terms = 300
    module = product("matmul", dtype, (rows, terms), (terms, columns))
    x, w = random(dtype, rows, terms), random(dtype, terms, columns)
    got = weft.compile(module)["main"](x, w)
    exact = x.astype("float64") @ w.astype("float64")
    size = np.abs(x.astype("float64")) @ np.abs(w.astype("float64"))
    half_a_place = np.abs(exact) * float(ml_dtypes.finfo(got.dtype).eps) / 2
    assert got.dtype == array_dtype(dtype)
    assert np.all(np.abs(got.astype("float64") - exact) <= half_a_place * 1.01 + terms * 2.0**-24 * size)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_compiled_sums_of_integers_have_the_bits_of_the_interpreter(dtype: str) -> None:
    module = product("matmul", dtype, (N, 70), (70, 50), out_dtype="int32")
    exe = weft.compile(module)
    for rows in (1, 7, 40):
        x, w = random(dtype, rows, 70), random(dtype, 70, 50)
        np.testing.assert_array_equal(exe["main"](x, w), weft.interpret(module)["main"](x, w))


DOTS = MachineModel(256, 16, dot_features=("avx512vnni", "avx512bf16"))
SUM = """# weft-script 1
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(x: T.Buffer((ROWS, TERMS), "KX"), w: T.Buffer(SHAPE, "KW"), y: T.Buffer((ROWS, COLUMNS), "int32")):
        for i, j, k in T.grid(ROWS, COLUMNS, TERMS):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = 0
                y[vi, vj] = y[vi, vj] + T.Cast("int32", x[vi, vk]) * T.Cast("int32", w[PLACE])

    @R.function
    def main(x: R.Tensor((ROWS, TERMS), "KX"), w: R.Tensor(SHAPE, "KW")):
        y = R.call_tir(Module.kernel, (x, w), out_ty=R.Tensor((ROWS, COLUMNS), "int32"))
        return y
"""


def integers(kinds: tuple[str, str], sizes: tuple[object, int, int], *, across: bool = False) -> IRModule:
    rows, terms, columns = sizes
    text = SUM
    for name, value in (
        ("ROWS", repr(rows)),
        ("'n'", '"n"'),
        ('T.grid("n"', "T.grid(n"),
        ("PLACE", "vj, vk" if across else "vk, vj"),
        ("SHAPE", "(COLUMNS, TERMS)" if across else "(TERMS, COLUMNS)"),
        ("TERMS", str(terms)),
        ("COLUMNS", str(columns)),
        ("KX", kinds[0]),
        ("KW", kinds[1]),
    ):
        text = text.replace(name, value)
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return module


KINDS = (
    ("int8", "int8"),
    ("uint8", "uint8"),
    ("int16", "int16"),
    ("uint8", "int8"),
    ("int8", "uint8"),
    ("int16", "uint8"),
)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from((*KINDS, ("bfloat16", "bfloat16"))),
    st.tuples(st.integers(12, 15), st.integers(2, 11), st.integers(32, 45)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(({}, {"kc": 6}, {"kc": 8, "mc": 6})),
)
def test_dot_products_of_groups_of_terms_have_the_same_bits(
    kinds: tuple[str, str], sizes: tuple[int, int, int], across: bool, is_symbolic: bool, knobs: dict[str, int]
) -> None:
    rows, terms, columns = sizes
    shape = (columns, terms) if across else (terms, columns)
    if kinds[0] == "bfloat16":
        module = product("linear" if across else "matmul", kinds, (N if is_symbolic else rows, terms), shape)
    else:
        module = integers(kinds, ("n" if is_symbolic else rows, terms, columns), across=across)
    new = TileContractions(DOTS, Knobs(pack_from=1, **knobs))(module)
    assert "dot_product" in new.script()
    same_bits(module, new, random(kinds[0], rows, terms), random(kinds[1], *shape))


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        (KINDS[0], "vpdpbusd"),
        (KINDS[1], "vpdpwssd"),
        (KINDS[3], "vpdpbusd"),
        (("bfloat16", "bfloat16"), "vdpbf16ps"),
    ],
)
def test_the_instruction_follows_from_the_types_and_is_told(kinds: tuple[str, str], name: str) -> None:
    sizes = (64, 64, 64)
    module = integers(kinds, sizes) if "int" in kinds[0] else product("matmul", kinds, sizes[:2], sizes[1:])
    new = TileContractions(DOTS, Knobs(pack_from=1))(module)
    (function,) = (f for f in new.functions.values() if isinstance(f, PrimFunc))
    (decision,) = (item for item in decisions_of(function) if item.kind == "gemm")
    assert decision.values["instruction"] == name
    other = MachineModel(256, 16, dot_features=("amx-tile",))
    assert "dot_product" not in TileContractions(other, Knobs(pack_from=1))(module).script()


def test_an_instruction_that_is_slow_on_a_processor_is_not_taken() -> None:
    assert "avx512bf16" not in Target("llvm -mcpu=emeraldrapids").machine.dot_features
    assert "avx512bf16" in Target("llvm -mcpu=znver5").machine.dot_features


@pytest.mark.parametrize("kinds", KINDS)
def test_compiled_dot_products_have_the_bits_of_exact_sums(kinds: tuple[str, str]) -> None:
    x, w = random(kinds[0], 45, 71), random(kinds[1], 71, 70)
    x[:2], w[:, :2] = np.iinfo(x.dtype).min, np.iinfo(w.dtype).min
    got = weft.compile(integers(kinds, ("n", 71, 70)), opt=Knobs(pack_from=1))["main"](x, w)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, x.astype("int32") @ w.astype("int32"))


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
@pytest.mark.parametrize(
    ("shapes", "options", "knobs"),
    [
        (((1, 3, 9, 9), (7, 3, 3, 3)), {"padding": 1}, {}),
        (((1, 4, 9, 8), (6, 4, 3, 3)), {"dilation": 2}, {"kc": 9}),
        (((2, 3, 8, 8), (5, 3, 2, 2)), {"strides": 2}, {}),
        (((1, 3, 6, 16), (5, 3, 3, 3)), {"padding": 1}, {}),  # rows that fill their vectors
    ],
)
def test_windows_go_through_groups_of_terms(
    dtype: str, shapes: tuple[tuple[int, ...], ...], options: dict[str, object], knobs: dict[str, int]
) -> None:
    wide = {"out_dtype": "int32"} if dtype == "int8" else {}
    module = product("nn.conv2d", dtype, *shapes, **options, **wide)
    new = TileContractions(DOTS, Knobs(**knobs))(module)
    assert "dot_product" in new.script()
    same_bits(module, new, *(random(dtype, *shape) for shape in shapes))


def test_constant_weights_of_one_position_go_through_groups_of_terms() -> None:
    """A convolution of 1x1: what follows the terms in its weights are axes of one element."""
    w = random("int8", 64, 64, 1, 1)
    text = """
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((1, 64, 56, 56), "int8"), w: R.Tensor((64, 64, 1, 1), "int8")):
            y = R.nn.conv2d(x, w, out_dtype="int32")
            return y
    """
    read = weft.parse(dedent(text))
    assert isinstance(read, IRModule)
    module = BindParams("main", {"w": w})(read)
    scheduled = TileContractions(DOTS, Knobs(pack_from=1))(weft.lower(module, "llvm", stop="fuse"))
    assert "dot_product" in scheduled.script()
    x = random("int8", 1, 64, 56, 56)
    expected = np.einsum("nchw,oc->nohw", x.astype("int32"), w[:, :, 0, 0].astype("int32"))
    np.testing.assert_array_equal(weft.compile(module)["main"](x), expected)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [("R.matmul(x, w", ((9, 80), (80, 8))), ("R.nn.conv2d(x, w", ((1, 8, 9, 10), (20, 8, 2, 2)))],
)
def test_integer_sums_become_floats_and_integers_again_in_their_tiles(op: str, shapes: list[tuple[int, ...]]) -> None:
    """A kernel for all of it, and the bits of the interpreter."""
    text = f"""
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor({shapes[0]}, "int8"), w: R.Tensor({shapes[1]}, "int8")):
            y = R.astype({op}, out_dtype="int32"), "float32")
            return R.quantize(R.add(y, 1.5), 700.0, -3)
    """
    module = weft.parse(dedent(text))
    assert isinstance(module, IRModule)
    arrays = [random("int8", *shape) for shape in shapes]
    executable = weft.compile(module)
    np.testing.assert_array_equal(executable["main"](*arrays), weft.interpret(module)["main"](*arrays))
    assert "astype_add_quantize: fusion" in str(executable.explain())
