"""Texts and syntax trees: places in characters, limits, and names from outside the script.

`Unit` is one text that is being read: its source, its limits, the prelude aliases and (for decorators only) the Python
values that the script may capture. `parse_python` is the only place where text becomes a syntax tree; nothing is ever
evaluated by Python.
"""

from __future__ import annotations

import ast
import contextlib
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from weft.errors import Source, Span, WeftError
from weft.ir.structure.recursion import deep_recursion, deeply, used_frames
from weft.script.source.budget import Budget
from weft.script.source.diagnostics import Consequence, Limits, fail
from weft.support.array_memory import frozen_copy
from weft.support.collection import rare_collections
from weft.support.excepthook import is_internal
from weft.support.records import dataclass
from weft.support.stack import frames_in_one_piece, with_stack

__all__ = ["MISSING", "NAMESPACE_MODULES", "Unit", "make_source", "parse_python", "print_deeply", "read_deeply"]

NAMESPACE_MODULES = {
    "weft.script.ir": "I",
    "weft.script.relax": "R",
    "weft.script.tir": "T",
    "weft.script.tirx": "T",
    "tvm.script.ir": "I",
    "tvm.script.relax": "R",
    "tvm.script.tir": "T",
    "tvm.script.tirx": "T",
    "tvm.script.parser.ir": "I",
    "tvm.script.parser.relax": "R",
    "tvm.script.parser.tir": "T",
    "tvm.script.parser.tirx": "T",
}
PRELUDE = {"I": "I", "R": "R", "T": "T", "tirx": "T", "tir": "T", "ty": "T"}


class _Missing:
    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


def make_source(name: str, text: str) -> Source:
    """A source whose line breaks are all of one kind, so that places agree with Python's."""
    text = text.removeprefix("\ufeff")  # the mark that some editors put first
    return Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def parse_python(source: Source, limits: Limits) -> ast.Module:
    """The syntax tree of a text.

    ScriptError W101 for a syntax error, W103 for a text over the limits.
    """
    if len(source.text) > limits.size:
        raise fail(
            "W103",
            f"the text has {len(source.text)} characters, the limit is {limits.size}",
            hint="Limits(size=...) allows more",
        )
    try:
        with warnings.catch_warnings(), rare_collections():
            warnings.simplefilter("ignore")  # Python's advice on style (`1if x`) is not about the script
            return with_stack(lambda: _parsed(source.text))
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):
        raise fail(
            "W103", "the text is nested too deeply to read", hint="split long expressions into bindings"
        ) from None
    except ValueError as error:  # null characters
        raise fail("W101", f"not a Python text: {error}") from None


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except RecursionError:
        with deep_recursion(used_frames() + _FRAMES):
            return ast.parse(text)


def _syntax_error(source: Source, error: SyntaxError) -> Exception:
    message = error.msg or "invalid syntax"
    if "too many nested" in message or "too many levels" in message or "too complex" in message:
        return fail("W103", f"the text is nested too deeply to read ({message})")
    span = None
    if error.lineno and 1 <= error.lineno <= source.text.count("\n") + 1:
        column = max(1, error.offset or 1)
        start = min(source.offset(error.lineno, column), len(source.text))
        same_line = error.end_lineno == error.lineno and error.end_offset
        end = source.offset(error.lineno, max(column, error.end_offset or 0)) if same_line else start
        span = Span(source, start, max(start, min(end, len(source.text))))
    digits = _DIGITS.match(message)
    if digits is not None:
        what = f"a number of {digits[2]} digits is refused (limit {digits[1]})"
        return fail("W101", what, span, "sizes fit in 64 bits; hexadecimal has no limit")
    return fail("W101", message, span)


_DIGITS = re.compile(r"Exceeds the limit \((\d+) digits\).* value has (\d+) digits")
"""What Python says of a literal that it does not read."""


T = TypeVar("T")
_USUAL_NESTING = 25
"""The levels of a script for which the usual recursion limit is enough."""
_FRAMES = 6000
"""Python calls for the deepest script that is read: one level takes a few."""


@frames_in_one_piece
def read_deeply(tree: ast.AST, read: Callable[[], T]) -> T:
    """What `read` gives of a syntax tree; it runs once more, with room, where the usual limit was too little.

    What recurses without end in code that a script of usual nesting calls is the user's, and stays what it is.
    """
    with rare_collections(), _named():
        try:
            return read()
        except RecursionError as error:
            if _nesting(tree) <= _USUAL_NESTING and _is_foreign(error):
                raise _Foreign(error) from None
        with deep_recursion(used_frames() + _FRAMES):
            return read()


@frames_in_one_piece
def print_deeply(root: Any, written: Callable[[], T]) -> T:
    """What prints a node, or a module, with room for its nesting."""
    with rare_collections(), _named():
        return deeply(root, written)


class _Foreign(Exception):
    """A RecursionError that is none of the script's."""


