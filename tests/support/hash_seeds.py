"""What a program prints in processes that hash texts differently."""

from __future__ import annotations

import os
import subprocess
import sys

__all__ = ["printed_under_hash_seeds"]


def printed_under_hash_seeds(code: str) -> set[str]:
    """What it prints: one text, where nothing depends on the order of a set."""
    return {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "src"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
