"""ToNonDataflow: dataflow blocks become plain binding blocks, and dataflow variables plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.errors import Span
from weft.ir import Binding, BindingBlock, DataflowBlock, DataflowVar, Function, IRModule, Type, Var, replace
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import FunctionRewriter

__all__ = ["PlainBlocks", "ToNonDataflow"]


@dataclass(frozen=True)
class ToNonDataflow(FunctionPass):
    """Turn every dataflow block into a plain block; neighbouring plain blocks are joined."""

    aliases: ClassVar[tuple[str, ...]] = ("non-dataflow",)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function without dataflow blocks."""
        return PlainBlocks().run(function)


class PlainBlocks(FunctionRewriter):
    """A rewriter whose blocks and variables are all plain."""

    changes_blocks = True

    def plain(self, block: BindingBlock) -> BindingBlock:
        """One block alone: nothing outside uses its dataflow variables."""
        return self._block(block)

    def fresh(self, name: str, ty: Type, span: Span | None = None) -> Var:
        """A new plain variable."""
        return Var(name, ty, span=span)

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        """The binding with a plain variable."""
        var = binding.var
        if not isinstance(var, DataflowVar):
            return binding
        plain = self.replaced[var] = Var(var.name, self.map_type(var.ty), span=var.span)
        return replace(binding, var=plain)

    def rewrite_block(self, block: BindingBlock, bindings: tuple[Binding, ...]) -> BindingBlock:
        """A plain block."""
        if isinstance(block, DataflowBlock):
            return BindingBlock(bindings, span=block.span)
        return super().rewrite_block(block, bindings)
