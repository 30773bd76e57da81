"""Findings and results, as text for people and as JSON for tools.

finding ::= {code, message, file, line, column, end_line, end_column, notes, hint}      (null where it has no place)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from weft.errors import OBEYED, WeftError, printable

__all__ = ["as_json", "print_json", "report_errors", "say"]


def print_json(value: Any) -> None:
    """Print a JSON document on standard output; in it, what a terminal would obey is an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    print(OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say(text: str) -> None:
    """Print words about the user's names on standard output; what a terminal would obey in them is escaped."""
    print(printable(text), flush=True)


def as_json(error: WeftError, file: str | None = None) -> dict[str, Any]:
    """An error as a finding; `file` is the file that was read, for an error without a place."""
    data = error.to_json()
    if data["file"] is None:
        data["file"] = file or getattr(error, "file", None)
    return data


def report_errors(errors: Sequence[WeftError], in_json: bool) -> int:
    """Report errors, all of them; returns the exit status 1."""
    if in_json:
        print_json([as_json(error) for error in errors])
    else:
        print(_text(errors), file=sys.stderr)
    return 1


def _text(errors: Iterable[WeftError]) -> str:
    return "\n\n".join(str(error) for error in errors)
