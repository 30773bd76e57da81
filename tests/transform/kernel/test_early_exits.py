"""What runs after continue, break, return, thread_return and assumptions: bounds are proved from it, never refuted."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import weft
from weft.ir import walk
from weft.ir.tensor import AssertStmt
from weft.transform.kernel.check_bounds import check_bounds

PROVED = {
    "continue": """
        for i in T.serial(0, 64):
            if i >= 8:
                continue
            x[i] = 1.0
    """,
    "continue in an else branch": """
        for i in T.serial(0, 64):
            if i < 8:
                x[i] = 1.0
            else:
                continue
            x[i] = 2.0
    """,
    "break": """
        for i in T.serial(0, 64):
            if i == 8:
                break
            if i < 8:
                x[i] = 1.0
    """,
    "break in an else branch": """
        for i in T.serial(0, 64):
            if i < 8:
                x[i] = 1.0
            else:
                break
            x[i] = 2.0
    """,
    "return": """
        if T.Or(s < 0, s >= 8):
            return
        x[s] = 1.0
    """,
    "return below an else": """
        if s < 0:
            return
        else:
            if s > 7:
                return
        x[s] = 1.0
    """,
    "both branches of a choice inside": """
        if T.Or(s < 0, s >= 8):
            if s < 0:
                return
            else:
                return
        x[s] = 1.0
    """,
    "a value in memory": """
        if T.Or(y[0] < 0, y[0] >= 8):
            return
        x[y[0]] = 1.0
    """,
    "the end of a while": """
        while y[0] >= 8:
            y[0] = y[0] - 1
        if y[0] >= 0:
            x[y[0]] = 1.0
    """,
    "an assumption": """
        T.evaluate(T.assume(T.And(0 <= s, s < 8)))
        x[s] = 1.0
    """,
}
OPEN = {
    "the wrong side": """
        for i in T.serial(0, s):
            if i < 8:
                continue
            x[i] = 1.0
    """,
    "a branch that goes on": """
        for i in T.serial(0, s):
            if i >= 8:
                y[0] = 1
            x[i] = 1.0
    """,
    "memory that is written between": """
        if T.Or(y[0] < 0, y[0] >= 8):
            return
        y[0] = y[0] + s
        x[y[0]] = 1.0
    """,
    "memory that the other branch writes": """
        if T.Or(y[0] < 0, y[0] >= 8):
            return
        else:
            y[0] = y[0] + s
        x[y[0]] = 1.0
    """,
    "a while that a break leaves": """
        while y[0] >= 8:
            if s == 3:
                break
            y[0] = y[0] - 1
        if y[0] >= 0:
            x[y[0]] = 1.0
    """,
}
HEAD = """
from weft.script import ir as I, tir as T

@I.ir_module
class M:
    @T.prim_func
    def main(x: T.Buffer((8,), "float32"), y: T.Buffer((1,), "int64"), s: T.int64):
"""


def module_of(body: str) -> weft.IRModule:
    """A kernel with a body."""
    module = weft.parse(HEAD + textwrap.indent(textwrap.dedent(body), " " * 8))
    assert isinstance(module, weft.IRModule)
    return module


def checks(module: weft.IRModule) -> list[AssertStmt]:
    """The checks of indices that proofs leave over."""
    body = check_bounds(module["main"], module).body  # type: ignore[arg-type]
    found = [part for part in walk(body) if isinstance(part, AssertStmt)]
    return [part for part in found if "index out of range" in part.message]


@pytest.mark.parametrize("body", PROVED.values(), ids=PROVED)
def test_what_an_early_exit_leaves_needs_no_check(body: str) -> None:
    assert not checks(module_of(body))


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_an_exit_that_says_nothing_of_the_index_leaves_a_check(body: str) -> None:
    assert checks(module_of(body))


@pytest.mark.parametrize("body", [*PROVED.values(), *OPEN.values()], ids=[*PROVED, *OPEN])
def test_kernels_with_early_exits_compile_to_what_the_interpreter_says(body: str) -> None:
    module = module_of(body)
    runs = (weft.interpret(module)["main"], weft.compile(module)["main"])
    for first, scalar in ((0, 3), (7, 12), (-1, 9), (9, -1), (20, 3)):
        outcomes = []
        for run in runs:
            x, y = np.zeros(8, "float32"), np.array([first], "int64")
            try:
                run(x, y, scalar)
            except weft.BoundsError as error:
                if error.code != "W902":  # the interpreter minds elements of an output that nothing has written
                    outcomes.append("BoundsError")
                    continue
            outcomes.append((x.tolist(), y.tolist()))
        assert outcomes[0] == outcomes[1], (first, scalar)


BEYOND = """
for i in T.serial(0, 64):
    if i >= 8:
        {jump}
    x[i] = 1.0
"""


@pytest.mark.parametrize("jump", ["continue", "break", "return", "T.evaluate(T.thread_return())"])
def test_an_index_after_an_early_exit_is_not_refuted(jump: str) -> None:
    assert module_of(BEYOND.format(jump=jump))


def test_iterations_before_a_break_are_not_refuted_and_those_of_a_plain_loop_are() -> None:
    assert module_of("for i in T.serial(0, 64):\n    x[i] = 1.0\n    if i == s:\n        break\n")
    with pytest.raises(weft.VerifyError) as error:
        module_of("for i in T.serial(0, 64):\n    x[i] = 1.0\n    if i == s:\n        continue\n")
    assert error.value.code == "W456"
