"""weft: a compiler toolkit for tensor programs.

The names here are loaded when first used, so that `import weft` is quick and the runtime works without the compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.errors import (
    ArgumentError,
    ArtifactError,
    BoundsError,
    DTypeError,
    PassError,
    ScheduleError,
    ScriptError,
    ShapeError,
    TargetError,
    VerifyError,
    WeftError,
)

if TYPE_CHECKING:
    from weft import codegen, ir, runtime, script, transform
    from weft.ir import (
        BlockBuilder,
        IRModule,
        assert_structural_equal,
        assert_well_formed,
        first_mismatch,
        structural_equal,
        structural_hash,
        te,
        verify,
    )
    from weft.ir.target import Target, tag, target_kind

__version__ = "0.1.0"

# Public name -> module that defines it.
_HOMES = {
    "BlockBuilder": "weft.ir.builder",
    "IRModule": "weft.ir",
    "Target": "weft.ir.target",
    "tag": "weft.ir.target",
    "target_kind": "weft.ir.target",
    "assert_structural_equal": "weft.ir",
    "assert_well_formed": "weft.ir.verify",
    "first_mismatch": "weft.ir",
    "structural_equal": "weft.ir",
    "structural_hash": "weft.ir",
    "verify": "weft.ir.verify",
    "parse": "weft.script",
    "interpret": "weft.codegen",
    "compile": "weft.codegen",
    "Executable": "weft.codegen",
    "load": "weft.runtime",
    "register_func": "weft.runtime",
}
_MODULES = {
    "codegen": "weft.codegen",
    "ir": "weft.ir",
    "runtime": "weft.runtime",
    "script": "weft.script",
    "te": "weft.ir.te",
    "transform": "weft.transform",
}

__all__ = [
    "ArgumentError", "ArtifactError", "BlockBuilder", "BoundsError", "DTypeError", "IRModule", "PassError",
    "ScheduleError", "ScriptError", "ShapeError", "Target", "TargetError", "VerifyError", "WeftError", "assert_structural_equal",
    "assert_well_formed", "codegen", "first_mismatch", "ir", "runtime", "script", "structural_equal", "structural_hash",
    "te", "transform", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
