"""Quotients, remainders and extremes in indices: what is known of their operands is used, and their values stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft

INDICES = (
    "T.floordiv(i, {0})",
    "T.floormod(i, {0})",
    "T.min(i, {0})",
    "T.max(i, {0})",
    "T.truncdiv(i, {0})",
    "T.truncmod(i, {0})",
)
"""What is looked up, of a variable and a number."""
STARTS = {"from -9 to 8": "-9, 9", "from 0 to 8": "0, 9", "from 9 to 13": "9, 14"}


@pytest.mark.parametrize("loop", ["range({})", "T.unroll({})"])
@pytest.mark.parametrize("start", STARTS)
def test_indices_are_what_the_interpreter_computes(start: str, loop: str) -> None:
    """Negative numbers, zero, divisors that are greater than everything."""
    found = [index.format(f"T.int64({number})") for index in INDICES for number in (-3, -1, 0, 1, 4, 7, 9, 40)]
    lines = "".join(f"\n        y[{row}, {index} + 50] += (i + 50) * (i + 50)" for row, index in enumerate(found))
    function = weft.parse(f"""
@T.prim_func
def main(y: T.Buffer((48, 100), "int64")):
    for i in {loop.format(STARTS[start])}:{lines}
""")
    got, want = np.zeros((2, 48, 100), "int64")
    weft.compile(function)["main"](got)
    weft.interpret(function)(want)
    assert want.any()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("quotients", ["i // 7 * 8 + i % 7", "(j * 14 + i) // 7 % 3"])
def test_a_quotient_in_an_unrolled_loop_takes_one_instruction_or_none(quotients: str) -> None:
    """Numbers fold, and of what is not negative the quotient is the truncated one: nothing is corrected."""
    function = weft.parse(f"""
@T.prim_func
def main(y: T.Buffer((64,), "float32")):
    for j in range(T.int64(5)):
        for i in T.unroll(T.int64(14)):
            y[{quotients}] = T.float32(1)
""")
    text = weft.compile(function, opt=0).source("llvm").split("@weft.kernel.main")[1]
    divisions = text.count(" sdiv ") + text.count(" srem ")
    assert divisions == (28 if "14" in quotients else 0)
    assert " select " not in text.split("}")[0]
