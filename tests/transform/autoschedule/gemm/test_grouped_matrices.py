"""Products of many rows with weights of few bits, by instructions over matrices where a processor has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.test_grouped_gemm import check, of_each_kind, operands, text

import weft
from weft import dtypes
from weft.transform import BindParams, run_phases

MATRICES = "llvm -mcpu=sapphirerapids"


def arranged(
    shape: tuple[int, int], group: int, weight: str, zero: str, *, dynamic: bool, dtype: str, rows: str
) -> tuple[weft.IRModule, dict[str, Any], weft.IRModule, dict[str, np.ndarray]]:
    """The module, the decision on a processor that has matrices in registers, the scheduled module, and the weights."""
    program = text(shape, group, weight, zero, dynamic=dynamic, dtype=dtype, rows=rows)
    module, weights = weft.IRModule({"main": weft.parse(program)}), operands(shape, group, weight, zero)
    lowered = run_phases(BindParams("main", weights)(module), MATRICES, stop="schedule")
    decisions = [item for function in lowered.functions.values() for item in function.attrs.get("decisions", ())]
    (made,) = [item for item in decisions if item["kind"] == "grouped-gemm"]
    return module, made, lowered, weights


@pytest.mark.parametrize(
    ("weight", "zero", "dtype", "dynamic", "parts"),
    [
        ("uint4", "vector", "float32", False, 3),
        ("int8", "vector", "float32", True, 1),
        ("int8", "none", "float16", False, 2),
        ("uint2", "number", "bfloat16", False, 1),
    ],
)
def test_many_rows_are_sums_of_short_floats(weight: str, zero: str, dtype: str, dynamic: bool, parts: int) -> None:
    """40 columns: part of a panel; the loops say what the instruction does."""
    module, made, lowered, weights = arranged(
        (64, 40), 32, weight, zero, dynamic=dynamic, dtype=dtype, rows="41" if dynamic else "17"
    )
    assert made["parts"] == parts
    assert "matrix_tiles" in lowered.script()
    x = np.random.default_rng(1).normal(size=(41 if dynamic else 17, 64)).astype(dtypes.array_dtype(dtype))
    want = np.asarray(weft.interpret(module)["main"](x, *weights.values()), "float64")
    got = np.asarray(weft.interpret(lowered)["main"](x), "float64")
    eps = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
    assert np.abs(got - want).max() <= eps * np.abs(want).max()


@pytest.mark.parametrize(
    ("group", "weight", "zero", "rows"),
    [(16, "int4", "none", "64"), (32, "int4", "none", "7"), (32, "int16", "none", "64")],
)
def test_what_matrices_do_not_hold_is_multiplied_by_vectors(group: int, weight: str, zero: str, rows: str) -> None:
    _, made, lowered, _ = arranged((64, 64), group, weight, zero, dynamic=False, dtype="float32", rows=rows)
    assert made["parts"] == 0
    assert "matrix_tiles" not in lowered.script()


def test_any_number_of_many_rows() -> None:
    """Blocks of rows and of k, tiles of 32 and 16 rows, and parts of one; few rows by vectors."""
    program = text((1024, 70), 64, "uint4", "vector", dynamic=False, dtype="float32", rows='"n"')
    weights = operands((1024, 70), 64, "uint4", "vector")
    run = weft.compile(BindParams("main", weights)(weft.IRModule({"main": weft.parse(program)})))["main"]
    exact = (weights["w"].astype("f8") - np.repeat(weights["z"].astype("f8"), 64, 0)) * np.repeat(weights["s"], 64, 0)
    for rows in (0, 7, 8, 16, 17, 33, 256, 300):
        x = np.random.default_rng(rows).normal(size=(rows, 1024)).astype("float32")
        want = np.maximum(x.astype("f8") @ exact, 0)
        assert np.abs(run(x) - want).max(initial=0) <= 2e-6 * np.abs(want).max(initial=0)


def test_many_rows_of_any_numbers() -> None:
    """Rows with infinite numbers and nan are what float32 makes of them; none of the others changes."""
    weights = operands((128, 70), 32, "int4", "none")
    weights["w"] = np.where(weights["w"].astype("int8") == 0, 1, weights["w"].astype("int8")).astype(weights["w"].dtype)
    program = text((128, 70), 32, "int4", "none", dynamic=False, dtype="float32", rows='"n"').replace(
        "R.nn.relu", "R.abs"
    )
    module = weft.IRModule({"main": weft.parse(program)})
    rows = of_each_kind(np.random.default_rng(7), 128)
    for name in ("largest", "subnormal"):  # sums of these have other ends
        del rows[name]
    x = np.concatenate([*rows.values()] * 2)
    got = weft.compile(BindParams("main", weights)(module))["main"](x)
    want = np.asarray(weft.interpret(module)["main"](x, *weights.values()))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    for mine, other in zip(got, want, strict=True):
        finite = np.isfinite(other)
        scale = np.abs(other[finite]).max(initial=0)
        assert np.abs(mine[finite] - other[finite]).max(initial=0) <= 2e-6 * scale + 1e-35


def test_rows_of_several_axes() -> None:
    program = text((64, 40), 32, "int8", "none", dynamic=True, dtype="float32", rows='2, "n"')
    x = np.random.default_rng(3).normal(size=(2, 41, 64)).astype("float32")
    assert "parts=" in check(program, operands((64, 40), 32, "int8", "none"), x)


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_many_rows_of_any_shape_type_and_group(data: Any) -> None:
    draw = data.draw
    weight, group = draw(st.sampled_from(["uint4", "int4", "int8", "uint2"])), draw(st.sampled_from([0, 32, 64, 96]))
    shape = (group or 32) * draw(st.integers(1, 3)), draw(st.integers(1, 80))
    zero, rows = draw(st.sampled_from(["none", "number", "vector"])), draw(st.integers(8, 80))
    dtype, dynamic = draw(st.sampled_from(["float32", "float16", "bfloat16"])), draw(st.booleans())
    program = text(
        shape, group, weight, zero, dynamic=dynamic, dtype=dtype, rows=draw(st.sampled_from([str(rows), '"n"']))
    )
    x = np.random.default_rng(5).normal(size=(rows, shape[0])).astype(dtypes.array_dtype(dtype))
    check(program, operands(shape, group, weight, zero), x)
