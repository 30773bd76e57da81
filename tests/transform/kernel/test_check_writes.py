"""Scratch and outputs that are read before they are written: W901 from every executor, never what memory held."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import IRModule, PrimFunc
from weft.transform import CheckWrites
from weft.transform.kernel.check_writes import check_writes

HEAD = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func
    def k(x: T.Buffer((8,), "float32"), s: T.Buffer((1,), "int64"), y: T.Buffer((8,), "float32")):
{body}

    @R.function
    def main(x: R.Tensor((8,), "float32"), s: R.Tensor((1,), "int64")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            y = R.call_tir(M.k, (x, s), R.Tensor((8,), "float32"){target})
            R.output(y)
        return y
"""
EARLY = {
    "scratch that is written later": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            y[i] = c[i] + x[i]
        for i in range(8):
            c[i] = x[i]
    """,
    "half of the scratch": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(4):
            c[i] = x[i]
        for i in range(8):
            y[i] = c[i] + x[i]
    """,
    "an output": """
        for i in range(8):
            y[i] = x[i] + y[7 - i]
    """,
    "what a branch wrote": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            if s[0] > 0:
                c[i] = x[i]
        for i in range(8):
            y[i] = c[i]
    """,
    "a choice": """
        c = T.alloc_buffer((8,), "float32")
        c[3] = T.float32(1)
        for i in range(8):
            y[i] = T.if_then_else(s[0] > 0, x[i], c[i])
    """,
    "a place that memory names": """
        c = T.alloc_buffer((8,), "float32")
        c[T.max(T.min(s[0], 7), 0)] = T.float32(1)
        for i in range(8):
            y[i] = c[0] + x[i]
    """,
    "a while": """
        c = T.alloc_buffer((2,), "int64")
        c[0] = s[0]
        while c[0] + c[T.max(T.min(c[0], 1), 0)] > 0:
            c[0] = c[0] - 1
        for i in range(8):
            y[i] = x[i]
    """,
}
PROVED = {
    "in order": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            c[i] = x[i]
        for i in range(8):
            y[i] = c[7 - i]
    """,
    "a sum with an init": """
        c = T.alloc_buffer((1,), "float32")
        c[0] = T.float32(0)
        for i in range(8):
            c[0] = c[0] + x[i]
        for i in range(8):
            y[i] = c[0]
    """,
    "two halves": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(3):
            c[i] = x[i]
        for i in range(5):
            c[3 + i] = x[i]
        for i in range(8):
            y[i] = c[i]
    """,
    "tiles": """
        c = T.alloc_buffer((2, 4), "float32")
        for i, j in T.grid(2, 4):
            c[i, j] = x[i * 4 + j]
        for i in range(8):
            y[i] = c[i // 4, i % 4]
    """,
    "fused loops": """
        c = T.alloc_buffer((2, 4), "float32")
        for i in range(8):
            c[i // 4, i % 4] = x[i]
        for i, j in T.grid(2, 4):
            y[i * 4 + j] = c[i, j]
    """,
    "backwards": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            c[7 - i] = x[i]
        for i in range(8):
            y[i] = c[i]
    """,
    "both branches": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            if s[0] > 0:
                c[i] = x[i]
            else:
                c[i] = T.float32(0)
        for i in range(8):
            y[i] = c[i]
    """,
    "a block with an init": """
        c = T.alloc_buffer((1,), "float32")
        for i in range(8):
            with T.block("sum"):
                v = T.axis.reduce(8, i)
                with T.init():
                    c[0] = T.float32(0)
                c[0] = c[0] + x[v]
        for i in range(8):
            y[i] = c[0]
    """,
    "the first iteration": """
        c = T.alloc_buffer((8,), "float32")
        for k, i in T.grid(3, 8):
            if k == 0:
                c[i] = T.float32(0)
            c[i] = c[i] + x[i]
        for i in range(8):
            y[i] = c[i]
    """,
    "earlier iterations": """
        for i in range(8):
            y[i] = T.if_then_else(i > 0, y[i - 1], T.float32(0)) + x[i]
    """,
    "a place in range that memory names": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            c[i] = x[i]
        for i in range(8):
            y[i] = c[s[0]]
    """,
    "vectors": """
        c = T.alloc_buffer((8,), "float32")
        for i in range(2):
            c[i * 4 : i * 4 + 4] = x[i * 4 : i * 4 + 4]
        for i in range(8):
            y[i] = c[i]
    """,
}


def module_of(body: str, target: str = "") -> IRModule:
    """A kernel with a body, and a graph function that calls it."""
    module = weft.parse(HEAD.format(body=textwrap.indent(textwrap.dedent(body), " " * 8), target=target))
    assert isinstance(module, IRModule)
    return module


def on_c(body: str) -> Callable[..., object]:
    """The kernel in C, driven by machine code."""
    return weft.compile(module_of(body, ', target="slow"'), target="host: llvm; slow: c")["main"]


RUNS: dict[str, Callable[[str], Callable[..., object]]] = {
    "interpreter": lambda body: weft.interpret(module_of(body))["main"],
    "native": lambda body: weft.compile(module_of(body))["main"],
    "vm": lambda body: weft.compile(module_of(body), executor="vm")["main"],
    "graph": lambda body: weft.compile(module_of(body), executor="graph")["main"],
    "aot": lambda body: weft.compile(module_of(body), executor="aot")["main"],
    "c": on_c,
}
X = np.arange(8, dtype="float32")


def outcome(run: Callable[..., object], at: int) -> object:
    """The result as a list, or the code of the error."""
    try:
        return np.asarray(run(X.copy(), np.array([at], "int64"))).tolist()
    except weft.WeftError as error:
        return error.code


@pytest.mark.parametrize("executor", [*RUNS][1:])
@pytest.mark.parametrize("name", ["half of the scratch", "an output", "what a branch wrote"])
def test_every_executor_refuses_what_the_interpreter_refuses(name: str, executor: str) -> None:
    if executor == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    want, got = RUNS["interpreter"](EARLY[name]), RUNS[executor](EARLY[name])
    outcomes = [(outcome(want, at), outcome(got, at)) for at in (0, 1, 9)]
    assert all(left == right for left, right in outcomes), outcomes
    assert ("W901", "W901") in outcomes


@pytest.mark.parametrize("body", EARLY.values(), ids=EARLY)
def test_a_read_of_what_was_not_written_is_an_error_of_compiled_code_too(body: str) -> None:
    outcomes = {at: [outcome(RUNS[name](body), at) for name in ("interpreter", "native")] for at in (0, 1, 9)}
    assert all(left == right for left, right in outcomes.values()), outcomes
    assert any(left == "W901" for left, _ in outcomes.values())


@pytest.mark.parametrize("body", PROVED.values(), ids=PROVED)
def test_kernels_that_write_first_stay_as_they_are(body: str) -> None:
    module = module_of(body)
    assert CheckWrites()(module) is module
    for at in (0, 5):
        assert outcome(RUNS["interpreter"](body), at) == outcome(RUNS["native"](body), at)


def test_scratch_that_nothing_sets_is_refused() -> None:
    body = """
        c = T.alloc_buffer((1,), "float32")
        for i in range(8):
            c[0] = c[0] + x[i]
        for i in range(8):
            y[i] = c[0]
    """
    assert "W475" in {finding.code for finding in weft.verify(module_of(body))}


def test_a_kernel_called_from_outside_may_read_what_its_caller_put_there() -> None:
    module = module_of("for i in range(8):\n    y[i] = x[i] + y[7 - i]\n")
    y = np.zeros(8, "float32")
    weft.compile(module)["k"](X, np.zeros(1, "int64"), y)
    want = np.zeros(8, "float32")
    for i in range(8):
        want[i] = X[i] + want[7 - i]
    np.testing.assert_array_equal(y, want)


def test_scratch_that_is_seen_through_a_view_begins_as_zeros() -> None:
    body = """
        c = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                d = T.match_buffer(c[v : v + 1], (1,), "float32")
                y[v] = d[0] + x[v]
    """
    np.testing.assert_array_equal(RUNS["native"](body)(X, np.zeros(1, "int64")), X)


STEPS = st.sampled_from(
    [
        "for i in range({a}, {b}):\n    c[i] = x[i]",
        "for i in range({a}):\n    c[{b} - 1 - i] = x[i]",
        "for i in range({a}, {b}):\n    y[i] = c[i] + x[i]",
        "for i in range({a}):\n    y[i] = c[T.max(i - {b}, 0)]",
        "if s[0] > {a}:\n    c[{b} - 1] = T.float32(1)",
        "if s[0] > {a}:\n    for i in range(8):\n        c[i] = T.float32(i)\nelse:\n    c[0] = T.float32(2)",
        "for i in range({a}, {b}):\n    c[i] = T.if_then_else(i > {a}, c[T.max(i - 1, 0)], x[i])",
        "for i in range({a}, {b}):\n    if i == s[0]:\n        continue\n    c[i] = x[i]",
        "for i in range({b}):\n    if i == s[0]:\n        break\n    c[i] = x[i]",
        "for k, i in T.grid(2, {b}):\n    if k == 0:\n        c[i] = x[i]\n    c[i] = c[i] + x[i]",
    ]
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(STEPS, st.integers(0, 4), st.integers(5, 8)), min_size=1, max_size=4), st.integers(0, 1))
def test_random_kernels_read_what_they_wrote_or_say_that_they_did_not(
    steps: list[tuple[str, int, int]], early: int
) -> None:
    parts = ['c = T.alloc_buffer((8,), "float32")', "for i in range(8):\n    y[i] = x[i]"]
    parts += [step.format(a=a, b=b) for step, a, b in steps]
    kernel = module_of("\n".join(parts[early:] if "c[" not in "".join(parts[1:]) else parts))["k"]
    assert isinstance(kernel, PrimFunc)
    checked = weft.interpret(IRModule({"k": check_writes(kernel)}))["k"]
    plain = weft.interpret(IRModule({"k": kernel}))["k"]
    for at in (-1, 0, 2, 7):
        outcomes = []
        for run in (plain, checked):
            y = np.zeros(8, "float32")
            try:
                run(X, np.array([at], "int64"), y)
            except weft.BoundsError as error:
                outcomes.append((error.code, error.message.startswith("an element") and run is plain))
            else:
                outcomes.append(y.tolist())
        codes = [one[0] if isinstance(one, tuple) else one for one in outcomes]
        assert codes[0] == codes[1], at
