"""VectorizeNests: the same values from explicit vectors, for every size."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.errors import BoundsError
from weft.ir import For, IRModule, PrimFunc, TensorType, Var, walk
from weft.ir.builder import BlockBuilder
from weft.ir.dim import Dim, symbol
from weft.ir.op import get_op
from weft.ir.tensor import AllocBuffer, AssertStmt, AttrStmt, Binary, BufferStore, IfThenElse, PrimCall, SeqStmt
from weft.script import tir as T
from weft.target.machine_model import MachineModel
from weft.transform import CheckBounds, LegalizeOps, VectorizeNests
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.decisions import decisions_of

N, M = symbol("n"), symbol("m")


def legalized(name: str, *shapes: tuple[Dim, ...], dtype: str = "float32", **options: object) -> IRModule:
    params = [Var(f"x{i}", TensorType(shape, dtype)) for i, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(get_op(name).bind(params, options, None)))
    return LegalizeOps()(builder.get())


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return values.astype(dtype) if dtype.startswith("float") else (9 * values).astype(dtype)


def check(module: IRModule, *arrays: np.ndarray, bits: int = 128) -> IRModule:
    """Vectorise a module and compare it with itself before: by the interpreter, and compiled.

    Sums along rows run in another order: 1e-5 relative to the greatest value covers a few hundred float32 terms.
    """
    new = VectorizeNests(MachineModel(vector_bits=bits))(module)
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    want = weft.interpret(module)["main"](*arrays)
    compiled = weft.compile(module, pipeline=VectorizeNests(MachineModel(vector_bits=bits)))["main"](*arrays)
    for got in (weft.interpret(new)["main"](*arrays), compiled):
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
            assert a.dtype == b.dtype
            scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=1))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * scale)
    return new


def has_vectors(module: IRModule) -> bool:
    return any(isinstance(part, For) and part.kind == "vectorized" for _, f in module.items() for part in walk(f))


SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 15, 16, 17, 33, 70])


@settings(max_examples=12, deadline=None)
@given(SIZES, SIZES, st.booleans(), st.sampled_from([128, 256, 512]), st.sampled_from(["sum", "max", "min", "prod"]))
def test_reductions_along_rows_of_any_length(rows: int, length: int, symbolic: bool, bits: int, name: str) -> None:
    if length == 0 and name in ("max", "min"):
        return  # refused when the shapes are known, an error of the kernel otherwise
    module = legalized(name, (N, M) if symbolic else (rows, length), axis=[1])
    check(module, random(rows, length), bits=bits)


@settings(max_examples=12, deadline=None)
@given(SIZES, SIZES, st.booleans(), st.sampled_from([128, 512]), st.sampled_from(["sum", "max"]))
def test_reductions_down_columns_of_any_number(rows: int, columns: int, symbolic: bool, bits: int, name: str) -> None:
    if rows == 0 and name == "max":
        return
    module = legalized(name, (N, M) if symbolic else (rows, columns), axis=[0])
    check(module, random(rows, columns), bits=bits)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shape", [(8, 512), (19, 1100), (40, 700)])
def test_long_rows_are_summed_a_few_at_a_time(shape: tuple[int, int], symbolic: bool) -> None:
    """The columns of one tile stay in the cache; rows that are left over follow one by one."""
    for name in ("sum", "max"):
        check(legalized(name, (N, M) if symbolic else shape, axis=[0]), random(*shape), bits=512)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([(128,), (300,), (2, 130), (129, 20), (5, 3, 140)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["sum", "max"]),
)
def test_large_reductions_to_few_results_in_parts(
    shape: tuple[int, ...], symbolic: bool, whole: bool, name: str
) -> None:
    """What the parts leave over is joined too; the number of parts is the same for every size."""
    sizes = tuple(symbol(f"n{i}") for i in range(len(shape))) if symbolic else shape
    module = legalized(name, sizes, axis=None if whole else [0])
    new = VectorizeNests(MachineModel(vector_bits=512), Knobs(split_from=100))(module)
    x = random(*shape)
    x.flat[7] = 50
    want = x.astype("float64").sum(None if whole else 0) if name == "sum" else x.max(None if whole else 0)
    for y in (weft.compile(new)["main"](x), weft.interpret(new)["main"](x)):
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-4)
    parts = [part.buffer.shape[0] for _, f in new.items() for part in walk(f) if isinstance(part, AllocBuffer)]
    few = whole or len(shape) == 1 or not symbolic  # results whose number is not known are not cut
    assert (17 in parts) == (few and (whole or shape[0] >= 128)), new.script()


@pytest.mark.parametrize(
    ("rows", "in_parts"), [((), True), ((1,), True), ((16,), False), ((N,), False), ((2, N), False)]
)
def test_rows_that_nests_share_are_results_of_each_reduction(rows: tuple[Dim, ...], in_parts: bool) -> None:
    """A softmax of many rows, or of an unknown number, has enough results, however long its rows may be."""
    module = legalized("nn.softmax", (*rows, M), axis=-1)
    new = VectorizeNests(MachineModel(vector_bits=512))(module)
    parts = [part.buffer.shape[:1] for _, f in new.items() for part in walk(f) if isinstance(part, AllocBuffer)]
    assert ((17,) in parts) == in_parts


def with_extremes(values: np.ndarray) -> list[np.ndarray]:
    """Arrays like the given one: with ties, with nan, with nothing but the worst value, with nan among infinities."""
    few = np.round(values)
    if values.dtype.kind != "f":
        return [few, np.full_like(values, np.iinfo(values.dtype).min)]
    holes = np.where(few > 1, np.float32("nan"), values).astype(values.dtype)
    return [few, holes, np.full_like(values, -np.inf), np.where(few > 0, np.nan, -np.inf).astype(values.dtype)]


@settings(max_examples=7, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 9]),
    st.sampled_from([1, 2, 15, 33, 70, 130]),
    st.booleans(),
    st.sampled_from([128, 256, 512]),
    st.sampled_from(["argmax", "argmin"]),
    st.sampled_from([0, 1, None]),
    st.sampled_from(["float32", "float64", "int32", "int8"]),
)
def test_positions_of_extremes(
    rows: int, columns: int, symbolic: bool, bits: int, name: str, axis: int | None, dtype: str
) -> None:
    """The first of equal ones, the first nan if there is one."""
    module = legalized(name, (N, M) if symbolic else (rows, columns), axis=axis, dtype=dtype)
    new = VectorizeNests(MachineModel(vector_bits=bits))(module)
    for x in with_extremes(random(rows, columns, dtype=dtype)):
        check(module, x, bits=bits)
        np.testing.assert_array_equal(weft.compile(new)["main"](x), getattr(np, name)(x, axis=axis))
    long = columns if axis != 0 or columns > 1 else rows
    assert has_vectors(new) or long < 2 or (bits == 128 and dtype == "float64")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("dims", [(M,), (3, M), (3, 1000)], ids=str)
def test_chunks_and_groups_of_a_row_keep_the_first_of_equal_extremes(dims: tuple[Dim, ...], dtype: str) -> None:
    module = legalized("argmax", dims, axis=len(dims) - 1, dtype=dtype)
    new = VectorizeNests(MachineModel(vector_bits=512), Knobs(split_from=600, chunks=5))(module)
    assert all(text in new.script() for text in ("chunks", "group"))
    run = weft.compile(new)["main"]
    for size in (1, 63, 599, 600, 9000) if M in dims else (1000,):
        for x in with_extremes(random(3, size, dtype=dtype)):
            given = x if len(dims) == 2 else x[0].copy()
            np.testing.assert_array_equal(run(given), np.argmax(given, -1))
            few = np.round(given / 64).astype(dtype)
            np.testing.assert_array_equal(run(few), np.argmax(few, -1))


@pytest.mark.parametrize(("size", "count"), [(7, 9), (N, M), (N, 9)], ids=str)
def test_an_index_that_is_used_once_is_checked_where_it_is_used(size: Dim, count: Dim) -> None:
    x, i = Var("x", TensorType((size,), "float32")), Var("i", TensorType((count,), "int64"))
    builder = BlockBuilder()
    with builder.function("main", [x, i]):
        builder.emit_func_output(builder.emit(get_op("take").bind([x, i], {"axis": 0}, None)))
    new = VectorizeNests()(LegalizeOps()(builder.get()))
    kernel = next(f for _, f in new.items() if isinstance(f, PrimFunc))
    assert len([part for part in walk(kernel.body) if isinstance(part, For)]) == 1
    data, places = np.arange(7, dtype="float32"), np.arange(9) - 4
    for module in (new, CheckBounds()(new)):
        np.testing.assert_array_equal(weft.interpret(module)["main"](data, places % 7), data[places % 7])
        for run in (weft.compile(module)["main"], weft.interpret(module)["main"]):
            np.testing.assert_array_equal(run(data, np.minimum(places, 6)), data[np.minimum(places, 6)])
            for wrong in (7, -8):
                with pytest.raises(BoundsError, match="index out of range"):
                    run(data, np.append(places[:8], wrong))


def test_an_index_of_many_rows_is_checked_before_them() -> None:
    x, i = Var("x", TensorType((5, 7), "float32")), Var("i", TensorType((9,), "int64"))
    builder = BlockBuilder()
    with builder.function("main", [x, i]):
        builder.emit_func_output(builder.emit(get_op("take").bind([x, i], {"axis": 1}, None)))
    assert '"form": "before"' in VectorizeNests()(LegalizeOps()(builder.get())).script()


def test_a_reduction_of_pairs_that_keeps_something_else_stays_as_it_is() -> None:
    @T.prim_func
    def last(x: T.Buffer((4, 64), "float32"), p: T.Buffer((4,), "int64"), v: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 64):
            with T.block("last"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    p[vi] = T.int64(0)
                    v[vi] = T.float32("-inf")
                a: T.let = T.Select(v[vi] > x[vi, vk], p[vi], T.Cast("int64", vk))
                b: T.let = T.Select(v[vi] > x[vi, vk], v[vi], x[vi, vk])
                p[vi] = a
                v[vi] = b

    module = IRModule({"last": last})
    assert not has_vectors(VectorizeNests(MachineModel(vector_bits=512))(module))


@settings(max_examples=10, deadline=None)
@given(SIZES, st.sampled_from([1, 2, 5, 16, 37]), st.booleans(), st.sampled_from([128, 512]), st.booleans())
def test_softmax_of_any_size(rows: int, length: int, symbolic: bool, bits: int, first: bool) -> None:
    module = legalized("nn.softmax", (N, M) if symbolic else (rows, length), axis=0 if first and rows else 1)
    new = check(module, random(rows, length), bits=bits)
    if rows > 1 and length > 2:
        assert has_vectors(new)


@pytest.mark.parametrize("name", ["any", "all"])
def test_whether_any_or_all_is_true_is_found_in_lanes_of_bytes(name: str) -> None:
    module = legalized(name, (N, M), axis=1, dtype="bool")
    for shape in ((0, 3), (3, 0), (4, 1), (5, 150)):
        x = np.zeros(shape, "bool") if name == "any" else np.ones(shape, "bool")
        x[-2:, -1:] = name == "any"
        new = check(module, x, bits=256)
        np.testing.assert_array_equal(weft.compile(module)["main"](x), getattr(np, name)(x, axis=1))
    kernels = (item for item in new.functions.values() if isinstance(item, PrimFunc))
    made = [item for kernel in kernels for item in decisions_of(kernel) if item.kind == "reduction"]
    assert [item.values["lanes"] for item in made] == [32]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint8", "float16"])
def test_every_dtype_has_its_lanes(dtype: str) -> None:
    for name, options in (("add", {}), ("maximum", {})):
        new = check(legalized(name, (3, 37), (3, 37), dtype=dtype, **options), *(random(3, 37, dtype=dtype),) * 2)
        assert has_vectors(new)
    check(legalized("max", (3, 37), dtype=dtype, axis=[1]), random(3, 37, dtype=dtype))


def test_rows_that_nests_hand_on_stay_small() -> None:
    """Softmax keeps no copy of its input, and what it keeps has one row's size."""
    new = check(legalized("nn.softmax", (N, 40)), random(5, 40), bits=512)
    kernel = next(f for _, f in new.items() if isinstance(f, PrimFunc))
    buffers = [part.buffer for part in walk(kernel) if isinstance(part, AllocBuffer)]
    assert buffers
    assert all(isinstance(extent, int) and extent <= 64 for buffer in buffers for extent in buffer.shape)


