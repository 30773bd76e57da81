"""CPython's own functions, called from machine code: objects made, read, called and given back."""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, getelementptr, load, store
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.runtime.programs.fastcall import TABLE

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

    def entry_of(self, slot: str) -> str:
        """A pointer of the table."""
        return self.w.emit(load("ptr", self.at(self.table, 8 * TABLE[slot])))

    def at(self, base: str, offset: Size) -> str:
        """An address so many bytes further on."""
        return base if offset == 0 else self.w.emit(getelementptr("i8", base, offset))

    def load(self, ty: str, base: str, offset: int) -> str:
        """A value at an address."""
        return self.w.emit(load(ty, self.at(base, offset)))

    def store_word(self, base: str, index: int, word: Size) -> None:
        """Set a word of a block."""
        self.w.do(store("i64", word, self.at(base, 8 * index)))

    def all_of(self, conditions: Sequence[str]) -> str:
        """The conjunction."""
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.w.emit(binary("and", "i1", found, condition))
        return found

    def vectorcall(self, function: str, operands: str, count: int) -> str:
        """Call a Python object."""
        return self.call(
            "PyObject_Vectorcall", "ptr", ("ptr", function), ("ptr", operands), ("i64", count), ("ptr", "null")
        )

    def call_with_numbers(self, slot: str, numbers: Sequence[str], objects: Sequence[str] = ()) -> str:
        """Call a Python function of the table with numbers, then objects."""
        w = self.w
        count = len(numbers) + len(objects)
        operands = w.alloca("ptr", count)
        made = [self.call("PyLong_FromLongLong", "ptr", ("i64", number)) for number in numbers]
        for index, item in enumerate([*made, *objects]):
            w.do(store("ptr", item, self.at(operands, 8 * index)))
        value = self.vectorcall(self.entry_of(slot), operands, count)
        for item in made:
            self.call("Py_DecRef", "void", ("ptr", item))
        return value
