"""Operators whose result has a size that depends on the data: deduced ranks, the interpreter, compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import BoundsError, DTypeError, ShapeError
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import infer_type, type_text
from weft.ir.dim import symbol
from weft.ir.graph import Expr, Var
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.types import TensorType, TupleType


def program(params: list[Var], make: Any) -> Any:
    """A module whose main returns what `make` emits."""
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make(builder))
        builder.emit_func_output(result)
    return builder.get()


def both(params: list[Var], call: Expr, *arrays: Any) -> list[Any]:
    """The result in the interpreter and in machine code."""
    module = program(params, lambda builder: builder.emit(call))
    return [interpret(module)["main"](*arrays), weft.compile(module)["main"](*arrays)]


def vector(name: str, size: int | str = "n", dtype: str = "float32") -> Var:
    return Var(name, TensorType((symbol(size) if isinstance(size, str) else size,), dtype))


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0)])
def test_nonzero_gives_the_positions_of_numpy(shape: tuple[int, ...]) -> None:
    x = Var("x", TensorType(tuple(symbol(f"s{axis}") for axis in range(len(shape))), "float32"))
    data = np.random.default_rng(0).integers(0, 2, shape).astype("float32")
    for got in both([x], get_op("nonzero")(x), data):
        np.testing.assert_array_equal(got, np.stack(np.nonzero(data)))


def test_nonzero_of_a_tensor_known_by_rank_names_its_sizes() -> None:
    x = Var("x", TensorType(None, "int32", 2))
    data = np.asarray([[0, 1], [2, 0]], "int32")
    for got in both([x], get_op("nonzero")(x), data):
        np.testing.assert_array_equal(got, np.stack(np.nonzero(data)))


def test_nonzero_is_known_by_its_rank_only() -> None:
    x = vector("x")
    assert type_text(infer_type(get_op("nonzero")(x))) == 'R.Tensor(dtype="int64", ndim=2)'
    with pytest.raises(ShapeError, match="number of dimensions"):
        infer_type(get_op("nonzero")(Var("x", TensorType(None, "float32"))))


def test_two_calls_in_a_function_have_sizes_of_their_own() -> None:
    x, y = vector("x"), vector("y")

    def make(builder: BlockBuilder) -> Any:
        first, second = (builder.emit(get_op("nonzero")(each)) for each in (x, y))
        third = builder.emit(get_op("nonzero")(x))
        return (first, second, third)

    executable = weft.compile(program([x, y], make))
    first, second, third = executable["main"](np.asarray([1, 0, 2], "float32"), np.asarray([0, 0, 5], "float32"))
    assert (first.tolist(), second.tolist(), third.tolist()) == ([[0, 2]], [[2]], [[0, 2]])


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ((1, 0), (5, 9), (2, 1)),
        ((-1, 4), (-9, -9), (-1, -2)),
        ((3, 3), (1, 3), (1, 1)),
        ((-99, 99), (99, -99), (3, -3)),
    ],
)
def test_a_dynamic_slice_is_a_slice_of_python(begin: Any, end: Any, strides: Any) -> None:
    x = Var("x", TensorType((symbol("n"), 5), "float32"))
    bounds = [vector(name, 2, "int64") for name in ("begin", "end", "strides")]
    data = np.arange(30, dtype="float32").reshape(6, 5)
    arrays = [np.asarray(part, "int64") for part in (begin, end, strides)]
    want = data[tuple(slice(*part) for part in zip(begin, end, strides, strict=True))]
    for got in both([x, *bounds], get_op("dynamic_strided_slice")(x, *bounds), data, *arrays):
        np.testing.assert_array_equal(got, want)


def test_a_stride_of_zero_stops_the_program() -> None:
    x, bounds = vector("x"), [vector(name, 1, "int64") for name in ("begin", "end", "strides")]
    module = program([x, *bounds], lambda builder: builder.emit(get_op("dynamic_strided_slice")(x, *bounds)))
    arrays = [np.zeros(3, "float32"), *(np.asarray([part], "int64") for part in (0, 2, 0))]
    for run in (interpret(module)["main"], weft.compile(module)["main"]):
        with pytest.raises(BoundsError, match="stride is 0"):
            run(*arrays)


@pytest.mark.parametrize("data", [[3, 1, 3, 2, 1, 3], [], [7], [float("nan"), 1.0, float("nan"), 1.0]])
def test_unique_gives_what_numpy_gives(data: list[float]) -> None:
    x = vector("x")
    call = get_op("unique")(x, return_index=True, return_inverse=True, return_counts=True)
    ty = infer_type(call)
    assert isinstance(ty, TupleType)
    assert len(ty.fields) == 4
    array = np.asarray(data, "float32")
    want = np.unique(array, return_index=True, return_inverse=True, return_counts=True)
    for got in both([x], call, array):
        for part, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_unique_of_a_matrix_flattens_it() -> None:
    x = Var("x", TensorType((2, symbol("n")), "int32"))
    array = np.asarray([[4, 2, 4], [2, 2, 9]], "int32")
    for got in both([x], get_op("unique")(x), array):
        np.testing.assert_array_equal(got, [2, 4, 9])


def distinct(dtype: str, axis: int, rank: int) -> list[Any]:
    """Distinct slices along an axis of tensors of any size: in the interpreter, and compiled."""
    x = Var("x", TensorType(tuple(symbol(f"n{index}") for index in range(rank)), dtype))
    call = get_op("unique")(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    module = program([x], lambda builder: builder.emit(call))
    return [interpret(module)["main"], weft.compile(module)["main"]]


def slices(array: np.ndarray, axis: int) -> list[list[Any]]:
    """The slices along an axis as lists that compare as tensors do: nan the greatest and equal to nan."""
    rows = [np.ravel(row).tolist() for row in np.moveaxis(array, axis, 0)]
    return [[(1, 0.0) if value != value else (0, float(value)) for value in row] for row in rows]


@pytest.mark.parametrize(("dtype", "axis", "rank"), [("float32", 0, 2), ("float16", 1, 3), ("uint8", -1, 2)])
def test_unique_slices_are_in_order_and_say_where_each_slice_is(dtype: str, axis: int, rank: int) -> None:
    runs, rng = distinct(dtype, axis, rank), np.random.default_rng(rank)
    for _ in range(20):
        array = rng.integers(-1, 2, rng.integers(0, 5, rank)).astype(dtype)
        if dtype != "uint8":
            array = np.where(rng.random(array.shape) < 0.2, np.asarray([float("nan")], dtype), array)
        rows = slices(array, axis)
        wanted = sorted({tuple(row) for row in rows})
        for values, first, inverse, counts in (run(array) for run in runs):
            assert [tuple(row) for row in slices(values, axis)] == wanted
            assert first.tolist() == [rows.index(list(row)) for row in wanted]
            assert inverse.tolist() == [wanted.index(tuple(row)) for row in rows]
            assert counts.tolist() == [rows.count(list(row)) for row in wanted]


@pytest.mark.parametrize("columns", [4, 1])
def test_a_mask_selects_what_numpy_selects(columns: int) -> None:
    x, mask = Var("x", TensorType((symbol("n"), 4), "float32")), Var("mask", TensorType((symbol("n"), columns), "bool"))
    for size in (0, 1, 5):
        data = np.arange(4.0 * size, dtype="float32").reshape(size, 4)
        chosen = np.random.default_rng(size).integers(0, 2, (size, columns)).astype("bool")
        for got in both([x, mask], get_op("masked_select")(x, mask), data, chosen):
            np.testing.assert_array_equal(got, data[np.broadcast_to(chosen, data.shape)])


def test_a_shape_variable_is_the_shape_of_what_is_made_by_it() -> None:
    module = weft.parse(
        """