@pytest.mark.parametrize("shape", [(3, 20), (0, 20), (1, 1), (7, 33)])
@pytest.mark.parametrize("name", ["nn.layer_norm", "nn.rms_norm", "variance", "nn.log_softmax"])
def test_norms_with_symbolic_rows(name: str, shape: tuple[int, int]) -> None:
    weights = {"nn.layer_norm": 2, "nn.rms_norm": 1}.get(name, 0)
    options = {"variance": {"axis": [1]}, "nn.log_softmax": {}}.get(name, {"axes": -1})
    module = legalized(name, (N, shape[1]), *[(shape[1],)] * weights, **options)
    check(module, random(*shape), *[random(shape[1])] * weights, bits=256)
    if not weights and 0 not in shape:
        check(legalized(name, (N, M), **options), random(*shape), bits=256)


@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("name", ["nn.max_pool2d", "nn.avg_pool2d"])
def test_pooling(name: str, strides: int) -> None:
    module = legalized(name, (2, 3, 11, 23), pool_size=[3, 3], strides=[strides] * 2, padding=[1, 1])
    check(module, random(2, 3, 11, 23))


@pytest.mark.parametrize("strides", [1, 2])
def test_means_of_windows_are_vectors_of_results(strides: int) -> None:
    """Windows move along memory: what is done to a sum next shares the loops around the rows, not those along them."""
    options = {"pool_size": [3, 3], "strides": [strides] * 2, "padding": [1, 1], "count_include_pad": False}
    new = check(legalized("nn.avg_pool2d", (N, 3, 7, 37), **options), random(2, 3, 7, 37))
    (kernel,) = (function for _, function in new.items() if isinstance(function, PrimFunc))
    (decision,) = (item for item in kernel.attrs["decisions"] if item["kind"] == "reduction")
    assert decision["form"] == "columns"


