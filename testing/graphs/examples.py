"""Calls from the examples of operators' declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft import dtypes
from weft.ir.deduction.infer import infer_type
from weft.ir.deduction.subtyping import substitute_type, type_symbols
from weft.ir.dim import Dim, DimExpr, fresh_name, is_symbolic, substitute, symbol
from weft.ir.graph import (
    Constant,
    Expr,
)
from weft.ir.op import OpDef
from weft.ir.types import TensorType, Type
from weft.testing.graphs.operators import judged, symbols_in
from weft.testing.graphs.state import FunctionState, Rejected
from weft.testing.graphs.types import same_type, too_large
from weft.transform.infra.generators.values import small_array


def bare_symbols(value: Any) -> set[str]:
    """The symbols that some tensor type in a value has as a dimension of its own."""
    if isinstance(value, TensorType):
        return {str(dim) for dim in value.dims or () if is_symbolic(dim)}
    if isinstance(value, (list, tuple)):
        return set().union(*(bare_symbols(item) for item in value)) if value else set()
    return set()


def bounds(ranges: Mapping[str, tuple[Any, Any]]) -> list[Any]:
    """The ends of ranges."""
    return [end for pair in ranges.values() for end in pair]


def by_example(f: FunctionState) -> tuple[Expr, bool]:
    """A call from an example of a declaration, with parameters or constants of the example's types."""
    choices = f.choices
    definition = choices.pick(f.home.operators)
    if not definition.examples:
        raise Rejected
    example = choices.pick(definition.examples)
    if f.runnable and "assume_inbound" in example.kwargs:
        raise Rejected
    # Constants for what has a range; parameters only at the top level, and not too many.
    with_parameters = not example.ranges and not f.nested and len(f.params) < 7 and choices.flip(60)
    names = sorted(symbols_in((*example.args, *example.kwargs.values(), *bounds(example.ranges))))
    values: dict[str, Dim] = {}
    if with_parameters and not set(names) <= bare_symbols((*example.args, *example.kwargs.values())):
        raise Rejected
    for name in names:
        values[name] = example_symbol(f) if with_parameters else choices.pick((2, 3, 1))
    args = [
        from_example(f, value, values, range_of(example, definition, index), with_parameters)
        for index, value in enumerate(example.args)
    ]
    kwargs = {
        name: from_example(f, value, values, example.ranges.get(name), with_parameters)
        for name, value in example.kwargs.items()
    }
    call = definition.bind(args, kwargs)
    context = f.context()
    ty = infer_type(call, context)
    if f.runnable and (context.checks or too_large(ty)):
        raise Rejected
    return judged(f, definition, call, ty)


def example_symbol(f: FunctionState) -> Dim:
    """A symbol for one of an example."""
    if f.symbols and f.choices.flip():
        bound = [name for name in f.symbols if any(name in type_symbols(var.ty) for var in f.params)]
        if bound:
            return symbol(f.choices.pick(bound))
    name = fresh_name(f.choices.pick(("n", "b", "m")), f.used_symbols)
    return symbol(name)


def range_of(example: Any, definition: OpDef, index: int) -> Any:
    """The range that an example states for an argument."""
    params = definition.params
    name = params[index].name if index < len(params) else params[-1].name
    return example.ranges.get(name)


def from_example(f: FunctionState, value: Any, symbols: Mapping[str, Dim], limits: Any, with_parameters: bool) -> Any:
    """An argument of an example over other symbols."""
    if isinstance(value, Type):
        ty = substitute_type(value, symbols)
        if with_parameters:
            fitting = [var for var in f.visible if same_type(var.ty, ty)]
            if fitting and f.choices.flip(40):
                return f.choices.pick(fitting)
            return f.parameter(ty)
        return constant_of(f, ty, limits, symbols)
    if isinstance(value, (list, tuple)):
        return type(value)(from_example(f, item, symbols, limits, with_parameters) for item in value)
    if isinstance(value, DimExpr):
        return substitute(value, symbols)
    return value


def constant_of(f: FunctionState, ty: Type, limits: Any, symbols: Mapping[str, Dim]) -> Expr:
    """A constant of a type, inside of a range."""
    if not isinstance(ty, TensorType) or ty.dims is None or any(is_symbolic(dim) for dim in ty.dims):
        raise Rejected
    dtype = ty.dtype or "float32"
    if not dtypes.is_numpy(dtype):
        raise Rejected
    low, high = limits if limits is not None else (None, None)
    low, high = (substitute(end, symbols) if isinstance(end, DimExpr) else end for end in (low, high))
    shape = tuple(dim for dim in ty.dims if isinstance(dim, int))
    if isinstance(high, int) and isinstance(low, int) and high < low:
        raise Rejected
    return Constant(small_array(f.choices, dtype, shape, low, high), dtype)
