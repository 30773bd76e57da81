"""Another name of `weft.script.tir`, for scripts of newer spelling."""

from __future__ import annotations

from typing import Any

from weft.script import tir
from weft.script.decorators import prim_func
from weft.script.tir import Buffer, Cast, Select, axis, handle

__all__ = ["Buffer", "Cast", "Select", "axis", "handle", "prim_func"]


def __getattr__(name: str) -> Any:
    return getattr(tir, name)
