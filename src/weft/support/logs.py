"""WEFT_LOG: what compiling does, as lines on standard error.

    WEFT_LOG=info      each compilation: its functions, its target, how long it took or where it was kept
    WEFT_LOG=debug     each pass as well

The lines come from the loggers `weft.compile`, `weft.passes` and `weft.cache` of Python's logging, to which a program
may add handlers of its own instead. The variable is read when weft is imported.
"""

from __future__ import annotations

import logging

from weft.errors import PassError, printable

__all__ = ["start"]

_LEVELS = ("debug", "info", "warning", "error")


def start(level: str) -> None:
    """Show the lines of a level and above; PassError W505 for another word."""
    if level.lower() not in _LEVELS:
        raise PassError(f"WEFT_LOG is {level!r}", code="W505", hint=f"use {', '.join(_LEVELS[:-1])} or {_LEVELS[-1]}")
    handler = logging.StreamHandler()
    handler.setFormatter(_Printable("%(name)s: %(message)s"))
    logger = logging.getLogger("weft")
    logger.setLevel(level.upper())
    logger.addHandler(handler)


class _Printable(logging.Formatter):
    """Lines in which the names of programs cannot move the cursor of a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
