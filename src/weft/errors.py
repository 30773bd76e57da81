"""Errors that a user can cause, and the source positions they point at.

This module stands below every other one: it imports nothing of weft, so that the compiler folders and the
runtime raise the same classes.

Contract:
    error   ::= code message [span] notes* [hint]
    span    ::= (source, start, end)            offsets in characters, line and column computed on demand (1-based)
    code    ::= "W" digits                      stable; the first digit tells the class (see each class)

`str(error)` is one screen: the message, the place with a caret under the exact expression, the notes, the hint. However
long the names in it are, what is left out is counted; characters that a terminal would obey are written as escapes.
"""

from __future__ import annotations

import bisect
import contextlib
import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ASSERTION_CODES",
    "ArgumentError",
    "ArtifactError",
    "BoundsError",
    "DTypeError",
    "MissingExtraError",
    "ModelError",
    "OutOfMemoryError",
    "PassError",
    "RecursionDepthError",
    "ResourceError",
    "ScheduleError",
    "ScriptError",
    "ShapeError",
    "Source",
    "Span",
    "TargetError",
    "UnwrittenError",
    "VerifyError",
    "WeftError",
]


_LONG_LINE = 1000


@dataclass(frozen=True, eq=False)
class Source:
    """A named text that spans point into (a file, a notebook cell, a string given to `weft.parse`)."""

    name: str
    text: str
    first_line: int = 1
    _starts: list[int] = field(default_factory=list, init=False, repr=False)
    _long_lines: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts.append(0)
            self._starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based (line, column) of a character offset."""
        starts = self._line_starts()
        line = bisect.bisect_right(starts, offset) - 1
        return line + self.first_line, offset - starts[line] + 1

    def offset(self, line: int, column: int) -> int:
        """The character offset of a 1-based (line, column)."""
        return self._line_starts()[line - self.first_line] + column - 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line break."""
        known = self._long_lines.get(line)
        if known is not None:
            return known
        starts = self._line_starts()
        index = line - self.first_line
        end = starts[index + 1] - 1 if index + 1 < len(starts) else len(self.text)
        text = self.text[starts[index] : end].rstrip("\r")
        if len(text) > _LONG_LINE:  # thousands of parameters on one line hold it once, not once each
            self._long_lines[line] = text
        return text


@dataclass(frozen=True, eq=False, slots=True)
class Span:
    """A range of characters in a source; `origin` names the pass that made the node, when one did."""

    source: Source
    start: int
    end: int
    origin: str = ""

    @property
    def filename(self) -> str:
        """The name of the source."""
        return self.source.name

    @property
    def line(self) -> int:
        """The 1-based line of the first character."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """The 1-based column of the first character."""
        return self.source.position(self.start)[1]

    @property
    def end_line(self) -> int:
        """The 1-based line of the end."""
        return self.source.position(self.end)[0]

    @property
    def end_column(self) -> int:
        """The 1-based column just after the last character."""
        return self.source.position(self.end)[1]

    def derived(self, origin: str) -> Span:
        """The same place, marked as the work of the pass `origin`."""
        return Span(self.source, self.start, self.end, origin)

    def meets(self, other: Span) -> bool:
        """Whether two ranges have characters in common."""
        if self.start >= other.end or other.start >= self.end:
            return False
        return self.source is other.source or all(
            getattr(self.source, name) == getattr(other.source, name) for name in ("name", "first_line", "text")
        )

    def quoted(self) -> str:
        """The place as a part of a note: file, line, and what stands there."""
        return f"{self.filename}:{self.line}: {self.source.line_text(self.line).strip()}"

    def render(self) -> str:
        """The place as text: file, line, column, the source line and a caret line under the range."""
        line, column = self.source.position(self.start)
        end_line, end_column = self.source.position(self.end)
        text = self.source.line_text(line)
        stop = end_column if end_line == line else len(text) + 1
        width = max(1, stop - column)
        shown, before = _window(text, column - 1, width)
        width = max(1, min(width, len(shown) - before))
        ahead, under, behind = map(printable, (shown[:before], shown[before : before + width], shown[before + width :]))
        shown, width = f"{ahead}{under}{behind}", max(1, len(under))
        # Tabs are kept in the padding so that the caret lines up however wide the terminal shows them.
        padding = "".join("\t" if char == "\t" else " " for char in ahead)
        gutter = " " * len(str(line))
        made = f" (made by {self.origin})" if self.origin else ""
        return (
            f"{gutter}--> {printable(shortened(self.filename))}:{line}:{column}{made}\n"
            f"{gutter} |\n{line} | {shown}\n{gutter} | {padding}{'^' * width}"
        )


_WIDEST = 240  # characters of a source line that an error shows
_LONGEST = 2000  # characters of a message
_LINES = 30  # of a message
_LONGEST_PATH = 4096  # no system opens a longer one, so that a tool finds the file by the name that it is told
_MOST_NOTES = 10
_WORD = 400  # characters in one piece, such as a name, a number or a quoted text without spaces
# Control characters, marks that turn the direction of text around, separators of lines, halves of characters.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with escapes for what a terminal obeys instead of showing it (line breaks and tabs stay).

    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, where it is too long without the middle of its long words, and then of itself; says what is missing.

    >>> shortened("the name " + "a" * 10_000 + " is unknown")
    'the name aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...(9940 characters left out)...aaaaaaaaaaaaaaaaaaaa is unknown'
    """
    if len(text) > _WORD:
        text = _LONG_WORD.sub(lambda found: _without_middle(found[0], 40, 20), text)
    lines = text.split("\n")
    if len(lines) > _LINES:
        text = "\n".join([*lines[: _LINES - 1], f"...({len(lines) - _LINES + 1} lines left out)"])
    return _cut(text, longest)


