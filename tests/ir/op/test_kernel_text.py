"""The loops that operators become, as text: one definition is one loop nest over its result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft import parse
from weft.ir import TensorType, Var, assert_structural_equal
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import get_op
from weft.ir.op.common import f32, i64, typed
from weft.ir.tensor import PrimFunc

Row = tuple[str, tuple[object, ...], dict[str, object]]
ROWS: list[Row] = [
    ("exp", (f32("n", 4),), {}),
    ("add", (f32("n", 4), f32(4)), {}),
    ("where", (typed("bool", "n", 1), f32("n", 4), f32("n", 4)), {}),
    ("permute_dims", (f32("n", 4),), {}),
    ("concat", ((f32("n", 4), f32("m", 4)),), {}),
    ("take", (f32("n", 4), i64("m")), {"axis": 0}),
    ("matmul", (f32("n", 4), f32(4, "m")), {}),
    ("linear", (f32("n", 4), f32(3, 4), f32(3)), {}),
    ("einsum", ((f32("b", 2, 3), f32("b", 3, "n")),), {"subscripts": "bij,bjk->bik"}),
    ("sum", (f32("n", 4),), {"axis": 1}),
    ("max", (f32("n", "m"),), {"axis": 1}),
    ("mean", (typed("float16", "n", 4),), {"axis": 1}),
    ("variance", (f32("n", 4),), {"axis": 1, "keepdims": True}),
    ("argmax", (f32("n", 4),), {"axis": 1}),
    ("cumsum", (f32("n", 4),), {"axis": 1}),
    ("nn.relu", (f32("n", 4),), {}),
    ("nn.gelu", (f32("n", 4),), {}),
    ("nn.silu", (f32("n", 4),), {}),
    ("nn.softmax", (f32("n", "m"),), {}),
    ("nn.log_softmax", (f32("n", 4),), {}),
    ("nn.layer_norm", (f32("n", 4), f32(4), f32(4)), {"axes": -1}),
    ("nn.rms_norm", (f32("n", 4), f32(4)), {}),
    ("nn.group_norm", (f32("n", 4, 3), f32(4), f32(4)), {"num_groups": 2, "channel_axis": 1, "axes": [2]}),
    ("nn.batch_norm", (f32("n", 4), *(f32(4) for _ in range(4))), {"axis": 1, "training": False}),
    ("nn.conv2d", (f32("n", 3, 8, 8), f32(4, 3, 3, 3)), {"padding": 1, "strides": 2}),
    ("nn.conv2d_transpose", (f32("n", 3, 4, 4), f32(3, 2, 2, 2)), {"strides": 2}),
    ("nn.max_pool2d", (f32("n", 3, 8, 8),), {"pool_size": 2, "strides": 2}),
    ("nn.avg_pool2d", (f32("n", 3, 8, 8),), {"pool_size": 3, "padding": 1}),
    ("nn.adaptive_avg_pool2d", (f32("n", 3, 7, 8),), {"output_size": [2, 1]}),
    ("nn.pad", (f32("n", 4),), {"pad_width": [0, 0, 1, 2]}),
    ("nn.attention", (f32(1, "s", 2, 4), f32(1, "t", 2, 4), f32(1, "t", 2, 4)), {"causal_mask": "TopLeft"}),
    ("nn.nll_loss", (f32("n", 3), i64("n")), {}),
]


def lowered(row: Row) -> PrimFunc:
    name, args, attrs = row
    count = 0

    def variable(item: object) -> object:
        nonlocal count
        if isinstance(item, tuple):
            return tuple(map(variable, item))
        if isinstance(item, TensorType):
            count += 1
            return Var(f"x{count}", item)
        return item

    definition = get_op(name)
    call = definition.bind([variable(item) for item in args], attrs)
    kernel = definition.lower(call, TypeContext(), name.rpartition(".")[2])
    assert kernel is not None
    return kernel


@pytest.mark.parametrize("row", ROWS, ids=[name for name, _, _ in ROWS])
def test_the_loops_of_an_operator_are_as_written_down(row: Row, golden: Callable[[str], None]) -> None:
    """A2."""
    first, second = lowered(row), lowered(row)
    assert_structural_equal(first, second)
    assert first.script() == second.script()
    golden(first.script())


@pytest.mark.parametrize("row", ROWS, ids=[name for name, _, _ in ROWS])
def test_the_text_of_the_loops_is_the_loops(row: Row) -> None:
    kernel = lowered(row)
    assert_structural_equal(parse(kernel.script()), kernel)
