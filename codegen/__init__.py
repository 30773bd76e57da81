"""From lowered modules to artifacts: targets, code generators, linking, the compile driver."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.codegen.compile import call, compile, lower

if TYPE_CHECKING:
    from weft.codegen.compiled import load_module
    from weft.codegen.reference import interpret
    from weft.runtime import Executable

__all__ = ["Executable", "call", "compile", "interpret", "load_module", "lower"]

if __name__ != "weft.codegen":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.codegen, not codegen")

_HOMES = {
    "Executable": "weft.runtime.executable",
    "interpret": "weft.codegen.reference",
    "load_module": "weft.codegen.compiled",
}
"""Where names are that what was compiled before does without; no module has such a name itself."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value
