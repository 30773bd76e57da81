"""Contractions by instructions over matrices: when they are taken, and that the loops say what they do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import WITHOUT_MATRICES, convolution, expected

import weft
from weft.codegen.backends.llvm.machine.host_target import scheduled_machine
from weft.ir import AllocBuffer, IRModule, Node, PrimFunc, walk
from weft.ir.tensor import MATRIX_TILES, AttrStmt, For
from weft.runtime.device.host import host
from weft.target import MachineModel, Target
from weft.transform import BindParams, Knobs, TileContractions
from weft.transform.infra.decisions import decisions_of

MACHINE = MachineModel(512, 32, dot_features=("amx-bf16", "amx-int8", "avx512vnni"))
KINDS = (("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8"), ("bfloat16", "bfloat16"))
NAMES = ("tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud", "tdpbf16ps")


TEXT = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def kernel(x_: T.handle, w: T.Buffer((K, COLUMNS), "KW"), y_: T.handle):
        n = T.int64()
        x = T.match_buffer(x_, (ROWS, K), "KX")
        y = T.match_buffer(y_, (ROWS, COLUMNS), "KY")
        for i, j, k in T.grid(ROWS, COLUMNS, K):
            with T.block("sum"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = ZERO
                y[vi, vj] = y[vi, vj] + T.Cast("KY", x[vi, vk]) * T.Cast("KY", w[vk, vj])

    @R.function
    def main(x: R.Tensor(("ROWS", K), "KX"), w: R.Tensor((K, COLUMNS), "KW")):
        y = R.call_tir(M.kernel, (x, w), out_ty=R.Tensor(("ROWS", COLUMNS), "KY"))
        return y
"""


def matmul(kinds: tuple[str, str], rows: int | str, k: int, columns: int, w: np.ndarray | None = None) -> IRModule:
    text = TEXT if isinstance(rows, str) else TEXT.replace('"ROWS"', "ROWS").replace("n = T.int64()", "pass")
    wide = "float32" if kinds[0] == "bfloat16" else "int32"
    for name, value in (
        ("ROWS", rows),
        ("KX", kinds[0]),
        ("KW", kinds[1]),
        ("KY", wide),
        ("ZERO", "0.0" if wide == "float32" else "0"),
        ("COLUMNS", columns),
    ):
        text = text.replace(name, str(value))
    module = weft.parse(text.replace("K)", f"{k})").replace("(K,", f"({k},"))
    assert isinstance(module, IRModule)
    return module if w is None else BindParams("main", {"w": w})(module)


