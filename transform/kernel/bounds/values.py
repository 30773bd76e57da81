"""What parameters, bindings and block variables are known to be: what checks of bounds start from."""

from __future__ import annotations

from weft import dtypes
from weft.ir import walk
from weft.ir.kernel.prim import cast
from weft.ir.tensor import Binary, Buffer, IntImm, IterVar, PrimExpr, PrimFunc, PrimVar
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts, reads_memory
from weft.transform.analysis.indices.layouts import enter_layouts, sizes_of

__all__ = ["bind", "enter_iteration", "parameter_facts"]


def parameter_facts(function: PrimFunc, known: IndexAnalyzer) -> Facts:
    """What holds where a function begins: extents are not negative, and arrays that exist bound them."""
    facts = Facts()
    buffers = [param for param in function.params if isinstance(param, Buffer)]
    sizes = sizes_of(buffers)
    for param in function.params:
        if isinstance(param, PrimVar) and param not in sizes and dtypes.is_integer(param.dtype):
            facts = known.unknown(param, facts)
    return enter_layouts(known, buffers, facts)


def bind(known: IndexAnalyzer, var: PrimVar, value: PrimExpr, facts: Facts) -> Facts:
    """What is known of a variable with a value."""
    if dtypes.lanes(var.dtype) > 1:
        return facts
    if dtypes.is_bool(var.dtype):
        if not reads_memory(value):
            known.binds[var] = value
        return facts
    if not dtypes.is_integer(var.dtype):
        return facts
    if reads_memory(value):
        return known.frozen(var, value, facts)
    if dtypes.is_signed(var.dtype):
        known.note_divided(var, value)
    dim = known.dim(value, facts)
    exact = dtypes.is_signed(var.dtype) and _is_plain_arithmetic(value)
    if exact or known.fits(dim, var.dtype, facts):
        known.values[var] = dim
        return facts
    return known.unknown(var, facts)


def enter_iteration(known: IndexAnalyzer, item: IterVar, facts: Facts) -> Facts:
    """What is known inside of a block of one of its variables."""
    if item.value is None:
        return known.range(item.var, known.dim(item.start, facts), known.dim(item.extent, facts), facts)
    value = cast(item.var.dtype, item.value)
    facts = bind(known, item.var, value, facts)
    if item.var not in known.moving:
        known.lets[item.var] = value  # outside the block the value stands for it
    return facts


def _is_plain_arithmetic(value: PrimExpr) -> bool:
    """Whether generated code has the exact 64-bit value of a narrower variable that is bound to this."""
    return all(
        isinstance(part, (PrimVar, IntImm))
        or (isinstance(part, Binary) and part.kind in ("add", "sub", "mul") and dtypes.is_signed(part.dtype))
        for part in walk(value)
    )
