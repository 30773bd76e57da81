"""Which layer provides a method that nodes offer but lower layers cannot import.

`module.script()` is written by the script layer and `module(x)` compiles; `ir` imports neither. The type of a call asks
for the declaration of its operator, which is written with types. The face registers here who provides what, by name,
and the provider is loaded when first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["PROVIDERS", "load", "provider"]

PROVIDERS: dict[str, str] = {
    "operator": "weft.ir.op:get_op",
    "script": "weft.script:script_of",
    "show": "weft.script:show",
    "locate": "weft.script.printer.access_path:locate",
    "html": "weft.script:to_html",
    "call": "weft.codegen:call",
    "parse": "weft.script:parse",
    "import_report": "weft.frontend.report:import_report",
    "quantization_report": "weft.transform.quantize.report:quantization_report",
    "rewriter": "weft.transform.pattern.declared:rewriter_of",
    "artifacts": "weft.runtime.artifact:artifacts_of",
    "merge_artifacts": "weft.runtime.merging:merge_artifacts",
    "extract_artifacts": "weft.runtime.merging:extract_artifacts",
    "implementations": "weft.runtime.merging:implementations",
    "load_artifact": "weft.runtime.loading:load_artifact",
    "load_set": "weft.runtime.loading:load_set",
    "export": "weft.runtime.loading:export",
    "load_executable": "weft.runtime.archive:load_bytes",
    "write_executable": "weft.runtime.archive:write",
    "program_artifacts": "weft.runtime.program_artifacts:program_artifacts",
    "library_artifacts": "weft.runtime.program_artifacts:library_artifacts",
    "load_c_kernels": "weft.runtime.programs.c_kernels:load_c_kernels",
    "code_passes": "weft.codegen.generate:phase_passes",
    "compiled_module": "weft.codegen.compiled:compiled_module",
    "source": "weft.codegen.backends.base:source_of",
    "scheduled_machine": "weft.codegen.backends.llvm.machine.host_target:scheduled_machine",
    "registered": "weft.runtime.registry:find_func",
    "entry": "weft.codegen.host.entry_kernel:lower_to_entry",
}

_loaded: dict[str, Callable[..., Any]] = {}


def provider(name: str) -> Callable[..., Any]:
    """The function that provides the named method."""
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = load(PROVIDERS[name])
    return found


def load(place: str) -> Any:
    """What stands at a place, `module:attribute`, whose module is imported when it is first asked for."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
