"""Loops as Python has them: each program of `corpus/loops.txt` gives in weft what it gives as plain Python on NumPy
arrays, and so does an assignment to any elements.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import weft
from weft.ir import structural_equal

PARAMETERS = {
    "x": 'R.Tensor(("n",), "float32")',
    "y": 'R.Tensor(("n",), "float32")',
    "m": 'R.Tensor(("r", "c"), "float32")',
    "b": 'R.Tensor(("n",), "int64")',
    "k": 'R.Tensor((), "int64")',
    "t": 'R.Tensor((), "float32")',
}
PROGRAMS = dict(
    part.split("\n", 1) for part in (Path(__file__).parent / "corpus/loops.txt").read_text("utf-8").split("\n## ")[1:]
)
SIZES = [(6, 3, 4, 3), (4, 2, 2, 5)]  # n, r, c, k
IN_NUMPY = SimpleNamespace(
    any=np.any,
    argmax=np.argmax,
    argmin=lambda x, axis: np.argmin(x, axis),
    expand_dims=np.expand_dims,
    mean=np.mean,
    argsort=lambda x: np.argsort(x, kind="stable"),
    concat=np.concatenate,
    exp=np.exp,
    eye=lambda size: np.eye(size, dtype="float32"),
    flip=np.flip,
    minimum=np.minimum,
    ones=np.ones,
    permute_dims=np.transpose,
    reshape=np.reshape,
    sigmoid=lambda x: 1 / (1 + np.exp(-x)),
    sort=np.sort,
    stack=np.stack,
    sqrt=np.sqrt,
    sum=np.sum,
    tanh=np.tanh,
    where=np.where,
    max=np.max,
    zeros=lambda shape, dtype="float32": np.zeros(shape, dtype),
)


def read(body: str, parameters: dict[str, str]) -> Any:
    head = f"@R.function\ndef main({', '.join(f'{name}: {ty}' for name, ty in parameters.items())}):\n"
    return weft.parse("from weft.script import relax as R\n\n\n" + head + textwrap.indent(body, "    ") + "\n")


def in_python(body: str) -> Callable[..., Any]:
    """The program as a function of NumPy arrays, which it does not share with its caller."""
    place: dict[str, Any] = {"R": IN_NUMPY}
    head = f"def main({', '.join(PARAMETERS)}):\n    n, (r, c) = len(x), m.shape\n"
    exec(head + textwrap.indent(body, "    "), place)
    return lambda *arrays: place["main"](*(a.copy() if a.ndim else a[()] for a in arrays))


def arrays(n: int, r: int, c: int, k: int) -> list[np.ndarray]:
    values = np.random.default_rng(n)
    x, y, m = (values.normal(size=shape).astype("float32") for shape in (n, n, (r, c)))
    return [x, y, m, values.integers(0, 4, n), np.array(k), np.array(values.normal(), "float32")]


def parts(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in parts(item)]
    return [np.asarray(value)]


def assert_same(found: Any, wanted: Any) -> None:
    wanted = np.stack(wanted) if isinstance(wanted, list) else wanted  # a list of rows is a tensor
    for a, b in zip(parts(found), parts(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_python_gives(name: str) -> None:
    function = read(PROGRAMS[name], PARAMETERS)
    assert structural_equal(weft.parse(function.script()), function)
    run, python = weft.interpret(function), in_python(PROGRAMS[name])
    for sizes in SIZES:
        given = arrays(*sizes)
        before = [array.copy() for array in given]
        assert_same(run(*given), python(*before))
        for array, old in zip(given, before, strict=True):  # arguments are values
            np.testing.assert_array_equal(array, old)


WRITTEN = {
    "float and integer tensors": ("return x + b", "W320", 'x + R.astype(b, "float32")'),
    "an update by integers": ("y += b\nreturn y", "W320", 'y + R.astype(b, "float32")'),
    "a float and a tensor of integers": ("return b * 0.5", "W310", 'R.astype(b, "float32") * 0.5'),
    "a quotient of integers": ("return b / 2", "W321", 'R.astype(b, "float32") / 2'),
    "a name that no iteration may bind": ("for v in x:\n    w = v * 2\nreturn w", "W119", 'w = R.zeros((), "float32")'),
    "an index that no iteration may bind": ("for i in range(k):\n    y = y + i\nreturn i", "W119", "i = 0"),
    "a row that no iteration may bind": (
        "for row in m:\n    q = row\nreturn q",
        "W119",
        'q = R.zeros((c,), "float32")',
    ),
    "an element of a list that a run assigns": (
        "h = [0, 0, 0, 0]\nfor v in b:\n    h[v] += 1\nreturn h",
        "W114",
        'h = R.zeros((4,), "int64")',
    ),
    "a list outside of a loop": ("h = [1, 2, 3, 4]\nh[k] = 5\nreturn h", "W114", 'h = R.const([1, 2, 3, 4], "int64")'),
    "a dictionary that a loop counts in": (
        "h = {0: 0, 1: 0}\nfor v in b:\n    h[v] += 1\nreturn h[0]",
        "W114",
        'h = R.zeros((2,), "int64")',
    ),
    "a list that grows in some iterations": (
        "out = []\nfor v in x:\n    if v > 0:\n        out.append(v)\nreturn out",
        "W115",
        "out[count] = value",
    ),
    "a comparison of a truth value": ("return R.sum(x > 0) > 2", "W310", 'R.astype(..., "int64")'),
    "a list that ends early": (
        "out = []\nfor i in range(k):\n    out.append(i)\n    if i > t:\n        break\nreturn out",
        "W115",
        "`count = 0`",
    ),
    "two parts of a list that are one array": (
        "s = [x, x]\ns[0][0] += 1\nreturn s[1]",
        "W115",
        "write `.copy()` where one gets its value from the other",
    ),
    "two values of a dictionary that are one array": (
        's = {"a": x, "b": x}\nfor i in range(k):\n    s["a"][0] += 1\nreturn s["b"]',
        "W115",
        "write `.copy()` where one gets its value from the other",
    ),
    "a dictionary that gets another key": (
        's = {"a": x}\nfor i in range(k):\n    s["b"] = x\nreturn s["a"]',
        "W115",
        "it has the same keys and as many parts whatever runs",
    ),
    "a dictionary that gets another key in a branch": (
        's = {"a": x}\nif k > 1:\n    s["b"] = x\nreturn s["a"]',
        "W115",
        "it has the same keys and as many parts whatever runs",
    ),
    "a part of an array that a loop goes through and changes": (
        "for v in x[1:]:\n    x[0] += v\nreturn x",
        "W115",
        "go through a copy, `.copy()`, or over the indices",
    ),
    "another name of an array that a loop goes through and changes": (
        "z = x\nfor v in z:\n    x[0] += v\nreturn x",
        "W115",
        "go through a copy, `.copy()`, or over the indices",
    ),
    "a modulus": ("return pow(3, k, 7)", "W115", "p = p * base % modulus"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_error_says_what_to_write(name: str) -> None:
    body, code, line = WRITTEN[name]
    with pytest.raises(weft.WeftError) as caught:
        read(body, PARAMETERS)
    assert caught.value.code == code
    assert line in (caught.value.hint or ""), caught.value.hint


def test_numbers_have_the_dtypes_of_python() -> None:
    body = "s = 0.0\nfor i in range(k):\n    s += i * 0.5\nreturn k * 0.5, k / 2, k * t, x * k, s, s * x, k * 2, 2**k"
    found = weft.interpret(read(body, PARAMETERS))(*arrays(*SIZES[0]))
    dtypes = ["float64", "float64", "float32", "float32", "float64", "float32", "int64", "int64"]
    assert [str(value.dtype) for value in found] == dtypes


def test_a_number_stands_beside_branches_of_two_dtypes() -> None:
    body = "if k > 2:\n    return 0.5\nif k > 1:\n    return x\nreturn t"
    tensors = {"x": 'R.Tensor((), "float32")', "t": 'R.Tensor((), "float64")', "k": 'R.Tensor((), "int64")'}
    run = weft.interpret(read(body, tensors))
    found = [run(np.array(1, "float32"), np.array(2.0), np.array(k)) for k in (3, 2, 1)]
    assert [float(value) for value in found] == [0.5, 1, 2]
    assert [str(value.dtype) for value in found] == ["float32", "float32", "float64"]


COMPILED = [
    "histogram",
    "insertion sort",
    "sieve",
    "slice augmented",
    "mask augmented",
    "knapsack",
    "sum of rows",
    "slices held in tensors",
    "table",
    "weak after",
    "k means",
    "elements of an argument that is not returned",
    "state in a dictionary",
    "lists of a length that a run decides",
]


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_programs_are_compiled(executor: str) -> None:
    module = weft.IRModule({f"f{at}": read(PROGRAMS[name], PARAMETERS) for at, name in enumerate(COMPILED)})
    run = weft.compile(module, executor=executor)
    for sizes in SIZES:
        for at, name in enumerate(COMPILED):
            given = arrays(*sizes)
            assert_same(run[f"f{at}"](*given), in_python(PROGRAMS[name])(*arrays(*sizes)))
            for array, old in zip(given, arrays(*sizes), strict=True):
                np.testing.assert_array_equal(array, old)


ITEMS = st.sampled_from(
    [
        "0",
        "-1",
        "i",
        "j",
        ":",
        "1:",
        ":-1",
        "::2",
        "1:3",
        "-2:",
        "::-1",
        "-3:-1",
        "...",
        "1::2",
        "0:0",
        "index",
        "[0, j]",
    ]
)
VALUES = st.sampled_from(["2", "0.5", "s", "True", "x[{0}] * 2", "i"])
NAMES = {
    "x": 'R.Tensor((4, "n", 5), "float32")',
    "i": 'R.Tensor((), "int64")',
    "j": 'R.Tensor((), "int32")',
    "s": 'R.Tensor((), "float32")',
    "index": 'R.Tensor((3,), "int64")',
}


@given(st.lists(ITEMS, min_size=1, max_size=3), VALUES, st.sampled_from(["=", "+=", "*=", "-="]))
@settings(max_examples=40, deadline=None)
def test_elements_are_assigned_as_in_numpy(items: list[str], value: str, operator: str) -> None:
    if items.count("...") > 1 or {"index", "[0, j]"} <= {*items}:
        return
    item = ", ".join(items)
    body = f"x[{item}] {operator} {value.format(item)}\nreturn x"
    x = np.random.default_rng(len(body)).normal(size=(4, 6, 5)).astype("float32")
    given = {"x": x, "i": np.array(2), "j": np.array(-3, "int32"), "s": np.float32(1.5), "index": np.array([1, 0, 3])}
    place: dict[str, Any] = {}
    exec(f"def main({', '.join(given)}):\n" + textwrap.indent(body, "    "), place)
    wanted = place["main"](**{**given, "x": x.copy()})
    function = read(body, NAMES)
    assert structural_equal(weft.parse(function.script()), function)
    np.testing.assert_allclose(weft.interpret(function)(*map(np.asarray, given.values())), wanted, rtol=1e-6)


MASKS = {
    "x": 'R.Tensor((4, "n", 5), "float32")',
    "rows": 'R.Tensor((4,), "bool")',
    "columns": 'R.Tensor(("n",), "bool")',
    "both": 'R.Tensor((4, "n"), "bool")',
    "i": 'R.Tensor((), "int64")',
}
WITH_MASKS = st.sampled_from(["rows", "columns", "both", "x > 0.5", ":", "0", "i", "...", "1:3"])
TAKEN = st.sampled_from(["= 2", "+= 1", "*= x[{0}]", "= x[{0}] * 3"])


@given(st.lists(WITH_MASKS, min_size=1, max_size=3), TAKEN, st.integers(0, 2**16))
@settings(max_examples=60, deadline=None)
def test_masks_choose_as_in_numpy(items: list[str], assigned: str, seed: int) -> None:
    """And what NumPy refuses is an error."""
    masks = sum(item in ("rows", "columns", "both", "x > 0.5") for item in items)
    if masks != 1 or items.count("...") > 1:
        return
    item, values = ", ".join(items), np.random.default_rng(seed)
    given = {"x": values.normal(size=(4, 6, 5)).astype("float32")}
    given |= {name: values.random(size) > 0.5 for name, size in (("rows", 4), ("columns", 6), ("both", (4, 6)))}
    given["i"] = np.array(2)
    for body in (f"return x[{item}]", f"x[{item}] {assigned.format(item)}\nreturn x"):
        place: dict[str, Any] = {}
        exec(f"def main({', '.join(given)}):\n" + textwrap.indent(body, "    "), place)
        try:
            wanted = place["main"](**{**given, "x": given["x"].copy()})
        except IndexError:
            with pytest.raises(weft.WeftError):
                weft.interpret(read(body, MASKS))(*given.values())
            continue
        function = read(body, MASKS)
        assert structural_equal(weft.parse(function.script()), function)
        np.testing.assert_allclose(weft.interpret(function)(*given.values()), wanted, rtol=1e-6)


def test_masks_of_other_sizes_are_errors() -> None:
    run = weft.compile(read("return x[columns]", {**MASKS, "columns": 'R.Tensor(("m",), "bool")'}))["main"]
    x, rows, both, i = np.zeros((4, 6, 5), "float32"), np.ones(4, bool), np.ones((4, 6), bool), np.array(0)
    assert run(x, rows, rows, both, i).shape == (4, 6, 5)
    for count in (1, 3, 6):
        with pytest.raises(weft.ShapeError, match=r"expected bool\[\(4,\)\]"):
            run(x, rows, np.ones(count, bool), both, i)
    with pytest.raises(weft.WeftError, match="a mask of") as caught:
        read("return x[m]", {"x": 'R.Tensor((4, 5), "float32")', "m": 'R.Tensor((3,), "bool")'})
    assert caught.value.code == "W201"
    tensors = {"x": 'R.Tensor((4, 5), "float32")', "m": 'R.Tensor((4,), "bool")', "v": 'R.Tensor(("k", 5), "float32")'}
    put = weft.compile(read("x[m] = v\nreturn x", tensors))["main"]
    assert put(x[:, 0], rows, np.ones((4, 5), "float32")).all()
    with pytest.raises(weft.ShapeError, match="the sizes k and chosen differ"):
        put(x[:, 0], rows, np.ones((3, 5), "float32"))


STEPS = {
    "x": 'R.Tensor(("n",), "int64")',
    "a": 'R.Tensor((), "int64")',
    "b": 'R.Tensor((), "int64")',
    "c": 'R.Tensor((), "int32")',
}


def test_slices_of_any_step_are_those_of_python() -> None:
    body = "y = x.copy()\ny[a:b:c] += 100\nreturn x[a:b:c], x[::c], x[a::c], x[:b:c], x[a:b:-1], x[:a:-2], y"
    function = read(body, STEPS)
    assert structural_equal(weft.parse(function.script()), function)
    run = weft.compile(function)["main"]
    for size, a, b, c in product((0, 1, 5), (-6, -2, 0, 1, 4, 7), (-7, -1, 0, 2, 6), (1, 2, 7, -1, -2)):
        x = np.arange(size)
        y = x.copy()
        y[a:b:c] += 100
        wanted = x[a:b:c], x[::c], x[a::c], x[:b:c], x[a:b:-1], x[:a:-2], y
        for found, value in zip(run(x, np.int64(a), np.int64(b), np.int32(c)), wanted, strict=True):
            np.testing.assert_array_equal(found, value)
    with pytest.raises(weft.WeftError, match="the step is 0"):
        run(np.arange(4), np.int64(0), np.int64(3), np.int32(0))
    with pytest.raises(weft.WeftError, match="stands beside slices alone"):
        read("return x[::c, 0]", {**STEPS, "x": 'R.Tensor(("n", 4), "int64")'})
