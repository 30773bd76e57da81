"""Which integers an error of compiled code shows."""

from __future__ import annotations

from weft.codegen.backends.llvm.kernel.failure_values import integers_seen
from weft.ir.tensor import Binary, Buffer, BufferLoad, IntImm, PrimExpr, PrimVar


def test_values_that_many_loads_lead_to_are_not_computed_again() -> None:
    """Sixteen of them made the code of a[a[...]] so much longer, at every level."""
    table, i = Buffer("a", (8,), "int64"), PrimVar("i", "int64")
    levels: list[PrimExpr] = [i]
    for _ in range(40):
        levels.append(BufferLoad(table, (levels[-1],)))
    seen = integers_seen(Binary("lt", levels[-1], IntImm(8, "int64")), 16)
    assert seen == [*reversed(levels[1:9]), i]
