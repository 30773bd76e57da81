"""Names that are one array in Python: what would change another name is refused with the line to write, and what
cannot is accepted and gives what NumPy gives.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

import weft

HEAD = "from weft.script import ir as I, relax as R\n\n\n@I.ir_module\nclass M:\n"
VECTOR = 'R.Tensor((4,), "float32")'
PARAMETERS = (
    f'x: {VECTOR}, y: {VECTOR}, m: R.Tensor((3, 4), "float32"), t: R.Tuple({VECTOR}, {VECTOR}),'
    ' c: R.Tensor((), "bool"), k: R.Tensor((), "int64")'
)


def function(name: str, parameters: str, body: str) -> str:
    return f"@R.function\ndef {name}({parameters}):\n{textwrap.indent(body, '    ')}\n"


def module(body: str, called: str = "", second: str = "") -> str:
    parts = [function("main", PARAMETERS, body)]
    if called:
        parts.append(function("f", f'x: {VECTOR}, y: {VECTOR}, c: R.Tensor((), "bool")', called))
    if second:
        parts.append(function("g", f"x: {VECTOR}", second))
    return HEAD + textwrap.indent("\n".join(parts), "    ")


def arguments() -> list[Any]:
    x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
    return [x, y, np.zeros((3, 4), "float32"), (x + 1, y + 1), np.array(True), np.array(3)]


CALL = "a = M.f(x, y, c)\na[0] = 5.0\nreturn a, x"
WITH_COPY = "write `a = a.copy()` before"
REFUSED = {
    "a function that returns its parameter": (CALL, "return x", "", WITH_COPY),
    "in a branch": (CALL, "if c:\n    return x\nreturn y + 1.0", "", WITH_COPY),
    "from a branch": (CALL, "z = y + 1.0\nif c:\n    z = x\nreturn z", "", WITH_COPY),
    "by a condition": (CALL, "return x if c else y + 1.0", "", WITH_COPY),
    "in a tuple": ("a, b = M.f(x, y, c)\na[0] = 5.0\nreturn b, x", "return x, y + 1.0", "", WITH_COPY),
    "in a field": ("a = M.f(x, y, c)[1]\na[0] = 5.0\nreturn y", "return x + 1.0, y", "", WITH_COPY),
    "through another function": (CALL, "return M.g(x)", "return x", WITH_COPY),
    "a part of it": (CALL, "return x[1:]", "", WITH_COPY),
    "out of a loop": (CALL, "z = x\nwhile R.sum(z) < 3.0:\n    z = z + 1.0\nreturn z", "", WITH_COPY),
    "out of a loop that gives the parameter anew": (
        CALL,
        "while R.sum(x) < 3.0:\n    x = x + 1.0\nreturn x",
        "",
        WITH_COPY,
    ),
    "out of a loop that exchanges": (
        "a = M.f(x, y, c)\na[0] = 5.0\nreturn a, y",
        "for i in range(3):\n    if c:\n        x, y = y, x\nreturn x",
        "",
        WITH_COPY,
    ),
    "a function that changes its parameter in a loop": (
        "s = M.f(x, y, c)\nreturn s, x",
        "i = 0\nwhile i < 4:\n    x[i] = 1.0\n    i += 1\nreturn R.sum(x)",
        "",
        "write `M.f(x.copy(), y, c)`",
    ),
    "a list that has one array in all places": (
        "s = R.zeros((4,), 'float32')\nout = []\n"
        "for row in m[:k]:\n    s += row\n    out.append(s)\nreturn R.stack(out)",
        "",
        "",
        "append a copy: `out.append(value.copy())`",
    ),
    "by name": ("a = M.f(y=y, c=c, x=x)\na[0] = 5.0\nreturn x", "return x", "", WITH_COPY),
    "the argument is changed": ("a = M.f(x, y, c)\nx[0] = 5.0\nreturn a", "return x", "", "`x = x.copy()` before"),
    "a local function": (
        f"@R.function\ndef g(v: {VECTOR}):\n    return v\n\na = g(x)\na[0] = 5.0\nreturn x",
        "",
        "",
        WITH_COPY,
    ),
    "a function that changes its parameter": (
        "s = M.f(x, y, c)\nreturn s, x",
        "x[0] = 1.0\nreturn R.sum(x)",
        "",
        "write `M.f(x.copy(), y, c)`",
    ),
    "through a function that does": (
        "s = M.f(x, y, c)\nreturn s, x",
        "return M.g(x)",
        "x += 1.0\nreturn R.sum(x)",
        "write `M.f(x.copy(), y, c)`",
    ),
    "beside the call": ("return M.g(x) + R.sum(x)", "", "x[0] = 1.0\nreturn R.sum(x)", "write `M.g(x.copy())`"),
    "an update": ("z = x\nz += 1.0\nreturn x", "", "", "`z = z + 1.0` makes another array"),
    "an update of rows": ("for row in m:\n    row += 1.0\nreturn m", "", "", "`row = row + 1.0` makes"),
    "a field of a parameter": ("a = t[0]\na[0] = 5.0\nreturn t", "", "", WITH_COPY),
    "a tuple by a condition": ("p = (x, y) if c else (y, x)\na = p[0]\na[0] = 5.0\nreturn p", "", "", WITH_COPY),
    "a tuple in a loop": (
        "p = (x, y)\nfor i in range(k):\n    a = p[0]\n    a[0] = 5.0\n    p = (a, p[1])\nreturn x",
        "",
        "",
        WITH_COPY,
    ),
    "a list that has two names": ("p = [x, y]\nq = p\nq[0] = y\nreturn p", "", "", "write `q = q.copy()` before"),
    "a list that grows": ("p = [x, y]\nq = p\nq.append(x)\nreturn p", "", "", "write `q = q.copy()` before"),
    "read later in the iteration": (
        "s = 0.0\nfor i in range(k):\n    z = y\n    y[0] = y[0] + 1.0\n    s += z[0]\nreturn s",
        "",
        "",
        "`y = y.copy()` before",
    ),
    "read by the condition": (
        "z = y\nwhile R.sum(z) < 8.0 and R.sum(y) < 9.0:\n    y[0] = y[0] + 1.0\nreturn y",
        "",
        "",
        "`y = y.copy()` before",
    ),
    "an array of the function around": (
        "def f():\n    x[0] = 5.0\n    return 1\n\ns = f()\nreturn x, s",
        "",
        "",
        "x = f(x)",
    ),
    "one array in a branch": (
        "a, b = x.copy(), y.copy()\nif c:\n    a, b = b, b\na[0] = 5.0\nreturn a, b",
        "",
        "",
        WITH_COPY,
    ),
    "a third name of what a branch exchanges": (
        "a, b = x.copy(), y.copy()\nz = b\nif c:\n    a, b = b, a\na[0] = 5.0\nreturn a, z",
        "",
        "",
        WITH_COPY,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_changes_another_name_is_refused(name: str) -> None:
    body, called, second, line = REFUSED[name]
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(module(body, called, second))
    assert caught.value.code == "W115"
    assert line in (caught.value.hint or ""), caught.value.hint


SWAPPED = "if c:\n    a, b = b, a\n"
ACCEPTED = {
    "a new array": (CALL, "return x + 1.0", ""),
    "a copy": (CALL, "return x.copy()", ""),
    "a copy with other elements": (CALL, "z = x.copy()\nz[0] = 1.0\nreturn z", ""),
    "a tensor that a loop fills": (
        CALL,
        "z = R.zeros((4,), 'float32')\nfor i in range(4):\n    z[i] = x[i]\nreturn z",
        "",
    ),
    "another argument": (CALL, "return y", ""),
    "another field": ("a, b = M.f(x, y, c)\nb[0] = 5.0\nreturn a, x, y", "return x, y + 1.0", ""),
    "a copy of the result": ("a = M.f(x, y, c).copy()\na[0] = 5.0\nreturn a, x", "return x", ""),
    "the line that the error says": ("a = M.f(x, y, c)\na = a.copy()\na[0] = 5.0\nreturn a, x", "return x", ""),
    "the name is given anew": ("x = M.f(x, y, c)\nx[1] = 5.0\nreturn x", "x[0] = 3.0\nreturn x", ""),
    "in a loop": ("for i in range(k):\n    x = M.f(x, y, c)\n    x[0] = 5.0\nreturn x", "return x", ""),
    "a changed copy": ("z = M.f(x.copy(), y, c)\nreturn z, x", "x[0] = 3.0\nreturn x", ""),
    "a list that gets another array": ("p = [x, y]\np[0] = y\nreturn x, p[0]", "", ""),
    "the rows are read again": (
        "s = 0.0\nfor i in range(k):\n    row = m[i]\n    s += R.sum(row)\n    m[i] = 1.0\nreturn s, m",
        "",
        "",
    ),
    "rows that an iteration makes": (
        "s = R.zeros((4,), 'float32')\nout = []\n"
        "for row in m:\n    s = s + row\n    out.append(s)\nreturn R.stack(out)",
        "",
        "",
    ),
    "copies of what an iteration changes": (
        "s = R.zeros((4,), 'float32')\nout = []\n"
        "for row in m:\n    s += row\n    out.append(s.copy())\nreturn R.stack(out)",
        "",
        "",
    ),
    "a parameter of which a function changes a copy": (
        "s = M.f(x, y, c)\nreturn s, x",
        "x = x.copy()\nfor i in range(4):\n    x[i] = 1.0\nreturn R.sum(x)",
        "",
    ),
    "an exchange": (f"a, b = x.copy(), y.copy()\n{SWAPPED}a[0] = b[1] + 5.0\nreturn a, b", "", ""),
    "an exchange by a condition": (
        "a, b = x.copy(), y.copy()\na, b = (b, a) if c else (a, b)\na[0] = b[1] + 5.0\nreturn a, b",
        "",
        "",
    ),
    "an exchange of three": (
        "a, b, d = x.copy(), y.copy(), x + 1.0\nif c:\n    a, b, d = b, d, a\na[1] = b[0] + d[2]\nreturn a, b, d",
        "",
        "",
    ),
    "an exchange in an exchange": (
        "a, b = x.copy(), y.copy()\nif c:\n    if R.sum(a) > 1:\n        a, b = b, a\n    b = b + 1.0\n"
        "a[1] = b[0] + 1.0\nreturn a, b",
        "",
        "",
    ),
    "an exchange in a loop": (
        "a, b = x.copy(), y.copy()\nfor i in range(k):\n    if R.sum(a) < R.sum(b):\n        a, b = b, a\n"
        "    a[1] = b[0] + 1.0\nreturn a, b",
        "",
        "",
    ),
}


def in_numpy(body: str, called: str, second: str) -> Any:
    """The functions as Python reads them, on NumPy arrays; numbers of rank 0 are numbers."""
    place: dict[str, Any] = {"R": np}
    for name, parameters, text in (("main", "x, y, m, t, c, k", body), ("f", "x, y, c", called), ("g", "x", second)):
        exec(f"def {name}({parameters}):\n{textwrap.indent(text or 'pass', '    ')}\n", place)
    place["M"] = type("M", (), {"f": staticmethod(place["f"]), "g": staticmethod(place["g"])})
    return place["main"]


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_changes_no_other_name_gives_what_numpy_gives(name: str) -> None:
    found = weft.interpret(weft.parse(module(*ACCEPTED[name])))["main"](*arguments())
    wanted = in_numpy(*ACCEPTED[name])(*arguments())
    found, wanted = (value if isinstance(value, tuple) else (value,) for value in (found, wanted))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_functions_that_wait_for_each_other_are_read() -> None:
    """Each of a long chain returns what the next one does: what is too far to know may be the argument."""
    chain = [f"@R.function\ndef f{i}(x: {VECTOR}) -> {VECTOR}:\n    return M.f{i + 1}(x)\n" for i in range(200)]
    last = f"@R.function\ndef f200(x: {VECTOR}) -> {VECTOR}:\n    return x + 1.0\n"
    body = f"@R.function\ndef main(x: {VECTOR}):\n    a = M.f0(x)\n    a = a.copy()\n    a[0] = 5.0\n    return a, x\n"
    text = HEAD + textwrap.indent("\n".join([*chain, last, body]), "    ")
    found = weft.interpret(weft.parse(text))["main"](np.zeros(4, "float32"))
    assert found[0].tolist() == [5, 1, 1, 1]
    assert found[1].tolist() == [0, 0, 0, 0]


def test_a_function_that_calls_itself_may_return_its_argument() -> None:
    parameters = f'x: {VECTOR}, k: R.Tensor((), "int64")) -> {VECTOR}'
    text = f"@R.function\ndef f({parameters}:\n    if k == 0:\n        return x\n    return M.f(x, k - 1)\n"
    body = f"@R.function\ndef main(x: {VECTOR}):\n    a = M.f(x, 2)\n    a[0] = 5.0\n    return a, x\n"
    with pytest.raises(weft.WeftError) as caught:
        weft.parse(HEAD + textwrap.indent(text + body, "    "))
    assert caught.value.code == "W115"
    assert WITH_COPY in (caught.value.hint or "")
