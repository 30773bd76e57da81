"""Products whose columns are split, and whose parts are put together in the tiles."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.errors import PassError
from weft.ir import FrozenMap, IRModule, PrimFunc, replace, walk
from weft.ir.attrs import DECISIONS
from weft.ir.tensor import AllocBuffer, PrimVar
from weft.transform import BindParams
from weft.transform.infra.decisions import decisions_of

_COMBINED = {
    2: "R.multiply(R.nn.silu(parts[0]), parts[1])",
    3: "R.add(R.multiply(parts[0], parts[1]), parts[2])",
    4: "R.add(R.multiply(R.sigmoid(parts[0]), R.tanh(parts[1])), R.multiply(parts[2], parts[3]))",
}
_TOLERANCE = {"float32": 2e-5, "float16": 8e-3, "bfloat16": 6e-2}
_AVX512 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v4"


def _program(dtype: str, k: int, columns: int, count: int, *, lead: str = "", across: bool = False) -> IRModule:
    w = f"({count * columns}, {k})" if across else f"({k}, {count * columns})"
    b = "R.permute_dims(w)" if across else "w"
    product = (
        f"R.matmul(x, {b})" if dtype == "float32" else f"R.astype(R.matmul(x, {b}, out_dtype='float32'), '{dtype}')"
    )
    sizes = {"x": f"({lead}'n', {k})", "bias": f"({count * columns},)", "w": w}
    params = [f"{name}: R.Tensor({size}, '{dtype}')" for name, size in sizes.items()]
    module = weft.parse(f"""
@I.ir_module
class Gated:
    @R.function
    def main({", ".join(params)}):
        with R.dataflow():
            parts = R.split(R.add({product}, bias), {count}, axis=-1)
            y = {_COMBINED[count]}
            R.output(y)
        return y
""")
    assert isinstance(module, IRModule)
    return module


def _reference(x: np.ndarray, bias: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
    product = (x.astype("float32") @ w.astype("float32")).astype(x.dtype)
    parts = np.split((product.astype("float32") + bias.astype("float32")).astype(x.dtype).astype("float64"), count, -1)

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    if count == 2:
        return parts[0] * sigmoid(parts[0]) * parts[1]
    if count == 3:
        return parts[0] * parts[1] + parts[2]
    return sigmoid(parts[0]) * np.tanh(parts[1]) + parts[2] * parts[3]


@settings(max_examples=5, deadline=None)
@given(
    dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
    count=st.sampled_from([2, 3, 4]),
    k=st.sampled_from([5, 64, 300]),
    columns=st.sampled_from([16, 30, 48, 160]),
    rows=st.lists(st.sampled_from([0, 1, 3, 14, 33, 100]), min_size=2, max_size=3),
    is_constant=st.booleans(),
    across=st.booleans(),
    is_batched=st.booleans(),
)
def test_results_are_those_of_numpy(
    dtype: str, count: int, k: int, columns: int, rows: list[int], is_constant: bool, across: bool, is_batched: bool
) -> None:
    rng = np.random.default_rng(k + columns)
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    w = (rng.standard_normal((k, count * columns)) / k**0.5).astype(kind)
    bias, given_w = rng.standard_normal(count * columns).astype(kind), np.ascontiguousarray(w.T) if across else w
    module = _program(dtype, k, columns, count, lead="'b', " if is_batched else "", across=across)
    if is_constant:
        module = BindParams("main", {"w": given_w})(module)
    run = weft.compile(module)["main"]
    for number in rows:
        x = rng.standard_normal((*((2,) if is_batched else ()), number, k)).astype(kind)
        found = np.asarray(run(x, bias) if is_constant else run(x, bias, given_w)).astype("float64")
        expected = _reference(x, bias, w, count)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=_TOLERANCE[dtype], atol=_TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("rows", [1, 9, 40])
def test_a_matrix_that_memory_holds(dtype: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    w = (rng.standard_normal((1040, 2 * 1056)) / 32).astype(dtype)
    bias, x = rng.standard_normal(2 * 1056).astype(dtype), rng.standard_normal((rows, 1040)).astype(dtype)
    found = weft.compile(_program(dtype, 1040, 1056, 2))["main"](x, bias, w)
    expected = _reference(x, bias, w, 2)
    np.testing.assert_allclose(
        np.asarray(found).astype("float64"), expected, rtol=_TOLERANCE[dtype], atol=_TOLERANCE[dtype]
    )


def _kernels(module: IRModule, stop: str = "schedule") -> list[PrimFunc]:
    lowered = weft.lower(module, _AVX512, stop=stop)
    return [function for function in lowered.functions.values() if isinstance(function, PrimFunc)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_wide_product_is_nowhere(dtype: str) -> None:
    (kernel,) = _kernels(_program(dtype, 256, 384, 2))
    allocated = [part.buffer.shape for part in walk(kernel.body) if isinstance(part, AllocBuffer)]
    assert not any(isinstance(shape[0], PrimVar) for shape in allocated)


def test_the_decision_says_how_many_parts_there_are() -> None:
    (kernel,) = _kernels(_program("float16", 256, 384, 2))
    decision = next(item for item in decisions_of(kernel) if item.kind == "gemm")
    assert decision.values["parts"] == 2
    assert decision.values["epilogue"]


def test_a_panel_that_is_no_whole_vectors_of_each_part_is_refused() -> None:
    module = weft.lower(_program("float32", 256, 384, 2), _AVX512, stop="fuse")
    ((name, kernel),) = [(name, f) for name, f in module.items() if isinstance(f, PrimFunc)]
    pin = FrozenMap({"about": "matmul", "kind": "gemm", "mr": 4, "nr_vectors": 3})
    edited = module.with_functions(
        {**module.functions, name: replace(kernel, attrs=kernel.attrs.set(DECISIONS, (pin,)))}
    )
    with pytest.raises(PassError, match="no whole vectors of each of 2 parts") as error:
        weft.lower(edited, _AVX512, start="schedule", stop="schedule")
    assert error.value.code == "W528"


def test_parts_of_columns_that_are_no_whole_vectors_are_passes_of_their_own() -> None:
    assert len(_kernels(_program("float16", 256, 30, 2), "fuse")) == 2


def test_a_product_that_is_needed_itself_is_stored() -> None:
    module = weft.parse("""
@I.ir_module
class Both:
    @R.function
    def main(x: R.Tensor(('n', 64), 'float32'), w: R.Tensor((64, 64), 'float32')):
        with R.dataflow():
            p = R.matmul(x, w)
            parts = R.split(p, 2, axis=-1)
            y = R.multiply(parts[0], parts[1])
            R.output(p, y)
        return (p, y)
""")
    x, w = np.random.default_rng(0).standard_normal((2, 64, 64)).astype("float32")
    p, y = weft.compile(module)["main"](x, w)  # type: ignore[arg-type]
    np.testing.assert_allclose(p, x @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(y, (x @ w)[:, :32] * (x @ w)[:, 32:], rtol=1e-3, atol=1e-3)
