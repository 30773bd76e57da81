"""What `@T.macro(...)` and `@R.macro(...)` with options give (see ../__init__.pyi)."""

from typing import Any

from weft.script.reader.macros import Macro

def no_type_check(func: Any) -> Macro:
    """Read a Python function as a macro."""
