"""Artifacts in, arrays in, arrays out: loading and calling. Imports nothing of the compiler."""

from __future__ import annotations

import weft.runtime.libraries
from weft.runtime.executable import CompiledFunction, Executable, load
from weft.runtime.registry import find_func, lookup, register_func, registered_funcs, unregister_func

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
