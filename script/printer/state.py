"""The state of printing: lines, names, and the style that says what is written differently.

Text is made of pieces: strings, and tensor-level expressions with the precedence their place asks for, so that deep
expressions need no recursion. Functions `(printer, node)` make them; one that is marked by `varies` may have another in
its place in a style: in text for TVM, or around parts that are underlined.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from weft.ir.deduction.device_mesh import DeviceMesh
from weft.ir.deduction.infer import TypeContext
from weft.ir.graph import Var
from weft.ir.node import EMPTY
from weft.ir.tensor import For, PrimVar
from weft.script.forms.syntax import BUFFERS, Form
from weft.support.records import dataclass

__all__ = [
    "RESERVED",
    "SPELLINGS",
    "Always",
    "Piece",
    "Printer",
    "Ready",
    "Style",
    "Varies",
    "identifier",
    "raised",
    "separated",
    "varies",
]

RESERVED = frozenset(
    {
        "I",
        "R",
        "T",
        "cls",
        "range",
        "min",
        "max",
        "float",
        "int",
        "bool",
        "len",
        "abs",
        "round",
        "ceildiv",
        "tirx",
        *keyword.kwlist,
    }
)

_NOT_NAME = re.compile(r"\W")

# What other spellings call the same things.
SPELLINGS: dict[str, dict[str, str]] = {
    "weft": {},
    "tvm-0.27": {
        "T.block": "T.sblock",
        "T.block_attr": "T.sblock_attr",
        "R.Str": "R.Any",
        "R.Str()": "R.Any",
    },
    "tvm-0.20": {
        "R.Any": "R.Object",
        "R.Any()": "R.Object",
        "R.Str": "R.Object",
        "R.Str()": "R.Object",
        "out_ty": "out_sinfo",
        "ty_args": "sinfo_args",
    },
}

Piece = Any  # str | (PrimExpr, minimal precedence)

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Varies(Protocol[_Parameters, _Result]):
    """A function in whose place a style may have another; `plain` is the function itself."""

    plain: Callable[Concatenate[Any, _Parameters], _Result]

    def __call__(self, printer: Printer, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        """What the style of the printer makes of the arguments."""
        ...


def varies(plain: Callable[Concatenate[Any, _Parameters], _Result]) -> Varies[_Parameters, _Result]:
    """A decorator: styles may have another function in the place of this one."""

    def show_one(printer: Printer, node: Any) -> Any:
        return printer.style.get(show_one, plain)(printer, node)  # type: ignore[call-overload]

    def show_all(printer: Printer, *arguments: Any) -> Any:
        return printer.style.get(show_all, plain)(printer, *arguments)  # type: ignore[call-overload]

    show: Any = show_one if plain.__code__.co_argcount == 2 else show_all  # one argument: the quick way
    made: Any = wraps(plain)(show)
    made.plain = plain
    return made


Style = Mapping[Varies[..., Any], Callable[..., Any]]
"""Functions in the place of others."""


@dataclass(eq=False)
class Printer:
    """What has been written, the names in use, and how things are written."""

    spelling: str = "weft"
    annotate: bool = True  # whether every binding says its type
    style: Style = field(default_factory=dict)
    blobs: dict[str, bytes] | None = None  # large constants by their hash, when they are not to be in the text
    # the module around the functions
    functions: Mapping[str, Any] = EMPTY  # what deduction may look up
    module_class: str | None = None
    meshes: list[tuple[str, DeviceMesh]] = field(default_factory=list)  # by their names
    unchecked: bool = False  # whether the function or module has faults that reading would refuse, or is not read again
    block_buffer: Form = BUFFERS["T.alloc_buffer"]  # what makes a buffer of a block
    # the text
    root: Any = None  # what is printed
    joined: int = 0  # the expressions and forms that were put together
    lines: list[str] = field(default_factory=list)
    indent: str = ""
    pending: list[str] = field(default_factory=list)  # lines that the next one needs before it
    # the function
    context: TypeContext | None = None
    names: dict[Any, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)  # symbols that are names already
    shared: set[str] = field(default_factory=set)  # names of a parameter and of the size that it is
    silent: dict[Var, Callable[[str], None]] = field(default_factory=dict)  # statements whose variable has no name yet
    quoted: bool = False  # whether dimensions are written as strings
    loops: dict[PrimVar, For] = field(default_factory=dict)
    threads: dict[PrimVar, str] = field(default_factory=dict)  # thread axes that are declared before their loop

    def __post_init__(self) -> None:
        self.foreign = self.spelling != "weft"  # whether the text is for other readers
        self.renames = SPELLINGS[self.spelling]

    def reset(self) -> None:
        """Forget the names of the last function."""
        self.names, self.used, self.counts, self.symbols, self.shared = {}, set(), {}, set(), set()
        self.silent, self.loops, self.threads = {}, {}, {}
        self.quoted = False
        self.pending = []

    def line(self, text: str) -> None:
        """Add a line at the current depth, after those that it needs."""
        if self.pending:
            pending, self.pending = self.pending, []
            self.lines.extend(self.indent + before for before in pending)
        self.lines.append(self.indent + text if text else "")

    def name(self, variable: Any) -> str:
        """The name of a variable or buffer; a new one gets a free name."""
        found = self.names.get(variable)
        if found is None:
            found = self.names[variable] = self.fresh(variable.name)
            if variable in self.silent:
                self.silent.pop(variable)(found)
        return found

    def fresh(self, hint: str) -> str:
        """A free, valid name near the hint."""
        base = identifier(hint) if hint else "v"
        if base not in self.used and base not in RESERVED and base not in self.symbols:
            self.used.add(base)
            return base
        count = self.counts.get(base, 0) + 1
        while f"{base}_{count}" in self.used or f"{base}_{count}" in self.symbols:
            count += 1
        self.counts[base] = count
        made = f"{base}_{count}"
        self.used.add(made)
        return made

    def block_of(self, head: str, body: Callable[[], None], *, empty: bool = False) -> None:
        """A statement with an indented body."""
        self.line(head)
        outer = self.indent
        self.indent += "    "
        if empty:
            self.line("pass")
        else:
            body()
        self.indent = outer

    def spelled(self, name: str) -> str:
        """A name of the table in the chosen spelling."""
        return self.renames.get(name, name)


class Ready:
    """Text that is ready, in the place of a value."""

    __slots__ = ("text",)

    def __init__(self, text: Any) -> None:
        self.text = text


class Always(str):
    """A string that is written even where it equals the default: it is of another type."""

    __slots__ = ()


def separated(parts: Iterable[list[Piece]]) -> list[Piece]:
    """Parts with commas between them."""
    result: list[Piece] = []
    for part in parts:
        if result:
            result.append(", ")
        result.extend(part)
    return result


def raised(pieces: list[Piece], minimum: int) -> list[Piece]:
    """The same pieces with the precedence that their place asks for."""
    return [piece if isinstance(piece, str) else (piece[0], max(minimum, piece[1])) for piece in pieces]


def identifier(name: str) -> str:
    """A valid identifier near a name."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    made = _NOT_NAME.sub("_", name)
    if not made or made[0].isdigit():
        made = f"v{made}" if made else "v"
    return f"{made}_" if keyword.iskeyword(made) else made
