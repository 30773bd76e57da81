# ruff: noqa: E501  (scripts inside strings and inside decorated functions)
"""Wrong scripts: each gives one error with code, exact place, message and (where known) the fix."""

from __future__ import annotations

import pytest

import weft
from weft.script import parse

GRAPH = '@R.function\ndef main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((3, 2), "float32")):\n'
SYMBOLIC = '@R.function\ndef main(x: R.Tensor(("n", 4), "float32"), z: R.Tensor(("n", 6), "float32")):\n'
PRIM = '@T.prim_func\ndef f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "int32")):\n'
MODULE = """@I.ir_module
class M:
    @T.prim_func
    def k(a: T.Buffer(("n", 4), "float32"), b: T.Buffer(("n", 4), "float32")):
        T.evaluate(0)

    @R.function
    def main(x: R.Tensor((2, 4), "float32")):
"""

# name: (text, kind of error, code, line, column, end column, part of the message, part of the hint)
CASES: dict[str, tuple[str, type[weft.WeftError], str, int, int, int, str, str]] = {
    "undefined name": (
        GRAPH + "    z = R.add(x, yy)\n    return z\n",
        weft.ScriptError,
        "W110",
        3,
        18,
        20,
        "undefined name 'yy'",
        "",
    ),
    "misspelled name": (
        GRAPH + "    weight = R.exp(x)\n    z = R.add(weigth, x)\n    return z\n",
        weft.ScriptError,
        "W110",
        4,
        15,
        21,
        "undefined name 'weigth'",
        "did you mean `weight`?",
    ),
    "unknown operator": (
        GRAPH + "    z = R.nn.sofmax(x)\n    return z\n",
        weft.ScriptError,
        "W140",
        3,
        9,
        20,
        "R.nn.sofmax",
        "R.nn.softmax",
    ),
    "static shape mismatch": (
        GRAPH + "    z = R.add(x, y)\n    return z\n",
        weft.ShapeError,
        "W201",
        3,
        9,
        20,
        "cannot broadcast 2 with 3",
        "",
    ),
    "symbolic shape mismatch": (
        SYMBOLIC + "    w = R.add(x, z)\n    return w\n",
        weft.ShapeError,
        "W201",
        3,
        9,
        20,
        "4 with 6",
        "",
    ),
    "nested mismatch": (
        GRAPH + "    return R.exp(R.exp(R.add(x, y)))\n",
        weft.ShapeError,
        "W201",
        3,
        24,
        35,
        "broadcast",
        "",
    ),
    "refuted annotation": (
        SYMBOLIC + '    w: R.Tensor((n, 5), "float32") = R.exp(x)\n    return w\n',
        weft.ShapeError,
        "W210",
        3,
        8,
        35,
        "n=1: declared (1, 5), computed (1, 4)",
        "declare (n, 4)",
    ),
    "annotation of another dtype": (
        SYMBOLIC + '    w: R.Tensor((n, 4), "float16") = R.exp(x)\n    return w\n',
        weft.DTypeError,
        "W320",
        3,
        8,
        35,
        "float16",
        "R.astype",
    ),
    "annotation of another rank": (
        SYMBOLIC + '    w: R.Tensor((n,), "float32") = R.exp(x)\n    return w\n',
        weft.ShapeError,
        "W210",
        3,
        8,
        33,
        "R.Tensor((n,)",
        "",
    ),
    "refuted result": (
        '@R.function\ndef main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 5), "float32"):\n    return x\n',
        weft.ShapeError,
        "W210",
        3,
        12,
        13,
        "n=1: declared (1, 5), computed (1, 4)",
        "",
    ),
    "unbound symbol of the result": (
        '@R.function\ndef main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("k", 4), "float32"):\n    return x\n',
        weft.ScriptError,
        "W117",
        2,
        47,
        76,
        "no parameter binds the symbol 'k'",
        "",
    ),
    "undefined symbol": (
        GRAPH + '    z: R.Tensor(("k", 3), "float32") = R.exp(x)\n    return z\n',
        weft.ScriptError,
        "W117",
        3,
        8,
        37,
        "undefined symbol 'k'",
        "R.match_cast",
    ),
    "missing argument": (
        GRAPH + "    z = R.add(x)\n    return z\n",
        weft.ScriptError,
        "W141",
        3,
        9,
        17,
        "x2",
        "R.add(x1, x2)",
    ),
    "unknown keyword": (
        GRAPH + "    z = R.nn.softmax(x, axes=1)\n    return z\n",
        weft.ScriptError,
        "W141",
        3,
        9,
        32,
        "axes",
        "axis",
    ),
    "bad dtype": (
        '@R.function\ndef main(x: R.Tensor((2, 3), "float33")):\n    return x\n',
        weft.DTypeError,
        "W301",
        2,
        30,
        39,
        "float33",
        "float32",
    ),
    "bad dimension": (
        '@R.function\ndef main(x: R.Tensor((1.5, 3), "float32")):\n    return x\n',
        weft.ScriptError,
        "W114",
        2,
        23,
        26,
        "1.5",
        "",
    ),
    "negative dimension": (
        '@R.function\ndef main(x: R.Tensor((-1, 3), "float32")):\n    return x\n',
        weft.ScriptError,
        "W114",
        2,
        23,
        25,
        "negative",
        "",
    ),
    "shape that is no tuple": (
        '@R.function\ndef main(x: R.Tensor(3, "float32")):\n    return x\n',
        weft.ScriptError,
        "W114",
        2,
        22,
        23,
        "expected a shape",
        "(3,)",
    ),
    "unknown option of a type": (
        '@R.function\ndef main(x: R.Tensor((2,), dtyp="int8")):\n    return x\n',
        weft.ScriptError,
        "W113",
        2,
        28,
        39,
        "dtyp",
        "dtype",
    ),
    "no type": (
        "@R.function\ndef main(x):\n    return x\n",
        weft.ScriptError,
        "W113",
        2,
        10,
        11,
        "'x' has no type",
        "",
    ),
    "no return": (GRAPH + "    z = R.exp(x)\n", weft.ScriptError, "W120", 2, 5, 9, "returns nothing", "return"),
    "statements after return": (
        GRAPH + "    return x\n    z = R.exp(x)\n",
        weft.ScriptError,
        "W120",
        4,
        5,
        17,
        "after the return",
        "",
    ),
    "dataflow variable outside": (
        GRAPH
        + "    with R.dataflow():\n        a = R.exp(x)\n        b = R.exp(a)\n        R.output(b)\n    return a\n",
        weft.ScriptError,
        "W119",
        7,
        12,
        13,
        "'a' is not visible",
        "R.output",
    ),
    "unknown output": (
        GRAPH + "    with R.dataflow():\n        a = R.exp(x)\n        R.output(q)\n    return x\n",
        weft.ScriptError,
        "W119",
        5,
        18,
        19,
        "'q'",
        "",
    ),
    "branch variable outside": (
        '@R.function\ndef main(x: R.Tensor((2,), "float32"), c: R.Prim("bool")):\n    if c:\n        a = R.exp(x)\n        y = R.exp(a)\n'
        "    else:\n        y = x\n    return a\n",
        weft.ScriptError,
        "W119",
        8,
        12,
        13,
        "'a' is not visible",
        "last binding",
    ),
    "if without else": (
        '@R.function\ndef main(x: R.Tensor((2,), "float32"), c: R.Prim("bool")):\n    if c:\n        y = x\n    return x\n',
        weft.ScriptError,
        "W115",
        3,
        5,
        6,
        "else",
        "",
    ),
    "branches that bind different names": (
        '@R.function\ndef main(x: R.Tensor((2,), "float32"), c: R.Prim("bool")):\n    if c:\n        y = x\n    else:\n        z = x\n    return x\n',
        weft.ScriptError,
        "W119",
        6,
        9,
        14,
        "'y' and 'z'",
        "",
    ),
    "condition that is a tensor": (
        GRAPH + "    if x:\n        a = x\n    else:\n        a = x\n    return a\n",
        weft.ScriptError,
        "W123",
        3,
        8,
        9,
        "bool scalar",
        "",
    ),
    "control flow in dataflow": (
        '@R.function\ndef main(x: R.Tensor((2,), "float32"), c: R.Prim("bool")):\n    with R.dataflow():\n        if c:\n            y = x\n'
        "        else:\n            y = x\n        R.output(y)\n    return y\n",
        weft.ScriptError,
        "W119",
        4,
        9,
        10,
        "control flow",
        "R.where",
    ),
    "element of a tensor": (
        GRAPH + "    return x[0, 3]\n",
        weft.ScriptError,
        "W121",
        3,
        17,
        18,
        "index 3 is out of range for a size of 3",
        "",
    ),
    "field out of range": (
        GRAPH + "    t = (x, y)\n    z = R.exp(t[2])\n    return z\n",
        weft.ScriptError,
        "W121",
        4,
        17,
        18,
        "field 2 of a tuple of 2",
        "",
    ),
    "unused value": (GRAPH + "    R.exp(x)\n    return x\n", weft.ScriptError, "W115", 3, 5, 13, "not used", "_ ="),
    "while without an end": (
        GRAPH + "    while True:\n        x = x + 1.0\n    return x\n",
        weft.ScriptError,
        "W115",
        3,
        5,
        20,
        "without a `break` never ends",
        None,
    ),
    "method call": (GRAPH + "    return x.exp()\n", weft.ScriptError, "W115", 3, 12, 17, ".exp", "R.exp"),
    "unpacking the wrong number": (
        GRAPH + "    a, b, c = R.split(x, 2)\n    return a\n",
        weft.ScriptError,
        "W113",
        3,
        5,
        12,
        "2 values",
        "",
    ),
    "starred target": (
        GRAPH + "    a, b, c, *d = R.split(x, 2)\n    return a\n",
        weft.ScriptError,
        "W113",
        3,
        5,
        16,
        "2 values cannot be unpacked into at least 3 names",
        "",
    ),
    "lambda": (
        GRAPH + "    f = lambda a: a\n    return f(x, y)\n",
        weft.ScriptError,
        "W113",
        4,
        12,
        19,
        "'lambda' takes 1 argument, got 2",
        "",
    ),
    "default argument": (
        '@T.prim_func\ndef main(x: T.Buffer((2,), "int8") = 3):\n    x[0] = 1\n',
        weft.ScriptError,
        "W115",
        2,
        38,
        39,
        "default",
        "",
    ),
    "doubled parameter": (
        "@T.prim_func\ndef f(*a):\n    pass\n",
        weft.ScriptError,
        "W115",
        2,
        8,
        9,
        "plain parameters",
        "",
    ),
    "bad constant": (
        GRAPH + '    c = R.const([[1, 2], [3]], "int32")\n    return c\n',
        weft.ScriptError,
        "W152",
        3,
        9,
        40,
        "different lengths",
        "",
    ),
    "shape of a constant": (
        GRAPH + '    c = R.const([], "int32", shape=(-1,))\n    return c\n',
        weft.ScriptError,
        "W152",
        3,
        9,
        42,
        "a list of sizes, got (-1,)",
        "",
    ),
    "constant out of range": (
        GRAPH + '    c = R.const(300, "int8")\n    return c\n',
        weft.ScriptError,
        "W152",
        3,
        9,
        29,
        "300 does not fit in int8",
        "",
    ),
    "syntax error": (
        GRAPH + "    z = R.add(x,,y)\n    return z\n",
        weft.ScriptError,
        "W101",
        3,
        17,
        18,
        "invalid syntax",
        "",
    ),
    "unicode columns": (
        '@R.function\ndef main(é: R.Tensor((2, 3), "float32")):\n    ü = R.add(é, ö)\n    return ü\n',
        weft.ScriptError,
        "W110",
        3,
        18,
        19,
        "'ö'",
        "",
    ),
    "wide characters": (
        '@R.function\ndef main(x: R.Tensor((2, 3), "float32")):\n    R.print(x, format="日本語😀", nme=1)\n    return x\n',
        weft.ScriptError,
        "W141",
        3,
        5,
        37,
        "nme",
        "",
    ),
    "kernel contradicts its call": (
        MODULE + '        y = R.call_tir(cls.k, (x,), out_ty=R.Tensor((3, 4), "float32"))\n        return y\n',
        weft.ShapeError,
        "W210",
        9,
        13,
        72,
        "declared (3, 4), computed (2, 4)",
        "",
    ),
    "unknown kernel": (
        MODULE + '        y = R.call_tir(cls.kk, (x,), out_ty=R.Tensor((2, 4), "float32"))\n        return y\n',
        weft.ScriptError,
        "W110",
        9,
        24,
        30,
        "no function 'kk'",
        "cls.k",
    ),
    "recursion without a type": (
        MODULE + "        y = cls.main(x)\n        return y\n",
        weft.ScriptError,
        "W122",
        8,
        9,
        13,
        "'main' calls itself",
        "->",
    ),
    "two functions of one name": (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor):\n        return x\n    @R.function\n    def f(x: R.Tensor):\n        return x\n",
        weft.ScriptError,
        "W118",
        7,
        9,
        10,
        "two functions named 'f'",
        "",
    ),
    "wrong statement in a module": (
        "@I.ir_module\nclass M:\n    for i in range(3):\n        pass\n",
        weft.ScriptError,
        "W104",
        3,
        5,
        13,
        "",
        "",
    ),
    "wrong rank": (
        PRIM + "    A[0] = T.float32(1)\n",
        weft.ScriptError,
        "W121",
        3,
        5,
        9,
        "'A' has 2 dimensions (8, 8), got 1 index",
        "",
    ),
    "stored dtype": (
        PRIM + "    B[0, 0] = A[0, 0]\n",
        weft.ScriptError,
        "W123",
        3,
        15,
        22,
        "'B' holds int32, the value is float32",
        "T.Cast",
    ),
    "float index": (
        PRIM + "    A[1.5, 0] = T.float32(1)\n",
        weft.ScriptError,
        "W123",
        3,
        7,
        10,
        "must be an integer",
        "",
    ),
    "integer division": (PRIM + "    B[0, 0] = B[0, 1] / B[0, 2]\n", weft.DTypeError, "W312", 3, 15, 32, "int32", "//"),
    "unknown intrinsic": (
        PRIM + "    A[0, 0] = T.expp(A[0, 0])\n",
        weft.ScriptError,
        "W111",
        3,
        15,
        21,
        "T.expp",
        "T.exp",
    ),
    "arity of an intrinsic": (
        PRIM + "    A[0, 0] = T.exp(A[0, 0], A[0, 1])\n",
        weft.ScriptError,
        "W113",
        3,
        15,
        38,
        "takes 1 argument, got 2",
        "",
    ),
    "undefined buffer": (PRIM + "    A[0, 0] = Q[0, 0]\n", weft.ScriptError, "W110", 3, 15, 16, "'Q'", ""),
    "remap of the wrong length": (
        PRIM
        + '    for i in range(8):\n        with T.block("b"):\n            vi, vj = T.axis.remap("SS", [i])\n            A[vi, 0] = 1.0\n',
        weft.ScriptError,
        "W113",
        5,
        22,
        45,
        "2 kinds, 1 loops, 2 names",
        "",
    ),
    "clause outside a block": (PRIM + "    T.reads(A[0, 0])\n", weft.ScriptError, "W114", 3, 5, 21, "T.reads", ""),
    "loop over a buffer": (
        PRIM + "    for i in A:\n        pass\n",
        weft.ScriptError,
        "W115",
        3,
        14,
        15,
        "looped over",
        "T.grid",
    ),
    "loop variable after its loop": (
        PRIM + "    for i in range(8):\n        A[i, 0] = 1.0\n    A[i, 0] = 2.0\n",
        weft.ScriptError,
        "W110",
        5,
        7,
        8,
        "'i'",
        "",
    ),
    "condition that is a number": (
        PRIM + "    if A[0, 0]:\n        A[0, 0] = 1.0\n",
        weft.ScriptError,
        "W123",
        3,
        8,
        15,
        "bool",
        "!= 0",
    ),
    "break outside a loop": (PRIM + "    break\n", weft.ScriptError, "W115", 3, 5, 10, "outside a loop", ""),
    "unknown scope": (
        PRIM + '    with T.blok("b"):\n        pass\n',
        weft.ScriptError,
        "W111",
        3,
        10,
        21,
        "T.blok",
        "T.block",
    ),
    "try": (PRIM + "    try:\n        pass\n    except: pass\n", weft.ScriptError, "W115", 3, 5, 15, "try", ""),
    "option of a decorator": (
        "@R.function(pur=False)\ndef main(x: R.Tensor):\n    return x\n",
        weft.ScriptError,
        "W113",
        1,
        13,
        22,
        "pur",
        "pure",
    ),
    "no decorator": ("def f(x):\n    return x\n", weft.ScriptError, "W104", 1, 5, 6, "no decorator", "@R.function"),
    "two units": (
        "@R.function\ndef a(x: R.Tensor):\n    return x\n@R.function\ndef b(x: R.Tensor):\n    return x\n",
        weft.ScriptError,
        "W104",
        5,
        5,
        6,
        "several units: a, b",
        "ir_module",
    ),
    "nothing": ("x = 3\n", weft.ScriptError, "W104", 1, 1, 1, "defines nothing", ""),
    "an import": ("import os\n", weft.ScriptError, "W104", 1, 1, 10, "nothing is imported", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_script_says_what_where_and_how_to_fix_it(name: str) -> None:
    text, kind, code, line, column, end, message, hint = CASES[name]
    with pytest.raises(weft.WeftError) as caught:
        parse(text, filename="model.py")
    error = caught.value
    assert type(error) is kind, error
    assert error.code == code, error
    assert error.span is not None
    assert error.span.filename == "model.py"
    first_line_end = error.span.end_column if error.span.end_line == error.span.line else None
    assert (error.span.line, error.span.column) == (line, column), error
    if first_line_end is not None:
        assert first_line_end == end, error
    assert message in error.message
    if hint:
        assert hint in (error.hint or ""), error


def test_an_error_is_one_screen_with_a_caret() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse("@R.function\ndef main(é: R.Tensor((2,), 'float32')):\n    return R.ad(é, é)\n", filename="m.py")
    assert str(caught.value).split("\n")[:5] == [
        "W140: unknown operator R.ad",
        " --> m.py:3:12",
        "  |",
        "3 |     return R.ad(é, é)",
        "  |            ^^^^",
    ]


def test_a_newer_text_version_is_refused_by_name() -> None:
    with pytest.raises(weft.ScriptError, match="weft-script 99"):
        parse("# weft-script 99\n@R.function\ndef f(x: R.Tensor):\n    return x\n")


def test_carriage_returns_do_not_move_places() -> None:
    with pytest.raises(weft.ScriptError) as caught:
        parse("@R.function\r\ndef f(x: R.Tensor):\r\n    return yy\r\n")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (3, 12)


def test_an_index_that_is_never_in_range_is_an_error_at_reading() -> None:
    text = "@T.prim_func{}\ndef f(A: T.Buffer((4,), 'float32')):\n    A[0] = 1.0\n    A[7] = 2.0\n"
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(text.format(""))
    assert caught.value.code == "W456"
    assert caught.value.span is not None
    assert caught.value.span.line == 4
    weft.parse(text.format("(check_well_formed=False)"))
