"""The version of weft, for what records by which tools it was made."""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.1.0"
