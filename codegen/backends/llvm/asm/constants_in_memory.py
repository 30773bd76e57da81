"""Constants in memory: vectors of one constant are read where they are used.

    %y = fmul <16 x float> %x, splat (float C)        %a = load float, ptr @weft.constant.float.C
                                                      %b = insertelement <16 x float> poison, float %a, i64 0
                                               ->     %c = shufflevector <16 x float> %b, ... zeroinitializer
                                                      %y = fmul <16 x float> %x, %c

LLVM takes what a loop uses and does not change out of all loops around it, whatever these hold. Where one of them
computes a tile of sums that fills the registers, constants of what is done to results next would have some of these,
and sums would go to memory and back in each step. Values of variables stay where they are read, and processors take an
operand that all lanes share from memory as fast as from a register. Signs are bits, whose masks are such constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.codegen.backends.llvm.asm.instructions import (
    ARITHMETIC,
    Instruction,
    binary,
    cast,
    insertelement,
    load,
    shufflevector,
)
from weft.codegen.backends.llvm.asm.loop_invariant_motion import Line
from weft.codegen.backends.llvm.asm.module import quoted

__all__ = ["ConstantsInMemory"]

_SPLAT = "splat ("
_ZERO = "0x0000000000000000"
_EXTREMES = ("@llvm.maximum.", "@llvm.minimum.")
_WIDTHS = {"float": 32, "double": 64}
_MASKS = frozenset({"i32", "i64"})
_SIGN_CHANGES = frozenset({"fneg", "call"})
_READERS = ARITHMETIC | _SIGN_CHANGES | {"fcmp", "select"}


class ConstantsInMemory:
    """The constants of one function."""

    def __init__(self) -> None:
        self._variables: dict[str, str] = {}
        self._values = 0

    def read(self, lines: list[Line]) -> Iterator[Line]:
        """The lines of a block, with what reads constants before those that use them."""
        for line in lines:
            if not _may_read(line[1]):
                yield line
                continue
            for name, instruction in self._on_bits(*line):
                read: dict[str, str] = {}
                for ty, operand in _vectors(instruction):
                    if operand not in read:
                        steps = self._steps(ty, operand)
                        read[operand] = steps[-1][0]
                        yield from steps
                operands = tuple([read.get(operand, operand) for operand in instruction.operands])
                yield name, instruction._replace(operands=operands) if read else instruction

    def _on_bits(self, name: str, instruction: Instruction) -> list[Line]:
        """A change of signs of vectors as one of their bits; another instruction as it is."""
        ty, opcode = instruction.type, _sign_change(instruction)
        if opcode is None:
            return [(name, instruction)]
        lanes, element = _shape(ty)
        bits = _WIDTHS[element]
        ints, sign = f"<{lanes} x i{bits}>", 1 << (bits - 1)
        before, after = self._name(), self._name()
        return [
            (before, cast("bitcast", ty, instruction.operands[-1], ints)),
            (after, binary(opcode, ints, before, f"{_SPLAT}i{bits} {sign if opcode == 'xor' else sign - 1})")),
            (name, cast("bitcast", ints, after, ty)),
        ]

    def _steps(self, ty: str, operand: str) -> list[Line]:
        """What gives a vector of a constant."""
        scalar, first, every = self._name(), self._name(), self._name()
        element, value = _constant_of(operand)
        variable = f"@{quoted(f'weft.constant.{element}.{value}')}"
        self._variables[variable] = f"{element} {value}"
        return [
            (scalar, load(element, variable)),
            (first, insertelement(ty, "poison", element, scalar, 0)),
            (every, shufflevector(ty, first, "poison", (0,) * _shape(ty)[0])),
        ]

    def _name(self) -> str:
        self._values += 1
        return f"%constant.{self._values}"

    def definitions(self) -> Iterator[str]:
        """The variables, which nothing writes, though nothing says so."""
        for name, value in self._variables.items():
            yield f"{name} = internal global {value}"


def _shape(ty: str) -> tuple[int, str]:
    """The lanes of a vector, and the type of one."""
    lanes, _, element = ty[1:-1].partition(" x ")
    return int(lanes), element


def _is_vector(ty: str) -> bool:
    """Whether a type is a vector of a known number of lanes."""
    return ty.startswith("<") and not ty.startswith("<vscale")


def _may_read(instruction: Instruction) -> bool:
    """Whether an instruction may have constants to read, or changes signs; most have none and are asked no more."""
    return instruction.opcode in _READERS and (
        instruction.opcode in _SIGN_CHANGES or any([operand.startswith(_SPLAT) for operand in instruction.operands])
    )


def _sign_change(instruction: Instruction) -> str | None:
    """The operation on bits that changes or drops the signs of a vector, where an instruction does."""
    ty = instruction.type
    if not _is_vector(ty) or _shape(ty)[1] not in _WIDTHS:
        return None
    if instruction.opcode == "fneg":
        return "xor"
    is_size = instruction.opcode == "call" and instruction.operands[0].startswith("@llvm.fabs.")
    return "and" if is_size else None


def _constant_of(operand: str) -> tuple[str, str]:
    """The type and the spelling of the scalar."""
    ty, _, value = operand[len(_SPLAT) : -1].partition(" ")
    return ty, value


def _vectors(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """The types and the spellings of the operands that are constants to read."""
    for ty, operand in _typed(instruction):
        if operand.startswith(_SPLAT) and _is_vector(ty) and _is_read(instruction, *_constant_of(operand)):
            yield ty, operand


def _typed(instruction: Instruction) -> Iterable[tuple[str, str]]:
    """The operands that may be constants, and their types."""
    opcode, operands, ty = instruction.opcode, instruction.operands, instruction.type
    if opcode in ARITHMETIC or opcode == "fcmp":
        return ((ty, operand) for operand in operands)
    if opcode == "select":
        return ((ty, operand) for operand in operands[1:])
    return zip(instruction.attributes[1:], operands[1:], strict=True) if opcode == "call" else ()


def _is_read(instruction: Instruction, element: str, value: str) -> bool:
    """Whether a constant is read: masks of signs, and floats, but for zeros that are compared with and chosen. Those of
    lanes without an element are a part of the instruction, and relu is a single one with a register that is cleared."""
    opcode = instruction.opcode
    if element not in _WIDTHS:
        return element in _MASKS and opcode in ("and", "xor")
    is_part = opcode in ("select", "fcmp") or (opcode == "call" and not instruction.operands[0].startswith(_EXTREMES))
    return value != _ZERO or not is_part