@pytest.mark.parametrize(("strides", "width", "padding"), [(2, 23, 1), (1, 14, 2)])
def test_what_lies_beside_the_input_is_known_of_most_vectors(strides: int, width: int, padding: int) -> None:
    """Padded rows are left out by one condition, and padded columns are masks of few vectors, which are constants."""
    options: dict[str, Any] = {"pool_size": [5, 5], "strides": [strides] * 2, "padding": [padding] * 2}
    data = random(1, 1, 5, width)
    data[0, 0, 0, 0], data[0, 0, 4] = np.nan, -np.inf
    check(legalized("nn.max_pool2d", (N, 1, M, width), **options), data)
    new = check(legalized("nn.max_pool2d", (N, 1, 5, width), **options), data)
    (kernel,) = (function for _, function in new.items() if isinstance(function, PrimFunc))
    assert any(isinstance(part, IfThenElse) and isinstance(part.then_body, SeqStmt) for part in walk(kernel))
    terms = [part.value for part in walk(kernel) if isinstance(part, BufferStore) and isinstance(part.value, Binary)]
    plain = [term for term in terms if not any(isinstance(part, PrimCall) for part in walk(term))]
    assert len(terms) % 5 == 0
    assert len(plain) >= 4


def test_scheduled_kernels_are_left_alone() -> None:
    module = legalized("add", (4, 32), (4, 32))
    marked = module.with_functions(
        {k: f.with_attr("tir.is_scheduled", True) if isinstance(f, PrimFunc) else f for k, f in module.items()}
    )
    assert VectorizeNests()(marked) is marked


