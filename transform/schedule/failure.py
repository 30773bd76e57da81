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

_REMEDIES: dict[str, str] = {
    "W603": "sch.get_block and sch.get_loops give handles for what is there now",
    "W605": "compute_at, reorder and merge bring blocks and loops next to one another; blockize puts them in one scope",
    "W606": "a serial loop from 0 in steps of 1, without annotations, whose range depends on no loop of the step",
    "W607": "the step with loops that share no elements, or before a sum is decomposed; rfactor takes it apart",
    "W608": "a loop that shares nothing: of a result rather than of a sum, or a sum that rfactor takes apart",
    "W609": "a block of one store to elements of its own; decompose_reduction takes a sum's init apart",
    "W610": "an init with a value that changes nothing, and one update of the element (x + y, x * y, min, max)",
    "W611": "the step before loops are split, fused or bound so that they leave values of the block out",
    "W612": "cache_read or cache_write first: a buffer of the function's own may change",
    "W613": "the step before other blocks are moved there; compute_at or cache_read them first",
    "W614": "a loop in one iteration of which all is computed that it reads: compute_at the producer there",
    "W615": "the step before loops are split into parts that are not full, or loop_partition, which needs no condition",
    "W616": "indices that are variables, or all digits of one (i // 4 and i % 4)",
    "W617": "the loops and buffers of the intrinsic's description, in its order: reorder, cache_read, cache_write",
    "W619": "trace.to_json() of a schedule of the same blocks, unchanged",
    "W620": "a larger box, or all of the buffer",
}
"""What would make a step legal, where the refusal itself knows nothing closer."""


def failure(
    code: str,
    message: str,
    tree: Tree | None = None,
    stmt: Stmt | None = None,
    *,
    notes: Iterable[str] = (),
    hint: str | None = None,
) -> ScheduleError:
    """The error to raise; its span is the statement in the text of the module as it is at this step.

    It says what would make the step legal: the hint, or else what does so for its kind of refusal.
    """
    span = None
    if tree is not None and stmt is not None:
        root = tree.function if tree.module is None else tree.module
        span = provider("locate")(root, stmt, f"<schedule of {tree.name}>")
    return ScheduleError(message, code=code, span=span, notes=notes, hint=hint or _REMEDIES.get(code))
