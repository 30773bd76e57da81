"""Records: frozen, slotted dataclasses that are quick to define.

`dataclass(frozen=True, slots=True)` writes seven methods for each class and compiles their text when it is imported,
which takes most of the time of importing a module of them. Here all but `__init__` are the same functions for every
record; what they give is what those of a dataclass give, and `dataclasses.replace`, `fields` and `asdict` take records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

__all__ = ["frozen", "record"]

R = TypeVar("R")


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[R]) -> type[R]:
    """Make a class a frozen, slotted dataclass, compared by its values.

    Fields are those of a dataclass with positional parameters. Methods that the class defines itself stay.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), {Point(2, 3): "a"}[Point(2, 3)]
    (Point(x=1, y=0), True, 'a')
    """
    own = set(cls.__dict__)
    made = frozen(cls)
    fields = tuple(item for item in dataclasses.fields(made) if item.compare)  # type: ignore[arg-type]
    for name, method in {"__repr__": _repr, **_compared(fields)}.items():
        if name not in own:
            setattr(made, name, method)
    return made


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def frozen(cls: type[R]) -> type[R]:
    """Make a class a frozen, slotted dataclass that is compared and shown as its base class is."""
    own = set(cls.__dict__)
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    methods = {
        "__init__": _initializer(made, dataclasses.fields(made)),
        "__setattr__": _refused_assignment,
        "__delattr__": _refused_deletion,
        "__getstate__": _state,
        "__setstate__": _restored,
    }
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _initializer(cls: type, fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    """`__init__`, which has a text of its own as its parameters are those of the class; a function of its module."""
    names: dict[str, Any] = {"_assign": object.__setattr__, "__name__": cls.__module__}
    params, lines = ["self"], list[str]()
    for item in fields:
        value = item.name
        if not item.init:
            if item.default is not dataclasses.MISSING:
                names[f"_default_{item.name}"] = item.default
                lines.append(f" _assign(self, {item.name!r}, _default_{item.name})")
            continue
        if item.default is not dataclasses.MISSING:
            names[f"_default_{item.name}"] = item.default
            value = f"{item.name}=_default_{item.name}"
        elif item.default_factory is not dataclasses.MISSING:
            names.update({f"_made_{item.name}": item.default_factory, "_absent": dataclasses.MISSING})
            value = f"{item.name}=_absent"
            lines.append(f" if {item.name} is _absent: {item.name} = _made_{item.name}()")
        params.append(value)
        lines.append(f" _assign(self, {item.name!r}, {item.name})")
    lines += [" self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    exec(f"def __init__({', '.join(params)}):\n" + "\n".join(lines or [" pass"]), names)
    return names["__init__"]


def _compared(fields: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    """`__eq__` and `__hash__` of the values of some fields."""
    get: Callable[[Any], Any] = attrgetter(*(item.name for item in fields)) if fields else _nothing

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return get(self) == get(other)

    def hash_of(self: Any) -> int:
        return hash(get(self))

    return {"__eq__": equal, "__hash__": hash_of}


def _nothing(self: Any) -> tuple[()]:
    return ()


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refused_assignment(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refused_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _restored(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
