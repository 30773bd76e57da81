"""Products with weights of few bits: tiles convert what they read, and give what the interpreter gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import dtypes
from weft.transform import BindParams, PassContext, run_phases

WIDE, VNNI, AVX2 = "llvm", "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"


def integers(choices: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return choices.integers(low, high + 1, shape).astype(dtypes.array_dtype(dtype))


def text(shape: tuple[int, int], group: int, weight: str, zero: str, *, dynamic: bool, dtype: str, rows: str) -> str:
    size, columns = shape
    groups = size // group if group else 1
    point = {"none": "", "vector": ", z", "number": ", 5"}[zero]
    params = f'x: R.Tensor(({rows}, {size}), "{dtype}"), w: R.Tensor({shape}, "{weight}")'
    params += f', s: R.Tensor(({groups}, {columns}), "float32")'
    params += f', z: R.Tensor(({groups}, {columns}), "{weight}")' if zero == "vector" else ""
    if not dynamic:
        return f"""
@R.function
def main({params}):
    return R.nn.relu(R.matmul_dequantized(x, w, s{point}, group_size={group}))
"""
    return f"""
@R.function
def main({params}):
    q = R.quantize_dynamic(x, group_size={group})
    return R.matmul_dequantized(q[0], w, s{point}, x1_scale=q[1], group_size={group})
