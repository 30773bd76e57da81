"""One LLVM function under construction: records of instructions, in blocks, printed when it is finished.

    function ::= define ... { entry: allocas, then blocks }

Each record goes through three passes as it is written, in an order in which blocks come after their dominators:
`value_numbering` and `store_forwarding` may find its value, else `loop_invariant_motion` says where it stands. So what
unrolled loops repeat is never there, neither for what is written after it nor for LLVM. After a terminator the rest of
a block is dropped, so code that follows `return` in a loop body needs no special case.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from weft.codegen.backends.llvm.asm.constants_in_memory import ConstantsInMemory
from weft.codegen.backends.llvm.asm.dominators import DominatorTree
from weft.codegen.backends.llvm.asm.instructions import Instruction, alloca, binary, br, ret, text_of
from weft.codegen.backends.llvm.asm.loop_invariant_motion import Line, LoopInvariantMotion
from weft.codegen.backends.llvm.asm.module import ModuleWriter, quoted
from weft.codegen.backends.llvm.asm.store_forwarding import StoreForwarding
from weft.codegen.backends.llvm.asm.value_numbering import ValueNumbering, is_pure

__all__ = ["FunctionWriter", "Size"]

_INT64 = 1 << 63
_UNREACHABLE = Instruction("unreachable", "")
_LOOP_HINT = ", !llvm.loop "
Size = int | str
"""A 64-bit size: known now, or the spelling of an i64."""


class FunctionWriter:
    """Appends instructions to blocks.

    A block is opened after all forward jumps to it were written; later ones come from blocks that it dominates (loops).
    """

    def __init__(
        self, module: ModuleWriter, name: str, result: str, params: list[tuple[str, str]], attributes: str = ""
    ) -> None:
        self.module = module
        self.name = name
        described = ", ".join(f"{ty} %{param}" for ty, param in params)
        self._head = f"define {result} @{quoted(name)}({described}) {attributes}"
        self._entry: list[Line] = []
        self._lines: list[Line] = []
        self._sections: list[tuple[str, list[Line]]] = [("body", self._lines)]  # a label starts a block, "" goes on
        self.ranges: dict[str, tuple[int, int]] = {}  # the least and the greatest value of sizes, where they are known
        self._count = 0
        self._labels = 0
        self.terminated = False
        self.block_label = "body"
        self._blocks = DominatorTree()
        self._values = ValueNumbering(self._blocks)
        self._memory = StoreForwarding()
        self._loops = LoopInvariantMotion()
        self.constants_in_memory = False
        """Whether vectors of constants are to be read where they are used."""
        for ty, param in params:
            if ty.startswith("ptr"):
                self._memory.root(f"%{param}", alone="noalias" in ty)

    def emit(self, instruction: Instruction) -> str:
        """Append an instruction with a result, unless its result is known here; gives the result's name."""
        if self.terminated:
            self._count += 1
            return f"%.{self._count}"
        pure = is_pure(instruction)
        known = (self._values if pure else self._memory).find(instruction)
        if known is not None:
            return known
        self._count += 1
        name = f"%.{self._count}"
        lines, block = self._loops.place(name, instruction) or (self._lines, self._blocks.current)
        lines.append((name, instruction))
        self._values.define(name, instruction, block)
        self._memory.apply(name, instruction)
        return name

    def do(self, instruction: Instruction) -> None:
        """Append an instruction without a result."""
        if not self.terminated:
            self._lines.append(("", instruction))
            self._memory.apply("", instruction)

    def define(self, name: str, instruction: Instruction) -> None:
        """Append an instruction whose result has a name of its own: what a loop carries."""
        if not self.terminated:
            self._lines.append((name, instruction))
            self._loops.define(name)
            self._memory.apply(name, instruction)

    def begin_loop(self) -> None:
        """A loop starts with the next block, which only the current one leads to."""
        before: list[Line] = []
        self._lines = []
        self._sections += [("", before), ("", self._lines)]
        self._loops.begin(before, self._blocks.current)

    def end_loop(self) -> None:
        """The innermost loop has been written to its last branch."""
        self._loops.end()

    def alloca(self, ty: str, count: int = 1, align: int = 8) -> str:
        """Stack memory for the whole function, whatever block asks for it."""
        self._count += 1
        name = f"%.{self._count}"
        of = f"[{count} x {ty}]" if count != 1 else ty  # an array: LLVM keeps parts of one in registers
        self._entry.append((name, alloca(of, align)))
        self._memory.root(name, alone=True)
        return name

    def at_entry(self, instruction: Instruction, name: str = "") -> None:
        """Append an instruction to the entry block (for the first value of a slot)."""
        self._entry.append((name, instruction))

    def label(self, hint: str) -> str:
        """A new label name."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def open(self, label: str) -> None:
        """Start a block; falls through from the current one when that has no terminator."""
        if not self.terminated:
            self._blocks.jump(label)
            self._lines.append(("", br(label)))
        self._lines = []
        self._sections.append((label, self._lines))
        self.block_label = label
        self.terminated = False
        self._memory.forget()
        self._blocks.enter(label)

    def open_if_used(self, label: str) -> None:
        """Start a block to which all jumps have been written; go on with the current one when there are none."""
        if self._blocks.is_reached(label):
            self.open(label)

    def jump(self, label: str, metadata: str = "") -> None:
        """Go to a block."""
        self._terminate(br(label, metadata=metadata))

    def branch(self, condition: str, then: str, other: str, metadata: str = "") -> None:
        """Go to one of two blocks."""
        self._terminate(br(then, other, condition=condition, metadata=metadata))

    def ret(self, ty: str, value: str = "") -> None:
        """Return a value, or nothing."""
        self._terminate(ret(ty, value))

    def _terminate(self, instruction: Instruction) -> None:
        """End the current block."""
        if self.terminated:
            return
        if instruction.opcode == "br":
            for label in instruction.attributes[:-1]:
                self._blocks.jump(label)
        self._lines.append(("", instruction))
        self.terminated = True

    def finish(self, *, beside: bool = False) -> None:
        """Add the function to its module, or to the one beside it, where hints about loops are of no use."""
        self._terminate(_UNREACHABLE)
        self._entry.append(("", br("body")))
        if beside and self.module.beside is not self.module:
            self._sections = [(label, [_without_hint(line) for line in lines]) for label, lines in self._sections]
        if self.constants_in_memory:
            constants = ConstantsInMemory()
            self._sections = [(label, list(constants.read(lines))) for label, lines in self._sections]
            for text in constants.definitions():
                self.module.add_global(text)
        written = [f"{self._head} {{"]
        for label, lines in [("entry", self._entry), *self._sections]:
            if label:
                written.append(f"{label}:")
            written += [f"  {name} = {text_of(i)}" if name else f"  {text_of(i)}" for name, i in lines]
        text = "\n".join([*written, "}", ""])
        (self.module.move if beside else self.module.define)(self.name, text)
        # What emits holds what holds this writer: the records would wait for a collection of garbage.
        for records in (self._entry, self._lines, self._sections):
            records.clear()
        self._values.forget()
        self._memory.forget()

    # Sizes fold when they are known.

    def range_of(self, size: Size) -> tuple[int, int] | None:
        """The least and the greatest value that a size may have, where they are known."""
        return (size, size) if isinstance(size, int) else self.ranges.get(size)

    def add(self, a: Size, b: Size) -> Size:
        """a + b."""
        if b == 0:
            return a
        if a == 0:
            return b
        return a + b if isinstance(a, int) and isinstance(b, int) else _sized(self, "add", a, b)

    def sub(self, a: Size, b: Size) -> Size:
        """a - b."""
        if b == 0:
            return a
        return a - b if isinstance(a, int) and isinstance(b, int) else _sized(self, "sub", a, b)

    def mul(self, a: Size, b: Size) -> Size:
        """a * b."""
        if a == 0 or b == 0:
            return 0
        if b == 1:
            return a
        if a == 1:
            return b
        return a * b if isinstance(a, int) and isinstance(b, int) else _sized(self, "mul", a, b)


_COMPUTE: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _sized(w: FunctionWriter, opcode: str, a: Size, b: Size) -> str:
    """Emit arithmetic of sizes, and note the range of its result."""
    name = w.emit(binary(opcode, "i64", a, b))
    if name in w.ranges:  # it was computed before
        return name
    first, second = w.range_of(a), w.range_of(b)
    if first is not None and second is not None:
        compute = _COMPUTE[opcode]
        ends = [compute(x, y) for x in first for y in second]
        least, most = min(ends), max(ends)
        if -_INT64 <= least and most < _INT64:
            w.ranges[name] = least, most
    return name


def _without_hint(line: Line) -> Line:
    """A line without what it tells LLVM about its loop."""
    name, instruction = line
    if instruction.opcode != "br" or not instruction.attributes[-1].startswith(_LOOP_HINT):
        return line
    return name, instruction._replace(attributes=(*instruction.attributes[:-1], ""))
