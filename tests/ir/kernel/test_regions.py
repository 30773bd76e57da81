"""The boxes of buffers that code touches."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.ir.interpret import interpret
from weft.ir.kernel.prim import as_expr
from weft.ir.kernel.regions import Bounds, accesses, block_accesses
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    MatchBufferRegion,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    SeqStmt,
    Stmt,
)

A, B, C = Buffer("A", (16, 16)), Buffer("B", (16, 16)), Buffer("C", (16, 16))


def load(buffer: Buffer, *indices: Any) -> BufferLoad:
    return BufferLoad(buffer, tuple(as_expr(index) for index in indices))


def store(buffer: Buffer, value: Any, *indices: Any) -> BufferStore:
    return BufferStore(buffer, as_expr(value), tuple(as_expr(index) for index in indices))


def text(extent: Extent) -> str:
    return str(Bounds().of(extent).low) if not isinstance(extent, int) else str(extent)  # type: ignore[union-attr]


def shown(regions: tuple[BufferRegion, ...]) -> dict[str, list[str]]:
    return {r.buffer.name: [f"{text(part.start)}+{text(part.extent)}" for part in r.region] for r in regions}


def test_indices_of_a_block_are_points() -> None:
    i, j, k = PrimVar("i"), PrimVar("j"), PrimVar("k")
    body = store(C, load(C, i, j) + load(A, i, k) * load(B, k, j), i, j)
    reads, writes = block_accesses(Block("matmul", body, init=store(C, 0.0, i, j)))
    assert shown(reads) == {"A": ["i+1", "k+1"], "B": ["k+1", "j+1"]}
    assert shown(writes) == {"C": ["i+1", "j+1"]}


def test_without_init_an_update_reads_its_output() -> None:
    i, j = PrimVar("i"), PrimVar("j")
    reads, _ = block_accesses(Block("sum", store(C, load(C, i, j) + 1.0, i, j)))
    assert shown(reads) == {"C": ["i+1", "j+1"]}


def test_inner_loops_run_over_their_range() -> None:
    v, i, j = PrimVar("v"), PrimVar("i"), PrimVar("j")
    body = For(i, 0, 4, For(j, 2, 3, store(C, load(A, v * 4 + i, j), i, 0)))
    reads, writes = block_accesses(Block("b", body))
    assert shown(reads) == {"A": ["4 * v+4", "2+3"]}
    assert shown(writes) == {"C": ["0+4", "0+1"]}


def test_variables_of_one_loop_do_not_reach_their_ends_apart() -> None:
    """`v` and `w` are both `i`: v - w is 0, and its bounds are none that the code reaches."""
    i, v, w = PrimVar("i"), PrimVar("v"), PrimVar("w")
    items = (IterVar(v, 0, 4, "spatial", i), IterVar(w, 0, 4, "spatial", i))
    for index, exact in ((v - w, False), (v - i, False), (v + 1, True)):
        loop = For(i, 0, 4, Block("b", store(C, 0.0, index, 0), items))
        (found,) = accesses(loop)
        assert found.intervals[0] is not None
        assert found.intervals[0].exact is exact


def test_several_accesses_give_the_box_around_them() -> None:
    v = PrimVar("v")
    body = store(C, load(A, v, 3) + load(A, v + 2, 1), v, v)
    assert shown(block_accesses(Block("b", body))[0]) == {"A": ["v+3", "1+3"]}


def test_what_cannot_be_bounded_is_the_whole_dimension() -> None:
    index, v = Buffer("index", (16,), "int32"), PrimVar("v")
    body = store(C, load(A, load(index, v), v), v, v)
    assert shown(block_accesses(Block("b", body))[0]) == {"A": ["0+16", "v+1"], "index": ["v+1"]}


def test_local_buffers_are_left_out_and_matched_ones_stand_for_their_source() -> None:
    v, i = PrimVar("v"), PrimVar("i")
    local, tile = Buffer("local", (4,)), Buffer("tile", (4,))
    region = BufferRegion(C, (Range(v, 1), Range(0, 4)))
    body = SeqStmt((AllocBuffer(local), For(i, 0, 4, SeqStmt((store(local, 1.0, i), store(tile, load(local, i), i))))))
    reads, writes = block_accesses(Block("b", body, match_buffers=(MatchBufferRegion(tile, region),)))
    assert shown(reads) == {}
    assert shown(writes) == {"C": ["v+1", "0+4"]}


def test_an_inner_block_counts_with_its_bindings() -> None:
    i, v, o = PrimVar("i"), PrimVar("v"), PrimVar("o")
    inner = Block("inner", store(C, 0.0, v, 0), (IterVar(v, 0, 16, "spatial", o * 4 + i),))
    assert shown(block_accesses(Block("outer", For(i, 0, 4, inner)))[1]) == {"C": ["4 * o+4", "0+1"]}


def test_a_vector_access_covers_its_lanes() -> None:
    i = PrimVar("i")
    body = store(C, BufferLoad(A, (i, Ramp(i * 4, IntImm(1), 4))), i, 0)
    assert shown(block_accesses(Block("b", body))[0]) == {"A": ["i+1", "4 * i+4"]}


def test_accesses_under_a_condition_are_not_certain() -> None:
    i = PrimVar("i")
    body: Stmt = IfThenElse(i < 3, store(C, load(A, i, 0), i, 0))
    assert [access.certain for access in accesses(body)] == [False, False]


@given(st.integers(0, 5), st.integers(1, 4), st.integers(-3, 3), st.integers(0, 9), st.integers(1, 5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_region_is_never_too_small(
    start: int, extent: int, factor: int, shift: int, divisor: int, modulo: bool
) -> None:
    """What the interpreter writes lies in the derived region."""
    i, out = PrimVar("i", "int64"), Buffer("out", (64,))
    index = (i * factor + shift + 24) % divisor if modulo else (i * factor + shift + 24) // divisor
    body = For(i, start, extent, store(out, load(out, index) + 1.0, index))
    part = block_accesses(Block("b", body))[1][0].region[0]
    array = np.zeros(64, "float32")
    interpret(PrimFunc((out,), body))(array)
    touched = np.flatnonzero(array)
    assert isinstance(part.start, int)
    assert isinstance(part.extent, int)
    assert part.start <= touched.min()
    assert touched.max() < part.start + part.extent
