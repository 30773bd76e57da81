"""What compiling a tensor-level function means: closures over a frame, and what the parts of the compiler ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weft.errors import Span
from weft.ir.graph import Expr
from weft.ir.tensor import Buffer, Extent, PrimVar, Stmt

__all__ = ["BREAK", "CONTINUE", "CallKernel", "Compiled", "Compiler", "Frame", "KernelCompiler", "Lookup", "Returned"]

Frame = list[Any]
Compiled = Callable[[Frame], Any]
CallKernel = Callable[[str, list[Any], "Span | None"], Any]
Lookup = Callable[[str], "Callable[..., Any] | None"]


BREAK, CONTINUE = object(), object()


class Returned:
    """The signal of a return statement, with its value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Compiler(Protocol):
    """What the closures of expressions need of the function they are in."""

    call_kernel: CallKernel
    lookup: Lookup
    slots: dict[int, int]
    doubts: dict[int, int]

    def slot(self, node: PrimVar | Buffer) -> int:
        """The slot of a variable or buffer."""
        ...

    def extra_slot(self) -> int:
        """A slot of no node."""
        ...

    def expression(self, node: Expr) -> Compiled:
        """The closure of an expression."""
        ...

    def index(self, node: Expr) -> Compiled:
        """An index, a size or the binding of a block variable, which may not overflow its dtype."""
        ...

    def extent(self, value: Extent) -> Compiled:
        """A size: a plain int or an expression."""
        ...

    def values_in(self, frame: Frame) -> tuple[str, ...]:
        """The values of the variables as a note for an error."""
        ...


class KernelCompiler(Compiler, Protocol):
    """What the closures of statements need of the function they are in."""

    def statement(self, node: Stmt) -> Compiled:
        """The closure of a statement."""
        ...

    def unit_of(self, dtype: str) -> int:
        """Bytes per mark for memory of a dtype."""
        ...
