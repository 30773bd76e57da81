"""What Python itself evaluates of `I`, `R` and `T`: annotations of decorated functions, and types outside of scripts.

placed(name)(function)   its errors stand under the user's call; arguments that do not fit are W113
no_such_name(...)        the error for `R.Tensr`: an AttributeError, as `hasattr` expects, with code, place and hint
only_in_scripts(name)    a function that has a meaning only where it is read
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from weft.errors import ScriptError, Span, WeftError
from weft.script.forms.syntax import form_doc
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.source_lookup import program_text
from weft.script.source.text import Unit
from weft.support.excepthook import is_internal
from weft.support.records import dataclass

__all__ = ["NoSuchName", "no_such_name", "only_in_scripts", "placed"]

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class NoSuchName(ScriptError, AttributeError):
    """A name that a namespace does not have (W111)."""


def placed(name: str) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """A decorator: errors of the function get the place of the user's call when they have none in a text."""

    def decorate(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
            try:
                return function(*args, **kwargs)
            except WeftError as error:
                raise error.at(_user_place(sys._getframe(1))) from error.__cause__
            except TypeError:
                mismatch = _mismatch(function, args, kwargs)
                if mismatch is None:
                    raise
                parameters = [word for word in inspect.signature(function).parameters if word != "self"]
                hint = f"it is written {name}({', '.join(parameters)})"
                raise ScriptError(
                    f"{name}: {mismatch}", code="W113", span=_user_place(sys._getframe(1)), hint=hint
                ) from None

        return call

    return decorate


def _mismatch(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why the arguments do not fit the parameters, or None when they do."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def no_such_name(space: str, name: str, known: Iterable[str], hint: str | None = None) -> NoSuchName:
    """The error for `space.name`."""
    hint = hint or did_you_mean(name, known, f"{space}.")
    place = _user_place(sys._getframe(1))
    return NoSuchName(f"`{space}.{name}` does not exist", code="W111", span=place, hint=hint)


def only_in_scripts(name: str) -> Any:
    """What stands for `R.dataflow` and its kin where Python runs: documentation, and an error when it is called."""

    @placed(name)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ScriptError(f"{name} has a meaning only inside a decorated function", code="W115")

    refuse.__name__ = name.rpartition(".")[2]
    refuse.__qualname__ = name
    refuse.__doc__ = f"{form_doc(name) or 'A part of the script.'} Read inside decorated functions."
    return refuse


@dataclass
class _Place:
    """A range of lines and byte columns, as syntax trees have."""

    lineno: int
    end_lineno: int | None
    col_offset: int
    end_col_offset: int | None


def _user_place(frame: FrameType | None) -> Span | None:
    """Where the innermost frame of the user's program stands; None where its text is not known."""
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    position = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end_column = position
    if line is None or column is None:
        return None
    try:
        source, _ = program_text(frame, frame.f_code, frame.f_globals)
        return Unit(source).span(_Place(line, end_line, column, end_column))
    except (WeftError, IndexError):  # a text that is not there, or another one by now
        return None
