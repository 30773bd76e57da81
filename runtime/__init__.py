"""Artifacts in, arrays in, arrays out: loading and calling. Imports nothing of the compiler."""

from __future__ import annotations

if __name__ != "weft.runtime":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.runtime, not runtime")
