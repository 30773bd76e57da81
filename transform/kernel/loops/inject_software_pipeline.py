"""InjectSoftwarePipeline: loops that are annotated with stages work on several iterations at once.

    for i in T.serial(n, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        load(i)                                  load(0)
        compute(i)                        ->     for i in range(n - 1): load(i + 1); compute(i)
                                                 compute(n - 1)

Each part of the body has a stage (how many iterations it is behind the first) and a place in the order of a step, that
of the text by default. Loops are done from the inside out. See `software_pipeline` for what is proved, what gets
versions of its own, and what is refused; `InjectDoubleBuffer` finds the stages by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from weft.errors import PassError
from weft.ir import IRModule, walk
from weft.ir.attrs import PIPELINE_ASYNC, PIPELINE_ORDER, PIPELINE_STAGE
from weft.ir.tensor import For, PrimFunc
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.loops.software_pipeline import of_parts, pipelined
from weft.transform.kernel.scalars.stmt_simplify import simplified

__all__ = ["InjectSoftwarePipeline", "with_loops"]


@dataclass(frozen=True)
class InjectSoftwarePipeline(FunctionPass):
    """Let annotated loops work on several iterations at once."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with pipelines; the same object when no loop is annotated. PassError W590, W591."""
        return with_loops(function, lambda loop: PIPELINE_STAGE in loop.annotations, _pipelined)


def with_loops(
    function: PrimFunc, wanted: Callable[[For], bool], change: Callable[[PrimFunc, For], PrimFunc]
) -> PrimFunc:
    """The function with the wanted loops changed, the innermost first; the same object when there is none."""
    old = function
    while loops := [part for part in walk(function.body) if isinstance(part, For) and wanted(part)]:
        function = change(function, loops[-1])  # what is inside of a loop comes after it
    return old if function is old else simplified(function)


def _pipelined(function: PrimFunc, loop: For) -> PrimFunc:
    stages = loop.annotations[PIPELINE_STAGE]
    if loop.annotations.get(PIPELINE_ASYNC):
        message = f"the loop {loop.loop_var.name!r} has stages that run by themselves, which no target here has"
        hint = f"leave {PIPELINE_ASYNC!r} out: the pipeline is the same one"
        raise PassError(message, code="W590", span=loop.span, hint=hint)
    order = loop.annotations.get(PIPELINE_ORDER, tuple(range(len(stages))))
    return pipelined(function, loop, *of_parts(loop, stages, order))
