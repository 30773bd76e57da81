"""What became of a model that was imported, compiled and run: a status, and what to say of it."""

from __future__ import annotations

import traceback


def failed(stage: str, error: Exception) -> tuple[str, str]:
    """The stage that ended with an error, and the error with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).strip().splitlines()[0] if str(error) else ""
    return stage, f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}: {first}"
