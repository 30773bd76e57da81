"""ControlFlowToKernels: loops and branches of graph functions become kernels that call those of their bodies."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import transform
from weft.errors import ArgumentError, TargetError
from weft.ir import Call, If, IRModule, Op, PrimFunc, walk

BEFORE = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scaled(h: T.Buffer(("n",), "float32"), x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = h[i] * T.float32(0.5) + x[i]

    @R.function(private=True)
    def body(x: R.Tensor(("n",), "float32"), i: R.Prim("int64"), a: R.Tensor(("n",), "float32"),
             b: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        y = R.call_tir(Module.scaled, (a, x), out_ty=R.Tensor((n,), "float32"))
        return (b, y)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), k: R.Tensor((), "int64"), s: R.Tensor((), "int64")):
        f = R.make_closure(Module.body, (x,))
        both = R.loop(f, (x, x), out_ty=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")],
                      range=(R.prim_value(0), k, s))
        a = both[0]
        b = both[1]
        return a, b
"""


def control(module: IRModule) -> list[str]:
    """What is left of control flow in the functions of the graph."""
    found = []
    for function in module.functions.values():
        if isinstance(function, PrimFunc):
            continue
        for node in walk(function):
            if isinstance(node, If):
                found.append("if")
            elif isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in ("loop", "make_closure"):
                found.append(node.op.name)
    return found


def test_a_loop_is_one_kernel_and_its_body_is_gone() -> None:
    module = weft.parse(BEFORE)
    after = transform.ControlFlowToKernels()(module)
    assert control(module) == ["make_closure", "loop"]
    assert control(after) == []
    assert sorted(after.functions) == ["main", "main_loop", "scaled"]
    assert weft.structural_equal(weft.parse(after.script()), after)
    assert weft.verify(after) == []
    x = np.arange(4, dtype="float32")
    for count in (0, 1, 2, 7):
        for found, wanted in zip(
            weft.interpret(after)["main"](x, np.array(count), np.array(1)),
            weft.interpret(module)["main"](x, np.array(count), np.array(1)),
            strict=True,
        ):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("stop", "step", "rounds"), [(7, 3, 3), (-5, -2, 3), (-5, 2, 0), (5, -1, 0)])
def test_a_range_that_a_run_decides_has_the_rounds_of_python(stop: int, step: int, rounds: int) -> None:
    after = transform.ControlFlowToKernels()(weft.parse(BEFORE))
    x = np.ones(2, "float32")
    a, b = x, x
    for _ in range(rounds):
        a, b = b, a * np.float32(0.5) + x
    assert rounds == len(range(0, stop, step))
    found = weft.interpret(after)["main"](x, np.array(stop), np.array(step))
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_array_equal(found[1], b)


def test_a_step_of_zero_is_an_error_of_the_kernel() -> None:
    after = transform.ControlFlowToKernels()(weft.parse(BEFORE))
    with pytest.raises(ArgumentError, match="the step of a loop is 0"):
        weft.compile(after)["main"](np.ones(2, "float32"), np.array(3), np.array(0))


def test_a_program_without_control_flow_is_left_alone() -> None:
    module = weft.parse('@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return R.exp(x)')
    module = IRModule({"main": module})
    assert transform.ControlFlowToKernels()(module) is module


def test_what_no_kernel_can_do_is_refused_by_name() -> None:
    text = BEFORE.replace(
        'R.call_tir(Module.scaled, (a, x), out_ty=R.Tensor((n,), "float32"))',
        'R.call_pure_packed("f", a, ty_args=R.Tensor((n,), "float32"))',
    )
    with pytest.raises(TargetError, match=r"R.call_pure_packed cannot be in a loop or a branch") as caught:
        transform.ControlFlowToKernels()(weft.parse(text))
    assert caught.value.code == "W741"
    assert caught.value.span is not None


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_branches_name_sizes_of_their_own(executor: str) -> None:
    module = weft.parse("""
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((5,), "float32"), y: R.Tensor(("n",), "float32")):
    if c:
        a = R.match_cast(x, R.Tensor(("q",), "float32"))
        z = R.sum(R.multiply(a, R.ones((q,), "float32")))
    else:
        b = R.match_cast(y, R.Tensor(("q",), "float32"))
        z = R.sum(R.multiply(b, R.full((q,), R.const(2.0, "float32"))))
    return z
""")
    main = weft.compile(module, executor=executor)["main"]
    x, y = np.arange(5, dtype="float32"), np.arange(3, dtype="float32")
    assert [float(main(np.bool_(c), x, y)) for c in (True, False)] == [10, 6]
