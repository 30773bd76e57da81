"""Vectors whose length only the machine knows: `T.vscale()` as a part of a number of lanes."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import dtypes
from weft.errors import DTypeError, TargetError, WeftError
from weft.ir.interpret import interpret
from weft.ir.kernel.prim import lane_count
from weft.ir.module import IRModule
from weft.ir.structure.structural import structural_equal, structural_hash
from weft.ir.tensor import BufferStore, PrimFunc, Ramp, SeqStmt
from weft.ir.verify import verify
from weft.script import parse
from weft.script import tir as T
from weft.transform import (
    CheckBounds,
    DeadCodeElimination,
    HoistScratch,
    LowerVectorLoops,
    ParallelizeOuterLoops,
    ShareMemory,
    TileContractions,
    VectorizeNests,
)

HEAD = '@T.prim_func\ndef f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), n: T.int32):\n'


def function(*lines: str) -> PrimFunc:
    """A function around statements."""
    made = parse(HEAD + "".join(f"    {line}\n" for line in lines))
    assert isinstance(made, PrimFunc)
    return made


def first_store(made: PrimFunc) -> BufferStore:
    """The first statement, a store."""
    stmt = made.body.stmts[0] if isinstance(made.body, SeqStmt) else made.body
    assert isinstance(stmt, BufferStore)
    return stmt


@pytest.mark.parametrize("lanes", ["T.vscale() * 4", "4 * T.vscale()", "T.vscale() * 2 * 2"])
def test_every_spelling_of_a_multiple_of_the_vector_length_is_one_dtype(lanes: str) -> None:
    made = function(f"B[T.Ramp(n, 1, {lanes})] = A[T.Ramp(n, 1, {lanes})]")
    assert first_store(made).value.dtype == "float32xvscalex4"
    assert "B[T.Ramp(n, 1, T.vscale() * 4)] = A[T.Ramp(n, 1, T.vscale() * 4)]" in made.script()


def test_a_slice_of_a_scalable_length_is_a_ramp() -> None:
    sliced = function("B[n : n + T.vscale() * 4] = A[0 : T.vscale() * 4]")
    ramps = function("B[T.Ramp(n, 1, T.vscale() * 4)] = A[T.Ramp(0, 1, T.vscale() * 4)]")
    assert structural_equal(sliced, ramps)
    assert structural_hash(sliced) == structural_hash(ramps)


def test_a_slice_with_a_step_counts_the_elements_that_it_takes() -> None:
    index = first_store(function("B[n : n + T.vscale() * 8 : 2] = T.float32(0)")).indices[0]
    assert isinstance(index, Ramp)
    assert index.lanes == dtypes.Scalable(4)


def test_a_fixed_length_is_another_program() -> None:
    fixed = function("B[T.Ramp(n, 1, 4)] = A[T.Ramp(n, 1, 4)]")
    scalable = function("B[T.Ramp(n, 1, T.vscale() * 4)] = A[T.Ramp(n, 1, T.vscale() * 4)]")
    assert not structural_equal(fixed, scalable)


def test_scalars_are_broadcast_to_scalable_vectors() -> None:
    made = function("B[0 : T.vscale() * 4] = A[0 : T.vscale() * 4] + T.float32(1)")
    assert "+ T.Broadcast(T.float32(1.0), T.vscale() * 4)" in made.script()


def test_the_verifier_finds_lanes_that_do_not_agree() -> None:
    made = function("T.evaluate(T.Cast('float32x4', T.Ramp(n, 1, T.vscale() * 4)))")
    assert [finding.code for finding in verify(made)] == ["W458"]
    made = function("B.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(0, 1, T.vscale() * 4)]))")
    assert [finding.code for finding in verify(made)] == ["W458"]
    assert not verify(function("B[0 : T.vscale() * 4] = A[n : n + T.vscale() * 4]"))


def test_passes_leave_scalable_vectors_as_they_are() -> None:
    made = function("for i in range(4):", "    B[i : i + T.vscale() * 4] = A[i : i + T.vscale() * 4]")
    module = IRModule({"f": made})
    for change in (
        LowerVectorLoops,
        DeadCodeElimination,
        HoistScratch,
        ParallelizeOuterLoops,
        ShareMemory,
        TileContractions,
        VectorizeNests,
    ):
        assert structural_equal(change()(module), module)


def test_bounds_of_scalable_accesses_are_not_checked_and_those_of_others_are() -> None:
    made = function("B[n] = A[0]", "B[n : n + T.vscale() * 4] = A[0 : T.vscale() * 4]")
    changed = CheckBounds()(IRModule({"f": made}))
    text = changed.script()
    assert text.count("assert ") == 1
    assert "B[T.Ramp(n, 1, T.vscale() * 4)] = A[T.Ramp(0, 1, T.vscale() * 4)]" in text
    assert structural_equal(parse(text), changed)


@pytest.mark.parametrize("target", [None, "c"])
def test_compiling_one_names_it_and_its_place(target: str | None) -> None:
    made = function("T.evaluate(0)", "B[0 : T.vscale() * 4] = A[0 : T.vscale() * 4]")
    with pytest.raises(TargetError, match=r"T\.vscale") as caught:
        weft.compile(made, target)
    assert caught.value.code == "W740"
    assert caught.value.span is not None
    assert caught.value.span.line == 4


def test_interpreting_one_names_it() -> None:
    made = function("B[0 : T.vscale() * 4] = A[0 : T.vscale() * 4]")
    with pytest.raises(WeftError, match="float32xvscalex4") as caught:
        interpret(made)(np.zeros(128, "float32"), np.zeros(128, "float32"), 0)
    assert caught.value.code == "W860"


def test_expressions_built_in_python_take_scalable_lanes() -> None:
    assert T.Ramp(0, 1, T.vscale() * 4).dtype == "int32xvscalex4"
    assert T.broadcast(T.float32(1), 2 * T.vscale()).dtype == "float32xvscalex2"
    with pytest.raises(DTypeError) as caught:
        T.Ramp(0, 1, T.vscale() + 4)
    assert caught.value.code == "W301"
    assert lane_count(T.vscale() * 0) is None
    assert lane_count(T.vscale() * T.vscale()) is None


def test_dtypes_of_scalable_vectors() -> None:
    assert dtypes.element("float8_e4m3fnxvscalex4") == "float8_e4m3fn"
    assert dtypes.check_dtype("e4m3_float8xvscalex2") == "float8_e4m3fnxvscalex2"
    assert dtypes.promote("int32xvscalex4", "float32") == "float32xvscalex4"
    assert dtypes.promote("int32xvscalex4", "int32x4") is None
    assert dtypes.with_lanes("bool", dtypes.lanes("int8xvscalex16")) == "boolxvscalex16"
    assert max(1, dtypes.Scalable(1), 64) == dtypes.Scalable(1)
    for wrong in ("float32xvscale", "float32xvscalex", "handlexvscalex4", "vscalex4"):
        with pytest.raises(DTypeError):
            dtypes.check_dtype(wrong)
    with pytest.raises(DTypeError):
        _ = dtypes.Scalable(2) * dtypes.Scalable(2)
