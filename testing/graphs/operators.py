"""Calls of operators with arguments that their type rules accept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft.errors import WeftError
from weft.ir.deduction.infer import infer_type
from weft.ir.deduction.subtyping import dims_of, type_symbols
from weft.ir.dim import DimExpr
from weft.ir.graph import (
    Call,
    Expr,
    Tuple,
    Var,
)
from weft.ir.op import REQUIRED, OpDef, Param
from weft.ir.op.declare import ParamKind
from weft.ir.types import ShapeType, TensorType, Type
from weft.testing.graphs.state import FunctionState, Rejected
from weft.testing.graphs.types import is_discrete, is_partly_discrete, same_shape, too_large
from weft.transform.infra.generators.values import DTYPES, constant

_MOVING = ("manipulate", "index", "create", "datatype")
_STEPS = frozenset(
    "floor ceil round trunc sign floor_divide floor_mod mod sort argsort topk median unique quantile bucketize".split()
)
_CONDITIONAL = frozenset(["bucketize"])  # defined for some values only (sorted boundaries), which the examples have


class Default:
    """An argument that is left out."""


_DEFAULT = Default()
_LEFT_OUT = (ParamKind.EXPR, ParamKind.EXPRS, ParamKind.SHAPE)
"""The kinds of run-time parameters that some calls leave out."""


def variables(call: Call) -> Iterator[Var]:
    """The variables among the arguments of a call."""
    for arg in call.args:
        for leaf in arg.fields if isinstance(arg, Tuple) else (arg,):
            if isinstance(leaf, Var):
                yield leaf


def symbols_in(value: Any) -> set[str]:
    """The symbols in a value of an example."""
    if isinstance(value, Type):
        return type_symbols(value)
    if isinstance(value, DimExpr):
        return type_symbols(TensorType((value,)))
    if isinstance(value, (list, tuple)):
        return set().union(*(symbols_in(item) for item in value)) if value else set()
    return set()


def operator(f: FunctionState) -> tuple[Expr, bool]:
    """A call of an operator with arguments that its rule accepts."""
    for _ in range(5):
        definition = f.choices.pick(f.home.operators)
        bounded = any(example.ranges for example in definition.examples)
        if f.runnable and (bounded or definition.name in _CONDITIONAL):
            continue
        for _ in range(3):
            try:
                call = attempt(f, definition)
                context = f.context()
                ty = infer_type(call, context)
            except (Rejected, WeftError):
                continue
            if not (f.runnable and (context.checks or too_large(ty))):
                return judged(f, definition, call, ty)
    raise Rejected


def judged(f: FunctionState, definition: OpDef, call: Call, ty: Type) -> tuple[Expr, bool]:
    """The call and whether it is exact; Rejected where rounding would decide something."""
    inexact = [var for var in variables(call) if var not in f.exact]
    if not inexact:
        return call, definition.family in _MOVING or is_discrete(ty) or definition.name in _STEPS
    floats = [var for var in inexact if not is_discrete(var.ty)]
    if floats and (definition.name in _STEPS or is_partly_discrete(ty)):
        raise Rejected
    return call, False


def attempt(f: FunctionState, definition: OpDef) -> Call:
    """A call with arguments of the right kinds, which the type rule may refuse."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    chosen: list[Var] = []
    for param in definition.params:
        if param.default is None and param.kind in _LEFT_OUT and f.choices.flip():
            continue
        value = argument(f, definition, param, chosen)
        if value is _DEFAULT:
            continue
        if param.kind == ParamKind.VARIADIC:
            args.extend(value)
        elif param.kind == ParamKind.EXPR and not kwargs and len(args) == definition.params.index(param):
            args.append(value)
        else:
            kwargs[param.name] = value
    return definition.bind(args, kwargs)


def argument(f: FunctionState, definition: OpDef, param: Param, chosen: list[Var]) -> Any:
    """A value for a parameter, or none."""
    choices = f.choices
    if param.kind == ParamKind.EXPR:
        return operand(f, chosen)
    if param.kind in (ParamKind.EXPRS, ParamKind.VARIADIC):
        return [operand(f, chosen) for _ in range(choices.integer(1, 3))]
    promised = f.runnable and param.name == "assume_inbound"
    if param.default is not REQUIRED and (promised or choices.flip(50)):
        return _DEFAULT
    if param.kind == ParamKind.SHAPE:
        return shape_argument(f, chosen)
    if param.kind == ParamKind.PRIM:
        return choices.pick((1, 2, 0, -1, 0.5, f.dim()))
    if param.kind == ParamKind.DTYPE:
        return choices.pick(DTYPES)
    if param.name == "num_workers":
        return 1  # collectives of more are a library's
    rank = getattr(chosen[0].ty, "ndim", 1) if chosen else 1
    axis = choices.integer(-1, max(rank - 1, 0))
    kinds: dict[str, Callable[[], Any]] = {
        "int": lambda: axis,
        "bool": lambda: choices.flip(),
        "float": lambda: 0.5 if f.runnable else choices.number(),
        "dim": f.dim,
        "ints": lambda: choices.several(1, 3, lambda: choices.integer(-1, max(rank - 1, 2))),
        "dims": lambda: choices.several(1, 3, f.dim),
    }
    kind = param.of.rstrip("?")
    if kind in kinds and choices.flip(70):
        return kinds[kind]()
    return exemplary(f, definition, param)


def exemplary(f: FunctionState, definition: OpDef, param: Param) -> Any:
    """A value of an attribute in some example."""
    values = [example.kwargs[param.name] for example in definition.examples if param.name in example.kwargs]
    index = definition.params.index(param)
    values.extend(example.args[index] for example in definition.examples if index < len(example.args))
    if not values:
        if param.default is REQUIRED:
            raise Rejected
        return _DEFAULT
    value = f.choices.pick(values)
    if symbols_in(value):
        raise Rejected
    return value


def operand(f: FunctionState, chosen: list[Var]) -> Any:
    """A tensor, seldom a constant or a number."""
    choices = f.choices
    candidates = f.tensors()
    if f.runnable:  # what an operator would ask of unknown ranks and dtypes may not hold
        candidates = f.known_tensors()
    if chosen and choices.flip(90):
        candidates = [var for var in candidates if var.ty.dtype == chosen[0].ty.dtype]  # type: ignore[attr-defined]
        if choices.flip(60):
            same = [var for var in candidates if same_shape(var.ty, chosen[0].ty)]
            candidates = same or candidates
    if not candidates or choices.flip(6):
        return constant(choices, runnable=f.runnable)
    if chosen and choices.flip(8):
        return choices.pick((1, 2, 0.5))
    var = choices.pick(candidates[::-1])
    chosen.append(var)
    return var


def shape_argument(f: FunctionState, chosen: list[Var]) -> Any:
    """A shape: a variable, one made from operands, or any."""
    shapes = [var for var in f.visible if isinstance(var.ty, ShapeType) and (var.ty.dims or not f.runnable)]
    if shapes and f.choices.flip(20):
        return f.choices.pick(shapes)
    known = [dims for var in chosen if (dims := dims_of(var.ty)) is not None]
    if known and f.choices.flip(70):
        dims = list(f.choices.pick(known))
        if len(dims) > 1 and f.choices.flip():
            at = f.choices.integer(0, len(dims) - 2)
            dims[at : at + 2] = [dims[at] * dims[at + 1]] if f.choices.flip() else [dims[at + 1], dims[at]]
        elif f.choices.flip():
            dims.insert(0, f.choices.pick((1, f.dim())))
        return tuple(dims)
    return tuple(f.dim() for _ in range(f.choices.integer(0, 3)))
