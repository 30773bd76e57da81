"""A binding in place of whose value stand the operators that it is declared by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir import Binding, Call, Expr, MatchCast, Var, VarBinding, replace
from weft.ir.builder import BlockBuilder
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.deduction.subtyping import is_base_of
from weft.transform.infra.rewriting import derived

__all__ = ["as_declared", "written_out"]


def written_out(
    binding: VarBinding, build: Callable[[BlockBuilder], Expr], builder: BlockBuilder, dataflow: bool, origin: str
) -> list[Binding]:
    """The binding with the value that `build` gives, after the bindings that it emits; `origin` is the pass."""
    span = derived(binding.span or binding.value.span, origin)
    with builder.collect(dataflow) as before:
        value = builder.normalize(build(builder))
    new = [replace(item, span=span) for item in before]
    return [*new, replace(binding, value=_at(value, span), span=span)]


def as_declared(bindings: list[Binding], context: TypeContext) -> list[Binding]:
    """The bindings, where the last value's type needs what the operator demands of its operands to be the declared.

    A square matrix of (6, m), transposed, has the type (m, 6): that is (6, m) as far as m is 6, and checked.
    """
    *before, last = bindings
    if not isinstance(last, VarBinding) or last.var.ty is None:
        return bindings
    ty = infer_type(last.value, context)
    if is_base_of(last.var.ty, ty) is True:
        return bindings
    part = Var(last.var.name, ty)
    return [*before, replace(last, var=part), MatchCast(last.var, part, last.var.ty, span=last.span)]


def _at(value: Expr, span: Any) -> Expr:
    return replace(value, span=span) if isinstance(value, Call) else value
