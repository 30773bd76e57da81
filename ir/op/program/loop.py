"""Loops: a function that takes the carried values of one iteration and gives those of the next.

    for     s_1, ... = R.loop(body, (s_0, ...), out_ty=..., range=(start, stop, step))     body(i, s, ...) -> (s, ...)
    while   s_1, ... = R.loop(body, (s_0, ...), out_ty=..., condition=condition)           body(s, ...) -> (s, ...)
    for, left early    both `range` and `condition`: the condition is asked before each iteration
    stacked            the last `stacked` types of out_ty are tensors with a row for each iteration: what the body gives
                       after the carried values; scan and map are loops over a range with such results

`overwrites` names carried values by number whose memory an iteration may write over (`call_tir_inplace`), which changes
nothing of what the loop gives: memory that is not the loop's alone is copied before it. The planner of memory says so.

`out_ty` states the types of the carried values, which are the same before and after each iteration. The first
parameter of the body of a loop over a range is the index, an int64 scalar; its type may name a symbol
(`R.Prim("int64", value="i")`), by which the index is a size in the body. A loop without iterations gives the initial
values. `while` and `for` of scripts are read as these calls.

Errors: ScriptError W135 a body that is no function, W130 numbers of parameters and values; ShapeError W202 and
DTypeError W320 where values, body and stated types contradict each other; ArgumentError W868 a step of 0 at run time.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import DTypeError, ScriptError, ShapeError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import is_base_of, type_text
from weft.ir.dim import Dim, DimExpr, maximum
from weft.ir.graph import Expr, PrimValue, Tuple
from weft.ir.op.declare import Arguments, Builtin, Param
from weft.ir.op.registry import register_op
from weft.ir.types import AnyType, FuncType, PrimType, TensorType, TupleType, Type

__all__ = ["carried_types", "iterations", "row_type", "stacked_types"]

_PARAMS = [
    Param("body"),
    Param("initial", "exprs"),
    Param("out_ty", "types"),
    Param("range", "exprs", None),
    Param("condition", default=None),
    Param("stacked", "attr", 0, "int"),
    Param("overwrites", "attr", (), "ints"),
]


def carried_types(out_ty: Type, stacked: int) -> tuple[Type, ...]:
    """The types of the carried values that a loop states."""
    types = out_ty.fields if isinstance(out_ty, TupleType) else (out_ty,)
    return types[: len(types) - stacked]


def stacked_types(out_ty: Type, stacked: int) -> tuple[TensorType, ...]:
    """The types of the results with a row for each iteration."""
    types = out_ty.fields if isinstance(out_ty, TupleType) else (out_ty,)
    return tuple(ty for ty in types[len(types) - stacked :] if isinstance(ty, TensorType))


def row_type(ty: TensorType) -> TensorType:
    """The type of one row of a stacked result."""
    return TensorType((ty.dims or ())[1:], ty.dtype)


def iterations(bounds: Expr | None) -> Dim | None:
    """How many iterations a range of sizes has; None where only a run decides."""
    leaves = bounds.fields if isinstance(bounds, Tuple) else ()
    values = [leaf.value for leaf in leaves if isinstance(leaf, PrimValue) and isinstance(leaf.value, (int, DimExpr))]
    if len(values) != 3:
        return None
    start, stop, step = values
    if not isinstance(step, int) or not step:
        return None
    distance: Dim = stop - start if step > 0 else start - stop
    return maximum((distance + (abs(step) - 1)) // abs(step), 0)


def _stacked(args: Arguments, context: TypeContext) -> tuple[TensorType, ...]:
    """The stacked results, held against the number of iterations."""
    found = stacked_types(args.out_ty, args.stacked)
    count = iterations(args.range)
    if found and (count is None or args.condition is not None):
        message = f"{args.name}: a result with a row for each iteration needs a range of sizes, and no early end"
        raise ScriptError(message, code="W130", span=args.span)
    for ty in found:
        if not ty.dims or ty.dtype is None:
            raise ShapeError(
                f"{args.name}: a stacked result is a tensor with shape and dtype, got {type_text(ty)}",
                code="W206",
                span=args.span,
            )
        assert count is not None
        context.require_equal(ty.dims[0], count, f"the rows of a stacked result of {args.name}", args.span)
    if len(found) != args.stacked:
        raise ScriptError(f"{args.name}: out_ty has not {args.stacked} stacked tensors", code="W130", span=args.span)
    return found


def _loop(args: Arguments, context: TypeContext) -> Type:
    stated = carried_types(args.out_ty, args.stacked)
    stacked = _stacked(args, context)
    initial = _fields(context.type_of(args.initial))
    if len(initial) != len(stated):
        raise ScriptError(
            f"{args.name}: {len(initial)} initial values, and out_ty has {len(stated)} types",
            code="W130",
            span=args.span,
        )
    if any(not 0 <= number < len(stated) for number in args.overwrites):
        message = f"{args.name}: overwrites {args.overwrites} must name some of the {len(stated)} carried values from 0"
        raise ScriptError(message, code="W130", span=args.span)
    for number, (ty, given) in enumerate(zip(stated, initial, strict=True), 1):
        _require(args, context, ty, given, f"initial value {number}")
    indices: list[Type] = []
    if args.range is not None:
        bounds = _fields(context.type_of(args.range))
        if len(bounds) != 3:
            message = f"{args.name}: a range is (start, stop, step), got {len(bounds)} values"
            raise ScriptError(message, code="W130", span=args.span)
        for name, ty in zip(("start", "stop", "step"), bounds, strict=True):
            _require_integer(args, ty, name)
        indices = [PrimType("int64")]
    elif args.condition is None:
        message = f"{args.name} has neither a range nor a condition: it would never end"
        raise ScriptError(message, code="W130", span=args.span)
    given = (*stated, *map(row_type, stacked))
    _check_function(args, context, "body", context.type_of(args.body), (*indices, *stated), given)
    if args.condition is not None:
        _check_function(args, context, "condition", context.type_of(args.condition), stated, None)
    return TupleType((*stated, *stacked))


def _fields(ty: Type) -> tuple[Type, ...]:
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def _require(args: Arguments, context: TypeContext, wanted: Type, given: Type, what: str) -> None:
    if is_base_of(wanted, given, context.facts) is False:
        both = [ty.dtype for ty in (wanted, given) if isinstance(ty, (TensorType, PrimType)) and ty.dtype]
        kind, code = (DTypeError, "W320") if len(set(both)) == 2 else (ShapeError, "W202")
        message = f"{args.name}: {what} is a {type_text(given)}, and the loop carries a {type_text(wanted)}"
        raise kind(message, code=code, span=args.span)


def _require_integer(args: Arguments, ty: Type, name: str) -> None:
    scalar = isinstance(ty, PrimType) or (isinstance(ty, TensorType) and ty.ndim in (0, -1))
    dtype = ty.dtype if isinstance(ty, (PrimType, TensorType)) else None
    if not isinstance(ty, AnyType) and not (scalar and dtype in ("int64", "int32", None)):
        message = f"{args.name}: the {name} of a range is an integer scalar, got {type_text(ty)}"
        raise DTypeError(message, code="W320", span=args.span)


def _check_function(
    args: Arguments, context: TypeContext, what: str, ty: Type, params: Sequence[Type], results: Sequence[Type] | None
) -> None:
    """Hold a function against what the loop passes and, for the body, what it takes back."""
    if isinstance(ty, AnyType):
        return  # a closure, whose function was checked when it was made
    if not isinstance(ty, FuncType):
        raise ScriptError(f"{args.name}: the {what} is a {type_text(ty)}, not a function", code="W135", span=args.span)
    if ty.params is None:
        return
    if len(ty.params) != len(params):
        message = f"{args.name}: the {what} takes {len(ty.params)} parameters, the loop passes {len(params)} values"
        raise ScriptError(message, code="W130", span=args.span)
    if results is None:
        return
    given = _fields(ty.ret)
    if len(given) != len(results):
        message = f"{args.name}: the body gives {len(given)} values, the loop carries {len(results)}"
        raise ScriptError(message, code="W130", span=args.span)
    for number, (wanted, found) in enumerate(zip(results, given, strict=True), 1):
        _require(args, context, wanted, found, f"value {number} after an iteration")


@register_op("loop", _PARAMS, pure=True, builtin=Builtin.EXECUTORS)
def loop(args: Arguments, context: TypeContext) -> Type:
    """Run a pure body over a range, while a condition holds, or both, on values that it carries."""
    return _loop(args, context)


@register_op("loop_with_effects", _PARAMS, pure=False, builtin=Builtin.EXECUTORS)
def loop_with_effects(args: Arguments, context: TypeContext) -> Type:
    """`loop` of a body or condition that has effects."""
    return _loop(args, context)
