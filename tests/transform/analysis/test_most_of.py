"""The most that an extent can be, against what it is."""

from __future__ import annotations

import pytest
from tests.transform.analysis.index_values import index_value

from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import Extent, PrimVar
from weft.transform.analysis.access_pattern import most_of

N, M = PrimVar("n", "int64"), PrimVar("m", "int64")
BLOCK = binary("min", N, const(24, "int64"))
WHOLE = binary("mul", binary("floordiv", N, const(16, "int64")), const(16, "int64"))

BOUNDED: list[tuple[Extent, int]] = [
    (BLOCK, 24),
    (binary("sub", N, WHOLE), 15),
    (N % 7, 6),
    (binary("sub", BLOCK, binary("mul", binary("floordiv", BLOCK, const(16, "int64")), const(16, "int64"))), 15),
]
UNBOUNDED: list[Extent] = [
    N,
    binary("sub", M, WHOLE),  # of another number
    binary("sub", N, binary("mul", binary("floordiv", N, const(16, "int64")), const(8, "int64"))),
    N % M,
]


@pytest.mark.parametrize(("extent", "most"), BOUNDED)
def test_the_most_is_reached_and_not_exceeded(extent: Extent, most: int) -> None:
    assert most_of(extent) == most
    assert max(index_value(extent, {N: n}) for n in range(200)) == most


@pytest.mark.parametrize("extent", UNBOUNDED)
def test_nothing_is_said_of_what_has_no_bound(extent: Extent) -> None:
    assert most_of(extent) is None
