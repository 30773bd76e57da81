# ruff: noqa: E501  (scripts inside strings)
"""Python that people expect in a script: it reads as what it means, or says at its place why not."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import weft
from weft.script import parse

GRAPH = '@R.function\ndef main(x: R.Tensor((4, 6), "float32"), w: R.Tensor(("n", 6), "float32")):\n'
PRIM = '@T.prim_func\ndef main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), n: T.int32):\n'


def unit(head: str, body: str) -> str:
    return head + "\n".join("    " + line for line in body.split("\n")) + "\n"


# name: (what people write, the same in the words of the field)
GRAPH_PAIRS = {
    "docstring": ('"""What it does."""\nreturn x', "return x"),
    "unpacking": ("a, b = R.split(x, 2)\nreturn a", "t = R.split(x, 2)\na = t[0]\nb = t[1]\nreturn a"),
    "starred target": (
        "a, *b = R.split(x, 3, axis=1)\nreturn b",
        "t = R.split(x, 3, axis=1)\na = t[0]\nb = (t[1], t[2])\nreturn b",
    ),
    "starred tuple of the graph": (
        "t = R.split(x, 2)\nreturn R.concat([*t, x])",
        "t = R.split(x, 2)\na = t[0]\nb = t[1]\nreturn R.concat((a, b, x))",
    ),
    "starred argument of the graph": (
        "t = R.split(x, 2)\nreturn R.add(*t)",
        "t = R.split(x, 2)\na = t[0]\nb = t[1]\nreturn R.add(a, b)",
    ),
    "starred in the middle": (
        "a, *_, b = (x, w, w, x)\nreturn b",
        "t = (x, w, w, x)\na = t[0]\nm = (t[1], t[2])\nb = t[3]\nreturn b",
    ),
    "nested targets": ("(a, b), c = R.split(x, 2), w\nreturn c", "t = R.split(x, 2)\na = t[0]\nb = t[1]\nreturn w"),
    "swap": (
        "a, b = R.exp(x), R.abs(x)\na, b = b, a\nreturn R.subtract(a, b)",
        "a = R.exp(x)\nb = R.abs(x)\nc = b\nd = a\nreturn R.subtract(c, d)",
    ),
    "one value for two names": (
        "a = b = R.exp(x)\nreturn R.add(a, b)",
        "a = R.exp(x)\nb = R.exp(x)\nreturn R.add(a, b)",
    ),
    "shape": ("return R.reshape(w, (w.shape[1], x.shape[0] // 4, w.shape[-2]))", "return R.reshape(w, (6, 1, n))"),
    "shape unpacked": ("rows, columns = w.shape\nreturn R.reshape(w, (columns, rows))", "return R.reshape(w, (6, n))"),
    "dtype and ndim": ("return R.zeros((x.ndim, len(x)), x.dtype)", 'return R.zeros((2, 4), "float32")'),
    "element": ("return x[1]", "return R.take(x, 1, axis=0)"),
    "element of an element": ("return x[1, -2]", "a = R.take(x, -2, axis=1)\nreturn R.take(a, 1, axis=0)"),
    "slices": ("return x[1:3, ::2]", "return R.strided_slice(x, [0, 1], [1, 0], [3, 9223372036854775807], [1, 2])"),
    "symbolic slice": ("return w[: n - 1]", "return R.strided_slice(w, [0], [0], [n - 1])"),
    "new axis": ("return x[:, None]", "return R.expand_dims(x, [1])"),
    "ellipsis": ("return x[..., 0]", "return R.take(x, 0, axis=1)"),
    "tensor index": ("i = R.argmax(x, axis=0)\nreturn w[i]", "i = R.argmax(x, axis=0)\nreturn R.take(w, i, axis=0)"),
    "augmented assignment": ("y = -x\ny += 1.0\ny *= x\nreturn y", "y = -x\nz = y + 1.0\nu = z * x\nreturn u"),
    "chained comparison": (
        "return 0.0 < x < 1.0",
        "a = R.less(0.0, x)\nb = R.less(x, 1.0)\nreturn R.logical_and(a, b)",
    ),
    "static loop": ("for i in range(2):\n    x = x + float(i)\nreturn x", "a = x + 0.0\nb = a + 1.0\nreturn b"),
    "loop with break and else": (
        "for i in range(9):\n    if i == 1:\n        continue\n    if i == 3:\n        break\n    x = x + float(i)\nelse:\n    x = R.exp(x)\nreturn x",
        "a = x + 0.0\nb = a + 2.0\nreturn b",
    ),
    "loop that ends by itself": (
        "for i in [1.0]:\n    x = x + i\nelse:\n    x = R.exp(x)\nreturn x",
        "a = x + 1.0\nreturn R.exp(a)",
    ),
    "loop over parts": (
        "for part in R.split(x, 2):\n    y = R.exp(part)\nreturn y",
        "t = R.split(x, 2)\na = t[0]\nb = t[1]\nc = R.exp(a)\nd = R.exp(b)\nreturn d",
    ),
    "zip and enumerate": (
        "for i, (a, b) in enumerate(zip([1.0, 2.0], (3.0, 4.0))):\n    x = x + (a * b + i)\nreturn x",
        "a = x + 3.0\nb = a + 9.0\nreturn b",
    ),
    "list comprehension": (
        "return R.concat([x * float(i) for i in range(3) if i != 1])",
        "a = x * 0.0\nb = x * 2.0\nreturn R.concat((a, b))",
    ),
    "nested comprehension": (
        "return R.zeros([i * j + 1 for i in range(2) for j in (1, 2)], x.dtype)",
        'return R.zeros((1, 1, 2, 3), "float32")',
    ),
    "dict comprehension": (
        'd = {str(i): i for i in range(3)}\nreturn R.zeros((d["2"], 1), "int8")',
        'return R.zeros((2, 1), "int8")',
    ),
    "list that grows": (
        "ys = []\nfor i in range(2):\n    ys.append(x)\nys += [R.exp(x)]\nreturn R.concat(ys)",
        "a = R.exp(x)\nys = (x, x, a)\nreturn R.concat(ys)",
    ),
    "lambda": ("f = lambda a, b=1.0: a + b\nreturn f(f(x), 2.0)", "a = x + 1.0\nreturn a + 2.0"),
    "a dictionary of tensors": (
        "d = {'a': R.exp(x)}\nreturn R.add(d['a'], d['a'])",
        "a = R.exp(x)\nreturn R.add(a, a)",
    ),
    "operators as values": (
        "for f in (R.exp, R.nn.relu):\n    x = f(x)\nreturn x",
        "a = R.exp(x)\nreturn R.nn.relu(a)",
    ),
    "static condition": ("if x.ndim == 2 and n >= 0:\n    x = R.exp(x)\nreturn x", "return R.exp(x)"),
    "none and in": ("a = None\nreturn x if a is None and 3 in (1, 2, 3) and 'b' not in 'acd' else w", "return x"),
    "assertion that holds": ('assert x.shape[0] == 4, "four rows"\nreturn x', "return x"),
    "constants": ("k = 3\nk = k * 2\nreturn R.zeros((k, 1 << 2), 'int8')", "return R.zeros((6, 4), 'int8')"),
    "format string": (
        "return R.call_pure_packed(f'f{1 + 1}', x, ty_args=R.Tensor((4, 6), 'float32'))",
        "return R.call_pure_packed('f2', x, ty_args=R.Tensor((4, 6), 'float32'))",
    ),
    "functions of Python": (
        "return R.zeros((sum([1, 2]), min(4, 3), max(1, 2), len([0]), round(2.4)), 'int8')",
        "return R.zeros((3, 3, 2, 1, 2), 'int8')",
    ),
    "functions of tensors": ("return max(abs(x), x)", "a = R.abs(x)\nreturn R.maximum(a, x)"),
    "sum of tensors": ("return sum([x, x, x])", "a = R.add(x, x)\nreturn R.add(a, x)"),
    "keyword arguments": ("return R.sum(x, keepdims=True, axis=[1])", "return R.sum(x, [1], True)"),
    "matrix product in place": (
        "y = x\ny @= R.permute_dims(x)\nreturn y",
        "y = x\nt = R.permute_dims(x)\nreturn R.matmul(y, t)",
    ),
    "a name inside of an expression": ("y = (z := R.exp(x))\nreturn y + z", "a = R.exp(x)\nreturn a + a"),
    "a plain function": ("def f(a):\n    b = a + 1.0\n    return b\nreturn f(f(x))", "a = x + 1.0\nreturn a + 1.0"),
    "deleted": ("y = R.exp(x)\nz = y + 1.0\ndel y\nreturn z", "a = R.exp(x)\nreturn a + 1.0"),
    "rows unpacked": (
        "a, b, c, d = x\nreturn a + d",
        "a = R.take(x, 0, axis=0)\nb = R.take(x, 1, axis=0)\nc = R.take(x, 2, axis=0)\nd = R.take(x, 3, axis=0)\nreturn a + d",
    ),
    "an element of a list": (
        "ys = [x, x]\nys[1] = R.exp(x)\nreturn R.concat(ys)",
        "a = R.exp(x)\nreturn R.concat((x, a))",
    ),
    "an entry of a dictionary": ("d = {'a': x}\nd['b'] = R.exp(x)\nreturn d['b']", "return R.exp(x)"),
    "slice of a tuple": (
        "t = R.split(x, 3, axis=1)\nreturn t[1:]",
        "t = R.split(x, 3, axis=1)\na = t[1]\nb = t[2]\nreturn (a, b)",
    ),
}

PRIM_PAIRS = {
    "docstring": ('"""What it does."""\nB[0, 0] = A[0, 0]', "B[0, 0] = A[0, 0]"),
    "chained comparison": ("if 0 < n < 8:\n    B[0, 0] = A[0, 0]", "if 0 < n and n < 8:\n    B[0, 0] = A[0, 0]"),
    "augmented assignment": ("B[n, 0] += A[n, 0]", "B[n, 0] = B[n, 0] + A[n, 0]"),
    "tuple index": ("t = (n, 1)\nB[t] = A[*t]", "B[n, 1] = A[n, 1]"),
    "one name for a grid": (
        "for i in T.grid(*A.shape):\n    B[i] = A[i]",
        "for i, j in T.grid(8, 8):\n    B[i, j] = A[i, j]",
    ),
    "starred loop variable": (
        "for i, *j in T.grid(8, 8):\n    B[i, *j] = A[i, *j]",
        "for i, j in T.grid(8, 8):\n    B[i, j] = A[i, j]",
    ),
    "static loop": (
        "for k, s in zip([1, 2], [0.5, 1.5]):\n    A[0, k] = B[0, k] * T.float32(s)",
        "A[0, 1] = B[0, 1] * T.float32(0.5)\nA[0, 2] = B[0, 2] * T.float32(1.5)",
    ),
    "sum over a comprehension": ("A[0, 0] = sum([B[0, j] for j in range(3)])", "A[0, 0] = B[0, 0] + B[0, 1] + B[0, 2]"),
    "swap": (
        "a, b = A[0, 0], B[0, 0]\nA[0, 0], B[0, 0] = b, a",
        "a: T.let = A[0, 0]\nb: T.let = B[0, 0]\nA[0, 0] = b\nB[0, 0] = a",
    ),
    "two targets": ("A[0, 0] = B[0, 0] = A[1, 1] + B[1, 1]", "v: T.let = A[1, 1] + B[1, 1]\nA[0, 0] = v\nB[0, 0] = v"),
    "dtype and ndim": ("A[0, 0] = T.Cast(A.dtype, n + A.ndim)", 'A[0, 0] = T.Cast("float32", n + 2)'),
    "conditional expression": (
        "A[0, 0] = B[0, 0] if n > 0 else 0.0",
        "A[0, 0] = T.if_then_else(n > 0, B[0, 0], T.float32(0))",
    ),
    "lambda": (
        "f = lambda a: a + T.float32(1)\nA[0, 0] = f(f(B[0, 0]))",
        "A[0, 0] = B[0, 0] + T.float32(1) + T.float32(1)",
    ),
    "intrinsics as values": ("f = T.exp\nA[0, 0] = f(B[0, 0])", "A[0, 0] = T.exp(B[0, 0])"),
    "static condition": (
        "k = None\nif k is not None:\n    A[0, 0] = T.float32(1)\nelse:\n    A[0, 0] = T.float32(2)",
        "A[0, 0] = T.float32(2)",
    ),
    "constant of the body": (
        "k = A.shape[0] // 2\nfor i in range(k):\n    A[i, 0] = T.float32(1)",
        "for i in range(4):\n    A[i, 0] = T.float32(1)",
    ),
    "assertion": (
        'assert n > 0, "positive"\nA[0, 0] = T.float32(1)',
        'assert n > 0, "positive"\nA[0, 0] = T.float32(1)',
    ),
}


@pytest.mark.parametrize("name", GRAPH_PAIRS)
def test_a_graph_function_reads_python_as_what_it_means(name: str) -> None:
    written, meant = GRAPH_PAIRS[name]
    made = parse(unit(GRAPH, written))
    x, w = np.arange(24, dtype="float32").reshape(4, 6) / 24, np.ones((5, 6), "float32")
    if "call_pure_packed" not in written:
        for a, b in zip(
            _flat(weft.interpret(made)(x, w)), _flat(weft.interpret(parse(unit(GRAPH, meant)))(x, w)), strict=True
        ):
            np.testing.assert_array_equal(a, b)
    weft.assert_structural_equal(parse(made.script()), made)
    assert _operations(made) == _operations(parse(unit(GRAPH, meant)))


def _flat(value: Any) -> list[Any]:
    return [part for item in value for part in _flat(item)] if isinstance(value, tuple) else [value]


def _operations(function: Any) -> list[str]:
    """The operators of a function in order, without the bindings of parts and the computing of one value twice."""
    calls = [binding.value for block in function.body.blocks for binding in block.bindings]
    operators: list[Any] = [call.op for call in calls if isinstance(call, weft.ir.Call)]
    names = [operator.name for operator in operators]
    return [
        name for position, name in enumerate(names) if position == 0 or names[position - 1] != name or name != "exp"
    ]


@pytest.mark.parametrize("name", PRIM_PAIRS)
def test_a_tensor_function_reads_python_as_what_it_means(name: str) -> None:
    written, meant = PRIM_PAIRS[name]
    made = parse(unit(PRIM, written))
    weft.assert_structural_equal(made, parse(unit(PRIM, meant)))
    weft.assert_structural_equal(parse(made.script()), made)


def test_an_assertion_is_checked_when_an_impure_function_runs() -> None:
    made = parse(
        '@R.function(pure=False)\ndef main(x: R.Tensor((), "float32")):\n    assert x > 0.0, "a {positive} number"\n    return x\n'
    )
    weft.interpret(made)(np.float32(1))
    with pytest.raises((weft.WeftError, AssertionError), match=r"a \{positive\} number"):
        weft.interpret(made)(np.float32(-1))


CALLS = """
@I.ir_module
class M:
    @R.function
    def scale(x: R.Tensor((2,), "float32"), by: R.Tensor((), "float32") = R.const(2.0, "float32"), times=2) -> R.Tensor((2,), "float32"):
        for _ in range(times):
            x *= by
        return x

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        return cls.scale({0})
"""


@pytest.mark.parametrize(
    ("arguments", "result"), [("x", 4.0), ("by=R.const(3.0, 'float32'), x=x", 9.0), ("x, R.const(1.0)", 1.0)]
)
def test_calls_inside_a_module_know_names_and_defaults(arguments: str, result: float) -> None:
    module = parse(CALLS.replace("{0}", arguments))
    assert weft.interpret(module)["main"](np.ones(2, "float32")).tolist() == [result, result]
    assert len(module["scale"].params) == 2  # type: ignore[index]
    weft.assert_structural_equal(parse(module.script()), module)


DEFAULT = """
@I.ir_module
class M:
    @R.function
    def scale(x: R.Tensor(("n", 2), "float32"), by: {type} = {default}):
        return x

    @R.function
    def main(x: R.Tensor((3, 2), "float32")):
        return cls.scale(x{argument})
