"""The class that users see: all families of primitives in one.

Sources: Ragan-Kelley et al., Halide, 2013 (the algorithm apart from its schedule); Feng et al., TensorIR, 2023
(blocks).
"""

from __future__ import annotations

from weft.transform.schedule.core import ScheduleCore
from weft.transform.schedule.primitives.annotations import Annotations
from weft.transform.schedule.primitives.blocks import Blocks
from weft.transform.schedule.primitives.buffering import Buffering
from weft.transform.schedule.primitives.caching import Caching
from weft.transform.schedule.primitives.compute_at import ComputeAt
from weft.transform.schedule.primitives.epilogues import Epilogues
from weft.transform.schedule.primitives.index_caching import IndexCaching
from weft.transform.schedule.primitives.inlining import Inlining
from weft.transform.schedule.primitives.layouts import Layouts
from weft.transform.schedule.primitives.loop_kinds import LoopKinds
from weft.transform.schedule.primitives.loop_merging import LoopMerging
from weft.transform.schedule.primitives.loops import LoopPrimitives
from weft.transform.schedule.primitives.padding import Padding
from weft.transform.schedule.primitives.queries import Queries
from weft.transform.schedule.primitives.reductions import Reductions
from weft.transform.schedule.primitives.reindexing import Reindexing
from weft.transform.schedule.primitives.sampling import Sampling
from weft.transform.schedule.primitives.storage import Storage

__all__ = ["Schedule"]


class Schedule(
    Queries,
    LoopPrimitives,
    LoopMerging,
    LoopKinds,
    Inlining,
    ComputeAt,
    Caching,
    Buffering,
    IndexCaching,
    Reindexing,
    Storage,
    Annotations,
    Reductions,
    Epilogues,
    Layouts,
    Padding,
    Blocks,
    Sampling,
):
    """Changes the loops and blocks of a module's tensor functions step by step; each step keeps what they compute.

    `Schedule(module_or_function, seed=None, verify=True)`. The module given stays as it is; `mod` is the new one,
    `trace` what was done. A step that does not apply raises a ScheduleError that underlines the loop or block, and
    changes nothing. `verify=False` leaves out that what each step makes is verified: its conditions are proved anyway.

    >>> from weft.ir import te
    >>> A = te.placeholder((64, 64), name="A")
    >>> B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = Schedule(te.create_prim_func([A, B], "twice"))
    >>> i, j = sch.get_loops(sch.get_block("B"))
    >>> outer, inner = sch.split(j, [None, 16])
    >>> sch.vectorize(inner)
    >>> print(sch.trace)
    def apply(sch):
        b0 = sch.get_block(name='B')
        l0, l1 = sch.get_loops(block=b0)
        l2, l3 = sch.split(loop=l1, factors=[None, 16])
        sch.vectorize(loop=l3)
    """


ScheduleCore.reserved = frozenset(dir(Schedule))
