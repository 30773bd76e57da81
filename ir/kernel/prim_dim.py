"""Between graph-level dimensions (over named symbols) and tensor-level extents (over PrimVar objects).

dim_to_prim      Dim -> Extent       names become the PrimVars of an environment
prim_to_dim      Extent -> Dim       None for what a dimension cannot say (loads, truncating division, ...)
buffer_symbols   the symbols that a call of a PrimFunc binds, in order of first occurrence
symbol_names     one name for each of a function's symbols and scalar parameters
kernel_signature the parameter types of a PrimFunc with its symbols as names
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce

from weft.dtypes import is_bool, is_integer
from weft.errors import ShapeError
from weft.ir.dim import (
    Dim,
    as_dim,
    floordiv,
    floormod,
    fresh_name,
    maximum,
    minimum,
    operation,
    symbol,
    symbol_name,
)
from weft.ir.kernel.prim import binary
from weft.ir.tensor import Binary, Buffer, Cast, Extent, IntImm, PrimExpr, PrimFunc, PrimVar, Unary
from weft.ir.types import AnyType, PrimType, TensorType, Type

__all__ = ["buffer_symbols", "dim_to_prim", "kernel_signature", "prim_to_dim", "symbol_names"]

_TO_PRIM = {"add": "add", "mul": "mul", "floordiv": "floordiv", "mod": "floormod", "min": "min", "max": "max"}


def dim_to_prim(dim: Dim, env: Mapping[str, PrimVar]) -> Extent:
    """The extent that means the dimension; ShapeError W286 for a symbol that the environment lacks.

    >>> from weft.ir.dim import symbol
    >>> dim_to_prim(symbol("n") + 1, {"n": PrimVar("n", "int64")}).kind
    'add'
    """
    kind, operands = operation(dim)
    if kind == "constant":
        return operands[0]
    if kind == "symbol":
        if operands[0] not in env:
            raise ShapeError(
                f"the symbol {operands[0]} has no value", code="W286", notes=[f"values are given for {sorted(env)}"]
            )
        return env[operands[0]]
    if kind == "pow":
        base = dim_to_prim(operands[0], env)
        return reduce(lambda a, b: binary("mul", a, b), [base] * operands[1])
    if kind == "add":
        return reduce(_sum, [dim_to_prim(operand, env) for operand in operands])
    if kind == "mul":
        return _product(operands, env)
    return reduce(lambda a, b: binary(_TO_PRIM[kind], a, b), [dim_to_prim(operand, env) for operand in operands])


def _product(factors: tuple[Dim, ...], env: Mapping[str, PrimVar]) -> Extent:
    """The product, with -((m - n + 63) // 64) as (n - m) // 64, which adds less.

    Dimensions are exact, kernels compute in 64 bits: m - n + 63 may leave them where n - m, which is checked, stays.
    """
    sign, *others = factors
    for position, factor in enumerate(others):
        kind, operands = operation(factor)
        if not isinstance(sign, int) or sign > 0 or kind != "floordiv" or not isinstance(operands[1], int):
            continue
        numerator, divisor = operands
        opposite = divisor - 1 - numerator
        if _constant(opposite) < _constant(numerator):
            turned = binary("floordiv", dim_to_prim(opposite, env), divisor)
            rest = [] if sign == -1 else [-sign]
            made = [dim_to_prim(other, env) for other in rest + others[:position] + others[position + 1 :]]
            return reduce(lambda a, b: binary("mul", a, b), [*made, turned])
    return reduce(lambda a, b: binary("mul", a, b), [dim_to_prim(factor, env) for factor in factors])


def _constant(dim: Dim) -> int:
    """How far the constant of a sum is from 0."""
    kind, operands = operation(dim)
    parts = operands if kind == "add" else (dim,)
    return abs(sum(part for part in parts if isinstance(part, int)))


def _sum(left: Extent, right: Extent) -> Extent:
    """left + right; a subtraction where the right side is a negative constant or multiple."""
    if isinstance(right, int) and right < 0:
        return binary("sub", left, -right)
    if isinstance(right, Binary) and right.kind == "mul" and isinstance(right.a, IntImm) and right.a.value < 0:
        factor = -right.a.value
        return binary("sub", left, right.b if factor == 1 else binary("mul", factor, right.b))
    return binary("add", left, right)


_FROM_PRIM: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": floordiv,
    "floormod": floormod,
    "min": minimum,
    "max": maximum,
}


def prim_to_dim(extent: Extent, names: Mapping[PrimVar, str] | None = None) -> Dim | None:
    """The dimension that means the extent, or None; without `names` every variable goes by its own name.

    >>> n = PrimVar("n", "int64")
    >>> prim_to_dim(n * 2 + n)
    3 * n
    """
    if isinstance(extent, int):
        return extent
    if isinstance(extent, IntImm):
        return extent.value
    if isinstance(extent, PrimVar):
        if is_bool(extent.dtype) or not is_integer(extent.dtype):
            return None
        name = symbol_name(extent.name, "") if names is None else names.get(extent)
        return symbol(name) if name else None
    if isinstance(extent, Cast) and is_integer(extent.dtype) and is_integer(extent.value.dtype):
        return prim_to_dim(extent.value, names)
    if isinstance(extent, Unary) and extent.kind == "neg":
        value = prim_to_dim(extent.a, names)
        return None if value is None else -value
    if isinstance(extent, Binary) and extent.kind in _FROM_PRIM:
        left, right = prim_to_dim(extent.a, names), prim_to_dim(extent.b, names)
        if left is None or right is None:
            return None
        try:
            return as_dim(_FROM_PRIM[extent.kind](left, right))
        except ShapeError:  # a constant zero divisor: not a dimension
            return None
    return None


def _extents(function: PrimFunc) -> Iterator[Extent]:
    for param in function.params:
        if isinstance(param, Buffer):
            yield from param.shape
            yield from param.strides or ()
            if param.elem_offset is not None:
                yield param.elem_offset


def buffer_symbols(function: PrimFunc) -> tuple[PrimVar, ...]:
    """The symbols that buffer arguments bind: PrimVars bare in shapes, strides or offsets that are no parameters."""
    scalars = {param for param in function.params if isinstance(param, PrimVar)}
    found = dict.fromkeys(
        extent for extent in _extents(function) if isinstance(extent, PrimVar) and extent not in scalars
    )
    return tuple(found)


def _variables(extent: Extent) -> Iterator[PrimVar]:
    stack: list[PrimExpr | int] = [extent]
    while stack:
        current = stack.pop()
        if isinstance(current, PrimVar):
            yield current
        elif isinstance(current, Binary):
            stack.extend((current.b, current.a))
        elif isinstance(current, Unary):
            stack.append(current.a)
        elif isinstance(current, Cast):
            stack.append(current.value)


def symbol_names(function: PrimFunc) -> dict[PrimVar, str]:
    """A distinct name for every symbol and scalar parameter: its own, or its own with a number where two share one."""
    names: dict[PrimVar, str] = {}
    scalars = [param for param in function.params if isinstance(param, PrimVar)]
    compound = [variable for extent in _extents(function) for variable in _variables(extent)]
    for variable in (*buffer_symbols(function), *scalars, *compound):
        if variable not in names:
            names[variable] = fresh_name(symbol_name(variable.name), set(names.values()))
    return names


def kernel_signature(function: PrimFunc) -> tuple[Type, ...]:
    """A TensorType for each buffer parameter, with dimensions over symbol names, and a PrimType for each scalar.

    An extent that is no dimension gets a fresh name of its own, so that it matches anything; so does a bare handle,
    whose type is AnyType: a tensor of any shape and dtype may be behind it.

    >>> from weft.ir.tensor import SeqStmt
    >>> x = Buffer("x", (PrimVar("n", "int64"), 4))
    >>> kernel_signature(PrimFunc((x,), SeqStmt()))[0].shape
    (n, 4)
    """
    names = symbol_names(function)
    used = set(names.values())

    def dim(extent: Extent) -> Dim:
        value = prim_to_dim(extent, names)
        if value is None:
            name = fresh_name("unknown", used)
            used.add(name)
            return symbol(name)
        return value

    return tuple(
        TensorType(tuple(dim(extent) for extent in param.shape), param.dtype)
        if isinstance(param, Buffer)
        else AnyType()
        if param.dtype == "handle"
        else PrimType(param.dtype)
        for param in function.params
    )
