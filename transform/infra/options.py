"""Options of passes as text and back, their types and ranges.

    type  ::= a Python type, Literal[choice, ...], Annotated[type, AtLeast(n)]

    value ::= integer | float | true | false | none | word | "string" | [value, ...] | {word: value, ...}

Values that have no text (arrays, functions) are shown as <...>, which the reader refuses.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["AtLeast", "fits", "is_restricted", "to_text", "type_text"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclasses.dataclass(frozen=True)
class AtLeast:
    """The least value that an option takes, beside its type.

    >>> fits(1, typing.Annotated[int, AtLeast(1)]), fits(0, typing.Annotated[int, AtLeast(1)])
    (True, False)
    """

    low: int


def to_text(value: Any) -> str:
    """A value of an option as text.

    >>> to_text((1, True, "main", "two words", None, {"n": 7}))
    '[1, true, main, "two words", none, {n: 7}]'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        plain = _WORD.fullmatch(value) and value not in ("true", "false", "none")
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(to_text, value))}]"
    if dataclasses.is_dataclass(value) and hasattr(value, "to_dict"):
        return to_text(value.to_dict())  # type: ignore[union-attr]
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{to_text(str(key))}: {to_text(item)}' for key, item in value.items())}}}"
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type of an option.

    >>> fits(3, int | None), fits("x", int), fits((1, 2), tuple[int, ...]), fits({"n": 1}, Mapping[str, int])
    (True, False, True, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Annotated:
        limits = (part.low for part in arguments[1:] if isinstance(part, AtLeast))
        return fits(value, arguments[0]) and all(value >= low for low in limits)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(choice) and value == choice for choice in arguments)
    if origin is tuple:
        return isinstance(value, (tuple, list)) and (not arguments or all(fits(item, arguments[0]) for item in value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(item, arguments[1]) for item in value.values())
    if isinstance(origin, type) and issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if origin is not None:
        return isinstance(value, origin)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, Mapping) and dataclasses.is_dataclass(hint):  # some of its fields
        return True
    return isinstance(value, typing.cast(type, hint))


def is_restricted(hint: Any) -> bool:
    """Whether a type takes some of its values only: it names choices, or a least value."""
    return typing.get_origin(hint) in (typing.Annotated, typing.Literal)


def type_text(hint: Any) -> str:
    """An annotated type as a message shows it.

    >>> type_text(typing.Annotated[int, AtLeast(1)]), type_text(typing.Literal["bit", "real"])
    ('int of at least 1', 'bit or real')
    """
    if typing.get_origin(hint) is typing.Annotated:
        base, *parts = typing.get_args(hint)
        limits = (f" of at least {part.low}" for part in parts if isinstance(part, AtLeast))
        return type_text(base) + "".join(limits)
    if typing.get_origin(hint) is typing.Literal:
        *others, last = map(to_text, typing.get_args(hint))
        return f"{', '.join(others)} or {last}" if others else last
    if typing.get_origin(hint) is not None:
        return str(hint).replace("typing.", "").replace("collections.abc.", "").replace("NoneType", "None")
    return getattr(hint, "__name__", str(hint))
