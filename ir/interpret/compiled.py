"""What compiling a tensor-level function means: closures over a frame, and what the parts of the compiler ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weft.errors import Span
from weft.ir.graph import Expr
from weft.ir.interpret.memory import View
from weft.ir.tensor import Buffer, PrimVar

__all__ = ["CallKernel", "Compiled", "Compiler", "Frame", "Lookup"]

Frame = list[Any]
Compiled = Callable[[Frame], Any]
CallKernel = Callable[[str, list[Any], "Span | None"], Any]
Lookup = Callable[[str], "Callable[..., Any] | None"]


class Compiler(Protocol):
    """What the closures of intrinsics need of the function they are in."""

    lookup: Lookup

    def slot(self, node: PrimVar | Buffer) -> int:
        """The slot of a variable or buffer."""
        ...

    def expression(self, node: Expr) -> Compiled:
        """The closure of an expression."""
        ...

    def argument(self, node: Any) -> Compiled:
        """An argument of a call: a buffer stands for the pointer to it."""
        ...

    def pointer_to(self, buffer: Buffer) -> Compiled:
        """The pointer to the first element of a buffer."""
        ...

    def locator(self, buffer: Buffer, indices: tuple[Expr, ...], span: Span | None) -> Callable[[Frame, View], int]:
        """The address of an element, with every index checked against the shape."""
        ...

    def values_in(self, frame: Frame) -> tuple[str, ...]:
        """The values of the variables as a note for an error."""
        ...
