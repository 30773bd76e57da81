"""Artifacts in, arrays in, arrays out: loading and calling. Imports nothing of the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import weft.runtime.libraries
from weft.runtime.executable import CompiledFunction, Executable
from weft.runtime.registry import find_func, lookup, register_func, registered_funcs, unregister_func

if TYPE_CHECKING:
    from weft.runtime.archive import load

__all__ = [
    "CompiledFunction",
    "Executable",
    "find_func",
    "load",
    "lookup",
    "register_func",
    "registered_funcs",
    "unregister_func",
]

if __name__ != "weft.runtime":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.runtime, not runtime")


def __getattr__(name: str) -> Any:
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from weft.runtime.archive import load  # reads archives, which what was just compiled does without

    globals()["load"] = load
    return load