def array(dtype: str, *shape: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    if dtype == "bfloat16":
        return generator.standard_normal(shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def walk_all(module: IRModule) -> Iterator[Node]:
    return (part for function in module.functions.values() for part in walk(function))


def scheduled(module: IRModule, **knobs: int) -> IRModule:
    return TileContractions(MACHINE, Knobs(**knobs))(weft.lower(module, "llvm", stop="fuse"))


def instruction(module: IRModule) -> object:
    functions = (f for f in module.functions.values() if isinstance(f, PrimFunc))
    (found,) = (item.values.get("instruction") for f in functions for item in decisions_of(f) if item.kind == "gemm")
    return found


@pytest.mark.parametrize(("kinds", "name"), list(zip(KINDS, NAMES, strict=True)))
def test_the_instruction_follows_from_the_types(kinds: tuple[str, str], name: str) -> None:
    assert instruction(scheduled(matmul(kinds, 64, 256, 64))) == name
    assert instruction(scheduled(matmul(kinds, "n", 256, 64))) == name


@pytest.mark.parametrize("sizes", [(15, 256, 64), (64, 64, 64), (64, 256, 15)])
def test_what_fills_no_matrices_goes_through_vectors(sizes: tuple[int, int, int]) -> None:
    assert "matrix_tiles" not in scheduled(matmul(KINDS[0], *sizes)).script()


WINDOWS = [
    (("n", 64, 14, 14), (32, 64, 3, 3), {"padding": 1}),
    ((1, 128, 28, 28), (64, 128, 1, 1), {}),
    ((1, 128, 28, 28), (64, 128, 1, 1), {"strides": 2}),
    ((2, 3, 32, 32), (32, 3, 7, 7), {"padding": 3, "strides": 2}),
    ((1, 64, 10, 16), (64, 32, 3, 3), {"groups": 2}),
]


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
@pytest.mark.parametrize(("x", "w", "options"), WINDOWS)
def test_windows_are_products_of_matrices(
    x: tuple[int | str, ...], w: tuple[int, ...], options: dict[str, Any], dtype: str
) -> None:
    wide = {"out_dtype": "'int32'"} if dtype == "int8" else {}
    module = convolution(x, w, dtype, **options, **wide)
    if dtype == "bfloat16":  # whether weights are constants or not
        module = BindParams("main", {"w": array(dtype, *w)})(module)
    assert instruction(scheduled(module)) == ("tdpbssd" if dtype == "int8" else "tdpbf16ps")


@pytest.mark.parametrize(
    ("x", "w", "options"), [((1, 130, 4, 5), (16, 130, 1, 1), {}), ((1, 17, 6, 7), (17, 17, 3, 3), {})]
)
def test_loops_over_windows_say_what_the_instruction_does(
    x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any]
) -> None:
    module = convolution(x, w, "int8", **options, out_dtype="'int32'")
    new = scheduled(module)
    assert "matrix_tiles" in new.script()
    assert weft.verify(new) == []
    data, weights = array("int8", *x), array("int8", *w)
    np.testing.assert_array_equal(
        weft.interpret(new)["main"](data, weights), weft.interpret(module)["main"](data, weights)
    )


@settings(max_examples=3, deadline=None)
@example((1, 64, 9, 11), 33, (1, 1), 1, 0, 1, "bfloat16")
@example((3, 70, 7, 7), 40, (3, 3), 1, 1, 1, "int8")
@example((2, 67, 12, 9), 16, (3, 2), 2, 1, 2, "bfloat16")
@example((2, 20, 7, 9), 32, (5, 5), 1, 1, 1, "int8")  # one block of k is less than whole steps are
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 140), st.integers(5, 20), st.integers(5, 20)),
    st.integers(16, 70),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 2),
    st.sampled_from(["int8", "bfloat16"]),
)
def test_compiled_windows_are_exact(
    x: tuple[int, ...], rows: int, window: tuple[int, int], strides: int, padding: int, dilation: int, dtype: str
) -> None:
    """Whatever is left of rows, columns and k, for a number of images that a call says; values are small integers."""
    data, weights = array("int8", *x), array("int8", rows, x[1], *window)
    if dtype == "bfloat16":
        data, weights = ((item // 32).astype(ml_dtypes.bfloat16) for item in (data, weights))
    wide = "'float32'" if dtype == "bfloat16" else "'int32'"
    options = {"strides": strides, "padding": padding, "dilation": dilation, "out_dtype": wide}
    module = convolution(("n", *x[1:]), weights.shape, dtype, **options)
    wanted = expected(data, weights, (strides,) * 2, (padding,) * 2, (dilation,) * 2)
    np.testing.assert_array_equal(weft.compile(module)["main"](data, weights), wanted)


@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[4]])
def test_few_rows_of_a_symbolic_number_have_tiles_that_registers_have_room_for(kinds: tuple[str, str]) -> None:
    """The form that few rows take goes through vectors: 2 rows took 2 to 4 times as long in tiles of 32."""
    (kernel,) = (f for f in scheduled(matmul(kinds, "n", 256, 64)).functions.values() if isinstance(f, PrimFunc))
    parts = list(walk(kernel))
    assert any(isinstance(part, AttrStmt) and part.key == MATRIX_TILES for part in parts)
    local = [part.buffer for part in parts if isinstance(part, AllocBuffer) and part.buffer.scope == "local"]
    sizes = [buffer.shape[0] for buffer in local if buffer.dtype in ("int32", "float32")]
    assert sizes
    assert all(isinstance(size, int) and size <= 32 * 16 for size in sizes)


def test_a_tile_of_other_sizes_than_those_of_matrices_is_one_of_vectors() -> None:
    module = weft.lower(matmul(KINDS[0], 64, 256, 64), "llvm", stop="fuse")
    text = TileContractions(MACHINE, Knobs())(module).script()
    assert 'mr": 32' in text
    narrow = MachineModel(256, 16, dot_features=MACHINE.dot_features)
    assert "matrix_tiles" not in TileContractions(narrow, Knobs())(module).script()


