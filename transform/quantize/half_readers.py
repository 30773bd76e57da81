"""Which float32 values of a function are stored in half: those that some reader wants so, and none needs wide.

    reader                                                  wants half    needs float32
    always                                                  yes
    follow, elementwise                                     takes either
    follow, reads the whole or a part; fields of tuples     if what it gives is stored in half, else needs float32
    R.astype(x, half)                                       yes
    never, results, calls, conditions, ...                                yes

Readers come after what they read, so one walk from the last binding to the first decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.ir import (
    Binding,
    Call,
    Expr,
    Function,
    If,
    Op,
    SeqExpr,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    VarBinding,
)
from weft.ir.deduction.infer import TypeContext
from weft.ir.op import OPS, OpDef
from weft.ir.op.precision import Policy, Precision, Reads
from weft.transform.infra.rewriting import is_marked, operands

__all__ = ["HalfReaders", "changing", "is_wide", "leaves", "precision_of"]

WIDE = "float32"


def is_wide(ty: Type | None) -> bool:
    """Whether a value is a tensor of float32, or a tuple of such."""
    if isinstance(ty, TupleType):
        return bool(ty.fields) and all(map(is_wide, ty.fields))
    return isinstance(ty, TensorType) and ty.dtype == WIDE


def leaves(value: Expr) -> Iterator[Expr]:
    """The tensors of an operand: of a tuple that is written out, its fields."""
    if isinstance(value, Tuple):
        for item in value.fields:
            yield from leaves(item)
    else:
        yield value


def precision_of(value: Expr) -> tuple[OpDef, Precision] | None:
    """The declaration and the policy of a call of an operator; None for what says more than the operator knows."""
    if not isinstance(value, Call) or not isinstance(value.op, Op) or is_marked(value):
        return None
    definition = OPS.get(value.op.name)
    return None if definition is None else (definition, definition.precision)


def changing(call: Call, definition: OpDef, result: Type | None, context: TypeContext) -> Mapping[str, Any] | None:
    """The operands that the policy is about, by name; None where one, or the result, is not of float32."""
    args = definition.arguments(call)
    named = {name: args[name] for name in definition.precision.operands if args[name] is not None}
    tensors = [leaf for value in named.values() for leaf in leaves(value)]
    wide = [isinstance(ty := context.type_of(leaf), TensorType) and is_wide(ty) for leaf in tensors]
    if not tensors or not all(wide) or not is_wide(result):
        return None
    return named


class HalfReaders:
    """What is known of the readers of each variable; see the module."""

    def __init__(self, function: Function, half: str, context: TypeContext) -> None:
        self.half, self.context = half, context
        self.wanted: set[Var] = set()
        self.wide: set[Var] = set()
        self._sequence(function.body)

    def stores_half(self, var: Var) -> bool:
        """Whether a variable is stored in half precision."""
        return is_wide(var.ty) and var in self.wanted and var not in self.wide

    # The walk, from the last binding to the first

    def _sequence(self, seq: SeqExpr) -> None:
        self._needs_wide(seq.body)
        for block in reversed(seq.blocks):
            for binding in reversed(block.bindings):
                self._binding(binding)

    def _binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(value, If):
            self._sequence(value.else_branch)
            self._sequence(value.then_branch)
            self._needs_wide(value)
        elif isinstance(value, Function):
            self._sequence(value.body)
        elif isinstance(binding, VarBinding) and isinstance(value, TupleGetItem):
            self._reads([value.value], self.stores_half(binding.var))
        elif isinstance(binding, VarBinding) and isinstance(value, Call):
            self._call(binding.var, value)
        else:
            self._needs_wide(value)

    def _call(self, var: Var, call: Call) -> None:
        found = precision_of(call)
        named = None if found is None else changing(call, found[0], var.ty, self.context)
        if found is not None and found[0].name == "astype" and call.attrs.get("dtype") == self.half:
            self._reads(call.args, True)
        elif found is None or named is None:
            self._needs_wide(call)
        else:
            precision = found[1]
            inside = [leaf for value in named.values() for leaf in leaves(value)]
            self._reads([leaf for leaf in operands(call) if leaf not in inside], False)
            if precision.policy == Policy.ALWAYS:
                self._reads(inside, True)
            elif precision.reads != Reads.ELEMENTS:
                self._reads(inside, self.stores_half(var))

    def _needs_wide(self, value: Expr) -> None:
        self._reads(operands(value), False)

    def _reads(self, values: Iterable[Expr], half: bool) -> None:
        (self.wanted if half else self.wide).update(leaf for leaf in values if isinstance(leaf, Var))
