"""EliminateCommonSubexpr: a pure value that was computed before is not computed again.

A value is found again where its first variable is visible: in the rest of its block and what follows (for a dataflow
variable, the rest of its dataflow block), branches inside included; a local function starts afresh. Impure and unknown
values, fresh memory, conditionals and local functions are never merged.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    IRModule,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    replace,
)
from weft.support.records import dataclass
from weft.transform.analysis.purity import gives_fresh_memory, is_pure
from weft.transform.analysis.value_numbering import expr_key, same_type
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["EliminateCommonSubexpr"]


@dataclass(frozen=True)
class EliminateCommonSubexpr(FunctionPass):
    """Merge equal pure values; with `call_only`, calls only (not tuples and their fields)."""

    aliases: ClassVar[tuple[str, ...]] = ("cse", "eliminate-common-subexpressions")
    level: ClassVar[int] = 1
    call_only: bool = False

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with each pure value computed once."""
        return _Merge(module, self.call_only).run(function)


class _Merge(FunctionRewriter):
    def __init__(self, module: IRModule, call_only: bool) -> None:
        super().__init__()
        self.module = module
        self.kinds = (Call,) if call_only else (Call, Tuple, TupleGetItem)
        self.available: dict[Hashable, Var] = {}
        self.added: list[Hashable] = []

    def run(self, function: Function) -> Function:
        """A function; a local one starts afresh, so that merging never adds to what it captures."""
        outer = self.available, self.added
        self.available, self.added = {}, []
        new = super().run(function)
        self.available, self.added = outer
        return new

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or branch: what it computes is not available after it."""
        before = len(self.added)
        new = super().sequence(seq)
        self._forget(before, everything=True)
        return new

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """A block: after a dataflow block only its outputs are available."""
        if isinstance(block, DataflowBlock):
            self._forget(0, everything=False)
        return super().rewrite_block(block, bindings)

    changes_blocks = True

    def _forget(self, start: int, everything: bool) -> None:
        kept = []
        for key in self.added[start:]:
            if everything or isinstance(self.available[key], DataflowVar):
                del self.available[key]
            else:
                kept.append(key)
        self.added[start:] = kept

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        if not isinstance(binding, VarBinding) or not self._mergeable(binding.value):
            return binding
        key = expr_key(binding.value)
        if key is None:
            return binding
        first = self.available.get(key)
        if first is None:
            self.available[key] = binding.var
            self.added.append(key)
            return binding
        if not same_type(binding.var.ty, first.ty):
            return binding
        if isinstance(first, DataflowVar) and not isinstance(binding.var, DataflowVar):
            return replace(binding, value=first)
        self.replaced[binding.var] = first
        return ()

    def _mergeable(self, value: Expr) -> bool:
        if not isinstance(value, self.kinds):
            return False
        if isinstance(value, Call) and gives_fresh_memory(value):
            return False
        return is_pure(value, self.module)
