"""Functions that a rule is tested on: its pattern with ranks, sizes, dtypes and attributes chosen.

    instance_of_sides(sides, choices)     a function `main` of the form of the pattern, None without a type

What a rule wants constant is a constant of the function. Attributes that are any come from the examples of operators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft import dtypes
from weft.errors import WeftError
from weft.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    PrimType,
    PrimValue,
    ShapeExpr,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    Var,
)
from weft.ir.attrs import ABSENT
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.subtyping import dims_of, type_symbols
from weft.ir.dim import evaluate
from weft.ir.node import EMPTY, FrozenMap
from weft.ir.op import OPS
from weft.ir.op.declare import FIXED
from weft.ir.structure.visit import walk
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import small_array
from weft.transform.infra.rewriting import bindings_of
from weft.transform.pattern.instantiate import instantiated
from weft.transform.pattern.rule import Sides, any_attributes_of

__all__ = ["function_of", "instance_of_sides", "numbers_of"]

_SIZES = (2, 3, 1, 4, 5, 0, 7)
_DTYPES = ("float32", "int32", "float64", "int8", "bool", "uint8", "float16", "int64")


def instance_of_sides(sides: Sides, choices: Choices) -> Function | None:
    """The pattern of a rule on arguments that are chosen."""
    names = sorted({name for param in sides.pattern.params for name in type_symbols(param.ty)})
    sizes = (*_SIZES, *_named_sizes(sides))
    few = choices.flip(40)  # sizes that are the same show what a rule mixes up, and those that differ what it needs
    base = choices.pick(sizes)
    symbols = {name: base if few and choices.flip(50) else choices.pick(sizes) for name in names}
    symbols |= {name: choices.pick((*sizes, -1, -2)) for name in _numbers_alone(sides)}
    pool = _Pool(choices)
    args: list[Expr] = []
    for param in sides.pattern.params:
        ty = _chosen_type(param.ty, symbols, pool)
        if ty is None:
            return None
        args.append(_argument(param.name, ty, param.name in sides.constant, choices))
    attributes = [(name, _attributes(name, free, choices)) for name, free in _calls(sides)]
    try:
        return function_of(instantiated(sides.pattern, args, dict(symbols), attributes), args)
    except WeftError:
        return None  # operands that do not go together


def _numbers_alone(sides: Sides) -> list[str]:
    """The symbols that are scalars and no sizes, so that they may be negative."""
    scalars, others = set[str](), set[str]()
    for param in sides.pattern.params:
        (scalars if isinstance(param.ty, PrimType) else others).update(type_symbols(param.ty))
    return sorted(scalars - others)


def numbers_of(function: Function) -> set[float]:
    """The numbers that a function names: scalar constants and attributes, as far as they are small."""
    found: set[float] = set()
    for node in walk(function.body):
        if isinstance(node, Constant) and node.data.size == 1 and node.data.dtype.kind in "fiu":
            found.add(float(node.data.reshape(-1)[0]))
        elif isinstance(node, PrimValue) and isinstance(node.value, (int, float)):
            found.add(float(node.value))
        elif isinstance(node, Call):
            found.update(float(item) for value in node.attrs.values() for item in _flat(value))
    return {number for number in found if 0 < abs(number) < 2**40}


def _flat(value: object) -> list[float]:
    if isinstance(value, tuple):
        return [item for part in value for item in _flat(part)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def _named_sizes(sides: Sides) -> tuple[int, ...]:
    """Sizes at and around the whole numbers that a rule names, where they are small."""
    named = {int(number) for side in (sides.pattern, sides.replacement) for number in numbers_of(side)}
    return tuple(sorted({size for number in named for size in (number, number + 1) if 7 < size <= 24}))


def function_of(value: Expr, args: Sequence[Expr]) -> Function:
    """A function `main` whose result is a value over parameters."""
    builder = BlockBuilder(IRModule())
    params = [arg for arg in args if isinstance(arg, Var)]
    with builder.function("main", params), builder.dataflow():
        result = builder.emit_output(value)
        builder._scopes[-1].close_block()
        builder._scopes[-1].dataflow = False
        builder.emit_func_output(result)
    made = builder.get()["main"]
    assert isinstance(made, Function)
    return made


class _Pool:
    """Shapes and dtypes for parameters that state none: of one family, so that operands often go together."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.shape = tuple(choices.pick(_SIZES) for _ in range(choices.integer(0, 4)))
        self.dtype = choices.pick(_DTYPES)

    def shape_of(self, ndim: int) -> tuple[int, ...]:
        choices = self.choices
        rank = ndim if ndim >= 0 else (len(self.shape) if choices.flip(70) else choices.integer(0, 4))
        padded = (*(choices.pick(_SIZES) for _ in range(rank)), *self.shape)
        taken = padded[len(padded) - rank :] if rank else ()
        return tuple(1 if choices.flip(10) else size for size in taken)

    def dtype_of(self) -> str:
        return self.dtype if self.choices.flip(85) else self.choices.pick(_DTYPES)