@pytest.mark.parametrize(
    ("kinds", "rows", "shape", "knobs"),
    [
        (KINDS[4], 17, (70, 18), {"pack_from": 1}),
        (KINDS[0], "n", (130, 17), {"kc": 64, "pack_from": 1}),
    ],
)
def test_loops_say_what_the_instruction_does(
    kinds: tuple[str, str], rows: int | str, shape: tuple[int, int], knobs: dict[str, int]
) -> None:
    """The interpreter adds up in the order of k, so results have the same bits."""
    module = matmul(kinds, rows, *shape)
    new = scheduled(module, **knobs)
    assert "matrix_tiles" in new.script()
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    x, w = array(kinds[0], 17, shape[0]), array(kinds[1], *shape)
    np.testing.assert_array_equal(weft.interpret(new)["main"](x, w), weft.interpret(module)["main"](x, w))


@pytest.mark.parametrize(("kinds", "rows"), [(KINDS[0], 100), (KINDS[4], "n")])
def test_panels_larger_than_the_first_cache_meet_rows_part_by_part(kinds: tuple[str, str], rows: int | str) -> None:
    """The sums of several tiles go on from part to part, whatever is left of rows, columns and k."""
    module = matmul(kinds, rows, 900, 70)
    new = scheduled(module, kc=4096)
    assert any(isinstance(part, For) and part.loop_var.name.startswith("part") for part in walk_all(new))
    assert weft.verify(new) == []
    x, w = array(kinds[0], 100, 900), array(kinds[1], 900, 70)
    if kinds[0] == "bfloat16":
        x, w = (np.round(item.astype("float32")).astype(ml_dtypes.bfloat16) for item in (x, w))
    wide = "float32" if kinds[0] == "bfloat16" else "int32"
    for target in ("llvm", "llvm" + WITHOUT_MATRICES):
        np.testing.assert_array_equal(weft.compile(new, target)["main"](x, w), x.astype(wide) @ w.astype(wide))


@pytest.mark.parametrize(
    ("rows", "k", "columns"), [(300, 2304, 70), ("n", 2304, 70), (530, 2304, 300), (300, 2309, 70)]
)
def test_partial_sums_of_a_block_are_those_of_all_its_rows(rows: int | str, k: int, columns: int) -> None:
    """Rows met part by part had the place of the first ones, where blocks of k follow one another.

    Matrices of sums go to memory as they are and back, except where blocks are of several sizes.
    """
    shape = f'"{rows}"' if isinstance(rows, str) else rows
    text = f"""
from weft.script import ir as I, relax as R


@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(({shape}, {k}), "bfloat16"), w: R.Tensor(({k}, {columns}), "bfloat16")):
        return R.matmul(x, w)
"""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    new = scheduled(module)
    made = {part.buffer.name for part in walk_all(new) if isinstance(part, AllocBuffer)}
    assert "partial_sums" in made
    assert ("sums" in made) is (k == 2309)
    assert weft.verify(new) == []
    count = rows if isinstance(rows, int) else 300
    x, w = (np.round(array("bfloat16", *s).astype("float32")) for s in ((count, k), (k, columns)))
    for threads in (1, 2):
        exe = weft.compile(module, Target(f"llvm -threads={threads}"))
        got = exe["main"](x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16))
        np.testing.assert_array_equal(got, (x @ w).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(("rows", "k", "is_shared"), [(17, 1000, True), (70, 256, True), (600, 2304, False)])
def test_threads_share_blocks_of_columns_that_go_through_all_of_k(rows: int, k: int, is_shared: bool) -> None:
    """Few rows: one parallel loop around the blocks of k, the last of which may be shorter, and none inside of them."""
    text = f"""
from weft.script import ir as I, relax as R


@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(({rows}, {k}), "bfloat16"), w: R.Tensor(({k}, 1024), "bfloat16")):
        return R.nn.relu(R.matmul(x, w))
"""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    new = scheduled(module)
    assert ('"blocks of columns"' in new.script()) is is_shared
    assert weft.verify(new) == []
    x, w = (np.round(array("bfloat16", *s).astype("float32")) for s in ((rows, k), (k, 1024)))
    wanted = np.maximum(x @ w, 0).astype(ml_dtypes.bfloat16)
    for threads in (1, 2):
        exe = weft.compile(module, Target(f"llvm -threads={threads}"))
        got = exe["main"](x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16))
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("options", "cores"), [("", 0), ("-threads=1", 1), ("-threads=2", 0)])
def test_code_of_one_thread_is_scheduled_for_one_core(options: str, cores: int) -> None:
    """Blocks of columns that threads share are shorter runs of memory: one thread reads them slower."""
    assert scheduled_machine(Target(f"llvm {options}")).cores == cores


