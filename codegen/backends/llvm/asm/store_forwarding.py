"""What memory holds at one place of a function under construction, as far as that is known: loads that need no load.

    place ::= root, anchor, offset      an anchor (a pointer) and bytes from there; anchors of a root are in one object

The roots are the stack memory of the function and its parameters. A store changes what is known of its own root, except
at other offsets of the same anchor: different stack memory is apart, and so is what a parameter says that nothing else
points to (`noalias`). Pointers of unknown origin may point anywhere. Knowledge lasts to the end of a block.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

__all__ = ["KnownMemory", "bytes_of"]

_BYTES = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}
_PARAMETERS, _ANYWHERE = "parameters", ""


def bytes_of(type_text: str) -> int | None:
    """The bytes that a value of a type takes in memory; None where that is not simple.

    >>> bytes_of("<16 x float>"), bytes_of("i64"), bytes_of("<8 x i1>")
    (64, 8, None)
    """
    if not type_text.startswith("<"):
        return _BYTES.get(type_text)
    count, _, element = type_text[1:-1].partition(" x ")
    size = _BYTES.get(element)
    return None if size is None else int(count) * size


@dataclass
class _Anchor:
    """What is known at the offsets of one anchor: by offset, the values of each type."""

    values: dict[int, dict[str, str]] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    """The offsets in order."""
    widest: int = 0
    """The most bytes that a value takes."""

    def note(self, offset: int, type_text: str, size: int, value: str) -> None:
        """A value of so many bytes is at an offset."""
        if offset not in self.values:
            self.values[offset] = {}
            insort(self.offsets, offset)
        self.values[offset][type_text] = value
        self.widest = max(self.widest, size)

    def overwrite(self, start: int, end: int) -> None:
        """Forget what overlaps these bytes."""
        first = bisect_right(self.offsets, start - self.widest)
        last = bisect_left(self.offsets, end)
        for offset in self.offsets[first:last]:
            kept = {ty: value for ty, value in self.values[offset].items() if offset + (bytes_of(ty) or 0) <= start}
            self.values[offset] = kept
        gone = [offset for offset in self.offsets[first:last] if not self.values[offset]]
        for offset in gone:
            del self.values[offset]
        if gone:
            self.offsets[first:last] = [offset for offset in self.offsets[first:last] if offset in self.values]


class KnownMemory:
    """What is known of memory in the current block."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, str, int]] = {}
        self._known: dict[str, dict[str, _Anchor]] = {}

    def root(self, pointer: str, *, alone: bool) -> None:
        """A pointer to memory that others of the function do not point into, or (not alone) other parameters may."""
        self._places[pointer] = (pointer if alone else _PARAMETERS, pointer, 0)

    def moved(self, name: str, instruction: str) -> None:
        """Note what a `getelementptr` gives."""
        head, _, rest = instruction.partition(", ptr ")
        base, _, index = rest.partition(", i64 ")
        found = self._places.get(base)
        if found is None or not index:
            return
        root, anchor, offset = found
        size = _BYTES.get(head.rpartition(" ")[2])
        known = size is not None and index.lstrip("-").isdigit()
        self._places[name] = (root, anchor, offset + int(index) * size) if known and size else (root, name, 0)

    def loaded(self, instruction: str) -> str | None:
        """The value that a load gives, where it is known."""
        type_text, pointer = _load_parts(instruction)
        root, anchor, offset = self._place(pointer)
        found = self._known.get(root, {}).get(anchor)
        return None if found is None else found.values.get(offset, {}).get(type_text)

    def load(self, name: str, instruction: str) -> None:
        """Note what a load gave."""
        type_text, pointer = _load_parts(instruction)
        self._note(self._place(pointer), type_text, name)

    def store(self, instruction: str) -> None:
        """Note what a store changes."""
        text = instruction[6:]
        cut = text.find("> ") + 1 if text.startswith("<") else text.find(" ")
        type_text = text[:cut]
        value, _, rest = text[cut + 1 :].rpartition(", ptr ")
        size = bytes_of(type_text)
        if size is None or not value:
            self.forget()
            return
        place = root, anchor, offset = self._place(rest.partition(",")[0])
        if root == _ANYWHERE:
            self._known.clear()
        else:
            self._known.pop(_ANYWHERE, None)
            self._overwrite(self._known.get(root, {}), anchor, offset, offset + size)
        self._note(place, type_text, value)

    def changed(self, pointer: str) -> None:
        """Something of the object that a pointer is in was changed."""
        root, _, _ = self._place(pointer)
        if root == _ANYWHERE:
            self._known.clear()
        else:
            self._known.pop(_ANYWHERE, None)
            self._known.pop(root, None)

    def forget(self) -> None:
        """Anything may have changed."""
        self._known.clear()

    def _place(self, pointer: str) -> tuple[str, str, int]:
        return self._places.get(pointer, (_ANYWHERE, pointer, 0))

    def _note(self, place: tuple[str, str, int], type_text: str, value: str) -> None:
        root, anchor, offset = place
        size = bytes_of(type_text)
        if size is not None:
            self._known.setdefault(root, {}).setdefault(anchor, _Anchor()).note(offset, type_text, size, value)

    def _overwrite(self, known: dict[str, _Anchor], anchor: str, start: int, end: int) -> None:
        kept = known.get(anchor)
        if kept is None:
            known.clear()
            return
        if len(known) > 1:
            known.clear()
            known[anchor] = kept
        kept.overwrite(start, end)


def _load_parts(instruction: str) -> tuple[str, str]:
    """The type and the pointer of `load TYPE, ptr POINTER, ...`."""
    type_text, _, rest = instruction[5:].partition(", ptr ")
    return type_text, rest.partition(",")[0]
