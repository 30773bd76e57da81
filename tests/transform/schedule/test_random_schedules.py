"""Random steps on many kernels: each one applies and keeps the meaning, or is refused by a ScheduleError."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.workloads import KERNELS, check

from weft import ScheduleError
from weft.transform.schedule import Schedule

LOOP_STEPS = ("split", "fuse", "reorder", "merge", "loop_partition", "parallel", "vectorize", "unroll", "add_unit_loop")
BLOCK_STEPS = (
    "compute_inline",
    "reverse_compute_inline",
    "compute_at",
    "reverse_compute_at",
    "cache_read",
    "cache_write",
    "reindex",
    "decompose_reduction",
    "rfactor",
    "transform_layout",
    "transform_block_layout",
    "blockize",
    "storage_align",
    "read_at",
    "write_at",
    "cache_inplace",
    "compact_buffer",
    "rolling_buffer",
    "cache_index",
    "fuse_reduction_epilogue",
    "bind",
    "sample_perfect_tile",
    "sample_compute_location",
)
FACTORS = ([None, 2], [None, 4], [3, None], [None, 5], [2, None, 2])
MAPS = {
    1: (lambda i: (i // 3, i % 3), lambda i: (i * 2 + 1,)),
    2: (lambda i, j: (j, i), lambda i, j: (i // 4, j, i % 4), lambda i, j: (i * 11 + j,)),
    3: (lambda i, j, k: (j, k, i), lambda i, j, k: (i // 2, k // 4, j, k % 4, i % 2)),
}


def step(sch: Schedule, draw: Any, kinds: tuple[str, ...]) -> None:
    """One random step; ScheduleError when it does not apply."""
    pick = lambda items: draw(st.sampled_from(list(items)))
    kind = pick(kinds)
    blocks = [sch.get_block(name) for name in sch._tree("kernel").blocks]
    block, other = pick(blocks), pick(blocks)
    loops, far = sch.get_loops(block), sch.get_loops(other)
    if kind in ("compute_inline", "reverse_compute_inline"):
        getattr(sch, kind)(block)
    elif kind in ("compute_at", "reverse_compute_at") and far:
        getattr(sch, kind)(block, pick(far))
    elif kind == "cache_read":
        sch.cache_read(block, pick((0, 1)), "global")
    elif kind == "cache_write":
        sch.cache_write(block, 0, "local")
    elif kind == "reindex":
        sch.reindex(block, pick((("read", 0), ("read", 1), ("write", 0))))
    elif kind in ("read_at", "write_at") and loops:
        getattr(sch, kind)(pick(loops), block, 0, "local")
    elif kind == "cache_inplace":
        sch.cache_inplace(block, 0, "local")
    elif kind in ("compact_buffer", "rolling_buffer"):
        getattr(sch, kind)(block, 0)
    elif kind == "cache_index":
        sch.cache_index(block, "global", pick((0, 1)))
    elif kind == "fuse_reduction_epilogue":
        sch.fuse_reduction_epilogue(block, other)
    elif kind == "bind" and loops:
        sch.bind(pick(loops), "threadIdx.x")
    elif kind == "storage_align":
        sch.storage_align(block, 0, pick((0, -1)), 16, 1)
    elif kind == "transform_layout":
        local = [b for b in ("B", "C", "E", "P", "S", "M") if b in sch._tree("kernel").blocks]
        if local:
            sch.transform_layout(block, pick(local), pick(MAPS[pick((1, 2))]))
    elif kind == "transform_block_layout":
        count = len(sch.get(block).iter_vars)  # type: ignore[union-attr]
        sch.transform_block_layout(block, pick(MAPS.get(count, MAPS[2])))
    elif kind == "sample_compute_location":
        sch.compute_at(block, sch.sample_compute_location(block))
    elif not loops:
        return
    elif kind == "split":
        sch.split(pick(loops), pick(FACTORS))
    elif kind == "fuse":
        start = pick(range(len(loops)))
        sch.fuse(*loops[start : start + 2])
    elif kind == "reorder":
        sch.reorder(*draw(st.permutations(loops)))
    elif kind == "merge" and far:
        sch.merge(pick(loops), pick(far))
    elif kind == "loop_partition":
        sch.loop_partition(pick(loops), pick(([2, None], [None, 3], [1, None, 1])))
    elif kind == "sample_perfect_tile":
        loop = pick(loops)
        sch.split(loop, sch.sample_perfect_tile(loop, 2, 8))
    elif kind in ("decompose_reduction",):
        sch.decompose_reduction(block, pick(loops))
    elif kind == "rfactor":
        sch.rfactor(pick(loops), pick((0, -1)))
    elif kind in PLAIN:
        getattr(sch, kind)(pick(loops))


PLAIN = ("parallel", "vectorize", "unroll", "add_unit_loop", "blockize")


@pytest.mark.parametrize("kinds", [LOOP_STEPS, (*LOOP_STEPS, *BLOCK_STEPS)], ids=["loops", "all"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_random_steps_keep_the_meaning(data: st.DataObject, kinds: tuple[str, ...]) -> None:
    function = KERNELS[data.draw(st.sampled_from(sorted(KERNELS)))]()
    sch = Schedule(function, seed=data.draw(st.integers(0, 99)))
    refusals: list[ScheduleError] = []
    for _ in range(data.draw(st.integers(1, 6))):
        try:
            step(sch, data.draw, kinds)
        except ScheduleError as error:
            refusals.append(error)
    # A step knows itself when it does not apply: the verifier need not tell.
    assert not [str(error) for error in refusals if error.code == "W618"]
    sizes: tuple[dict[str, int], ...] = ({}, {"n": 1, "m": 1, "k": 1}, {"n": 3, "m": 5, "k": 0})
    check(function, sch, *sizes, compiled=data.draw(st.integers(0, 3)) == 0)
