"""What became of a model that was imported, compiled and run: a status, and what to say of it."""

from __future__ import annotations

import traceback
from collections import Counter


def failed(stage: str, error: Exception) -> tuple[str, str]:
    """The stage that ended with an error, and the error with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    first = str(error).strip().splitlines()[0] if str(error) else ""
    return stage, f"{type(error).__name__} at {last.filename.rpartition('/')[2]}:{last.lineno}: {first}"


def closed(counts: Counter[str], seconds: float, minimum: float, least_native: float) -> int:
    """The exit status for how many were right, and natively, of those that count; prints the last line."""
    right = counts["native"] + counts["python"]
    total = sum(counts.values()) - counts["skip"]
    native = counts["native"] / total if total else 0.0
    share = right / max(total, 1)
    print(f"{right} of {total} right ({share:.1%}), {native:.1%} native; {dict(counts)}; {seconds:.0f} s")
    return 0 if right >= minimum * total and native >= least_native else 1
