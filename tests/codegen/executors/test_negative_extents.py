"""Numbers of iterations and sizes below zero: no iteration, or an error; nothing is written beside an array."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft

HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass M:\n    @T.prim_func\n"
NUMBERS = (-(2**63) + 9, -(2**62), -(2**31), -300, -64, -5, -1, 0, 1, 3, 17, 40)
EXTENTS = ("n", "n - 3", "2 * n", "n + m", "n - m", "n // 2", "i - n")


def _nest(choose: random.Random) -> str:
    """A kernel over x: (64, 64) that the scheduler takes apart: one or two loops of any number of iterations."""
    inner = choose.choice(EXTENTS)
    outer = "64" if "i" in inner or choose.random() < 0.4 else choose.choice(EXTENTS[:-1])
    kind = choose.choice(("serial", "serial", "parallel", "vectorized", "unroll"))
    value = choose.choice(("T.float32(1)", "x[i, j] + T.float32(1)", "T.exp(x[i, j])", "x[i, j] * x[i, j]"))
    if choose.random() < 0.3:
        block = f"with T.block('b'):\n                    a, b = T.axis.remap('SS', [i, j])\n{' ' * 20}"
        value = value.replace("i, j", "a, b")
        return _text(outer, kind, inner, f"{block}x[a, b] = {value}")
    return _text(outer, kind, inner, f"x[i, j] = {value}")


def _text(outer: str, kind: str, inner: str, body: str) -> str:
    return (
        f'{HEAD}    def main(x: T.Buffer((64, 64), "float32"), n: T.int64, m: T.int64):\n        x[0, 0] = x[0, 0]\n'
        f"        for i in range({outer}):\n            for j in T.{kind}({inner}):\n                {body}\n"
    )


def _guarded(run: Any, *numbers: int) -> Any:
    """What a kernel makes of an array in the middle of zeros, or the code of its error."""
    whole = np.zeros(3 * 4096, "float32")
    x = whole[4096:8192].reshape(64, 64)
    x[...] = np.arange(4096).reshape(64, 64) % 5
    code = None
    try:
        run["main"](x, *numbers)
    except weft.WeftError as error:
        code = error.code
    assert not whole[:4096].any()
    assert not whole[8192:].any()
    return code or x.copy()


@pytest.mark.parametrize("seed", range(10))
def test_loops_of_less_than_no_iterations_run_none(seed: int) -> None:
    choose = random.Random(seed)
    text = _nest(choose)
    module = weft.parse(text)
    compiled, interpreted = weft.compile(module, opt=choose.choice((1, 2, 3))), weft.interpret(module)
    for n in NUMBERS:
        m = choose.choice(NUMBERS)
        wanted, got = (_guarded(run, n, m) for run in (interpreted, compiled))
        if isinstance(wanted, str):
            assert isinstance(got, str), (text, n, m)
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-4, err_msg=f"{text} n={n} m={m}")


@pytest.mark.parametrize(
    "declared",
    [
        "B = T.alloc_buffer((n,), 'float32')",
        "B = T.alloc_buffer((n - 5,), 'float32')",
        "B = T.alloc_buffer((4,), 'float32', strides=(n,))",
        "B = T.decl_buffer((n,), 'float32', data=x.data)",
    ],
)
@pytest.mark.parametrize("n", [-1, -(2**31), -(2**62)])
def test_memory_of_a_negative_size_is_an_error(declared: str, n: int) -> None:
    text = (
        f'{HEAD}    def main(x: T.Buffer((64, 64), "float32"), n: T.int64, i: T.int64):\n        {declared}\n'
        "        if i == 0:\n            B[i] = T.float32(9)\n            x[0, 0] = B[i]\n"
    )
    assert _guarded(weft.compile(weft.parse(text)), n, 0) == "W900"
