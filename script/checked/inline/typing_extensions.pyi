"""`@T.inline` (see ../__init__.pyi)."""

from typing import Any

from weft.script.reader.macros import Macro

def no_type_check(func: Any) -> Macro:
    """Statements that tensor-level functions take over where they call them; names follow Python's rules."""
