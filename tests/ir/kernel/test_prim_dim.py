"""Symbols of tensor-level functions as dimensions."""

from __future__ import annotations

from weft.ir.kernel.prim_dim import prim_to_dim, symbol_names
from weft.ir.tensor import Buffer, Evaluate, IntImm, PrimFunc, PrimVar


def test_a_variable_gives_a_symbol_a_name_that_is_one() -> None:
    """Names of two variables that Python reads as one, and names that are none, stay apart."""
    n, other, odd = PrimVar("ﬁ", "int64"), PrimVar("fi", "int64"), PrimVar("None", "int64")
    kernel = PrimFunc((Buffer("x", (n, other, odd)),), Evaluate(IntImm(0)), name="k")
    assert list(symbol_names(kernel).values()) == ["fi", "fi_1", "s"]
    assert prim_to_dim(odd) is None
