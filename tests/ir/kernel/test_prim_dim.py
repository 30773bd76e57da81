"""Symbols of tensor-level functions as dimensions."""

from __future__ import annotations

import itertools

from weft.ir.dim import symbol
from weft.ir.kernel.prim_dim import dim_to_prim, prim_to_dim, symbol_names
from weft.ir.tensor import Binary, Buffer, Evaluate, Extent, IntImm, PrimFunc, PrimVar


def test_a_variable_gives_a_symbol_a_name_that_is_one() -> None:
    """Names of two variables that Python reads as one, and names that are none, stay apart."""
    n, other, odd = PrimVar("ﬁ", "int64"), PrimVar("fi", "int64"), PrimVar("None", "int64")
    kernel = PrimFunc((Buffer("x", (n, other, odd)),), Evaluate(IntImm(0)), name="k")
    assert list(symbol_names(kernel).values()) == ["fi", "fi_1", "s"]
    assert prim_to_dim(odd) is None


def test_a_quotient_of_a_difference_adds_less_than_its_divisor_where_a_spelling_does() -> None:
    """A kernel computes in 64 bits: of n - m and m - n + 63 the second may leave them alone."""
    n, m = symbol("n"), symbol("m")
    variables = {name: PrimVar(name, "int64") for name in ("n", "m", "k")}
    for factor, divisor, added in itertools.product((1, 3 * symbol("k")), (16, 64), (0, 3, -5)):
        dim = factor * ((n - m + added) // divisor)
        made = dim_to_prim(dim, variables)
        assert prim_to_dim(made, {variable: name for name, variable in variables.items()}) == dim
        assert all(abs(value) <= 8 or value == divisor for value in _numbers(made))


def _numbers(extent: Extent | IntImm) -> list[int]:
    if isinstance(extent, Binary):
        return _numbers(extent.a) + _numbers(extent.b)
    return [extent.value] if isinstance(extent, IntImm) else []
