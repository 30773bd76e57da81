"""The whole style for TVM: importing this registers every function of it."""

from __future__ import annotations

from weft.script.printer.tvm import calls, graph, module, scalars, statements, tensor, types, values  # noqa: F401
from weft.script.printer.tvm.style import TVM, TvmPrinter

__all__ = ["TVM", "TvmPrinter"]
