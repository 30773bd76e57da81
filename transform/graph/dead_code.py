"""DeadCodeElimination: bindings whose value nothing uses, and private functions that nothing calls, go away.

Only values that are known to be pure go: an operator without a declaration is impure, and so is a `match_cast`, which
is a check. A value that may end with an error stays too, at every level of optimisation: its checks of sizes and
indices are the program's, and types further down may rest on what they establish (`weft.transform.graph.failing`). A
call of an extern function or of an unknown closure stays. One walk backwards over
the bindings decides, so the time is linear in their number.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    IRModule,
    SeqExpr,
    Type,
    Var,
    VarBinding,
    replace,
)
from weft.ir.structure.references import reached_from
from weft.support.records import dataclass
from weft.transform.analysis.purity import is_pure
from weft.transform.graph.failing import CanFail
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import merge_blocks, operands, shape_variables

__all__ = ["DeadCodeElimination", "without_dead_bindings", "without_dead_values"]


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Remove unused pure bindings, and private functions that no public one reaches.

    `entry_functions` names functions that are kept beside the public ones.
    """

    aliases: ClassVar[tuple[str, ...]] = ("dce", "dead-code")
    level: ClassVar[int] = 1
    entry_functions: tuple[str, ...] = ()

    def run(self, module: IRModule) -> IRModule:
        """Remove dead bindings, then functions that nothing reaches."""
        for name in self.entry_functions:
            module[name]
        lean = map_functions(module, lambda name, function: _Sweep(module).function(function))
        return remove_unreachable(lean, self.entry_functions)


def without_dead_bindings(function: Function, module: IRModule) -> Function:
    """The function without pure bindings whose value nothing uses; `module` has the functions that are called."""
    return _Sweep(module).function(function)


def without_dead_values(block: BindingBlock, module: IRModule) -> BindingBlock:
    """The dataflow block without pure bindings that neither its outputs nor what has effects in it need."""
    sweep = _Sweep(module)
    sweep.used.update(binding.var for binding in block.bindings if not isinstance(binding.var, DataflowVar))
    return sweep.block(block)


def remove_unreachable(module: IRModule, entry_functions: tuple[str, ...] = ()) -> IRModule:
    """The module without private functions that no public one (and no entry function) refers to, directly or not."""
    reached = {name for name, function in module.items() if not getattr(function, "private", False)}
    reached = reached_from(module, reached.union(entry_functions))
    return module.with_functions({name: function for name, function in module.items() if name in reached})


class _Sweep:
    """The sweep of one top-level function: `used` holds the variables that something below needs."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.can_fail = CanFail(module)
        self.used: set[Var] = set()

    def function(self, function: Function) -> Function:
        bindings = (item for block in function.body.blocks for item in block.bindings)
        self.can_fail.local.update((item.var, item.value) for item in bindings if isinstance(item.value, Function))
        self.use_type(function.ret_type)
        for param in function.params:
            self.use_type(param.ty)
        return replace(function, body=self.sequence(function.body))

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        self.use(seq.body)
        blocks = [self.block(block) for block in reversed(seq.blocks)][::-1]
        if all(a is b for a, b in zip(blocks, seq.blocks, strict=True)):
            return seq
        return replace(seq, blocks=merge_blocks(blocks))

    def block(self, block: BindingBlock) -> BindingBlock:
        kept = [new for binding in reversed(block.bindings) if (new := self.binding(binding)) is not None][::-1]
        same = len(kept) == len(block.bindings) and all(a is b for a, b in zip(kept, block.bindings, strict=True))
        return block if same else replace(block, bindings=tuple(kept))

    def binding(self, binding: Binding) -> Binding | None:
        value = binding.value
        if isinstance(binding, VarBinding):
            if binding.var not in self.used and is_pure(value, self.module) and not self.can_fail(value):
                return None
            if isinstance(value, If):
                else_branch, then_branch = self.sequence(value.else_branch), self.sequence(value.then_branch)
                value = replace(value, then_branch=then_branch, else_branch=else_branch)
            elif isinstance(value, Function):
                value = self.function(value)
        else:
            self.use_type(binding.ty)
        self.use_type(binding.var.ty)
        self.use(value)
        return replace(binding, value=value)

    def use(self, value: Expr) -> None:
        self.used.update(leaf for leaf in operands(value) if isinstance(leaf, Var))
        for ty in getattr(value, "ty_args", ()):
            self.use_type(ty)

    def use_type(self, ty: Type) -> None:
        self.used.update(shape_variables(ty))
