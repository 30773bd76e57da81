"""Python and text to IR and back: the syntax table, the readers, the printer, the decorators."""

from __future__ import annotations

if __name__ != "weft.script":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.script, not script")
