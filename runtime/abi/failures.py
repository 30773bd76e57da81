"""Errors of compiled code: the site that a frame names, as the exception that the user sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.errors as errors
from weft.errors import ASSERTION_CODES, Source, Span, WeftError, note_kernel_caller, one_screen

__all__ = ["GRAPH_CALL", "KERNEL_CALL", "failure", "placed", "span_of"]

KERNEL_CALL, GRAPH_CALL = "kernel call", "graph call"
"""The kinds of sites that only place what fails inside of them."""

_BUILTIN: dict[str, type[Exception]] = {
    name: kind
    for name, kind in (
        ("AssertionError", AssertionError),
        ("ValueError", ValueError),
        ("TypeError", TypeError),
        ("RuntimeError", RuntimeError),
        ("IndexError", IndexError),
        ("ZeroDivisionError", ZeroDivisionError),
        ("OverflowError", OverflowError),
        ("NotImplementedError", NotImplementedError),
        ("KeyError", KeyError),
    )
}
_OURS: dict[str, type[WeftError]] = {
    "MemoryError": errors.OutOfMemoryError,
    "RecursionError": errors.RecursionDepthError,
}
"""Failures with the names of Python's exceptions: ours are those too."""
_UNCOUNTED = 1 << 62
"""The number of bytes of what 64 bits do not count."""


def span_of(data: Sequence[Any] | None) -> Span | None:
    """The span that a site holds as data."""
    if data is None:
        return None
    name, text, first_line, start, end, origin = data
    return Span(Source(name, text, first_line), start, end, origin)


def failure(site: dict[str, Any], values: Sequence[int], place: dict[str, Any] | None = None) -> BaseException:
    """The exception for a failure site; a site without a span of its own gets that of the call it happened in."""
    span = site.get("span")
    error = _error(site, values, span_of(span or (place or {}).get("span")))
    return error if span is None else placed(error, place)


def placed(error: BaseException, place: dict[str, Any] | None) -> BaseException:
    """An error of a kernel with the place where a graph function called it."""
    if place is not None and place["kind"] == KERNEL_CALL:
        note_kernel_caller(error, span_of(place.get("span")))
    return error


def _error(site: dict[str, Any], values: Sequence[int], span: Span | None) -> Exception:
    message, note = (_filled(site.get(name, ()), values) for name in ("message", "note"))
    kind = site["kind"]
    known = _OURS.get(kind) or getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, WeftError):
        code = site.get("code") or ASSERTION_CODES.get(kind)
        return known(message, code=code, span=span, notes=(note,) if note else (), hint=site.get("hint"))
    error = _BUILTIN.get(kind, RuntimeError)(one_screen(message))
    if note:
        error.add_note(f"note: {note}")
    if span is not None:
        error.add_note(span.render())
    return error


def _filled(parts: Sequence[str | int], values: Sequence[int]) -> str:
    return "".join(part if isinstance(part, str) else _number(values[part]) for part in parts)


def _number(value: int) -> str:
    return f"at least {value}" if value == _UNCOUNTED else str(value)