def _is_foreign(error: RecursionError) -> bool:
    """Whether code outside of the package is what recursed: most of the calls at the end."""
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)][-100:]
    return sum(map(is_internal, frames)) * 2 < len(frames)


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """W103 for scripts that need more than there is."""
    try:
        yield
    except _Foreign as error:
        raise error.args[0] from None
    except RecursionError:
        raise fail("W103", "the script is nested too deeply", hint="split long expressions into bindings") from None
    except MemoryError:
        raise fail("W103", "the script needs more memory than there is") from None


def _nesting(tree: ast.AST) -> int:
    """How many parts of a syntax tree are inside of one another, at most."""
    found, pending = 0, [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        found = max(found, depth)
        pending.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return found


def _identity(error: WeftError) -> tuple[object, ...]:
    return (error.code, error.span.start, error.span.end) if error.span is not None else (error.code, error.message)


@dataclass
class Unit:
    """A text being read, and what names mean outside its functions."""

    source: Source
    limits: Limits = field(default_factory=Limits)
    aliases: dict[str, str] = field(default_factory=lambda: dict(PRELUDE))
    captured: Mapping[str, Any] | None = None
    blobs: Mapping[str, Any] | None = None
    symbols: dict[str, str] = field(default_factory=dict)  # declared outside functions: name -> dtype
    constants: dict[str, Any] = field(default_factory=dict)  # NAME = 3 outside functions
    members: Mapping[str, Any] = field(default_factory=dict)  # of the class that a decorator reads
    partial: bool = False  # whether the text is a Python file, of which only the units are read
    assumed: list[WeftError] = field(default_factory=list)  # relations of sizes that only a declared type states
    arrays: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # by number: given, and kept of it
    findings: list[WeftError] | None = None  # where all errors are gathered; None: the first is raised
    _starts: list[int] = field(default_factory=list)
    _lines: list[str] | None = None
    budget: Budget = field(init=False)  # shared with the texts of macros

    def __post_init__(self) -> None:
        text = self.source.text
        self.budget = Budget.of_text(self.limits, text)
        self._starts = [0]
        position = text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = text.find("\n", position + 1)
        if not text.isascii():
            self._lines = text.split("\n")

    def kept_array(self, array: np.ndarray) -> np.ndarray:
        """An array as a constant holds it: itself where it is read-only, else one copy, however often it stands."""
        if not array.flags.writeable and array.flags.c_contiguous:
            return array
        if id(array) not in self.arrays:
            copy = frozen_copy(array)
            self.arrays[id(array)] = array, copy  # the first stays alive, so that its number is not another's
        return self.arrays[id(array)][1]

    def offset(self, line: int, column: int) -> int:
        """The character offset of a (line, byte column) of a syntax tree."""
        if self._lines is not None:
            content = self._lines[line - 1]
            if not content.isascii():
                column = len(content.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + column

    def span(self, tree: Any) -> Span:
        """The place of a syntax tree."""
        start = self.offset(tree.lineno, tree.col_offset)
        if tree.end_lineno is None:
            return Span(self.source, start, start)
        return Span(self.source, start, self.offset(tree.end_lineno, tree.end_col_offset))

    def name_span(self, tree: ast.ClassDef | ast.FunctionDef) -> Span:
        """The place of the name of a definition."""
        start = self.offset(tree.lineno, tree.col_offset)
        start = self.source.text.find(tree.name, start + (5 if isinstance(tree, ast.ClassDef) else 3))
        return Span(self.source, start, start + len(tree.name))

    def note(self, error: WeftError) -> bool:
        """Keep an error and go on, where errors are gathered; limits end the reading all the same."""
        if self.findings is None or error.code == "W103":
            return False
        known = {_identity(found) for found in self.findings}  # unrolled statements fail alike each time
        if not isinstance(error, Consequence) and _identity(error) not in known:
            self.findings.append(error)
        return True

    @property
    def noted(self) -> int:
        """How many errors have been gathered."""
        return len(self.findings or ())

    def step(self, tree: ast.AST) -> None:
        """Count a statement or round of a static loop against the limit."""
        self.budget.statement(self.span(tree))

    def charge(self, units: int, tree: ast.AST) -> None:
        """Pay for work that an expression asks for (see `budget`)."""
        if self.budget.left < units:
            self.budget.charge(units, self.span(tree))
        self.budget.left -= units

    def capture(self, name: str) -> Any:
        """The Python value of a name outside the script, or MISSING."""
        if name in self.constants:
            return self.constants[name]
        if self.captured is None:
            return MISSING
        return self.captured.get(name, MISSING)

    def namespace(self, name: str) -> str | None:
        """I, R or T when the name stands for one of them."""
        if self.captured is not None:
            value = self.captured.get(name, MISSING)
            if isinstance(value, ModuleType):
                return NAMESPACE_MODULES.get(value.__name__)
            if value is not MISSING:
                return None
        return self.aliases.get(name)
