"""The executor `native`: every graph function becomes one machine-code entry, nothing of Python between kernels."""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.backends.base import Plan, back_end_of
from weft.ir.module import IRModule
from weft.runtime.executable import Program

__all__ = ["native"]


def native(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    """Machine code of graph functions and kernels, by the back end that drives."""
    return back_end_of(plan.parts[plan.driver]).machine_code(module, plan, owner)
