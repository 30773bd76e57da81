"""LLVM instructions as records, and how each one is written.

    line        ::= [result =] instruction
    instruction ::= opcode, type, operands, attributes

A value is its spelling: an SSA name (`%7`), a global (`@f`) or a constant (`3`, `splat (i8 1)`). `type` is the one
that stands first: of the operands of arithmetic, of the value of a load, store, call or phi, of the element that a
getelementptr steps over, of the vector of a lane operation. `attributes` are what else the opcode takes:

    arithmetic           flags                        icmp, fcmp       predicate
    casts                type of the result           select           type of the condition
    getelementptr        type of the index            load, store      alignment, ordering, metadata
    insertelement        type of the scalar           shufflevector    mask with its type
    call                 flags, types of arguments    phi              labels
    br                   labels, metadata

An access that is volatile or atomic has an opcode of its own (`load volatile`), so that passes which do not know it
leave it alone. Records are named tuples, since a kernel has thousands: they are made, compared and hashed by C code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = [
    "ARITHMETIC",
    "CASTS",
    "Instruction",
    "Operand",
    "alloca",
    "binary",
    "br",
    "call",
    "cast",
    "extractelement",
    "extractvalue",
    "fcmp",
    "fneg",
    "getelementptr",
    "icmp",
    "insertelement",
    "lane_mask",
    "load",
    "phi",
    "ret",
    "select",
    "shufflevector",
    "store",
    "text_of",
]

ARITHMETIC = frozenset("add sub mul and or xor shl lshr ashr sdiv udiv srem urem fadd fsub fmul fdiv frem".split())
CASTS = frozenset(
    "sext zext trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr addrspacecast".split()
)


Operand = str | int
"""A value as functions that make instructions take it: its spelling, or an integer constant."""


class Instruction(NamedTuple):
    """One instruction without the name of its result."""

    opcode: str
    type: str
    operands: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


_made: Callable[[tuple[object, ...]], Instruction] = functools.partial(tuple.__new__, Instruction)
# The class takes twice as long.

# What makes them: one function per form, with the types and values in the order of LLVM's assembly.


def binary(opcode: str, ty: str, a: Operand, b: Operand, flags: str = "") -> Instruction:
    """Arithmetic on two values, with flags such as `nsw` or `contract`."""
    return _made((opcode, ty, (str(a), str(b)), (flags,) if flags else ()))


def fneg(ty: str, a: str) -> Instruction:
    """A float with the other sign."""
    return Instruction("fneg", ty, (a,))


def icmp(predicate: str, ty: str, a: Operand, b: Operand) -> Instruction:
    """A comparison of integers or pointers."""
    return Instruction("icmp", ty, (str(a), str(b)), (predicate,))


def fcmp(predicate: str, ty: str, a: str, b: str) -> Instruction:
    """A comparison of floats."""
    return Instruction("fcmp", ty, (a, b), (predicate,))


def cast(opcode: str, ty: str, value: str, target: str) -> Instruction:
    """A value of one type as one of another (`CASTS`)."""
    return Instruction(opcode, ty, (value,), (target,))


def select(condition_type: str, condition: str, ty: str, a: Operand, b: Operand) -> Instruction:
    """One of two values, or of each two lanes."""
    return Instruction("select", ty, (condition, str(a), str(b)), (condition_type,))


def getelementptr(ty: str, base: str, index: Operand, index_type: str = "i64") -> Instruction:
    """The address so many elements of a type after another."""
    return _made(("getelementptr", ty, (base, str(index)), (index_type,)))


def load(ty: str, pointer: str, align: int = 0) -> Instruction:
    """What memory holds."""
    return _made(("load", ty, (pointer,), (f"align {align}",) if align else ()))


def store(ty: str, value: Operand, pointer: str, align: int = 0, metadata: str = "") -> Instruction:
    """Write to memory."""
    attributes = (f"align {align}",) if align else ()
    return Instruction("store", ty, (str(value), pointer), (*attributes, metadata) if metadata else attributes)


def extractelement(ty: str, vector: str, lane: int) -> Instruction:
    """One lane of a vector."""
    return Instruction("extractelement", ty, (vector, str(lane)))


def extractvalue(ty: str, aggregate: str, index: int) -> Instruction:
    """One field of a structure."""
    return Instruction("extractvalue", ty, (aggregate, str(index)))


def insertelement(ty: str, vector: str, scalar_type: str, scalar: str, lane: int) -> Instruction:
    """A vector with one lane replaced."""
    return Instruction("insertelement", ty, (vector, scalar, str(lane)), (scalar_type,))


def shufflevector(ty: str, a: str, b: str, lanes: Sequence[int]) -> Instruction:
    """Lanes of two vectors, counted through both."""
    return Instruction("shufflevector", ty, (a, b), (lane_mask(tuple(lanes)),))


@functools.lru_cache(maxsize=1024)
def lane_mask(lanes: tuple[int, ...]) -> str:
    """The mask of a shuffle.

    >>> lane_mask((0, 0, 0)), lane_mask((1, 0))
    ('<3 x i32> zeroinitializer', '<2 x i32> <i32 1, i32 0>')
    """
    if not any(lanes):
        return f"<{len(lanes)} x i32> zeroinitializer"
    return f"<{len(lanes)} x i32> <{', '.join([f'i32 {lane}' for lane in lanes])}>"


def call(ty: str, callee: str, arguments: Sequence[tuple[str, Operand]], flags: str = "") -> Instruction:
    """A call with (type, value) arguments; the callee is a global or a pointer."""
    values = (callee, *[str(value) for _, value in arguments])
    return _made(("call", ty, values, (flags, *[ty for ty, _ in arguments])))


def phi(ty: str, *incoming: tuple[Operand, str]) -> Instruction:
    """The value that belongs to the block that control came from: (value, label) of each."""
    return Instruction("phi", ty, tuple([str(value) for value, _ in incoming]), tuple([label for _, label in incoming]))


def br(*labels: str, condition: str = "", metadata: str = "") -> Instruction:
    """Go to a block, or to the first of two where the condition holds."""
    return Instruction("br", "i1", (condition,) if condition else (), (*labels, metadata))


def alloca(ty: str, align: int, count: Operand = "") -> Instruction:
    """Stack memory of a type, or of so many of it, until the function returns."""
    return Instruction("alloca", ty, (), (f"i64 {count}, align {align}" if count else f"align {align}",))


def ret(ty: str, value: str = "") -> Instruction:
    """Return."""
    return Instruction("ret", ty, (value,) if value else ())


# How they are written.


def text_of(instruction: Instruction) -> str:
    """The assembly of an instruction.

    >>> text_of(binary("add", "i64", "%x", "1", "nsw"))
    'add nsw i64 %x, 1'
    """
    return _FORMS[instruction.opcode](instruction)


def _arithmetic(i: Instruction) -> str:
    a, b = i.operands
    return f"{i.opcode} {i.attributes[0]} {i.type} {a}, {b}" if i.attributes else f"{i.opcode} {i.type} {a}, {b}"


def _compare(i: Instruction) -> str:
    return f"{i.opcode} {i.attributes[0]} {i.type} {i.operands[0]}, {i.operands[1]}"


def _fneg(i: Instruction) -> str:
    return f"fneg {i.type} {i.operands[0]}"


def _cast(i: Instruction) -> str:
    return f"{i.opcode} {i.type} {i.operands[0]} to {i.attributes[0]}"


def _select(i: Instruction) -> str:
    condition, a, b = i.operands
    return f"select {i.attributes[0]} {condition}, {i.type} {a}, {i.type} {b}"


def _getelementptr(i: Instruction) -> str:
    return f"getelementptr {i.type}, ptr {i.operands[0]}, {i.attributes[0]} {i.operands[1]}"


def _load(i: Instruction) -> str:
    return ", ".join([f"{i.opcode} {i.type}, ptr {i.operands[0]}", *i.attributes])


def _store(i: Instruction) -> str:
    return ", ".join([f"{i.opcode} {i.type} {i.operands[0]}, ptr {i.operands[1]}", *i.attributes])


def _atomic(i: Instruction) -> str:
    ordering, *rest = i.attributes
    *value, pointer = i.operands
    return ", ".join([f"{i.opcode} {' '.join([i.type, *value])}, ptr {pointer} {ordering}", *rest])


def _extract(i: Instruction) -> str:
    return f"extractelement {i.type} {i.operands[0]}, i64 {i.operands[1]}"


def _extract_value(i: Instruction) -> str:
    return f"extractvalue {i.type} {i.operands[0]}, {i.operands[1]}"


def _insert(i: Instruction) -> str:
    vector, scalar, lane = i.operands
    return f"insertelement {i.type} {vector}, {i.attributes[0]} {scalar}, i64 {lane}"


def _shuffle(i: Instruction) -> str:
    return f"shufflevector {i.type} {i.operands[0]}, {i.type} {i.operands[1]}, {i.attributes[0]}"


def _call(i: Instruction) -> str:
    callee, *values = i.operands
    flags, *types = i.attributes
    arguments = ", ".join([f"{ty} {value}" for ty, value in zip(types, values, strict=True)])
    return f"call {flags}{' ' if flags else ''}{i.type} {callee}({arguments})"


def _phi(i: Instruction) -> str:
    incoming = [f"[ {value}, %{label} ]" for value, label in zip(i.operands, i.attributes, strict=True)]
    return f"phi {i.type} {', '.join(incoming)}"


def _br(i: Instruction) -> str:
    *labels, metadata = i.attributes
    condition = [f"i1 {i.operands[0]}"] if i.operands else []
    return f"br {', '.join([*condition, *[f'label %{label}' for label in labels]])}{metadata}"


def _ret(i: Instruction) -> str:
    return f"ret {i.type} {i.operands[0]}" if i.operands else f"ret {i.type}"


def _alloca(i: Instruction) -> str:
    return f"alloca {i.type}, {i.attributes[0]}"


def _atomicrmw(i: Instruction) -> str:
    operation, *rest = i.attributes
    return f"atomicrmw {operation} ptr {i.operands[0]}, {i.type} {i.operands[1]} {' '.join(rest)}"


def _unreachable(i: Instruction) -> str:
    return i.opcode


_FORMS: dict[str, Callable[[Instruction], str]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(CASTS, _cast),
    "icmp": _compare,
    "fcmp": _compare,
    "fneg": _fneg,
    "select": _select,
    "getelementptr": _getelementptr,
    "load": _load,
    "store": _store,
    "load volatile": _load,
    "store volatile": _store,
    "load atomic": _atomic,
    "store atomic": _atomic,
    "extractelement": _extract,
    "extractvalue": _extract_value,
    "insertelement": _insert,
    "shufflevector": _shuffle,
    "call": _call,
    "phi": _phi,
    "br": _br,
    "ret": _ret,
    "alloca": _alloca,
    "atomicrmw": _atomicrmw,
    "unreachable": _unreachable,
}