"""


def operands(shape: tuple[int, int], group: int, weight: str, zero: str, seed: int = 0) -> dict[str, np.ndarray]:
    choices = np.random.default_rng(seed)
    groups = (shape[0] // group if group else 1, shape[1])
    made = {"w": integers(choices, weight, *shape), "s": choices.uniform(0.01, 0.1, groups).astype("float32")}
    return {**made, "z": integers(choices, weight, *groups)} if zero == "vector" else made


def check(program: str, weights: dict[str, np.ndarray], x: np.ndarray, target: str = "llvm", bound: bool = True) -> str:
    """The decision about the product; what is computed differs by the order of sums at most."""
    module = weft.IRModule({"main": weft.parse(program)})
    want = np.asarray(weft.interpret(module)["main"](x, *weights.values()), "float64")
    module = BindParams("main", weights)(module) if bound else module
    run = weft.compile(module, target)
    got = np.asarray(run["main"](x) if bound else run["main"](x, *weights.values()), "float64")
    eps = {2: 2e-2 if x.dtype != np.float16 else 2e-3}.get(x.dtype.itemsize, 1e-5)
    assert np.abs(got - want).max() <= eps * np.abs(want).max()
    return next((line for line in str(run.explain()).splitlines() if "grouped-gemm" in line), "")


def grouped_decision(module: weft.IRModule) -> dict[str, Any]:
    """What is decided on a processor that has the instruction, with the text of the module."""
    lowered = run_phases(module, "llvm -mcpu=znver4", stop="schedule")
    decisions = [item for function in lowered.functions.values() for item in function.attrs.get("decisions", ())]
    (made,) = [item for item in decisions if item["kind"] == "grouped-gemm"]
    return {**made, "script": lowered.script()}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("weight", "zero"),
    [("uint4", "vector"), ("int4", "number"), ("uint8", "none"), ("int8", "vector"), ("uint2", "number")],
)
def test_products_of_every_width_and_zero_point(weight: str, zero: str, dynamic: bool) -> None:
    """70 columns: a whole panel, and part of one."""
    program = text((64, 70), 16, weight, zero, dynamic=dynamic, dtype="float32", rows="3")
    x = np.random.default_rng(1).normal(size=(3, 64)).astype("float32")
    found = check(program, operands((64, 70), 16, weight, zero), x)
    assert "form=" in found


@pytest.mark.parametrize("dynamic", [False, True])
def test_any_number_of_rows(dynamic: bool) -> None:
    weights = operands((64, 48), 32, "uint4", "number")
    module = weft.IRModule(
        {"main": weft.parse(text((64, 48), 32, "uint4", "number", dynamic=dynamic, dtype="float32", rows='"n"'))}
    )
    interpreted, run = weft.interpret(module)["main"], weft.compile(BindParams("main", weights)(module))["main"]
    for rows in (0, 1, 2, 5, 6, 9, 27):
        x = np.random.default_rng(rows).normal(size=(rows, 64)).astype("float32")
        np.testing.assert_allclose(run(x), interpreted(x, *weights.values()), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_activations_of_short_floats(dtype: str, dynamic: bool) -> None:
    program = text((32, 40), 0, "int8", "none", dynamic=dynamic, dtype=dtype, rows="4")
    x = np.random.default_rng(2).normal(size=(4, 32)).astype(dtypes.array_dtype(dtype))
    assert check(program, operands((32, 40), 0, "int8", "none"), x)


@pytest.mark.parametrize("target", [VNNI, AVX2, "llvm -mcpu=x86-64"])
def test_processors_without_the_instruction_use_floats_or_other_vectors(target: str) -> None:
    program = text((32, 40), 16, "uint4", "vector", dynamic=True, dtype="float32", rows="3")
    x = np.random.default_rng(3).normal(size=(3, 32)).astype("float32")
    assert "form=float" in check(program, operands((32, 40), 16, "uint4", "vector"), x, target)


def test_weights_that_are_arguments_are_read_where_they_are() -> None:
    program = text((32, 40), 16, "uint4", "vector", dynamic=False, dtype="float32", rows="3")
    x = np.random.default_rng(4).normal(size=(3, 32)).astype("float32")
    assert "form=float" in check(program, operands((32, 40), 16, "uint4", "vector"), x, bound=False)


def of_each_kind(choices: np.random.Generator, size: int) -> dict[str, np.ndarray]:
    """Rows whose digits are of every kind, and rows that have none."""
    plain = choices.normal(size=size)
    odd = {"infinite": np.inf, "lower": -np.inf, "nan": np.nan, "largest": np.finfo("float32").max}
    found = {
        "plain": plain,
        "of many magnitudes": np.exp(9 * plain),
        "just below powers of two": np.nextafter(np.float32(2), 1) * np.sign(plain),
        "zeros": 0 * plain,
        "tiny": 1e-38 * plain,
        "subnormal": 1e-42 * plain,
        "huge": 1e30 * plain,
        **{name: np.where(np.arange(size) == 9, value, plain) for name, value in odd.items()},
    }
    return {name: row[None].astype("float32") for name, row in found.items()}


@pytest.mark.parametrize(("weight", "zero"), [("uint4", "vector"), ("int4", "none"), ("uint2", "number")])
def test_a_row_of_floats_is_multiplied_by_its_digits(weight: str, zero: str) -> None:
    """To the exactness of float32 products, with any numbers in it; 70 columns: a whole panel, and part of one."""
    weights = operands((128, 70), 32, weight, zero)
    module = weft.IRModule(
        {"main": weft.parse(text((128, 70), 32, weight, zero, dynamic=False, dtype="float32", rows="1"))}
    )
    interpreted, run = weft.interpret(module)["main"], weft.compile(BindParams("main", weights)(module))
    for name, x in of_each_kind(np.random.default_rng(7), 128).items():
        got, want = run["main"](x), np.asarray(interpreted(x, *weights.values()))
        finite = np.isfinite(want)
        np.testing.assert_array_equal(got[~finite], want[~finite], err_msg=name)
        scale = np.abs(want[finite]).max(initial=0)
        assert np.abs(got[finite] - want[finite]).max(initial=0) <= 1e-6 * scale + 1e-44, name


def test_digits_of_whole_numbers_are_exact() -> None:
    weights = operands((64, 48), 32, "int4", "none") | {"s": np.full((2, 48), 0.5, "float32")}
    program = text((64, 48), 32, "int4", "none", dynamic=False, dtype="float32", rows="2")
    module = weft.IRModule({"main": weft.parse(program)})
    x = np.random.default_rng(8).integers(-(1 << 17), 1 << 17, (2, 64)).astype("float32")
    got = weft.compile(BindParams("main", weights)(module))["main"](x)
    exact = x.astype("float64") @ (weights["w"].astype("float64") * 0.5)
    np.testing.assert_array_equal(got, np.maximum(exact, 0).astype("float32"))


@pytest.mark.parametrize(
    ("weight", "rows", "form"), [("int4", 1, "digits"), ("int4", 3, "float"), ("int8", 1, "float")]
)
def test_few_rows_of_floats_are_digits_where_converting_weights_takes_longer(weight: str, rows: int, form: str) -> None:
    program = text((64, 128), 32, weight, "none", dynamic=False, dtype="float32", rows=str(rows))
    module = BindParams("main", operands((64, 128), 32, weight, "none"))(weft.IRModule({"main": weft.parse(program)}))
    assert grouped_decision(module)["form"] == form


@pytest.mark.parametrize(("target", "bound"), [(WIDE, True), (AVX2, True), (WIDE, False)])
def test_many_rows_read_panels_that_are_converted_once(target: str, bound: bool) -> None:
    """150 columns: whole panels, and part of one; 29 rows: whole tiles, and part of one."""
    program = text((64, 150), 32, "uint4", "vector", dynamic=False, dtype="float32", rows="29")
    x = np.random.default_rng(9).normal(size=(29, 64)).astype("float32")
    found = check(program, operands((64, 150), 32, "uint4", "vector"), x, target, bound=bound)
    assert "chunks=" in found
    assert "chunks=0" not in found


@pytest.mark.parametrize(("rows", "size", "chunks"), [("4", 64, 0), ("64", 64, 2), ('"n"', 64, 2), ("64", 1 << 14, 0)])
def test_panels_are_converted_once_where_many_rows_read_them_and_a_cache_holds_them(
    rows: str, size: int, chunks: int
) -> None:
    program = text((size, 128), 32, "uint4", "number", dynamic=False, dtype="float32", rows=rows)
    module = weft.IRModule({"main": weft.parse(program)})
    assert (
        grouped_decision(BindParams("main", operands((size, 128), 32, "uint4", "number"))(module))["chunks"] == chunks
    )


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_any_shape_type_and_group(data: Any) -> None:
    draw = data.draw
    weight, group = draw(st.sampled_from(["uint4", "int4", "int8", "uint2"])), draw(st.sampled_from([0, 8, 16, 24]))
    shape = (group or 8) * draw(st.integers(1, 3)), draw(st.integers(1, 80))
    zero, rows = draw(st.sampled_from(["none", "number", "vector"])), draw(st.integers(1, 4))
    dynamic = draw(st.booleans())
    program = text(shape, group, weight, zero, dynamic=dynamic, dtype="float32", rows=str(rows))
    x = np.random.default_rng(5).normal(size=(rows, shape[0])).astype("float32")
    check(program, operands(shape, group, weight, zero), x)


def test_a_nest_that_somebody_wrote_is_recognised() -> None:
    program = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def product(
        x: T.Buffer(("n", 64), "float32"), w: T.Buffer((48, 64), "uint4"), scale: T.Buffer((48, 2), "float16"),
        y: T.Buffer(("n", 48), "float32"),
    ):
        for i, j, k in T.grid(n, 48, 64):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + x[vi, vk] * (
                    T.Cast("float32", scale[vj, vk // 32]) * T.Cast("float32", T.Cast("int32", w[vj, vk]) - 8)
                )

    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((48, 64), "uint4"), s: R.Tensor((48, 2), "float16")):
        y = R.call_tir(cls.product, (x, w, s), out_ty=R.Tensor((n, 48), "float32"))
        return y
"""
    choices = np.random.default_rng(6)
    weights = {"w": integers(choices, "uint4", 48, 64), "s": choices.uniform(0.01, 0.1, (48, 2)).astype("float16")}
    module = weft.parse(program)
    x = choices.normal(size=(3, 64)).astype("float32")
    want = weft.interpret(module)["main"](x, *weights.values())
    run = weft.compile(BindParams("main", weights)(module))
    np.testing.assert_allclose(run["main"](x), want, rtol=1e-4, atol=1e-4)
    assert "group=32" in str(run.explain())


