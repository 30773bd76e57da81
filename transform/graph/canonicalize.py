"""CanonicalizeBindings: bindings that only rename, re-check or repack.

    y = x                        uses of y become x; in a dataflow block whose output y is, x takes the place of y
    y = match_cast(x, ty)        the same, when the type of x is ty
    t = (a, b); y = t[0]         y = a, and so on as above
    p = t[0]; q = t[1]; (p, q)   t

A binding whose type differs from that of its value stays: where it says more it is a claim, and where it says less the
code after it was checked with less (what would be refuted with more must still be left to run time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    IRModule,
    MatchCast,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    VarBinding,
    replace,
)
from weft.transform.analysis.value_numbering import same_type
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["CanonicalizeBindings"]


@dataclass(frozen=True)
class CanonicalizeBindings(FunctionPass):
    """Remove bindings that only rename a value, casts that cannot fail, and fields of known tuples."""

    aliases: ClassVar[tuple[str, ...]] = ("canonicalize",)
    level: ClassVar[int] = 1

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function without them."""
        return _Canonical().run(function)


class _Canonical(FunctionRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.tuples: dict[Var, tuple[Expr, ...]] = {}
        self.items: dict[Var, tuple[Var, int]] = {}
        self.local: list[Var] = []  # variables of this dataflow block whose entries above may name dataflow variables

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        value = self.simplified(binding.value)
        if isinstance(binding, MatchCast):
            if not isinstance(value, Var) or not same_type(binding.ty, value.ty):
                return replace(binding, value=value)
            binding = VarBinding(binding.var, value, span=binding.span)
        if self.in_dataflow:
            self.local.append(binding.var)
        if isinstance(value, Tuple):
            self.tuples[binding.var] = value.fields
        elif isinstance(value, TupleGetItem) and isinstance(value.value, Var):
            self.items[binding.var] = (value.value, value.index)
        elif isinstance(value, Var) and same_type(binding.var.ty, value.ty):
            if isinstance(binding.var, DataflowVar) or not isinstance(value, DataflowVar):
                self.replaced[binding.var] = value
                return ()
        return replace(binding, value=value)

    def simplified(self, value: Expr) -> Expr:
        """A field of a known tuple, or a tuple of all fields of one variable, as the shorter thing."""
        if isinstance(value, TupleGetItem) and isinstance(value.value, Tuple):
            return value.value.fields[value.index]
        if isinstance(value, TupleGetItem) and isinstance(value.value, Var) and value.value in self.tuples:
            return self.tuples[value.value][value.index]
        if isinstance(value, Tuple) and value.fields:
            origins = [self.items.get(field) if isinstance(field, Var) else None for field in value.fields]
            first = origins[0]
            if first is not None and origins == [(first[0], index) for index in range(len(origins))]:
                whole = first[0]
                if isinstance(whole.ty, TupleType) and len(whole.ty.fields) == len(origins):
                    return whole
        return value

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """The block; in a dataflow block, an output that renames an inner variable takes its place."""
        if isinstance(block, DataflowBlock):
            bindings = self.outputs_in_place(bindings)
            for var in self.local:  # what is known of its tuples is not visible after the block
                self.tuples.pop(var, None)
                self.items.pop(var, None)
            self.local.clear()
        return super().rewrite_block(block, bindings)

    changes_blocks = True

    def outputs_in_place(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """The bindings with each inner variable that outputs rename bound as the first of those outputs."""
        own = {binding.var for binding in bindings}
        renamed: dict[Var, Expr] = {}
        kept = []
        for binding in bindings:
            var, value = binding.var, binding.value
            if not isinstance(binding, VarBinding) or not isinstance(value, DataflowVar) or value not in own:
                kept.append(binding)
            elif not same_type(var.ty, value.ty):
                kept.append(binding)
            elif value in renamed:
                renamed[var] = self.replaced[var] = renamed[value]
            else:
                renamed[value] = var
        return tuple(map(_Renamer(renamed).rename, kept)) if renamed else bindings


class _Renamer(FunctionRewriter):
    def __init__(self, renamed: dict[Var, Expr]) -> None:
        super().__init__()
        self.replaced = renamed

    def rename(self, binding: Binding) -> Binding:
        """The binding with its own variable and its operands renamed."""
        new = self.mapped_binding(binding)
        var = self.replaced.get(new.var)
        return replace(new, var=var) if isinstance(var, Var) else new
