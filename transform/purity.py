"""Which values are pure: free to be dropped, merged and reordered.

A value is pure when it is known to be: leaves, tuples, projections, local functions (making one does nothing), calls of
operators that are declared pure, calls of functions whose type says pure, and conditionals of pure branches. Everything
else, an unknown operator above all, is impure.
"""

from __future__ import annotations

from weft.ir import (
    Call,
    Expr,
    ExternFunc,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    MatchCast,
    Op,
    SeqExpr,
    Var,
)
from weft.ir.op import OPS
from weft.transform.rewriting import bindings_of

__all__ = ["gives_fresh_memory", "is_pure"]

# Each of these gives memory of its own, so two equal calls are not one value.
_FRESH = {"builtin.alloc_tensor", "memory.alloc_storage", "memory.alloc_tensor", "vm.alloc_storage", "vm.alloc_tensor"}


def gives_fresh_memory(call: Call) -> bool:
    """Whether each call gives memory of its own: droppable when unused, but never merged or known beforehand."""
    return isinstance(call.op, Op) and call.op.name in _FRESH


def is_pure(value: Expr, module: IRModule) -> bool:
    """Whether evaluating the value has no effect and cannot be told from not evaluating it."""
    if isinstance(value, Call):
        return _is_pure_callee(value.op, module)
    if isinstance(value, If):
        return _is_pure_sequence(value.then_branch, module) and _is_pure_sequence(value.else_branch, module)
    if isinstance(value, SeqExpr):
        return _is_pure_sequence(value, module)
    return True


def _is_pure_sequence(seq: SeqExpr, module: IRModule) -> bool:
    # A match_cast is a check: dropping it would drop an error.
    return all(not isinstance(binding, MatchCast) and is_pure(binding.value, module) for binding in bindings_of(seq))


def _is_pure_callee(callee: Expr, module: IRModule) -> bool:
    if isinstance(callee, Op):
        definition = OPS.get(callee.name)
        return definition is not None and definition.pure
    if isinstance(callee, GlobalVar):
        function = module.functions.get(callee.name)
        return isinstance(function, Function) and function.pure
    ty = callee.ty if isinstance(callee, (Var, ExternFunc)) else None
    return isinstance(ty, FuncType) and ty.pure
