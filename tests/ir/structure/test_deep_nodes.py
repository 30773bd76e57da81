"""Nodes as deep as a program can build them: no recursion, and memory in proportion to their size."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Tuple, TupleType, Var
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import Binary, Buffer, BufferStore, IntImm, PrimFunc, PrimVar
from weft.ir.types import PrimType, TensorType

DEEP = 3_000
assert sys.getrecursionlimit() < DEEP


def on_the_left() -> Any:
    made: Any = PrimVar("x", "int64")
    for number in range(DEEP):
        made = Binary("mul", made, IntImm(number % 7 + 2, "int64"))
    return made


def on_the_right() -> Any:
    first = PrimVar("x", "int64")
    made: Any = first
    for _ in range(DEEP):
        made = Binary("max", first, made)
    return made


def tuples() -> Any:
    made: Any = Var("v", TensorType((4,), "float32"))
    for _ in range(DEEP):
        made = Tuple((made,))
    return made


def types() -> Any:
    made: Any = TensorType(("n", 4), "float32")
    for _ in range(DEEP):
        made = TupleType((made,))
    return made


KINDS = pytest.mark.parametrize("make", [on_the_left, on_the_right, tuples, types])


@KINDS
def test_deep_nodes_are_printed_hashed_and_simplified(make: Callable[[], Any]) -> None:
    value = make()
    assert repr(value) == str(value)
    assert repr(value).endswith("...)")
    assert len(repr(value)) < 450
    assert weft.structural_hash(value) == weft.structural_hash(make())
    assert simplify(value) is not None


@KINDS
@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))])
def test_deep_nodes_are_copied(make: Callable[[], Any], way: Callable[[Any], Any]) -> None:
    value = make()
    made = way(value)
    assert made is not value
    assert weft.structural_hash(made) == weft.structural_hash(value)
    assert repr(made) == repr(value)


def test_a_deep_difference_has_its_path() -> None:
    assert weft.structural_equal(types(), types())
    other: Any = TensorType(("n", 5), "float32")
    for _ in range(DEEP):
        other = TupleType((other,))
    found = weft.first_mismatch(types(), other)
    assert found is not None
    assert found.startswith("root.fields[0].fields[0].fields")
    assert found.endswith(".shape[1]: 4 against 5")


@pytest.mark.parametrize("way", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_what_occurs_twice_stays_one_object(way: Callable[[Any], Any]) -> None:
    x = Var("x", PrimType("int64"))
    twice = {"a": Tuple((x, x)), "b": [x]}
    made = way(twice)
    assert made["a"].fields[0] is made["a"].fields[1] is made["b"][0]
    assert made["b"][0] is not x


def test_a_short_text_is_whole() -> None:
    assert "fields=(IntImm(value=1, dtype='int64'),)" in repr(TupleType((IntImm(1, "int64"),)))  # type: ignore[arg-type]


def test_a_kernel_too_deep_for_the_interpreter_says_so() -> None:
    x, out = PrimVar("x", "int64"), Buffer("out", (1,), "int64")
    made: Any = x
    for _ in range(100_000):
        made = Binary("bitwise_xor", made, x)
    kernel = PrimFunc((x, out), BufferStore(out, made, (IntImm(0, "int64"),)), name="deep")
    with pytest.raises(weft.WeftError) as caught:
        weft.interpret(kernel)["deep"](3, np.zeros(1, "int64"))
    assert (caught.value.code, caught.value.hint) == ("W951", "bind parts of long expressions to variables")
