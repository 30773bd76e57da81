"""Loops as Python has them: each program of `corpus/loops.txt` gives in weft what it gives as plain Python on NumPy
arrays, and so does an assignment to any elements.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
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
    argsort=lambda x: np.argsort(x, kind="stable"),
    concat=np.concatenate,
    exp=np.exp,
    minimum=np.minimum,
    ones=np.ones,
    permute_dims=np.transpose,
    reshape=np.reshape,
    sort=np.sort,
    stack=np.stack,
    sum=np.sum,
    zeros=np.zeros,
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


COMPILED = ["histogram", "insertion sort", "sieve", "slice augmented", "mask augmented", "knapsack", "sum of rows"]


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_programs_are_compiled(executor: str) -> None:
    module = weft.IRModule({f"f{at}": read(PROGRAMS[name], PARAMETERS) for at, name in enumerate(COMPILED)})
    run = weft.compile(module, executor=executor)
    for sizes in SIZES:
        for at, name in enumerate(COMPILED):
            assert_same(run[f"f{at}"](*arrays(*sizes)), in_python(PROGRAMS[name])(*arrays(*sizes)))


ITEMS = st.sampled_from(
    ["0", "-1", "i", "j", ":", "1:", ":-1", "::2", "1:3", "-2:", "::-1", "-3:-1", "...", "1::2", "index", "0:0"]
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
    if items.count("...") > 1 or ("index" in items and len({*items} - {":", "index"}) + items.count("index") > 1):
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
