"""From lowered modules to artifacts: targets, code generators, linking, the compile driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.codegen.compile import call, compile, lower
from weft.codegen.interpret import interpret
from weft.runtime import Executable

if TYPE_CHECKING:
    from weft.codegen.compiled import load_module

__all__ = ["Executable", "call", "compile", "interpret", "load_module", "lower"]

if __name__ != "weft.codegen":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.codegen, not codegen")


def __getattr__(name: str) -> Any:
    if name != "load_module":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from weft.codegen.compiled import load_module  # loads what reads text

    return load_module
