"""ConvertToDataflow: runs of pure bindings in plain blocks become dataflow blocks.

A run is a longest sequence of neighbouring bindings whose values are known to be pure, without conditionals and local
functions. Its variables that nothing outside the run uses become dataflow variables; the others are its outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Annotated

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    IRModule,
    MatchCast,
    SeqExpr,
    Var,
    replace,
)
from weft.support.records import dataclass
from weft.transform.analysis.purity import is_pure
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.options import AtLeast
from weft.transform.infra.rewriting import FunctionRewriter, operands, shape_variables

__all__ = ["ConvertToDataflow"]


@dataclass(frozen=True)
class ConvertToDataflow(FunctionPass):
    """Put runs of at least `min_size` pure bindings into dataflow blocks.

    Raises: PassError W502 for a `min_size` below 1.
    """

    min_size: Annotated[int, AtLeast(1)] = 2

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function with dataflow blocks."""
        runs = _Runs(module, self.min_size)
        runs.sequence(function.body)
        return _Converter(runs).run(function) if runs.inner else function


class _Runs:
    """The runs of a function: which bindings are in one (`inner`), and which variables are used outside their own."""

    def __init__(self, module: IRModule, min_size: int) -> None:
        self.module = module
        self.min_size = min_size
        self.inner: dict[Var, int] = {}
        self.outputs: set[Var] = set()
        self.count = 0

    def parts(self, block: BindingBlock) -> list[tuple[bool, tuple[Binding, ...]]]:
        """The block in parts: (whether it is a run, bindings)."""
        groups = [(pure, tuple(group)) for pure, group in itertools.groupby(block.bindings, self.is_inner)]
        return [(pure and len(group) >= self.min_size, group) for pure, group in groups]

    def is_inner(self, binding: Binding) -> bool:
        """Whether a binding may stand in a dataflow block."""
        return not isinstance(binding.value, (If, Function)) and is_pure(binding.value, self.module)

    def sequence(self, seq: SeqExpr) -> None:
        """Find the runs of a body or branch."""
        for block in seq.blocks:
            if isinstance(block, DataflowBlock):
                self.see(block.bindings, run=0)
                continue
            for is_run, bindings in self.parts(block):
                self.count += is_run
                self.see(bindings, self.count if is_run else 0)
        self.use(operands(seq.body), 0)

    def see(self, bindings: tuple[Binding, ...], run: int) -> None:
        for binding in bindings:
            value = binding.value
            types = [binding.var.ty, *(value.ty_args if isinstance(value, Call) else ())]
            if isinstance(binding, MatchCast):
                types.append(binding.ty)
            self.use((*operands(value), *(var for ty in types for var in shape_variables(ty))), run)
            if isinstance(value, If):
                self.sequence(value.then_branch)
                self.sequence(value.else_branch)
            elif isinstance(value, Function):
                self.sequence(value.body)
            if run:
                self.inner[binding.var] = run

    def use(self, leaves: Iterable[Expr], run: int) -> None:
        for leaf in leaves:
            if isinstance(leaf, Var) and self.inner.get(leaf, run) != run:
                self.outputs.add(leaf)


class _Converter(FunctionRewriter):
    def __init__(self, runs: _Runs) -> None:
        super().__init__()
        self.runs = runs

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or branch with its plain blocks split into runs and the rest."""
        blocks: list[BindingBlock] = []
        for block in seq.blocks:
            parts = [(False, block.bindings)] if isinstance(block, DataflowBlock) else self.runs.parts(block)
            if not any(is_run for is_run, _ in parts):
                blocks.append(block)
                continue
            for is_run, bindings in parts:
                blocks.append((DataflowBlock if is_run else BindingBlock)(bindings, span=block.span))
        same = all(a is b for a, b in zip(blocks, seq.blocks, strict=False))
        return super().sequence(seq if same else replace(seq, blocks=tuple(blocks)))

    def rewrite_binding(self, binding: Binding) -> Binding:
        var = binding.var
        if var not in self.runs.inner or var in self.runs.outputs:
            return binding
        new = self.replaced[var] = DataflowVar(var.name, var.ty, span=var.span)
        return replace(binding, var=new)
