"""Value numbering: which instructions are equal, where they are known, and what is never equal."""

from __future__ import annotations

import pytest
from tests.codegen.backends.llvm.asm.assembly import instruction_of

from weft.codegen.backends.llvm.asm.dominators import DominatorTree
from weft.codegen.backends.llvm.asm.value_numbering import ValueNumbering, is_pure

PURE = [
    "add nsw i64 %x, 3",
    "fdiv contract <4 x float> %a, %b",
    "icmp slt i64 %x, %n",
    "fneg double %a",
    "fptrunc double %a to float",
    "select i1 %c, i64 %x, i64 %y",
    "getelementptr float, ptr %p, i64 %x",
    "insertelement <4 x float> poison, float %a, i64 0",
    "extractelement <4 x float> %v, i64 3",
    "shufflevector <4 x float> %v, <4 x float> poison, <4 x i32> zeroinitializer",
    "call i64 @llvm.smax.i64(i64 %x, i64 0)",
]


def numbered(line: str) -> tuple[DominatorTree, ValueNumbering]:
    """A function that computed an instruction in its first block."""
    tree = DominatorTree()
    values = ValueNumbering(tree)
    values.define("%1", instruction_of(line), tree.current)
    return tree, values


@pytest.mark.parametrize("line", PURE)
def test_an_instruction_without_effects_is_the_equal_one_before(line: str) -> None:
    _, values = numbered(line)
    assert values.find(instruction_of(line)) == "%1"


@pytest.mark.parametrize(
    "line",
    [
        "load i64, ptr %p, align 8",
        "load volatile i64, ptr %p, align 8",
        "load atomic i64, ptr %p acquire, align 8",
        "atomicrmw xchg ptr %p, i64 1 acquire",
        "call i64 @f(i64 %x)",
        "call float @sinf(float %a)",
        "call <4 x float> @llvm.masked.load.v4f32.p0(ptr %p, i32 4, <4 x i1> %m, <4 x float> poison)",
        "phi i64 [ 0, %body ], [ %2, %for.1 ]",
    ],
)
def test_what_reads_memory_calls_or_depends_on_the_path_is_never_equal(line: str) -> None:
    _, values = numbered(line)
    assert not is_pure(instruction_of(line))
    assert values.find(instruction_of(line)) is None


@pytest.mark.parametrize(
    "other",
    [
        "add i64 %x, 3",
        "add nsw i32 %x, 3",
        "add nsw i64 %x, 4",
        "add nsw i64 3, %x",
        "sub nsw i64 %x, 3",
    ],
)
def test_another_flag_type_operand_order_or_opcode_is_another_value(other: str) -> None:
    _, values = numbered("add nsw i64 %x, 3")
    assert values.find(instruction_of(other)) is None


def test_predicates_tell_comparisons_apart() -> None:
    _, values = numbered("icmp slt i64 %x, %n")
    assert values.find(instruction_of("icmp ult i64 %x, %n")) is None


def test_values_are_known_in_the_blocks_that_theirs_dominates() -> None:
    tree, values = numbered("add i64 %x, 3")
    again = instruction_of("add i64 %x, 3")
    for label in ("then", "else"):
        tree.jump(label)
    tree.enter("then")
    inside = instruction_of("mul i64 %x, 5")
    values.define("%2", inside, tree.current)
    assert (values.find(again), values.find(inside)) == ("%1", "%2")
    tree.jump("done")
    tree.enter("else")
    assert (values.find(again), values.find(inside)) == ("%1", None)
    tree.jump("done")
    tree.enter("done")
    assert (values.find(again), values.find(inside)) == ("%1", None)


def test_a_block_with_one_way_in_knows_what_that_one_knew() -> None:
    tree, values = numbered("add i64 %x, 3")
    tree.jump("next")
    tree.enter("next")
    product = instruction_of("mul i64 %x, 5")
    values.define("%2", product, tree.current)
    tree.jump("last")
    tree.enter("last")
    assert values.find(product) == "%2"
