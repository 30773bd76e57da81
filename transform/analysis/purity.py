"""Which values are pure: free to be dropped, merged and reordered.

A value is pure when it is known to be: leaves, tuples, projections, local functions (making one does nothing), calls of
operators that are declared pure, calls of functions whose type says pure, and conditionals of pure branches. Everything
else, an unknown operator above all, is impure.
"""

from __future__ import annotations

from weft.errors import ShapeError
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
    PrimFunc,
    SeqExpr,
    Var,
)
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.op import OPS
from weft.ir.tensor import AssertStmt, SeqStmt
from weft.transform.infra.rewriting import bindings_of

__all__ = ["checks_sizes", "gives_fresh_memory", "is_pure"]

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


def checks_sizes(value: Expr, module: IRModule) -> bool:
    """Whether evaluating a pure value compares sizes that are not proved equal: leaving it out would lose an error."""
    if isinstance(value, If):
        branches = (value.then_branch, value.else_branch)
        return any(checks_sizes(binding.value, module) for branch in branches for binding in bindings_of(branch))
    if not isinstance(value, Call):
        return False
    context = TypeContext(module.functions)
    try:
        infer_type(value, context)
    except ShapeError:  # right only after checks further up
        return True
    named = (value.op, *value.args)
    kernels = (module.functions.get(item.name) for item in named if isinstance(item, GlobalVar))
    return bool(context.checks) or any(isinstance(kernel, PrimFunc) and _asserts_sizes(kernel) for kernel in kernels)


def _asserts_sizes(kernel: PrimFunc) -> bool:
    """Whether a kernel begins with checks of sizes that its parameters cannot state."""
    body = kernel.body.stmts if isinstance(kernel.body, SeqStmt) else (kernel.body,)
    return any(isinstance(stmt, AssertStmt) and stmt.kind == "ShapeError" for stmt in body)


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
