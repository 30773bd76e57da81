"""From lowered modules to artifacts: targets, code generators, linking, the compile driver."""

from __future__ import annotations

from weft.codegen.compile import call, compile, lower
from weft.codegen.compiled import load_module
from weft.codegen.interpret import interpret
from weft.runtime import Executable

__all__ = ["Executable", "call", "compile", "interpret", "load_module", "lower"]

if __name__ != "weft.codegen":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.codegen, not codegen")
