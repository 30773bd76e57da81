"""LLVM assembly as text.

    module   ::= header declaration* global* function*
    function ::= define ... { entry: allocas, then blocks }

A value is its spelling: an SSA name (`%7`) or a constant (`3`); who emits knows its type. Writing text is several times
faster than building objects, and LLVM's parser checks it. After a terminator the rest of a block is dropped, so code
that follows `return` in a loop body needs no special case.
"""

from __future__ import annotations

__all__ = ["FunctionWriter", "ModuleWriter"]

Size = int | str  # a 64-bit size: known now, or the spelling of an i64


class ModuleWriter:
    """One LLVM module under construction."""

    def __init__(self) -> None:
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


class FunctionWriter:
    """One LLVM function under construction."""

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
        self._lines: list[str] = []
        self._count = 0
        self._labels = 0
        self.terminated = False
        self.block_label = "body"

    def emit(self, instruction: str) -> str:
        """Append an instruction with a result; gives the result's name."""
        self._count += 1
        name = f"%.{self._count}"
        if not self.terminated:
            self._lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        if not self.terminated:
            self._lines.append(f"  {instruction}")

    def alloca(self, type_text: str, count: int = 1, align: int = 8) -> str:
        """Stack memory for the whole function, whatever block asks for it."""
        self._count += 1
        name = f"%.{self._count}"
        size = f", i64 {count}" if count != 1 else ""
        self._allocas.append(f"  {name} = alloca {type_text}{size}, align {align}")
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
            self._lines.append(f"  br label %{label}")
        self._lines.append(f"{label}:")
        self.block_label = label
        self.terminated = False

    def jump(self, label: str, metadata: str = "") -> None:
        """Go to a block."""
        self.do(f"br label %{label}{metadata}")
        self.terminated = True

    def branch(self, condition: str, then: str, other: str, weights: str = "") -> None:
        """Go to one of two blocks."""
        self.do(f"br i1 {condition}, label %{then}, label %{other}{weights}")
        self.terminated = True

    def ret(self, text: str) -> None:
        """Return."""
        self.do(f"ret {text}")
        self.terminated = True

    def finish(self) -> None:
        """Add the function to its module."""
        if not self.terminated:
            self.do("unreachable")
        body = "\n".join(self._lines)
        entry = "\n".join(self._allocas)
        self.module.define(self.name, f"{self._head} {{\nentry:\n{entry}\n  br label %body\nbody:\n{body}\n}}\n")

    # Sizes fold when they are known.

    def add(self, a: Size, b: Size) -> Size:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self.emit(f"add i64 {a}, {b}")

    def sub(self, a: Size, b: Size) -> Size:
        """a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.emit(f"sub i64 {a}, {b}")

    def mul(self, a: Size, b: Size) -> Size:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self.emit(f"mul i64 {a}, {b}")
