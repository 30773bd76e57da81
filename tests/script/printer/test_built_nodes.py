"""Nodes that a program builds and a script seldom gives: their text reads back as them, and is what it was.

Each stands for one rule of the printer or of the readers; the test fails where the rule is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.ir.deduction.infer import VOID
from weft.ir.dim import symbol
from weft.ir.graph import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    Op,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Range,
    Select,
    SeqStmt,
    Stmt,
    Unary,
)
from weft.ir.types import TensorType, TupleType
from weft.testing.checks import check_round_trip

TENSOR = TensorType((2, 3), "float32")
x, y, z = Var("x", TENSOR), Var("y", TENSOR), Var("z", TENSOR)
n, i, j = PrimVar("n", "int32"), PrimVar("i", "int32"), PrimVar("j", "int32")
A, B = Buffer("A", (8,), "float32"), Buffer("B", (8,), "float64")
zero = IntImm(0, "int64")


def graph(*blocks: BindingBlock, pure: bool = True) -> IRModule:
    """A function of x that holds these blocks."""
    return IRModule({"main": Function((x,), SeqExpr(blocks, x), TENSOR, pure)})


def kernel(body: Stmt, *params: Buffer | PrimVar) -> PrimFunc:
    """A function of A, B and n."""
    return PrimFunc((A, B, n, *params), body, name="f")


def value(expr: PrimExpr) -> PrimFunc:
    """A function that evaluates an expression."""
    return kernel(Evaluate(expr))


def reads(start: int | PrimExpr) -> PrimFunc:
    """A block that reads `n + 1` elements."""
    region = BufferRegion(A, (Range(start, Binary("add", n, IntImm(1, "int32"))),))
    return kernel(Block("b", Evaluate(n), reads=(region,)))


def bound(var: Var, operand: Var, **rest: Any) -> BindingBlock:
    """`var = R.exp(operand)` with what else the call holds."""
    return BindingBlock((VarBinding(var, Call(Op("exp"), (operand,), **rest)),))


unused, again = Var("_", VOID), Var("again", TupleType((VOID,)))
effect = Call(ExternFunc("effect"), (x,), attrs=FrozenMap({"dps": True}))
load = BufferLoad(A, (zero,))

# What is built, and a line of its text.
BUILT: dict[str, tuple[Callable[[], Any], str]] = {
    "an operator with types that it does not declare": (
        lambda: graph(bound(y, x, ty_args=(TensorType((2,), "int8"),))),
        'R.call_op("exp", x, ty_args=R.Tensor((2,), "int8"))',
    ),
    "an operator with an attribute that it does not declare": (
        lambda: graph(bound(y, x, attrs=FrozenMap({"other": 1}))),
        'R.call_op("exp", x, attrs={"other": 1})',
    ),
    "an operator with a label that is no name": (
        lambda: graph(bound(y, x, attrs=FrozenMap({"target": "a b"}))),
        'R.call_op("exp", x, attrs={"target": "a b"})',
    ),
    "an output of a dataflow block that holds nothing": (
        lambda: graph(DataflowBlock((VarBinding(Var("_", VOID), effect),)), pure=False),
        "R.output(_)",
    ),
    "a variable of a dataflow block that holds nothing": (
        lambda: graph(DataflowBlock((VarBinding(DataflowVar("_", VOID), effect),)), pure=False),
        '        R.call_packed("effect", x, attrs={"dps": True})',
    ),
    "a statement whose result is used after all": (
        lambda: graph(BindingBlock((VarBinding(unused, effect), VarBinding(again, Tuple((unused,))))), pure=False),
        '        _: R.Tuple() = R.call_packed("effect", x, attrs={"dps": True})',
    ),
    "a module without a name": (lambda: graph(), "class Module:"),
    "a module whose name is empty": (lambda: IRModule({}, name=""), "class Module:"),
    "a function whose name is empty": (
        lambda: IRModule({"": Function((x,), SeqExpr((), x), TENSOR)}),
        '@R.function(name="")',
    ),
    "numbers of NumPy in attributes": (
        lambda: graph().with_attr("key", {"half": np.float32(0.5), "three": np.int8(3), "yes": np.bool_(True)}),
        '"half": 0.5, "three": 3, "yes": True',
    ),
    "an empty block between blocks": (
        lambda: graph(bound(y, x), BindingBlock(()), bound(z, y)),
        "        pass",
    ),
    "a call whose operands have several dtypes": (
        lambda: value(PrimCall("pow", (load, BufferLoad(B, (zero,))), "float64")),
        'T.call_intrin("float64", "pow", A[T.int64(0)], B[T.int64(0)])',
    ),
    "a call whose operands have several dtypes, of the first one": (
        lambda: value(PrimCall("pow", (load, BufferLoad(B, (zero,))), "float32")),
        'T.call_intrin("float32", "pow", A[T.int64(0)], B[T.int64(0)])',
    ),
    "a call with attributes": (
        lambda: value(PrimCall("exp", (load,), "float32", FrozenMap({"fast": True}))),
        'T.call_intrin("float32", "exp", A[T.int64(0)], attrs={"fast": True})',
    ),
    "a call of another dtype than its operands": (
        lambda: value(PrimCall("exp", (load,), "float64")),
        'T.call_intrin("float64", "exp", A[T.int64(0)])',
    ),
    "a box from a number on": (
        lambda: reads(2),
        "T.reads(A[2:2 + (n + 1)])",
    ),
    "a box from an expression on": (
        lambda: reads(n),
        "T.reads(A[n:n + (n + 1)])",
    ),
    "a loop over as many rounds as another loop says": (
        lambda: kernel(For(i, 0, 4, For(j, 0, Select(Binary("lt", i, n), i, n), Evaluate(j)))),
        "        for j in range(T.Select(i < n, i, n)):",
    ),
    "a loop over as many rounds as a shifted variable says": (
        lambda: kernel(For(i, 0, 4, For(j, 0, Unary("neg", i), Evaluate(j)))),
        "        for j in range(-i):",
    ),
    "a block around a sequence of one statement": (
        lambda: kernel(Block("b", SeqStmt((Evaluate(n),)))),
        "        with T.seq():",
    ),
    "names that are taken": (
        lambda: graph(bound(Var("a", TENSOR), x), bound(Var("a_1", TENSOR), x), bound(Var("a", TENSOR), x)),
        "a_2: R.Tensor",
    ),
    "names that are none": (
        lambda: graph(bound(Var("1a", TENSOR), x), bound(Var("+", TENSOR), x), bound(Var("if", TENSOR), x)),
        "v1a: R.Tensor",
    ),
    "a call that its table refuses": (
        lambda: value(PrimCall("exp", (n,), "float32")),
        'T.call_intrin("float32", "exp", n)',
    ),
    "a handle of a scope that points to nothing known": (
        lambda: kernel(Evaluate(pointer := PrimVar("p", "handle", None, "shared")), pointer),
        'p: T.handle("void", "shared")',
    ),
    "the greatest 32-bit number": (lambda: value(IntImm(2**31 - 1, "int32")), "T.evaluate(2147483647)"),
    "the least 32-bit number": (lambda: value(IntImm(-(2**31), "int32")), "T.evaluate(-2147483648)"),
    "a function without a name": (lambda: PrimFunc((A,), BufferStore(A, load, (zero,))), "def main("),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_a_program_builds_reads_back_as_it(name: str) -> None:
    """G10."""
    make, line = BUILT[name]
    node = make()
    assert line in node.script()
    check_round_trip(node)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (A, 'A: T.Buffer((8,), "float32")'),
        (Evaluate(n), "T.evaluate(n)"),
        (For(i, 0, 4, Evaluate(i)), "for i in range(4):\n    T.evaluate(i)"),
        (TensorType((symbol("n"), 4), "float32"), 'R.Tensor((n, 4), "float32")'),
        (bound(y, x), 'y: R.Tensor((2, 3), "float32") = R.exp(x)'),
        (BindingBlock(()), "with R.bindings():\n    pass"),
        (SeqExpr((bound(y, x),), y), 'y: R.Tensor((2, 3), "float32") = R.exp(x)\ny'),
        (Call(Op("exp"), (n,)), "R.exp(n)"),
        (Call(Op("zeros"), (ShapeExpr((symbol("m"), 4)),)), "R.zeros((m, 4))"),
        (BufferRegion(A, ()), "A[()]"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_part_of_a_unit_is_shown_as_the_unit_shows_it(node: Node, text: str) -> None:
    assert node.script() == text
