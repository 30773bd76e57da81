"""Operators on tensors whose sizes, or number of dimensions, only the values decide: named, then compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import ShapeError
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.structure.structural import structural_equal
from weft.transform.graph.name_unknown_sizes import MOST_DIMENSIONS, NameUnknownSizes

HEAD = """from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function
    def main("""

KNOWN_RANK = """x: R.Tensor(ndim=2, dtype="float32"), y: R.Tensor(ndim=2, dtype="float32")):
        with R.dataflow():
            z = R.add(x, y)
            v = R.matmul(R.nn.relu(z), y)
            R.output(v)
        return v
"""
UNKNOWN_RANK = """x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, x)
            R.output(z)
        return z
"""
TWO_UNKNOWN_RANKS = """x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        z = R.add(x, y)
        return z
"""
SHAPE_VARIABLE = """x: R.Tensor(("n", 4), "float32"), s: R.Shape(ndim=2)) -> R.Tensor(ndim=2, dtype="float32"):
        y = R.reshape(x, s)
        return y
"""
TYPED_BY_A_SHAPE = """s: R.Shape(ndim=2), x: R.Tensor(s, "float32"), y: R.Tensor(s, "float32")):
        z = R.add(x, y)
        return z
"""
SOFTMAX = """x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        y = R.nn.softmax(x, axis=-1)
        return y
"""
BRANCHES = """x: R.Tensor(ndim=1, dtype="float32"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
        if c:
            y = R.exp(x)
        else:
            y = R.negative(x)
        z = R.add(y, x)
        return z
"""
DATA_DEPENDENT = """x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        u = R.unique(x)
        z = R.add(u, u)
        w = R.reshape(z, (-1, 1))
        v = R.flatten(w)
        return v
"""


def read(body: str) -> weft.IRModule:
    module = weft.parse(HEAD + body)
    assert isinstance(module, weft.IRModule)
    return module


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))).reshape(shape) / 7 - 0.4).astype("float32")


RUNS: list[tuple[str, tuple[Any, ...]]] = [
    (KNOWN_RANK, (numbers(3, 3), numbers(3, 3))),
    (KNOWN_RANK, (numbers(0, 0), numbers(0, 0))),
    *((UNKNOWN_RANK, (numbers(*shape),)) for shape in ((), (4,), (2, 3), (2, 1, 3), (1, 2, 1, 2), (2, 1, 2, 1, 2))),
    (TWO_UNKNOWN_RANKS, (numbers(2, 3), numbers(3))),
    (TWO_UNKNOWN_RANKS, (numbers(), numbers(2, 2))),
    (SHAPE_VARIABLE, (numbers(3, 4), (2, 6))),
    (TYPED_BY_A_SHAPE, ((2, 3), numbers(2, 3), numbers(2, 3))),
    (SOFTMAX, (numbers(5),)),
    (SOFTMAX, (numbers(2, 5),)),
    (BRANCHES, (numbers(3), np.array(True))),
    (BRANCHES, (numbers(3), np.array(False))),
    (DATA_DEPENDENT, (np.array([3, 1, 3, 2]),)),
]


OUTPUT_USED_TWICE = """x: R.Tensor(ndim=2, dtype="float32")):
        with R.dataflow():
            y = R.call_pure_packed("test.same", x, ty_args=R.Tensor(ndim=2, dtype="float32"))
            z = R.add(y, y)
            R.output(y, z)
        v = R.match_cast(y, R.Tensor(ndim=2, dtype="float32"))
        return v
"""


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(("body", "arguments"), RUNS)
def test_what_only_the_values_decide_works_in_compiled_code(
    body: str, arguments: tuple[Any, ...], compiled: dict[str, Any]
) -> None:
    """D5: sizes and ranks that are not known, shape variables and types that mention them."""
    module = read(body)
    if body not in compiled:
        compiled[body] = weft.compile(module)
    expected = interpret(module)(*arguments)
    for got in (interpret(NameUnknownSizes()(module))(*arguments), compiled[body]["main"](*arguments)):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "body", [KNOWN_RANK, UNKNOWN_RANK, SHAPE_VARIABLE, TYPED_BY_A_SHAPE, BRANCHES, OUTPUT_USED_TWICE]
)
def test_the_named_module_is_well_formed_and_reads_back(body: str) -> None:
    named = NameUnknownSizes()(read(body))
    weft.assert_well_formed(named)
    assert structural_equal(weft.parse(named.script()), named)


def test_a_function_whose_sizes_are_known_stays_the_same_object() -> None:
    module = read('x: R.Tensor(("n", 4), "float32")):\n        y = R.exp(x)\n        return y\n')
    assert NameUnknownSizes()(module) is module


def test_a_name_that_is_no_identifier_gives_symbols_none_of_their_own() -> None:
    x, builder = weft.ir.Var("1x", weft.ir.TensorType(None, "float32", 1)), weft.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(get_op("exp")(x)))
    named = NameUnknownSizes()(builder.get())
    weft.assert_well_formed(named)
    assert '"x_size0"' in named.script() or "(x_size0,)" in named.script()


def test_sizes_that_disagree_are_found_when_the_program_runs() -> None:
    """C9: the operator's place in the user's text."""
    main = weft.compile(read(KNOWN_RANK))["main"]
    with pytest.raises(ShapeError) as caught:
        main(numbers(2, 3), numbers(3, 3))
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.code) == (8, "W222")
    assert "x_size0 of `x` is 2, y_size0 of `y` is 3, and they must be equal" in str(caught.value)


def test_more_dimensions_than_there_are_branches_for_are_an_error() -> None:
    main = weft.compile(read(UNKNOWN_RANK))["main"]
    with pytest.raises(ShapeError, match="got a tensor of rank 6") as caught:
        main(numbers(*[1] * (MOST_DIMENSIONS + 1)))
    assert caught.value.span is not None
    assert caught.value.span.line == 8


def test_a_rank_that_the_operator_does_not_take_has_no_branch() -> None:
    main = weft.compile(read(SOFTMAX))["main"]
    with pytest.raises(ShapeError, match="rank 0"):
        main(numbers())
