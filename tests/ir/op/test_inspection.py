"""Facts about a tensor as scalars, in the interpreter and in compiled programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ShapeError
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import infer_type
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.ir.interpret import interpret
from weft.ir.op import get_op
from weft.ir.types import PrimType, TensorType

DATA = np.zeros((5, 3, 2), "float32")


@pytest.mark.parametrize(
    ("name", "axis", "dtype", "want"),
    [
        ("ndim", None, "int32", 3),
        ("shape_i", 0, "int64", 5),
        ("shape_i", -1, "int64", 2),
        ("stride_i", 0, "int64", 6),
        ("stride_i", 2, "int64", 1),
        ("byte_offset", None, "int64", 0),
        ("elem_offset", None, "int64", 0),
        ("dtype_code", None, "uint8", 2),
        ("dtype_bits", None, "uint8", 32),
        ("dtype_lanes", None, "uint16", 1),
    ],
)
def test_a_fact_is_a_scalar(name: str, axis: Any, dtype: str, want: int) -> None:
    x = Var("x", TensorType((symbol("n"), 3, 2), "float32"))
    call = get_op(f"inspect.tensor_{name}")(x, *(() if axis is None else (axis,)))
    ty = infer_type(call)
    assert isinstance(ty, PrimType)
    assert ty.dtype == dtype
    builder = BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    module = builder.get()
    assert int(interpret(module)["main"](DATA)) == want
    assert int(weft.compile(module)["main"](DATA)) == want


def test_an_axis_out_of_range_is_an_error() -> None:
    x = Var("x", TensorType((symbol("n"), 3), "float32"))
    with pytest.raises(ShapeError, match="axis 2 of 2 dimensions"):
        infer_type(get_op("inspect.tensor_shape_i")(x, 2))
