"""What the generators of graph functions read from a call: a dtype, lists of values, plain text."""

from __future__ import annotations

from typing import Any

from weft.codegen.host.program import Operation
from weft.errors import TargetError
from weft.ir.graph import Call, Expr, StringImm, Tuple, Var
from weft.ir.types import TensorType

__all__ = ["expressions", "no_kernel", "plain_text", "stated_dtype"]


def stated_dtype(call: Call, var: Var) -> str:
    """The dtype that a call states, or that of the variable it is bound to."""
    dtype = call.attrs.get("dtype")
    if dtype is None and isinstance(var.ty, TensorType):
        dtype = var.ty.dtype
    return str(getattr(dtype, "value", dtype) or "float32")


def no_kernel(executor: str, step: Operation, function: str) -> TargetError:
    """TargetError W745 for an operator that an executor has no rule for."""
    return TargetError(
        f"{executor}: R.{step.name} has no kernel in {function}",
        code="W745",
        span=step.span,
        hint="run weft.transform.LegalizeOps() before; where a shape is unknown, name it with R.match_cast",
    )


def expressions(part: Any) -> tuple[Expr, ...]:
    """An argument that takes several values, as these."""
    if part is None:
        return ()
    return part if isinstance(part, tuple) else tuple(part.fields) if isinstance(part, Tuple) else (part,)


def plain_text(part: Any) -> str:
    """An argument that is text."""
    return part.value if isinstance(part, StringImm) else str(part or "")