def one_screen(text: str) -> str:
    """A message of a program: what a terminal shows, of the length of an error."""
    return printable(shortened(text))


def value_words(value: object, longest: int = 80) -> str:
    """The type and the text of any value, in one short line, whatever its `repr` does.

    >>> value_words([1, 2]), value_words(10**5000)
    ('list [1, 2]', 'int of 16610 bits')
    """
    kind = type(value).__name__
    if isinstance(value, int) and value.bit_length() > longest * 4:
        return f"{kind} of {value.bit_length()} bits"
    try:
        text = _SHORT.repr(value) if isinstance(value, _HOLDERS) else repr(value)
    except Exception as error:  # a class of the user's, or numbers inside that are too long
        text = f"whose repr raises {type(error).__name__}"
    whole = f"{kind} {' '.join(text.split())}"
    return whole if len(whole) <= longest else f"{whole[: longest - 3]}..."


_HOLDERS = (tuple, list, dict, set, frozenset)
_SHORT = reprlib.Repr()  # what is held twice at each of many levels has a text without end
_SHORT.maxlevel, _SHORT.maxtuple, _SHORT.maxlist, _SHORT.maxdict = 4, 12, 12, 12
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def tuple_words(value: Any, parts: Callable[[Any], Sequence[Any] | None], words: Callable[[Any], str]) -> str:
    """Nested tuples as `tuple(a, tuple(b))`, the first pieces of them; `parts` gives None for what `words` are of.

    >>> tuple_words((1, (2, ())), lambda item: item if isinstance(item, tuple) else None, str)
    'tuple(1, tuple(2, tuple()))'
    """
    text: list[str] = []
    stack: list[tuple[bool, Any]] = [(False, value)]
    while stack:
        if len(text) > _PIECES:
            return "".join([*text, "..."])
        is_text, item = stack.pop()
        inside = None if is_text else parts(item)
        if inside is None:
            text.append(item if is_text else words(item))
            continue
        text.append("tuple(")
        stack.append((True, ")"))
        for index in reversed(range(min(len(inside), _PIECES))):
            stack.append((False, inside[index]))
            if index:
                stack.append((True, ", "))
    return "".join(text)


_PIECES = 60
_LONG_WORD = re.compile(rf"\S{{{_WORD},}}")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else _without_middle(text, longest - 180, 80)


def _without_middle(text: str, first: int, last: int) -> str:
    return f"{text[:first]}...({len(text) - first - last} characters left out)...{text[len(text) - last :]}"


