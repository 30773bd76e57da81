"""Loop-invariant motion: sizes, addresses and masks that a loop does not change stand before it.

    for:  %i = phi ...                              %row = mul i64 %n, 4
          %row = mul i64 %n, 4           ->    for: %i = phi ...
          %at = add i64 %row, %i                    %at = add i64 %row, %i

An instruction goes out to the innermost loop that defines one of its operands. What moves is cheap, without effects and
defined for all operands (no division, no memory), so a loop with no iterations may compute it in vain. Vectors of
numbers stay where they are used, since there are only so many registers.

Source: Allen and Cocke, A catalogue of optimizing transformations, 1971.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.backends.llvm.asm.dominators import Block
from weft.codegen.backends.llvm.asm.instructions import Instruction

__all__ = ["Line", "LoopInvariantMotion", "moves_out"]

Line = tuple[str, Instruction]
"""The name of the result, empty for none, and the instruction."""


def moves_out(instruction: Instruction) -> bool:
    """Whether an instruction may stand before a loop that does not change its operands."""
    rule = _RULES.get(instruction.opcode)
    return rule is not None and rule(instruction)


def _is_integer(ty: str) -> bool:
    return ty[0] == "i"


def _is_mask(ty: str) -> bool:
    return ty.endswith(" x i1>")


def _is_lane_bounds(ty: str) -> bool:
    return ty.endswith(" x i32>")


def _scalar(i: Instruction) -> bool:
    return _is_integer(i.type)


def _logic(i: Instruction) -> bool:
    return _is_integer(i.type) or _is_mask(i.type)


def _comparison(i: Instruction) -> bool:
    return _is_integer(i.type) or _is_lane_bounds(i.type)


def _choice(i: Instruction) -> bool:
    return i.attributes[0] == "i1" and _logic(i)


def _size_limit(i: Instruction) -> bool:
    return i.operands[0] in ("@llvm.smax.i64", "@llvm.smin.i64")


def _broadcast_start(i: Instruction) -> bool:
    return _is_lane_bounds(i.type) and i.operands[0] == "poison"


def _broadcast(i: Instruction) -> bool:
    return _is_lane_bounds(i.type) or _is_mask(i.type)


def _address(i: Instruction) -> bool:
    # Constant offsets are part of the address in machine code.
    return i.attributes[0] == "i64" and i.operands[1][0] == "%" and i.type[0] != "<"


_RULES: dict[str, Callable[[Instruction], bool]] = {
    **dict.fromkeys(("add", "sub", "mul", "shl", "sext", "zext", "trunc"), _scalar),
    **dict.fromkeys(("and", "or", "xor"), _logic),
    "icmp": _comparison,
    "select": _choice,
    "call": _size_limit,
    "insertelement": _broadcast_start,
    "shufflevector": _broadcast,
    "getelementptr": _address,
}


class LoopInvariantMotion:
    """The open loops: what stands before each, and how deep each value is defined."""

    def __init__(self) -> None:
        self._loops: list[tuple[list[Line], Block]] = []
        self._depths: dict[str, int] = {}

    def begin(self, before: list[Line], block: Block) -> None:
        """A loop begins; `before` are the lines of a block that is left for the loop alone."""
        self._loops.append((before, block))

    def end(self) -> None:
        """The innermost loop ends."""
        self._loops.pop()

    def define(self, name: str) -> None:
        """A value stays in the innermost loop."""
        if self._loops:
            self._depths[name] = len(self._loops)

    def place(self, name: str, instruction: Instruction) -> tuple[list[Line], Block] | None:
        """The lines before a loop where the instruction belongs, and their block; None for the current block."""
        if not self._loops:
            return None
        depth = len(self._loops)
        if moves_out(instruction):
            depths = self._depths
            inside = max([depths.get(operand, 0) for operand in instruction.operands], default=0)
            depth = min(depth, inside)  # what an earlier loop defined may have been deeper
        if depth:
            self._depths[name] = depth
        return None if depth == len(self._loops) else self._loops[depth]
