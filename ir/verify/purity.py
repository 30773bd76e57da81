"""Checks of effects: where a function or block promises that it has none.

An operator that is not declared, or not declared pure, has effects; so has a call of an impure function. In the
explicit memory form kernels and library functions are called as statements to write tensors that the function
allocated, and memory is given back: those are not effects that anyone outside can see, but they have no place in a
dataflow block. A function with the attribute `relax.force_pure` says itself that its effects cannot be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from weft.ir.attrs import DPS, FORCE_PURE
from weft.ir.deduction.infer import func_type
from weft.ir.graph import Call, Expr, ExternFunc, Function, GlobalVar, Op, Var
from weft.ir.module import BaseFunc
from weft.ir.tensor import PrimFunc
from weft.ir.types import FuncType
from weft.ir.verify.findings import Report
from weft.ir.verify.sites import sites_of

__all__ = ["check_purity"]


@cache
def _operators() -> Mapping[str, Any]:
    """The declared operators; their families load when a call of one is first looked at."""
    from weft.ir.op import OPS

    return OPS


_MEMORY = ("memory.kill_tensor", "memory.kill_storage", "vm.kill_object", "vm.call_tir_dyn")


def check_purity(function: Function, functions: Mapping[str, BaseFunc], report: Report) -> None:
    """W420 and W421 for a function and those nested in it."""
    if function.attrs.get(FORCE_PURE):  # the author vouches that no effect can be seen
        return
    for site in sites_of(function):
        if site.event != "value" or not isinstance(site.value, Call):
            continue
        report.path = site.binding.var.name if site.binding is not None else ""
        effect = _effect(site.value, functions)
        if effect is None:
            continue
        what, on_memory = effect
        span = site.value.span or (site.binding.span if site.binding is not None else None)
        if site.dataflow:
            report.add(
                "W420",
                f"{what} has effects, and stands in a dataflow block",
                span,
                hint="move it out of the dataflow block",
            )
        elif site.region.function.pure and not on_memory:
            hint = "declare the function with pure=False" if site.region.outer is None else None
            report.add("W421", f"{what} has effects, and {site.region.function.name} is declared pure", span, hint=hint)
    report.path = ""


def _effect(call: Call, functions: Mapping[str, BaseFunc]) -> tuple[str, bool] | None:
    """What has effects in a call, and whether only on memory of the function; None when it has none."""
    callee = call.op
    if isinstance(callee, Op):
        definition = _operators().get(callee.name)
        if definition is None:
            return f"the operator R.{callee.name}, which is not declared,", False
        return None if definition.pure else (f"R.{callee.name}", callee.name in _MEMORY)
    if isinstance(callee, ExternFunc):
        pure = isinstance(callee.ty, FuncType) and callee.ty.pure
        return None if pure else (f"the call of {callee.name!r}", bool(call.attrs.get(DPS)))
    if isinstance(callee, GlobalVar):
        function = functions.get(callee.name)
        if function is None or func_type(function).pure:
            return None
        return f"the call of {callee.name}", isinstance(function, PrimFunc)
    return _variable_effect(callee)


def _variable_effect(callee: Expr) -> tuple[str, bool] | None:
    ty = callee.ty if isinstance(callee, Var) else None
    if isinstance(ty, FuncType) and ty.pure:
        return None
    name = repr(callee.name) if isinstance(callee, Var) else "a value"
    return f"the call of {name}", False
