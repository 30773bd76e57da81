"""How an access moves through memory when a variable grows by one, and which of a value's conditions it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce

from weft.ir import Node, replace, walk
from weft.ir.dim import substitute as substitute_dim
from weft.ir.dim import symbol
from weft.ir.kernel.prim import binary
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import children
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Let, PrimCall, PrimExpr, PrimVar
from weft.transform.analysis.loops.points import conjuncts

__all__ = ["cases_along", "difference_along", "kinds_in", "loads_in", "same_place", "step_along", "uses", "values_read"]

_VECTOR_KINDS = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (("float", (16, 32, 64)), ("int", (8, 16, 32, 64)), ("uint", (8, 16, 32, 64)))
    for bits in sizes
) | {"bool", "bfloat16"}


def uses(expr: PrimExpr, var: PrimVar) -> bool:
    """Whether a variable occurs in an expression."""
    return any(part is var for part in walk(expr))


def step_along(access: BufferLoad | BufferStore, var: PrimVar) -> int | None:
    """Elements between two neighbours along a variable: 0 when it does not matter, None when they are not even.

    >>> from weft.ir.tensor import Buffer
    >>> x, i, j = Buffer("x", (4, 8)), PrimVar("i", "int64"), PrimVar("j", "int64")
    >>> [step_along(BufferLoad(x, (i, 2 * j)), var) for var in (i, j)]
    [8, 2]
    """
    total = 0
    for axis, index in enumerate(access.indices):
        if not uses(index, var):
            continue
        difference = difference_along(index, var)
        stride = _stride(access.buffer, axis)
        if difference is None or (stride is None and difference != 0):
            return None
        total += difference * (stride or 0)
    return total


def _stride(buffer: Buffer, axis: int) -> int | None:
    if buffer.strides is not None:
        stride = buffer.strides[axis]
        return stride if isinstance(stride, int) else None
    step = 1
    for extent in buffer.shape[axis + 1 :]:
        if not isinstance(extent, int):
            return None
        step *= extent
    return step


def difference_along(index: PrimExpr, var: PrimVar) -> int | None:
    """What an index grows by when a variable grows by one; None when that is no number."""
    variables = dict.fromkeys(x for x in walk(index) if isinstance(x, PrimVar))
    if var not in variables:
        return 0
    names = {x: f"x{number}" for number, x in enumerate(variables)}
    here = prim_to_dim(index, names)
    if here is None or isinstance(here, int):
        return None if here is None else 0
    difference = substitute_dim(here, {names[var]: symbol(names[var]) + 1}) - here
    return difference if isinstance(difference, int) else None


def loads_in(value: PrimExpr) -> Iterator[BufferLoad]:
    """The loads of a value, those in indices of others included."""
    return (part for part in walk(value) if isinstance(part, BufferLoad))


def values_read(value: PrimExpr) -> Iterator[BufferLoad]:
    """The loads of a value, those in indices of others left out."""
    stack: list[Node] = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, BufferLoad):
            yield part
        else:
            stack.extend(children(part))


def same_place(a: BufferLoad | BufferStore, b: BufferLoad | BufferStore) -> bool:
    """Whether two accesses are of one element whatever the values of variables."""
    if a.buffer is not b.buffer or len(a.indices) != len(b.indices):
        return False
    return all(x is y or structural_equal(x, y) for x, y in zip(a.indices, b.indices, strict=True))


def kinds_in(*values: PrimExpr) -> list[str] | None:
    """The dtypes of loads and results of values, indices left out; None when a part has no vectors or no copies.

    A `Let` binds its variable once: an expression that has one cannot stand in several loops.
    """
    if any(isinstance(part, Let) for value in values for part in walk(value)):
        return None
    found = {value.dtype for value in values}
    stack: list[Node] = list(values)
    while stack:
        part = stack.pop()
        if isinstance(part, PrimExpr) and part.dtype not in _VECTOR_KINDS:
            return None
        if isinstance(part, BufferLoad):
            found.add(part.dtype)
        else:
            stack.extend(children(part))
    return sorted(found)


def cases_along(value: PrimExpr, var: PrimVar) -> tuple[PrimExpr | None, PrimExpr, PrimExpr | None]:
    """What of the condition of a value is the same along a variable, and the values where that holds and where not.

    T.if_then_else(0 <= i and 0 <= j, x[i, j], y)     along j: 0 <= i, T.if_then_else(0 <= j, x[i, j], y), y

    (None, the value, None) where there is no such part.
    """
    if not isinstance(value, PrimCall) or value.op != "if_then_else":
        return None, value, None
    condition, chosen, other = value.args
    assert isinstance(condition, PrimExpr)
    assert isinstance(chosen, PrimExpr)
    assert isinstance(other, PrimExpr)
    parts = conjuncts(condition)
    same, along = ([part for part in parts if uses(part, var) is wanted] for wanted in (False, True))
    if not same:
        return None, value, None
    within = replace(value, args=(_all_of(along), chosen, other)) if along else chosen
    return _all_of(same), within, other


def _all_of(parts: Sequence[PrimExpr]) -> PrimExpr:
    return reduce(partial(binary, "and"), parts)
