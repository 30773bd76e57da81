"""Value numbering: an instruction without effects that was computed already is the value that it gave then.

    %1 = mul i64 %x, 3
    ...                       blocks that the first one dominates
    %2 = mul i64 %x, 3        is %1

Equal are records that are equal (Cocke's local value numbering, over the tree of dominators as in LLVM's EarlyCSE).
Operands are numbered before what uses them, so equal trees of expressions have equal records. Loads are not numbered
here, since memory changes (`store_forwarding`).
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.dominators import Block, DominatorTree
from weft.codegen.backends.llvm.asm.instructions import ARITHMETIC, CASTS, Instruction

__all__ = ["PURE_OPCODES", "ValueNumbering", "is_pure"]

PURE_OPCODES = (
    ARITHMETIC
    | CASTS
    | frozenset("icmp fcmp fneg select getelementptr insertelement extractelement extractvalue shufflevector".split())
)
_PURE_CALLEES = ("@llvm.smax.i64", "@llvm.smin.i64")


def is_pure(instruction: Instruction) -> bool:
    """Whether the value of an instruction follows from its operands alone, and computing it does nothing else."""
    if instruction.opcode in PURE_OPCODES:
        return True
    return instruction.opcode == "call" and instruction.operands[0] in _PURE_CALLEES


class ValueNumbering:
    """The values computed so far, and the blocks in which they were."""

    def __init__(self, tree: DominatorTree) -> None:
        self._tree = tree
        self._known: dict[Instruction, tuple[str, Block]] = {}

    def find(self, instruction: Instruction) -> str | None:
        """The value of an equal instruction in a block that dominates the current one."""
        found = self._known.get(instruction)
        return found[0] if found is not None and found[1] in self._tree.dominating else None

    def define(self, name: str, instruction: Instruction, block: Block) -> None:
        """Note what an instruction that stands in a block gave."""
        if is_pure(instruction):
            self._known[instruction] = name, block

    def forget(self) -> None:
        """The function is finished."""
        self._known.clear()
