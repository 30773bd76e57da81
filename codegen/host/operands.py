"""What the generators of graph functions read from a call: a dtype, lists of values, plain text."""

from __future__ import annotations

from typing import Any

from weft.ir.graph import Call, Expr, StringImm, Tuple, Var
from weft.ir.types import TensorType

__all__ = ["expressions", "plain_text", "stated_dtype"]


def stated_dtype(call: Call, var: Var) -> str:
    """The dtype that a call states, or that of the variable it is bound to."""
    dtype = call.attrs.get("dtype")
    if dtype is None and isinstance(var.ty, TensorType):
        dtype = var.ty.dtype
    return str(getattr(dtype, "value", dtype) or "float32")


def expressions(part: Any) -> tuple[Expr, ...]:
    """An argument that takes several values, as these."""
    if part is None:
        return ()
    return part if isinstance(part, tuple) else tuple(part.fields) if isinstance(part, Tuple) else (part,)


def plain_text(part: Any) -> str:
    """An argument that is text."""
    return part.value if isinstance(part, StringImm) else str(part or "")
