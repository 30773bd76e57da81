# ruff: noqa: E501  (scripts inside strings)
"""Rules of the readers that few scripts meet: two texts that mean the same, texts that are refused.

Each stands for one rule; the test fails where the rule is left out.
"""

from __future__ import annotations

import pytest
from tests.script.test_round_trip import check, graph, prim

import weft
from weft.ir.structure.visit import walk
from weft.ir.tensor import BufferStore, IterVar
from weft.script import parse

STEP = "A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32'), n: T.int32, m: T.int32"
SIZED = "x: R.Tensor(('n', 3), 'float32'), y: R.Tensor(('n', 3), 'float32')"

SAME = {
    "a constant for several elements is no name": (
        prim("B[0] = A[0] = T.float32(1.5)", STEP),
        prim("B[0] = T.float32(1.5)\nA[0] = T.float32(1.5)", STEP),
    ),
    "a value for several elements is computed once": (
        prim("B[0] = A[0] = A[1] * A[2]", STEP),
        prim("v = A[1] * A[2]\nB[0] = v\nA[0] = v", STEP),
    ),
    "names of a list are unpacked into": (
        prim("[a, b] = (A[0], A[1])\nB[0] = a + b", STEP),
        prim("a, b = (A[0], A[1])\nB[0] = a + b", STEP),
    ),
    "a list inside of a tuple is unpacked into": (
        graph("a, [b, c] = x, (y, x)\nreturn R.add(a, R.add(b, c))", SIZED),
        graph("a = x\nb = y\nc = x\nreturn R.add(a, R.add(b, c))", SIZED),
    ),
    "what is added to a list stands for itself": (
        prim("found = []\nfound.append(A[0])\nB[0] = found[0]", STEP),
        prim("B[0] = A[0]", STEP),
    ),
    "a box from one name to another": (
        prim("with T.block('b'):\n    T.reads(A[n:m + 4])\n    B[0] = A[n]", STEP),
        prim("with T.block('b'):\n    T.reads(A[n:n + (m + 4 - n)])\n    B[0] = A[n]", STEP),
    ),
    "a branch that is known is taken": (
        graph("if False:\n    y = R.exp(x)\nelse:\n    y = R.tanh(x)\nreturn y"),
        graph("y = R.tanh(x)\nreturn y"),
    ),
    "a branch of a kernel that is known ends it": (
        prim("if True:\n    B[0] = A[0]\n    return\nB[1] = A[1]", STEP),
        prim("B[0] = A[0]\nreturn\nB[1] = A[1]", STEP),
    ),
    "a parameter of a macro that is left out has its default": (
        "@T.macro\ndef put(B, i, v=2.0):\n    B[i] = v\n\n" + prim("put(B, 0)\nput(B, 1, 3.0)", STEP),
        prim("B[0] = 2.0\nB[1] = 3.0", STEP),
    ),
    "the greater of two sizes": (
        graph("z = R.zeros((T.max(n, 4),), 'float32')\nreturn z", SIZED),
        graph("z = R.zeros((max(n, 4),), 'float32')\nreturn z", SIZED),
    ),
    "arguments that are spread": (
        graph("z = R.add(*(x, y))\nreturn z", SIZED),
        graph("z = R.add(x, y)\nreturn z", SIZED),
    ),
    "an earlier word for the types of a call": (
        graph("y = R.call_pure_packed('f', x, sinfo_args=R.Tensor)\nreturn y"),
        graph("y = R.call_pure_packed('f', x, ty_args=R.Tensor)\nreturn y"),
    ),
    "a parameter in the shape that callers see is a name": (
        prim("P = T.preflattened_buffer(A, (4, 2), 'float32', data=A.data)\nB[0] = P[1, 1]", STEP),
        prim("P = T.decl_buffer((4, 2), 'float32', data=A.data)\nB[0] = P[1, 1]", STEP),
    ),
}

REFUSED = {
    "a slice without a step": (prim("T.evaluate(A[0:8:0])", STEP), "W124", 3),
    "a slice with a step that is no number": (prim("T.evaluate(A[0:8:1.5])", STEP), "W114", 3),
    "a slice that goes backwards": (prim("with T.block('b'):\n    T.reads(A[4:2])\n    B[0] = A[0]", STEP), "W124", 4),
    "what spreads is no tuple": (prim("T.evaluate(A[*n])", STEP), "W115", 3),
    "a pointer with too much said": (prim("T.evaluate(p)", "p: T.handle('float32', 'shared', 'x')"), "W113", 2),
    "memory that is never there": (
        prim("p = T.allocate([8], 'float32', 'global', condition=False)\nT.evaluate(0)", STEP),
        "W115",
        3,
    ),
    "a view of another dtype": (
        prim("with T.block('b'):\n    C = T.match_buffer(A[0:8], (8,), 'int32')\n    B[0] = A[0]", STEP),
        "W123",
        4,
    ),
    "a buffer that is updated as a whole": (prim("B += 1.0", STEP), "W115", 3),
    "an if that binds several names": (
        graph("if c:\n    a, b = x, x\nreturn x", "x: R.Tensor((2,), 'float32'), c: R.Tensor((), 'bool')"),
        "W115",
        3,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_two_texts_mean_the_same(name: str) -> None:
    one, other = SAME[name]
    weft.assert_structural_equal(check(one), check(other))


@pytest.mark.parametrize("name", REFUSED)
def test_a_text_is_refused_where_it_is_wrong(name: str) -> None:
    text, code, line = REFUSED[name]
    with pytest.raises(weft.WeftError) as caught:
        parse(text)
    assert caught.value.code == code, caught.value
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_an_axis_has_the_dtype_that_it_states() -> None:
    text = prim(
        "for i in range(8):\n    with T.block('b'):\n        v = T.axis.spatial(8, i, dtype='int64')\n        B[v] = A[v]",
        STEP,
    )
    assert [node.var.dtype for node in walk(check(text)) if isinstance(node, IterVar)] == ["int64"]


def test_a_masked_store_of_an_early_text_keeps_its_mask() -> None:
    text = prim("T.store(p, n, T.float32(1), n < 4)", "p: T.handle('float32'), n: T.int32")
    stores = [node for node in walk(check(text)) if isinstance(node, BufferStore)]
    assert [store.predicate is not None for store in stores] == [True]
