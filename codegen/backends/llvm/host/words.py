"""Words of 64 bits in memory, and control of what is done with them, as machine code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, cast, getelementptr, icmp, load, store

__all__ = ["Words"]


class Words:
    """Emits reads and writes of words, loops and conditions into a function."""

    def __init__(self, w: FunctionWriter) -> None:
        self.w = w

    def at(self, base: str, offset: Size) -> str:
        """An address so many bytes further on."""
        return base if offset == 0 else self.w.emit(getelementptr("i8", base, offset))

    def word_at(self, base: str, index: Size) -> str:
        """The address of a word of a block."""
        return base if index == 0 else self.w.emit(getelementptr("i64", base, index))

    def load(self, ty: str, base: str, offset: int) -> str:
        """A value at an address."""
        return self.w.emit(load(ty, self.at(base, offset)))

    def load_word(self, base: str, index: Size, ty: str = "i64") -> str:
        """A word of a block."""
        return self.w.emit(load(ty, self.word_at(base, index)))

    def store_word(self, base: str, index: Size, word: Size, ty: str = "i64") -> None:
        """Set a word of a block."""
        self.w.do(store(ty, word, self.word_at(base, index)))

    def variable(self, first: Size, ty: str = "i64") -> str:
        """A slot on the stack for what changes, with its first value."""
        slot = self.w.alloca(ty)
        self.w.do(store(ty, first, slot))
        return slot

    def value(self, variable: str, ty: str = "i64") -> str:
        """What a slot holds."""
        return self.w.emit(load(ty, variable))

    def increase(self, variable: str, by: Size) -> None:
        """Add to what a slot holds."""
        self.w.do(store("i64", self.w.add(self.value(variable), by), variable))

    # Control.

    @contextmanager
    def each(self, count: Size) -> Iterator[str]:
        """A loop whose body is written inside; gives the spelling of its index."""
        w = self.w
        index = self.variable(0)
        head, body, over = (w.label(name) for name in ("each", "one", "over"))
        w.open(head)
        now = self.value(index)
        w.branch(w.emit(icmp("slt", "i64", now, count)), body, over)
        w.open(body)
        yield now
        w.do(store("i64", w.add(now, 1), index))
        w.jump(head)
        w.open(over)

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        """What is written inside runs where a condition holds."""
        then, on = self.w.label("then"), self.w.label("on")
        self.w.branch(condition, then, on)
        self.w.open(then)
        yield
        self.w.open(on)

    def all_of(self, *conditions: str) -> str:
        """The conjunction."""
        return self._joined("and", conditions)

    def any_of(self, *conditions: str) -> str:
        """The disjunction."""
        return self._joined("or", conditions)

    def _joined(self, opcode: str, conditions: Sequence[str]) -> str:
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.w.emit(binary(opcode, "i1", found, condition))
        return found

    def is_null(self, pointer: str) -> str:
        """Whether a pointer is null."""
        return self.w.emit(icmp("eq", "ptr", pointer, "null"))

    def differs(self, word: str, other: Size = 0) -> str:
        """Whether a word is another one than one to compare it with."""
        return self.w.emit(icmp("ne", "i64", word, other))

    def as_pointer(self, word: str) -> str:
        """A word as an address."""
        return self.w.emit(cast("inttoptr", "i64", word, "ptr"))

    def as_word(self, pointer: str) -> str:
        """An address as a word."""
        return self.w.emit(cast("ptrtoint", "ptr", pointer, "i64"))
