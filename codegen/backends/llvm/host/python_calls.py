"""CPython's own functions, called from machine code: objects made, read, called and given back."""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import call, getelementptr, icmp
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.host.words import Words
from weft.runtime.programs.fastcall import ARRAY, TABLE

__all__ = ["PythonCalls"]


class PythonCalls(Words):
    """Emits calls of the interpreter into a function; `table` holds what the code needs of the process."""

    def __init__(self, module: ModuleWriter, w: FunctionWriter, table: str) -> None:
        super().__init__(w)
        self.module, self.table = module, table

    def call(self, name: str, result: str, *operands: tuple[str, Size]) -> str:
        """Call a function of the process; gives its result."""
        spelled = self.module.declare(name, result, tuple(ty for ty, _ in operands))
        instruction = call(result, spelled, operands)
        if result == "void":
            self.w.do(instruction)
            return ""
        return self.w.emit(instruction)

    # The table.

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
