"""The style of text that TVM reads, versions 0.27 and 0.20: functions in the place of others, and their state."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from typing import Any

from weft.errors import ScriptError
from weft.script.forms.reading import Table
from weft.script.forms.syntax import BUFFERS
from weft.script.printer.state import Printer, Varies
from weft.support.records import dataclass

__all__ = ["TVM", "USUAL_WIDTH", "TvmPrinter"]

TVM: Table[Varies[..., Any]] = Table()

USUAL_WIDTH = "int32"  # of a number without a dtype


@dataclass(eq=False)
class TvmPrinter(Printer):
    """The state of printing for TVM; what it has no form for is refused (`refuse`)."""

    external: AbstractSet[str] = frozenset()  # names of external functions of the module
    operator: str = ""  # the operator whose call is being printed
    place: str = ""  # the function and binding being printed
    order: dict[str, int] = field(default_factory=dict)  # the symbols of the function, numbered as it names them
    blocks_inside: bool = False  # whether the function has blocks

    def __post_init__(self) -> None:
        super().__post_init__()
        self.older = self.spelling == "tvm-0.20"
        self.operators = "tir" if self.older else "tirx"  # the namespace of the operators that intrinsics are
        if not self.older:
            self.block_buffer = replace(BUFFERS["T.alloc_buffer"], name="T.sblock_alloc_buffer")

    def reset(self) -> None:
        """Forget the names of the last function."""
        super().reset()
        self.blocks_inside = False

    def refuse(self, what: str, node: Any = None, hint: str | None = None) -> ScriptError:
        """The error that a construct has no form in the spelling."""
        where = f" (in {self.place})" if self.place else ""
        span = getattr(node, "span", None)
        return ScriptError(
            f'{what} has no form with spelling="{self.spelling}"{where}', code="W116", span=span, hint=hint
        )
