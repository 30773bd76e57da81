"""Instruments: objects in a `PassContext` that watch passes run.

    instrument ::= enter_context, exit_context        once per `with` block
                 | should_run(module, pass) -> bool   False leaves the pass out
                 | before(module, pass)               just before a pass
                 | after(old, new, pass)              just after it; `new is old` when nothing changed

A pipeline is a pass, so its own `before` and `after` surround those of its parts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from weft.support.records import dataclass
from weft.transform.infra.checks import verify_after
from weft.transform.infra.registry import find_pass

if TYPE_CHECKING:
    from weft.ir import IRModule
    from weft.transform.infra.base import Pass
    from weft.transform.infra.context import PassContext

__all__ = ["Instrument", "PassTime", "PrintAfter", "PrintBefore", "Timing", "Verify"]


class Instrument:
    """The base of instruments: every hook does nothing until overridden."""

    def enter_context(self, context: PassContext) -> None:
        """The `with` block starts."""

    def exit_context(self, context: PassContext) -> None:
        """The `with` block ended, normally or by an error."""

    def should_run(self, module: IRModule, item: Pass) -> bool:
        """Whether the pass may run on the module."""
        return True

    def before(self, module: IRModule, item: Pass) -> None:
        """The pass is about to run."""

    def after(self, old: IRModule, new: IRModule, item: Pass) -> None:
        """The pass ran."""


@dataclass(frozen=True)
class PassTime:
    """How long one pass took, in seconds, and how deep it stood in pipelines."""

    name: str
    seconds: float
    depth: int


class Timing(Instrument):
    """Measures passes. `times` lists them in the order in which they began; `render()` is a table.

    >>> Timing().render()
    'no pass ran'
    """

    def __init__(self) -> None:
        self._running: list[tuple[int, float]] = []
        self._slots: list[PassTime | None] = []

    @property
    def times(self) -> list[PassTime]:
        """The passes that finished."""
        return [slot for slot in self._slots if slot is not None]

    def before(self, module: IRModule, item: Pass) -> None:
        """Start the clock of a pass."""
        self._slots.append(None)
        self._running.append((len(self._slots) - 1, time.perf_counter()))

    def after(self, old: IRModule, new: IRModule, item: Pass) -> None:
        """Stop the clock of the pass that began last."""
        slot, start = self._running.pop()
        self._slots[slot] = PassTime(item.name, time.perf_counter() - start, len(self._running))

    def exit_context(self, context: PassContext) -> None:
        """Forget passes that an error interrupted."""
        self._running.clear()

    def render(self) -> str:
        """One line per pass: milliseconds, share of the whole, name (indented inside pipelines)."""
        times = self.times
        if not times:
            return "no pass ran"
        whole = sum(item.seconds for item in times if item.depth == 0) or 1e-12
        return "\n".join(
            f"{item.seconds * 1e3:9.2f} ms {100 * item.seconds / whole:5.1f}%  {'  ' * item.depth}{item.name}"
            for item in times
        )


class _Printing(Instrument):
    """Prints modules at the passes named (all when None)."""

    when = ""

    def __init__(self, names: Iterable[str] | None = None, file: TextIO | None = None) -> None:
        self.names = None if names is None else frozenset(find_pass(name).text_name for name in names)
        self.file = file

    def _print(self, module: IRModule, item: Pass) -> None:
        if self.names is None or item.name in self.names:
            print(f"# {self.when} {item}\n{module.script()}", file=self.file or sys.stderr)


class PrintBefore(_Printing):
    """Prints the module before each pass, or before the passes named; PassError W501 for unknown names."""

    when = "before"

    def before(self, module: IRModule, item: Pass) -> None:
        """Print."""
        self._print(module, item)


class PrintAfter(_Printing):
    """Prints the module after each pass, or after the passes named; PassError W501 for unknown names."""

    when = "after"

    def after(self, old: IRModule, new: IRModule, item: Pass) -> None:
        """Print."""
        self._print(new, item)


class Verify(Instrument):
    """Verifies the module after each pass that changed it, whatever WEFT_CHECK says; VerifyError names the pass."""

    def after(self, old: IRModule, new: IRModule, item: Pass) -> None:
        """Verify."""
        if new is not old:
            verify_after(new, item)
