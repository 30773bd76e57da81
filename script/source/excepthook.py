"""An uncaught weft error shows the message and the user's own frames, not the inside of weft.

`WEFT_TRACEBACK=full` shows everything. The hook is installed when a script is first read by a decorator; it passes
every other exception on to the hook that was there before.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from weft.errors import WeftError

__all__ = ["install", "is_internal"]

_PACKAGE = Path(__file__).parents[2]  # .../weft, whose folders may be links to real ones elsewhere
_FOLDERS = ("ir", "target", "script", "transform", "codegen", "runtime", "testing", "frontend")
_ROOTS = tuple({str(root) + os.sep for root in (_PACKAGE, *((_PACKAGE / name).resolve() for name in _FOLDERS))})
_installed = False


def is_internal(filename: str) -> bool:
    """Whether a file belongs to weft itself."""
    return filename.startswith(_ROOTS)


def _user_frames(tb: TracebackType | None) -> traceback.StackSummary:
    frames = [frame for frame in traceback.extract_tb(tb) if not is_internal(frame.filename)]
    return traceback.StackSummary.from_list(frames)


def _show(kind: type[BaseException], error: BaseException, tb: TracebackType | None, previous: Any) -> None:
    if not isinstance(error, WeftError) or os.environ.get("WEFT_TRACEBACK") == "full":
        previous(kind, error, tb)
        return
    frames = _user_frames(tb)
    lines = ["Traceback (most recent call last):\n", *frames.format()] if frames else []
    sys.stderr.write("".join(lines) + f"{kind.__name__}: {error}\n")


def install() -> None:
    """Make uncaught weft errors short, once."""
    global _installed
    if _installed:
        return
    _installed = True
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        _show(kind, error, tb, previous)

    sys.excepthook = hook
