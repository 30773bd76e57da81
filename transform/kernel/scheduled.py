"""The mark of functions whose loops a schedule has arranged: default rules and fusion leave them as they are."""

from __future__ import annotations

from weft.ir.attrs import SCHEDULED
from weft.ir.tensor import PrimFunc

__all__ = ["SCHEDULED", "is_scheduled"]


def is_scheduled(function: PrimFunc) -> bool:
    """Whether a function's loops are to stay as they are.

    >>> from weft.ir.tensor import SeqStmt
    >>> is_scheduled(PrimFunc((), SeqStmt()).with_attr(SCHEDULED, True))
    True
    """
    return bool(function.attrs.get(SCHEDULED))
