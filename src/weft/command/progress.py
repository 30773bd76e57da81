"""A bar for what takes longer than a second: on the terminal's error output, and nowhere else.

with Progress("importing") as progress:
    for done in range(total):
        progress(done, total)             a bar; without a call, the seconds that have passed
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

_WAIT, _EVERY, _WIDTH = 1.0, 0.1, 30


class Progress:
    """A line that is shown after a second, kept up to date by a thread, and taken away at the end."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self.title, self.stream = title, stream or sys.stderr
        self._start, self._done, self._total = time.monotonic(), 0, 0
        self._end, self._shown = threading.Event(), False
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __call__(self, done: int, total: int) -> None:
        """So much is done."""
        self._done, self._total = done, total

    def line(self) -> str:
        """What the terminal shows now."""
        seconds = time.monotonic() - self._start
        if not self._total:
            return f"{self.title}: {seconds:.0f} s"
        filled = _WIDTH * self._done // self._total
        return f"{self.title} [{'#' * filled}{'.' * (_WIDTH - filled)}] {self._done}/{self._total}, {seconds:.0f} s"

    def _show(self) -> None:
        wait = _WAIT
        while not self._end.wait(wait):
            self.stream.write(f"\r\x1b[K{self.line()}")
            self.stream.flush()
            self._shown, wait = True, _EVERY

    def __enter__(self) -> Progress:
        if self.stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
