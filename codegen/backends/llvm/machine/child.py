"""LLVM in a process of its own, which it may end: for machines whose code was not emitted a thousand times before.

A process serves one request at a time and waits for the next one; several threads have several. They end with this one.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from dataclasses import asdict
from pathlib import Path

from weft.codegen.backends.llvm.machine.emit import read_message, write_message
from weft.errors import TargetError
from weft.support.records import dataclass

__all__ = ["Request", "emit_apart"]

_SECONDS = 300
_ENDS = 1
"""The seconds that a process has to end when its input has."""
_MOST_TEXT = 300
_UNKNOWN = re.compile(r"'([^']*)' is not a recognized (feature|processor)")


@dataclass(frozen=True)
class Request:
    """What LLVM is told, as in `machine.emit`; `level` is that of the code generator: 0, 2 or 3."""

    triple: str
    cpu: str
    features: str
    abi: str
    code_model: str
    reloc: str
    level: int
    pipeline: str
    text: str


class _Child:
    """A process that answers requests."""

    def __init__(self) -> None:
        self.said = tempfile.TemporaryFile()
        self.heard = 0
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("emit.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env={key: value for key, value in os.environ.items() if key != "PYTHONSTARTUP"},
        )

    def ask(self, request: Request) -> list[bytes] | None:
        """The answer; None where the process has ended instead."""
        source, sink = self.process.stdin, self.process.stdout
        assert source is not None
        assert sink is not None
        timer = threading.Timer(_SECONDS, self.process.kill)
        timer.daemon = True
        timer.start()
        try:
            write_message(source, json.dumps(asdict(request)).encode())
            source.flush()
            answer = [read_message(sink) for _ in range(3)]
        except OSError:
            return None
        finally:
            timer.cancel()
        found = [item for item in answer if item is not None]
        return found if len(found) == len(answer) else None

    def unknown(self) -> str | None:
        """The feature or processor that LLVM said, since it was asked before, that it does not know."""
        said = os.pread(self.said.fileno(), 1 << 16, self.heard)  # the place in the file is that of the process as well
        self.heard += len(said)
        found = _UNKNOWN.search(said.decode(errors="replace"))
        return None if found is None else f"{found[2]} {found[1]!r}"

    def last_words(self) -> str:
        """What the process said before it ended."""
        self._stop()
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        self.said.close()
        return lines[-1] if lines else f"it ended with {self.process.returncode}"

    def close(self) -> None:
        """Let the process end."""
        self._stop()
        self.said.close()

    def _stop(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            self.process.wait(_ENDS)
        except subprocess.TimeoutExpired:  # a child that was forked meanwhile has its input too
            self.process.kill()
            self.process.wait()


_idle: dict[int, deque[_Child]] = {}  # by the process whose children they are: one that was forked has its own


def emit_apart(request: Request) -> tuple[bytes, str]:
    """Object code and optimised LLVM assembly; TargetError W749 with what LLVM said when it refuses or ends."""
    idle = _idle.setdefault(os.getpid(), deque())
    try:
        child = idle.pop()
    except IndexError:
        child = _Child()
    answer = child.ask(request)
    if answer is None:
        raise _refused(request, child.last_words())
    idle.append(child)
    error, code, assembly = answer
    if (unknown := child.unknown()) is not None:
        raise TargetError(f"LLVM knows no {unknown} for {request.triple}", code="W732")
    if error:
        raise _refused(request, error.decode())
    return code, assembly.decode()


def _refused(request: Request, reason: str) -> TargetError:
    return TargetError(f"llvm cannot compile this for {request.triple}: {reason[:_MOST_TEXT]}", code="W749")


@atexit.register
def _end() -> None:
    for child in _idle.pop(os.getpid(), ()):
        child.close()
