"""The result of a function as one expression over given values: parameters, symbols and attributes put in place.

    instantiated(function, args, symbols, attributes)       attributes ::= [(operator, those of its call), ...]

The expression shares what the function binds once, so that it is a graph like the body it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir import Call, Expr, Function, Op, Var, VarBinding, replace
from weft.ir.dim import Dim
from weft.ir.node import FrozenMap
from weft.ir.structure.visit import substitute_symbols
from weft.transform.infra.rewriting import bindings_of, map_operands

__all__ = ["instantiated"]


def instantiated(
    function: Function,
    args: Sequence[Expr],
    symbols: Mapping[str, Dim],
    attributes: Sequence[tuple[str, FrozenMap]] = (),
) -> Expr:
    """What a function without branches gives for arguments; see the module."""
    function = substitute_symbols(function, symbols)
    made: dict[Var, Expr] = dict(zip(function.params, args, strict=True))
    waiting = list(attributes)

    def leaf(expr: Expr) -> Expr:
        return made.get(expr, expr) if isinstance(expr, Var) else expr

    for binding in bindings_of(function.body):
        assert isinstance(binding, VarBinding), "a rule binds values"
        value: Any = map_operands(binding.value, leaf)
        if isinstance(value, Call) and isinstance(value.op, Op):
            value = replace(value, attrs=_next(waiting, value.op.name, value.attrs))
        made[binding.var] = value
    return map_operands(function.body.body, leaf)


def _next(waiting: list[tuple[str, FrozenMap]], name: str, own: FrozenMap) -> FrozenMap:
    """The attributes that wait for a call of an operator, else its own."""
    for place, (operator, attrs) in enumerate(waiting):
        if operator == name:
            del waiting[place]
            return attrs
    return own
