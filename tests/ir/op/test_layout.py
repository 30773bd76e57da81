"""Index maps: functions, text and scripts give one form; wrong ones are errors."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.errors import ScriptError, ShapeError
from weft.ir import assert_structural_equal
from weft.ir.deduction.infer import infer_type, type_text
from weft.ir.dim import symbol
from weft.ir.graph import PrimValue, Var
from weft.ir.op import get_op
from weft.ir.types import TensorType

SOURCE = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")) -> R.Tensor(("n", 2, 4), "float32"):
        with R.dataflow():
            y = R.layout_transform(x, index_map=T.index_map(lambda n, c: (n, c // 4, c % 4)), pad_value=1.0)
            R.output(y)
        return y
"""


def data() -> Var:
    return Var("x", TensorType((symbol("n"), 6), "float32"))


def test_a_function_and_its_text_are_one_map() -> None:
    x = data()
    transform = get_op("layout_transform")
    assert_structural_equal(transform(x, lambda a, b: (b, a)), transform(x, "lambda i, j: (j, i)"))


def test_sizes_that_do_not_divide_are_padded() -> None:
    call = get_op("layout_transform")(data(), lambda n, c: (n, c // 4, c % 4))
    assert type_text(infer_type(call)) == 'R.Tensor((n, 2, 4), "float32")'


def test_a_script_with_an_index_map_reads_prints_and_runs() -> None:
    module = weft.parse(SOURCE)
    assert_structural_equal(weft.parse(module.script()), module)
    x = np.arange(12, dtype="float32").reshape(2, 6)
    want = np.pad(x, ((0, 0), (0, 2)), constant_values=1).reshape(2, 2, 4)
    np.testing.assert_array_equal(weft.compile(module)["main"](x), want)


@pytest.mark.parametrize("wrong", ["i + 1", "lambda i, j: k", "lambda *i: i", "lambda i: (", 3, lambda i, j: "a"])
def test_what_is_no_index_map_is_an_error(wrong: object) -> None:
    with pytest.raises(ScriptError, match="index map"):
        get_op("layout_transform")(data(), wrong)


def test_an_index_that_may_be_negative_is_an_error() -> None:
    with pytest.raises(ShapeError, match="may be negative"):
        infer_type(get_op("layout_transform")(data(), lambda i, j: (i, j - 1)))


def test_a_map_of_another_number_of_indices_is_an_error() -> None:
    with pytest.raises(ShapeError, match="takes 1 indices"):
        infer_type(get_op("layout_transform")(data(), lambda i: i))


def test_what_pads_may_be_a_size() -> None:
    """A kernel gets the symbols of numbers that are part of it."""
    x, n = Var("x", TensorType((symbol("n"),), "int64")), PrimValue(symbol("n") * 2, "int64")
    builder = weft.BlockBuilder()
    with builder.function("main", [x, Var("s", TensorType((symbol("n"),), "float32"))]):
        builder.emit_func_output(builder.emit(get_op("layout_transform")(x, lambda i: (i // 4, i % 4), n)))
    module = builder.get()
    for run in (weft.interpret(module)["main"], weft.compile(module)["main"]):
        got = run(np.ones(3, "int64"), np.ones(3, "float32"))
        np.testing.assert_array_equal(got, [[1, 1, 1, 6]])
