"""Results that compiled code may write straight into the memory of its caller (`weft.runtime.abi.frame`, outputs).

    y = alloc;  cls.k(x, y);  z = R.memory.view(y);  return (z, ...)         y may be the caller's array for z
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen.backends.llvm.host.graph_values import is_dynamic, width
from weft.ir.graph import Call, Expr, Function, Op, Tuple, TupleGetItem, Var
from weft.ir.types import TensorType, TupleType, Type

__all__ = ["direct_results", "result_words"]


def result_words(ty: Type, index: int = 0) -> Iterator[tuple[int, TensorType]]:
    """The tensors of known rank and dtype in a result, each with the index of its first word."""
    if isinstance(ty, TensorType):
        if not is_dynamic(ty):
            yield index, ty
    elif isinstance(ty, TupleType):
        for item in ty.fields:
            yield from result_words(item, index)
            index += width(item)


def direct_results(function: Function) -> dict[Var, tuple[int, TensorType]]:
    """The variables whose allocation is a result: the index of its words in the results, and its type there."""
    values: dict[Var, Expr] = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    words = {index: ty for index, ty in result_words(function.ret_type)}
    found: dict[Var, tuple[int, TensorType]] = {}
    for index, leaf in _leaves(function.body.body, function.ret_type, 0):
        origin = _origin(leaf, values)
        if origin is not None and index in words:
            found.setdefault(origin, (index, words[index]))
    return found


def _leaves(value: Expr, ty: Type, index: int) -> Iterator[tuple[int, Expr]]:
    if isinstance(value, Tuple) and isinstance(ty, TupleType) and len(value.fields) == len(ty.fields):
        for item, field in zip(value.fields, ty.fields, strict=True):
            yield from _leaves(item, field, index)
            index += width(field)
    else:
        yield index, value


def _origin(value: Expr, values: dict[Var, Expr]) -> Var | None:
    """The variable whose allocation a value is, seen through renamings, views and fields of tuples."""
    while True:
        if isinstance(value, TupleGetItem):
            whole = value.value
            while isinstance(whole, Var) and whole in values:
                whole = values[whole]
            if not isinstance(whole, Tuple):
                return None
            value = whole.fields[value.index]
        if not isinstance(value, Var) or value not in values:
            return None
        made = values[value]
        if isinstance(made, Call) and isinstance(made.op, Op):
            if made.op.name == "builtin.alloc_tensor":
                return value
            if made.op.name != "memory.view":
                return None
            made = made.args[0]
        value = made
