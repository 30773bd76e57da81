"""The part of a function in which there are sizes that only values decide, as one value.

    lv = R.tensor_to_shape(k)                          z = (lv = R.tensor_to_shape(k)
    _ = R.match_cast(lv, R.Shape(["m"]))                    _ = R.match_cast(lv, R.Shape(["m"]))
    y = R.strided_slice(x, [0], [0], [m])     ->            y = R.strided_slice(x, [0], [0], [m])
    z = R.sum(y)                                            R.sum(y))

Programs that are a straight line have no place for such sizes; one kernel that computes what comes of them has.

Errors: TargetError W741 where a result of the function is of such a size.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.errors import TargetError
from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    Function,
    MatchCast,
    Op,
    SeqExpr,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.transform.analysis.free_symbols import symbols_of, symbols_of_type
from weft.transform.infra.rewriting import bindings_of

__all__ = ["has_run_time_sizes", "with_run_time_sizes_apart"]


def has_run_time_sizes(function: Function) -> bool:
    """Whether a function names sizes that it takes from values, outside of its branches and loops."""
    return any(map(_names_sizes, bindings_of(function.body)))


def with_run_time_sizes_apart(function: Function) -> Function:
    """A function without dataflow blocks, with everything that depends on such sizes in one value of it."""
    bindings = list(bindings_of(function.body))
    first = next(place for place, binding in enumerate(bindings) if _names_sizes(binding))
    end = first + 1
    while (further := _end(bindings, first, end, function)) > end:
        end = further
    held = _held(bindings[first:end], _named(bindings[first:end], function))
    if any(node in held for node in walk(function.body.body)):
        raise TargetError(
            f"a result of {function.name}, whose size only values decide, cannot be that of a straight-line program",
            code="W741",
            span=bindings[first].span,
            hint='give all elements, and how many count; executor="native" and executor="vm" can',
        )
    new = [*bindings[:first], *_as_one(bindings[first:end], bindings[end:], function.body), *bindings[end:]]
    return replace(function, body=replace(function.body, blocks=(BindingBlock(tuple(new)),)))


def _names_sizes(binding: Binding) -> bool:
    value = binding.value
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "tensor_to_shape"


def _named(part: Sequence[Binding], function: Function) -> set[str]:
    """The symbols that a part names."""
    known = {name for param in function.params for name in symbols_of_type(param.ty)}
    return {name for item in part if isinstance(item, MatchCast) for name in symbols_of_type(item.ty)} - known


def _held(part: Sequence[Binding], names: Collection[str]) -> set[Var]:
    """The variables of a part that do not leave it: those that are no tensors, or of sizes that it names."""
    return {item.var for item in part if not _leaves(item.var.ty, names)}


def _leaves(ty: Type, names: Collection[str]) -> bool:
    if isinstance(ty, TupleType):
        return all(_leaves(field, names) for field in ty.fields)
    return isinstance(ty, TensorType) and ty.dims is not None and not set(symbols_of_type(ty)) & set(names)


def _end(bindings: Sequence[Binding], first: int, end: int, function: Function) -> int:
    """Where the part ends at least, if it ends there."""
    names = _named(bindings[first:end], function)
    held = _held(bindings[first:end], names)
    depending = [
        place
        for place in range(end, len(bindings))
        if _names_sizes(bindings[place])
        or not names.isdisjoint({*symbols_of(bindings[place].value), *symbols_of_type(bindings[place].var.ty)})
        or any(node in held for node in walk(bindings[place].value))
    ]
    return depending[-1] + 1 if depending else end


def _as_one(part: Sequence[Binding], later: Sequence[Binding], body: SeqExpr) -> list[Binding]:
    """The bindings of the variables of a part that are used after it, of one value."""
    used = {node for value in (*(item.value for item in later), body.body) for node in walk(value)}
    leaving = [item.var for item in part if item.var in used]
    span = part[0].span
    inside = (BindingBlock(tuple(part)),)
    if len(leaving) == 1:
        return [VarBinding(leaving[0], SeqExpr(inside, leaving[0], span=span), span=span)]
    whole = Var("part", TupleType(tuple(var.ty for var in leaving)), span=span)
    found: list[Binding] = [VarBinding(whole, SeqExpr(inside, Tuple(tuple(leaving)), span=span), span=span)]
    return [*found, *(VarBinding(var, TupleGetItem(whole, place), span=span) for place, var in enumerate(leaving))]
