"""The example plug-ins in a test, and nothing of them after it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from weft.runtime import loading, unregister_func
from weft.target.kinds import KINDS

__all__ = ["imported"]

NAMES = ("weft_npu", "weft_openblas")


@contextmanager
def imported(folders: Sequence[str]) -> Iterator[dict[str, ModuleType]]:
    """Both plug-ins, found in some folders."""
    sys.path[:0] = folders
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] in NAMES]:
            del sys.modules[name]
        for kind in ("npu", "openblas"):
            KINDS.pop(kind, None)
        loading.unregister_loader("npu-stream")
        unregister_func("openblas_matmul")
