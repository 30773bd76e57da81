"""Running sums and the like as vectors: the values of the loops, for every size, dtype and axis."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.test_vectorize_nests import M, N, check, has_vectors, legalized, random

import weft
from weft.ir import IRModule, PrimFunc
from weft.ir.dim import symbol
from weft.script import tir as T
from weft.target.machine_model import MachineModel
from weft.transform import VectorizeNests
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.decisions import decisions_of

SIZES = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 70])
NAMES = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")


def form(module: IRModule) -> str | None:
    """What was decided about the one kernel of a module."""
    new = VectorizeNests(MachineModel(vector_bits=256))(module)
    (function,) = (item for item in new.functions.values() if isinstance(item, PrimFunc))
    return next((item.values["form"] for item in decisions_of(function) if item.kind == "scan"), None)


@settings(max_examples=30, deadline=None)
@given(
    SIZES,
    SIZES,
    st.booleans(),
    st.sampled_from([64, 128, 256, 512]),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.sampled_from(NAMES),
    st.sampled_from(["float32", "float64", "float16"]),
)
def test_scans_of_floats(
    rows: int, length: int, symbolic: bool, bits: int, axis: int, exclusive: bool, name: str, dtype: str
) -> None:
    options = {} if name in ("cummax", "cummin") else {"exclusive": exclusive}
    shape = (N, M) if symbolic else (rows, length)
    check(legalized(name, shape, axis=axis, dtype=dtype, **options), random(rows, length, dtype=dtype), bits=bits)


@settings(max_examples=20, deadline=None)
@given(
    SIZES,
    SIZES,
    st.booleans(),
    st.sampled_from([0, 1]),
    st.sampled_from(NAMES[:4]),
    st.sampled_from(["int8", "uint16", "int32", "int64"]),
)
def test_scans_of_integers_wrap_around_and_are_the_same_bits(
    rows: int, length: int, symbolic: bool, axis: int, name: str, dtype: str
) -> None:
    module = legalized(name, (N, M) if symbolic else (rows, length), axis=axis, dtype=dtype)
    x = np.random.default_rng(rows).integers(-100, 100, (rows, length)).astype(dtype)
    (got,) = (weft.compile(module)["main"](x),)
    np.testing.assert_array_equal(got, weft.interpret(module)["main"](x))
    np.testing.assert_array_equal(weft.interpret(VectorizeNests()(module))["main"](x), got)


def test_which_axis_vectors_go_along() -> None:
    decided = functools.partial(legalized, "cumsum")
    assert form(decided((3, 20), axis=1)) == "rows"
    assert form(decided((N, M), axis=0)) == form(decided((3, 20), axis=0)) == "columns"
    assert form(decided((20, 3), axis=0)) is None  # LLVM has such short rows in registers
    assert form(decided((1, 20), axis=0)) is None
    assert form(decided((0, 20), axis=0)) is None  # a first row is not there
    assert form(decided((20, 3), axis=1)) is None


def test_products_of_floats_are_not_grouped() -> None:
    x = np.array([0.0, 1e200, 1e200, 1e-200, 1e200, 1e200, 1e-200, 1e-200])  # the last seven overflow
    module = legalized("cumprod", (8,), axis=0, dtype="float64")
    np.testing.assert_array_equal(weft.compile(module)["main"](x), np.zeros(8))
    assert form(module) is None
    assert form(legalized("cumprod", (1, 8), axis=1, dtype="float64")) is None  # a row alone
    assert form(legalized("cumprod", (8,), axis=0, dtype="int64")) == "rows"


@settings(max_examples=30, deadline=None)
@given(
    st.lists(SIZES, min_size=1, max_size=2),
    SIZES,
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3, 4, 8]),
    st.sampled_from(["float32", "float64"]),
)
def test_products_of_floats_of_rows_side_by_side_are_the_same_bits(
    rows: list[int], length: int, symbolic: bool, exclusive: bool, side_by_side: int, dtype: str
) -> None:
    shape = (*rows, length)
    names = (symbol("k"), N, M)[-len(shape) :]
    module = legalized("cumprod", names if symbolic else shape, axis=-1, dtype=dtype, exclusive=exclusive)
    x = np.random.default_rng(length).standard_normal(shape).astype(dtype)
    want = np.cumprod(x, -1, dtype)
    if exclusive and length:
        want = np.concatenate([np.ones_like(x[..., :1]), want[..., :-1]], -1)
    got = weft.compile(module, opt=Knobs(scan_rows=side_by_side))["main"](x)
    np.testing.assert_array_equal(got, want)
    if symbolic:
        assert form(module) == "chains"


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_infinities_stay_from_their_place_on(name: str) -> None:
    x = np.random.default_rng(0).standard_normal(40)
    module = legalized(name, (40,), axis=0, dtype="float64")
    for value, place in ((np.nan, 13), (np.inf, 30), (-np.inf, 7)):
        given = x.copy()
        given[place] = value
        got, want = weft.compile(module)["main"](given), weft.interpret(module)["main"](given)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_sums_are_at_least_as_close_as_sums_in_order(dtype: str) -> None:
    x = np.random.default_rng(0).random(100_000).astype(dtype)
    exact = np.cumsum(x.astype("longdouble"))
    got = weft.compile(legalized("cumsum", (100_000,), axis=0, dtype=dtype))["main"](x)
    in_order = np.cumsum(x)
    assert np.abs(got - exact).max() <= np.abs(in_order - exact).max()
    assert np.all(np.abs(got - exact) <= np.finfo(dtype).eps / 2 * (len(x) / 2 + 3) * exact)  # two lanes at least


@T.prim_func
def recurrence(x: T.Buffer(("n", 64), "float32"), y: T.Buffer(("n", 64), "float32")):
    for i, j in T.grid(n, 64):
        with T.block("y"):
            vi = T.axis.scan(n, i)
            vj = T.axis.spatial(64, j)
            y[vi, vj] = T.if_then_else(vi > 0, T.float32(0.5) * y[vi - 1, vj], T.float32(2)) + x[vi, vj]


def test_any_recurrence_runs_down_columns() -> None:
    module = IRModule({"main": recurrence})
    x = np.random.default_rng(0).standard_normal((9, 64)).astype("float32")
    want, got = np.zeros_like(x), np.zeros_like(x)
    weft.interpret(module)["main"](x, want)
    weft.compile(module)["main"](x, got)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert form(module) == "columns"
    assert has_vectors(VectorizeNests()(module))


@T.prim_func
def along_a_row(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("y"):
            vi = T.axis.scan(64, i)
            y[vi] = T.if_then_else(vi > 0, T.float32(0.5) * y[vi - 1], T.float32(0)) + x[vi]


def test_a_recurrence_that_cannot_be_grouped_is_left_alone() -> None:
    module = IRModule({"main": along_a_row})
    assert not has_vectors(VectorizeNests()(module))
