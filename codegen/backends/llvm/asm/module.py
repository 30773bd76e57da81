"""One LLVM module under construction.

    module ::= declaration* global* function* metadata*

Functions arrive finished, as text (`function`): a module is printed once, and LLVM's parser checks it. Declarations
stand in the order in which they were first needed, so the same program gives the same text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

__all__ = ["LONG", "CompileApart", "ModuleWriter", "byte_text", "quoted"]

LONG = 30_000
"""The characters from which a part takes longer to compile than a module of its own costs."""
_DEFINED = re.compile(r"^define [^@]*@([\w.]+)\(", re.MULTILINE)
CompileApart = Callable[["ModuleWriter", bool], None]


class ModuleWriter:
    """Collects declarations, globals, functions and metadata.

    `beside` is where functions go that only connect others, and are not worth optimising; by default they stay here.
    `compile_apart` takes parts that are long enough to be compiled at the same time as the rest.
    """

    def __init__(self, beside: ModuleWriter | None = None, compile_apart: CompileApart | None = None) -> None:
        self.beside = self if beside is None else beside
        self._compile_apart = compile_apart
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, None] = {}
        self._functions: list[str] = []
        self._metadata: list[str] = []
        self._defined: dict[str, None] = {}

    def declare(self, name: str, result: str, params: tuple[str, ...], attributes: str = "") -> str:
        """Declare an outside function once; gives its spelling."""
        spelled = self.spelled(name)
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} {spelled}({', '.join(params)}) {attributes}".rstrip()
        return spelled

    def spelled(self, name: str) -> str:
        """How a function is spelled."""
        return f"@{quoted(name)}"

    def add_global(self, text: str) -> None:
        """Add a global variable definition, once."""
        self._globals[text] = None

    def define(self, name: str, text: str) -> None:
        """Add a finished function; declarations of the same name are dropped."""
        self._functions.append(text)
        self._defined[name] = None

    def define_all(self, text: str) -> None:
        """Add a text of finished functions, each under its name."""
        self._functions.append(text)
        self._defined |= dict.fromkeys(_DEFINED.findall(text))

    def move(self, name: str, text: str) -> None:
        """Add a finished function beside this module, with what it may call."""
        if self.beside is not self:
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
        self._globals |= part._globals
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

    @property
    def defined(self) -> list[str]:
        """The names of the functions, in order."""
        return list(self._defined)

    def definitions(self) -> str:
        """The text without declarations, which follow from what is called."""
        return "\n".join([*self._globals, *self._functions, *self._metadata]) + "\n"

    def declarations(self) -> list[str]:
        """The lines of what is declared and not defined."""
        return [f"{text}\n" for name, text in self._declarations.items() if name not in self._defined]

    def __str__(self) -> str:
        return "".join([*self.declarations(), self.definitions()])


@functools.lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """A global name, in quotes when it needs them.

    >>> quoted("weft.kernel.f"), quoted("a b")
    ('weft.kernel.f', '"a b"')
    """
    if name.replace("_", "").replace(".", "").isalnum() and name.isascii() and not name[0].isdigit():
        return name
    return f'"{_escaped(name.encode())}"'


def byte_text(content: bytes) -> str:
    """Bytes as a constant of LLVM's text."""
    return f'c"{_escaped(content)}"'


def _escaped(content: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02x}" for b in content)
