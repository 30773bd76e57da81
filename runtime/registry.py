"""Functions registered by name, for calls out of compiled code.

    register_func("name", f)         @register_func("name")         @register_func      (its own name)
    lookup("name")                   the function; ArgumentError W861 with near names when there is none

A name may say which module registers it when it is imported: "package.module:function".
A registered function takes NumPy arrays (outputs writable and last), numbers, strings and tuples.
"""

from __future__ import annotations

import ctypes
import difflib
from collections.abc import Callable
from typing import Any, TypeVar, overload

from weft.errors import ArgumentError
from weft.support.records import dataclass

__all__ = ["find_func", "lookup", "register_func", "registered_funcs", "unregister_func"]

F = TypeVar("F", bound=Callable[..., Any])

_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__
_functions: dict[str, Callable[..., Any]] = {}


@overload
def register_func(name: str, f: F, *, override: bool = ...) -> F: ...
@overload
def register_func(name: str, f: None = ..., *, override: bool = ...) -> Callable[[F], F]: ...
@overload
def register_func(name: F) -> F: ...
def register_func(name: Any, f: Any = None, *, override: bool = True) -> Any:
    """Register a Python or NumPy function under a name; a decorator, and a call.

    A later registration replaces an earlier one, so that a cell or file may be run again; with `override=False` that is
    a WeftError (W862). A function of ctypes needs its `argtypes`; what is no function is a WeftError too (W863).

    >>> @register_func("docs.double")
    ... def double(x, out):
    ...     out[...] = 2 * x
    >>> lookup("docs.double") is double
    True
    """
    if callable(name):
        return register_func(getattr(name, "__name__", ""), name)
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"a function is registered under a name, got {name!r}", code="W863")
    if f is None:
        return lambda function: register_func(name, function, override=override)
    if not callable(f):
        raise ArgumentError(f"{name!r} must be registered with a function, got {type(f).__name__}", code="W863")
    if isinstance(f, _C_FUNCTION) and getattr(f, "argtypes", None) is None:
        message = f"{name!r} is a C function whose types are not stated: whole numbers would pass as 32 bits"
        raise ArgumentError(
            message, code="W863", hint="set its argtypes and restype (numpy.ctypeslib.ndpointer: arrays)"
        )
    if not override and name in _functions and _registered(name) is not f:
        raise ArgumentError(
            f"a function {name!r} is registered already", code="W862", hint="pass override=True to replace it"
        )
    _functions[name] = _CFunction(name, f) if isinstance(f, _C_FUNCTION) else f
    return f


@dataclass(frozen=True)
class _CFunction:
    """A function of ctypes, whose refusal of arguments is an ArgumentError W851."""

    name: str
    function: Any

    def __call__(self, /, *args: Any) -> Any:
        try:
            return self.function(*args)
        except ctypes.ArgumentError as error:
            types = ", ".join(ty.__name__ for ty in self.function.argtypes)
            message = f"the C function {self.name!r} takes ({types}): {error}"
            hint = "pass a number where it takes one (R.Prim), and arrays where it has numpy.ctypeslib.ndpointer"
            raise ArgumentError(message, code="W851", hint=hint) from None


def _registered(name: str) -> Callable[..., Any]:
    found = _functions[name]
    return found.function if isinstance(found, _CFunction) else found


def unregister_func(name: str) -> None:
    """Forget a registered function; nothing happens when there is none."""
    _functions.pop(name, None)


def find_func(name: str) -> Callable[..., Any] | None:
    """The function registered under a name, or None."""
    return _functions.get(name)


def lookup(name: str) -> Callable[..., Any]:
    """The function registered under a name; ArgumentError W861 names near ones when there is none."""
    found = _functions.get(name)
    if found is None:
        raise ArgumentError(f"no function is registered under {name!r}", code="W861", hint=_hint(name))
    return found


def _hint(name: str) -> str:
    module, colon, function = name.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), function)):
        return f"import {module}, which registers it"
    close = difflib.get_close_matches(name, _functions, 1)
    return f"did you mean {close[0]!r}?" if close else f"register it with weft.register_func({name!r}, f)"


def registered_funcs() -> list[str]:
    """The registered names in order of registration."""
    return list(_functions)
