"""One line of LLVM assembly to a record: the inverse of `instructions.text_of`.

    read("%1 = add nsw i64 %x, 1")  ->  "%1", Instruction("add", "i64", ("%x", "1"), ("nsw",))

It reads the forms that this package writes; ValueError for others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from weft.codegen.backends.llvm.asm.instructions import ARITHMETIC, CASTS, Instruction

_CLOSING = {"(": ")", "<": ">", "[": "]", "{": "}"}
_METADATA = re.compile(r", !.*$")


def instruction_of(text: str) -> Instruction:
    """The instruction of a line without its name."""
    return read(text)[1]


def read(line: str) -> tuple[str, Instruction]:
    """The name of the result (empty for none) and the instruction.

    >>> read("store float %x, ptr %p, align 4")
    ('', Instruction(opcode='store', type='float', operands=('%x', '%p'), attributes=('align 4',)))
    """
    name, equals, text = line.strip().partition(" = ")
    if not equals:
        name, text = "", line.strip()
    opcode, _, rest = text.partition(" ")
    if opcode in ("load", "store") and rest.startswith(("volatile ", "atomic ")):
        word, _, rest = rest.partition(" ")
        opcode = f"{opcode} {word}"
    form = _FORMS.get(opcode)
    if form is None:
        raise ValueError(f"no form for the LLVM instruction {line!r}")
    return name, form(opcode, rest)


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, start, closing = [], 0, list[str]()
    for place, letter in enumerate(text):
        if letter in _CLOSING:
            closing.append(_CLOSING[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _typed(text: str) -> tuple[str, str]:
    """`TYPE VALUE` as both."""
    if text[0] not in _CLOSING:
        ty, _, value = text.partition(" ")
        return ty, value
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in _CLOSING) - (letter in _CLOSING.values())
        if not depth:
            return text[: place + 1], text[place + 1 :].strip()
    raise ValueError(f"a bracket is not closed in {text!r}")


def _arithmetic(opcode: str, rest: str) -> Instruction:
    first, b = _split(rest)
    flags: list[str] = []
    while first.split(" ", 1)[0] in _FLAGS:
        flag, _, first = first.partition(" ")
        flags.append(flag)
    ty, a = _typed(first)
    return Instruction(opcode, ty, (a, b), (" ".join(flags),) if flags else ())


_FLAGS = frozenset("nsw nuw exact reassoc contract nsz nnan ninf arcp afn fast tail".split())


def _compare(opcode: str, rest: str) -> Instruction:
    predicate, _, rest = rest.partition(" ")
    first, b = _split(rest)
    ty, a = _typed(first)
    return Instruction(opcode, ty, (a, b), (predicate,))


def _unary(opcode: str, rest: str) -> Instruction:
    ty, value = _typed(rest)
    return Instruction(opcode, ty, (value,))


def _cast(opcode: str, rest: str) -> Instruction:
    source, _, target = rest.rpartition(" to ")
    ty, value = _typed(source)
    return Instruction(opcode, ty, (value,), (target,))


def _select(opcode: str, rest: str) -> Instruction:
    (kind, condition), (ty, a), (_, b) = map(_typed, _split(rest))
    return Instruction(opcode, ty, (condition, a, b), (kind,))


def _getelementptr(opcode: str, rest: str) -> Instruction:
    ty, base, index = _split(rest)
    kind, value = _typed(index)
    return Instruction(opcode, ty, (_typed(base)[1], value), (kind,))


def _load(opcode: str, rest: str) -> Instruction:
    ty, pointer, *attributes = _split(rest)
    return Instruction(opcode, ty, (_typed(pointer)[1],), tuple(attributes))


def _store(opcode: str, rest: str) -> Instruction:
    stored, pointer, *attributes = _split(rest)
    ty, value = _typed(stored)
    return Instruction(opcode, ty, (value, _typed(pointer)[1]), tuple(attributes))


def _atomic(opcode: str, rest: str) -> Instruction:
    *stored, pointer, align = _split(rest)
    place, _, ordering = _typed(pointer)[1].partition(" ")
    ty, *value = _typed(stored[0]) if opcode.startswith("store") else stored
    return Instruction(opcode, ty, (*value, place), (ordering, align))


def _extract(opcode: str, rest: str) -> Instruction:
    (ty, vector), (_, lane) = map(_typed, _split(rest))
    return Instruction(opcode, ty, (vector, lane))


def _extract_value(opcode: str, rest: str) -> Instruction:
    structure, index = _split(rest)
    ty, value = _typed(structure)
    return Instruction(opcode, ty, (value, index))


def _insert(opcode: str, rest: str) -> Instruction:
    (ty, vector), (kind, scalar), (_, lane) = map(_typed, _split(rest))
    return Instruction(opcode, ty, (vector, scalar, lane), (kind,))


def _shuffle(opcode: str, rest: str) -> Instruction:
    first, second, mask = _split(rest)
    ty, a = _typed(first)
    return Instruction(opcode, ty, (a, _typed(second)[1]), (mask,))


def _call(opcode: str, rest: str) -> Instruction:
    flags: list[str] = []
    while rest.split(" ", 1)[0] in _FLAGS:
        flag, _, rest = rest.partition(" ")
        flags.append(flag)
    ty, called = _typed(rest)
    quote = called.find('"', 2) if called.startswith('@"') else 0
    start = called.index("(", quote)
    inside = called[start + 1 : called.rindex(")")]
    arguments = [_typed(part) for part in _split(inside)] if inside else []
    values = (called[:start], *(value for _, value in arguments))
    return Instruction(opcode, ty, values, (" ".join(flags), *(kind for kind, _ in arguments)))


def _phi(opcode: str, rest: str) -> Instruction:
    first, *others = _split(rest)
    ty, incoming = _typed(first)
    pairs = [_split(part.strip("[] ")) for part in (incoming, *others)]
    return Instruction(opcode, ty, tuple(value for value, _ in pairs), tuple(label[1:] for _, label in pairs))


def _br(opcode: str, rest: str) -> Instruction:
    metadata = _METADATA.search(rest)
    rest = rest[: metadata.start()] if metadata else rest
    parts = [_typed(part) for part in _split(rest)]
    labels = (value[1:] for kind, value in parts if kind == "label")
    condition = tuple(value for kind, value in parts if kind == "i1")
    return Instruction(opcode, "i1", condition, (*labels, metadata[0] if metadata else ""))


def _ret(opcode: str, rest: str) -> Instruction:
    ty, value = _typed(rest)
    return Instruction(opcode, ty, (value,) if value else ())


def _alloca(opcode: str, rest: str) -> Instruction:
    ty, align = _split(rest)
    return Instruction(opcode, ty, (), (align,))


def _atomicrmw(opcode: str, rest: str) -> Instruction:
    operation, _, rest = rest.partition(" ")
    pointer, stored = _split(rest)
    ty, value = _typed(stored)
    value, _, ordering = value.partition(" ")
    return Instruction(opcode, ty, (_typed(pointer)[1], value), (operation, ordering))


def _bare(opcode: str, rest: str) -> Instruction:
    return Instruction(opcode, rest)


_FORMS: dict[str, Callable[[str, str], Instruction]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(CASTS, _cast),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    **dict.fromkeys(("load", "load volatile"), _load),
    **dict.fromkeys(("store", "store volatile"), _store),
    **dict.fromkeys(("load atomic", "store atomic"), _atomic),
    "fneg": _unary,
    "select": _select,
    "getelementptr": _getelementptr,
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
    "unreachable": _bare,
}
