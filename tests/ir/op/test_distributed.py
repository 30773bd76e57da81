"""Types of the operators of several workers."""

from __future__ import annotations

from typing import Any

import pytest

from weft.errors import ShapeError
from weft.ir.deduction.infer import TypeContext, infer_type, type_text
from weft.ir.dim import symbol
from weft.ir.graph import Var
from weft.ir.op import get_op
from weft.ir.types import TensorType


def data() -> Var:
    return Var("x", TensorType((symbol("n"), 8), "float32"))


@pytest.mark.parametrize(
    ("name", "attrs", "want"),
    [
        ("ccl.allreduce", {"op_type": "max"}, "(n, 8)"),
        ("ccl.allgather", {"num_workers": 2}, "(2 * n, 8)"),
        ("ccl.broadcast_from_worker0", {}, "(n, 8)"),
        ("ccl.scatter_from_worker0", {"num_workers": 4, "axis": 1}, "(n, 2)"),
        ("ccl.scatter_from_worker0", {"num_workers": 2}, "(n // 2, 8)"),
        ("dist.redistribute_replica_to_shard", {"num_workers": 2, "axis": -1}, "(n, 4)"),
    ],
)
def test_a_worker_has_its_part(name: str, attrs: dict[str, Any], want: str) -> None:
    assert type_text(infer_type(get_op(name)(data(), **attrs))) == f'R.Tensor({want}, "float32")'


def test_an_axis_that_the_workers_may_not_divide_is_checked_at_run_time() -> None:
    context = TypeContext()
    infer_type(get_op("ccl.scatter_from_worker0")(data(), num_workers=2), context)
    assert [str(check) for check in context.checks] == ["n % 2 == 0 (R.ccl.scatter_from_worker0: n by 2)"]


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        ("ccl.allreduce", {"op_type": "xor"}, "unknown op_type"),
        ("ccl.allgather", {"num_workers": 0}, "at least 1"),
        ("ccl.scatter_from_worker0", {"num_workers": 3, "axis": 1}, "8 by 3"),
        ("dist.redistribute_replica_to_shard", {"num_workers": 2, "axis": 2}, "axis 2 of 2 dimensions"),
    ],
)
def test_what_does_not_fit_is_an_error(name: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer_type(get_op(name)(data(), **attrs))