"""


@pytest.mark.parametrize(
    ("type_text", "default", "code"),
    [
        ('R.Tensor((), "float32")', "missing", "W110"),
        ('R.Tensor((2,), "float32")', 'R.const([1, 2, 3], "float32")', "W210"),
        ('R.Tensor((2,), "float32")', 'R.const([1, 2], "int8")', "W320"),
        ('R.Tensor((2,), "float32")', "2.0", "W210"),
        ('R.Tensor(("n",), "float32")', 'R.zeros((n,), "float32")', "W110"),
        ("R.Shape", '"text"', "W210"),
    ],
)
@pytest.mark.parametrize("argument", ["", ", x"])
def test_a_wrong_default_is_refused_where_it_stands(type_text: str, default: str, code: str, argument: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        parse(DEFAULT.format(type=type_text, default=default, argument=argument))
    assert caught.value.code == code
    assert caught.value.span is not None
    span = caught.value.span
    assert span.source.text[span.start : span.end] in default


def test_right_defaults_of_any_kind_are_read() -> None:
    for type_text, default in [('R.Tensor((2,), "float32")', 'R.ones((2,), "float32")'), ('R.Prim("int64")', "3")]:
        module = parse(DEFAULT.format(type=type_text, default=default, argument=""))
        assert weft.interpret(module)["main"](np.ones((3, 2), "float32")).shape == (3, 2)


@pytest.mark.parametrize(
    "text",
    [
        '@R.function\ndef main(x: R.Tensor((), "float32") = R.const(1.0)):\n    return x\n',
        '@R.function\ndef main(x: R.Tensor((), "float32")):\n    @R.function\n'
        '    def inner(y: R.Tensor((), "float32") = R.const(1.0)):\n        return y\n    return inner(x)\n',
    ],
)
def test_a_default_that_no_call_can_use_is_refused(text: str) -> None:
    with pytest.raises(weft.ScriptError, match="no call can leave out") as caught:
        parse(text)
    assert caught.value.code == "W115"
    assert caught.value.span is not None
    span = caught.value.span
    assert span.source.text[span.start : span.end] == "R.const(1.0)"


DIMS = st.sampled_from(
    [
        None,
        slice(None),
        0,
        -1,
        1,
        slice(1, None),
        slice(None, -1),
        slice(None, None, -1),
        slice(3, 0, -2),
        slice(0, 9, 2),
        ...,
        [0, 1],
        [[-1], [0]],
    ]
)


@given(st.lists(DIMS, max_size=5))
@settings(max_examples=150, deadline=None)
def test_indexing_gives_what_numpy_gives(items: list[Any]) -> None:
    if sum(item is not None and item is not ... for item in items) > 3 or sum(item is ... for item in items) > 1:
        return
    text = ", ".join(_index_text(item) for item in items) or "..."
    x = np.arange(3 * 4 * 2, dtype="float32").reshape(3, 4, 2)
    for shape in ("(3, 4, 2)", '("n", 4, "m")'):
        made = parse(f'@R.function\ndef main(x: R.Tensor({shape}, "float32")):\n    return x[{text}]\n')
        np.testing.assert_array_equal(weft.interpret(made)(x), x[tuple(items)])


def _index_text(item: Any) -> str:
    if item is ...:
        return "..."
    if not isinstance(item, slice):
        return str(item)
    return ":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step))


# name: (body, code, line in the body, column, end column, part of the message)
GRAPH_ERRORS: dict[str, Any] = {
    "while": ("while x:\n    x = x + 1.0", "W123", 1, 11, 12, "a condition is a bool scalar"),
    "try": ("try:\n    pass\nexcept E:\n    pass", "W115", 1, 5, -1, "`try` is not"),
    "try star": ("try:\n    pass\nexcept* E:\n    pass", "W115", 1, 5, -1, "`trystar` is not"),
    "with": ("with open('f') as g:\n    pass", "W115", 1, 10, 19, "`with open('f')` is not"),
    "yield": ("yield x", "W115", 1, 5, 12, "`yield` is not"),
    "yield from": ("y = yield from x", "W115", 1, 9, 21, "`yield` is not"),
    "await": ("await x", "W115", 1, 5, 12, "`await` is not"),
    "async function": ("async def g():\n    pass", "W115", 1, 5, -1, "an asynchronous function is not"),
    "async for": ("async for i in x:\n    pass", "W115", 1, 5, -1, "`async for` is not"),
    "async with": ("async with x:\n    pass", "W115", 1, 5, -1, "`async with` is not"),
    "async comprehension": ("y = [i async for i in x]", "W115", 1, 9, 29, "asynchronous comprehension"),
    "global": ("global x1", "W115", 1, 5, 14, "`global` is not"),
    "nonlocal": ("nonlocal x1", "W115", 1, 5, 16, "`nonlocal` is not"),
    "del": ("del x[0]", "W115", 1, 5, 13, "`del` is not"),
    "deleted": ("del x\ny = x", "W119", 2, 9, 10, "'x' is not visible here"),
    "raise": ("raise ValueError", "W115", 1, 5, 21, "`raise` is not"),
    "import": ("import os", "W115", 1, 5, 14, "`import` is not"),
    "import from": ("from os import path", "W115", 1, 5, 24, "`import` is not"),
    "class": ("class A:\n    pass", "W115", 1, 5, -1, "a class is not"),
    "plain function": ("def g(a: R.Tensor):\n    return a", "W104", 1, 9, 10, "has no decorator"),
    "match": ("match x:\n    case 1:\n        pass", "W115", 1, 5, -1, "`match` is not"),
    "set": ("s = {1, 2}", "W115", 1, 9, 15, "a set is not"),
    "set comprehension": ("s = {i for i in range(2)}", "W115", 1, 9, 30, "a set comprehension is not"),
    "bytes": ("b = b'1'", "W115", 1, 9, 13, "b'1' is not"),
    "ellipsis": ("...", "W115", 1, 5, 8, "Ellipsis is not"),
    "format of a tensor": ("y = f'{x}'", "W114", 1, 12, 13, "expected a constant, got a tensor"),
    "format specification": ("y = f'{1:2d}'", "W115", 1, 12, 13, "format string"),
    "is": ("y = x is x", "W115", 1, 9, 15, "`in` and `is`"),
    "in": ("y = 'a' in x", "W115", 1, 9, 17, "`in` and `is`"),
    "starred value": ("y = (*x,)", "W115", 1, 10, 12, "can be spread with *"),
    "double starred": ("y = R.exp(**x)", "W115", 1, 17, 18, "** is not"),
    "attribute target": ("x.a = 1", "W115", 1, 5, 8, "only names can be bound"),
    "element of a number": ("y = 3\ny[0] = 1.0", "W115", 2, 5, 9, "the elements of 3 cannot be assigned"),
    "element out of range": ("x[4] = 1.0", "W121", 1, 7, 8, "index 4 is out of range"),
    "element of another dtype": (
        "y = R.ones((2,), 'int64')\ny[0] = 0.5",
        "W320",
        2,
        5,
        9,
        "float64 in a tensor of int64",
    ),
    "element of another shape": ("x[0] = w", "W202", 1, 5, 9, "does not fit into `x[0]`"),
    "elements of two names": ("y = x\ny[0] = 1.0\nz = x", "W115", 2, 5, 9, "`y` and `x` may be one array"),
    "elements of a slice": ("y = x[1:]\nx[0] = 1.0\nz = y", "W115", 2, 5, 9, "`x` and `y` may be one array"),
    "elements of what a loop makes one array": (
        "y = x + 1.0\nz = x + 2.0\nfor i in range(n):\n    z[0] = 3.0\n    x = x + y\n    y = z",
        "W115",
        4,
        9,
        13,
        "`z` and `y` may be one array",
    ),
    "elements in a loop": (
        "y = x\nz = x + 1.0\nfor i in range(n):\n    z[0] = 2.0\n    y = y + z\n    z = y",
        "W115",
        4,
        9,
        13,
        "`z` and `y` may be one array",
    ),
    "declaration": ("y: R.Tensor", "W115", 1, 5, 16, "without a value"),
    "method of a tensor": ("y = x.sum()", "W115", 1, 9, 14, "`.sum` of a tensor"),
    "loop over a scalar": (
        "for r in R.sum(x):\n    pass",
        "W115",
        1,
        14,
        22,
        "the rows of a tensor of known rank above 0",
    ),
    "loop over a number": ("for r in 3:\n    pass", "W115", 1, 14, 15, "3 cannot be looped over"),
    "endless loop": ("y = [1 for r in range(10**9)]", "W103", 1, 21, 33, "1000000000 rounds of a static loop"),
    "break on a tensor": (
        "for i in (x, w):\n    if R.sum(x) > 0.0:\n        break",
        "W115",
        2,
        12,
        26,
        "not known while reading",
    ),
    "break alone": ("break", "W115", 1, 5, 10, "`break` is not"),
    "condition of a comprehension": (
        "y = [1 for i in range(2) if R.sum(x) > 0.0]",
        "W115",
        1,
        33,
        47,
        "not known while reading",
    ),
    "list of an outer block": (
        "ys = []\nwith R.dataflow():\n    ys.append(x)\n    y = R.exp(x)\n    R.output(y)",
        "W115",
        3,
        9,
        21,
        "belongs to an outer block",
    ),
    "too many parts": ("a, b, c = R.split(x, 2)", "W113", 1, 5, 12, "2 values cannot be unpacked into 3 names"),
    "parts of a number": ("a, b = 3", "W114", 1, 12, 13, "cannot unpack 3"),
    "too many indices": ("y = x[0, 0, 0]", "W121", 1, 9, 19, "3 indices of a tensor of 2 dimensions"),
    "index out of range": ("y = x[0, -7]", "W121", 1, 14, 16, "index -7 is out of range for a size of 6"),
    "two ellipses": ("y = x[..., ...]", "W121", 1, 16, 19, "one `...`"),
    "index by a float": ("y = x[1.5]", "W115", 1, 11, 14, "cannot be indexed by 1.5"),
    "index by a truth value": ("y = x[R.sum(x) > 0.0]", "W115", 1, 11, 25, "cannot be indexed by a R.Tensor"),
    "slice by a tensor": ("y = x[:R.sum(x)]", "W115", 1, 12, 20, "a boundary of a slice"),
    "step of zero": ("y = x[::0]", "W115", 1, 13, 14, "the step of a slice"),
    "assertion that fails": ('assert x.shape[0] == 5, "five rows"', "W124", 1, 5, 40, "false while reading: five rows"),
    "assertion in a pure function": ("assert R.sum(x) > 0.0", "W115", 1, 5, 26, "an effect"),
    "comparison of sizes": ("assert n == 5", "W115", 1, 5, 18, "an assertion about values is an effect"),
    "value of a branch": (
        "if R.sum(x) > 0.0:\n    y = R.abs(x)\n    z = R.exp(y)\nelse:\n    z = x\nu = R.add(y, z)",
        "W119",
        6,
        15,
        16,
        "'y' is not visible here",
    ),
    "the index after its loop": (
        "for i in range(n):\n    x = x + 1.0\ny = R.full((), R.prim_value(i), 'int64')",
        "W119",
        3,
        33,
        34,
        "'i' is not visible here",
    ),
    "a lambda over a variable of a block": (
        "with R.dataflow():\n    f = lambda: a\n    a = R.exp(x)\n    z = f()\n    R.output(z)\ny = f()",
        "W119",
        6,
        9,
        10,
        "'f' is not visible here",
    ),
    "a dictionary of variables of a block": (
        "with R.dataflow():\n    a = R.exp(x)\n    d = {'a': a}\n    R.output(a)\nwith R.dataflow():\n    b = R.exp(x)\n    e = {'b': b}\n    z = R.exp(b)\n    R.output(z)\ny = e['b']",
        "W119",
        10,
        9,
        10,
        "'e' is not visible here",
    ),
    "a list of variables of a block": (
        "with R.dataflow():\n    a = R.exp(x)\n    ys = []\n    ys.append(a)\n    z = R.exp(a)\n    R.output(z)\ny = ys[0]",
        "W119",
        7,
        9,
        11,
        "'ys' is not visible here",
    ),
    "an operator for a value": ("y = R.add(x, R.exp)", "W142", 1, 9, 24, "R.exp"),
    "print": ("print(x)", "W110", 1, 5, 10, "undefined name 'print'"),
    "eval": ("y = eval('1')", "W110", 1, 9, 13, "undefined name 'eval'"),
    "default": ("f = lambda a: a\ny = f()", "W113", 2, 9, 12, "lacks its argument 'a'"),
}

PRIM_ERRORS: dict[str, Any] = {
    **{
        name: GRAPH_ERRORS[name]
        for name in (
            "try",
            "with",
            "async function",
            "async for",
            "raise",
            "import",
            "class",
            "match",
            "bytes",
            "ellipsis",
            "set comprehension",
            "is",
        )
        if "x" not in GRAPH_ERRORS[name][0].replace("except", "")
    },
    "function": ("def g(a):\n    return a", "W115", 1, 5, -1, "a function inside a tensor-level function"),
    "walrus": ("A[0, 0] = (z := n)", "W115", 1, 16, 22, "an assignment expression"),
    "global": ("global k", "W115", 1, 5, 13, "`global` is not"),
    "del": ("del n", "W115", 1, 5, 10, "`del` is not"),
    "matrix product": ("A[0, 0] = A @ B", "W115", 1, 15, 20, "`@` is not a scalar operation"),
    "attribute target": ("A.x = 1", "W115", 1, 5, 8, "only names and buffer elements"),
    "loop over a buffer": ("for a in A:\n    pass", "W115", 1, 14, 15, "a buffer cannot be looped over"),
    "else of a loop": ("for i in range(3):\n    pass\nelse:\n    pass", "W115", 1, 5, -1, "`else` of a loop"),
    "break that depends": (
        "for k in [1, 2]:\n    if n > 0:\n        break",
        "W115",
        2,
        12,
        17,
        "not known while reading",
    ),
    "break in a block": (
        "for i in range(2):\n    for k in [1, 2]:\n        with T.block():\n            break",
        "W115",
        4,
        17,
        22,
        "`break` outside a loop",
    ),
    "grid and names": (
        "for i, j in T.grid(2, 2, 2):\n    pass",
        "W113",
        1,
        9,
        13,
        "T.grid has 3 extents for 2 variables",
    ),
    "two stars": ("for *i, *j in T.grid(2, 2, 2):\n    pass", "W113", 1, 9, 15, "T.grid has 3 extents"),
    "tuple bound anew": (
        "t = (1, 2)\nfor i in range(3):\n    t = (i, i)",
        "W115",
        3,
        9,
        10,
        "'t' is bound by an outer block",
    ),
    "tuple as a number": ("A[0, 0] = (1, 2)", "W114", 1, 15, 21, "expected a scalar, got a tuple of 2"),
    "list of an outer block": (
        "ys = []\nfor i in range(3):\n    ys.append(i)",
        "W115",
        3,
        9,
        21,
        "belongs to an outer block",
    ),
    "format of a variable": ("s = f'{n}'", "W114", 1, 12, 13, "expected a constant"),
    "else of while": ("while n > 0:\n    pass\nelse:\n    pass", "W115", 1, 5, -1, "`else` of a loop"),
}


def check_error(text: str, code: str, line: int, column: int, end: int, message: str) -> None:
    with pytest.raises(weft.WeftError) as caught:
        parse(text)
    error = caught.value
    assert error.code == code, error
    assert message in error.message, error
    assert error.span is not None
    assert (error.span.line - 2, error.span.column) == (line, column), error
    if end > 0:
        assert error.span.end_column == end, error


@pytest.mark.parametrize("name", GRAPH_ERRORS)
def test_what_a_graph_function_cannot_say_is_an_error_at_its_place(name: str) -> None:
    body, *expected = GRAPH_ERRORS[name]
    check_error(unit(GRAPH, body + "\nreturn x"), *expected)


@pytest.mark.parametrize("name", PRIM_ERRORS)
def test_what_a_tensor_function_cannot_say_is_an_error_at_its_place(name: str) -> None:
    body, *expected = PRIM_ERRORS[name]
    check_error(unit(PRIM, body), *expected)


@pytest.mark.parametrize(
    ("head", "column", "end", "message"),
    [
        ('main(x: R.Tensor((2,), "int8"), *rest)', 38, 42, "'rest': only plain"),
        ('main(x: R.Tensor((2,), "int8"), **rest)', 39, 43, "'rest': only plain"),
        ('main(x: R.Tensor((2,), "int8"), *, k: R.Prim("int64"))', 40, 58, "'k': only plain"),
        ('main(x: R.Tensor((2,), "int8"), k=R.const(1))', 39, 49, "'k' is not known while reading"),
        ("main(x)", 10, 11, "'x' has no type"),
    ],
)
def test_parameters_that_cannot_be_compiled_are_errors(head: str, column: int, end: int, message: str) -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse(f"@R.function\ndef {head}:\n    return x\n")
    span = caught.value.span
    assert span is not None
    assert message in caught.value.message
    assert (span.line, span.column, span.end_column) == (2, column, end)
