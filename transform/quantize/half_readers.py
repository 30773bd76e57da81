"""Which float32 values of a function only half-precision readers read: `ToMixedPrecision` stores those in half.

    reader                                    reads half
    always                                    yes
    follow                                    if what it gives is read by half readers only
    R.astype(x, half), a field of a tuple     the same
    never, results, calls, conditions, ...    no

Readers come after what they read, so one walk from the last binding to the first decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
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
        self.wide: set[Var] = set()
        self.readers: Counter[Var] = Counter()
        self.elementwise: set[Var] = set()
        self._function(function)

    def only_half(self, var: Var) -> bool:
        """Whether a variable is read, and all that read it read half."""
        return is_wide(var.ty) and var not in self.wide and self.readers[var] > 0

    def stays_in_registers(self, var: Var) -> bool:
        """Whether one elementwise operator reads a variable, and nothing else does."""
        return self.readers[var] == 1 and var in self.elementwise

    # The walk, from the last binding to the first

    def _function(self, function: Function) -> None:
        self._sequence(function.body)

    def _sequence(self, seq: SeqExpr) -> None:
        self._read(seq.body, wide=True)
        for block in reversed(seq.blocks):
            for binding in reversed(block.bindings):
                self._binding(binding)

    def _binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(value, If):
            self._sequence(value.else_branch)
            self._sequence(value.then_branch)
            self._read(value.cond, wide=True)
        elif isinstance(value, Function):
            self._function(value)
        elif isinstance(binding, VarBinding) and isinstance(value, TupleGetItem):
            self._read(value.value, wide=not self.only_half(binding.var))
        elif isinstance(binding, VarBinding) and isinstance(value, Call):
            self._call(binding.var, value)
        else:
            self._read(value, wide=True)

    def _call(self, var: Var, call: Call) -> None:
        found = precision_of(call)
        named = None if found is None else changing(call, found[0], var.ty, self.context)
        if found is not None and found[0].name == "astype" and call.attrs.get("dtype") == self.half:
            self._read(call.args[0], wide=False)
        elif found is None or named is None or found[1].policy == Policy.NEVER:
            self._read(call, wide=True)
        else:
            policy, reads = found[1].policy, found[1].reads
            wide = policy == Policy.FOLLOW and not self.only_half(var)
            inside = {leaf for value in named.values() for leaf in leaves(value)}
            for leaf in operands(call):
                self._leaf(leaf, wide or leaf not in inside)
            if policy == Policy.FOLLOW and reads == Reads.ELEMENTS:
                self.elementwise.update(leaf for leaf in inside if isinstance(leaf, Var))

    def _read(self, value: Expr, wide: bool) -> None:
        for leaf in operands(value):
            self._leaf(leaf, wide)

    def _leaf(self, leaf: Expr, wide: bool) -> None:
        if isinstance(leaf, Var):
            self.readers[leaf] += 1
            if wide:
                self.wide.add(leaf)