@I.ir_module
class Module:
    @R.function
    def main(s: R.Shape(ndim=2), v: R.Tensor((), "float32"), x: R.Tensor(("n",), "float32")):
        full = R.full(s, v)
        zeros = R.zeros(s, "float32")
        wide = R.broadcast_to(v, s)
        folded = R.reshape(x, s)
        return (R.add(full, zeros), R.add(folded, wide), R.sum(folded, axis=0))
"""
    )
    text = module.script()
    for name in ("full", "zeros", "wide", "folded"):
        assert f'{name}: R.Tensor(s, "float32") = ' in text
    weft.assert_structural_equal(weft.parse(text), module)
    x = np.arange(6, dtype="float32")
    for main in (interpret(module)["main"], weft.compile(module)["main"]):
        got = main((2, 3), np.float32(2), x)
        for found, expected in zip(got, (np.full((2, 3), 2), x.reshape(2, 3) + 2, [3, 5, 7]), strict=True):
            np.testing.assert_array_equal(found, expected)
        with pytest.raises(ShapeError):
            main((2, 4), np.float32(2), x)


def test_a_view_is_of_no_void() -> None:
    for given in ('dtype="void"', 'R.shape([4, 4]), R.dtype("void")'):
        text = f"""
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    return R.memory.view(x, {given})
"""
        with pytest.raises(weft.WeftError) as caught:
            weft.parse(text)
        assert caught.value.code == "W142"


@pytest.mark.parametrize(("size", "rank"), [(2, 2), ("r", -1)])
def test_a_slice_of_unknown_rank_has_that_of_its_boundaries(size: int | str, rank: int) -> None:
    x = Var("x", TensorType(None, "float32"))
    bounds = [vector(name, size, "int64") for name in ("b", "e", "s")]
    call = get_op("dynamic_strided_slice")(x, *bounds)
    ty = infer_type(call)
    assert isinstance(ty, TensorType)
    assert ty.ndim == rank
    module = program([x, *bounds], lambda builder: builder.emit(call))
    data = np.arange(20, dtype="float32").reshape(4, 5)
    given = [np.asarray(values, "int64") for values in ([1, 0], [4, 5], [2, 2])]
    for main in (interpret(module)["main"], weft.compile(module)["main"]):
        np.testing.assert_array_equal(main(data, *given), data[1:4:2, ::2])
        with pytest.raises(ShapeError):
            main(data.reshape(2, 2, 5), *given)


_SCALARS = [(1, 9, 3), (9, -1, -3), (0, 0, 1), (5, 1, 2), (0, 5, 2**63 - 1), (4, -3, -(2**62))]


@pytest.mark.parametrize("given", [*_SCALARS, (0.5, 3.0, 0.25), (2.0, -1.0, -0.7)])
def test_a_range_of_numbers_that_a_run_computes_is_that_of_numpy(given: tuple[float, ...]) -> None:
    values = [np.asarray(value, "int64" if isinstance(value, int) else "float32") for value in given]
    params = [Var(name, TensorType((), str(value.dtype))) for name, value in zip("abc", values, strict=True)]
    for got in both(params, get_op("arange")(*params), *values):
        np.testing.assert_allclose(got, np.arange(*given), rtol=1e-6, atol=1e-6)
        assert got.dtype == values[0].dtype


def test_a_range_by_a_size_has_a_length_that_the_run_knows() -> None:
    x = vector("x")
    call = get_op("arange")(0, 10, symbol("n"))
    assert type_text(infer_type(call)) == 'R.Tensor(dtype="int64", ndim=1)'
    for got in both([x], call, np.zeros(4, "float32")):
        assert got.tolist() == [0, 4, 8]


@pytest.mark.parametrize("given", [(0, 3, 0), (0, 2**62, 1), (2**62, 0, -1)])
def test_a_run_refuses_what_is_no_range(given: tuple[int, ...]) -> None:
    params = [Var(name, TensorType((), "int64")) for name in "abc"]
    module = program(params, lambda builder: builder.emit(get_op("arange")(*params)))
    for main in (interpret(module)["main"], weft.compile(module)["main"]):
        with pytest.raises(BoundsError, match=r"R\.arange: .*(is 0|too large)"):
            main(*(np.asarray(value) for value in given))


def test_a_range_has_no_complex_boundaries() -> None:
    for name in ("arange", "dynamic.range_shape"):
        with pytest.raises(DTypeError, match="W321"):
            infer_type(get_op(name)(Var("a", TensorType((), "complex64")), 4, 1))
