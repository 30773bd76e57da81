"""CPython's own functions, called from machine code: objects made, read, called and given back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, cast, getelementptr, icmp, load, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.runtime.programs.fastcall import ARRAY, TABLE

__all__ = ["PythonCalls"]


class PythonCalls:
    """Emits calls of the interpreter into a function; `table` holds what the code needs of the process."""

    def __init__(self, module: ModuleWriter, w: FunctionWriter, table: str) -> None:
        self.module, self.w, self.table = module, w, table

    def call(self, name: str, result: str, *operands: tuple[str, Size]) -> str:
        """Call a function of the process; gives its result."""
        spelled = self.module.declare(name, result, tuple(ty for ty, _ in operands))
        instruction = call(result, spelled, operands)
        if result == "void":
            self.w.do(instruction)
            return ""
        return self.w.emit(instruction)

    # Memory.

    def entry_of(self, slot: str, ty: str = "ptr") -> str:
        """A word of the table."""
        return self.load(ty, self.table, 8 * TABLE[slot])

    def is_set(self, slot: str) -> str:
        """Whether a word of the table is not 0."""
        return self.w.emit(icmp("ne", "i64", self.entry_of(slot, "i64"), 0))

    def field(self, array: str, name: str, ty: str = "i64") -> str:
        """A word of an argument or a result."""
        return self.load(ty, array, 8 * ARRAY[name])

    def array_at(self, slot: str, index: Size) -> str:
        """The words of an argument or a result, of those at an entry of the table."""
        return self.w.emit(getelementptr(f"[{len(ARRAY)} x i64]", self.entry_of(slot), index))

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

    # Objects.

    def forget(self, item: str) -> None:
        """Give back a reference, of null too."""
        self.call("Py_DecRef", "void", ("ptr", item))

    def vectorcall(self, function: str, operands: str, count: Size) -> str:
        """Call a Python object."""
        return self.call(
            "PyObject_Vectorcall", "ptr", ("ptr", function), ("ptr", operands), ("i64", count), ("ptr", "null")
        )

    def number(self, word: str) -> str:
        """A Python number."""
        return self.call("PyLong_FromLongLong", "ptr", ("i64", word))
