"""Schedules: user-callable steps that change loops and blocks and keep what they compute.

    core, trace, handles        the state of a schedule; its steps as data; what stands for blocks and loops
    tree, points, affine,       functions as trees; expressions as dimensions; bindings as numbers of loops;
    dependence, copies, rebuild   what may run in another order; what primitives share
    one file per family         queries, loops, marks, ...

`Schedule` has all primitives as methods; `register_primitive` adds one from outside.
"""

from __future__ import annotations

from weft.transform.kernel.scheduled import SCHEDULED
from weft.transform.schedule.core import register_primitive
from weft.transform.schedule.handles import BlockRV, ExprRV, Handle, LoopRV
from weft.transform.schedule.primitives.blocks import TensorIntrin
from weft.transform.schedule.schedule import Schedule
from weft.transform.schedule.trace import PRIMITIVES, Instruction, Primitive, Trace

__all__ = [
    "PRIMITIVES", "SCHEDULED", "BlockRV", "ExprRV", "Handle", "Instruction", "LoopRV", "Primitive", "Schedule",
    "TensorIntrin", "Trace", "register_primitive",
]  # fmt: skip
