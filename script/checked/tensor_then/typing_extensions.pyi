"""What `@T.prim_func(...)` with options gives (see ../__init__.pyi)."""

from typing import Any

from weft.ir.tensor import PrimFunc

def no_type_check(func: Any) -> PrimFunc:
    """Read a Python function as a tensor-level function."""