@pytest.mark.parametrize(("kinds", "k", "columns"), [(KINDS[4], 512, 70), (KINDS[0], 1024, 300)])
def test_all_panels_of_some_rows_are_packed_before_the_next_rows(kinds: tuple[str, str], k: int, columns: int) -> None:
    """For tiles of rows that threads share, and for panels that several blocks of rows meet."""
    module = matmul(kinds, 200, k, columns)
    assert any(isinstance(part, For) and part.loop_var.name == "run" for part in walk_all(scheduled(module)))
    x, w = array(kinds[0], 200, k), array(kinds[1], k, columns)
    if kinds[0] == "bfloat16":
        x, w = (np.round(item.astype("float32")).astype(ml_dtypes.bfloat16) for item in (x, w))
    wide = "float32" if kinds[0] == "bfloat16" else "int32"
    np.testing.assert_array_equal(weft.compile(module)["main"](x, w), x.astype(wide) @ w.astype(wide))


SIZES = [(37, 150, 45), (100, 700, 133)]


@pytest.mark.parametrize(
    ("kinds", "is_constant"), [*((kinds, False) for kinds in KINDS), (KINDS[0], True), (KINDS[4], True)]
)
def test_compiled_sums_are_exact(kinds: tuple[str, str], is_constant: bool) -> None:
    """By matrices where this machine has them, by what it has elsewhere: integers, which floats of any order hold."""
    for rows, k, columns in SIZES:
        x, w = array(kinds[0], rows, k), array(kinds[1], k, columns)
        if kinds[0] == "bfloat16":
            x, w = (np.round(item.astype("float32")).astype(ml_dtypes.bfloat16) for item in (x, w))
        wide = "float32" if kinds[0] == "bfloat16" else "int32"
        expected = x.astype(wide) @ w.astype(wide)
        exe = weft.compile(matmul(kinds, "n", k, columns, w=w if is_constant else None))
        for count in (rows, 1):
            got = exe["main"](x[:count]) if is_constant else exe["main"](x[:count], w)
            np.testing.assert_array_equal(got, expected[:count])


def test_a_machine_without_matrices_does_what_the_loops_say() -> None:
    """A schedule that was made for another machine runs everywhere."""
    module = matmul(KINDS[2], 40, 200, 50)
    x, w = array("uint8", 40, 200), array("int8", 200, 50)
    new = scheduled(module)
    assert "matrix_tiles" in new.script()
    matrices = [name for name, has in host().features.items() if has and name.startswith("amx-")]
    target = Target({"kind": "llvm", "mattr": ["-amx-tile"]} if matrices else {"kind": "llvm"})
    np.testing.assert_array_equal(weft.compile(new, target)["main"](x, w), x.astype("int32") @ w.astype("int32"))


@pytest.mark.skipif(not host().features.get("amx-bf16"), reason="the processor has no matrices, or the system refuses")
def test_this_machine_takes_matrices_in_threads_and_beside_other_code() -> None:
    """The system is asked once for the process; each thread says itself what its matrices are."""
    w = array("bfloat16", 512, 512)
    for threads in (1, 2):
        exe = weft.compile(matmul(KINDS[4], "n", 512, 512, w=w), Target(f"llvm -threads={threads}"))
        assert "tdpbf16ps" in str(exe.explain())
        x = array("bfloat16", 300, 512)
        expected = x.astype("float64") @ w.astype("float64")
        error = np.abs(exe["main"](x).astype("float64") - expected)
        assert np.all(error <= np.abs(expected) * 2.0**-20 + 2.0**-16)


@pytest.mark.skipif(not host().features.get("amx-bf16"), reason="the processor has no matrices, or the system refuses")
def test_threads_share_products_of_matrices() -> None:
    """What instructions over matrices do counts as work, which is most of that of one tile of rows."""
    exe = weft.compile(matmul(KINDS[4], 16, 4096, 512, w=array("bfloat16", 4096, 512)))
    x = array("bfloat16", 16, 4096)
    child = os.fork()  # which has no other threads yet
    if child == 0:
        try:
            weft.set_num_threads(2)
            exe["main"](x)
            os._exit(0 if len(os.listdir("/proc/self/task")) == 2 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not host().features.get("amx-bf16"), reason="the processor has no matrices, or the system refuses")
def test_subnormal_numbers_are_zeros() -> None:
    x = np.full((16, 64), 2.0**-130, ml_dtypes.bfloat16)
    w = np.full((64, 16), 2.0**10, ml_dtypes.bfloat16)
    got = weft.compile(matmul(KINDS[4], 16, 64, 16, w=w))["main"](x)
    np.testing.assert_array_equal(got, np.zeros((16, 16), "float32"))
