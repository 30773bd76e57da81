"""The variables of graph functions and expressions: those that occur, are bound, are used, are free, and who uses them.

Order is that of the text. A variable is used where a value stands for it: in operands, results, and the shapes of
types; not where it is bound. Parameters bind, and so do bindings in branches and local functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from weft.ir.graph import Binding, Function, GlobalVar, MatchCast, Var, VarBinding
from weft.ir.node import Node
from weft.ir.structure.visit import walk
from weft.ir.types import TensorType, TupleType, Type

__all__ = [
    "all_global_variables",
    "all_variables",
    "bound_variables",
    "free_variables",
    "use_counts",
    "used_variables",
    "users",
]


def all_variables(node: Node) -> list[Var]:
    """Every variable that occurs, where it is bound too.

    >>> import weft
    >>> f = weft.parse('@R.function\\ndef f(x: R.Tensor((2,), "float32")):\\n    y = R.exp(x)\\n    return y')
    >>> [var.name for var in all_variables(f)]
    ['x', 'y']
    """
    return list(dict.fromkeys([*bound_variables(node), *used_variables(node)]))


def all_global_variables(node: Node) -> list[str]:
    """The names of the functions of the module that a node refers to, in order."""
    return list(dict.fromkeys(part.name for part in walk(node) if isinstance(part, GlobalVar)))


def bound_variables(node: Node) -> list[Var]:
    """The variables that parameters and bindings of a node introduce."""
    found: dict[Var, None] = {}
    for part in walk(node):
        if isinstance(part, Function):
            found.update(dict.fromkeys(part.params))
        elif isinstance(part, (VarBinding, MatchCast)):
            found.setdefault(part.var)
    return list(found)


def used_variables(node: Node) -> list[Var]:
    """The variables that a node uses, each once."""
    return list(use_counts(node))


def free_variables(node: Node) -> list[Var]:
    """The variables that a node uses and does not bind; a local function may use its own.

    >>> from weft.ir import Call, Op, TensorType
    >>> x = Var("x", TensorType((2,), "float32"))
    >>> free_variables(Call(Op("exp"), (x,))) == [x]
    True
    """
    bound = set(bound_variables(node))
    return [var for var in used_variables(node) if var not in bound]


def use_counts(node: Node) -> Mapping[Var, int]:
    """How often each variable is used."""
    found = Counter[Var]()
    for part in walk(node):
        if isinstance(part, Var):
            found[part] += 1
        elif isinstance(part, Function):
            found.subtract(part.params)
            found.update(var for ty in (part.ret_type, *(param.ty for param in part.params)) for var in _shapes(ty))
        elif isinstance(part, (VarBinding, MatchCast)):
            found[part.var] -= 1
            found.update(_shapes_of(part))
    return {var: count for var, count in found.items() if count > 0}


def users(node: Node) -> dict[Var, tuple[Var, ...]]:
    """For each variable those whose bindings use it, in order; of what a result alone uses there is no entry.

    >>> import weft
    >>> f = weft.parse('@R.function\\ndef f(x: R.Tensor((2,), "float32")):\\n    y = R.exp(x)\\n    return y')
    >>> {var.name: [user.name for user in found] for var, found in users(f).items()}
    {'x': ['y']}
    """
    found: dict[Var, dict[Var, None]] = {}
    for part in walk(node):
        if isinstance(part, (VarBinding, MatchCast)):
            for var in (*used_variables(part.value), *_shapes_of(part)):
                found.setdefault(var, {})[part.var] = None
    return {var: tuple(made) for var, made in found.items()}


def _shapes_of(binding: Binding) -> Iterator[Var]:
    yield from _shapes(binding.var.ty)
    if isinstance(binding, MatchCast):
        yield from _shapes(binding.ty)


def _shapes(ty: Type) -> Iterator[Var]:
    """The variables of shapes that a type mentions."""
    if isinstance(ty, TensorType) and isinstance(ty.shape, Var):
        yield ty.shape
    elif isinstance(ty, TupleType):
        for field in ty.fields:
            yield from _shapes(field)
