"""ControlFlowToKernels: loops and branches of graph functions become kernels that call those of their bodies."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import weft
from weft import transform
from weft.errors import ArgumentError, TargetError
from weft.ir import Call, Function, If, IRModule, Node, Op, PrimFunc, walk
from weft.ir.tensor import For

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


def read(text: str) -> IRModule:
    found = weft.parse(text)
    return (
        IRModule({"main": found})
        if isinstance(found, Function)
        else found
        if isinstance(found, IRModule)
        else IRModule()
    )


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
    module = read(BEFORE)
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
    after = transform.ControlFlowToKernels()(read(BEFORE))
    x = np.ones(2, "float32")
    a, b = x, x
    for _ in range(rounds):
        a, b = b, a * np.float32(0.5) + x
    assert rounds == len(range(0, stop, step))
    found = weft.interpret(after)["main"](x, np.array(stop), np.array(step))
    np.testing.assert_array_equal(found[0], a)
    np.testing.assert_array_equal(found[1], b)


def test_a_step_of_zero_is_an_error_of_the_kernel() -> None:
    after = transform.ControlFlowToKernels()(read(BEFORE))
    with pytest.raises(ArgumentError, match="the step of a loop is 0"):
        weft.compile(after)["main"](np.ones(2, "float32"), np.array(3), np.array(0))


def test_a_program_without_control_flow_is_left_alone() -> None:
    module = read('@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    return R.exp(x)')
    assert transform.ControlFlowToKernels()(module) is module


def test_what_no_kernel_can_do_is_refused_by_name() -> None:
    text = BEFORE.replace(
        'R.call_tir(Module.scaled, (a, x), out_ty=R.Tensor((n,), "float32"))',
        'R.call_pure_packed("f", a, ty_args=R.Tensor((n,), "float32"))',
    )
    with pytest.raises(TargetError, match=r"R.call_pure_packed cannot be in a loop or a branch") as caught:
        transform.ControlFlowToKernels()(read(text))
    assert caught.value.code == "W741"
    assert caught.value.span is not None


CALLED = """
from weft.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def half(v: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")) -> R.Tensor((4,), "float32"):
        return v * 0.5

    @R.function
    def main(x: R.Tensor((4,), "float32"), k: R.Tensor((), "int64")):
        h = x
        for i in range(k):
            h = Module.half(h, k)
        return h
"""


def test_functions_that_loops_call_are_part_of_them_or_refused_with_the_reason() -> None:
    private = CALLED.replace("@R.function\n    def half", "@R.function(private=True)\n    def half")
    run = weft.compile(read(private), executor="aot")
    np.testing.assert_array_equal(run(np.ones(4, "float32"), np.array(2)), np.full(4, 0.25, "float32"))
    recursive = private.replace("return v * 0.5", "return Module.half(v, k)")
    for text, what, hint in ((CALLED, "'half' cannot", "private=True"), (recursive, "which calls itself", "native")):
        with pytest.raises(TargetError, match=what) as caught:
            weft.compile(read(text), executor="aot")
        assert caught.value.code == "W741"
        assert hint in str(caught.value.hint)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_branches_name_sizes_of_their_own(executor: str) -> None:
    module = read("""
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


def of_body(*lines: str) -> IRModule:
    """The module with another body."""
    first, last = BEFORE.split("        y = R.call_tir"), BEFORE.index("    @R.function\n    def main")
    return read(first[0] + "".join(f"        {line}\n" for line in lines) + "\n" + BEFORE[last:])


def scaled(name: str, h: str) -> str:
    return f'{name} = R.call_tir(Module.scaled, ({h}, x), out_ty=R.Tensor((n,), "float32"))'


HANDED_ON = {
    "exchanged": (("return (b, a)",), 0),
    "each from itself": ((scaled("y", "a"), scaled("z", "b"), "return (y, z)"), 0),
    "exchanged and made": ((scaled("y", "a"), "return (b, y)"), 0),
    "made and exchanged": ((scaled("y", "b"), "return (y, a)"), 0),
    "one stays": ((scaled("y", "b"), "return (a, y)"), 0),
    "one is made and read again": ((scaled("y", "b"), scaled("z", "y"), "return (y, z)"), 0),
    "both take one": ((scaled("y", "a"), "return (y, y)"), 1),
    "both take a carried one": (("return (b, b)",), 1),
    "one takes an argument": (("return (b, x)",), 1),
    "both take an argument": (("return (x, x)",), 2),
    "made in a branch": (
        (
            "c = R.less(R.const(1.0), R.const(2.0))",
            "if c:",
            "    " + scaled("y", "a"),
            "else:",
            "    " + scaled("y", "b"),
            "return (b, y)",
        ),
        0,
    ),
}
"""By name a body, and how many tensors an iteration copies."""


def loops(statement: Node) -> list[For]:
    return [node for node in walk(statement) if isinstance(node, For)]


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_an_iteration_hands_on_changes_rooms(name: str) -> None:
    lines, copies = HANDED_ON[name]
    module = transform.LegalizeOps()(of_body(*lines))
    after = transform.ControlFlowToKernels()(module)
    assert weft.verify(after) == []
    assert weft.structural_equal(weft.parse(after.script()), after)
    kernel = after["main_loop"]
    assert isinstance(kernel, PrimFunc)
    (whole,) = [loop for loop in loops(kernel.body) if loop.loop_var.name == "step"]
    assert len(loops(whole.body)) == copies
    x = np.arange(1, 6, dtype="float32")
    compiled = weft.compile(after)["main"]
    for count in (0, 1, 2, 3, 7):
        wanted = weft.interpret(module)["main"](x, np.array(count), np.array(1))
        for run in (weft.interpret(after)["main"], compiled):
            for part, other in zip(run(x, np.array(count), np.array(1)), wanted, strict=True):
                np.testing.assert_allclose(part, other, rtol=1e-6)


WHILE = """
a, b, c = x, x * 2.0, 0
while R.sum(a) < t:
    a, b, c = b, a + b, c + 1
return a, b, c
"""
LEFT = """
a, b = x, x * 2.0
for i in range(9):
    if R.sum(b) > t:
        break
    a, b = b, a + b
return a, b, i
"""
WITHIN = """
a, b = x, x * 2.0
for i in range(5):
    for j in range(i):
        a, b = b, a + b
    a, b = b, a - 1.0
return a, b, i
"""


@pytest.mark.parametrize("body", [WHILE, LEFT, WITHIN])
@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_tensors_that_change_rooms_are_found_after_a_loop_that_ends_early(executor: str, body: str) -> None:
    head = 'def main(x: R.Tensor((4,), "float32"), t: R.Tensor((), "float32")):\n'
    module = read("@R.function\n" + head + textwrap.indent(body, "    "))
    place: dict[str, Any] = {"R": np}
    exec("def main(x, t):\n" + textwrap.indent(body, "    "), place)
    x = np.linspace(0, 2, 4).astype("float32")
    run = weft.compile(module, executor=executor)
    for bound in (-1.0, 10.0, 30.0, 60.0, 100.0):
        t = np.array(bound, "float32")
        for part, other in zip(run(x, t), place["main"](x, t), strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-5)


@pytest.mark.parametrize(("result", "copies"), [("y", 0), ("a", 1), ("x", 1)])
def test_rows_of_their_own_are_made_in_place(result: str, copies: int) -> None:
    text = BEFORE.replace("return (b, y)", f"return (b, a, {result})")
    text = text.replace(
        ' -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))',
        ' -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))',
    )
    text = text.replace("range=(R.prim_value(0), k, s)", "range=(0, 5, 1), stacked=1").replace(
        'R.Tensor((n,), "float32")],', 'R.Tensor((n,), "float32"), R.Tensor((5, n), "float32")],'
    )
    module = transform.LegalizeOps()(read(text.replace("return a, b", "rows = both[2]\n        return a, b, rows")))
    after = transform.ControlFlowToKernels()(module)
    (whole,) = [loop for loop in loops(after["main_loop"]) if loop.loop_var.name == "step"]
    assert len(loops(whole.body)) == copies
    x = np.arange(1, 6, dtype="float32")
    wanted = weft.interpret(module)["main"](x, np.array(5), np.array(1))
    for run in (weft.interpret(after)["main"], weft.compile(after)["main"]):
        for part, other in zip(run(x, np.array(5), np.array(1)), wanted, strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-6)
