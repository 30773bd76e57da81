"""Programs that run: bytecode, straight-line programs, kernels in C, calls as machine code.

What an executor leaves beside machine code is the `driver` of a program: data with a `format`, of which the runner of
the format makes functions. One for another format is added with its executor
(`weft.codegen.executors.register_executor`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["RUNNERS", "Runner"]

Runner = Callable[
    [dict[str, Any], Sequence[np.ndarray], Mapping[str, Callable[..., Any]], Mapping[str, Callable[..., Any]]],
    Mapping[str, Any],
]
"""(driver, constants, compiled functions by name, functions of other code generators by name) -> functions by name."""
RUNNERS: dict[str, Runner | str] = {
    "weft-bytecode": "weft.runtime.programs.vm:machine_functions",
    "weft-graph": "weft.runtime.programs.entry:entry_functions",
    "weft-aot": "weft.runtime.programs.entry:entry_functions",
}
"""What makes functions of a driver, or its place, by format."""