def _chosen_type(ty: Type | None, symbols: dict[str, int], pool: _Pool) -> Type | None:
    """A type of known sizes that a parameter may have."""
    if isinstance(ty, TensorType):
        dims = dims_of(ty)
        sizes = pool.shape_of(ty.ndim) if dims is None else tuple(evaluate(dim, symbols) for dim in dims)
        return TensorType(sizes, ty.dtype or pool.dtype_of()) if all(size >= 0 for size in sizes) else None
    if isinstance(ty, ShapeType):
        sizes = pool.shape_of(ty.ndim) if ty.dims is None else tuple(evaluate(dim, symbols) for dim in ty.dims)
        return ShapeType(sizes) if all(size >= 0 for size in sizes) else None
    if isinstance(ty, PrimType) and ty.dims is not None:
        return PrimType(ty.dtype, evaluate(ty.dims[0], symbols))
    if isinstance(ty, TupleType):
        fields = [_chosen_type(field, symbols, pool) for field in ty.fields]
        return TupleType(tuple(field for field in fields if field is not None)) if None not in fields else None
    return ty if isinstance(ty, PrimType) else None


def _argument(name: str, ty: Type, constant: bool, choices: Choices) -> Expr:
    if constant and isinstance(ty, TensorType) and ty.dims is not None:
        shape = tuple(int(dim) for dim in ty.dims)  # type: ignore[arg-type]
        return Constant(_values(choices, ty.dtype or "float32", shape), ty.dtype or "float32")
    if isinstance(ty, ShapeType) and ty.dims is not None:
        return ShapeExpr(ty.dims)
    if isinstance(ty, PrimType):
        return PrimValue(choices.integer(-3, 3) if ty.dims is None else ty.dims[0], ty.dtype)
    return Var(name, ty)


def _values(choices: Choices, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    data = small_array(choices, dtype, shape)
    return np.abs(data) + data.dtype.type(0.5) if dtypes.is_float(dtype) and choices.flip(30) else data


def _calls(sides: Sides) -> list[tuple[str, frozenset[str]]]:
    """The operators whose attributes are any with the names of those, one for each call of the pattern."""
    free = dict(map(any_attributes_of, sides.attributes))
    values = (binding.value for binding in bindings_of(sides.pattern.body))
    names = (value.op.name for value in values if isinstance(value, Call) and isinstance(value.op, Op))
    return [(name, free[name]) for name in names if name in free]


def _attributes(name: str, free: frozenset[str], choices: Choices) -> FrozenMap:
    """Attributes of an operator: its defaults, or those of one of its examples."""
    definition = OPS[name]
    chosen = choices.integer(0, len(definition.examples))
    if chosen == 0 and not any(param.required for param in definition.params if param.kind in FIXED):
        return EMPTY
    example = definition.examples[max(0, chosen - 1)]
    args = [Var("x", arg) if isinstance(arg, Type) else arg for arg in example.args]
    attrs = definition.bind(args, example.kwargs).attrs.without(ABSENT)
    return FrozenMap({key: value for key, value in attrs.items() if not free or key in free})
