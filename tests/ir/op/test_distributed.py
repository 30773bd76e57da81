"""Types of the operators of several workers."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ScriptError, ShapeError
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


ALONE = """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        for i in range(3):
            a = R.ccl.scatter_from_worker0(R.ccl.broadcast_from_worker0(x), num_workers=1, axis=1)
            b = R.dist.redistribute_replica_to_shard(a, num_workers=1, axis=0)
            x = R.ccl.allgather(R.ccl.allreduce(b, "avg"), num_workers=1) + 1.0
        return x
"""


@pytest.mark.parametrize("executor", ["interpreter", "native", "vm"])
def test_one_worker_has_all_of_it(executor: str) -> None:
    made = weft.parse(textwrap.dedent(ALONE))
    main = (weft.interpret(made) if executor == "interpreter" else weft.compile(made, executor=executor))["main"]
    x = np.arange(8, dtype="float32").reshape(2, 4)
    np.testing.assert_array_equal(main(x), x + 3)


@pytest.mark.parametrize(
    "call",
    [
        "R.ccl.allgather(x, num_workers=2)",
        "R.ccl.scatter_from_worker0(x, num_workers=2)",
        "R.dist.redistribute_replica_to_shard(x, num_workers=2, axis=1)",
    ],
)
def test_more_than_one_worker_is_refused_by_name(call: str) -> None:
    made = weft.parse(f'@R.function\ndef main(x: R.Tensor((2, 4), "float32")):\n    y = {call}\n    return y\n')
    name = call.partition("(")[0]
    for run in (lambda: weft.compile(made), lambda: weft.interpret(made)["main"](np.zeros((2, 4), "float32"))):
        with pytest.raises(ScriptError, match=f"{name} of 2 workers: programs run on one") as caught:
            run()
        assert caught.value.code == "W143"


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
