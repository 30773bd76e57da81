"""Options of printing: one function, line numbers, underlined parts."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import weft
from weft.script import parse

MODULE = parse(
    """
@I.ir_module
class M:
    @T.prim_func
    def k(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0 + T.exp(A[vj, vi])

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        z = R.add(y, x)
        return z
"""
)
assert isinstance(MODULE, weft.ir.IRModule)
MAIN = MODULE["main"]
KERNEL = MODULE["k"]
assert isinstance(MAIN, weft.ir.Function)
assert isinstance(KERNEL, weft.ir.PrimFunc)
FIRST, SECOND = MAIN.body.blocks[0].bindings  # type: ignore[union-attr]


def underlined(text: str) -> list[str]:
    """The parts of a text above carets."""
    found = []
    lines = text.split("\n")
    for above, below in itertools.pairwise(lines):
        if below.strip(" |") and not below.strip(" |^"):
            found.extend(above[mark.start() : mark.end()] for mark in re.finditer(r"\^+", below))
    return found


def test_one_function_of_a_module_can_be_printed() -> None:
    text = MODULE.script(only="main")
    assert "class" not in text
    weft.assert_structural_equal(parse(text), MAIN)
    with pytest.raises(weft.ScriptError) as caught:
        MODULE.script(only="mian")
    assert (caught.value.code, caught.value.hint) == ("W113", "did you mean `main`?")
    with pytest.raises(weft.ScriptError, match="only a module"):
        MAIN.script(only="main")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (SECOND.value, "R.add(y, x)"),
        (FIRST, 'y: R.Tensor((2,), "float32") = R.exp(x)'),
        (FIRST.var.ty, 'R.Tensor((2,), "float32")'),
        ("root.body.blocks[0].bindings[1].value.args[1]", "x"),
        ("root.body.blocks[0].bindings[1].value.args[1]: Var 'x' against Var 'y'", "x"),
        ("root.ret_type", 'R.Tensor((2,), "float32")'),
        ("root.pure", 'def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):'),
    ],
)
@pytest.mark.parametrize("numbers", [False, True])
def test_a_node_or_a_path_is_underlined(target: object, expected: str, numbers: bool) -> None:
    found = underlined(MAIN.script(underline=target, line_numbers=numbers))
    assert expected in found


def test_parts_of_kernels_are_underlined() -> None:
    block = KERNEL.body.body.body  # type: ignore[union-attr]
    text = KERNEL.script(underline=[block.body.value.b, block, "root.body.body.body.body.value.a.a.indices[1]"])
    assert 'with T.block("b"):' in underlined(text)
    assert underlined(text)[1:] == ["A[vi, vj]", "T.exp(A[vj, vi])"]


def test_what_the_text_does_not_show_underlines_what_holds_it() -> None:
    assert underlined(KERNEL.script(underline=KERNEL.body.body)) == ["for i, j in T.grid(8, 8):"]  # type: ignore[union-attr]


def test_a_mismatch_is_underlined_in_every_spelling() -> None:
    other = parse(MAIN.script().replace("R.add(y, x)", "R.add(y, y)"))
    path = weft.first_mismatch(MAIN, other)
    assert underlined(MAIN.script(underline=path)) == ["x"]
    assert underlined(MAIN.script(underline=path, spelling="tvm-0.27")) == ["x"]
    path = "root.functions['main'].body.blocks[0].bindings[0].value"
    assert underlined(MODULE.script(underline=path)) == ["R.exp(x)"]


@pytest.mark.parametrize("path", ["root.nope", "root.body[3]", "x y", "root.body.__class__", "root.functions['f']"])
def test_a_path_that_leads_nowhere_is_an_error(path: str) -> None:
    with pytest.raises(weft.ScriptError) as caught:
        MAIN.script(underline=path)
    assert caught.value.code == "W114"


def test_a_node_of_another_text_is_an_error() -> None:
    with pytest.raises(weft.ScriptError, match="is not in the text"):
        MAIN.script(underline=KERNEL.body)


def test_text_without_marks_is_unchanged() -> None:
    text = MODULE.script(underline=SECOND)
    assert "\n".join(line for line in text.split("\n") if not line.strip() or line.strip(" ^")) == MODULE.script()


def test_unequal_nodes_are_shown_with_the_difference_underlined() -> None:
    other = parse(MAIN.script().replace("R.add(y, x)", "R.add(y, y)"))
    with pytest.raises(AssertionError) as caught:
        weft.assert_structural_equal(MAIN, other)
    assert underlined(str(caught.value)) == ["x", "y", "y"]  # one variable in two places


def test_few_carets_stand_below_a_long_part() -> None:
    """What is underlined shows where it starts; a constant of thousands of characters needs no more."""
    long = weft.ir.Constant(np.arange(4000, dtype="int32"))
    line, carets = long.script(underline=long).splitlines()
    assert len(line) > 4000
    assert carets == "^" * 120


def test_a_spelling_that_is_not_known_is_refused() -> None:
    with pytest.raises(weft.WeftError, match=r"unknown spelling 'tvm-9'") as caught:
        MAIN.script(spelling="tvm-9")
    assert caught.value.code == "W113"
