"""Refusals: errors of schedule primitives that underline the loop or block in the text of the module.

W601  no function to schedule               W611  the bindings of a block are not affine
W602  no block of this name                 W612  a buffer is a parameter, or not one that can change
W603  a handle that stands for nothing      W613  readers or writers of a buffer are in the way
W604  a wrong argument                      W614  not everything that is read has been computed
W605  loops are not nested as needed        W615  a condition around or on a block
W606  a loop of another form                W616  an index map that cannot be turned round
W607  the order of accesses matters         W617  code that an intrinsic does not do
W608  iterations share elements             W618  the result would not be well formed
W609  not a complete block                  W619  a trace that does not fit
W610  not a reduction                       W620  a declared box does not hold what is touched
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.errors import ScheduleError
from weft.ir.tensor import Stmt
from weft.support.providers import provider
from weft.transform.schedule.tree import Tree

__all__ = ["failure"]


def failure(
    code: str,
    message: str,
    tree: Tree | None = None,
    stmt: Stmt | None = None,
    *,
    notes: Iterable[str] = (),
    hint: str | None = None,
) -> ScheduleError:
    """The error to raise; its span is the statement in the text of the module as it is at this step."""
    span = None
    if tree is not None and stmt is not None:
        root = tree.function if tree.module is None else tree.module
        span = provider("locate")(root, stmt, f"<schedule of {tree.name}>")
    return ScheduleError(message, code=code, span=span, notes=notes, hint=hint)
