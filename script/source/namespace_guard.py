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
from dataclasses import dataclass
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from weft.errors import ScriptError, Span, WeftError
from weft.excepthook import is_internal
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.source_lookup import program_text
from weft.script.source.text import Unit

__all__ = ["FORM_DOCS", "NoSuchName", "no_such_name", "only_in_scripts", "placed"]

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

# What forms mean that no node, operator or intrinsic documents.
FORM_DOCS = {
    "R.Any": "The type of anything.",
    "R.Object": "The type of anything.",
    "R.Callable": "A function type; without params, that of an opaque function.",
    "R.ExternFunc": "A function outside the module, by name.",
    "R.match_cast": "The value, its type checked when the function runs; symbols of the type that are new are bound.",
    "R.dataflow": "A block of pure bindings; only what R.output names leaves it.",
    "R.output": "The variables that leave a dataflow block, at its end.",
    "R.func_attr": "Attributes of the function.",
    "R.is_impure": "The function may have effects, as @R.function(pure=False) says.",
    "T.func_attr": "Attributes of the function.",
    "T.match_buffer": "A buffer over the memory of a handle parameter, or over a region of another buffer.",
    "T.alloc_buffer": "A temporary buffer.",
    "T.decl_buffer": "A buffer over memory that exists.",
    "T.allocate": "A temporary buffer.",
    "T.allocate_const": "Memory with known content.",
    "T.alloc_local": "A temporary buffer in local memory.",
    "T.alloc_shared": "A temporary buffer in shared memory.",
    "T.alloc_scalar": "A variable in the memory of a scope.",
    "T.local_scalar": "A local variable.",
    "T.shared_scalar": "A variable in shared memory.",
    "T.decl_scalar": "A variable in memory that exists.",
    "T.serial": "A loop.",
    "T.parallel": "A loop whose rounds may run at the same time.",
    "T.vectorized": "A loop of one vector operation.",
    "T.unroll": "A loop that is written out.",
    "T.thread_binding": "A loop whose rounds are threads of a device.",
    "T.grid": "Nested loops, one variable each (a single name stands for the tuple of all).",
    "T.launch_thread": "A thread axis around the rest of the block.",
    "T.block": "A unit of computation over iteration variables.",
    "T.init": "What runs before the first step of a reduction.",
    "T.seq": "Statements kept together.",
    "T.attr": "An attribute of a node, for the statements inside or after.",
    "T.LetStmt": "A name for a value.",
    "T.axis.spatial": "An iteration variable each of whose values is a result of its own.",
    "T.axis.reduce": "An iteration variable that is summed over.",
    "T.axis.scan": "An iteration variable that runs in order.",
    "T.axis.opaque": "An iteration variable of unknown kind.",
    "T.axis.remap": "Iteration variables of given kinds (S spatial, R reduce) for enclosing loops.",
    "T.reads": "What the block reads; derived where it is not stated.",
    "T.writes": "What the block writes; derived where it is not stated.",
    "T.where": "When the block runs.",
    "T.block_attr": "Attributes of the block.",
    "T.evaluate": "An expression for its effect.",
    "T.bind": "A name for a value.",
    "T.call_intrin": "A call of an intrinsic by name.",
    "T.Broadcast": "A scalar in every lane.",
}


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
                raise error.at(_user_place(sys._getframe(1))) from None
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
    refuse.__doc__ = f"{FORM_DOCS.get(name, 'A part of the script.')} Read inside decorated functions."
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
