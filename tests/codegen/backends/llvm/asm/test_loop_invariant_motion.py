"""Loop-invariant motion: what may stand before a loop, how far out it goes, and what stays inside."""

from __future__ import annotations

import pytest
from tests.codegen.backends.llvm.asm.assembly import instruction_of

from weft.codegen.backends.llvm.asm.dominators import Block
from weft.codegen.backends.llvm.asm.loop_invariant_motion import Line, LoopInvariantMotion, moves_out


@pytest.mark.parametrize(
    "line",
    [
        "add nsw i64 %x, 1",
        "mul i64 %n, 4",
        "shl i32 %x, 2",
        "zext i32 %x to i64",
        "trunc i64 %x to i32",
        "icmp slt i64 %x, %n",
        "icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %bounds",
        "and <8 x i1> %a, %b",
        "select i1 %c, i64 %x, i64 0",
        "select i1 %c, <8 x i1> splat (i1 true), <8 x i1> zeroinitializer",
        "call i64 @llvm.smin.i64(i64 %x, i64 8)",
        "insertelement <8 x i32> poison, i32 %x, i64 0",
        "shufflevector <8 x i32> %v, <8 x i32> poison, <8 x i32> zeroinitializer",
        "getelementptr float, ptr %p, i64 %x",
    ],
)
def test_sizes_addresses_and_masks_move(line: str) -> None:
    assert moves_out(instruction_of(line))


@pytest.mark.parametrize(
    ("line", "_why"),
    [
        ("sdiv i64 %x, %n", "the divisor may be zero where the loop has no iterations"),
        ("srem i64 %x, %n", "as sdiv"),
        ("load i64, ptr %p, align 8", "memory may change in the loop"),
        ("load volatile i64, ptr %p, align 8", "every access counts"),
        ("call i64 @f(i64 %x)", "a call has effects"),
        ("atomicrmw add ptr %p, i64 1 acquire", "an atomic access has effects"),
        ("phi i64 [ 0, %body ], [ %x, %for.1 ]", "it depends on the path"),
        ("fadd <8 x float> %a, %b", "vectors of numbers would fill the registers"),
        ("fmul float %a, %b", "as vectors"),
        ("shufflevector <8 x float> %v, <8 x float> poison, <8 x i32> zeroinitializer", "as vectors"),
        ("select <8 x i1> %m, <8 x float> %a, <8 x float> %b", "as vectors"),
        ("getelementptr float, ptr %p, i64 8", "a constant offset costs nothing where it is used"),
        ("getelementptr float, ptr %p, <8 x i64> %v", "as vectors"),
    ],
)
def test_what_traps_has_effects_or_fills_registers_stays(line: str, _why: str) -> None:
    assert not moves_out(instruction_of(line))


class Nest:
    """Two loops, one in the other."""

    def __init__(self) -> None:
        self.motion = LoopInvariantMotion()
        self.before: list[list[Line]] = [[], []]
        self.blocks = [Block(None), Block(None)]
        for index, before, block in zip(("%i", "%j"), self.before, self.blocks, strict=True):
            self.motion.begin(before, block)
            self.motion.define(index)

    def place(self, name: str, line: str) -> int:
        """In how many loops an instruction ends up."""
        found = self.motion.place(name, instruction_of(line))
        if found is None:
            return 2
        assert found[1] is self.blocks[self.before.index(found[0])] or not any(self.before)
        return next(depth for depth, lines in enumerate(self.before) if lines is found[0])


def test_an_instruction_goes_out_to_the_loop_that_defines_an_operand() -> None:
    nest = Nest()
    assert nest.place("%1", "mul i64 %n, 4") == 0
    assert nest.place("%2", "mul i64 %i, 4") == 1
    assert nest.place("%3", "add i64 %i, %j") == 2
    assert nest.place("%4", "add i64 %1, %n") == 0
    assert nest.place("%5", "add i64 %2, %1") == 1
    assert nest.place("%6", "add i64 %3, %1") == 2


def test_what_uses_a_load_stays_with_it() -> None:
    nest = Nest()
    assert nest.place("%1", "load i64, ptr %p, align 8") == 2
    assert nest.place("%2", "add i64 %1, %n") == 2


def test_what_a_loop_carries_stays() -> None:
    nest = Nest()
    nest.motion.define("%sum")
    assert nest.place("%1", "add i64 %sum, %n") == 2


def test_outside_of_loops_everything_stays_in_its_block() -> None:
    motion = LoopInvariantMotion()
    assert motion.place("%1", instruction_of("mul i64 %n, 4")) is None


def test_what_an_inner_loop_defined_is_used_in_the_outer_one_after_it() -> None:
    nest = Nest()
    assert nest.place("%1", "mul i64 %j, 3") == 2
    nest.motion.end()
    assert nest.motion.place("%2", instruction_of("add i64 %1, %n")) is None  # the block of the outer loop
