"""An uncaught weft error shows the message and the user's own frames, not the inside of weft.

`WEFT_TRACEBACK=full` shows everything. `import weft` installs the hooks, of programs and of their threads; they pass
every other exception on to the hooks that were there before, and errors of weft to hooks that are not Python's own,
without the inner frames.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from weft.errors import WeftError

__all__ = ["install", "is_internal"]

_PACKAGE = Path(__file__).parent.parent  # .../weft, whose folders may be links to real ones elsewhere
_FOLDERS = ("ir", "target", "script", "transform", "codegen", "runtime", "testing", "frontend")
_ROOTS = tuple({str(root) + os.sep for root in (_PACKAGE, *((_PACKAGE / name).resolve() for name in _FOLDERS))})
_installed = False


def is_internal(filename: str) -> bool:
    """Whether a file belongs to weft itself."""
    return filename.startswith(_ROOTS)


def _is_short(error: BaseException | None) -> bool:
    return isinstance(error, WeftError) and os.environ.get("WEFT_TRACEBACK") != "full"


def _is_inner(frame: FrameType, below: bool) -> bool:
    """Whether a frame is weft's: of its files, a method that Python made for its classes, a decorator below it."""
    module = str(frame.f_globals.get("__name__", ""))
    if is_internal(frame.f_code.co_filename) or module.startswith("weft."):
        return True
    return below and module == "contextlib"


def _without_inner_frames(tb: TracebackType | None) -> TracebackType | None:
    """The traceback of the user's own frames."""
    frames: list[TracebackType] = []
    below = False
    while tb is not None:
        below = _is_inner(tb.tb_frame, below)
        if not below:
            frames.append(tb)
        tb = tb.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _text(error: BaseException, tb: TracebackType | None) -> str:
    frames = traceback.format_tb(tb)
    lines = ["Traceback (most recent call last):\n", *frames] if frames else []
    notes = [f"\n{note}" for note in getattr(error, "__notes__", ())]
    return "".join([*lines, f"{type(error).__name__}: {error}", *notes, "\n"])


def _hook_of_programs(previous: Callable[..., Any]) -> Callable[..., Any]:
    def hook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        short = _without_inner_frames(tb) if _is_short(error) else tb
        if _is_short(error) and previous is sys.__excepthook__:
            sys.stderr.write(_text(error, short))
        else:
            previous(kind, error, short)

    return hook


def _hook_of_threads(previous: Callable[..., Any]) -> Callable[..., Any]:
    def hook(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is None or not _is_short(args.exc_value):
            previous(args)
            return
        short = _without_inner_frames(args.exc_traceback)
        if previous is threading.__excepthook__:
            name = args.thread.name if args.thread is not None else threading.get_ident()
            sys.stderr.write(f"Exception in thread {name}:\n{_text(args.exc_value, short)}")
        else:
            previous(threading.ExceptHookArgs((args.exc_type, args.exc_value, short, args.thread)))

    return hook


def install() -> None:
    """Make uncaught weft errors short, once."""
    global _installed
    if _installed:
        return
    _installed = True
    sys.excepthook = _hook_of_programs(sys.excepthook)
    threading.excepthook = _hook_of_threads(threading.excepthook)
