"""One mistake, one code: the interpreter, machine code, bytecode, static graphs, ahead of time, and C say the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import weft

HEAD = """
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
"""


def f32(*shape: int) -> np.ndarray:
    """Zeros."""
    return np.zeros(shape, "float32")


@dataclass(frozen=True)
class Mistake:
    """A module in which a call goes wrong, the arguments, and the code that all say; `sizes` are symbolic."""

    text: str
    arguments: tuple[Any, ...]
    code: str
    symbolic: bool = False
    kernel: bool = False


def graph(params: str, body: str, result: str) -> str:
    """A graph function."""
    return f"""
    @R.function
    def main({params}):
        with R.dataflow():
            d = {body}
            R.output(d)
        return d
""".replace("):\n        with", f") -> {result}:\n        with" if result else "):\n        with")


def kernel(body: str, extra: str = "") -> str:
    """A kernel x, s -> y and a graph function that calls it."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"""
    @T.prim_func
    def k(x: T.Buffer((8,), "float32"), s: T.Buffer((1,), "int64"), y: T.Buffer((8,), "float32")):
{lines}

    @R.function
    def main(x: R.Tensor((8,), "float32"), s: R.Tensor((1,), "int64")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            y = R.call_tir(M.k, (x, s), R.Tensor((8,), "float32")TARGET)
            R.output(y)
        return y
"""


def at(value: int) -> tuple[np.ndarray, np.ndarray]:
    """The arguments of a kernel's graph function."""
    return f32(8), np.array([value], "int64")


ONE = 'x: R.Tensor((4,), "float32")'
ANY = 'x: R.Tensor(("n",), "float32")'
TWO = 'x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")'
MISTAKES = {
    "too few arguments": Mistake(graph(ONE, "R.exp(x)", ""), (), "W850"),
    "another dtype": Mistake(graph(ONE, "R.exp(x)", ""), (np.zeros(4, "int32"),), "W851"),
    "another shape": Mistake(graph(ONE, "R.exp(x)", ""), (f32(5),), "W852"),
    "another rank": Mistake(graph(ONE, "R.exp(x)", ""), (f32(4, 1),), "W852"),
    "no array": Mistake(graph(ONE, "R.exp(x)", ""), ("x",), "W851"),
    "sizes of arguments that differ": Mistake(
        graph('x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")', "R.add(x, y)", ""),
        (f32(3), f32(4)),
        "W852",
        symbolic=True,
    ),
    "sizes that do not broadcast": Mistake(
        graph('x: R.Tensor(("n",), "float32"), y: R.Tensor((3,), "float32")', "R.add(x[:3], y)", ""),
        (f32(2), f32(3)),
        "W222",
        symbolic=True,
    ),
    "a result of another size": Mistake(
        graph(TWO, "R.exp(x)", 'R.Tensor(("m",), "float32")'), (f32(3), f32(4)), "W222", symbolic=True
    ),
    "a result that is never so small": Mistake(
        graph(ANY, "x[1:] - x[:-1]", 'R.Tensor(("n - 1",), "float32")'), (f32(0),), "W222", symbolic=True
    ),
    "one element of none": Mistake(graph(ANY, "R.squeeze(x[:1], axis=0)", ""), (f32(0),), "W222", symbolic=True),
    "an index": Mistake(
        graph('x: R.Tensor((4,), "float32"), i: R.Tensor((2,), "int64")', "R.take(x, i, axis=0)", ""),
        (f32(4), np.array([0, 4])),
        "W900",
    ),
    "an index of a kernel": Mistake(kernel("for i in range(8):\n    y[i] = x[s[0]]"), at(8), "W900", kernel=True),
    "a store of a kernel": Mistake(
        kernel("for i in range(8):\n    y[i] = x[i]\ny[s[0]] = T.float32(1)"), at(-1), "W900", kernel=True
    ),
    "a sum that was not begun": Mistake(
        kernel(
            'c = T.alloc_buffer((8,), "float32")\nif s[0] > 0:\n    for i in range(8):\n        c[i] = x[i]\n'
            "for i in range(8):\n    y[i] = c[i]"
        ),
        at(0),
        "W901",
        kernel=True,
    ),
    "an assertion about sizes": Mistake(
        kernel('assert s[0] > 0, ("ShapeError", "too small")\nfor i in range(8):\n    y[i] = x[i]'),
        at(0),
        "W222",
        kernel=True,
    ),
}


@cache
def module_of(name: str, target: str = "") -> weft.IRModule:
    """The module of a mistake."""
    found = weft.parse(HEAD + MISTAKES[name].text.replace("TARGET", target))
    assert isinstance(found, weft.IRModule)
    return found


def compiled(executor: str) -> Callable[[str], Callable[..., Any]]:
    """What runs a mistake on an executor."""
    return lambda name: weft.compile(module_of(name), executor=executor)["main"]


def in_c(name: str) -> Callable[..., Any]:
    """The kernel in C, driven by machine code."""
    return weft.compile(module_of(name, ', target="slow"'), target="host: llvm; slow: c")["main"]


RUNS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "interpreter": lambda name: weft.interpret(module_of(name))["main"],
    **{executor: compiled(executor) for executor in ("native", "vm", "graph", "aot")},
    "c": in_c,
}


def runs_of(mistake: Mistake) -> list[str]:
    """Static programs take sizes that are known; C takes kernels."""
    without = {"graph", "aot"} if mistake.symbolic else set()
    without |= set() if mistake.kernel and shutil.which("cc") is not None else {"c"}
    return [name for name in RUNS if name not in without]


@pytest.mark.parametrize("name", MISTAKES)
def test_all_executors_say_the_same_code_for_one_mistake(name: str) -> None:
    mistake, codes = MISTAKES[name], {}
    for executor in runs_of(mistake):
        run = RUNS[executor](name)
        with pytest.raises(weft.WeftError) as error:
            run(*mistake.arguments)
        codes[executor] = error.value.code
    assert codes == dict.fromkeys(codes, mistake.code)
