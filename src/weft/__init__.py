"""weft: a compiler toolkit for tensor programs.

The names here are loaded when first used, so that `import weft` is quick and the runtime works without the compiler.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from weft.errors import (
    ArgumentError,
    ArtifactError,
    BoundsError,
    DTypeError,
    MissingExtraError,
    ModelError,
    OutOfMemoryError,
    PassError,
    RecursionDepthError,
    ResourceError,
    ScheduleError,
    ScriptError,
    ShapeError,
    TargetError,
    VerifyError,
    WeftError,
)
from weft.moved import install as _install_moved_names
from weft.support.collection import rare_collections as _rare_collections
from weft.support.excepthook import install as _install_hooks
from weft.version import VERSION as __version__

if TYPE_CHECKING:
    from weft import analysis, codegen, frontend, ir, runtime, script, testing, transform
    from weft.codegen import Executable, compile, interpret, load_module, lower
    from weft.ir import IRModule, te
    from weft.ir.builder import BlockBuilder
    from weft.ir.kernel.externs import declare_extern
    from weft.ir.structure.structural import assert_structural_equal, first_mismatch, structural_equal, structural_hash
    from weft.ir.verify import assert_well_formed, verify
    from weft.runtime import load, register_func
    from weft.runtime.artifact import Artifact, ArtifactSet
    from weft.runtime.device.threads import get_num_threads, set_num_threads
    from weft.script import parse
    from weft.support.dlpack import to_dlpack
    from weft.support.plugins import load_plugins
    from weft.target import Config, Target, tag, target_kind
    from weft.transform.memory.planners import memory_planner
    from weft.transform.quantize.quantize_model import quantize

# Public name -> module that defines it.
_HOMES = {
    "Artifact": "weft.runtime.artifact",
    "ArtifactSet": "weft.runtime.artifact",
    "BlockBuilder": "weft.ir.builder",
    "Config": "weft.target",
    "Executable": "weft.runtime",
    "IRModule": "weft.ir",
    "Target": "weft.target",
    "assert_structural_equal": "weft.ir",
    "assert_well_formed": "weft.ir.verify",
    "compile": "weft.codegen",
    "declare_extern": "weft.ir.kernel.externs",
    "first_mismatch": "weft.ir",
    "get_num_threads": "weft.runtime.device.threads",
    "interpret": "weft.codegen",
    "load": "weft.runtime",
    "load_module": "weft.codegen",
    "load_plugins": "weft.support.plugins",
    "lower": "weft.codegen",
    "memory_planner": "weft.transform.memory.planners",
    "parse": "weft.script",
    "quantize": "weft.transform.quantize.quantize_model",
    "register_func": "weft.runtime",
    "set_num_threads": "weft.runtime.device.threads",
    "structural_equal": "weft.ir",
    "structural_hash": "weft.ir",
    "tag": "weft.target",
    "target_kind": "weft.target",
    "to_dlpack": "weft.support.dlpack",
    "verify": "weft.ir.verify",
}
_MODULES = {
    "analysis": "weft.analysis",
    "codegen": "weft.codegen",
    "frontend": "weft.frontend",
    "ir": "weft.ir",
    "runtime": "weft.runtime",
    "script": "weft.script",
    "target": "weft.target",
    "te": "weft.ir.te",
    "testing": "weft.testing",
    "transform": "weft.transform",
}

__all__ = [
    "ArgumentError",
    "Artifact",
    "ArtifactError",
    "ArtifactSet",
    "BlockBuilder",
    "BoundsError",
    "Config",
    "DTypeError",
    "Executable",
    "IRModule",
    "MissingExtraError",
    "ModelError",
    "OutOfMemoryError",
    "PassError",
    "RecursionDepthError",
    "ResourceError",
    "ScheduleError",
    "ScriptError",
    "ShapeError",
    "Target",
    "TargetError",
    "VerifyError",
    "WeftError",
    "analysis",
    "assert_structural_equal",
    "assert_well_formed",
    "codegen",
    "compile",
    "declare_extern",
    "first_mismatch",
    "frontend",
    "get_num_threads",
    "interpret",
    "ir",
    "load",
    "load_module",
    "load_plugins",
    "lower",
    "memory_planner",
    "parse",
    "register_func",
    "runtime",
    "script",
    "set_num_threads",
    "structural_equal",
    "structural_hash",
    "tag",
    "target_kind",
    "te",
    "testing",
    "to_dlpack",
    "transform",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name) or _MODULES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    with _rare_collections():  # what is loaded stays: looking for garbage in it takes a fifth of the time
        module = importlib.import_module(home)
    value = globals()[name] = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})


_install_moved_names()
_install_hooks()

if os.environ.get("WEFT_LOG"):
    importlib.import_module("weft.support.logs").start(os.environ["WEFT_LOG"])
