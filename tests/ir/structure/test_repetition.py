"""Nodes that hold each other many times: work in proportion to their number, or an error that says why not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Tuple, Var
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.visit import MANY_NODES, refuse_repetition, walk
from weft.ir.tensor import Binary, Buffer, BufferStore, Evaluate, IntImm, Let, PrimFunc, PrimVar, SeqStmt
from weft.ir.types import TensorType

X, OUT = PrimVar("x", "int64"), Buffer("out", (1,), "int64")


def sums(levels: int) -> Any:
    made: Any = X
    for _ in range(levels):
        made = Binary("add", made, made)
    return made


def lets(levels: int) -> Any:
    made: Any = X
    for number in range(levels):
        variable = PrimVar(f"v{number}", "int64")
        made = Let(variable, Binary("add", X, X), Binary("add", Binary("add", made, variable), made))
    return made


def tuples(levels: int) -> Any:
    made: Any = V
    for _ in range(levels):
        made = Tuple((made, made))
    return made


V = Var("v", TensorType((4,), "float32"))


def kernel(value: Any) -> PrimFunc:
    return PrimFunc((X, OUT), BufferStore(OUT, value, (IntImm(0, "int64"),)), name="often")


@pytest.mark.parametrize("make", [sums, lets, tuples])
def test_equality_and_copies_take_each_part_once(make: Callable[[int], Any]) -> None:
    value = make(40)
    assert weft.structural_equal(copy.copy(value), value)
    assert weft.structural_equal(value, make(40))
    assert not weft.structural_equal(make(40), make(41))
    assert isinstance(copy.deepcopy(value), type(value))


def test_a_difference_in_what_is_used_often_is_found() -> None:
    a, b = PrimVar("a", "int64"), PrimVar("b", "int64")
    left, right = Binary("add", sums(40), a), Binary("add", sums(40), b)
    assert weft.first_mismatch(left, right) == "root.b: free PrimVar 'a' against PrimVar 'b'"
    assert weft.structural_equal(kernel(sums(40)), kernel(sums(40)))
    assert not weft.structural_equal(kernel(sums(40)), kernel(sums(39)))


@pytest.mark.parametrize(
    "use",
    [
        weft.structural_hash,
        lambda made: made.script(),
        weft.verify,
        lambda made: weft.interpret(made)["often"](1, np.zeros(1, "int64")),
        weft.compile,
        simplify,
        lambda made: sum(1 for _ in walk(made)),
    ],
)
def test_what_would_take_each_use_by_itself_is_refused(use: Callable[[Any], Any]) -> None:
    with pytest.raises(weft.WeftError) as caught:
        use(kernel(sums(40)))
    assert caught.value.code == "W952"
    assert caught.value.hint == "bind what is used several times to a variable"


def test_a_program_that_repeats_little_or_is_large_by_itself_is_taken() -> None:
    refuse_repetition(sums(16))
    wide = SeqStmt(tuple(Evaluate(IntImm(number, "int64")) for number in range(MANY_NODES)))
    refuse_repetition(wide)
    assert sum(1 for _ in walk(wide)) == 2 * MANY_NODES + 1
    assert weft.structural_hash(wide) == weft.structural_hash(SeqStmt(wide.stmts))


def test_the_hash_is_the_one_of_nodes_that_stand_once() -> None:
    def tree(levels: int) -> Any:
        return Binary("add", tree(levels - 1), tree(levels - 1)) if levels else X

    assert weft.structural_hash(sums(10)) == weft.structural_hash(tree(10))
    assert weft.structural_equal(sums(15), tree(15))