def test_the_text_holds_packed_weights_and_reads_back() -> None:
    program = text((64, 64), 32, "uint4", "number", dynamic=False, dtype="float32", rows="1")
    module = weft.IRModule({"main": weft.parse(program)})
    module = BindParams("main", operands((64, 64), 32, "uint4", "number"))(module)
    lowered = run_phases(module, VNNI, stop="lower")
    assert 'weights_bytes: T.Buffer((2048,), "uint8")' in lowered.script()
    weft.assert_structural_equal(weft.parse(lowered.script()), lowered)


@pytest.mark.parametrize(
    ("ahead", "dynamic", "steps"), [(0, True, 0), (2048, True, 8), (0, False, 0), (2048, False, 32)]
)
@pytest.mark.parametrize("weight", ["int8", "uint4"])
def test_weights_are_prefetched_where_they_meet_few_rows(weight: str, ahead: int, dynamic: bool, steps: int) -> None:
    """256 bytes are a step of integers, 64 one of floats."""
    program = text((64, 128), 32, weight, "none", dynamic=dynamic, dtype="float32", rows='"n"')
    module = BindParams("main", operands((64, 128), 32, weight, "none"))(weft.IRModule({"main": weft.parse(program)}))
    with PassContext(config={"knobs": {"prefetch_bytes": ahead}}):
        made = grouped_decision(module)
    assert made["prefetched"] == steps
    assert ("T.attr" in made["script"]) == bool(steps)