def _window(text: str, start: int, width: int) -> tuple[str, int]:
    """The part of a long line around a range, and where the range starts in it."""
    if len(text) <= _WIDEST:
        return text, start
    room = max(20, (_WIDEST - width) // 2)
    first = max(0, min(start - room, len(text) - _WIDEST))
    last = min(len(text), first + _WIDEST)
    left, right = "..." if first else "", "..." if last < len(text) else ""
    return f"{left}{text[first:last]}{right}", start - first + len(left)


def described(value: object) -> str:
    """What a value is, for messages.

    >>> described(3), described([]), described(int), described(len)
    ('an int', 'a list', 'the class int', 'the function len')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if kind in ("function", "builtin_function_or_method", "method"):
        return f"the function {getattr(value, '__name__', '?')}"
    return "None" if value is None else f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}"


class WeftError(Exception):
    """The base of every error that a user can cause.

    >>> error = ShapeError("expected 4, got 5", hint="reshape first")
    >>> error.code, error.hint
    ('W200', 'reshape first')
    """

    default_code = "W000"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        span: Span | None = None,
        notes: Iterable[str] = (),
        hint: str | None = None,
    ) -> None:
        message = shortened(message)  # an error is one screen, whatever the names in it
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.span = span
        self.notes = tuple(notes)
        self.hint = hint

    def at(self, span: Span | None) -> WeftError:
        """Give the error a place if it has none yet; returns itself for `raise error.at(span)`."""
        if self.span is None:
            self.span = span
        return self

    def __str__(self) -> str:
        lines = [f"{self.code}: {printable(self.message)}"]
        if self.span is not None:
            lines.append(self.span.render())
        lines.extend(f"note: {printable(note)}" for note in self._shown_notes())
        if self.hint:
            lines.append(f"hint: {printable(shortened(self.hint, _LONGEST // 2))}")
        return "\n".join(lines)

    def _shown_notes(self) -> list[str]:
        """The notes as far as a screen has room for them."""
        shown = [shortened(str(note), _LONGEST // 2) for note in self.notes[:_MOST_NOTES]]
        more = len(self.notes) - len(shown)
        return [*shown, f"...({more} notes left out)"] if more else shown

    def to_json(self) -> dict[str, Any]:
        """The error as JSON-like data with code, message, file, line, column, end_line, end_column, notes, hint."""
        span = self.span
        return {
            "code": self.code,
            "message": self.message,
            "file": _cut(span.filename, _LONGEST_PATH) if span else None,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "end_line": span.end_line if span else None,
            "end_column": span.end_column if span else None,
            "notes": self._shown_notes(),
            "hint": shortened(self.hint, _LONGEST // 2) if self.hint else self.hint,
        }


def note_call(error: BaseException, name: str, place: Span | None) -> None:
    """Say on an exception of a user's function which function raised it, and where it was called.

    >>> error = ValueError("no good")
    >>> note_call(error, "shop.price", None)
    >>> error.__notes__
    ["in 'shop.price'"]
    """
    with contextlib.suppress(BaseException):  # a class of the user's may refuse notes with anything
        error.add_note(f"in {name!r}" + ("" if place is None else f", called at\n{place.render()}"))


def note_caller(error: BaseException, place: Span | None) -> None:
    """Say on an error with a place of its own where the call was inside which it happened; others get that place.

    >>> error = BoundsError("index 9")
    >>> note_caller(error, Span(Source("shop.py", "y = price(x)"), 0, 12))
    >>> error.span.line, error.notes
    (1, ())
    >>> note_caller(error, Span(Source("main.py", "z = total(y)"), 0, 12))
    >>> error.notes
    ('called at main.py:1: z = total(y)',)
    """
    if place is None:
        return
    if not isinstance(error, WeftError):
        with contextlib.suppress(BaseException):  # as in `note_call`
            error.add_note(f"called at {printable(shortened(place.quoted()))}")
    elif error.span is None:
        error.span = place
    elif not error.span.meets(place):
        error.notes = (*error.notes, f"called at {place.quoted()}")


def note_kernel_caller(error: BaseException, place: Span | None) -> None:
    """As `note_caller`, for the call of a kernel, which may compute several operators: an error that has the place of
    one of them needs no other."""
    if isinstance(error, WeftError) and error.span is not None and error.span.origin:
        return
    note_caller(error, place)


class ScriptError(WeftError):
    """Reading a script failed (W100-W199)."""

    default_code = "W100"


class ShapeError(WeftError):
    """A shape claim is refuted, when deduced or by a run-time check (W200-W299)."""

    default_code = "W200"


class DTypeError(WeftError):
    """Data types do not fit (W300-W399)."""

    default_code = "W300"


class VerifyError(WeftError):
    """A module is not well formed (W400-W499)."""

    default_code = "W400"


class PassError(WeftError):
    """A pass, pipeline or option is wrong (W500-W599)."""

    default_code = "W500"


class ScheduleError(WeftError):
    """A schedule primitive does not apply (W600-W699)."""

    default_code = "W600"


class TargetError(WeftError):
    """A target is malformed or cannot do what is asked (W700-W799)."""

    default_code = "W700"


class ArtifactError(WeftError):
    """An artifact or executable file is damaged, unsupported or not serialisable (W800-W849)."""

    default_code = "W800"


class ArgumentError(WeftError):
    """A compiled or interpreted function was called with wrong arguments (W850-W899)."""

    default_code = "W850"


class BoundsError(WeftError):
    """An index was out of range, or a value was read before it was written (W900-W949)."""

    default_code = "W900"


ASSERTION_CODES = {"ShapeError": "W222"}
"""The codes of assertions in kernels whose kind of error stands for many mistakes: sizes that do not fit each other."""


class UnwrittenError(BoundsError):
    """An element of scratch or of an output was read before it was written (W901).

    >>> UnwrittenError("an element of 'c' is read before it is written").code
    'W901'
    """

    default_code = "W901"


class ResourceError(WeftError):
    """A call needs more than the machine gives (W950-W969)."""

    default_code = "W950"


class OutOfMemoryError(ResourceError, MemoryError):
    """There is no memory for a value: the message says how many bytes it takes (W950).

    >>> isinstance(OutOfMemoryError("no memory for y: 8 bytes"), MemoryError)
    True
    """


class RecursionDepthError(ResourceError, RecursionError):
    """Calls are nested too deep (W951).

    >>> RecursionDepthError("calls of f are nested too deep").code
    'W951'
    """

    default_code = "W951"


class ModelError(WeftError):
    """A model of another framework is not valid, or not to be had (W970-W999)."""

    default_code = "W970"


class MissingExtraError(ModelError, ImportError):
    """A package that an optional part of weft needs is not installed; the hint names the extra (W971).

    >>> isinstance(MissingExtraError("weft.frontend.onnx needs onnx"), ImportError)
    True
    """

    default_code = "W971"
