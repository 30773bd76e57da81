"""Store forwarding: a load of what is known to be there is the value that was stored or loaded last.

    store float %x, ptr %1
    %2 = load float, ptr %1        is %x

    place ::= root, anchor, offset      an anchor (a pointer) and bytes from there; anchors of a root are in one object

The roots are the stack memory of the function and its parameters. A store changes what is known of its own root, except
at other offsets of the same anchor: different stack memory is disjoint, and so is what a parameter says that nothing
else points to (`noalias`). Pointers of unknown origin may point anywhere. Knowledge lasts to the end of a block, and
an instruction that this pass does not know (a call, an atomic or volatile access) ends it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from dataclasses import field

from weft.codegen.backends.llvm.asm.instructions import Instruction
from weft.codegen.backends.llvm.asm.types import bytes_of
from weft.codegen.backends.llvm.asm.value_numbering import PURE_OPCODES
from weft.support.records import dataclass

__all__ = ["StoreForwarding"]

_PARAMETERS, _ANYWHERE = "parameters", ""


@dataclass(slots=True)
class _Anchor:
    """What is known at the offsets of one anchor: by offset, the values of each type."""

    values: dict[int, dict[str, str]] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    """The offsets in order."""
    widest: int = 0
    """The most bytes that a value takes."""

    def note(self, offset: int, ty: str, size: int, value: str) -> None:
        """A value of so many bytes is at an offset."""
        if offset not in self.values:
            self.values[offset] = {}
            insort(self.offsets, offset)
        self.values[offset][ty] = value
        self.widest = max(self.widest, size)

    def overwrite(self, start: int, end: int) -> None:
        """Forget what overlaps these bytes."""
        first = bisect_right(self.offsets, start - self.widest)
        last = bisect_left(self.offsets, end)
        if first == last:
            return
        for offset in self.offsets[first:last]:
            known = self.values[offset] if offset < start else {}
            self.values[offset] = {ty: value for ty, value in known.items() if offset + (bytes_of(ty) or 0) <= start}
        gone = [offset for offset in self.offsets[first:last] if not self.values[offset]]
        for offset in gone:
            del self.values[offset]
        if gone:
            self.offsets[first:last] = [offset for offset in self.offsets[first:last] if offset in self.values]


class StoreForwarding:
    """What is known of memory in the current block."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, str, int]] = {}
        self._known: dict[str, dict[str, _Anchor]] = {}

    def root(self, pointer: str, *, alone: bool) -> None:
        """A pointer to memory that others of the function do not point into, or (not alone) other parameters may."""
        self._places[pointer] = (pointer if alone else _PARAMETERS, pointer, 0)

    def find(self, instruction: Instruction) -> str | None:
        """The value that a load gives, where it is known."""
        if instruction.opcode != "load":
            return None
        root, anchor, offset = self._place(instruction.operands[0])
        anchors = self._known.get(root)
        found = None if anchors is None else anchors.get(anchor)
        values = None if found is None else found.values.get(offset)
        return None if values is None else values.get(instruction.type)

    def apply(self, name: str, instruction: Instruction) -> None:
        """Note what an instruction reads, writes, or may have changed; `name` is its result."""
        effect = _EFFECTS.get(instruction.opcode, StoreForwarding.unknown)
        if effect is not None:
            effect(self, name, instruction)

    def unknown(self, _name: str, _instruction: Instruction) -> None:
        """An instruction that this pass does not know may change anything."""
        self.forget()

    def forget(self) -> None:
        """Anything may have changed, or another block begins."""
        self._known.clear()

    def address(self, name: str, instruction: Instruction) -> None:
        """Note where a `getelementptr` points."""
        base, index = instruction.operands
        found = self._places.get(base)
        if found is None or instruction.attributes[0] != "i64":
            return
        root, anchor, offset = found
        size = None if instruction.type[0] == "<" else bytes_of(instruction.type)
        known = size is not None and index.lstrip("-").isdigit()
        self._places[name] = (root, anchor, offset + int(index) * size) if known and size else (root, name, 0)

    def load(self, name: str, instruction: Instruction) -> None:
        """Note what a load gave."""
        self._note(self._place(instruction.operands[0]), instruction.type, name)

    def store(self, _name: str, instruction: Instruction) -> None:
        """Note what a store changes, and that its value is there."""
        value, pointer = instruction.operands
        size = bytes_of(instruction.type)
        if size is None:
            self.forget()
            return
        place = root, anchor, offset = self._place(pointer)
        if root == _ANYWHERE:
            self._known.clear()
        else:
            self._known.pop(_ANYWHERE, None)
            known = self._known.get(root)
            if known:
                self._overwrite(known, anchor, offset, offset + size)
        self._note(place, instruction.type, value)

    def call(self, name: str, instruction: Instruction) -> None:
        """Calls may change anything; intrinsics with a result nothing, and masked stores one object."""
        callee = instruction.operands[0]
        if callee.startswith("@llvm.masked.store."):
            self._change(instruction.operands[2])
        elif not (callee.startswith("@llvm.") if name else callee.startswith("@llvm.prefetch.")):
            self.forget()

    def _change(self, pointer: str) -> None:
        """Something of the object that a pointer is in was changed."""
        root, _, _ = self._place(pointer)
        if root == _ANYWHERE:
            self._known.clear()
        else:
            self._known.pop(_ANYWHERE, None)
            self._known.pop(root, None)

    def _place(self, pointer: str) -> tuple[str, str, int]:
        return self._places.get(pointer, (_ANYWHERE, pointer, 0))

    def _note(self, place: tuple[str, str, int], ty: str, value: str) -> None:
        root, anchor, offset = place
        size = bytes_of(ty)
        if size is not None:
            anchors = self._known.setdefault(root, {})
            found = anchors.get(anchor)
            if found is None:
                found = anchors[anchor] = _Anchor()
            found.note(offset, ty, size, value)

    def _overwrite(self, known: dict[str, _Anchor], anchor: str, start: int, end: int) -> None:
        kept = known.get(anchor)
        if kept is None:
            known.clear()
            return
        if len(known) > 1:
            known.clear()
            known[anchor] = kept
        kept.overwrite(start, end)


_EFFECTS: dict[str, Callable[[StoreForwarding, str, Instruction], None] | None] = {
    **dict.fromkeys(PURE_OPCODES),
    "getelementptr": StoreForwarding.address,
    "load": StoreForwarding.load,
    "store": StoreForwarding.store,
    "call": StoreForwarding.call,
    **dict.fromkeys(("phi", "br", "ret", "unreachable")),
}
"""What becomes of memory; None where it stays as it is."""
