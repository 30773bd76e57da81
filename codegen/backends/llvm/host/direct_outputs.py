"""Results that compiled code may write straight into the memory of its caller (`weft.runtime.abi.frame`, outputs).

y = alloc;  launch k(x, y);  z = view y;  return [z, ...]         y may be the caller's array for z
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.codegen.backends.llvm.host.values import is_dynamic, width
from weft.codegen.host.program import Alloc, Bind, Group, HostFunction, Item, Operand, Step, View
from weft.ir.graph import Var
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


def direct_results(function: HostFunction) -> dict[Var, tuple[int, TensorType]]:
    """The variables whose allocation is a result: the index of its words in the results, and its type there."""
    steps = {step.into: step for step in function.body.steps if isinstance(step, (Alloc, View, Bind))}
    words = {index: ty for index, ty in result_words(function.result)}
    found: dict[Var, tuple[int, TensorType]] = {}
    for index, leaf in _leaves(function.body.result, function.result, 0, steps):
        origin = _origin(leaf, steps)
        if origin is not None and index in words:
            found.setdefault(origin, (index, words[index]))
    return found


def _leaves(value: Operand, ty: Type, index: int, steps: Mapping[Var, Step]) -> Iterator[tuple[int, Operand]]:
    value = _renamed(value, steps)
    if isinstance(value, Group) and isinstance(ty, TupleType) and len(value.fields) == len(ty.fields):
        for item, field in zip(value.fields, ty.fields, strict=True):
            yield from _leaves(item, field, index, steps)
            index += width(field)
    else:
        yield index, value


def _renamed(value: Operand, steps: Mapping[Var, Step]) -> Operand:
    """What a value is another name of."""
    while isinstance(value, Var) and isinstance(made := steps.get(value), Bind):
        value = made.value
    return value


def _origin(value: Operand, steps: Mapping[Var, Step]) -> Var | None:
    """The variable whose allocation a value is, seen through renamings, views and fields of tuples."""
    while True:
        if isinstance(value, Item):
            whole = _renamed(value.value, steps)
            if not isinstance(whole, Group):
                return None
            value = whole.fields[value.index]
        step = steps.get(value) if isinstance(value, Var) else None
        if isinstance(step, Alloc):
            return None if step.block else step.into
        if isinstance(step, View) and not step.block:
            value = step.source
        elif isinstance(step, Bind):
            value = step.value
        else:
            return None
