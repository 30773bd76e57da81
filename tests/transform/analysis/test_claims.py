"""What the analyses claim (independent, pure, the same, one to one), with a counter-example where it does not hold."""

from __future__ import annotations

import itertools

import islpy as isl
import pytest

import weft
from weft.ir.graph import Call
from weft.ir.kernel.prim import binary
from weft.ir.node import Node
from weft.ir.tensor import Block, Buffer, BufferStore, FloatImm, For, IntImm, IterVar, PrimExpr, PrimFunc, PrimVar
from weft.transform.analysis.accesses import iterations_are_apart
from weft.transform.analysis.loops.affine import Bindings
from weft.transform.analysis.loops.points import Point
from weft.transform.analysis.purity import is_pure
from weft.transform.analysis.value_numbering import expr_key, same_type
from weft.transform.infra.rewriting import bindings_of

X, Y = PrimVar("i", "int64"), PrimVar("j", "int64")
SIZE = 4  # of each loop

INDICES: list[tuple[PrimExpr, str]] = [
    (X * 4 + Y, "4i + j"),
    (X * 3 + Y, "3i + j"),
    (X + Y, "i + j"),
    (X, "i"),
    (Y, "j"),
    (X * 8 + Y * 2, "8i + 2j"),
    (15 - (X * 4 + Y), "15 - 4i - j"),
    (binary("floordiv", X, 2) * 4 + Y, "4*floor(i/2) + j"),
]


def at(expr: PrimExpr | int, i: int, j: int) -> int:
    """The value of an index."""
    if isinstance(expr, PrimVar):
        return i if expr is X else j
    if isinstance(expr, (int, IntImm)):
        return int(getattr(expr, "value", expr))
    a, b = at(expr.a, i, j), at(expr.b, i, j)  # type: ignore[attr-defined]
    return {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // max(b, 1)}[expr.kind]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("index", "text"), INDICES, ids=[text for _, text in INDICES])
def test_iterations_that_count_as_apart_never_write_one_element(index: PrimExpr, text: str) -> None:
    buffer = Buffer("x", (64,), "float32")
    loop = For(X, 0, SIZE, For(Y, 0, SIZE, BufferStore(buffer, FloatImm(1.0, "float32"), (index,))))
    claimed = iterations_are_apart(loop, {buffer})
    written = [{at(index, i, j) for j in range(SIZE)} for i in range(SIZE)]
    apart = all(not a & b for a, b in itertools.combinations(written, 2))
    domain = f"0 <= i < {SIZE} and 0 <= j < {SIZE}"
    first = isl.Map(f"{{ [i, j] -> [e, i] : e = {text} and {domain} }}")
    other = isl.Map("{ [e, i] -> [e, k] : i != k }")
    reached = first.range()
    conflict = other.intersect_domain(reached).intersect_range(reached)
    assert conflict.is_empty() == apart
    assert not claimed or apart
    if text in ("4i + j", "i", "8i + 2j"):
        assert claimed  # the plain cases are found


@pytest.mark.parametrize(("index", "text"), INDICES, ids=[text for _, text in INDICES])
def test_bindings_that_count_as_one_to_one_give_each_iteration_its_own_instance(index: PrimExpr, text: str) -> None:
    variable = PrimVar("v", "int64")
    buffer = Buffer("x", (64,), "float32")
    body = BufferStore(buffer, FloatImm(1.0, "float32"), (variable,))
    block = Block(name="b", iter_vars=(IterVar(variable, 0, 64, "spatial", index),), body=body)
    inner = For(Y, 0, SIZE, block)
    loops = (For(X, 0, SIZE, inner), inner)
    bindings = Bindings.of(block, loops, Point(PrimFunc((buffer,), loops[0])))
    values = [at(index, i, j) for i in range(SIZE) for j in range(SIZE)]
    assert not bindings.injective() or len(set(values)) == len(values)
    if text == "4i + j":
        assert bindings.injective()
    if text in ("i + j", "i", "3i + j"):
        assert not bindings.injective()


_MODULE = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @R.function(pure=False)
    def shout(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        R.print(x, format="{}")
        return x

    @R.function
    def quiet(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return R.add(x, x)

    @R.function(pure=False)
    def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        a = R.add(x, y)
        b = R.add(x, y)
        c = R.add(y, x)
        d = M.shout(x)
        e = M.quiet(x)
        f = R.call_packed("some.function", x, ty_args=R.Tensor((3,), "float32"))
        return a
"""


@pytest.fixture(scope="module")
def values() -> tuple[weft.IRModule, dict[str, Node]]:
    """The module, and what its names are bound to."""
    module = weft.parse(_MODULE)
    return module, {binding.var.name: binding.value for binding in bindings_of(module["main"].body)}  # type: ignore[attr-defined]


def test_what_prints_or_is_unknown_is_not_pure(values: tuple[weft.IRModule, dict[str, Call]]) -> None:
    module, bound = values
    assert {name: is_pure(bound[name], module) for name in "abcdef"} == {
        "a": True,
        "b": True,
        "c": True,
        "d": False,
        "e": True,
        "f": False,
    }


def test_values_of_one_key_are_the_same_and_others_may_differ(values: tuple[weft.IRModule, dict[str, Call]]) -> None:
    _, bound = values
    assert expr_key(bound["a"]) == expr_key(bound["b"])
    assert expr_key(bound["a"]) != expr_key(bound["c"])
    assert expr_key(bound["a"]) != expr_key(bound["e"])
    one, other = weft.ir.TensorType(("n", 4), "float32"), weft.ir.TensorType(("m", 4), "float32")  # type: ignore[arg-type]
    assert same_type(one, weft.ir.TensorType(("n", 4), "float32"))  # type: ignore[arg-type]
    assert not same_type(one, other)
