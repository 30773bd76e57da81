"""Nodes as deep as a program can build them: no recursion, and memory in proportion to their size."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Function, IRModule, SeqExpr, Tuple, TupleType, Var
from weft.ir.kernel.simplify import simplify
from weft.ir.node import FrozenMap
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    Binary,
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IntImm,
    Let,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
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


X, OUT, ZERO = PrimVar("x", "int64"), Buffer("out", (1,), "int64"), IntImm(0, "int64")


def lets_in_bodies(levels: int) -> Any:
    made: Any = X
    for number in range(levels):
        variable = PrimVar(f"v{number}", "int64")
        made = Let(variable, Binary("add", X, IntImm(number, "int64")), Binary("add", made, variable))
    return made


def lets_in_values(levels: int) -> Any:
    made: Any = X
    for number in range(levels):
        variable = PrimVar(f"v{number}", "int64")
        made = Let(variable, made, Binary("add", variable, IntImm(1, "int64")))
    return made


def index(levels: int) -> Any:
    made: Any = X
    for number in range(levels):
        made = Binary("add", made, IntImm(number % 7, "int64"))
    return Binary("floormod", made, IntImm(4, "int64"))


def _stored(value: Any) -> Stmt:
    return BufferStore(OUT, value, (ZERO,))


DEEP_PLACES: dict[str, Callable[[int], Stmt]] = {
    "lets in bodies": lambda levels: _stored(lets_in_bodies(levels)),
    "lets in values": lambda levels: _stored(lets_in_values(levels)),
    "an index": lambda levels: _stored(BufferLoad(Buffer("a", (4,), "int64"), (index(levels),))),
    "an extent": lambda levels: For(PrimVar("i", "int64"), ZERO, index(levels), _stored(X)),
    "a bound value": lambda levels: SeqStmt((Bind(PrimVar("b", "int64"), index(levels)), _stored(X))),
}


@pytest.mark.parametrize("place", DEEP_PLACES)
def test_deep_places_of_a_kernel_are_verified_and_printed_in_linear_memory(place: str) -> None:
    levels = 1500
    body = DEEP_PLACES[place](levels)
    buffers = [node for node in walk(body) if isinstance(node, Buffer) and node is not OUT]
    kernel = PrimFunc((X, *dict.fromkeys(buffers), OUT), body, name="deep")
    tracemalloc.start()
    try:
        assert weft.verify(weft.IRModule({"deep": kernel})) == []
        assert "def deep(" in kernel.script()
        assert tracemalloc.get_traced_memory()[1] < levels * 30_000
    finally:
        tracemalloc.stop()


def test_generators_that_recurse_end_with_an_error_and_not_with_the_process() -> None:
    """C calls each of them, which takes five times the stack of a call of Python from Python."""
    text = """
import resource
from weft.ir.structure.recursion import deep_recursion

def down(levels):
    yield from down(levels - 1) if levels else ()

before = resource.getrlimit(resource.RLIMIT_STACK)
with deep_recursion():
    try:
        list(down(200_000))
    except RecursionError:
        print("too deep")
assert resource.getrlimit(resource.RLIMIT_STACK) == before
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "too deep\n"), done.stderr[-500:]


@pytest.mark.parametrize("wrap", [lambda made: {"a": made}, lambda made: (made,), lambda made: FrozenMap({"a": made})])
def test_data_of_attributes_nests_little_or_is_refused(wrap: Callable[[Any], Any]) -> None:
    def data(levels: int) -> Any:
        made: Any = 1
        for _ in range(levels):
            made = wrap(made)
        return made

    known = FrozenMap({"data": data(63)})
    assert pickle.loads(pickle.dumps(known)) == known == FrozenMap({"data": known["data"]})
    with pytest.raises(weft.WeftError, match="deeper than 64 levels") as caught:
        FrozenMap({"data": data(2_000)})
    assert caught.value.code == "W951"


def test_functions_of_deep_types_are_verified_and_interpreted() -> None:
    ty: Any = TensorType((4,), "float32")
    for _ in range(DEEP):
        ty = TupleType((ty,))
    p = Var("p", ty)
    function = Function((p,), SeqExpr((), p), ty, name="main")
    assert weft.verify(IRModule({"main": function})) == []
    assert weft.interpret(function) is not None
