"""Where the text of a running program is found.

    a file, a notebook cell, a doctest, what is registered with linecache     linecache
    `__source__ = text` in the globals of the program                         that text
    python -c TEXT                                                            the command line
    python < FILE                                                             the file, read again
    exec(TEXT), eval, compile                                                 a string in the frames that are running
    typed at a terminal                                                       what Python kept of it (from 3.13 on), or
                                                                              the history of the line editor (readline)

Text from the last two is only used when compiling it gives exactly the code that runs, so that it cannot be another
text of the same name. CPython keeps the text of nothing else, and then the error says so.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from weft.errors import Source, WeftError
from weft.script.source.diagnostics import Limits, fail
from weft.script.source.text import make_source, parse_python

__all__ = ["no_source", "program_text"]

_found: deque[str] = deque(maxlen=16)  # texts that `exec` ran: their functions may be called when it has ended
_HISTORY = 2000  # lines of the history that are looked through
_PROMPT = "<stdin"  # from 3.13 on with a number for each entry
_HINT = "put it in a file or notebook, register the text with linecache, or use weft.parse(text)"
_KEEP_THE_TEXT = (
    "keep the text while it runs: `text = open(path).read(); exec(text)`, or give it as a name: "
    '`exec(code, {"__source__": text})`; or use weft.parse(text)'
)
_FUTURE_FLAGS = 0x1000000  # `from __future__ import annotations`: it changes what a definition compiles to


def program_text(frame: FrameType, code: CodeType, names: Mapping[str, Any]) -> tuple[Source, ast.Module]:
    """The text that holds the code, and its syntax tree; `frame` runs the decorator, `names` are the code's globals.

    ScriptError W102 when Python has kept no text of it.
    """
    filename = code.co_filename
    linecache.checkcache(filename)
    text = "".join(linecache.getlines(filename, dict(names)))
    around = code
    if not text:
        around = frame.f_code if frame.f_code.co_filename == filename else code
        text = _stated(names) or _of_a_string(frame, around, code.co_name) or _of_the_command(filename, code.co_name)
    if not text:
        text = _of_the_prompt(around) or _of_the_history(around) or ""
    if not text:
        ran = filename.startswith("<") and not filename.startswith(_PROMPT)
        raise no_source("the definition", filename, _reason(filename), _KEEP_THE_TEXT if ran else _HINT)
    return _parsed(filename, text)


@functools.lru_cache(maxsize=16)
def _parsed(filename: str, text: str) -> tuple[Source, ast.Module]:
    source = make_source(filename, text)
    return source, parse_python(source, Limits())


def _stated(names: Mapping[str, Any]) -> str | None:
    text = names.get("__source__")
    return text if isinstance(text, str) else None


def _of_the_command(filename: str, name: str) -> str | None:
    """The program text of `python -c TEXT` and of `python < FILE`; the former only where it has the definition."""
    if filename == "<string>" and "-c" in sys.orig_argv:
        position = sys.orig_argv.index("-c")
        text = sys.orig_argv[position + 1] if position + 1 < len(sys.orig_argv) else ""
        return text if not name.isidentifier() or re.search(rf"\b(def|class)\s+{name}\b", text) else None
    if filename == "<stdin>":
        try:
            size = os.fstat(0).st_size
            return os.pread(0, size, 0).decode() if size else None
        except (OSError, UnicodeDecodeError):
            return None
    return None


def _of_a_string(frame: FrameType, code: CodeType, name: str) -> str | None:
    """A string in the frames that are running which compiles to the code: what `exec` was given."""
    word = name if name.isidentifier() else ""
    seen: set[int] = set()
    for text in (*_found, *_strings(frame.f_back)):
        if id(text) in seen or word not in text:
            continue
        seen.add(id(text))
        if _compiles_to(text, code, "exec"):
            if text not in _found:
                _found.append(text)
            return text
    return None


def _strings(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        for values in (frame.f_locals.values(), frame.f_code.co_consts):
            yield from (value for value in list(values) if type(value) is str and "\n" in value)
        if frame.f_code.co_name == "<module>":
            yield from (value for value in list(frame.f_globals.values()) if type(value) is str and "\n" in value)
        frame = frame.f_back


def _of_the_prompt(code: CodeType) -> str | None:
    """What Python kept of lines typed at a terminal, which `inspect` asks for in the same way."""
    kept = getattr(linecache, "_getlines_from_code", None)
    text = "".join(kept(code)) if kept is not None and code.co_filename.startswith(_PROMPT) else ""
    return text if text and _compiles_to(text, code, "single") else None


def _of_the_history(code: CodeType) -> str | None:
    """The last lines typed at a terminal which compile to the code that runs."""
    readline: Any = sys.modules.get("readline")
    if readline is None or not code.co_filename.startswith(_PROMPT):
        return None
    last = readline.get_current_history_length()
    lines: list[str] = []
    for position in range(last, max(0, last - _HISTORY), -1):
        lines.insert(0, readline.get_history_item(position) or "")
        if lines[0][:1].strip() and _compiles_to(text := "\n".join(lines) + "\n", code, "single"):
            return text
    return None


def _compiles_to(text: str, code: CodeType, mode: str) -> bool:
    """Whether a text compiles to the code, or to code that holds it."""
    flags = code.co_flags & _FUTURE_FLAGS
    try:
        made = compile(text, code.co_filename, mode, flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    stack = [made]
    while stack:
        current = stack.pop()
        if current == code:
            return True
        stack.extend(item for item in current.co_consts if isinstance(item, CodeType))
    return False


def _reason(filename: str) -> str:
    if filename.startswith(_PROMPT):
        return "Python keeps no text of what is piped into it"
    if filename.startswith("<"):
        return "Python keeps no text of what `exec` runs"
    return "the file cannot be read"


def no_source(name: str, filename: str, reason: str, hint: str = _HINT) -> WeftError:
    """The error for a definition without text."""
    return fail("W102", f"no source text of {name} in {filename}: {reason}", hint=hint)
