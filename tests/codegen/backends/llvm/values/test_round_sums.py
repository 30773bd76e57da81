"""RoundSums: what is kept of indices is never that of another round, value or block."""

from __future__ import annotations

import numpy as np
import pytest

import weft


@pytest.mark.parametrize("opt", [0, 2])
def test_variables_bound_again_in_a_round_have_their_new_value(opt: int) -> None:
    """A binding inside an unrolled loop differs by round and by what memory held."""
    function = weft.parse("""
@T.prim_func
def main(at: T.Buffer((6,), "int64"), y: T.Buffer((128,), "int64")):
    for k in T.unroll(T.int64(3)):
        row: T.let = at[k] * 2
        for i in T.unroll(T.int64(2)):
            for j in T.unroll(T.int64(2)):
                y[(row + k * 7 + i) * 3 + j] = (row + i) * 100 + j
        at[k + 1] = at[k + 1] + row
""")
    at, y = np.array([1, 2, 3, 0, 0, 0]), np.zeros(128, "int64")
    want_at, want = at.copy(), y.copy()
    for k in range(3):
        row = want_at[k] * 2
        for i in range(2):
            for j in range(2):
                want[(row + k * 7 + i) * 3 + j] = (row + i) * 100 + j
        want_at[k + 1] += row
    weft.compile(function, opt=opt)["main"](at, y)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(at, want_at)


@pytest.mark.parametrize("opt", [0, 2])
def test_what_one_branch_computes_is_not_used_after_it(opt: int) -> None:
    """Sums that were first needed under a condition are computed again after it."""
    function = weft.parse("""
@T.prim_func
def main(n: T.int64, y: T.Buffer((64,), "int64"), z: T.Buffer((256,), "int64")):
    for i in T.unroll(T.int64(2)):
        for j in T.unroll(T.int64(2)):
            if y[j] > 0:
                z[(n * 4 + i) * 2 + j] = 1
            z[(n * 4 + i) * 2 + j + 100] = 2
""")
    for chosen in ((0, 1), (1, 0)):
        y, z, want = np.zeros(64, "int64"), np.zeros(256, "int64"), np.zeros(256, "int64")
        y[:2] = chosen
        for i in range(2):
            for j in range(2):
                want[(12 + i) * 2 + j + 100] = 2
                if chosen[j]:
                    want[(12 + i) * 2 + j] = 1
        weft.compile(function, opt=opt)["main"](3, y, z)
        np.testing.assert_array_equal(z, want)
