"""LLVM assembly as text.

    module   ::= header declaration* global* function*
    function ::= define ... { entry: allocas, then blocks }

A value is its spelling: an SSA name (`%7`) or a constant (`3`); who emits knows its type. Writing text is several times
faster than building objects, and LLVM's parser checks it. After a terminator the rest of a block is dropped, so code
that follows `return` in a loop body needs no special case.

What is computed already is not computed again: an instruction without effects whose text stands in a block that
dominates the current one is that one, and so is a load of what is known to be there (`known_memory`). Unrolled loops
get short by it, before LLVM sees them. Integer arithmetic that a loop does not change stands before the loop.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from weft.codegen.backends.llvm.asm.store_forwarding import KnownMemory

__all__ = ["FunctionWriter", "ModuleWriter"]

_INT64 = 1 << 63
Size = int | str  # a 64-bit size: known now, or the spelling of an i64
_WITHOUT_EFFECTS = frozenset(
    "add sub mul and or xor shl lshr ashr sdiv udiv srem urem icmp fcmp fadd fsub fmul fdiv frem fneg select"
    " getelementptr sext zext trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr"
    " insertelement extractelement shufflevector".split()
)

_PURE_CALLS = ("call i64 @llvm.smax.", "call i64 @llvm.smin.")
# Sizes, addresses and masks; vectors of numbers stay where they are used, since there are only so many registers.
_MOVES_OUT = re.compile(
    r"(add|sub|mul|shl|and|or|xor|icmp \w+|select i1 \S+) (nsw |nuw )?i\d|[sz]ext i|trunc i|call i64 @llvm\.sm"
    r"|insertelement <\d+ x i32> poison|shufflevector <\d+ x i(32|1)>|icmp \w+ <\d+ x i32>|(and|or|xor) <\d+ x i1>"
    r"|select i1 \S+ <\d+ x i1>|getelementptr \w+, ptr \S+ i64 %"
)
_NAMES = re.compile(r"%[\w.]+")
_WRITES_AT_FIRST = "call void @llvm.masked.store"


LONG = 30_000
"""The characters from which a part takes longer to compile than a module of its own costs."""
CompileApart = Callable[["ModuleWriter", bool], None]


class ModuleWriter:
    """One LLVM module under construction.

    `beside` is where functions go that only connect others, and are not worth optimising; by default they stay here.
    `compile_apart` takes parts that are long enough to be compiled at the same time as the rest.
    """

    def __init__(self, beside: ModuleWriter | None = None, compile_apart: CompileApart | None = None) -> None:
        self.beside = self if beside is None else beside
        self._compile_apart = compile_apart
        self._declarations: dict[str, str] = {}
        self._globals: list[str] = []
        self._functions: list[str] = []
        self._metadata: list[str] = []
        self._defined: set[str] = set()

    def declare(self, name: str, result: str, params: tuple[str, ...], attributes: str = "") -> str:
        """Declare an outside function once; gives its spelling."""
        self._declarations.setdefault(
            name, f"declare {result} @{quoted(name)}({', '.join(params)}) {attributes}".rstrip()
        )
        return f"@{quoted(name)}"

    def spelled(self, name: str) -> str:
        """How a function is spelled."""
        return f"@{quoted(name)}"

    def add_global(self, text: str) -> None:
        """Add a global variable definition."""
        self._globals.append(text)

    def define(self, name: str, text: str) -> None:
        """Add a finished function; declarations of the same name are dropped."""
        self._functions.append(text)
        self._defined.add(name)

    def move(self, name: str, text: str) -> None:
        """Add a finished function beside this module, with what it may call and without hints about its loops."""
        if self.beside is not self:
            text = re.sub(r", !llvm\.loop !\d+$", "", text, flags=re.MULTILINE)
            for declared, line in self._declarations.items():
                self.beside._declarations.setdefault(declared, line)
        self.beside.define(name, text)

    def part(self) -> ModuleWriter:
        """An empty module for a part of this one."""
        made = ModuleWriter(None if self.beside is self else self.beside, self._compile_apart)
        made._metadata = self._metadata  # numbered together
        return made

    def add(self, part: ModuleWriter, *, explicit: bool) -> None:
        """Add a part: here, or as a module of its own where that is worth it."""
        if self._compile_apart is not None and sum(map(len, part._functions)) >= LONG:
            self._compile_apart(part, explicit)
            return
        for name, text in part._declarations.items():
            self._declarations.setdefault(name, text)
        self._globals += part._globals
        self._functions += part._functions
        self._defined |= part._defined

    @property
    def has_functions(self) -> bool:
        """Whether a function is defined."""
        return bool(self._functions)

    def add_metadata(self, text: str) -> str:
        """Add a metadata node; gives its spelling. `@self` in the text stands for the node itself."""
        name = f"!{len(self._metadata)}"
        self._metadata.append(f"{name} = distinct {text.replace('@self', name)}")
        return name

    def __str__(self) -> str:
        declared = [text for name, text in self._declarations.items() if name not in self._defined]
        return "\n".join([*declared, *self._globals, *self._functions, *self._metadata]) + "\n"


def quoted(name: str) -> str:
    """A global name, in quotes when it needs them."""
    if name.replace("_", "").replace(".", "").isalnum() and name.isascii() and not name[0].isdigit():
        return name
    text = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02x}" for b in name.encode())
    return f'"{text}"'


class _Region:
    """A block in the tree of dominators.

    `jump` is an ancestor further up, chosen so that any ancestor is a logarithmic number of steps away (Myers, "An
    applicative random-access stack", 1983): blocks nest as deep as a function has checks. The root is its own parent.
    """

    __slots__ = ("depth", "jump", "parent")

    def __init__(self, parent: _Region | None) -> None:
        self.parent: _Region = self if parent is None else parent
        self.depth = 0 if parent is None else parent.depth + 1
        near = self.parent
        balanced = parent is not None and near.depth - near.jump.depth == near.jump.depth - near.jump.jump.depth
        self.jump: _Region = near.jump if balanced else near

    def above(self, depth: int) -> _Region:
        """The ancestor of a depth."""
        found = self
        while found.depth > depth:
            found = found.jump if found.jump.depth >= depth else found.parent
        return found


def _common(a: _Region, b: _Region) -> _Region:
    """The nearest block that dominates both."""
    a, b = a.above(b.depth), b.above(a.depth)
    while a is not b:
        a, b = (a.parent, b.parent) if a.jump is b.jump else (a.jump, b.jump)
    return a


class FunctionWriter:
    """One LLVM function under construction.

    A block is opened after all forward jumps to it were written; later ones come from blocks that it dominates (loops).
    """

    def __init__(
        self,
        module: ModuleWriter,
        name: str,
        result: str,
        params: list[tuple[str, str]],
        attributes: str = "",
    ) -> None:
        self.module = module
        self.name = name
        described = ", ".join(f"{ty} %{param}" for ty, param in params)
        self._head = f"define {result} @{quoted(name)}({described}) {attributes}"
        self._allocas: list[str] = []
        self._lines: list[str | list[str]] = []  # a list is what moved out of the loop after it
        self._loops: list[tuple[list[str], _Region]] = []
        self._depths: dict[str, int] = {}  # of what is defined in loops
        self.ranges: dict[str, tuple[int, int]] = {}  # the least and the greatest value of sizes, where they are known
        self._count = 0
        self._labels = 0
        self.terminated = False
        self.block_label = "body"
        self._root = self._region = _Region(None)
        self._dominating = {self._root}
        self._into: dict[str, _Region] = {}
        self._known: dict[str, tuple[str, _Region]] = {}
        self._memory = KnownMemory()
        for ty, param in params:
            if ty.startswith("ptr"):
                self._memory.root(f"%{param}", alone="noalias" in ty)

    def emit(self, instruction: str) -> str:
        """Append an instruction with a result, unless its result is known here; gives the result's name."""
        operation = instruction.partition(" ")[0]
        pure = operation in _WITHOUT_EFFECTS or instruction.startswith(_PURE_CALLS)
        if not self.terminated:
            if pure:
                found = self._known.get(instruction)
                if found is not None and found[1] in self._dominating:
                    return found[0]
            elif operation == "load":
                value = self._memory.loaded(instruction)
                if value is not None:
                    return value
            elif operation != "phi" and "@llvm." not in instruction:
                self._memory.forget()
        self._count += 1
        name = f"%.{self._count}"
        if not self.terminated:
            region = self._append(name, instruction)
            if pure:
                self._known[instruction] = name, region
                if operation == "getelementptr":
                    self._memory.moved(name, instruction)
            elif operation == "load":
                self._memory.load(name, instruction)
        return name

    def _append(self, name: str, instruction: str) -> _Region:
        """Append an instruction, or add it to what stands before a loop that does not change it; gives its block."""
        if not self._loops:
            self._lines.append(f"  {name} = {instruction}")
            return self._region
        depth = len(self._loops)
        if _MOVES_OUT.match(instruction):
            inside = max((self._depths.get(operand, 0) for operand in _NAMES.findall(instruction)), default=0)
            depth = min(depth, inside)  # what an earlier loop defined may have been deeper
        if depth:
            self._depths[name] = depth
        if depth == len(self._loops):
            self._lines.append(f"  {name} = {instruction}")
            return self._region
        before, region = self._loops[depth]
        before.append(f"  {name} = {instruction}")
        return region

    def begin_loop(self) -> None:
        """A loop starts with the next block, which only the current one leads to."""
        before: list[str] = []
        self._lines.append(before)
        self._loops.append((before, self._region))

    def end_loop(self) -> None:
        """The innermost loop has been written to its last branch."""
        self._loops.pop()

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        if self.terminated:
            return
        self._lines.append(f"  {instruction}")
        if self._loops and instruction.startswith("%"):
            self._depths[instruction.partition(" ")[0]] = len(self._loops)
        if instruction.startswith("store "):
            self._memory.store(instruction)
        elif instruction.startswith(_WRITES_AT_FIRST):
            self._memory.changed(instruction.partition(", ptr ")[2].partition(",")[0])
        elif "call " in instruction and not instruction.startswith("call void @llvm.prefetch"):
            self._memory.forget()

    def alloca(self, type_text: str, count: int = 1, align: int = 8) -> str:
        """Stack memory for the whole function, whatever block asks for it."""
        self._count += 1
        name = f"%.{self._count}"
        of = f"[{count} x {type_text}]" if count != 1 else type_text  # an array: LLVM keeps parts of one in registers
        self._allocas.append(f"  {name} = alloca {of}, align {align}")
        self._memory.root(name, alone=True)
        return name

    def at_entry(self, instruction: str) -> None:
        """Append an instruction to the entry block (for the first value of a slot)."""
        self._allocas.append(f"  {instruction}")

    def label(self, hint: str) -> str:
        """A new label name."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def open(self, label: str) -> None:
        """Start a block; falls through from the current one when that has no terminator."""
        if not self.terminated:
            self._arrive(label)
            self._lines.append(f"  br label %{label}")
        self._lines.append(f"{label}:")
        self.block_label = label
        self.terminated = False
        self._memory.forget()
        self._enter(_Region(self._into.get(label, self._root)))

    def open_if_used(self, label: str) -> None:
        """Start a block to which all jumps have been written; go on with the current one when there are none."""
        if label in self._into:
            self.open(label)

    def _arrive(self, label: str) -> None:
        """Note a way from the current block to a label."""
        found = self._into.get(label)
        self._into[label] = self._region if found is None else _common(found, self._region)

    def _enter(self, region: _Region) -> None:
        """Make a block the current one."""
        meeting = _common(self._region, region.parent)
        old, new = self._region, region
        while old is not meeting:
            self._dominating.discard(old)
            old = old.parent
        while new is not meeting:
            self._dominating.add(new)
            new = new.parent
        self._region = region

    def jump(self, label: str, metadata: str = "") -> None:
        """Go to a block."""
        if not self.terminated:
            self._arrive(label)
        self.do(f"br label %{label}{metadata}")
        self.terminated = True

    def branch(self, condition: str, then: str, other: str, weights: str = "") -> None:
        """Go to one of two blocks."""
        if not self.terminated:
            self._arrive(then)
            self._arrive(other)
        self.do(f"br i1 {condition}, label %{then}, label %{other}{weights}")
        self.terminated = True

    def ret(self, text: str) -> None:
        """Return."""
        self.do(f"ret {text}")
        self.terminated = True

    def finish(self, *, beside: bool = False) -> None:
        """Add the function to its module, or to the one beside it."""
        if not self.terminated:
            self.do("unreachable")
        body = "\n".join(line for part in self._lines for line in ([part] if isinstance(part, str) else part))
        entry = "\n".join(self._allocas)
        add = self.module.move if beside else self.module.define
        add(self.name, f"{self._head} {{\nentry:\n{entry}\n  br label %body\nbody:\n{body}\n}}\n")

    # Sizes fold when they are known.

    def range_of(self, size: Size) -> tuple[int, int] | None:
        """The least and the greatest value that a size may have, where they are known."""
        return (size, size) if isinstance(size, int) else self.ranges.get(size)

    def add(self, a: Size, b: Size) -> Size:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self._sized(f"add i64 {a}, {b}", a, b, operator.add)

    def sub(self, a: Size, b: Size) -> Size:
        """a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._sized(f"sub i64 {a}, {b}", a, b, operator.sub)

    def mul(self, a: Size, b: Size) -> Size:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self._sized(f"mul i64 {a}, {b}", a, b, operator.mul)

    def _sized(self, instruction: str, a: Size, b: Size, compute: Callable[[int, int], int]) -> str:
        """Emit arithmetic of sizes, and note the range of its result."""
        name = self.emit(instruction)
        first, second = self.range_of(a), self.range_of(b)
        if first is not None and second is not None:
            ends = [compute(x, y) for x in first for y in second]
            if -_INT64 <= min(ends) and max(ends) < _INT64:
                self.ranges[name] = min(ends), max(ends)
        return name