@pytest.mark.parametrize("axes", [(1, 0), (0, 1)])
def test_permuted_axes(axes: tuple[int, int]) -> None:
    check(legalized("permute_dims", (N, 19), axes=axes), random(6, 19))


@settings(max_examples=12, deadline=None)
@given(SIZES, SIZES, st.booleans(), st.sampled_from(["float32", "float64", "int8", "int32"]))
def test_transposes_of_any_size(rows: int, columns: int, symbolic: bool, dtype: str) -> None:
    shape = (2, N, M) if symbolic else (2, rows, columns)
    module = legalized("permute_dims", shape, axes=(0, 2, 1), dtype=dtype)
    new = check(module, random(2, rows, columns, dtype=dtype))
    if min(rows, columns) >= 16:
        assert "Shuffle" in new.script()


@T.prim_func
def binding(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[i] = T.Let(v * v, where={v: x[i] + T.float32(1)})


def test_a_value_that_binds_a_variable_is_not_copied() -> None:
    module = IRModule({"main": binding})
    assert VectorizeNests()(module) is module


GATHER = """
from weft.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(x: T.Buffer(("r", "m"), "float32"), i: T.Buffer(("n",), "int64"), y: T.Buffer(("n", "m"), "float32")):
        for a in range(n):
            for b in range(m):
                with T.block("row"):
                    va, vb = T.axis.remap("SS", [a, b])
                    y[va, vb] = x[i[va], vb] * T.float32(2)
"""


def checked(text: str) -> IRModule:
    """The module of a text with its assertions."""
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    return CheckBounds()(module)


@settings(max_examples=6, deadline=None)
@given(SIZES, SIZES, st.sampled_from([128, 256, 512]), st.sampled_from(["float32", "int8"]))
def test_rows_chosen_by_numbers(rows: int, length: int, bits: int, dtype: str) -> None:
    module = checked(GATHER.replace("float32(2)", f"{dtype}(2)").replace('"float32"', f'"{dtype}"'))
    new = VectorizeNests(MachineModel(vector_bits=bits))(module)
    weft.assert_structural_equal(weft.parse(new.script()), new)
    x = random(9, length, dtype=dtype)
    index = np.random.default_rng(rows).integers(0, 9, rows)
    compiled = weft.compile(module, pipeline=VectorizeNests(MachineModel(vector_bits=bits)))
    for run in (weft.interpret(new)["main"], compiled["main"]):
        y = np.zeros((rows, length), dtype)
        run(x, index, y)
        np.testing.assert_array_equal(y, (x[index] * 2).astype(dtype))


def test_assertions_about_rows_come_before_them_and_later_rows_are_asked_for() -> None:
    new = VectorizeNests()(checked(GATHER))
    (outer,) = [part for part in walk(new["main"]) if isinstance(part, For) and part.loop_var.name == "a"]
    assert isinstance(outer.body, SeqStmt)
    first, *rest = outer.body.stmts
    assert isinstance(first, AssertStmt)
    assert [part.key for part in rest if isinstance(part, AttrStmt)] == ["prefetch"] * 4
    assert not any(isinstance(part, AssertStmt) for stmt in rest for part in walk(stmt))
    assert has_vectors(new)


def test_wrong_numbers_of_rows_are_found_and_rows_of_no_elements_have_none() -> None:
    compiled = weft.compile(weft.parse(GATHER))["main"]
    index = np.array([0, 1, 5])
    with pytest.raises(weft.BoundsError) as raised:
        compiled(random(4, 3), index, np.zeros((3, 3), "float32"))
    assert "'x'" in raised.value.message
    compiled(random(4, 0), index, np.zeros((3, 0), "float32"))
    weft.interpret(VectorizeNests()(checked(GATHER)))["main"](random(4, 0), index, np.zeros((3, 0), "float32"))


@pytest.mark.parametrize(("length", "lines"), [(2, 0), (15, 0), (16, 1), (40, 3)])
def test_rows_shorter_than_a_cache_line_are_not_prefetched(length: int, lines: int) -> None:
    module = checked(GATHER.replace('"m"', str(length)).replace("(m)", f"({length})"))
    new = VectorizeNests()(module)
    found = [part.key for _, f in new.items() for part in walk(f) if isinstance(part, AttrStmt)]
    assert found == ["prefetch"] * lines
    x, i = random(50, length), np.array([3, 0, 49, 3], "int64")
    y = np.zeros((4, length), "float32")
    weft.compile(module)["main"](x, i, y)
    np.testing.assert_array_equal(y, x[i] * np.float32(2))


def test_rows_are_not_prefetched_where_a_knob_says_so() -> None:
    new = VectorizeNests(knobs=Knobs(gather_ahead=0))(checked(GATHER))
    assert not any(isinstance(part, AttrStmt) for _, f in new.items() for part in walk(f))


def test_assertions_about_elements_stay_where_they_are() -> None:
    text = GATHER.replace("x[i[va], vb]", "x[i[va], i[vb]]").replace('"m"', '"n"').replace("(m)", "(n)")
    module = checked(text)
    assert VectorizeNests()(module) is module


def gathered(dims: str) -> IRModule:
    text = f"""@R.function
def main(x: R.Tensor((2, "m"), "float32"), i: R.Tensor({dims}, "int64")):
    y = R.take(x, i, 1)
    return y
"""
    return LegalizeOps()(IRModule({"main": weft.parse(text)}))  # type: ignore[dict-item]


@functools.cache
def compiled_gather() -> weft.Executable:
    return weft.compile(gathered('("n",)'))


@settings(max_examples=20, deadline=None)
@given(size=st.integers(1, 9), places=st.lists(st.integers(-12, 12), max_size=40))
def test_assertions_about_all_elements_hold_or_name_the_first_that_fails(size: int, places: list[int]) -> None:
    module = gathered('("n",)')
    new = VectorizeNests()(module)
    assert any(isinstance(part, AllocBuffer) for _, f in new.items() for part in walk(f))
    x, i = random(2, size), np.array(places, "int64")
    wrong = [place for place in places if not -size <= place < size]
    for run in (weft.interpret(new)["main"], compiled_gather()["main"]):
        if not wrong:
            np.testing.assert_array_equal(run(x, i), x[:, i])
            continue
        with pytest.raises(weft.BoundsError, match=r"R\.take: index out of range") as caught:
            run(x, i)
        assert re.findall(r"i(?:ndices)?=(-?\d+)", str(caught.value))[:1] in ([], [str(wrong[0])])


def test_an_assertion_that_may_not_be_asked_of_all_elements_is_left_alone() -> None:
    module = weft.parse(
        """@T.prim_func
def f(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
    for i in range(8):
        assert x[i] // y[i] > 0, ("BoundsError", "a quotient is not positive")
"""
    )
    module = module if isinstance(module, IRModule) else IRModule({"f": module})
    assert VectorizeNests()(module) is module


def test_a_sum_of_one_value_again_and_again_keeps_its_digits() -> None:
    """No load moves, so that no axis is better than another: one accumulator would end at 2**24."""
    text = (
        '@R.function\ndef main(x: R.Tensor((1, 1), "float32"), s: R.Tensor(("n",), "float32")):\n'
        "    return R.sum(R.broadcast_to(x, (n, n)))\n"
    )
    total = weft.compile(weft.parse(text))["main"]
    for size in (0, 1, 33, 6000):
        found = total(np.full((1, 1), 1.5, "float32"), np.zeros(size, "float32"))
        assert abs(float(found) - 1.5 * size * size) <= 1e-5 * 1.5 * size * size
