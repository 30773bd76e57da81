"""Indices mean exact numbers: what overflows its dtype is an error, and values wrap."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.errors import BoundsError
from weft.ir import PrimFunc

HEAD = '@T.prim_func\ndef main(x: T.Buffer((8,), "int32"), k: T.int32, y: T.Buffer((8,), "int32")):\n'


def kernel(body: str) -> PrimFunc:
    found = weft.parse(HEAD + body)
    assert isinstance(found, PrimFunc)
    return found


def result(run: object, k: int) -> list[int]:
    x, y = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    run["main"](x, k, y)  # type: ignore[index]
    return y.tolist()


SHIFTED = kernel("    for i in range(8):\n        y[i] = x[T.max(T.min(i + k, 7), 0)]\n")
CANCELLED = kernel("    for i in range(8):\n        y[i] = x[i + k + k - k - k]\n")
HALVED = kernel("    for i in range(8):\n        y[i] = x[(k * 2 + i) // 2 - k]\n")
BOUND = kernel("""\
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i + k - k)
            y[v] = x[v]
""")
NAMED = kernel("""\
    for i in range(8):
        at: T.let[T.int32] = i + k
        y[i] = x[T.max(T.min(at, 7), 0)]
""")
ALL = {"shifted": SHIFTED, "cancelled": CANCELLED, "halved": HALVED, "bound": BOUND, "named": NAMED}


@pytest.mark.parametrize("name", ALL)
def test_an_index_that_overflows_is_an_error_with_its_value(name: str) -> None:
    """D10: at the borders of int32 the interpreter tells, and compiled code takes the exact element."""
    function = ALL[name]
    reference, compiled = weft.interpret(function), weft.compile(function)
    for k in (0, 3, 2**30 - 8, -(2**30) + 8):
        assert result(compiled, k) == result(reference, k)
    for k in (2**31 - 1,):
        with pytest.raises(BoundsError, match=r"which int32 does not hold") as caught:
            result(reference, k)
        assert caught.value.code == "W905"
        assert caught.value.hint == "compute it in int64"
    expected = {"shifted": [7] * 8, "named": [7] * 8, "halved": [0, 0, 1, 1, 2, 2, 3, 3]}
    assert result(compiled, 2**31 - 1) == expected.get(name, list(range(8)))


def test_the_error_stands_under_the_part_that_overflows() -> None:
    with pytest.raises(BoundsError) as caught:
        result(weft.interpret(HALVED), 2**30)
    assert caught.value.message == "the index k * 2 is 2147483648, which int32 does not hold"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (4, 19)
    assert caught.value.notes == ("with k=1073741824, i=0",)


def test_an_element_beyond_the_buffer_is_refused_whatever_the_dtype_makes_of_its_index() -> None:
    """k * 65536 is 0 in int32 and 2 ** 32 as a number."""
    function = kernel("    for i in range(8):\n        y[i] = x[k * 65536 + i]\n")
    for run in (weft.interpret(function), weft.compile(function)):
        assert result(run, 0) == list(range(8))
        with pytest.raises(BoundsError):
            result(run, 65536)


def test_values_wrap_and_only_indices_made_of_them_are_doubtful() -> None:
    function = kernel("""\
    for i in range(8):
        hashed: T.let[T.int32] = k * 31 + i
        y[i] = hashed
""")
    for k in (0, 2**31 - 1, -(2**31)):
        wrapped = (np.int64(k) * 31 + np.arange(8)).astype("int32").tolist()
        assert result(weft.interpret(function), k) == wrapped
        assert result(weft.compile(function), k) == wrapped


def test_sizes_of_loops_are_exact_too() -> None:
    function = kernel("""\
    for i in range(8):
        y[i] = 0
    for j in range(k * 2 - k - k + 3):
        y[0] = y[0] + 1
""")
    assert result(weft.compile(function), 2**31 - 1)[0] == 3
    assert result(weft.interpret(function), 2**29)[0] == 3
    with pytest.raises(BoundsError) as caught:
        result(weft.interpret(function), 2**31 - 1)
    assert caught.value.code == "W905"
