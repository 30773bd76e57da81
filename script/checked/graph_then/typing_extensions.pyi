"""What `@R.function(...)` with options gives (see ../__init__.pyi)."""

from typing import Any

from weft.ir.graph import Function

def no_type_check(func: Any) -> Function:
    """Read a Python function as a graph function."""
