"""Schedules: user-callable steps that change loops and blocks and keep what they compute.

    core, trace, handles        the state of a schedule; its steps as data; what stands for blocks and loops
    tree, points, affine,       functions as trees; expressions as dimensions; bindings as numbers of loops;
    dependence, copies, rebuild   what may run in another order; what primitives share
    one file per family         queries, loops, marks, ...

`Schedule` has all primitives as methods; `register_primitive` adds one from outside.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.transform.kernel.scheduled import SCHEDULED
    from weft.transform.schedule.core import register_primitive
    from weft.transform.schedule.handles import BlockRV, ExprRV, Handle, LoopRV
    from weft.transform.schedule.primitives.blocks import TensorIntrin
    from weft.transform.schedule.schedule import Schedule
    from weft.transform.schedule.trace import PRIMITIVES, Instruction, Primitive, Trace

__all__ = [
    "PRIMITIVES",
    "SCHEDULED",
    "BlockRV",
    "ExprRV",
    "Handle",
    "Instruction",
    "LoopRV",
    "Primitive",
    "Schedule",
    "TensorIntrin",
    "Trace",
    "register_primitive",
]

_HOMES = {
    "SCHEDULED": "weft.transform.kernel.scheduled",
    "TensorIntrin": "weft.transform.schedule.primitives.blocks",
    "Schedule": "weft.transform.schedule.schedule",
    "register_primitive": "weft.transform.schedule.core",
    **dict.fromkeys(("BlockRV", "ExprRV", "Handle", "LoopRV"), "weft.transform.schedule.handles"),
    **dict.fromkeys(("PRIMITIVES", "Instruction", "Primitive", "Trace"), "weft.transform.schedule.trace"),
}
"""Where each name lives: trees of loops, which analyses read, load no primitive, which read analyses."""


def __getattr__(name: str) -> Any:
    """A name of the package, loaded when it is asked for."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "PRIMITIVES":
        importlib.import_module("weft.transform.schedule.schedule")  # which registers ours
    return getattr(importlib.import_module(home), name)
