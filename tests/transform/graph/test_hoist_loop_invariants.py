"""HoistLoopInvariants moves what all iterations share, and nothing else."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import weft
from weft.ir import Call, Function, IRModule, Op, VarBinding
from weft.testing import assert_same_meaning
from weft.transform import HoistLoopInvariants
from weft.transform.infra.rewriting import bindings_of

HEAD = """
from weft.script import relax as R, ir as I

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("t", "n"), "float32"), w: R.Tensor(("n", "n"), "float32")) -> R.Tensor(("n",), "float32"):
        h = x[0] * 0.0
"""


def module(body: str) -> IRModule:
    made = weft.parse(HEAD + textwrap.indent(textwrap.dedent(body), "        ") + "        return h\n")
    assert isinstance(made, IRModule)
    return made


def before_the_loops(made: IRModule) -> list[str]:
    """The operators that stand in the outermost body."""
    function = made["main"]
    assert isinstance(function, Function)
    calls = [b.value for b in bindings_of(function.body) if isinstance(b, VarBinding) and isinstance(b.value, Call)]
    return [call.op.name for call in calls if isinstance(call.op, Op)]


def test_a_value_of_outer_variables_moves_before_the_loop() -> None:
    before = module("for i in range(t):\n    h = R.tanh(R.matmul(h, R.permute_dims(w)) + x[i])\n")
    after = HoistLoopInvariants()(before)
    assert before_the_loops(before) == ["take", "multiply", "loop"]
    assert before_the_loops(after) == ["take", "multiply", "permute_dims", "loop"]
    assert_same_meaning(before, after)


def test_a_value_may_leave_several_loops() -> None:
    before = module("for i in range(t):\n    for j in range(2, t):\n        h = R.matmul(h, R.exp(w)) + x[i]\n")
    after = HoistLoopInvariants()(before)
    assert "exp" in before_the_loops(after)
    assert_same_meaning(before, after)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(t):\n    h = h + x[i]\n",
        "for i in range(t):\n    h = h + R.sum(R.exp(h))\n",
        "for i in range(t):\n    h = h + R.astype(R.prim_value(i), 'float32')\n",
        "for i in range(t):\n    h = R.strided_slice(R.concat([R.zeros((i,), 'float32'), h]), [0], [i], [i + n])\n",
    ],
)
def test_what_the_iteration_binds_stays(body: str) -> None:
    before = module(body)
    assert before_the_loops(HoistLoopInvariants()(before)) == before_the_loops(before)


def test_an_index_that_may_be_out_of_range_stays() -> None:
    before = module("for i in range(t, t):\n    h = h + x[5]\n")
    assert before_the_loops(HoistLoopInvariants()(before)) == before_the_loops(before)
    found = weft.compile(before)(np.ones((2, 3), "float32"), np.ones((3, 3), "float32"))
    np.testing.assert_array_equal(found, np.zeros(3, "float32"))


def test_a_check_of_sizes_stays_where_it_may_not_run() -> None:
    before = module("for i in range(t, t):\n    h = h + R.sum(R.matmul(x, x))\n")
    after = HoistLoopInvariants()(before)
    assert "matmul" not in before_the_loops(after)
    found = weft.compile(after)(np.ones((2, 3), "float32"), np.ones((3, 3), "float32"))  # 2 is not 3, and no matter
    np.testing.assert_array_equal(found, np.zeros(3, "float32"))
