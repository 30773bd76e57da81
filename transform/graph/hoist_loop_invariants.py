"""HoistLoopInvariants: what is the same in every iteration of a loop is computed once, before it.

    def body(i, h):                       w1 = R.permute_dims(w)
        w1 = R.permute_dims(w)            def body(i, h):
        return (R.matmul(h, w1),)             return (R.matmul(h, w1),)
    s = R.loop(body, (x,), ...)           s = R.loop(body, (x,), ...)

A binding moves when its value is pure, cannot fail, and uses nothing that the iteration binds: neither its parameters
nor symbols that these define. A loop without iterations then computes it in vain. Bodies that are used other
than by one loop, and bindings in dataflow blocks, stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.ir import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Expr,
    Function,
    IRModule,
    Op,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    replace,
    walk,
)
from weft.ir.deduction.subtyping import type_symbols
from weft.ir.op import get_op
from weft.support.records import dataclass
from weft.transform.analysis.free_symbols import symbols_of
from weft.transform.analysis.purity import gives_fresh_memory, is_pure
from weft.transform.graph.failing import CanFail
from weft.transform.infra.base import Pass, map_functions
from weft.transform.infra.rewriting import FunctionRewriter, merge_blocks, operands

__all__ = ["HoistLoopInvariants"]


@dataclass(frozen=True)
class HoistLoopInvariants(Pass):
    """Compute what the iterations of a loop share once, before the loop.

    >>> from weft.ir import IRModule
    >>> HoistLoopInvariants()(IRModule({})).functions
    FrozenMap({})
    """

    aliases: ClassVar[tuple[str, ...]] = ("hoist-loop-invariants",)

    def run(self, module: IRModule) -> IRModule:
        """Hoist in every graph function; inner loops first, so that a value may leave several."""
        return map_functions(module, lambda name, function: self._function(function, module))

    def _function(self, function: Function, module: IRModule) -> Function:
        bodies = _bodies(function)
        return _Hoister(module, bodies).run(function) if bodies else function


def _bodies(function: Function) -> set[Var]:
    """The variables of local functions that are the body of one loop and nothing else."""
    uses: dict[Var, int] = {}
    bodies: set[Var] = set()
    for node in walk(function):
        if isinstance(node, VarBinding):
            for leaf in operands(node.value):
                if isinstance(leaf, Var):
                    uses[leaf] = uses.get(leaf, 0) + 1
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "loop":
            body = get_op("loop").values(node)["body"]
            if isinstance(body, Var):
                bodies.add(body)
    return {body for body in bodies if uses.get(body) == 1}


class _Hoister(FunctionRewriter):
    def __init__(self, module: IRModule, bodies: set[Var]) -> None:
        super().__init__()
        self.module, self.bodies = module, bodies
        self.can_fail = CanFail(module)

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        if not isinstance(binding, VarBinding) or binding.var not in self.bodies or self.in_dataflow:
            return binding
        body = binding.value
        if not isinstance(body, Function):
            return binding
        moved, rest = self._parted(body)
        if not moved:
            return binding
        return [*moved, replace(binding, value=replace(body, body=rest))]

    def _parted(self, body: Function) -> tuple[list[Binding], SeqExpr]:
        """The bindings that every iteration shares, and the body without them."""
        own = set(body.params)
        symbols = {name for param in body.params for name in type_symbols(param.ty)} - self._outer_symbols(body)
        moved: list[Binding] = []
        blocks: list[BindingBlock] = []
        for block in body.body.blocks:
            kept = []
            for binding in block.bindings:
                if not isinstance(block, DataflowBlock) and self._is_shared(binding, own, symbols):
                    moved.append(binding)
                else:
                    kept.append(binding)
                    own.add(binding.var)
                    symbols |= type_symbols(binding.var.ty) if not isinstance(binding, VarBinding) else set()
            blocks.append(replace(block, bindings=tuple(kept)))
        return moved, replace(body.body, blocks=merge_blocks(blocks))

    @staticmethod
    def _outer_symbols(body: Function) -> set[str]:
        """The symbols that carried values have in common with what is around the loop: those of the result."""
        return type_symbols(body.ret_type)

    def _is_shared(self, binding: Binding, own: set[Var], symbols: set[str]) -> bool:
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, (Call, Tuple, TupleGetItem)):
            return False
        if any(leaf in own for leaf in operands(value) if isinstance(leaf, Var)):
            return False
        if symbols_of(value) & symbols or type_symbols(binding.var.ty) & symbols:
            return False
        if isinstance(value, Call) and (gives_fresh_memory(value) or not _is_operator(value.op)):
            return False
        return is_pure(value, self.module) and not self.can_fail(value)


def _is_operator(callee: Expr) -> bool:
    return isinstance(callee, Op)
